// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/simd/fft_pass.hpp"

namespace ryle::math {

/// exp(2 pi i k / n) in double, exact to the last bit or so for any k: the angle is reduced in
/// integers first.
/// @pre n > 0
cf64 unit_root(std::int64_t k, std::int64_t n);

/// The passes of a transform of as many points as the product of `radices`, which ryle/simd runs,
/// with their twiddles. sign: of the exponent, -1 or +1.
template <class Number>
class FftPasses {
 public:
  FftPasses() = default;
  FftPasses(const std::vector<int>& radices, int sign);
  FftPasses(FftPasses&&) noexcept = default;
  FftPasses& operator=(FftPasses&&) noexcept = default;
  const std::vector<simd::FftPass<Number>>& list() const { return passes_; }

 private:
  std::vector<std::vector<Number>> twiddles_;
  std::vector<simd::FftPass<Number>> passes_;
};

/// Complex transform of any size in double: radices 4 2 3 5 7, Bluestein's chirp transform
/// otherwise.
/// @eq forward: X[k] = sum_j x[j] exp(-2 pi i j k / n), unscaled; inverse: + sign and 1/n
/// (conventions.md 3) Numeric contract: relative rms error below 1e-15 log2(n) (Bluestein: 4e-15
/// log2(n)). A plan is immutable: any number of threads may use one at the same time.
class Fft {
 public:
  /// @pre n >= 1, else ConfigError
  explicit Fft(std::int64_t n);
  ~Fft();
  Fft(Fft&&) noexcept;
  Fft& operator=(Fft&&) noexcept;

  /// In place. @shape data [n] cf64
  void forward(cf64* data) const;
  void inverse(cf64* data) const;
  std::int64_t size() const { return n_; }

 private:
  struct Bluestein;

  void run_passes(cf64* data, cf64* scratch) const;
  void forward_bluestein(cf64* data) const;

  std::int64_t n_ = 0;
  FftPasses<double> passes_;
  std::unique_ptr<Bluestein> bluestein_;
};

}  // namespace ryle::math
