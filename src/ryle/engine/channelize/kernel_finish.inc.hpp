// SPDX-License-Identifier: BSD-3-Clause
// Phase, gain, dither, rounding, storing. Included after kernel_lanes.inc.hpp.

/// Phasors of channel c = coarse[c >> shift] * fine[c & mask]: 2 sqrt(F) sines instead of F, one
/// more rounding.
inline int fine_shift(std::int64_t n_points) {
  int shift = 3;
  while (shift < 12 && (std::int64_t{1} << (2 * shift + 1)) < n_points) ++shift;
  return shift;
}

using Wide = std::uint64_t __attribute__((vector_size(4 * kLanes)));  // half the lanes

/// Upper words of 2^-64 turns.
RYLE_INLINE I upper_words(Wide low, Wide high) {
#if defined(__AVX512F__)
  const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return (I)_mm512_permutex2var_epi32((__m512i)low, odd, (__m512i)high);
#elif defined(__AVX2__)
  return __builtin_shufflevector((I)low, (I)high, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  I turns;
  for (int l = 0; l < kLanes / 2; ++l) {
    turns[l] = static_cast<std::int32_t>(low[l] >> 32);
    turns[l + kLanes / 2] = static_cast<std::int32_t>(high[l] >> 32);
  }
  return turns;
#endif
}

inline void phase_tables(const KernelPlan& plan, const KernelGroup& group, float* coarse,
                         float* fine) {
  const int shift = fine_shift(plan.n_points);
  const std::int64_t n_fine = std::int64_t{1} << shift;
  const std::int64_t n_coarse = (plan.n_points + n_fine - 1) / n_fine;
  Wide slope[2], base[2];
  __builtin_memcpy(slope, group.phase_slope, sizeof slope);
  __builtin_memcpy(base, group.phase_base, sizeof base);
  // Sums of integers are exact: a recurrence loses nothing.
  const auto fill = [](float* table, std::int64_t n, Wide low, Wide high, Wide step_low,
                       Wide step_high) {
    for (std::int64_t i = 0; i < n; ++i) {
      store_point(table + i * kPoint, unit_phasor(upper_words(low, high)));
      low += step_low;
      high += step_high;
    }
  };
  fill(coarse, n_coarse, base[0], base[1], slope[0] << shift, slope[1] << shift);
  fill(fine, plan.n_points < n_fine ? plan.n_points : n_fine, Wide{}, Wide{}, slope[0], slope[1]);
}

/// Bytes of one vector of codes of one bin.
constexpr std::int64_t piece_bytes(KernelFormat format) {
  constexpr int kBytes[] = {2, 1, 4, 8};
  return kLanes * kBytes[static_cast<int>(format)];
}

struct Finish {
  const KernelPlan& plan;
  const KernelGroup& group;
  const float* coarse;
  const float* fine;
  I valid;  // all ones where a lane is valid
  U dither_keys;
  std::uint64_t valid_bytes;  // bit 16 j + 4 i + l: lane 4 j + l is valid, i = 0..3
  int shift;                  // of fine_shift()
};

RYLE_INLINE U hash(const Finish& f, std::int64_t channel) {
  U x = f.dither_keys ^ f.plan.channel_keys[channel];
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  x ^= x >> 16;
  return x;
}

template <bool kDither, bool kTruncate>
RYLE_INLINE void quantize(const Finish& f, C y, std::int64_t channel, float limit, I& re, I& im) {
  if constexpr (kDither) {
    U x = hash(f, channel);
    const V scale = broadcast(0x1p-32f);
    y.re = fma(__builtin_convertvector((I)((x & 0xffff0000u) | 0x8000u), V), scale, y.re);
#if RYLE_MUTANT == 104
    x >>= 16;
#endif
    y.im = fma(__builtin_convertvector((I)((x << 16) | 0x8000u), V), scale, y.im);
  }
  const V high = broadcast(limit);
  const V low = broadcast(-limit);
  // Rounding is monotonic and the limits are integers: clipping first gives the same code.
  const C clipped = {least(most(y.re, low), high), least(most(y.im, low), high)};
  if (__builtin_expect(any_differs(y.re, clipped.re, y.im, clipped.im), 0) &&
      f.group.counts != nullptr) {
#if RYLE_MUTANT == 105
    const float edge = limit + 1;
#else
    const float edge = kTruncate ? limit + 1 : limit + 0.5f;  // +-127.5 would round to the even 128
#endif
    KernelCounts& counts = f.group.counts[channel];
    for (int l = 0; l < kLanes; ++l) {
      if ((f.group.valid >> l & 1u) == 0) continue;
      counts.high += (y.re[l] >= edge) + (y.im[l] >= edge);
      counts.low += (y.re[l] <= -edge) + (y.im[l] <= -edge);
    }
  }
  if constexpr (kTruncate) {
    re = __builtin_convertvector(clipped.re, I);
    im = __builtin_convertvector(clipped.im, I);
  } else {
    re = round_to_int(clipped.re);
    im = round_to_int(clipped.im);
  }
#if RYLE_MUTANT != 112
  re &= f.valid;
#endif
  im &= f.valid;
}

/// Codes of one point as 16-bit pairs (re low, im high) before clipping to 8 bits.
/// @eq rne(y + (d + 1/2) / 2^16) = floor((rne(2^16 y) + d + 2^15) / 2^16), so integers do the rest
template <bool kClip>
RYLE_INLINE U fixed_point_pairs(const Finish& f, C y, std::int64_t channel) {
  U x = hash(f, channel) ^ 0x80008000u;  // d + 2^15 in either half
  if constexpr (kClip) {                 // whatever the conversion or the sum could not hold
    const V limit = broadcast(0x1p28f);
    y = {least(most(y.re, -limit), limit), least(most(y.im, -limit), limit)};
  }
  const U re = (U)round_to_int(y.re) + (x >> 16);
#if RYLE_MUTANT == 104
  x >>= 16;
#endif
  const U im = (U)round_to_int(y.im) + (x & 0xffffu);
  return (re >> 16) | (im & 0xffff0000u);
}

/// Clips and counts; y holds 2^16 times the values.
__attribute__((noinline)) U clipped_pairs(const Finish& f, C y, std::int64_t channel) {
  const U pairs = fixed_point_pairs<true>(f, y, channel);
#if RYLE_MUTANT == 105
  constexpr std::int32_t kEdge = 129;
#else
  constexpr std::int32_t kEdge = 128;
#endif
  U result{};
  std::uint32_t low = 0, high = 0;
  for (int l = 0; l < kLanes; ++l) {
    if ((f.group.valid >> l & 1u) == 0) continue;
    for (int shift = 0; shift <= 16; shift += 16) {
      const std::int32_t code = static_cast<std::int16_t>(pairs[l] >> shift);
      high += code >= kEdge;
      low += code <= -kEdge;
      const std::int32_t clipped = code > 127 ? 127 : code < -127 ? -127 : code;
      result[l] |= (static_cast<std::uint32_t>(clipped) & 0xffffu) << shift;
    }
  }
  if (f.group.counts != nullptr) {
    f.group.counts[channel].low += low;
    f.group.counts[channel].high += high;
  }
  return result;
}

/// Stores the pieces of one or two neighbouring bins; false (and nothing stored) if a code may have
/// to be clipped.
template <bool kCheck>
RYLE_INLINE bool store_pairs(const Finish& f, U a, U b, bool two, std::byte* piece) {
#if defined(__AVX512F__)
  const __m512i split =
      _mm512_broadcast_i32x4(_mm_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0));
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i bytes =
      _mm512_maskz_shuffle_epi8(f.valid_bytes, _mm512_packs_epi16((__m512i)a, (__m512i)b), split);
  if constexpr (kCheck) {
    if (__builtin_expect(_mm512_cmpge_epu8_mask(_mm512_abs_epi8(bytes), _mm512_set1_epi8(127)) != 0,
                         0))
      return false;
  }
  const __m512i both = _mm512_permutexvar_epi32(order, bytes);
  if (two) {
    _mm512_storeu_si512(piece, both);
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(piece), _mm512_castsi512_si256(both));
  }
