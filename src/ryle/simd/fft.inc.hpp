// SPDX-License-Identifier: BSD-3-Clause
// Complex values and the passes of a transform, one transform per lane: no shuffles. A point is a
// vector of real parts, then one of imaginary parts. Included once per instruction-set file, inside
// an unnamed namespace. The including file defines first:
//   Real, V                  a number, a vector of them (or Real again)
//   load store broadcast     as in ryle/simd/vector.inc.hpp
//   fma(a, b, c)             a b + c, fnma(a, b, c) = c - a b: rounded once or twice, as it wants
//   kSign                    -1 for exp(-2 pi i jk/n), +1 for exp(+2 pi i jk/n)
//   kFirstIsPlain            whether a pass leaves out the twiddles of part 0, which are all 1

/// One complex value per lane.
struct C {
  V re;
  V im;
};
inline constexpr std::int64_t kPoint = 2 * sizeof(V) / sizeof(Real);  // numbers per point

RYLE_INLINE C operator+(C a, C b) { return {a.re + b.re, a.im + b.im}; }
RYLE_INLINE C operator-(C a, C b) { return {a.re - b.re, a.im - b.im}; }
/// kSign i a
RYLE_INLINE C quarter_turned(C a) {
  if constexpr (kSign < 0) return {a.im, -a.re};
  return {-a.im, a.re};
}
RYLE_INLINE C times(C a, V wr, V wi) {
  return {fnma(a.im, wi, a.re * wr), fma(a.im, wr, a.re * wi)};
}
RYLE_INLINE C times(C a, const Real* w) { return times(a, broadcast(w[0]), broadcast(w[1])); }
RYLE_INLINE C load_point(const Real* p) { return {load(p), load(p + kPoint / 2)}; }
RYLE_INLINE void store_point(Real* p, C a) {
  store(p, a.re);
  store(p + kPoint / 2, a.im);
}
RYLE_INLINE V constant(double x) { return broadcast(static_cast<Real>(x)); }

/// Inputs from a[Filled] on are zero.
template <int Filled>
RYLE_INLINE void butterfly4(C (&a)[4]) {
  if constexpr (Filled == 1) {
    a[1] = a[2] = a[3] = a[0];
  } else {
    const C s02 = Filled > 2 ? a[0] + a[2] : a[0], d02 = Filled > 2 ? a[0] - a[2] : a[0];
    const C s13 = Filled > 3 ? a[1] + a[3] : a[1];
    const C d13 = quarter_turned(Filled > 3 ? a[1] - a[3] : a[1]);
    a[0] = s02 + s13;
    a[2] = s02 - s13;
    a[1] = d02 + d13;
    a[3] = d02 - d13;
  }
}

