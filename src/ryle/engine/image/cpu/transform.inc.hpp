// SPDX-License-Identifier: BSD-3-Clause
// Transforms with the + sign, one a lane, so that no shuffles are needed: radix passes in Stockham
// order over [point][re, im][lane] (CpuPass in cpu/kernels.hpp has the equation). Parts of the
// input that are known to be zero are skipped. Included after cpu/vector.inc.hpp.

inline constexpr float kHalfRoot = 0.70710678118654752f;

/// Inputs a[Filled] ... a[3] are zero.
template <int Filled>
RYLE_INLINE void butterfly4(C (&a)[4]) {
  if constexpr (Filled == 1) {
    a[1] = a[2] = a[3] = a[0];
  } else if constexpr (Filled == 2) {
    const C i1 = plus_i(a[1]), a0 = a[0], a1 = a[1];
    a[0] = a0 + a1;
    a[1] = a0 + i1;
    a[2] = a0 - a1;
    a[3] = a0 - i1;
  } else {
    const C s02 = a[0] + a[2], d02 = a[0] - a[2];
    const C s13 = Filled == 4 ? a[1] + a[3] : a[1];
    const C d13 = Filled == 4 ? a[1] - a[3] : a[1];
    a[0] = s02 + s13;
    a[2] = s02 - s13;
    a[1] = {d02.re - d13.im, d02.im + d13.re};
    a[3] = {d02.re + d13.im, d02.im - d13.re};
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
    constexpr float s = 0.86602540378443865f;
    const C sum = a[1] + a[2], d = plus_i(a[1] - a[2]);
    const C m = {a[0].re - 0.5f * sum.re, a[0].im - 0.5f * sum.im};
    a[0] = a[0] + sum;
    a[1] = {m.re + s * d.re, m.im + s * d.im};
    a[2] = {m.re - s * d.re, m.im - s * d.im};
  } else if constexpr (Radix == 4) {
    butterfly4<4>(a);
  } else if constexpr (Radix == 5) {
    constexpr float c1 = 0.30901699437494742f, c2 = -0.80901699437494742f;
    constexpr float s1 = 0.95105651629515357f, s2 = 0.58778525229247313f;
    const C p1 = a[1] + a[4], p2 = a[2] + a[3];
    const C q1 = plus_i(a[1] - a[4]), q2 = plus_i(a[2] - a[3]);
    const C m1 = {a[0].re + c1 * p1.re + c2 * p2.re, a[0].im + c1 * p1.im + c2 * p2.im};
    const C m2 = {a[0].re + c2 * p1.re + c1 * p2.re, a[0].im + c2 * p1.im + c1 * p2.im};
    const C d1 = {s1 * q1.re + s2 * q2.re, s1 * q1.im + s2 * q2.im};
    const C d2 = {s2 * q1.re - s1 * q2.re, s2 * q1.im - s1 * q2.im};
    a[0] = a[0] + p1 + p2;
    a[1] = m1 + d1;
    a[4] = m1 - d1;
    a[2] = m2 + d2;
    a[3] = m2 - d2;
  } else if constexpr (Radix == 8) {
    C even[4], odd[4];
    static_for<0, 4>([&](auto l) RYLE_ALWAYS {
      if constexpr (Filled <= 4) {
        even[l] = odd[l] = a[l];
      } else {
        even[l] = a[l] + a[l + 4];
        odd[l] = a[l] - a[l + 4];
      }
    });
    odd[1] = {(odd[1].re - odd[1].im) * kHalfRoot, (odd[1].im + odd[1].re) * kHalfRoot};
    odd[2] = plus_i(odd[2]);
    odd[3] = {(odd[3].im + odd[3].re) * -kHalfRoot, (odd[3].re - odd[3].im) * kHalfRoot};
    butterfly4<4>(even);
    butterfly4<4>(odd);
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
      butterfly4<(Filled + 3) / 4>(b);
      static_for<0, 4>([&](auto j) RYLE_ALWAYS { t[j][l2] = b[j]; });
    });
    t[1][1] = times(t[1][1], c1, s1);
    t[1][2] = times(t[1][2], h, h);
    t[1][3] = times(t[1][3], s1, c1);
    t[2][1] = times(t[2][1], h, h);
    t[2][2] = plus_i(t[2][2]);
    t[2][3] = times(t[2][3], -h, h);
    t[3][1] = times(t[3][1], s1, c1);
    t[3][2] = times(t[3][2], -h, h);
    t[3][3] = times(t[3][3], -c1, -s1);
    static_for<0, 4>([&](auto j) RYLE_ALWAYS {
      butterfly4<4>(t[j]);
      static_for<0, 4>([&](auto k) RYLE_ALWAYS { a[j + 4 * k] = t[j][k]; });
    });
  }
}

