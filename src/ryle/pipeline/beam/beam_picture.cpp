// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/beam/beam_files.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kRows = 128, kColumns = 512;

// In eight chains, which baseline vectors can follow.
float sum_of(const float* values, std::int64_t n) {
  float chains[8] = {};
  std::int64_t t = 0;
  for (; t + 8 <= n; t += 8) {
    for (std::int64_t k = 0; k < 8; ++k) chains[k] += values[t + k];
  }
  float sum = 0;
  for (const float chain : chains) sum += chain;
  for (; t < n; ++t) sum += values[t];
  return sum;
}

}  // namespace

BeamPictures::BeamPictures(const ObservationConfig& config, const BeamStream& stream)
    : config_(config),
      stream_(stream),
      n_beams_(std::min(config.beams.pictures, stream.n_beams())),
      per_row_((stream.frequency.n_channels + kRows - 1) / kRows),
      n_rows_((stream.frequency.n_channels + per_row_ - 1) / per_row_) {
  sums_.assign(n_beams_ * n_rows_ * kColumns, 0);
  counts_ = sums_;
  band_.assign(n_beams_ * stream.frequency.n_channels, 0);
  band_counts_ = band_;
}

std::int64_t BeamPictures::memory_bytes() const {
  return n_beams_ * (8 * n_rows_ * kColumns + 16 * stream_.frequency.n_channels);
}

// Pairs of columns become one.
void BeamPictures::coarsen() {
  for (std::int64_t row = 0; row < n_beams_ * n_rows_; ++row) {
    for (auto* values : {&sums_, &counts_}) {
      float* x = values->data() + row * kColumns;
      for (std::int64_t k = 0; k < kColumns; ++k)
        x[k] = 2 * k < kColumns ? x[2 * k] + x[2 * k + 1] : 0;
    }
  }
  per_column_ *= 2;
}

void BeamPictures::take(const BeamChunk& chunk) {
  if (n_beams_ == 0) return;
  if (segment_ < 0) {
    segment_ = chunk.segment;
    first_sample_ = chunk.first_sample;
    clock_ = chunk.clock;
  }
  // The picture is of the first segment: another one has another time.
  if (chunk.segment != segment_ || chunk.first_sample < first_sample_) return;
  const std::int64_t first = chunk.first_sample - first_sample_;
  while (first + chunk.n_samples > kColumns * per_column_) coarsen();
  n_columns_ = (first + chunk.n_samples + per_column_ - 1) / per_column_;
  const std::int64_t n_channels = stream_.frequency.n_channels;
  std::vector<float> lost(n_channels, 0);
  for (std::int64_t beam = 0; beam < n_beams_; ++beam) {
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const std::int64_t cell = (beam * n_rows_ + c / per_row_) * kColumns;
      for (std::int64_t t = 0; t < chunk.n_samples;) {
        const std::int64_t column = (first + t) / per_column_;
        const std::int64_t n =
            std::min(chunk.n_samples - t, (column + 1) * per_column_ - first - t);
        const float sum = sum_of(chunk.row(beam, c) + t, n);
        sums_[cell + column] += sum;
        counts_[cell + column] += static_cast<float>(n);
        const auto at = static_cast<std::size_t>(beam * n_channels + c);
        band_[at] += static_cast<double>(sum);
        band_counts_[at] += static_cast<double>(n);
        t += n;
      }
    }
    for (const auto& gap : chunk.absent) {
      for (std::int64_t s = gap.begin; s < gap.end; ++s) {
        const std::int64_t column = (s - first_sample_) / per_column_;
        counts_[(beam * n_rows_ + gap.channel_begin / per_row_) * kColumns + column] -= 1;
      }
      band_counts_[beam * n_channels + gap.channel_begin] -=
          static_cast<double>(gap.end - gap.begin);
    }
  }
}

