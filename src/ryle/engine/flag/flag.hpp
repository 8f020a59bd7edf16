// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

/// Interference in planes of time and frequency.
namespace ryle::flag {

/// @unit smooth_times, smooth_channels: samples (standard deviation of the Gaussian background)
struct Config {
  std::int64_t n_times = 0;
  std::int64_t n_channels = 0;
  double threshold_sigmas = 6;   ///< chi_1 of the last pass over the noise
  double growth = 1.5;           ///< rho: chi_M = chi_1 / rho^(log2 M)
  std::int64_t max_window = 64;  ///< longest row of samples, a power of 2
  double smooth_times = 2.5;
  double smooth_channels = 5;
  /// "auto", "reference" or "cpu".
  std::string implementation = "auto";
};

/// Throws ConfigError naming the field.
void validate(const Config& config);

/// Flags planes of one size, one after the other; not for several threads at a time.
class SumThreshold {
 public:
  virtual ~SumThreshold() = default;
  /// @shape amplitudes, flags [time][channel]. Flags that are set stay set, and their amplitudes
  /// (and those that are not finite) are not looked at.
  virtual void flag(std::span<const float> amplitudes, std::span<std::uint8_t> flags) = 0;
  virtual const std::string& implementation() const = 0;
};

std::unique_ptr<SumThreshold> make_sum_threshold(const Config& config);
/// "cpu", "reference".
std::vector<std::string> available_implementations();

}  // namespace ryle::flag
