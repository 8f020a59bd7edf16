// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/math/fft.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/simd/unroll.hpp"

namespace ryle::math {
namespace {

// std::complex multiplication checks for NaN in a library call; the shared passes have the textbook
// formulas. One transform, numbers of its own: a vector is one number.
using Real = double;
using V = double;
constexpr int kSign = -1;
constexpr bool kFirstIsPlain = true;
RYLE_INLINE double load(const double* p) { return *p; }
RYLE_INLINE void store(double* p, double x) { *p = x; }
RYLE_INLINE double broadcast(double x) { return x; }
RYLE_INLINE double fma(double a, double b, double c) { return a * b + c; }
RYLE_INLINE double fnma(double a, double b, double c) { return c - a * b; }
#include "ryle/simd/fft.inc.hpp"

double* numbers(cf64* data) { return reinterpret_cast<double*>(data); }

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

template <class Number>
FftPasses<Number>::FftPasses(const std::vector<int>& radices, int sign) {
  std::int64_t length = 1, stride = 1;
  for (const int radix : radices) length *= radix;
  for (const int radix : radices) {
    const std::int64_t rest = length / radix;
    std::vector<Number>& twiddles = twiddles_.emplace_back();
    for (std::int64_t p = 0; p < rest; ++p) {
      for (std::int64_t j = 1; j < radix; ++j) {
        const cf64 w = unit_root(sign * j * p, length);
        twiddles.push_back(static_cast<Number>(w.real()));
        twiddles.push_back(static_cast<Number>(w.imag()));
      }
    }
    passes_.push_back({radix, rest, stride, twiddles.data()});
    length = rest;
    stride *= radix;
  }
}
template class FftPasses<float>;
template class FftPasses<double>;

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
  std::vector<int> radices;
  for (const int radix : {4, 2, 3, 5, 7}) {
    for (; rest % radix == 0; rest /= radix) radices.push_back(radix);
  }
  if (rest != 1) {
    std::int64_t padded = 1;
    while (padded < 2 * n - 1) padded *= 2;
    bluestein_ = std::make_unique<Bluestein>(n, padded);
    return;
  }
  passes_ = FftPasses<double>(radices, -1);
}

Fft::~Fft() = default;
Fft::Fft(Fft&&) noexcept = default;
Fft& Fft::operator=(Fft&&) noexcept = default;

void Fft::run_passes(cf64* data, cf64* scratch) const {
  cf64* from = data;
  cf64* to = scratch;
  for (const auto& pass : passes_.list()) {
    with_radix(pass.radix, [&](auto radix) { run_pass<radix>(numbers(from), numbers(to), pass); });
    std::swap(from, to);
  }
  if (from != data) std::copy(from, from + n_, data);
}

void Fft::forward_bluestein(cf64* data) const {
  const auto& b = *bluestein_;
  const std::int64_t padded = b.fft.size();
  auto& work = thread_scratch(1, padded);
  const auto product = [](const cf64& x, const cf64& y) {
    const C z = times(C{x.real(), x.imag()}, y.real(), y.imag());
    return cf64{z.re, z.im};
  };
  for (std::int64_t k = 0; k < n_; ++k) work[k] = product(data[k], b.chirp[k]);
  std::fill(work.begin() + n_, work.begin() + padded, cf64{});
  b.fft.forward(work.data());
  // The inverse transform is the forward one of the conjugate, conjugated; 1/padded is in the
  // filter.
  for (std::int64_t k = 0; k < padded; ++k) work[k] = std::conj(product(work[k], b.filter[k]));
  b.fft.forward(work.data());
  for (std::int64_t k = 0; k < n_; ++k) data[k] = product(std::conj(work[k]), b.chirp[k]);
}

void Fft::forward(cf64* data) const {
  if (bluestein_) {
    forward_bluestein(data);
  } else {
    run_passes(data, thread_scratch(0, n_).data());
  }
}

void Fft::inverse(cf64* data) const {
  for (std::int64_t k = 0; k < n_; ++k) data[k] = std::conj(data[k]);
  forward(data);
  const double scale = 1.0 / static_cast<double>(n_);
  for (std::int64_t k = 0; k < n_; ++k) data[k] = scale * std::conj(data[k]);
}

}  // namespace ryle::math
