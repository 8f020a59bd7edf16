// SPDX-License-Identifier: BSD-3-Clause
// Phase, gain, dither, rounding, storing. Included after kernel_lanes.inc.hpp.

/// Phasors of channel c = coarse[c >> shift] * fine[c & mask]: 2 sqrt(F) sines instead of F, one
/// more rounding.
inline int fine_shift(std::int64_t n_points) {
  int shift = 3;
  while (shift < 12 && (std::int64_t{1} << (2 * shift + 1)) < n_points) ++shift;
  return shift;
}

/// rounding.
inline void phase_tables(const KernelPlan& plan, const KernelGroup& group, float* coarse,
                         float* fine) {
  const auto n_points = static_cast<std::uint64_t>(plan.n_points);
  const std::uint64_t n_fine = std::uint64_t{1} << fine_shift(plan.n_points);
  const std::uint64_t n_coarse = (n_points + n_fine - 1) / n_fine;
  const auto fill = [&](float* table, std::uint64_t n, bool with_base, std::uint64_t stride) {
    for (std::uint64_t i = 0; i < n; ++i) {
      I turns;
      for (int l = 0; l < kLanes; ++l) {
        const std::uint64_t t =
            (with_base ? group.phase_base[l] : 0) + group.phase_slope[l] * (stride * i);
        turns[l] = static_cast<std::int32_t>(t >> 32);
      }
      store_point(table + i * kPoint, unit_phasor(turns));
    }
  };
  fill(coarse, n_coarse, true, n_fine);
  fill(fine, n_points < n_fine ? n_points : n_fine, false, 1);
}

struct Finish {
  const KernelPlan& plan;
  const KernelGroup& group;
  const float* coarse;
  const float* fine;
  I valid;  // all ones where a lane is valid
  U dither_keys;
  V conjugate;  // -0.0 flips the imaginary part of an inverted band
  int shift;    // of fine_shift()
};

template <bool kDither, bool kTruncate>
RYLE_INLINE void quantize(const Finish& f, C y, std::int64_t channel, float limit, I& re, I& im) {
  if constexpr (kDither) {
    U x = f.dither_keys ^ f.plan.channel_keys[channel];
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
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

template <KernelFormat kFormat, bool kPhase, bool kDither, bool kTruncate>
RYLE_INLINE void finish_point(const Finish& f, C x, std::int64_t channel) {
  const float* g = f.group.gains + 2 * channel;
  x.im = (V)((I)x.im ^ (I)f.conjugate);
  C factor;
  if constexpr (kPhase) {
    const auto c = static_cast<std::uint64_t>(channel);
    const C a = load_point(f.coarse + (c >> f.shift) * kPoint);
    const C b = load_point(f.fine + (c & ((std::uint64_t{1} << f.shift) - 1)) * kPoint);
    factor = times(times(a, b.re, b.im), g);
  } else {
    factor = {broadcast(g[0]), broadcast(g[1])};
  }
  const C y = times(x, factor.re, factor.im);
  std::byte* cell = f.group.codes + channel * 128;
  if constexpr (kFormat == KernelFormat::ci8) {
    I re, im;
    quantize<kDither, kTruncate>(f, y, channel, 127, re, im);
    const Byte r = narrow(re), i = narrow(im);
    __builtin_memcpy(cell, &r, sizeof r);
    __builtin_memcpy(cell + 32, &i, sizeof i);
  } else if constexpr (kFormat == KernelFormat::ci4) {
    I re, im;
    quantize<kDither, kTruncate>(f, y, channel, 7, re, im);
    // Sign-extended from 8 bits, so that a saturating narrowing keeps the byte.
    const Byte both = narrow(((re << 28) >> 24) | (im & 15));
    __builtin_memcpy(cell, &both, sizeof both);
  } else if constexpr (kFormat == KernelFormat::cf16) {
    const Half re = to_half((V)((I)y.re & f.valid)), im = to_half((V)((I)y.im & f.valid));
    __builtin_memcpy(cell, &re, sizeof re);
    __builtin_memcpy(cell + 32, &im, sizeof im);
  } else {
    const V re = (V)((I)y.re & f.valid), im = (V)((I)y.im & f.valid);
    __builtin_memcpy(cell, &re, sizeof re);
    __builtin_memcpy(cell + 64, &im, sizeof im);
  }
}

/// Points x[i], i = 0..n-1, are bins first_bin + i bin_step.
template <KernelFormat kFormat, bool kPhase, bool kDither, bool kTruncate>
__attribute__((noinline)) void finish_points(const Finish& f, const float* x,
                                             std::int64_t first_bin, std::int64_t bin_step,
                                             std::int64_t n) {
  const std::int64_t size = f.plan.n_points;
  std::int64_t channel = (f.plan.first_channel + f.plan.direction * first_bin) % size;
  const std::int64_t step = f.plan.direction * bin_step;
  channel += channel < 0 ? size : 0;
  for (std::int64_t i = 0; i < n; ++i) {
    finish_point<kFormat, kPhase, kDither, kTruncate>(f, load_point(x + i * kPoint), channel);
    channel += step;
    channel -= channel >= size ? size : 0;
    channel += channel < 0 ? size : 0;
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
