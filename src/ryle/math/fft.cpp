// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/math/fft.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::math {
namespace {

// std::complex multiplication checks for NaN in a library call; these are the textbook formulas.
struct Z {
  double re;
  double im;
};
inline Z operator+(Z a, Z b) { return {a.re + b.re, a.im + b.im}; }
inline Z operator-(Z a, Z b) { return {a.re - b.re, a.im - b.im}; }
inline Z operator*(Z a, Z b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
inline Z operator*(double s, Z a) { return {s * a.re, s * a.im}; }
inline Z minus_i(Z a) { return {a.im, -a.re}; }
inline Z load(const cf64& c) { return {c.real(), c.imag()}; }

// cos and sin of 2 pi k / 5 and 2 pi k / 7, k = 1, 2, 3.
constexpr double kC51 = 0.30901699437494742410, kC52 = -0.80901699437494742410;
constexpr double kS51 = 0.95105651629515357212, kS52 = 0.58778525229247312917;
constexpr double kC71 = 0.62348980185873353053, kC72 = -0.22252093395631440429,
                 kC73 = -0.90096886790241912624;
constexpr double kS71 = 0.78183148246802980871, kS72 = 0.97492791218182360702,
                 kS73 = 0.43388373911755812048;
constexpr double kS31 = 0.86602540378443864676;

template <int Radix>
inline void butterfly(Z (&a)[Radix]) {
  if constexpr (Radix == 2) {
    const Z t = a[1];
    a[1] = a[0] - t;
    a[0] = a[0] + t;
  } else if constexpr (Radix == 3) {
    const Z sum = a[1] + a[2], d = kS31 * minus_i(a[1] - a[2]), m = a[0] - 0.5 * sum;
    a[0] = a[0] + sum;
    a[1] = m + d;
    a[2] = m - d;
  } else if constexpr (Radix == 4) {
    const Z s02 = a[0] + a[2], d02 = a[0] - a[2], s13 = a[1] + a[3], d13 = minus_i(a[1] - a[3]);
    a[0] = s02 + s13;
    a[1] = d02 + d13;
    a[2] = s02 - s13;
    a[3] = d02 - d13;
  } else if constexpr (Radix == 5) {
    const Z p1 = a[1] + a[4], p2 = a[2] + a[3], q1 = minus_i(a[1] - a[4]),
            q2 = minus_i(a[2] - a[3]);
    const Z m1 = a[0] + kC51 * p1 + kC52 * p2, m2 = a[0] + kC52 * p1 + kC51 * p2;
    const Z d1 = kS51 * q1 + kS52 * q2, d2 = kS52 * q1 - kS51 * q2;
    a[0] = a[0] + p1 + p2;
    a[1] = m1 + d1;
    a[4] = m1 - d1;
    a[2] = m2 + d2;
    a[3] = m2 - d2;
  } else {
    static_assert(Radix == 7);
    const Z p1 = a[1] + a[6], p2 = a[2] + a[5], p3 = a[3] + a[4];
    const Z q1 = minus_i(a[1] - a[6]), q2 = minus_i(a[2] - a[5]), q3 = minus_i(a[3] - a[4]);
    const Z m1 = a[0] + kC71 * p1 + kC72 * p2 + kC73 * p3, d1 = kS71 * q1 + kS72 * q2 + kS73 * q3;
    const Z m2 = a[0] + kC72 * p1 + kC73 * p2 + kC71 * p3, d2 = kS72 * q1 - kS73 * q2 - kS71 * q3;
    const Z m3 = a[0] + kC73 * p1 + kC71 * p2 + kC72 * p3, d3 = kS73 * q1 - kS71 * q2 + kS72 * q3;
    a[0] = a[0] + p1 + p2 + p3;
    a[1] = m1 + d1;
    a[6] = m1 - d1;
    a[2] = m2 + d2;
    a[5] = m2 - d2;
    a[3] = m3 + d3;
    a[4] = m3 - d3;
  }
}

/// One decimation-in-frequency Stockham pass: y[q + s (R p + j)] = w^(jp) sum_l x[q + s (p + m l)]
/// exp(-2 pi i j l / R).
template <int Radix>
void pass(const cf64* x, cf64* y, std::int64_t m, std::int64_t s, const cf64* twiddles) {
  for (std::int64_t p = 0; p < m; ++p, twiddles += Radix - 1) {
    Z w[Radix];
    for (int j = 1; j < Radix; ++j) w[j] = load(twiddles[j - 1]);
    for (std::int64_t q = 0; q < s; ++q) {
      Z a[Radix];
      for (int l = 0; l < Radix; ++l) a[l] = load(x[q + s * (p + m * l)]);
      butterfly<Radix>(a);
      cf64* out = y + q + s * Radix * p;
      out[0] = {a[0].re, a[0].im};
      for (int j = 1; j < Radix; ++j) {
        const Z value = p == 0 ? a[j] : a[j] * w[j];
        out[s * j] = {value.re, value.im};
      }
    }
  }
}

std::vector<cf64>& thread_scratch(int which, std::int64_t n) {
  thread_local std::vector<cf64> scratch[2];
  auto& s = scratch[which];
  if (static_cast<std::int64_t>(s.size()) < n) s.resize(n);
  return s;
}

}  // namespace

cf64 unit_root(std::int64_t k, std::int64_t n) {
  k %= n;
  if (k < 0) k += n;
  // Octants keep the argument of sin and cos below pi/4, so that symmetric roots are exactly
  // symmetric.
  const __int128 eight = static_cast<__int128>(k) * 8;
  const int octant = static_cast<int>(eight / n);
  const auto fold = [n](__int128 numerator) {  // angle = 2 pi numerator / (8 n)
    return static_cast<double>(numerator) / (8.0 * static_cast<double>(n)) * 2 * std::numbers::pi;
  };
  const __int128 r = eight - static_cast<__int128>(octant) * n;
  const double a = (octant & 1) ? fold(n - r) : fold(r);
  const double c = std::cos(a);
  // On a diagonal both parts are the same number.
  const double s = (octant & 1) != 0 && r == 0 ? c : std::sin(a);
  switch (octant) {
    case 0:
      return {c, s};
    case 1:
      return {s, c};
    case 2:
      return {-s, c};
    case 3:
      return {-c, s};
    case 4:
      return {-c, -s};
    case 5:
      return {-s, -c};
    case 6:
      return {s, -c};
    default:
      return {c, -s};
  }
}

/// DFT of size n as a circular convolution of a power-of-two size: jk = (j^2 + k^2 - (k-j)^2) / 2.
struct Fft::Bluestein {
  explicit Bluestein(std::int64_t n, std::int64_t padded) : fft(padded), chirp(n), filter(padded) {
    for (std::int64_t k = 0; k < n; ++k) {
      const auto square = static_cast<std::int64_t>(static_cast<__int128>(k) * k % (2 * n));
      chirp[k] = unit_root(-square, 2 * n);
    }
    filter[0] = std::conj(chirp[0]);
    for (std::int64_t k = 1; k < n; ++k) filter[k] = filter[padded - k] = std::conj(chirp[k]);
    fft.forward(filter.data());
    for (auto& f : filter) f /= static_cast<double>(padded);
  }
  Fft fft;
  std::vector<cf64> chirp;
  std::vector<cf64> filter;
};

Fft::Fft(std::int64_t n) : n_(n) {
  if (n < 1) throw ConfigError("fft: size " + std::to_string(n) + " is not positive");
  std::int64_t rest = n;
  std::vector<std::int64_t> radices;
  for (const std::int64_t radix : {4, 2, 3, 5, 7}) {
    for (; rest % radix == 0; rest /= radix) radices.push_back(radix);
  }
  if (rest != 1) {
    std::int64_t padded = 1;
    while (padded < 2 * n - 1) padded *= 2;
    bluestein_ = std::make_unique<Bluestein>(n, padded);
    return;
  }
  std::int64_t length = n;
  for (const auto radix : radices) {
    Stage stage{radix, length / radix, {}};
    for (std::int64_t p = 0; p < stage.rest; ++p) {
      for (std::int64_t j = 1; j < radix; ++j) stage.twiddles.push_back(unit_root(-j * p, length));
    }
    length = stage.rest;
    stages_.push_back(std::move(stage));
  }
}

Fft::~Fft() = default;
Fft::Fft(Fft&&) noexcept = default;
Fft& Fft::operator=(Fft&&) noexcept = default;

void Fft::run_stages(cf64* data, cf64* scratch) const {
  cf64* from = data;
  cf64* to = scratch;
  std::int64_t s = 1;
  for (const auto& stage : stages_) {
    const cf64* w = stage.twiddles.data();
    switch (stage.radix) {
      case 2:
        pass<2>(from, to, stage.rest, s, w);
        break;
      case 3:
        pass<3>(from, to, stage.rest, s, w);
        break;
      case 4:
        pass<4>(from, to, stage.rest, s, w);
        break;
      case 5:
        pass<5>(from, to, stage.rest, s, w);
        break;
      default:
        pass<7>(from, to, stage.rest, s, w);
        break;
    }
    s *= stage.radix;
    std::swap(from, to);
  }
  if (from != data) std::copy(from, from + n_, data);
}

void Fft::forward_bluestein(cf64* data) const {
  const auto& b = *bluestein_;
  const std::int64_t padded = b.fft.size();
  auto& work = thread_scratch(1, padded);
  const auto times = [](const cf64& x, const cf64& y) {
    const Z z = load(x) * load(y);
    return cf64{z.re, z.im};
  };
  for (std::int64_t k = 0; k < n_; ++k) work[k] = times(data[k], b.chirp[k]);
  std::fill(work.begin() + n_, work.begin() + padded, cf64{});
  b.fft.forward(work.data());
  // The inverse transform is the forward one of the conjugate, conjugated; 1/padded is in the
  // filter.
  for (std::int64_t k = 0; k < padded; ++k) work[k] = std::conj(times(work[k], b.filter[k]));
  b.fft.forward(work.data());
  for (std::int64_t k = 0; k < n_; ++k) data[k] = times(std::conj(work[k]), b.chirp[k]);
}

void Fft::forward(cf64* data) const {
  if (bluestein_) {
    forward_bluestein(data);
  } else {
    run_stages(data, thread_scratch(0, n_).data());
  }
}

void Fft::inverse(cf64* data) const {
  for (std::int64_t k = 0; k < n_; ++k) data[k] = std::conj(data[k]);
  forward(data);
  const double scale = 1.0 / static_cast<double>(n_);
  for (std::int64_t k = 0; k < n_; ++k) data[k] = scale * std::conj(data[k]);
}

}  // namespace ryle::math
