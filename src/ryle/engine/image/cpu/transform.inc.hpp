// SPDX-License-Identifier: BSD-3-Clause
// Transforms with the + sign, one a lane, so that no shuffles are needed: radix passes in Stockham
// order over [point][re, im][lane] (simd/fft_pass.hpp has the equation, simd/fft.inc.hpp the
// butterflies). Parts of the input that are known to be zero are skipped.

/// First pass: only points [0, n_in) of x are there (and are read), the others are zero.
template <int Radix, int Filled>
__attribute__((noinline)) void first_pass(const Real* x, std::int64_t n_in, Real* y,
                                          const simd::FftPass<Real>& p) {
  constexpr int kSure = Radix == 16 ? Filled - 4 : 0;  // the others may lie beyond n_in
  const Real* w = p.twiddles;
  for (std::int64_t part = 0; part < p.rest; ++part, w += 2 * (Radix - 1)) {
    C a[Radix] = {};
    static_for<0, Filled>([&](auto l) RYLE_ALWAYS {
      const std::int64_t at = part + l * p.rest;
      if (l < kSure || at < n_in) a[l] = load_point(x + at * kPoint);
    });
    butterfly<Radix, Filled>(a);
    store_twiddled(y + part * Radix * kPoint, kPoint, a, w);
  }
}

inline void run_first(const Real* x, std::int64_t n_in, Real* y, const simd::FftPass<Real>& p) {
  with_radix(p.radix, [&](auto radix) {
    constexpr int kRadix = radix, kStep = kRadix < 8 ? kRadix : 4;
    const std::int64_t steps = (n_in + kStep * p.rest - 1) / (kStep * p.rest);
    static_for<0, kRadix / kStep>([&](auto k) {
      if (steps == k + 1 || (steps == 0 && k == 0))
        first_pass<kRadix, kStep*(k + 1)>(x, n_in, y, p);
    });
  });
}

/// A pass between the first and the last.
template <int Radix>
__attribute__((noinline)) void middle_pass(const Real* x, Real* y, const simd::FftPass<Real>& p) {
  run_pass<Radix>(x, y, p);
}

/// Last pass: point f goes to y + column_of[f] * step, or nowhere when that is negative.
template <int Radix>
__attribute__((noinline)) void last_pass(const Real* x, Real* y, std::int64_t step,
                                         const std::int32_t* column_of,
                                         const simd::FftPass<Real>& p) {
  const std::int64_t between = p.stride * kPoint;
  for (std::int64_t q = 0; q < p.stride; ++q) {
    C a[Radix];
    load_points(a, x + q * kPoint, between);
    butterfly<Radix>(a);
    static_for<0, Radix>([&](auto j) RYLE_ALWAYS {
      const std::int64_t f = q + j * p.stride;
      const std::int64_t column = column_of == nullptr ? f : column_of[f];
      if (column >= 0) store_point(y + column * step, a[j]);
    });
  }
}

/// Transform of the points [0, n_in) of x (the rest zero) to y; scratch holds two times n points.
inline void transform(const TransformOf<Real>& plan, const Real* x, std::int64_t n_in, Real* y,
                      std::int64_t step, const std::int32_t* column_of, Real* scratch) {
  Real* a = scratch;
  Real* b = scratch + plan.n * kPoint;
  run_first(x, n_in, a, plan.passes[0]);
  for (int i = 1; i + 1 < plan.n_passes; ++i) {
    const simd::FftPass<Real>& p = plan.passes[i];
    with_radix(p.radix, [&](auto radix) { middle_pass<radix>(a, b, p); });
    Real* t = a;
    a = b;
    b = t;
  }
  const simd::FftPass<Real>& p = plan.passes[plan.n_passes - 1];
  with_radix(p.radix, [&](auto radix) { last_pass<radix>(a, y, step, column_of, p); });
}
