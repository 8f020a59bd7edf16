// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/engine/flag/sum_threshold.hpp"

namespace ryle::flag {
namespace detail {
namespace {

constexpr double kPassFactors[] = {4, 2, 1};
constexpr double kKernel_sigmas = 3;

Rows along_time(const Config& c) { return {c.n_channels, c.n_times, c.n_channels, 1}; }
Rows along_frequency(const Config& c) { return {c.n_times, c.n_channels, 1, c.n_channels}; }

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// A Gaussian of `sigma` samples over every row, not normalized: the weights are treated alike.
void Passes::smooth(const Rows& rows, double sigma, std::vector<double>& values) {
  const auto half = static_cast<std::int64_t>(std::ceil(kKernel_sigmas * sigma));
  if (rows.n < 2 || half < 1) return;
  std::vector<double> kernel;
  for (std::int64_t k = 0; k <= half; ++k)
    kernel.push_back(std::exp(-0.5 * static_cast<double>(k * k) / (sigma * sigma)));
  // The line stands between zeros, so that every sample sees the whole kernel.
  line_.assign(static_cast<std::size_t>(rows.n + 2 * half), 0);
  double* line = line_.data() + half;
  for (std::int64_t row = 0; row < rows.n_rows; ++row) {
    double* first = values.data() + row * rows.row_stride;
    for (std::int64_t k = 0; k < rows.n; ++k) line[k] = first[k * rows.stride];
    spare_.assign(static_cast<std::size_t>(rows.n), 0);
    for (std::int64_t k = 0; k < rows.n; ++k) spare_[k] = kernel[0] * line[k];
    for (std::int64_t d = 1; d <= half; ++d) {
      const double factor = kernel[d];
      for (std::int64_t k = 0; k < rows.n; ++k) spare_[k] += factor * (line[k - d] + line[k + d]);
    }
    for (std::int64_t k = 0; k < rows.n; ++k) first[k * rows.stride] = spare_[k];
  }
}

// residual_ = amplitude - Gaussian mean of what is not flagged.
void Passes::background(std::span<const float> amplitudes, const std::vector<std::uint8_t>& flags) {
  const std::size_t n = amplitudes.size();
  residual_.assign(n, 0);
  weight_.assign(n, 0);
  for (std::size_t k = 0; k < n; ++k) {
    if (flags[k] != 0) continue;
    weight_[k] = 1;
    residual_[k] = amplitudes[k];
  }
  for (std::vector<double>* values : {&residual_, &weight_}) {
    smooth(along_time(config_), config_.smooth_times, *values);
    smooth(along_frequency(config_), config_.smooth_channels, *values);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const double mean = weight_[k] > 0 ? residual_[k] / weight_[k] : 0;
    residual_[k] = flags[k] != 0 ? 0 : amplitudes[k] - mean;
  }
}

double Passes::noise(const std::vector<std::uint8_t>& flags) {
  spare_.clear();
  for (std::size_t k = 0; k < flags.size(); ++k)
    if (flags[k] == 0) spare_.push_back(std::abs(residual_[k]));
  return spare_.empty() ? 0 : 1.4826 * median_of(spare_);
}

void Passes::flag(std::span<const float> amplitudes, std::span<std::uint8_t> flags) {
  const auto n = static_cast<std::size_t>(config_.n_times * config_.n_channels);
  RYLE_ASSERT(amplitudes.size() == n && flags.size() == n);
  std::vector<std::uint8_t> before(n);
  for (std::size_t k = 0; k < n; ++k)
    before[k] = flags[k] != 0 || !std::isfinite(amplitudes[k]) ? 1 : 0;
  std::vector<std::uint8_t> now;
  for (const double factor : kPassFactors) {
    background(amplitudes, before);
    const double sigma = noise(before);
    if (!(sigma > 0)) break;  // nothing is left, or all is alike
    now = before;
    double threshold = factor * config_.threshold_sigmas * sigma;
    for (std::int64_t length = 1; length <= config_.max_window; length *= 2) {
      for (const Rows& rows : {along_time(config_), along_frequency(config_)}) {
        if (length > rows.n || (length == 1 && rows.stride == 1 && rows.n_rows > 0 &&
                                config_.n_times > 1 && config_.n_channels > 1))
          continue;  // single samples are the same rows both ways
        const std::vector<std::uint8_t> was = now;
        flag_rows(rows, length, threshold, residual_, was, now);
      }
      threshold /= config_.growth;
    }
    before = now;
  }
  for (std::size_t k = 0; k < n; ++k) flags[k] = before[k];
}

}  // namespace detail

void validate(const Config& c) {
  const auto bad = [](const std::string& what) { throw ConfigError("flagging: " + what); };
  if (c.n_times < 1 || c.n_channels < 1)
    bad(fmt::format("a plane of {} times and {} channels", c.n_times, c.n_channels));
  if (!(c.threshold_sigmas > 0)) bad("threshold_sigmas must be above 0");
  if (!(c.growth >= 1 && c.growth <= 2)) bad("growth must be 1 to 2");
  if (c.max_window < 1 || c.max_window > 65536 ||
      !std::has_single_bit(static_cast<std::uint64_t>(c.max_window)))
    bad(fmt::format("max_window = {} is no power of 2 up to 65536", c.max_window));
  if (!(c.smooth_times > 0) || !(c.smooth_channels > 0)) bad("the background has no width");
  const auto known = available_implementations();
  if (c.implementation != "auto" &&
      std::find(known.begin(), known.end(), c.implementation) == known.end())
    bad("implementation \"" + c.implementation + "\" is not auto, cpu or reference");
}

std::vector<std::string> available_implementations() { return {"cpu", "reference"}; }

std::unique_ptr<SumThreshold> make_sum_threshold(const Config& config) {
  validate(config);
  return config.implementation == "reference" ? detail::make_reference(config)
                                              : detail::make_cpu(config);
}

}  // namespace ryle::flag
