// SPDX-License-Identifier: BSD-3-Clause
// W-stacking on a CPU: laying samples on planes of w, transforms, sum of the planes. Included after
// cpu/transform.inc.hpp, for float and for double, in a namespace each (cpu/stack_table.inc.hpp).

inline constexpr std::int64_t kLanes = kPoint / 2;
static_assert(kStackTileCells % kLanes == 0 && kStackTileMargin % kLanes == 0);
inline constexpr std::int64_t kSide = kStackTileCells + kStackTileMargin;

/// Weights of the cells about a point.
template <int N>
RYLE_INLINE void weights_of(const StackFunction<Real>& function, Real fraction, Real (&out)[N]) {
  const Real s = 2 * fraction - 1;
  Real sum[N];
  const Real* c = function.coefficients;
  for (int k = 0; k < N; ++k) sum[k] = c[k];
  for (std::int64_t d = 0; d < function.degree; ++d) {
    c += N;
    for (int k = 0; k < N; ++k) sum[k] = sum[k] * s + c[k];
  }
  for (int k = 0; k < N; ++k) out[k] = sum[k];
}

template <int N>
void lay(const StackFunction<Real>& function, const StackTile<Real>& tile) {
  alignas(64) Real re[kSide * kSide] = {};
  alignas(64) Real im[kSide * kSide] = {};
  for (std::int64_t k = 0; k < tile.n; ++k) {
    const StackSample<Real>& s = tile.samples[k];
    alignas(64) Real u[N];
    alignas(64) Real v[N];
    Real share = 1;
    weights_of<N>(function, s.fraction_u, u);
    weights_of<N>(function, s.fraction_v, v);
    if (!tile.flat) {
      alignas(64) Real w[N];
      weights_of<N>(function, s.fraction_w, w);
      share = w[tile.plane - s.plane];
    }
    const Real value_re = share * s.re, value_im = share * s.im;
    Real* to_re = re + s.v * kSide + s.u;
    Real* to_im = im + s.v * kSide + s.u;
    for (std::int64_t row = 0; row < function.support; ++row) {
      const Real a = v[row] * value_re, b = v[row] * value_im;
      for (int x = 0; x < N; ++x) to_re[x] += u[x] * a;
      for (int x = 0; x < N; ++x) to_im[x] += u[x] * b;
      to_re += kSide;
      to_im += kSide;
    }
  }
  for (std::int64_t block = 0; block < kSide / kLanes; ++block) {
    Real* to = tile.grid + block * tile.block_stride;
    for (std::int64_t row = 0; row < kSide; ++row, to += kPoint) {
      const std::int64_t from = row * kSide + block * kLanes;
      store(to, load(to) + load(re + from));
      store(to + kLanes, load(to + kLanes) + load(im + from));
    }
  }
}

void lay_tile(const StackFunction<Real>& function, const StackTile<Real>& tile) {
  if (function.support <= 8) {
    lay<8>(function, tile);
  } else {
    lay<16>(function, tile);
  }
}

void columns(const StackTransform<Real>& plan, const Real* grid, std::int64_t block, Real* middle,
             Real* scratch) {
  const std::int64_t n_blocks = (plan.n_pixels + kLanes - 1) / kLanes;
  Real* out = scratch;
  Real* work = scratch + n_blocks * kPoint * kLanes;
  for (std::int64_t k = plan.n_pixels * kPoint; k < n_blocks * kLanes * kPoint; ++k) out[k] = 0;
  transform(plan.transform, grid, plan.n_v, out, kPoint, plan.pixel_of, work);
  // Lanes were u; now they are y.
  const std::int64_t first = block * kLanes;
  const std::int64_t n_u = plan.n_u - first < kLanes ? plan.n_u - first : kLanes;
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const Real* from = out + b * kLanes * kPoint;
    Real* to = middle + b * plan.middle_stride + first * kPoint;
    for (std::int64_t u = 0; u < n_u; ++u, to += kPoint) {
      for (std::int64_t y = 0; y < kLanes; ++y) {
        to[y] = from[y * kPoint + u];
        to[kLanes + y] = from[y * kPoint + kLanes + u];
      }
    }
  }
}

/// Taylor series of sin(pi r) / r and cos(pi r), |r| <= 1/2, in r^2, last term first.
struct Series {
  static constexpr int kTerms = sizeof(Real) == 4 ? 7 : 11;
  Real sine[kTerms];
  Real cosine[kTerms];
};
constexpr Series make_series() {
  constexpr double pi = 3.14159265358979323846;
  Series series{};
  double even = 1, odd = pi;
  for (int k = 0; k < Series::kTerms; ++k) {
    series.cosine[Series::kTerms - 1 - k] = static_cast<Real>(even);
    series.sine[Series::kTerms - 1 - k] = static_cast<Real>(odd);
    even *= -pi * pi / ((2 * k + 1) * (2 * k + 2));
    odd *= -pi * pi / ((2 * k + 2) * (2 * k + 3));
  }
  return series;
}
constexpr Series kSeries = make_series();

void rows(const StackTransform<Real>& plan, const Real* middle, const StackPixels& pixels,
          Real* scratch) {
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves the nearest integer
  Real* out = scratch;
  Real* work = scratch + plan.n_pixels * kPoint;
  transform(plan.transform, middle, plan.n_u, out, kPoint, plan.pixel_of, work);
  for (std::int64_t x = pixels.first; x < pixels.last; ++x) {
    alignas(64) Real r[kLanes];
    const double* t = pixels.t + x * kLanes;
    for (int y = 0; y < kLanes; ++y) {
      const double turns = pixels.turns_x[x] + pixels.turns_y[y] - pixels.w_waves * t[y];
      r[y] = static_cast<Real>(turns - ((turns + kRound) - kRound));
    }
    const V phase = load(r);
    const V square = phase * phase;
    V s = constant(0), c = constant(0);
    static_for<0, Series::kTerms>([&](auto k) RYLE_ALWAYS {
      s = s * square + broadcast(kSeries.sine[k]);
      c = c * square + broadcast(kSeries.cosine[k]);
    });
    s = s * phase;
    // Of twice the angle: cos = 1 - 2 s^2, sin = 2 s c.
    const C value = load_point(out + x * kPoint);
    const V real = value.re - constant(2) * s * (value.re * s + value.im * c);
    alignas(64) Real add[kLanes];
    store(add, real);
    double* sum = pixels.sum + x * kLanes;
    for (int y = 0; y < kLanes; ++y) sum[y] += static_cast<double>(add[y]);
  }
}

constexpr StackKernels<Real> kStackTable{kLanes, lay_tile, columns, rows};
