// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/quick_look.hpp"

#include "ryle/core/baseline.hpp"
#include "ryle/pipeline/visibility/imaging.hpp"
#include "ryle/plot/products.hpp"
#include "ryle/plot/sky.hpp"

namespace ryle::pipeline {
namespace {

// Mean auto power of all unflagged inputs, per channel.
std::vector<float> mean_autos(const VisibilityDump& dump) {
  std::vector<float> row(dump.n_channels);
  for (std::int64_t c = 0; c < dump.n_channels; ++c) {
    double sum = 0;
    std::int64_t n = 0;
    for (std::int64_t a = 0; n_pairs(a) < dump.n_baselines; ++a) {
      for (std::int64_t pol = 0; pol < dump.n_pol_products; pol += 3) {
        const auto at = static_cast<std::size_t>(dump.index(c, pair_index(a, a), pol));
        if (dump.counts[at] == 0) continue;
        sum += dump.data[at].real();
        ++n;
      }
    }
    row[c] = n > 0 ? static_cast<float>(sum / static_cast<double>(n)) : 0.0F;
  }
  return row;
}

}  // namespace

void QuickLook::add(const VisibilityDump& dump) {
  if (sum_.empty()) {
    first_ = dump;
    first_.data.clear();
    first_.counts.clear();
    sum_.resize(dump.data.size());
    weight_.resize(dump.data.size());
  }
  for (std::size_t k = 0; k < dump.data.size(); ++k) {
    sum_[k] += static_cast<double>(dump.counts[k]) * cf64(dump.data[k]);
    weight_[k] += dump.counts[k];
  }
  last_.centroid_tai_ns = dump.centroid_tai_ns;
  last_.interval_s += dump.interval_s;
  last_.n_spectra += dump.n_spectra;

  std::vector<float> row = mean_autos(dump);
  if (!history_.empty() && history_dumps_.back() < dumps_per_row_) {
    auto& open = history_.back();
    const auto n = static_cast<float>(history_dumps_.back());
    for (std::size_t c = 0; c < open.size(); ++c) open[c] = (open[c] * n + row[c]) / (n + 1);
    ++history_dumps_.back();
    return;
  }
  if (history_.size() == kMaxRows) halve_history();
  history_.push_back(std::move(row));
  history_dumps_.push_back(1);
}

void QuickLook::halve_history() {
  for (std::size_t r = 0; r + 1 < history_.size(); r += 2) {
    for (std::size_t c = 0; c < history_[r].size(); ++c) {
      history_[r / 2][c] = 0.5F * (history_[r][c] + history_[r + 1][c]);
    }
    history_dumps_[r / 2] = 2 * dumps_per_row_;
  }
  history_.resize(history_.size() / 2);
  history_dumps_.resize(history_.size());
  dumps_per_row_ *= 2;
}

VisibilityDump QuickLook::mean() const {
  VisibilityDump mean = first_;
  mean.centroid_tai_ns =
      first_.centroid_tai_ns + (last_.centroid_tai_ns - first_.centroid_tai_ns) / 2;
  mean.interval_s = last_.interval_s;
  mean.n_spectra = last_.n_spectra;
  mean.data.resize(sum_.size());
  mean.counts.resize(sum_.size());
  for (std::size_t k = 0; k < sum_.size(); ++k) {
    mean.counts[k] = static_cast<std::uint32_t>(weight_[k]);
    if (weight_[k] > 0) mean.data[k] = cf32(sum_[k] / weight_[k]);
  }
  return mean;
}

void QuickLook::draw_matrix(const std::string& path, const Observation& observation,
                            bool overwrite) const {
  write_visibility_matrix_picture(path, mean(), observation, overwrite);
}

void QuickLook::draw_bandpass(const std::string& path, const Observation& observation,
                              bool overwrite) const {
  const VisibilityDump mean_dump = mean();
  write_bandpass_picture(path, history_, mean_dump.interval_s, mean_dump, observation, overwrite);
}

std::string QuickLook::draw_sky(const std::string& path, Queue& queue,
                                const Observation& observation, const ImageConfig& config,
                                const std::vector<SourceMark>& marks, bool overwrite) const {
  ImagingOptions options;
  options.n_pixels = config.n_pixels;
  options.width = config.width;
  options.channel_average = config.channel_average;
  options.taper_fwhm = config.taper_pixels * config.width / static_cast<double>(config.n_pixels);
  options.implementation = config.implementation;
  options.equalize_inputs = observation.flux_unit != "Jy";
  const std::vector<VisibilityDump> dumps{mean()};
  const auto result = make_image(queue, observation, dumps, options);
  SkyPictureOptions picture;
  // Marks are of a sky that is simulated: the bright sources of the real one are not in it.
  picture.sources = marks.empty();
  for (const auto& mark : marks) {
    WatchTarget& target = picture.watch.emplace_back();
    target.name = mark.label;
    target.fixed = direction_of_enu(observation.array, mark.enu, first_.start_tai_ns,
                                    observation.earth_orientation);
  }
  write_sky_picture(path, result.image, observation, picture, overwrite);
  return result.implementation;
}

}  // namespace ryle::pipeline