/// Inputs from a[Filled] on are zero (radix 8: Filled 4 or 8; 16: a multiple of 4).
template <int Radix, int Filled = Radix>
RYLE_INLINE void butterfly(C (&a)[Radix]) {
  if constexpr (Radix == 2) {
    const C t = a[1];
    a[1] = a[0] - t;
    a[0] = a[0] + t;
  } else if constexpr (Radix == 3) {
    const V s = constant(0.86602540378443864676), half = constant(0.5);
    const C sum = a[1] + a[2], d = quarter_turned(a[1] - a[2]);
    const C m = {fnma(half, sum.re, a[0].re), fnma(half, sum.im, a[0].im)};
    a[0] = a[0] + sum;
    a[1] = {fma(s, d.re, m.re), fma(s, d.im, m.im)};
    a[2] = {fnma(s, d.re, m.re), fnma(s, d.im, m.im)};
  } else if constexpr (Radix == 4) {
    butterfly4<4>(a);
  } else if constexpr (Radix == 5) {
    const V c1 = constant(0.30901699437494742410), c2 = constant(-0.80901699437494742410);
    const V s1 = constant(0.95105651629515357212), s2 = constant(0.58778525229247312917);
    const C p1 = a[1] + a[4], p2 = a[2] + a[3];
    const C q1 = quarter_turned(a[1] - a[4]), q2 = quarter_turned(a[2] - a[3]);
    const C m1 = {fma(c2, p2.re, fma(c1, p1.re, a[0].re)), fma(c2, p2.im, fma(c1, p1.im, a[0].im))};
    const C m2 = {fma(c1, p2.re, fma(c2, p1.re, a[0].re)), fma(c1, p2.im, fma(c2, p1.im, a[0].im))};
    const C d1 = {fma(s2, q2.re, s1 * q1.re), fma(s2, q2.im, s1 * q1.im)};
    const C d2 = {fnma(s1, q2.re, s2 * q1.re), fnma(s1, q2.im, s2 * q1.im)};
    a[0] = a[0] + p1 + p2;
    a[1] = m1 + d1;
    a[4] = m1 - d1;
    a[2] = m2 + d2;
    a[3] = m2 - d2;
  } else if constexpr (Radix == 7) {
    const V c1 = constant(0.62348980185873353053), c2 = constant(-0.22252093395631440429);
    const V c3 = constant(-0.90096886790241912624), s1 = constant(0.78183148246802980871);
    const V s2 = constant(0.97492791218182360702), s3 = constant(0.43388373911755812048);
    const C p1 = a[1] + a[6], p2 = a[2] + a[5], p3 = a[3] + a[4];
    const C q1 = quarter_turned(a[1] - a[6]), q2 = quarter_turned(a[2] - a[5]);
    const C q3 = quarter_turned(a[3] - a[4]);
    const auto sum = [&](V x, V y, V z) RYLE_ALWAYS {
      return C{fma(z, p3.re, fma(y, p2.re, fma(x, p1.re, a[0].re))),
               fma(z, p3.im, fma(y, p2.im, fma(x, p1.im, a[0].im)))};
    };
    const auto difference = [&](V x, V y, V z) RYLE_ALWAYS {
      return C{fma(z, q3.re, fma(y, q2.re, x * q1.re)), fma(z, q3.im, fma(y, q2.im, x * q1.im))};
    };
    const C m1 = sum(c1, c2, c3), m2 = sum(c2, c3, c1), m3 = sum(c3, c1, c2);
    const C d1 = difference(s1, s2, s3), d2 = difference(s2, -s3, -s1),
            d3 = difference(s3, -s1, s2);
    a[0] = a[0] + p1 + p2 + p3;
    a[1] = m1 + d1;
    a[6] = m1 - d1;
    a[2] = m2 + d2;
    a[5] = m2 - d2;
    a[3] = m3 + d3;
    a[4] = m3 - d3;
  } else if constexpr (Radix == 8) {
    C even[4], odd[4];
    simd::static_for<0, 4>([&](auto l) RYLE_ALWAYS {
      if constexpr (Filled <= 4) {
        even[l] = odd[l] = a[l];
      } else {
        even[l] = a[l] + a[l + 4];
        odd[l] = a[l] - a[l + 4];
      }
    });
    // odd[k] times the k-th eighth root of unity.
    const V r = constant(0.70710678118654752440);
    odd[2] = quarter_turned(odd[2]);
    if constexpr (kSign < 0) {
      odd[1] = {(odd[1].re + odd[1].im) * r, (odd[1].im - odd[1].re) * r};
      odd[3] = {(odd[3].im - odd[3].re) * r, (odd[3].re + odd[3].im) * -r};
    } else {
      odd[1] = {(odd[1].re - odd[1].im) * r, (odd[1].im + odd[1].re) * r};
      odd[3] = {(odd[3].im + odd[3].re) * -r, (odd[3].re - odd[3].im) * r};
    }
    butterfly4<4>(even);
    butterfly4<4>(odd);
    simd::static_for<0, 4>([&](auto j) RYLE_ALWAYS {
      a[2 * j] = even[j];
      a[2 * j + 1] = odd[j];
    });
  } else {
    static_assert(Radix == 16);
    // 4 x 4: columns l = 4 l1 + l2, then rows; constants are the 16th roots of unity.
    const V c1 = constant(0.92387953251128675613), s1 = constant(0.38268343236508977173);
    const V h = constant(0.70710678118654752440), sign = constant(kSign);
    C t[4][4];
    simd::static_for<0, 4>([&](auto l2) RYLE_ALWAYS {
      C b[4] = {a[l2], a[l2 + 4], a[l2 + 8], a[l2 + 12]};
      butterfly4<(Filled + 3) / 4>(b);
      simd::static_for<0, 4>([&](auto j) RYLE_ALWAYS { t[j][l2] = b[j]; });
    });
    t[1][1] = times(t[1][1], c1, sign * s1);
    t[1][2] = times(t[1][2], h, sign * h);
    t[1][3] = times(t[1][3], s1, sign * c1);
    t[2][1] = times(t[2][1], h, sign * h);
    t[2][2] = quarter_turned(t[2][2]);
    t[2][3] = times(t[2][3], -h, sign * h);
    t[3][1] = times(t[3][1], s1, sign * c1);
    t[3][2] = times(t[3][2], -h, sign * h);
    t[3][3] = times(t[3][3], -c1, -(sign * s1));
    simd::static_for<0, 4>([&](auto j) RYLE_ALWAYS {
      butterfly4<4>(t[j]);
      simd::static_for<0, 4>([&](auto k) RYLE_ALWAYS { a[j + 4 * k] = t[j][k]; });
    });
  }
}

