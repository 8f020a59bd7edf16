// SPDX-License-Identifier: BSD-3-Clause
// The end of the channelizer: code = clip(rne(X g exp(i phi) + dither)), channel by channel in the
// order of the transform, a spectrum a lane; codes go to pieces of [place][spectrum], which
// kernel_flush.inc.hpp writes as whole cells. Included after kernel_lanes.inc.hpp.

/// exp(2 pi i t), t in 2^-32 turns. Reduced to an eighth of a turn in integers, then minimax-like
/// Taylor polynomials: truncation below 4e-9, so the result is good to about one unit of float.
RYLE_INLINE C unit_phasor(I turns) {
  // Turns wrap: sums and shifts in unsigned words, only the quadrant's own shift keeps a sign.
  const I quadrant = (I)((U)turns + (1u << 29)) >> 30;
  const V x = __builtin_convertvector((I)((U)turns - ((U)quadrant << 30)), V) *
              broadcast(0x1.921fb54442d18p-30f);  // 2 pi 2^-32
  const V z = x * x;
  V s = broadcast(2.7557319e-6f);
  s = fma(s, z, broadcast(-1.9841270e-4f));
  s = fma(s, z, broadcast(8.3333333e-3f));
  s = fma(s, z, broadcast(-1.6666667e-1f));
  s = fma(s * z, x, x);
  V c = broadcast(-2.7557319e-7f);
  c = fma(c, z, broadcast(2.4801587e-5f));
  c = fma(c, z, broadcast(-1.3888889e-3f));
  c = fma(c, z, broadcast(4.1666667e-2f));
  c = fma(c, z, broadcast(-0.5f));
  c = fma(c, z, broadcast(1.0f));
  const I odd = -(quadrant & 1);
  const V re = (V)(((I)s & odd) | ((I)c & ~odd));
  const V im = (V)(((I)c & odd) | ((I)s & ~odd));
  // Quadrants 1, 2 have a negative cosine; 2, 3 a negative sine.
  const U sign_re = (((U)quadrant + 1u) << 30) & 0x80000000u;
  const U sign_im = ((U)quadrant << 30) & 0x80000000u;
  return {(V)((U)re ^ sign_re), (V)((U)im ^ sign_im)};
}

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

/// Keeps a constant in a register where the compiler would make it anew in every turn of a loop.
RYLE_INLINE void keep([[maybe_unused]] U& constant) {
#if defined(__x86_64__)
  asm("" : "+v"(constant));
#endif
}

/// All that stays the same over the points of a vector of spectra.
struct Finish {
  RYLE_INLINE Finish(const KernelPlan& plan, const KernelGroup& group, const float* coarse_phasors,
                     const float* fine_phasors);

  const float* coarse;
  const float* fine;
  const float* gains;
  const std::uint32_t* channel_of;
  const std::uint32_t* channel_keys;
  KernelCounts* counts;
  std::byte* codes;
  I valid;  // all ones where a lane is valid
  U dither_keys;
  U first_factor = U{} + 0x7feb352du, second_factor = U{} + 0x846ca68bu;
  U lower = U{} + 0xffffu, upper = U{} + 0xffff0000u, sign = U{} + 0x8000u;
  U edges = U{} + 0x7f7f7f7fu;
  std::uint64_t valid_bytes = 0;  // bit 16 j + 4 i + l: lane 4 j + l is valid, i = 0..3
  std::uint32_t valid_lanes;
  int shift;  // of fine_shift()
  bool inverted;
};

RYLE_INLINE Finish::Finish(const KernelPlan& plan, const KernelGroup& group,
                           const float* coarse_phasors, const float* fine_phasors)
    : coarse(coarse_phasors),
      fine(fine_phasors),
      gains(group.gains),
      channel_of(plan.channel_of),
      channel_keys(plan.channel_keys),
      counts(group.counts),
      codes(group.codes),
      valid_lanes(group.valid),
      shift(fine_shift(plan.n_points)),
      inverted(plan.direction < 0) {
  for (int l = 0; l < kLanes; ++l) {
    valid[l] = (group.valid >> l & 1u) != 0 ? -1 : 0;
    dither_keys[l] = group.dither_keys[l];
  }
  for (int j = 0; j < kLanes / 4; ++j) {
    valid_bytes |= static_cast<std::uint64_t>((group.valid >> 4 * j & 15u) * 0x1111u) << 16 * j;
  }
}

