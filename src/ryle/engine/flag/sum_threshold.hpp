// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/engine/flag/flag.hpp"

namespace ryle::flag::detail {

/// One direction of a plane: `n_rows` rows of `n` samples, `stride` apart, rows `row_stride` apart.
struct Rows {
  std::int64_t n_rows = 0;
  std::int64_t n = 0;
  std::int64_t stride = 0;
  std::int64_t row_stride = 0;
};

/// What is alike in all implementations: passes, background, noise, thresholds. They differ in how
/// the rows are summed.
class Passes : public SumThreshold {
 public:
  Passes(const Config& config, std::string implementation)
      : config_(config), implementation_(std::move(implementation)) {}
  void flag(std::span<const float> amplitudes, std::span<std::uint8_t> flags) override;
  const std::string& implementation() const override { return implementation_; }

 protected:
  /// Sets flags_out where a window of `length` samples has a mean above the threshold; the mean is
  /// of those whose flag in flags_in is 0.
  virtual void flag_rows(const Rows& rows, std::int64_t length, double threshold,
                         const std::vector<double>& residual,
                         const std::vector<std::uint8_t>& flags_in,
                         std::vector<std::uint8_t>& flags_out) = 0;

 private:
  void background(std::span<const float> amplitudes, const std::vector<std::uint8_t>& flags);
  double noise(const std::vector<std::uint8_t>& flags);
  void smooth(const Rows& rows, double sigma, std::vector<double>& values);

  Config config_;
  std::string implementation_;
  std::vector<double> residual_, weight_, spare_, line_;
};

std::unique_ptr<SumThreshold> make_reference(const Config& config);
std::unique_ptr<SumThreshold> make_cpu(const Config& config);

}  // namespace ryle::flag::detail
