// SPDX-License-Identifier: BSD-3-Clause
// Transforms of whole spectra, one a lane, so that no shuffles are needed: mixed radices 2 3 4 5 7
// 8 16 in Stockham order over [point][re, im][lane], and a chirp transform for sizes with other
// factors. Included after kernel_lanes.inc.hpp.

inline constexpr float kHalfRoot = 0.70710678118654752f;

template <int Radix>
RYLE_INLINE void butterfly(C (&a)[Radix]) {
  if constexpr (Radix == 2) {
    const C t = a[1];
    a[1] = a[0] - t;
    a[0] = a[0] + t;
  } else if constexpr (Radix == 3) {
    const V s = broadcast(0.86602540378443865f);
    const V half = broadcast(0.5f);
    const C sum = a[1] + a[2];
    const C d = minus_i(a[1] - a[2]);
    const C m = {fnma(half, sum.re, a[0].re), fnma(half, sum.im, a[0].im)};
    a[0] = a[0] + sum;
    a[1] = {fma(s, d.re, m.re), fma(s, d.im, m.im)};
    a[2] = {fnma(s, d.re, m.re), fnma(s, d.im, m.im)};
  } else if constexpr (Radix == 4) {
    const C s02 = a[0] + a[2], d02 = a[0] - a[2], s13 = a[1] + a[3], d13 = a[1] - a[3];
    a[0] = s02 + s13;
    a[2] = s02 - s13;
    a[1] = {d02.re + d13.im, d02.im - d13.re};
    a[3] = {d02.re - d13.im, d02.im + d13.re};
  } else if constexpr (Radix == 5) {
    const V c1 = broadcast(0.30901699437494742f), c2 = broadcast(-0.80901699437494742f);
    const V s1 = broadcast(0.95105651629515357f), s2 = broadcast(0.58778525229247313f);
    const C p1 = a[1] + a[4], p2 = a[2] + a[3], q1 = minus_i(a[1] - a[4]),
            q2 = minus_i(a[2] - a[3]);
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
    const V c1 = broadcast(0.62348980185873353f), c2 = broadcast(-0.22252093395631440f);
    const V c3 = broadcast(-0.90096886790241913f), s1 = broadcast(0.78183148246802981f);
    const V s2 = broadcast(0.97492791218182361f), s3 = broadcast(0.43388373911755812f);
    const C p1 = a[1] + a[6], p2 = a[2] + a[5], p3 = a[3] + a[4];
    const C q1 = minus_i(a[1] - a[6]), q2 = minus_i(a[2] - a[5]), q3 = minus_i(a[3] - a[4]);
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
    C even[4] = {a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]};
    C odd[4] = {a[0] - a[4], a[1] - a[5], minus_i(a[2] - a[6]), a[3] - a[7]};
    const V r = broadcast(kHalfRoot);
    odd[1] = {(odd[1].re + odd[1].im) * r, (odd[1].im - odd[1].re) * r};
    odd[3] = {(odd[3].im - odd[3].re) * r, (odd[3].re + odd[3].im) * -r};
    butterfly<4>(even);
    butterfly<4>(odd);
    static_for<0, 4>([&](auto j) RYLE_ALWAYS {
      a[2 * j] = even[j];
      a[2 * j + 1] = odd[j];
    });
  } else {
    static_assert(Radix == 16);
    // 4 x 4: columns l = 4 l1 + l2, then rows; constants are the 16th roots of unity.
    constexpr float c1 = 0.92387953251128676f, s1 = 0.38268343236508977f, h = kHalfRoot;
    C t[4][4];
    static_for<0, 4>([&](auto l2) RYLE_ALWAYS {
      C b[4] = {a[l2], a[l2 + 4], a[l2 + 8], a[l2 + 12]};
      butterfly<4>(b);
      static_for<0, 4>([&](auto j) RYLE_ALWAYS { t[j][l2] = b[j]; });
    });
    const auto rotate = [](C x, float re, float im)
                            RYLE_ALWAYS { return times(x, broadcast(re), broadcast(im)); };
    t[1][1] = rotate(t[1][1], c1, -s1);
    t[1][2] = rotate(t[1][2], h, -h);
    t[1][3] = rotate(t[1][3], s1, -c1);
    t[2][1] = rotate(t[2][1], h, -h);
    t[2][2] = minus_i(t[2][2]);
    t[2][3] = rotate(t[2][3], -h, -h);
    t[3][1] = rotate(t[3][1], s1, -c1);
    t[3][2] = rotate(t[3][2], -h, -h);
    t[3][3] = rotate(t[3][3], -c1, s1);
    static_for<0, 4>([&](auto j) RYLE_ALWAYS {
      butterfly<4>(t[j]);
      static_for<0, 4>([&](auto k) RYLE_ALWAYS { a[j + 4 * k] = t[j][k]; });
    });
  }
}

template <int Radix>
RYLE_TUNED void pass(const float* x, float* y, const KernelPass& p) {
  const std::int64_t from = p.rest * p.stride * kPoint;  // from input l to l + 1
  const std::int64_t to = p.stride * kPoint;             // from output j to j + 1
  const float* w = p.twiddles;
  for (std::int64_t q = 0; q < p.stride; ++q) {  // part 0 has no twiddles
    C a[Radix];
    static_for<0, Radix>([&](auto l) RYLE_ALWAYS { a[l] = load_point(x + q * kPoint + l * from); });
    butterfly<Radix>(a);
    static_for<0, Radix>([&](auto j) RYLE_ALWAYS { store_point(y + q * kPoint + j * to, a[j]); });
  }
  for (std::int64_t part = 1; part < p.rest; ++part) {
    w += 2 * (Radix - 1);
    const float* in = x + part * to;
    float* out = y + part * Radix * to;
    for (std::int64_t q = 0; q < p.stride; ++q, in += kPoint, out += kPoint) {
      C a[Radix];
      static_for<0, Radix>([&](auto l) RYLE_ALWAYS { a[l] = load_point(in + l * from); });
      butterfly<Radix>(a);
      store_point(out, a[0]);
      static_for<1, Radix>(
          [&](auto j) RYLE_ALWAYS { store_point(out + j * to, times(a[j], w + 2 * (j - 1))); });
    }
  }
}

/// Runs all passes between two arrays; returns where the result is.
inline float* transform(const KernelPlan& plan, float* a, float* b) {
  for (int i = 0; i < plan.n_passes; ++i) {
    const KernelPass& p = plan.passes[i];
    switch (p.radix) {
      case 2:
        pass<2>(a, b, p);
        break;
      case 3:
        pass<3>(a, b, p);
        break;
      case 4:
        pass<4>(a, b, p);
        break;
      case 5:
        pass<5>(a, b, p);
        break;
      case 7:
        pass<7>(a, b, p);
        break;
      case 8:
        pass<8>(a, b, p);
        break;
      default:
        pass<16>(a, b, p);
        break;
    }
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
