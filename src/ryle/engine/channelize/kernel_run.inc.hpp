// SPDX-License-Identifier: BSD-3-Clause
// One vector of spectra from samples to blocks. Included last.

inline std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

struct Scratch {
  std::int64_t temporary, columns, work, other, coarse, fine, total;  // offsets in floats
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
    static_for<0, N1>([&](auto l)
                          RYLE_ALWAYS { a[l] = load_point(columns + l * column + j * kPoint); });
    butterfly<N1>(a);
    float* out = work + (n2 + j) * kPoint;
    store_point(out, a[0]);
    static_for<1, N1>([&](auto k) RYLE_ALWAYS {
      store_point(out + k * plan.row_stride * kPoint, times(a[k], w + 2 * (k - 1)));
    });
  }
}

template <bool kReal, class Source>
void run_source(const KernelPlan& plan, const KernelGroup& group, const Scratch& s, float* scratch,
                const Finish& f) {
  bool sliding = true;
  for (int l = 1; l < kLanes; ++l)
    sliding = sliding && group.start[l] - group.start[l - 1] == plan.tap_bytes;
  float* temporary = scratch + s.temporary;
  float* work = scratch + s.work;
  float* other = scratch + s.other;
  if (plan.n_columns > 1) {
    float* columns = scratch + s.columns;
    for (std::int64_t n2 = 0; n2 < plan.n_rows; n2 += kLanes) {
      for (std::int64_t n1 = 0; n1 < plan.n_columns; ++n1) {
        filter_block<kReal, Source>(plan, group, sliding, n1 * plan.n_rows + n2, temporary,
                                    columns + n1 * kLanes * kPoint);
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
    for (std::int64_t k1 = 0; k1 < plan.n_columns; ++k1) {
      const float* row = transform(plan, work + k1 * plan.row_stride * kPoint, other);
      finish(f, row, k1, plan.n_columns, plan.n_rows);
    }
    return;
  }
  for (std::int64_t n = 0; n < plan.n_points; n += kLanes) {
    filter_block<kReal, Source>(plan, group, sliding, n, temporary, work + n * kPoint);
  }
  float* x = plan.n_padded > 0 ? chirp_transform(plan, work, other) : transform(plan, work, other);
  if (kReal) untangle(plan, x);
  finish(f, x, 0, 1, plan.n_points);
}

inline void run(const KernelPlan& plan, const KernelGroup& group, std::byte* bytes) {
  auto* scratch = reinterpret_cast<float*>(bytes);
  const Scratch s = layout(plan);
  if (group.has_phase) phase_tables(plan, group, scratch + s.coarse, scratch + s.fine);
  I valid;
  U keys;
  for (int l = 0; l < kLanes; ++l) {
    valid[l] = (group.valid >> l & 1u) != 0 ? -1 : 0;
    keys[l] = group.dither_keys[l];
  }
  const Finish f{plan,
                 group,
                 scratch + s.coarse,
                 scratch + s.fine,
                 valid,
                 keys,
                 broadcast(plan.direction < 0 ? -0.0f : 0.0f),
                 fine_shift(plan.n_points)};
  if (plan.float_stream) {
    if (plan.real_input) return run_source<true, FloatPairs>(plan, group, s, scratch, f);
    return run_source<false, FloatPairs>(plan, group, s, scratch, f);
  }
  if (plan.real_input) return run_source<true, BytePairs>(plan, group, s, scratch, f);
  return run_source<false, BytePairs>(plan, group, s, scratch, f);
}

/// Sum of squares of 128 codes in -127..127. |x| is both an unsigned and a signed byte, and 2 *
/// 127^2 fits 16 bits.
RYLE_INLINE std::int32_t squares_of_bytes(const std::byte* cell) {
#if defined(__AVX512BW__)
  __m512i sum = _mm512_setzero_si512();
  for (int half = 0; half < 2; ++half) {
    const __m512i a = _mm512_abs_epi8(_mm512_loadu_si512(cell + 64 * half));
    sum =
        _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, a), _mm512_set1_epi16(1)));
  }
  return _mm512_reduce_add_epi32(sum);
#elif defined(__AVX2__)
  __m256i sum = _mm256_setzero_si256();
  for (int quarter = 0; quarter < 4; ++quarter) {
    __m256i a;
    __builtin_memcpy(&a, cell + 32 * quarter, 32);
    a = _mm256_abs_epi8(a);
    sum =
        _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, a), _mm256_set1_epi16(1)));
  }
  std::int32_t parts[8];
  __builtin_memcpy(parts, &sum, 32);
  return parts[0] + parts[1] + parts[2] + parts[3] + parts[4] + parts[5] + parts[6] + parts[7];
#else
  std::int32_t sum = 0;
  for (int i = 0; i < 128; ++i) {
    const auto code = static_cast<std::int32_t>(static_cast<std::int8_t>(cell[i]));
    sum += code * code;
  }
  return sum;
#endif
}

inline double squares_of_nibbles(const std::byte* cell) {
  std::int32_t sum = 0;
  for (int i = 0; i < 128; ++i) {
    const auto re = static_cast<std::int32_t>(static_cast<std::int8_t>(cell[i])) >> 4;
    const std::int32_t im =
        static_cast<std::int32_t>(static_cast<std::uint32_t>(cell[i]) << 28) >> 28;
    sum += re * re + im * im;
  }
  return sum;
}

/// Squares in double, in the order of the cell.
inline double squares_of_floats(const std::byte* cell) {
  double sum = 0;
  for (int i = 0; i < 32; ++i) {
    float single;
    __builtin_memcpy(&single, cell + 4 * i, 4);
    sum += static_cast<double>(single) * static_cast<double>(single);
  }
  return sum;
}

inline double squares_of_halves(const std::byte* cell) {
  double sum = 0;
  for (int i = 0; i < 64; ++i) {
    std::uint16_t half;
    __builtin_memcpy(&half, cell + 2 * i, 2);
    // A half is a float with another exponent bias: scale instead of assembling (exact, subnormals
    // too).
    const std::uint32_t bits = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
    float single;
    __builtin_memcpy(&single, &bits, 4);
    const double value = static_cast<double>(single) * 0x1p112;
    sum += value * value;
  }
  return sum;
}

/// Whole lines that nobody reads soon: past the caches where the address allows it.
RYLE_INLINE void copy_cell(const std::byte* from, std::byte* to) {
#if defined(__AVX512F__)
  if ((reinterpret_cast<std::uintptr_t>(to) & 63) == 0) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to + 64), _mm512_loadu_si512(from + 64));
    return;
  }
#endif
  __builtin_memcpy(to, from, 128);
}

inline void flush(KernelFormat format, const std::byte* codes, std::byte* cells,
                  std::int64_t channel_stride_bytes, std::int64_t n_channels,
                  KernelCounts* counts) {
  for (std::int64_t c = 0; c < n_channels; ++c, codes += 128, cells += channel_stride_bytes) {
    copy_cell(codes, cells);
    if (counts == nullptr) continue;
    switch (format) {
      case KernelFormat::ci8:
        counts[c].sum_of_squares += squares_of_bytes(codes);
        break;
      case KernelFormat::ci4:
        counts[c].sum_of_squares += squares_of_nibbles(codes);
        break;
      case KernelFormat::cf16:
        counts[c].sum_of_squares += squares_of_halves(codes);
        break;
      default:
        counts[c].sum_of_squares += squares_of_floats(codes);
        break;
    }
  }
#if defined(__AVX512F__)
  _mm_sfence();  // streaming stores are not ordered by the locks that hand the blocks on
#endif
}