#elif defined(__AVX2__)
  const __m256i split = _mm256_broadcastsi128_si256(
      _mm_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0));
  const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  const __m256i bytes = _mm256_shuffle_epi8(
      _mm256_packs_epi16((__m256i)(a & (U)f.valid), (__m256i)(b & (U)f.valid)), split);
  if constexpr (kCheck) {
    const __m256i size = _mm256_abs_epi8(bytes);
    const __m256i large = _mm256_max_epu8(size, _mm256_set1_epi8(127));
    if (__builtin_expect(_mm256_movemask_epi8(_mm256_cmpeq_epi8(size, large)) != 0, 0))
      return false;
  }
  const __m256i both = _mm256_permutevar8x32_epi32(bytes, order);
  if (two) {
    __builtin_memcpy(piece, &both, 32);
  } else {
    __builtin_memcpy(piece, &both, 16);
  }
#else
  for (int i = 0; i < (two ? 2 : 1); ++i) {
    const I pairs = (I)(i == 0 ? a : b) & f.valid;
    const I re = (pairs << 16) >> 16;
    const I im = pairs >> 16;
    if constexpr (kCheck) {
      const I large = (I)(re > 126) | (I)(re < -126) | (I)(im > 126) | (I)(im < -126);
      if ((large[0] | large[1] | large[2] | large[3]) != 0) return false;
    }
    const Byte r = narrow(re), m = narrow(im);
    __builtin_memcpy(piece + 8 * i, &r, 4);
    __builtin_memcpy(piece + 8 * i + 4, &m, 4);
  }
