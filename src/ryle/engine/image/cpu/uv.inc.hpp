// SPDX-License-Identifier: BSD-3-Clause
// Visibility imaging on a CPU (path vis-grid): calibrate the products of antenna pairs, lay them on
// half the uv plane, transform:  grid(cell) = sum_ab K_ab(cell) c_a conj(c_b) V_ab,  image =
// FFT[grid]. Included after cpu/transform.inc.hpp.
//
// A cell holds the four planes XX, YY, U = (XY+YX)/2, V = -i(XY-YX)/2. Each is Hermitian, so that
// half the plane is enough and two real images share one complex transform, XX + i YY and U + i V.

using F4 = float __attribute__((vector_size(16)));

template <class T, int N>
struct Some {
  using Type __attribute__((vector_size(N * sizeof(T)))) = T;
};

/// re and im of XX XY YX YY.
template <class T>
RYLE_INLINE void read_products(const T* sums, const PairSource& s, F4& re, F4& im) {
  using Pair = typename Some<T, 2>::Type;
  Pair p[4];
  static_for<0, 4>([&](auto q) RYLE_ALWAYS {
    __builtin_memcpy(&p[q], sums + 2 * static_cast<std::int64_t>(s.index[q]), sizeof(Pair));
  });
  // XX YX and XY YY: neighbours in the usual order of inputs.
  const F4 x = __builtin_convertvector(__builtin_shufflevector(p[0], p[2], 0, 1, 2, 3), F4);
  const F4 y = __builtin_convertvector(__builtin_shufflevector(p[1], p[3], 0, 1, 2, 3), F4);
  re = __builtin_shufflevector(x, y, 0, 4, 2, 6);
  im = __builtin_shufflevector(x, y, 1, 5, 3, 7);
}

/// The same where products are absent or stored conjugated.
template <class T>
void read_odd_products(const T* sums, const PairSource& s, F4& re, F4& im) {
  for (int q = 0; q < 4; ++q) {
    if (s.index[q] < 0) {
      re[q] = im[q] = 0;
      continue;
    }
    const T* p = sums + 2 * static_cast<std::int64_t>(s.index[q]);
    re[q] = static_cast<float>(p[0]);
    im[q] = (s.conjugate >> q & 1) != 0 ? -static_cast<float>(p[1]) : static_cast<float>(p[1]);
  }
}

template <class T>
void convert_sums(const T* sums, const PairSource* sources, std::int64_t n, const PairGains& gains,
                  const std::uint8_t* flip, float* products) {
  for (std::int64_t k = 0; k < n; ++k, products += kCellFloats) {
    const PairSource& s = sources[k];
    F4 re, im;
    if (s.conjugate == 0) {
      read_products(sums, s, re, im);
    } else {
      read_odd_products(sums, s, re, im);
    }
    if constexpr (!std::is_integral_v<T>) {
      // A sum that is not finite is as good as absent.
      const auto good = (re - re == 0) & (im - im == 0);
      re = good ? re : F4{};
      im = good ? im : F4{};
    }
    const float* a = gains.first + 8 * s.a;
    const float* b = gains.second + 8 * s.b;
    const F4 ar = load_as<F4>(a), ai = load_as<F4>(a + 4), br = load_as<F4>(b),
             bi = load_as<F4>(b + 4);
    const F4 gr = ar * br + ai * bi, gi = ai * br - ar * bi;  // c_a conj(c_b)
    const F4 vr = re * gr - im * gi, vi = re * gi + im * gr;
    constexpr F4 own = {1, 1, 0.5f, 0.5f}, other = {0, 0, 0.5f, -0.5f};
    constexpr float sign = 1;
    // lanes XX YY U V: V = (Im XY - Im YX, Re YX - Re XY) / 2
    const F4 out_re = __builtin_shufflevector(vr, vi, 0, 3, 1, 5) * own +
                      __builtin_shufflevector(vr, vi, 0, 3, 2, 6) * other;
    const F4 out_im = __builtin_shufflevector(vi, vr, 0, 3, 1, 6) * own +
                      __builtin_shufflevector(vi, vr, 0, 3, 2, 5) * (other * sign);
    store_as(products, out_re);
    store_as(products + 4, flip != nullptr && flip[k] != 0 ? -out_im : out_im);
  }
}

inline void convert(SumType type, const void* sums, const PairSource* sources, std::int64_t n,
                    const PairGains& gains, const std::uint8_t* flip, float* products) {
  switch (type) {
    case SumType::ci32:
      return convert_sums(static_cast<const std::int32_t*>(sums), sources, n, gains, flip,
                          products);
    case SumType::ci64:
      return convert_sums(static_cast<const std::int64_t*>(sums), sources, n, gains, flip,
                          products);
    case SumType::cf32:
      return convert_sums(static_cast<const float*>(sums), sources, n, gains, flip, products);
    default:
      return convert_sums(static_cast<const double*>(sums), sources, n, gains, flip, products);
  }
}

