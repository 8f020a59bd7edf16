// SPDX-License-Identifier: BSD-3-Clause
// Transforms of whole spectra, one a lane, so that no shuffles are needed: mixed radices 2 3 4 5 7
// 8 16 in Stockham order over [point][re, im][lane], and a chirp transform for sizes with other
// factors. Included after ryle/simd/fft.inc.hpp, which has the butterflies.

template <int Radix>
RYLE_TUNED void pass(const float* x, float* y, const KernelPass& p) {
  run_pass<Radix>(x, y, p);
}

/// Runs all passes between two arrays; returns where the result is.
inline float* transform(const KernelPlan& plan, float* a, float* b) {
  for (int i = 0; i < plan.n_passes; ++i) {
    const KernelPass& p = plan.passes[i];
    with_radix(p.radix, [&](auto radix) { pass<radix>(a, b, p); });
    float* t = a;
    a = b;
    b = t;
  }
  return a;
}

/// Any size through a circular convolution with the chirp exp(-i pi n^2 / F); the inverse transform
/// is the forward one with the parts exchanged.
inline float* chirp_transform(const KernelPlan& plan, float* a, float* b) {
  for (std::int64_t n = 0; n < plan.n_points; ++n) {
    store_point(a + n * kPoint, times(load_point(a + n * kPoint), plan.chirp + 2 * n));
  }
  __builtin_memset(
      a + plan.n_points * kPoint, 0,
      static_cast<std::size_t>((plan.n_padded - plan.n_points) * kPoint) * sizeof(float));
  float* x = transform(plan, a, b);
  for (std::int64_t n = 0; n < plan.n_padded; ++n) {
    const C y = times(load_point(x + n * kPoint), plan.chirp_filter + 2 * n);
    store_point(x + n * kPoint, C{y.im, y.re});
  }
  x = transform(plan, x, x == a ? b : a);
  for (std::int64_t n = 0; n < plan.n_points; ++n) {
    const C y = load_point(x + n * kPoint);
    store_point(x + n * kPoint, times(C{y.im, y.re}, plan.chirp + 2 * n));
  }
  return x;
}

/// Spectrum of 2F real samples from the transform Z of their F pairs, in place:
/// X[k] = E + w^k O, E = (Z[k] + conj Z[F-k]) / 2, O = -i (Z[k] - conj Z[F-k]) / 2, w = exp(-2 pi i
/// / 2F).
inline void untangle(const KernelPlan& plan, float* z) {
  const std::int64_t f = plan.n_points;
  const V half = broadcast(0.5f);
  for (std::int64_t k = 0; 2 * k <= f; ++k) {
    float* low = z + k * kPoint;
    float* high = z + (k == 0 ? 0 : f - k) * kPoint;
    const C a = load_point(low);
    const C b = load_point(high);
    const C even = {(a.re + b.re) * half, (a.im - b.im) * half};
    const C odd = {(a.im + b.im) * half, (b.re - a.re) * half};
    const C turned = times(odd, plan.untangle + 2 * k);
    // X[F-k] = conj(E - w^k O); at k = 0 that is the Nyquist bin, which is dropped.
    if (2 * k != f && k != 0) store_point(high, C{even.re - turned.re, turned.im - even.im});
    store_point(low, even + turned);
  }
}