/// Point l of a from p + l apart.
template <int Radix>
RYLE_INLINE void load_points(C (&a)[Radix], const Real* p, std::int64_t apart) {
  simd::static_for<0, Radix>([&](auto l) RYLE_ALWAYS { a[l] = load_point(p + l * apart); });
}
/// Point j of a, times w[j - 1], to p + j apart.
template <int Radix>
RYLE_INLINE void store_twiddled(Real* p, std::int64_t apart, const C (&a)[Radix], const Real* w) {
  store_point(p, a[0]);
  simd::static_for<1, Radix>(
      [&](auto j) RYLE_ALWAYS { store_point(p + j * apart, times(a[j], w + 2 * (j - 1))); });
}

template <int Radix>
RYLE_INLINE void run_pass(const Real* x, Real* y, const simd::FftPass<Real>& p) {
  const std::int64_t from = p.rest * p.stride * kPoint;  // from input l to l + 1
  const std::int64_t to = p.stride * kPoint;             // from output j to j + 1
  const Real* w = p.twiddles;
  std::int64_t part = 0;
  if constexpr (kFirstIsPlain) {
    for (std::int64_t q = 0; q < p.stride; ++q) {
      C a[Radix];
      load_points(a, x + q * kPoint, from);
      butterfly<Radix>(a);
      simd::static_for<0, Radix>([&](auto j)
                                     RYLE_ALWAYS { store_point(y + q * kPoint + j * to, a[j]); });
    }
    part = 1;
    w += 2 * (Radix - 1);
  }
  for (; part < p.rest; ++part, w += 2 * (Radix - 1)) {
    const Real* in = x + part * to;
    Real* out = y + part * Radix * to;
    for (std::int64_t q = 0; q < p.stride; ++q, in += kPoint, out += kPoint) {
      C a[Radix];
      load_points(a, in, from);
      butterfly<Radix>(a);
      store_twiddled(out, to, a, w);
    }
  }
}

/// body(Radix) with a constant.
template <class Body>
RYLE_INLINE void with_radix(int radix, const Body& body) {
  switch (radix) {
    case 2:
      return body(std::integral_constant<int, 2>{});
    case 3:
      return body(std::integral_constant<int, 3>{});
    case 4:
      return body(std::integral_constant<int, 4>{});
    case 5:
      return body(std::integral_constant<int, 5>{});
    case 7:
      return body(std::integral_constant<int, 7>{});
    case 8:
      return body(std::integral_constant<int, 8>{});
    default:
      return body(std::integral_constant<int, 16>{});
  }
}