void BeamPictures::write(std::int64_t beam, const std::string& path) const {
  const std::int64_t n_channels = stream_.frequency.n_channels;
  const double half = 0.5 * stream_.frequency.channel_width_hz;
  Panel spectrum;
  spectrum.title = "Beam " + stream_.beams[beam].name + ": power over time";
  spectrum.x_label = "time (s)";
  spectrum.y_label = "frequency (MHz)";
  spectrum.color_label = "power above the mean of its channel (\u03c3 of the noise of a cell)";
  spectrum.n_rows = n_rows_;
  spectrum.n_columns = n_columns_;
  spectrum.x_max = static_cast<double>(n_columns_ * per_column_) * stream_.sample_interval_s();
  spectrum.y_min = (stream_.frequency.first_center_hz - half) * 1e-6;
  // The last row may hold fewer channels than the others.
  spectrum.y_max = spectrum.y_min + static_cast<double>(n_rows_ * per_row_) *
                                        stream_.frequency.channel_width_hz * 1e-6;
  spectrum.first_row_at_top = false;
  for (std::int64_t row = 0; row < n_rows_; ++row) {
    const float* sums = sums_.data() + (beam * n_rows_ + row) * kColumns;
    const float* counts = counts_.data() + (beam * n_rows_ + row) * kColumns;
    double total = 0, count = 0;
    for (std::int64_t k = 0; k < n_columns_; ++k) total += sums[k], count += counts[k];
    const double mean = count > 0 ? total / count : 0;
    for (std::int64_t k = 0; k < n_columns_; ++k) {
      const double n = counts[k];
      // Power of noise, mean of n T spectra: rms = mean / sqrt(n T).
      const double sigma =
          mean / std::sqrt(std::max(1.0, n * static_cast<double>(stream_.integration)));
      spectrum.values.push_back(n > 0 && mean > 0 ? static_cast<float>((sums[k] / n - mean) / sigma)
                                                  : kNaN);
    }
  }
  Panel band;
  band.title = "Bandpass";
  band.x_label = "frequency (MHz)";
  band.y_label = "mean power (dB, 0 = median)";
  band.x_min = spectrum.y_min;
  band.x_max = (stream_.frequency.center_hz(n_channels - 1) + half) * 1e-6;
  band.y_max = band.y_min;
  band.n_columns = n_channels;
  auto& line = band.series.emplace_back();
  std::vector<float> known;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const auto at = static_cast<std::size_t>(beam * n_channels + c);
    const double mean = band_counts_[at] > 0 ? band_[at] / band_counts_[at] : 0;
    line.values.push_back(mean > 0 ? static_cast<float>(10 * std::log10(mean)) : kNaN);
    if (mean > 0) known.push_back(line.values.back());
  }
  if (!known.empty()) {
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    for (float& v : line.values) v -= *middle;
  }
  const auto& info = stream_.beams[beam];
  write_picture(
      path, {spectrum, band},
      fmt::format("{} UTC  \u00b7  RA {:.3f}\u00b0 Dec {:+.3f}\u00b0  \u00b7  azimuth {:.1f}\u00b0 "
                  "elevation {:.1f}\u00b0  \u00b7  {} antennas  \u00b7  Ryle {}",
                  utc_iso(clock_.tai_ns(first_sample_)), info.position.ra_rad / kDegree_rad,
                  info.position.dec_rad / kDegree_rad,
                  std::fmod(info.azimuth_rad / kDegree_rad + 360, 360),
                  info.elevation_rad / kDegree_rad, info.n_antennas, version()),
      config_.output.overwrite);
}

void BeamPictures::finish(RunSummary& summary) {
  if (segment_ < 0 || n_columns_ == 0) return;
  for (std::int64_t beam = 0; beam < n_beams_; ++beam) {
    std::string path = beam_file(config_, stream_.beams[beam].name);
    path.replace(path.size() - 4, 4, ".png");
    try {
      write(beam, path);
      summary.products.push_back(path);
    } catch (const Error& e) {
      summary.errors.emplace_back(e.what());
    }
  }
}

}  // namespace ryle::pipeline
