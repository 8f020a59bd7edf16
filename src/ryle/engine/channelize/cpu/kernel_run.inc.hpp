// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// The channelizer on a CPU: one vector of spectra from samples to blocks. Included after kernel_finish.inc.hpp.
//   X[k,m] = g_k exp(i phi_k,m) sum_n h[n] x[mM - D + n] exp(-2 pi i k (mM + n) / K)
//
//   array       axes                                       type           unit
//   columns     [point][re, im][lane]                      float          one column step of a transform in two steps
//   work, other [point][re, im][lane]                      float          buffers of the transform
//   coarse,     [index][re, im][lane]                      float          exp(i phi) of channel c is
//     fine                                                                coarse[c >> shift] fine[c & mask]
//   arranged    rows of byte samples, parts apart          bytes          receiver's LSB; byte streams only
//   out         [channel][block][input][128 bytes]         codes, floats  planar blocks
//
// A lane is a spectrum: kLanes = 16, 8 or 4 consecutive spectra of one input go through filter, transform
// and finish together, so that the transform needs no shuffles. Above 32 KiB of working set the transform is
// split into two steps (columns, then rows), so that each stays in the level-1 cache. The README says under
// Cost how many clocks each part takes and what two vector ports allow: the finish takes most.
// clang-format on

inline std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

struct Scratch {
  std::int64_t temporary, columns, work, other, coarse, fine, arranged, total;  // offsets in floats
};

inline Scratch layout(const KernelPlan& plan) {
  Scratch s{};
  std::int64_t at = 0;
  const auto take = [&at](std::int64_t points) {
    const std::int64_t begin = at;
    at += round_up(points, 1) * kPoint;
    return begin;
  };
  const std::int64_t single =
      round_up(plan.n_padded > plan.n_points ? plan.n_padded : plan.n_points, kLanes);
  s.temporary = take(kLanes);
  s.columns = take(plan.n_columns > 1 ? plan.n_columns * kLanes : 0);
  s.other = take(plan.n_columns > 1 ? plan.n_rows : single);
  s.coarse = take((plan.n_points >> fine_shift(plan.n_points)) + 1);
  s.fine = take(std::int64_t{1} << fine_shift(plan.n_points));
  s.work = take(plan.n_columns > 1 ? plan.n_columns * plan.row_stride : single);
  // Streams of bytes only; points are larger than what is needed.
  s.arranged = take(plan.float_stream || !kArranges || plan.digits != nullptr
                        ? 0
                        : arranged_bytes(plan) / (4 * kPoint) + 1);
  s.total = at;
  return s;
}

inline std::int64_t scratch_bytes(const KernelPlan& plan) { return layout(plan).total * 4; }

/// Step 1 of the four-step transform: filter kLanes columns, transform them, twiddle, scatter to
/// rows.
template <int N1>
void column_step(const KernelPlan& plan, std::int64_t n2, const float* columns, float* work) {
  const std::int64_t column = kLanes * kPoint;
  const float* w = plan.column_twiddles + n2 * 2 * (N1 - 1);
  for (std::int64_t j = 0; j < kLanes; ++j, w += 2 * (N1 - 1)) {
    C a[N1];
    load_points(a, columns + j * kPoint, column);
    butterfly<N1>(a);
    store_twiddled(work + (n2 + j) * kPoint, plan.row_stride * kPoint, a, w);
  }
}

/// What follows the filter and, of a four-step transform, its columns.
template <bool kReal>
void finish_work(const KernelPlan& plan, const KernelGroup& group, const Scratch& s, float* scratch,
                 const Finish& f) {
  float* work = scratch + s.work;
  float* other = scratch + s.other;
  if (plan.n_columns > 1) {
    for (std::int64_t k1 = 0; k1 < plan.n_columns; ++k1) {
      const float* row = transform(plan, work + k1 * plan.row_stride * kPoint, other);
      finish(plan, group.has_phase, f, row, k1 * plan.n_rows, plan.n_rows);
    }
    return;
  }
  float* x = plan.n_padded > 0 ? chirp_transform(plan, work, other) : transform(plan, work, other);
  if (kReal) untangle(plan, x);
  finish(plan, group.has_phase, f, x, 0, plan.n_points);
}

template <bool kReal, class Source>
void run_source(const KernelPlan& plan, const KernelGroup& group, const Scratch& s, float* scratch,
                const Finish& f) {
#if defined(__AVX512VBMI2__) && defined(__AVX512VNNI__)
  if (group.arranged != nullptr) {
    filter_digits<kReal>(plan, group, scratch + s.columns, scratch + s.work);
    return finish_work<kReal>(plan, group, s, scratch, f);
  }
#endif
  bool sliding = slides(plan.n_taps) && plan.digits == nullptr;
  for (int l = 1; l < kLanes; ++l)
    sliding = sliding && group.start[l] - group.start[l - 1] == plan.tap_bytes;
  auto* arranged = reinterpret_cast<std::byte*>(scratch + s.arranged);
  if (sliding && kArranges && !plan.float_stream) arrange(plan, group.start[0], arranged);
  float* temporary = scratch + s.temporary;
  float* work = scratch + s.work;
  if (plan.n_columns > 1) {
    float* columns = scratch + s.columns;
    for (std::int64_t n2 = 0; n2 < plan.n_rows; n2 += kLanes) {
      for (std::int64_t n1 = 0; n1 < plan.n_columns; ++n1) {
        filter_block<kReal, Source>(plan, group, sliding, arranged, n1 * plan.n_rows + n2,
                                    temporary, columns + n1 * kLanes * kPoint);
      }
      switch (plan.n_columns) {
        case 4:
          column_step<4>(plan, n2, columns, work);
          break;
        case 8:
          column_step<8>(plan, n2, columns, work);
          break;
        default:
          column_step<16>(plan, n2, columns, work);
          break;
      }
    }
    return finish_work<kReal>(plan, group, s, scratch, f);
  }
  for (std::int64_t n = 0; n < plan.n_points; n += kLanes) {
    filter_block<kReal, Source>(plan, group, sliding, arranged, n, temporary, work + n * kPoint);
  }
  finish_work<kReal>(plan, group, s, scratch, f);
}

inline void run(const KernelPlan& plan, const KernelGroup& group, std::byte* bytes) {
  auto* scratch = reinterpret_cast<float*>(bytes);
  const Scratch s = layout(plan);
  if (group.has_phase) phase_tables(plan, group, scratch + s.coarse, scratch + s.fine);
  const Finish f(plan, group, scratch + s.coarse, scratch + s.fine);
  if (plan.float_stream) {
    if (plan.real_input) return run_source<true, FloatPairs>(plan, group, s, scratch, f);
    return run_source<false, FloatPairs>(plan, group, s, scratch, f);
  }
  if (plan.real_input) return run_source<true, BytePairs>(plan, group, s, scratch, f);
  return run_source<false, BytePairs>(plan, group, s, scratch, f);
}