#endif
  return true;
}

/// Phase and gain.
template <bool kPhase>
RYLE_INLINE C correct(const Finish& f, const float* x, std::int64_t channel) {
  C point = load_point(x);
  const float* g = f.group.gains + 2 * channel;
  if (f.plan.direction < 0) point.im = -point.im;  // inverted band
  C factor;
  if constexpr (kPhase) {
    const auto c = static_cast<std::uint64_t>(channel);
    const C a = load_point(f.coarse + (c >> f.shift) * kPoint);
    const C b = load_point(f.fine + (c & ((std::uint64_t{1} << f.shift) - 1)) * kPoint);
    factor = times(times(a, b.re, b.im), g);
  } else {
    factor = {broadcast(g[0]), broadcast(g[1])};
  }
  return times(point, factor.re, factor.im);
}

/// One or two points to 8-bit codes.
template <bool kPhase, bool kDither, bool kTruncate>
RYLE_INLINE void finish_bytes(const Finish& f, const float* x, std::int64_t channel,
                              std::int64_t next, bool two, std::byte* piece) {
  const C y = correct<kPhase>(f, x, channel);
  const C z = two ? correct<kPhase>(f, x + kPoint, next) : y;
  if constexpr (kDither && !kTruncate) {
    const U a = fixed_point_pairs<false>(f, y, channel);
    const U b = two ? fixed_point_pairs<false>(f, z, next) : a;
    if (__builtin_expect(store_pairs<true>(f, a, b, two, piece), 1)) return;
    const U c = clipped_pairs(f, y, channel);
    store_pairs<false>(f, c, two ? clipped_pairs(f, z, next) : c, two, piece);
  } else {
    const auto pairs = [&](C value, std::int64_t c) RYLE_ALWAYS {
      I re, im;
      quantize<kDither, kTruncate>(f, value, c, 127, re, im);
      return (U)((re & 0xffff) | (im << 16));
    };
    const U a = pairs(y, channel);
    store_pairs<false>(f, a, two ? pairs(z, next) : a, two, piece);
  }
}