/// Dither without its last exclusive-or with itself shifted by 16. @pre the keys had the first one
RYLE_INLINE U hash(const Finish& f, std::int64_t at) {
  U x = f.dither_keys ^ f.channel_keys[at];
  x *= f.first_factor;
  x ^= x >> 15;
  x *= f.second_factor;
  return x;
}

template <bool kDither, bool kTruncate>
RYLE_INLINE void quantize(const Finish& f, C y, std::int64_t at, float limit, I& re, I& im) {
  if constexpr (kDither) {
    U x = hash(f, at);
    x ^= x >> 16;
    const V scale = broadcast(0x1p-32f);
    y.re = fma(__builtin_convertvector((I)((x & 0xffff0000u) | 0x8000u), V), scale, y.re);
    y.im = fma(__builtin_convertvector((I)((x << 16) | 0x8000u), V), scale, y.im);
  }
  const V high = broadcast(limit);
  const V low = broadcast(-limit);
  // Rounding is monotonic and the limits are integers: clipping first gives the same code.
  const C clipped = {minimum(maximum(y.re, low), high), minimum(maximum(y.im, low), high)};
  if (__builtin_expect(any_differs(y.re, clipped.re, y.im, clipped.im), 0) && f.counts != nullptr) {
    const float edge = kTruncate ? limit + 1 : limit + 0.5f;  // +-127.5 would round to the even 128
    KernelCounts& counts = f.counts[at];
    for (int l = 0; l < kLanes; ++l) {
      if ((f.valid_lanes >> l & 1u) == 0) continue;
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
  re &= f.valid;
  im &= f.valid;
}

/// Codes of one point in the upper halves of 32 bits.
struct Codes {
  U re;
  U im;
};

/// Codes before clipping to 8 bits; y holds 2^16 times the values.
/// @eq rne(y + (d + 1/2) / 2^16) = floor((rne(2^16 y) + d + 2^15) / 2^16), so integers do the rest
RYLE_INLINE Codes add_dither(const Finish& f, C y, U hash) {
  const U re = (hash >> 16) ^ f.sign;  // d + 2^15
  const U im = (hash ^ re) & f.lower;
  return {(U)round_to_int(y.re) + re, (U)round_to_int(y.im) + im};
}

template <bool kClip>
RYLE_INLINE Codes fixed_point(const Finish& f, C y, std::int64_t at) {
  if constexpr (kClip) {  // whatever the conversion or the sum could not hold
    const V limit = broadcast(0x1p28f);
    y = {minimum(maximum(y.re, -limit), limit), minimum(maximum(y.im, -limit), limit)};
  }
  return add_dither(f, y, hash(f, at));
}

/// Clips to 8 bits and counts the valid lanes' parts.
RYLE_INLINE Codes clip(const Finish& f, Codes codes, std::int64_t at) {
  constexpr std::int32_t kEdge = 128;
  std::uint32_t low = 0, high = 0;
  for (int l = 0; l < kLanes; ++l) {
    const bool valid = (f.valid_lanes >> l & 1u) != 0;
    for (int k = 0; k < 2; ++k) {
      U& part = k == 0 ? codes.re : codes.im;
      const std::int32_t code = static_cast<std::int32_t>(part[l]) >> 16;
      high += valid && code >= kEdge;
      low += valid && code <= -kEdge;
      const std::int32_t clipped = code > 127 ? 127 : code < -127 ? -127 : code;
      part[l] = static_cast<std::uint32_t>(clipped) << 16;
    }
  }
  if (f.counts != nullptr) {
    f.counts[at].low += low;
    f.counts[at].high += high;
  }
  return codes;
}

/// Stores the pieces of one or two neighbouring bins; false (and nothing stored) if a code may have
/// to be clipped.
template <bool kCheck>
RYLE_INLINE bool store_codes(const Finish& f, const Codes& a, const Codes& b, bool two,
                             std::byte* piece) {
#if defined(__AVX512F__)
  alignas(64) static constexpr std::uint8_t kSplit[64] = {
      0, 2,  4,  6,  1,  3,  5, 7,  8,  10, 12, 14, 9, 11, 13, 15, 0, 2,  4,  6,  1,  3,
      5, 7,  8,  10, 12, 14, 9, 11, 13, 15, 0,  2,  4, 6,  1,  3,  5, 7,  8,  10, 12, 14,
      9, 11, 13, 15, 0,  2,  4, 6,  1,  3,  5,  7,  8, 10, 12, 14, 9, 11, 13, 15};
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const auto pairs = [&](const Codes& c)
                         RYLE_ALWAYS { return (__m512i)((c.re >> 16) | (c.im & f.upper)); };
  const __m512i bytes = _mm512_maskz_shuffle_epi8(
      f.valid_bytes, _mm512_packs_epi16(pairs(a), pairs(b)), _mm512_load_si512(kSplit));
  if constexpr (kCheck) {
    if (__builtin_expect(_mm512_cmpge_epu8_mask(_mm512_abs_epi8(bytes), (__m512i)f.edges) != 0, 0))
      return false;
  }
  const __m512i both = _mm512_permutexvar_epi32(order, bytes);
  if (two) {
    _mm512_storeu_si512(piece, both);
  } else {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(piece), _mm512_castsi512_si256(both));
  }
#elif defined(__AVX2__)
  const auto pairs = [&](const Codes& c) RYLE_ALWAYS {
    return (__m256i)(((c.re >> 16) | (c.im & f.upper)) & (U)f.valid);
  };
  const __m256i split = _mm256_broadcastsi128_si256(
      _mm_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0));
  const __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_packs_epi16(pairs(a), pairs(b)), split);
  if constexpr (kCheck) {
    const __m256i size = _mm256_abs_epi8(bytes);
    const __m256i large = _mm256_max_epu8(size, (__m256i)f.edges);
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
    const I re = ((I)(i == 0 ? a.re : b.re) >> 16) & f.valid;
    const I im = ((I)(i == 0 ? a.im : b.im) >> 16) & f.valid;
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

/// Phase and gain of the point at place `at` of the transform order. kUpright: known not to be
/// inverted, one branch less.
template <bool kPhase, bool kUpright = false>
RYLE_INLINE C correct(const Finish& f, const float* x, std::int64_t at) {
  C point = load_point(x);
  if constexpr (!kUpright) {
    if (f.inverted) point.im = -point.im;
  }
  point = times(point, f.gains + 2 * at);
  if constexpr (kPhase) {
    const std::uint32_t c = f.channel_of[at];
    const C a = load_point(f.coarse + (c >> f.shift) * kPoint);
    const C b = load_point(f.fine + (c & ((1u << f.shift) - 1)) * kPoint);
    const C phasor = times(a, b.re, b.im);
    point = times(point, phasor.re, phasor.im);
  }
  return point;
}

/// Two points of which a code may have to be clipped, once more; rare.
template <bool kPhase>
__attribute__((noinline, cold)) void finish_clipped(const Finish& f, const float* x,
                                                    std::int64_t at, bool two, std::byte* piece) {
  const auto codes = [&](int i) {
    return clip(f, fixed_point<true>(f, correct<kPhase>(f, x + i * kPoint, at + i), at + i),
                at + i);
  };
  const Codes a = codes(0);
  store_codes<false>(f, a, two ? codes(1) : a, two, piece);
}

/// One or two points to 8-bit codes.
template <bool kPhase, bool kDither, bool kTruncate>
RYLE_INLINE void finish_bytes(const Finish& f, const Finish& again, const float* x, std::int64_t at,
                              bool two, std::byte* piece) {
  const auto codes = [&](int i) RYLE_ALWAYS {
    const C y = correct<kPhase>(f, x + i * kPoint, at + i);
    if constexpr (kDither && !kTruncate) {
      return fixed_point<false>(f, y, at + i);
    } else {
      I re, im;
      quantize<kDither, kTruncate>(f, y, at + i, 127, re, im);
      return Codes{(U)re << 16, (U)im << 16};
    }
  };
  const Codes a = codes(0);
  const Codes b = two ? codes(1) : a;
  if (!store_codes < kDither && !kTruncate > (f, a, b, two, piece)) {
    finish_clipped<kPhase>(again, x, at, two, piece);
  }
}

/// kBatch points to dithered 8-bit codes, in lockstep: one after the other they would fill the
/// scheduler with instructions that wait for the one before.
template <bool kPhase, int kBatch>
RYLE_INLINE void finish_batch(const Finish& f, const Finish& again, const float* x, std::int64_t at,
                              std::byte* piece) {
  Codes codes[kBatch];
  U key[kBatch];
  C y[kBatch];
  static_for<0, kBatch>([&](auto i) RYLE_ALWAYS {
    key[i] = (f.dither_keys ^ f.channel_keys[at + i]) * f.first_factor;
    y[i] = correct<kPhase, true>(f, x + i * kPoint, at + i);
  });
  static_for<0, kBatch>([&](auto i) RYLE_ALWAYS { key[i] ^= key[i] >> 15; });
  static_for<0, kBatch>([&](auto i) RYLE_ALWAYS { key[i] *= f.second_factor; });
  static_for<0, kBatch>([&](auto i) RYLE_ALWAYS { codes[i] = add_dither(f, y[i], key[i]); });
  static_for<0, kBatch / 2>([&](auto i) RYLE_ALWAYS {
    std::byte* to = piece + 2 * i * piece_bytes(KernelFormat::ci8);
    if (!store_codes<true>(f, codes[2 * i], codes[2 * i + 1], true, to))
      finish_clipped<kPhase>(again, x + 2 * i * kPoint, at + 2 * i, true, to);
  });
}

template <KernelFormat kFormat, bool kPhase, bool kDither, bool kTruncate>
RYLE_INLINE void finish_point(const Finish& f, const float* x, std::int64_t at, std::byte* piece) {
  const C y = correct<kPhase>(f, x, at);
  if constexpr (kFormat == KernelFormat::ci4) {
    I re, im;
    quantize<kDither, kTruncate>(f, y, at, 7, re, im);
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

/// Points x[i], i = 0..n-1, are at places `at` + i; their pieces follow one another.
template <KernelFormat kFormat, bool kPhase, bool kDither, bool kTruncate>
__attribute__((noinline)) void finish_points(const Finish& again, const float* x, std::int64_t at,
                                             std::int64_t n) {
  Finish f = again;  // a copy that no store of codes can change, for all the compiler knows
  keep(f.first_factor);
  keep(f.second_factor);
  keep(f.lower);
  keep(f.upper);
  keep(f.sign);
  keep(f.edges);
  std::byte* piece = f.codes + at * piece_bytes(kFormat);
  if constexpr (kFormat == KernelFormat::ci8) {
    std::int64_t i = 0;
    if constexpr (kDither && !kTruncate) {
      constexpr int kBatch = 8;
      if (!f.inverted) {
        for (; i + kBatch <= n; i += kBatch, piece += kBatch * piece_bytes(kFormat))
          finish_batch<kPhase, kBatch>(f, again, x + i * kPoint, at + i, piece);
      }
    }
    for (; i + 2 <= n; i += 2, piece += 2 * piece_bytes(kFormat)) {
      finish_bytes<kPhase, kDither, kTruncate>(f, again, x + i * kPoint, at + i, true, piece);
    }
    if (i < n)
      finish_bytes<kPhase, kDither, kTruncate>(f, again, x + i * kPoint, at + i, false, piece);
  } else {
    for (std::int64_t i = 0; i < n; ++i, piece += piece_bytes(kFormat)) {
      finish_point<kFormat, kPhase, kDither, kTruncate>(f, x + i * kPoint, at + i, piece);
    }
  }
}

template <KernelFormat kFormat, bool kPhase>
void finish_rounded(const KernelPlan& plan, const Finish& f, const float* x, std::int64_t at,
                    std::int64_t n) {
  if (plan.truncate) {
    if (plan.dither) return finish_points<kFormat, kPhase, true, true>(f, x, at, n);
    return finish_points<kFormat, kPhase, false, true>(f, x, at, n);
  }
  if (plan.dither) return finish_points<kFormat, kPhase, true, false>(f, x, at, n);
  return finish_points<kFormat, kPhase, false, false>(f, x, at, n);
}

template <bool kPhase>
void finish_format(const KernelPlan& plan, const Finish& f, const float* x, std::int64_t at,
                   std::int64_t n) {
  switch (plan.format) {
    case KernelFormat::ci8:
      return finish_rounded<KernelFormat::ci8, kPhase>(plan, f, x, at, n);
    case KernelFormat::ci4:
      return finish_rounded<KernelFormat::ci4, kPhase>(plan, f, x, at, n);
    case KernelFormat::cf16:
      return finish_points<KernelFormat::cf16, kPhase, false, false>(f, x, at, n);
    default:
      return finish_points<KernelFormat::cf32, kPhase, false, false>(f, x, at, n);
  }
}

inline void finish(const KernelPlan& plan, bool has_phase, const Finish& f, const float* x,
                   std::int64_t at, std::int64_t n) {
  if (has_phase) {
    finish_format<true>(plan, f, x, at, n);
  } else {
    finish_format<false>(plan, f, x, at, n);
  }
}