// --- gridding: baselines that begin at one cell share their sums in registers ---
#if defined(__AVX512F__)
using Unit = V;  // two neighbouring cells
inline constexpr int kCellsPerUnit = 2;
inline constexpr int kUnitSums = 28;
RYLE_INLINE Unit spread(const float* product) {
  return (V)_mm512_broadcast_f32x8(_mm256_loadu_ps(product));
}
RYLE_INLINE Unit weights(const float* w) {
  return (V)_mm512_mask_broadcastss_ps(_mm512_set1_ps(w[0]), 0xff00, _mm_load_ss(w + 1));
}
#else
using Unit = float __attribute__((vector_size(32)));  // one cell
inline constexpr int kCellsPerUnit = 1;
inline constexpr int kUnitSums = 12;
RYLE_INLINE Unit spread(const float* product) {
  Unit v;
  __builtin_memcpy(&v, product, sizeof v);
  return v;
}
RYLE_INLINE Unit weights(const float* w) { return w[0] - Unit{}; }
#endif
inline constexpr std::int64_t kUnitFloats = kCellsPerUnit * kCellFloats;

template <int Units, int Rows>
RYLE_INLINE void grid_rows(const UvTable& table, const UvGroup& group, const float* products,
                           std::int64_t row, float* grid) {
  Unit sum[Rows][Units];
  float* cells = grid + group.offset + row * table.row_stride;
  static_for<0, Rows>([&](auto r) RYLE_ALWAYS {
    static_for<0, Units>([&](auto u) RYLE_ALWAYS {
      __builtin_memcpy(&sum[r][u], cells + r * table.row_stride + u * kUnitFloats, sizeof(Unit));
    });
  });
  const std::int64_t tail = table.units * kCellsPerUnit;
  const float* wx = table.records + group.begin * table.record_floats;
  for (std::int32_t n = group.begin; n < group.end; ++n, wx += table.record_floats) {
    __builtin_prefetch(wx + 12 * table.record_floats);
    std::int32_t source;
    __builtin_memcpy(&source, wx + tail + table.rows, sizeof source);
    const Unit product = spread(products + source * kCellFloats);
    const float* wy = wx + tail + row;
    static_for<0, Units>([&](auto u) RYLE_ALWAYS {
      const Unit term = product * weights(wx + u * kCellsPerUnit);
      static_for<0, Rows>([&](auto r) RYLE_ALWAYS { sum[r][u] += term * wy[r]; });
    });
  }
  static_for<0, Rows>([&](auto r) RYLE_ALWAYS {
    static_for<0, Units>([&](auto u) RYLE_ALWAYS {
      __builtin_memcpy(cells + r * table.row_stride + u * kUnitFloats, &sum[r][u], sizeof(Unit));
    });
  });
}

template <int Units>
__attribute__((noinline)) void grid_units(const UvTable& table, const float* products,
                                          float* grid) {
  constexpr int kRows = kUnitSums / Units > 9 ? 9 : kUnitSums / Units < 1 ? 1 : kUnitSums / Units;
  for (std::int64_t g = 0; g < table.n_groups; ++g) {
    std::int64_t row = 0;
    if constexpr (Units == 4 && kRows == 7) {  // k = 7: all rows at once, nothing read twice
      if (table.rows == 7) {
        grid_rows<Units, 7>(table, table.groups[g], products, 0, grid);
        continue;
      }
    }
    constexpr int kBlock = kRows > 5 ? 5 : kRows;
    for (; row + kBlock <= table.rows; row += kBlock) {
      grid_rows<Units, kBlock>(table, table.groups[g], products, row, grid);
    }
    for (; row < table.rows; ++row) {
      grid_rows<Units, 1>(table, table.groups[g], products, row, grid);
    }
  }
}

template <int Units>
void grid_dispatch(const UvTable& table, const float* products, float* grid) {
  if constexpr (Units <= 17) {
    if (table.units == Units) return grid_units<Units>(table, products, grid);
    grid_dispatch<Units + 1>(table, products, grid);
  }
}
inline void grid_baselines(const UvTable& table, const float* products, float* grid) {
  grid_dispatch<2>(table, products, grid);
}

// --- transform of the half plane ---
inline constexpr std::int64_t kRowsPerVector = kLanes / 4;

