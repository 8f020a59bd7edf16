// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/levels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/engine/beamform/implementations.hpp"

namespace ryle::beamform {

Level robust_level(std::span<float> values) {
  Level level;
  if (values.empty()) return level;
  const auto at = [&](std::size_t k) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
    return double{values[k]};
  };
  const std::size_t n = values.size();
  const double median = at(n / 2), low = at(n / 4), high = at(3 * n / 4);
  const double reach = 5 * (high - low) / 1.349;  // quartiles of a Gaussian: 1.349 sigma apart
  double sum = 0, squares = 0;
  for (const float value : values) {
    const double d = double{value} - median;
    if (std::fabs(d) > reach) continue;
    sum += d;
    squares += d * d;
    ++level.n;
  }
  const double mean = sum / static_cast<double>(level.n);
  level.mean = median + mean;
  level.rms = std::sqrt(std::max(0.0, squares / static_cast<double>(level.n) - mean * mean));
  return level;
}

LevelTracker::LevelTracker(const Config& config, const LevelOptions& options)
    : config_(config),
      options_(options),
      n_products_(config.output == OutputKind::voltage ? 1 : config.n_products()),
      parts_(config.output == OutputKind::voltage ? 2 * config.n_pols : 1),
      extent_{config.n_rows(), n_products_, config.n_channels} {
  RYLE_ASSERT(options.interval >= 0 && options.max_samples >= 4);
  const auto cells = static_cast<std::size_t>(extent_[0] * extent_[1] * extent_[2]);
  scale_.assign(cells, 1.0f);
  offset_.assign(cells, 0.0f);
  count_.assign(cells, 0);
  kept_.resize(cells * static_cast<std::size_t>(options.max_samples));
  // Samples are taken evenly over an interval.
  stride_windows_ = std::max<std::int64_t>(
      1, options.interval / config.integration * parts_ / options.max_samples);
}

template <class Read>
void LevelTracker::add(const Output& output, Tick first_window, std::int64_t n, const Read& read) {
  // The first scales come from the first values, wherever gulps end.
  const std::int64_t stride = changes_.empty() ? 1 : stride_windows_;
  const std::int64_t first = (stride - (first_window % stride + stride) % stride) % stride;
  for (std::int64_t row = 0; row < extent_[0]; ++row) {
    for (std::int64_t product = 0; product < n_products_; ++product) {
      for (std::int64_t channel = 0; channel < extent_[2]; ++channel) {
        const auto cell =
            static_cast<std::size_t>((row * n_products_ + product) * extent_[2] + channel);
        const auto* from = static_cast<const std::byte*>(output.values) +
                           row * output.row_stride_bytes + product * output.product_stride_bytes +
                           channel * output.channel_stride_bytes;
        float* to = kept_.data() + cell * static_cast<std::size_t>(options_.max_samples);
        for (std::int64_t k = first; k < n; k += stride) {
          for (std::int64_t part = 0; part < parts_; ++part) {
            if (count_[cell] >= options_.max_samples) break;
            to[count_[cell]++] = read(from, k * parts_ + part, cell);
          }
        }
      }
    }
  }
}

void LevelTracker::add_floats(const Output& output, Tick first_window, std::int64_t n) {
  add(output, first_window, n, [](const std::byte* from, std::int64_t at, std::size_t) {
    float value;
    std::memcpy(&value, from + 4 * at, 4);
    return value;
  });
}

void LevelTracker::add_codes(const Output& output, Tick first_window, std::int64_t n) {
  RYLE_ASSERT(config_.output != OutputKind::voltage);
  const bool bytes = config_.output_format == OutputFormat::u8;
  add(output, first_window, n, [&](const std::byte* from, std::int64_t at, std::size_t cell) {
    std::uint16_t code = 0;
    if (bytes) {
      code = static_cast<std::uint16_t>(from[at]);
    } else {
      std::memcpy(&code, from + 2 * at, 2);
    }
    return scale_[cell] == 0 ? 0.0f : (static_cast<float>(code) - offset_[cell]) / scale_[cell];
  });
}

bool LevelTracker::update(Tick tick) {
  const bool first = changes_.empty();
  const bool passed =
      !first && options_.interval > 0 &&
      floor_divide(tick, options_.interval) != floor_divide(changes_.back(), options_.interval);
  const bool any = std::any_of(count_.begin(), count_.end(), [](std::int32_t n) { return n > 0; });
  if (!any || !(first || passed)) return false;
  const bool voltage = config_.output == OutputKind::voltage;
  const float top = config_.output_format == OutputFormat::u8 ? 255.0f : 65535.0f;
  for (std::size_t cell = 0; cell < scale_.size(); ++cell) {
    const std::span<float> values(
        kept_.data() + cell * static_cast<std::size_t>(options_.max_samples), count_[cell]);
    count_[cell] = 0;
    if (values.empty()) continue;  // as it was
    Level level = robust_level(values);
    if (!first && scale_[cell] > 0) {
      // Cut codes say "at least": open up fourfold until the quartiles are inside.
      const auto code = [&](float value) { return value * scale_[cell] + offset_[cell]; };
      const auto cut = std::count_if(values.begin(), values.end(), [&](float value) {
        return code(value) <= 0.25f || code(value) >= top - 0.25f;
      });
      if (4 * cut >= static_cast<std::ptrdiff_t>(values.size()))
        level.rms = std::max(level.rms, 4 * options_.rms_codes / double{scale_[cell]});
    }
    const double scale = level.rms > 0 ? options_.rms_codes / level.rms : 0;
    if (voltage && !(scale > 0)) continue;
    scale_[cell] = static_cast<float>(scale);
    offset_[cell] = voltage ? 0.0f : static_cast<float>(options_.mean_code - level.mean * scale);
  }
  changes_.push_back(tick);
  return true;
}

Tick LevelTracker::next_update(Tick tick) const {
  if (options_.interval == 0) return INT64_MAX;
  return (floor_divide(tick, options_.interval) + 1) * options_.interval;
}

}  // namespace ryle::beamform
