// SPDX-License-Identifier: BSD-3-Clause
// Polyphase filter in integers, lane = spectrum from the first operation: no transposes of floats,
// no conversions of samples. Included after kernel_unpack.inc.hpp.
//
// A coefficient is an integer h in units of 1 / plan.units, written in three balanced digits:
// h = 65536 h2 + 256 h1 + h0, |hi| <= 128. Samples are bytes u = x + 128. One vpdpbusd adds four
// taps of one digit to all lanes; sums wrap modulo 2^32 and end inside 31 bits
// (TransformPlan::make_digits):
// @eq sum_p h[p] x[p] = -128 sum_p h[p] + sum_p u[p] (65536 h2[p] + 256 h1[p] + h0[p])
// Integer sums are exact, so that the order of taps and the code path do not matter.

/// Where arranged samples of point n lie in a group of 8 rows: in the order the transform asks for
/// them, 16 bytes a point.
RYLE_INLINE std::int64_t arranged_at(const KernelPlan& plan, std::int64_t n) {
  if (plan.n_columns == 1) return n * 16;
  return (n % plan.n_rows * plan.n_columns + n / plan.n_rows) * 16;
}

#if defined(__AVX512VBMI2__) && defined(__AVX512VNNI__)

/// Rows [first, end) of a stream, one tap apart, to [8 rows][point][row] words u; rows outside
/// repeat others.
inline void arrange_rows(const KernelPlan& plan, const std::byte* start, std::int64_t first,
                         std::int64_t end, std::byte* out) {
  const std::int64_t step = 16 * plan.n_columns;
  for (std::int64_t group = first / 8; 8 * group < end; ++group) {
    std::byte* cell = out + group * plan.arranged_stride;
    const std::byte* row[8];
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t r = 8 * group + i;
      row[i] = start + (r < first ? first : r < end ? r : end - 1) * plan.tap_bytes;
    }
    for (std::int64_t n = 0; n < plan.n_points; n += 32) {
      W r[8];
      static_for<0, 8>([&](auto i) RYLE_ALWAYS {
        __builtin_memcpy(&r[i], row[i] + 2 * n, sizeof(W));
        r[i] ^= static_cast<std::uint16_t>(0x8080);
      });
      transpose_words(r);
      std::byte* const to[4] = {cell + arranged_at(plan, n), cell + arranged_at(plan, n + 8),
                                cell + arranged_at(plan, n + 16), cell + arranged_at(plan, n + 24)};
      store_words(r, to, step);
    }
  }
}

/// Columns filtered and transformed together: they stay in the first-level cache.
inline constexpr int kColumns = 4;

/// Ticks ahead; less than the 32 that would fight for the cache sets of this tick.
inline constexpr std::int64_t kArrangePrefetch = 16;

/// One group of 8 rows of 32 inputs. kEdge: not all of its ticks may be read.
template <bool kFlip, bool kEdge>
void arrange_tile(const KernelPlan& plan, const KernelWords& words, const unsigned char* bytes,
                  std::int64_t stride, std::int64_t row, std::int64_t begin, std::int64_t end,
                  std::byte* out, std::int64_t cell_bytes) {
  const KernelWords d = words;  // a copy that no store can change, for all the compiler knows
  const std::int64_t n_points = plan.n_points;
  const std::int64_t row_bytes = n_points * stride;
  const unsigned char* from = bytes + row * row_bytes;
  for (std::int64_t n = 0; n < n_points; ++n, from += stride) {
    W r[8];
    static_for<0, 8>([&](auto i) RYLE_ALWAYS {
      const unsigned char* at = from + i * row_bytes;
      const std::int64_t tick = (row + i) * n_points + n;
      if (kEdge && (tick < begin || tick >= end)) at = bytes + begin * stride;
      __builtin_memcpy(&r[i], at, sizeof(W));
      __builtin_prefetch(at + kArrangePrefetch * stride);
      r[i] = decode_words<kFlip>(r[i], d) ^ static_cast<std::uint16_t>(0x8080);
    });
    transpose_words(r);
    store_words(r, out + arranged_at(plan, n), 8 * cell_bytes, cell_bytes);
  }
}