template <KernelFormat kFormat, bool kPhase, bool kDither, bool kTruncate>
RYLE_INLINE void finish_point(const Finish& f, const float* x, std::int64_t channel,
                              std::byte* piece) {
  const C y = correct<kPhase>(f, x, channel);
  if constexpr (kFormat == KernelFormat::ci4) {
    I re, im;
    quantize<kDither, kTruncate>(f, y, channel, 7, re, im);
    // Sign-extended from 8 bits, so that a saturating narrowing keeps the byte.
    const Byte both = narrow(((re << 28) >> 24) | (im & 15));
    __builtin_memcpy(piece, &both, sizeof both);
  } else if constexpr (kFormat == KernelFormat::cf16) {
    const Half re = to_half((V)((I)y.re & f.valid)), im = to_half((V)((I)y.im & f.valid));
    __builtin_memcpy(piece, &re, sizeof re);
    __builtin_memcpy(piece + sizeof re, &im, sizeof im);
  } else {
    const V re = (V)((I)y.re & f.valid), im = (V)((I)y.im & f.valid);
    __builtin_memcpy(piece, &re, sizeof re);
    __builtin_memcpy(piece + sizeof re, &im, sizeof im);
  }
}

/// Points x[i], i = 0..n-1, are bins first_bin + i bin_step; their pieces follow one another.
template <KernelFormat kFormat, bool kPhase, bool kDither, bool kTruncate>
__attribute__((noinline)) void finish_points(const Finish& f, const float* x,
                                             std::int64_t first_bin, std::int64_t bin_step,
                                             std::int64_t n) {
  const std::int64_t size = f.plan.n_points;
  std::int64_t channel = (f.plan.first_channel + f.plan.direction * first_bin) % size;
  const std::int64_t step = f.plan.direction * bin_step;
  channel += channel < 0 ? size : 0;
  const auto after = [&](std::int64_t c) RYLE_ALWAYS {
    c += step;
    c -= c >= size ? size : 0;
    return c + (c < 0 ? size : 0);
  };
  std::byte* piece = f.group.codes + first_bin * n * piece_bytes(kFormat);
  if constexpr (kFormat == KernelFormat::ci8) {
    std::int64_t i = 0;
    for (; i + 2 <= n; i += 2, piece += 2 * piece_bytes(kFormat)) {
      const std::int64_t next = after(channel);
      finish_bytes<kPhase, kDither, kTruncate>(f, x + i * kPoint, channel, next, true, piece);
      channel = after(next);
    }
    if (i < n)
      finish_bytes<kPhase, kDither, kTruncate>(f, x + i * kPoint, channel, channel, false, piece);
  } else {
    for (std::int64_t i = 0; i < n; ++i, piece += piece_bytes(kFormat)) {
      finish_point<kFormat, kPhase, kDither, kTruncate>(f, x + i * kPoint, channel, piece);
      channel = after(channel);
    }
  }
}

template <KernelFormat kFormat, bool kPhase>
void finish_rounded(const Finish& f, const float* x, std::int64_t first_bin, std::int64_t step,
                    std::int64_t n) {
  if (f.plan.truncate) {
    if (f.plan.dither) return finish_points<kFormat, kPhase, true, true>(f, x, first_bin, step, n);
    return finish_points<kFormat, kPhase, false, true>(f, x, first_bin, step, n);
  }
  if (f.plan.dither) return finish_points<kFormat, kPhase, true, false>(f, x, first_bin, step, n);
  return finish_points<kFormat, kPhase, false, false>(f, x, first_bin, step, n);
}

template <bool kPhase>
void finish_format(const Finish& f, const float* x, std::int64_t first_bin, std::int64_t step,
                   std::int64_t n) {
  switch (f.plan.format) {
    case KernelFormat::ci8:
      return finish_rounded<KernelFormat::ci8, kPhase>(f, x, first_bin, step, n);
    case KernelFormat::ci4:
      return finish_rounded<KernelFormat::ci4, kPhase>(f, x, first_bin, step, n);
    case KernelFormat::cf16:
      return finish_points<KernelFormat::cf16, kPhase, false, false>(f, x, first_bin, step, n);
    default:
      return finish_points<KernelFormat::cf32, kPhase, false, false>(f, x, first_bin, step, n);
  }
}

inline void finish(const Finish& f, const float* x, std::int64_t first_bin, std::int64_t step,
                   std::int64_t n) {
  if (f.group.has_phase) {
    finish_format<true>(f, x, first_bin, step, n);
  } else {
    finish_format<false>(f, x, first_bin, step, n);
  }
}