inline void uv_rows(const UvImage& image, const float* cells, std::int64_t row_stride,
                    std::int64_t first_row, float* middle, float* scratch) {
  const std::int64_t n = image.transform.n;
  const std::int64_t padded_rows =
      (image.n_rows + kRowsPerVector - 1) / kRowsPerVector * kRowsPerVector;
  float* points = scratch;
  float* columns = scratch + n * kPoint;
  for (std::int64_t r = 0; r < kRowsPerVector; ++r) {
    const float* from = cells + (first_row + r) * row_stride;
    for (std::int64_t u = 0; u < n; ++u) {
      store_as(points + u * kPoint + 4 * r, load_as<F4>(from + u * kCellFloats));
      store_as(points + u * kPoint + kLanes + 4 * r, load_as<F4>(from + u * kCellFloats + 4));
    }
  }
  transform(image.transform, points, n, columns, kPoint, image.column_of, columns + n * kPoint);
  for (std::int64_t c = 0; c < image.n_columns; ++c) {
    const float* from = columns + c * kPoint;
    float* to =
        middle + (c / kRowsPerVector * padded_rows + first_row) * kPoint + c % kRowsPerVector * 4;
    for (std::int64_t r = 0; r < kRowsPerVector; ++r) {
      store_as(to + r * kPoint, load_as<F4>(from + 4 * r));
      store_as(to + r * kPoint + kLanes, load_as<F4>(from + kLanes + 4 * r));
    }
  }
}

template <int Odd, int... Lane>
RYLE_INLINE V every_second(V a, V b, std::integer_sequence<int, Lane...>) {
  // Of every four lanes: two from a, two from b.
  return __builtin_shufflevector(a, b,
                                 (Lane / 4 * 4 + Lane % 2 * 2 + Odd + (Lane % 4 / 2) * kLanes)...);
}

/// Plane 0 or 1 (Odd) of the lanes that uv_columns() transforms: neighbouring columns.
template <int Odd, int... Column>
RYLE_INLINE auto plane_of(V v, std::integer_sequence<int, Column...>) {
  constexpr int kHalf = kLanes / 4;
  return __builtin_shufflevector(
      v, v, ((Column < kHalf ? 4 * Column : 4 * (Column - kHalf) + 2) + Odd)...);
}

inline void uv_columns(const UvImage& image, const float* middle, std::int64_t chunk, float* planes,
                       float* scratch) {
  const std::int64_t n = image.transform.n;
  const std::int64_t padded_rows =
      (image.n_rows + kRowsPerVector - 1) / kRowsPerVector * kRowsPerVector;
  const float* first = middle + chunk * padded_rows * kPoint;
  const float* second = first + padded_rows * kPoint;
  float* points = scratch;
  // Rows between the occupied ones and their mirror images are empty.
  for (std::int64_t v = image.n_rows; v <= n - image.n_rows; ++v)
    store_point(points + v * kPoint, C{});
  using Lanes = std::make_integer_sequence<int, kLanes>;
  for (std::int64_t v = 0; v < image.n_rows; ++v) {
    const C a = load_point(first + v * kPoint), b = load_point(second + v * kPoint);
    const C even = {every_second<0>(a.re, b.re, Lanes{}), every_second<0>(a.im, b.im, Lanes{})};
    const C odd = {every_second<1>(a.re, b.re, Lanes{}), every_second<1>(a.im, b.im, Lanes{})};
    store_point(points + v * kPoint, {even.re - odd.im, even.im + odd.re});
    if (v != 0 && 2 * v != n) {
      store_point(points + (n - v) * kPoint, {even.re + odd.im, odd.re - even.im});
    }
  }
  float* out = scratch + 3 * n * kPoint;
  transform(image.transform, points, n, out, kPoint, nullptr, scratch + n * kPoint);
  // Planes, so that what follows streams.
  using Columns = std::make_integer_sequence<int, kLanes / 2>;
  float* to = planes + chunk * kRowsPerVector;
  for (std::int64_t y = 0; y < n; ++y, to += image.row_stride) {
    const C p = load_point(out + y * kPoint);
    const auto xx = plane_of<0>(p.re, Columns{}), yy = plane_of<0>(p.im, Columns{});
    const auto u = plane_of<1>(p.re, Columns{}), w = plane_of<1>(p.im, Columns{});
    __builtin_memcpy(to, &xx, sizeof xx);
    __builtin_memcpy(to + image.plane_stride, &yy, sizeof yy);
    __builtin_memcpy(to + 2 * image.plane_stride, &u, sizeof u);
    __builtin_memcpy(to + 3 * image.plane_stride, &w, sizeof w);
  }
}