/// The same as arrange_rows() from words of 32 neighbouring inputs, ticks `stride` bytes apart;
/// only ticks [begin, end) after `bytes` may be read. Cells of the inputs are `cell_bytes` apart.
template <bool kFlip>
void arrange_tiles(const KernelPlan& plan, const KernelWords& d, const unsigned char* bytes,
                   std::int64_t stride, std::int64_t begin, std::int64_t end, std::byte* out,
                   std::int64_t cell_bytes) {
  const std::int64_t group_ticks = 8 * plan.n_points;
  for (std::int64_t group = begin / group_ticks; group * group_ticks < end; ++group) {
    std::byte* to = out + group * plan.arranged_stride;
    if (group * group_ticks >= begin && (group + 1) * group_ticks <= end) {
      arrange_tile<kFlip, false>(plan, d, bytes, stride, 8 * group, begin, end, to, cell_bytes);
    } else {
      arrange_tile<kFlip, true>(plan, d, bytes, stride, 8 * group, begin, end, to, cell_bytes);
    }
  }
}

inline void arrange_words(const KernelPlan& plan, const KernelWords& d, const unsigned char* bytes,
                          std::int64_t stride, std::int64_t begin, std::int64_t end, std::byte* out,
                          std::int64_t cell_bytes) {
  if (d.flip != 0) {
    arrange_tiles<true>(plan, d, bytes, stride, begin, end, out, cell_bytes);
  } else {
    arrange_tiles<false>(plan, d, bytes, stride, begin, end, out, cell_bytes);
  }
}

/// Byte 4 l + i of the result: that part of row l + i + 4 quad + skip among 32 rows of words.
RYLE_INLINE __m512i quad_order(int part, int quad, int skip) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i first = _mm512_mullo_epi32(lane, _mm512_set1_epi32(0x02020202));
  return _mm512_add_epi8(first,
                         _mm512_set1_epi32(0x06040200 + 0x01010101 * (part + 8 * quad + 2 * skip)));
}

/// kGroups groups of 8 rows of one point, side by side.
template <int kGroups>
RYLE_INLINE __m512i window_of(const std::byte* at, std::int64_t stride) {
  const auto group = [&](int g) RYLE_ALWAYS {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + g * stride));
  };
  __m512i words = _mm512_castsi128_si512(group(0));
  words = _mm512_inserti32x4(words, group(1), 1);
  words = _mm512_inserti32x4(words, group(2), 2);
  if constexpr (kGroups == 4) words = _mm512_inserti32x4(words, group(3), 3);
  return words;
}

/// kUnroll points at a time, in lockstep: one after the other they would fill the scheduler with
/// instructions that wait for the one before.
template <int Q, bool kReal, int kUnroll>
RYLE_INLINE void digit_step(const std::byte* window, std::int64_t stride, const std::int32_t* d,
                            const __m512i (&order)[2][Q], float* out) {
  constexpr int kWords = 3 + 3 * Q;
  constexpr int kSums = 2 * kUnroll;
  const auto word = [&](int sum, int i) RYLE_ALWAYS {
    const int row = kReal ? sum : sum / 2;
    return _mm512_set1_epi32(d[row * kWords + i]);
  };
  __m512i x[kSums][Q], sum[kSums];
  static_for<0, kUnroll>([&](auto u) RYLE_ALWAYS {
    const __m512i words = window_of < Q <= 2 ? 3 : 4 > (window + 16 * u, stride);
    static_for<0, 2 * Q>([&](auto k) RYLE_ALWAYS {
      x[2 * u + k % 2][k / 2] = _mm512_permutexvar_epi8(order[k % 2][k / 2], words);
    });
  });
  static_for<0, 3>([&](auto digit) RYLE_ALWAYS {
    static_for<0, kSums>([&](auto k) RYLE_ALWAYS {
      sum[k] = digit == 0 ? word(k, 0) : _mm512_shldi_epi32(sum[k], word(k, digit), 8);
    });
    static_for<0, Q>([&](auto q) RYLE_ALWAYS {
      static_for<0, kSums>([&](auto k) RYLE_ALWAYS {
        sum[k] = _mm512_dpbusd_epi32(sum[k], x[k][q], word(k, 3 + digit * Q + q));
      });
    });
  });
  static_for<0, kSums>([&](auto k)
                           RYLE_ALWAYS { store(out + k * kLanes, (V)_mm512_cvtepi32_ps(sum[k])); });
}