/// First pass: only points [0, n_in) of x are there (and are read), the others are zero.
template <int Radix, int Filled>
__attribute__((noinline)) void first_pass(const float* x, std::int64_t n_in, float* y,
                                          const CpuPass& p) {
  constexpr int kSure = Radix == 16 ? Filled - 4 : 0;  // the others may lie beyond n_in
  const float* w = p.twiddles;
  for (std::int64_t part = 0; part < p.rest; ++part, w += 2 * (Radix - 1)) {
    C a[Radix] = {};
    static_for<0, Filled>([&](auto l) RYLE_ALWAYS {
      const std::int64_t at = part + l * p.rest;
      if (l < kSure || at < n_in) a[l] = load_point(x + at * kPoint);
    });
    butterfly<Radix, Filled>(a);
    float* out = y + part * Radix * kPoint;
    store_point(out, a[0]);
    static_for<1, Radix>(
        [&](auto j) RYLE_ALWAYS { store_point(out + j * kPoint, times(a[j], w + 2 * (j - 1))); });
  }
}

inline void run_first(const float* x, std::int64_t n_in, float* y, const CpuPass& p) {
  const std::int64_t filled = (n_in + p.rest - 1) / p.rest;
  switch (p.radix) {
    case 2:
      return first_pass<2, 2>(x, n_in, y, p);
    case 3:
      return first_pass<3, 3>(x, n_in, y, p);
    case 4:
      return first_pass<4, 4>(x, n_in, y, p);
    case 5:
      return first_pass<5, 5>(x, n_in, y, p);
    case 8:
      return filled <= 4 ? first_pass<8, 4>(x, n_in, y, p) : first_pass<8, 8>(x, n_in, y, p);
    default:
      if (filled <= 4) return first_pass<16, 4>(x, n_in, y, p);
      if (filled <= 8) return first_pass<16, 8>(x, n_in, y, p);
      if (filled <= 12) return first_pass<16, 12>(x, n_in, y, p);
      return first_pass<16, 16>(x, n_in, y, p);
  }
}

/// A pass between the first and the last.
template <int Radix>
__attribute__((noinline)) void middle_pass(const float* x, float* y, const CpuPass& p) {
  const std::int64_t from = p.rest * p.stride * kPoint, to = p.stride * kPoint;
  const float* w = p.twiddles;
  for (std::int64_t part = 0; part < p.rest; ++part, w += 2 * (Radix - 1)) {
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

/// Last pass: point f goes to y + column_of[f] * step, or nowhere when that is negative.
template <int Radix>
__attribute__((noinline)) void last_pass(const float* x, float* y, std::int64_t step,
                                         const std::int32_t* column_of, const CpuPass& p) {
  const std::int64_t between = p.stride * kPoint;
  for (std::int64_t q = 0; q < p.stride; ++q) {
    C a[Radix];
    static_for<0, Radix>([&](auto l)
                             RYLE_ALWAYS { a[l] = load_point(x + q * kPoint + l * between); });
    butterfly<Radix>(a);
    static_for<0, Radix>([&](auto j) RYLE_ALWAYS {
      const std::int64_t f = q + j * p.stride;
      const std::int64_t column = column_of == nullptr ? f : column_of[f];
      if (column >= 0) store_point(y + column * step, a[j]);
    });
  }
}

/// Transform of the points [0, n_in) of x (the rest zero) to y; scratch holds two times n points.
inline void transform(const CpuTransform& plan, const float* x, std::int64_t n_in, float* y,
                      std::int64_t step, const std::int32_t* column_of, float* scratch) {
  float* a = scratch;
  float* b = scratch + plan.n * kPoint;
  run_first(x, n_in, a, plan.passes[0]);
  for (int i = 1; i + 1 < plan.n_passes; ++i) {
    const CpuPass& p = plan.passes[i];
    switch (p.radix) {
      case 2:
        middle_pass<2>(a, b, p);
        break;
      case 3:
        middle_pass<3>(a, b, p);
        break;
      case 4:
        middle_pass<4>(a, b, p);
        break;
      case 5:
        middle_pass<5>(a, b, p);
        break;
      case 8:
        middle_pass<8>(a, b, p);
        break;
      default:
        middle_pass<16>(a, b, p);
        break;
    }
    float* t = a;
    a = b;
    b = t;
  }
  const CpuPass& p = plan.passes[plan.n_passes - 1];
  switch (p.radix) {
    case 2:
      return last_pass<2>(a, y, step, column_of, p);
    case 3:
      return last_pass<3>(a, y, step, column_of, p);
    case 4:
      return last_pass<4>(a, y, step, column_of, p);
    case 5:
      return last_pass<5>(a, y, step, column_of, p);
    case 8:
      return last_pass<8>(a, y, step, column_of, p);
    default:
      return last_pass<16>(a, y, step, column_of, p);
  }
}
