// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/core/samples.hpp"

namespace ryle::math {

/// exp(2 pi i k / n) in double, exact to the last bit or so for any k: the angle is reduced in
/// integers first.
/// @pre n > 0
cf64 unit_root(std::int64_t k, std::int64_t n);

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
  struct Stage {
    std::int64_t radix;
    std::int64_t
        rest;  // transform length of the parts of this stage = what is left after dividing by radix
    std::vector<cf64> twiddles;  // [rest][radix - 1]
  };
  struct Bluestein;

  void run_stages(cf64* data, cf64* scratch) const;
  void forward_bluestein(cf64* data) const;

  std::int64_t n_ = 0;
  std::vector<Stage> stages_;
  std::unique_ptr<Bluestein> bluestein_;
};

}  // namespace ryle::math