/// Filters `count` points that are neighbours both in `window` and in the table of digits; windows
/// begin `skip` rows later.
template <int Q, bool kReal>
RYLE_INLINE void digit_points(const std::byte* window, std::int64_t stride, const std::int32_t* d,
                              std::int64_t count, int skip, const std::byte* prefetch, float* out) {
  constexpr int kWords = (kReal ? 2 : 1) * (3 + 3 * Q);
  constexpr int kUnroll = Q <= 2 ? 4 : 2;
  __m512i order[2][Q];
  for (int q = 0; q < Q; ++q) {
    order[0][q] = quad_order(0, q, skip);
    order[1][q] = quad_order(1, q, skip);
  }
  std::int64_t n = 0;
  for (; n + kUnroll <= count; n += kUnroll) {
    static_for<0, kUnroll / 2>(
        [&](auto i) RYLE_ALWAYS { __builtin_prefetch(prefetch + (n + 2 * i) * 2 * kLanes, 0, 2); });
    digit_step<Q, kReal, kUnroll>(window + 16 * n, stride, d + n * kWords, order, out + n * kPoint);
  }
  for (; n < count; ++n) {
    digit_step<Q, kReal, 1>(window + 16 * n, stride, d + n * kWords, order, out + n * kPoint);
  }
}

/// Four columns.
template <int N1>
RYLE_TUNED void column_points(const KernelPlan& plan, std::int64_t n2, const float* column,
                              float* work) {
  const float* w = plan.column_twiddles + n2 * 2 * (N1 - 1);
  float* out = work + n2 * kPoint;
  for (int j = 0; j < kColumns; ++j) {
    C a[N1];
    load_points(a, column, kPoint);
    butterfly<N1>(a);
    store_twiddled(out, plan.row_stride * kPoint, a, w);
    column += N1 * kPoint;
    out += kPoint;
    w += 2 * (N1 - 1);
  }
}

/// Filter and first step of the transform: to the rows of a four-step transform, or to all points.
template <int Q, bool kReal>
void digits_to_work(const KernelPlan& plan, const KernelGroup& group, float* columns, float* work) {
  const std::int64_t stride = plan.arranged_stride;
  const std::int64_t words = (kReal ? 2 : 1) * (3 + 3 * Q);
  if (plan.n_columns == 1) {
    // Windows that start `rotation` points into the first row end in the next one.
    const std::int64_t ahead = plan.n_points - group.rotation;
    digit_points<Q, kReal>(group.arranged + group.rotation * 16, stride, plan.digits, ahead, 0,
                           group.prefetch, work);
    constexpr int kNextRow = 1;
    digit_points<Q, kReal>(group.arranged, stride, plan.digits + ahead * words, group.rotation,
                           kNextRow, group.prefetch + ahead * 2 * kLanes, work + ahead * kPoint);
    return;
  }
  const std::byte* window = group.arranged;
  const std::byte* prefetch = group.prefetch;
  const std::int32_t* d = plan.digits;
  const auto each = [&]<int N1>() RYLE_ALWAYS {
    constexpr std::int64_t kPoints = N1 * kColumns;
    for (std::int64_t n2 = 0; n2 < plan.n_rows; n2 += kColumns) {
      digit_points<Q, kReal>(window, stride, d, kPoints, 0, prefetch, columns);
      column_points<N1>(plan, n2, columns, work);
      window += kPoints * 16;
      prefetch += kPoints * 2 * kLanes;
      d += kPoints * words;
    }
  };
  if (plan.n_columns == 4) {
    each.template operator()<4>();
  } else if (plan.n_columns == 8) {
    each.template operator()<8>();
  } else {
    each.template operator()<16>();
  }
}

template <bool kReal>
void filter_digits(const KernelPlan& plan, const KernelGroup& group, float* columns, float* work) {
  switch ((plan.n_taps + 3) / 4) {
    case 1:
      return digits_to_work<1, kReal>(plan, group, columns, work);
    case 2:
      return digits_to_work<2, kReal>(plan, group, columns, work);
    case 3:
      return digits_to_work<3, kReal>(plan, group, columns, work);
    default:
      return digits_to_work<4, kReal>(plan, group, columns, work);
  }
}

#endif
