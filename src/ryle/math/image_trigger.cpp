// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/math/image_trigger.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::math {
namespace {

constexpr std::int64_t kMinWindows = 64;     // of history
constexpr std::int64_t kSpareImages = 32;    // kept beyond the longest window, for cutouts
constexpr std::int64_t kMergeImages = 8;     // one event while sightings are this close in time
constexpr std::int64_t kMergePixels = 4;     // and in place
constexpr std::int64_t kBrightEvery = 64;    // images between updates of the bright mask
constexpr double kClip = 4;                  // deviations an outlier counts as
constexpr double kMad = 1.4826022185056018;  // Gaussian sigma of a median absolute deviation

/// Student t with nu degrees of freedom as the Gaussian deviate of equal tail (Wallace 1959).
double gaussian_of_t(double t, double nu) {
  return std::copysign(std::sqrt(nu * std::log1p(t * t / nu)), t);
}
double t_of_gaussian(double z, double nu) { return std::sqrt(nu * std::expm1(z * z / nu)); }

double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void check(const ImageTriggerConfig& c) {
  const auto bad = [](const std::string& why) { throw ConfigError("image trigger: " + why); };
  if (c.n_pixels < 5 || c.n_bins < 1 || c.n_planes < 1)
    bad("at least 5 pixels on a side, one bin and one plane are needed");
  if (!(c.cell_direction_cosine > 0)) bad("the cell must be a positive direction cosine");
  if (!(c.threshold > 0)) bad("the threshold must be positive");
  if (c.windows.empty() || c.windows.front() < 1 ||
      std::adjacent_find(c.windows.begin(), c.windows.end(), std::greater_equal<>()) !=
          c.windows.end())
    bad("windows must be ascending numbers of images, such as 1, 8, 64");
  if (c.history_images < 16 || c.min_history < 8)
    bad("statistics need a history of 16 images and 8 windows at least");
}

}  // namespace

/// Pixels above the elevation limit.
std::vector<std::int64_t> ImageTrigger::places(const ImageTriggerConfig& config) {
  std::vector<std::int64_t> pixels;
  const std::int64_t n = config.n_pixels;
  const double limit = std::cos(config.min_elevation_rad);
  for (std::int64_t y = 0; y < n; ++y) {
    for (std::int64_t x = 0; x < n; ++x) {
      const double l = static_cast<double>(n / 2 - x) * config.cell_direction_cosine;
      const double m = static_cast<double>(y - n / 2) * config.cell_direction_cosine;
      if (std::hypot(l, m) < limit) pixels.push_back(y * n + x);
    }
  }
  return pixels;
}

std::int64_t ImageTrigger::n_bytes(const ImageTriggerConfig& c) {
  check(c);
  const auto n_scales = static_cast<std::int64_t>(c.windows.size());
  const std::int64_t bands = 4 * (c.windows.back() + kSpareImages) + 24 * n_scales;
  const std::int64_t bins = checked_product({c.n_bins, 4 * c.windows.back() + 24}, "image trigger");
  return checked_product({bands + bins, c.n_planes, static_cast<std::int64_t>(places(c).size())},
                         "image trigger");
}

ImageTrigger::ImageTrigger(const ImageTriggerConfig& config) : config_(config) {
  check(config);
  const std::int64_t n = config.n_pixels;
  pixel_of_ = places(config);
  place_of_.assign(n * n, -1);
  for (std::size_t k = 0; k < pixel_of_.size(); ++k)
    place_of_[pixel_of_[k]] = static_cast<std::int64_t>(k);
  const auto places = static_cast<std::int64_t>(pixel_of_.size());
  if (places == 0) throw ConfigError("image trigger: no pixel lies above the elevation limit");
  bright_.assign(pixel_of_.size(), 0);
  const auto prepare = [&](Scale& scale, std::int64_t window, std::int64_t rows) {
    scale.window = window;
    const std::int64_t blocks = std::max(kMinWindows, config.history_images / window);
    scale.lambda_min = 2.0 / (static_cast<double>(blocks) + 1);
    const auto size = static_cast<std::size_t>(checked_product({rows, places}, "image trigger"));
    for (auto* values : {&scale.sum, &scale.mean, &scale.variance}) values->assign(size, 0.0);
  };
  for (const std::int64_t window : config.windows)
    prepare(scales_.emplace_back(), window, config.n_planes);
  prepare(bins_, 1, config.n_bins * config.n_planes);
  ring_images_ = config.windows.back() + kSpareImages;
  number_.assign(ring_images_, -1);
  band_ring_.resize(checked_product({ring_images_, config.n_planes, places}, "image trigger"));
  bin_ring_.resize(checked_product({config.windows.back(), config.n_bins, config.n_planes, places},
                                   "image trigger"));
}

std::int64_t ImageTrigger::n_bytes() const {
  std::size_t n = 4 * (band_ring_.size() + bin_ring_.size()) + 24 * bins_.mean.size();
  for (const Scale& scale : scales_) n += 24 * scale.mean.size();
  return static_cast<std::int64_t>(n);
}

std::int64_t ImageTrigger::n_searched() const {
  std::int64_t n = 0;
  for (std::size_t k = 0; k < pixel_of_.size(); ++k) n += bright_[k] == 0;
  return n;
}

const float* ImageTrigger::band(std::int64_t image, int plane) const {
  const auto places = static_cast<std::int64_t>(pixel_of_.size());
  return band_ring_.data() + ((image % ring_images_) * config_.n_planes + plane) * places;
}
float* ImageTrigger::band(std::int64_t image, int plane) {
  return const_cast<float*>(std::as_const(*this).band(image, plane));
}
const float* ImageTrigger::bin(std::int64_t image, std::int64_t bin, int plane) const {
  const auto places = static_cast<std::int64_t>(pixel_of_.size());
  return bin_ring_.data() +
         (((image % config_.windows.back()) * config_.n_bins + bin) * config_.n_planes + plane) *
             places;
}

/// Copies the searched part into the rings; false when the image must be skipped.
bool ImageTrigger::take(std::span<const float> pixels, std::span<const double> weights) {
  const std::int64_t size = config_.n_pixels * config_.n_pixels;
  if (static_cast<std::int64_t>(pixels.size()) != size * config_.n_bins * config_.n_planes ||
      (!weights.empty() && static_cast<std::int64_t>(weights.size()) != config_.n_bins)) {
    throw ConfigError("image trigger: " + std::to_string(pixels.size()) + " pixels and " +
                      std::to_string(weights.size()) + " weights for " +
                      std::to_string(config_.n_bins) + " bins x " +
                      std::to_string(config_.n_planes) + " planes x " + std::to_string(size));
  }
  for (const double w : weights) {
    if (!(w > 0)) return false;
  }
  bool finite = true;
  const float share = 1.0F / static_cast<float>(config_.n_bins);
  for (int p = 0; p < config_.n_planes; ++p) {
    float* sum = band(n_valid_, p);
    for (std::int64_t b = 0; b < config_.n_bins; ++b) {
      const float* from = pixels.data() + (b * config_.n_planes + p) * size;
      auto* to = const_cast<float*>(bin(n_valid_, b, p));
      for (std::size_t k = 0; k < pixel_of_.size(); ++k) {
        const float v = from[pixel_of_[k]];
        to[k] = v;
        sum[k] = (b == 0 ? 0.0F : sum[k]) + v * share;
        finite = finite && std::isfinite(v);
      }
    }
  }
  return finite;
}

/// Brings the sum of a window up to the newest image. The oldest is still in the ring, which is
/// longer than the window. Sums are double: after 1e9 images the walk of roundings is 1e-12.
void ImageTrigger::slide(Scale& scale) {
  const std::size_t places = pixel_of_.size();
  for (int p = 0; p < config_.n_planes; ++p) {
    double* sum = scale.sum.data() + static_cast<std::size_t>(p) * places;
    const float* in = band(n_valid_, p);
    const float* out = n_valid_ >= scale.window ? band(n_valid_ - scale.window, p) : nullptr;
    for (std::size_t k = 0; k < places; ++k)
      sum[k] += static_cast<double>(in[k]) - (out != nullptr ? static_cast<double>(out[k]) : 0.0);
  }
}

double ImageTrigger::deviation(const Scale& scale, int plane, std::int64_t place) const {
  const auto k =
      static_cast<std::size_t>(plane) * pixel_of_.size() + static_cast<std::size_t>(place);
  return scale.sum[k] / static_cast<double>(scale.window) - scale.mean[k];
}

double ImageTrigger::score(const Scale& scale, int plane, std::int64_t place) const {
  const auto k =
      static_cast<std::size_t>(plane) * pixel_of_.size() + static_cast<std::size_t>(place);
  const double variance = scale.variance[k] / (1 - scale.sum_h2) * (1 + scale.sum_h2);
  if (!(variance > 0)) return 0;
  return gaussian_of_t(deviation(scale, plane, place) / std::sqrt(variance), 1 / scale.sum_h2 - 1);
}

/// Everything beyond the threshold that is the largest of its 5 x 5.
void ImageTrigger::search(std::size_t index, std::vector<Candidate>& candidates) {
  const Scale& scale = scales_[index];
  if (scale.n_blocks < config_.min_history) return;
  const double nu = 1 / scale.sum_h2 - 1;
  const double t = t_of_gaussian(config_.threshold, nu);
  const double limit = t * t / (1 - scale.sum_h2) * (1 + scale.sum_h2);
  const std::size_t places = pixel_of_.size();
  const double per_image = 1 / static_cast<double>(scale.window);
  for (int p = 0; p < config_.n_planes; ++p) {
    const std::size_t row = static_cast<std::size_t>(p) * places;
    for (std::size_t k = 0; k < places; ++k) {
      const double d = scale.sum[row + k] * per_image - scale.mean[row + k];
      if (d * d < limit * scale.variance[row + k] || d == 0) continue;
      if (bright_[k] != 0) continue;
      const auto place = static_cast<std::int64_t>(k);
      const Candidate c{index, p, place, score(scale, p, place)};
      if (c.z != 0 && is_peak(scale, c)) candidates.push_back(c);
    }
  }
  n_trials_ += n_searched() * config_.n_planes;
}

bool ImageTrigger::is_peak(const Scale& scale, const Candidate& c) const {
  const std::int64_t n = config_.n_pixels;
  const std::int64_t pixel = pixel_of_[c.place];
  const std::int64_t x = pixel % n, y = pixel / n;
  for (std::int64_t j = std::max<std::int64_t>(0, y - 2); j <= std::min(n - 1, y + 2); ++j) {
    for (std::int64_t i = std::max<std::int64_t>(0, x - 2); i <= std::min(n - 1, x + 2); ++i) {
      const std::int64_t place = place_of_[j * n + i];
      if (place < 0 || place == c.place) continue;
      const double other = std::abs(score(scale, c.plane, place));
      // Equal neighbours: the first one stands for both.
      if (other > std::abs(c.z) || (other == std::abs(c.z) && place < c.place)) return false;
    }
  }
  return true;
}

/// S/N of the other bins together, in the sign of the candidate: a narrow line leaves about 0.
/// Variances of single images stand for those of the window (white noise from image to image).
double ImageTrigger::rest_score(const Candidate& c) const {
  if (config_.n_bins < 2) return kNaN;
  const std::int64_t window = scales_[c.scale].window;
  const auto places = static_cast<std::int64_t>(pixel_of_.size());
  double sum = 0, variance = 0, strongest = 0, strongest_variance = 0;
  for (std::int64_t b = 0; b < config_.n_bins; ++b) {
    double value = 0;
    for (std::int64_t k = 0; k < window; ++k)
      value += static_cast<double>(bin(n_valid_ - k, b, c.plane)[c.place]);
    const auto at = static_cast<std::size_t>((b * config_.n_planes + c.plane) * places + c.place);
    value = (value / static_cast<double>(window) - bins_.mean[at]) * (c.z < 0 ? -1 : 1);
    const double own = bins_.variance[at] / (1 - bins_.sum_h2) / static_cast<double>(window);
    sum += value;
    variance += own;
    if (b == 0 || value > strongest) {
      strongest = value;
      strongest_variance = own;
    }
  }
  const double rest_variance = variance - strongest_variance;
  return rest_variance > 0 ? (sum - strongest) / std::sqrt(rest_variance) : 0;
}

// The beam is wider than a pixel, and what noise a pixel has is an estimate: the largest S/N need
// not be where the flux is.
std::int64_t ImageTrigger::brightest_near(const Candidate& c) const {
  const std::int64_t n = config_.n_pixels;
  const std::int64_t pixel = pixel_of_[c.place];
  const std::int64_t x = pixel % n, y = pixel / n;
  const Scale& scale = scales_[c.scale];
  std::int64_t best = c.place;
  double maximum = deviation(scale, c.plane, best) * (c.z < 0 ? -1 : 1);
  for (std::int64_t j = std::max<std::int64_t>(0, y - 2); j <= std::min(n - 1, y + 2); ++j) {
    for (std::int64_t i = std::max<std::int64_t>(0, x - 2); i <= std::min(n - 1, x + 2); ++i) {
      const std::int64_t place = place_of_[j * n + i];
      if (place < 0) continue;
      const double flux = deviation(scale, c.plane, place) * (c.z < 0 ? -1 : 1);
      if (flux <= maximum) continue;
      maximum = flux;
      best = place;
    }
  }
  return best;
}

void ImageTrigger::note(const Candidate& c, double rest) {
  const std::int64_t n = config_.n_pixels;
  const std::int64_t peak = brightest_near(c);
  const std::int64_t pixel = pixel_of_[peak];
  const Scale& scale = scales_[c.scale];
  ImageTriggerEvent event;
  event.n_images = scale.window;
  event.first_image = number_[(n_valid_ - scale.window + 1) % ring_images_];
  event.x = pixel % n;
  event.y = pixel / n;
  event.l = static_cast<double>(n / 2 - event.x) * config_.cell_direction_cosine;
  event.m = static_cast<double>(event.y - n / 2) * config_.cell_direction_cosine;
  event.plane = c.plane;
  for (int p = 0; p < config_.n_planes; ++p) event.snr.push_back(score(scale, p, c.place));
  event.peak = deviation(scale, c.plane, peak);
  event.snr_without_strongest_bin = rest;
  for (Open& open : open_) {
    if (std::abs(open.event.x - event.x) > kMergePixels ||
        std::abs(open.event.y - event.y) > kMergePixels)
      continue;
    open.last_seen = n_valid_;
    const double best = std::abs(open.event.snr[open.event.plane]);
    if (std::abs(c.z) > best) open.event = event;
    return;
  }
  open_.push_back({event, n_valid_});
  fired_ = true;
}

void ImageTrigger::close_events(bool all) {
  ended_.clear();
  std::erase_if(open_, [&](const Open& open) {
    if (!all && n_valid_ - open.last_seen < kMergeImages) return false;
    ended_.push_back(open.event);
    return true;
  });
}

/// Takes a finished window into mean and variance (West 1979, exponential weights): with weight h
/// of the new value, mean += h d, variance = (1 - h) (variance + h d^2).
void ImageTrigger::learn(Scale& scale) const {
  ++scale.n_blocks;
  const double h = std::max(1.0 / static_cast<double>(scale.n_blocks), scale.lambda_min);
  const bool converged = scale.n_blocks > config_.min_history / 2;
  const double clip2 = kClip * kClip / (1 - std::min(scale.sum_h2, 0.5));
  const double per_image = 1 / static_cast<double>(scale.window);
  for (std::size_t k = 0; k < scale.mean.size(); ++k) {
    double d = scale.sum[k] * per_image - scale.mean[k];
    if (converged && d * d > clip2 * scale.variance[k])
      d = std::copysign(std::sqrt(clip2 * scale.variance[k]), d);
    scale.mean[k] += h * d;
    scale.variance[k] = (1 - h) * (scale.variance[k] + h * d * d);
  }
  scale.sum_h2 = (1 - h) * (1 - h) * scale.sum_h2 + h * h;
}

void ImageTrigger::update_bright_mask() {
  std::fill(bright_.begin(), bright_.end(), std::uint8_t{0});
  if (!(config_.bright_limit > 0)) return;
  const std::size_t places = pixel_of_.size();
  const double* mean = scales_.front().mean.data();
  std::vector<double> values(mean, mean + places);
  const double middle = median_of(values);
  for (std::size_t k = 0; k < places; ++k) values[k] = std::abs(mean[k] - middle);
  const double limit = middle + config_.bright_limit * kMad * median_of(values);
  const std::int64_t n = config_.n_pixels, r = config_.mask_radius_px;
  for (std::size_t k = 0; k < places; ++k) {
    if (mean[k] <= limit) continue;
    const std::int64_t x = pixel_of_[k] % n, y = pixel_of_[k] / n;
    for (std::int64_t j = std::max<std::int64_t>(0, y - r); j <= std::min(n - 1, y + r); ++j) {
      for (std::int64_t i = std::max<std::int64_t>(0, x - r); i <= std::min(n - 1, x + r); ++i) {
        const std::int64_t place = place_of_[j * n + i];
        if (place >= 0) bright_[place] = 1;
      }
    }
  }
}

std::span<const ImageTriggerEvent> ImageTrigger::add(std::span<const float> pixels,
                                                     std::span<const double> weights) {
  fired_ = false;
  ended_.clear();
  const bool good = take(pixels, weights);
  ++n_added_;
  if (!good) {
    ++n_skipped_;
    return ended_;
  }
  number_[n_valid_ % ring_images_] = n_added_ - 1;
  std::vector<Candidate> candidates;
  for (std::size_t s = 0; s < scales_.size(); ++s) {
    slide(scales_[s]);
    if (n_valid_ + 1 >= scales_[s].window) search(s, candidates);
  }
  // Side lobes are a part of the flux. z is no measure of it: with a short history it hardly grows
  // beyond 20 deviations.
  std::vector<double> strongest(scales_.size(), 0.0);
  const auto flux = [this](const Candidate& c) {
    return std::abs(deviation(scales_[c.scale], c.plane, c.place));
  };
  for (const Candidate& c : candidates) strongest[c.scale] = std::max(strongest[c.scale], flux(c));
  const auto bins = static_cast<double>(config_.n_bins);
  for (const Candidate& c : candidates) {
    if (flux(c) < config_.side_lobe_fraction * strongest[c.scale]) continue;
    const double rest = rest_score(c);
    // A flat spectrum leaves sqrt((B - 1) / B) of its S/N without one of its B bins.
    const double flat = std::abs(c.z) * std::sqrt((bins - 1) / bins);
    if (config_.n_bins > 1 && rest < config_.broadband_fraction * flat) {
      ++n_narrow_;
      continue;
    }
    note(c, rest);
  }
  // The newest values are learnt after they were judged.
  for (Scale& scale : scales_) {
    if ((n_valid_ + 1) % scale.window == 0) learn(scale);
  }
  const std::size_t places = pixel_of_.size();
  for (std::int64_t b = 0; b < config_.n_bins; ++b) {
    for (int p = 0; p < config_.n_planes; ++p) {
      const float* v = bin(n_valid_, b, p);
      std::copy(v, v + places,
                bins_.sum.begin() + static_cast<std::ptrdiff_t>((b * config_.n_planes + p)) *
                                        static_cast<std::ptrdiff_t>(places));
    }
  }
  learn(bins_);
  if ((n_valid_ + 1) % kBrightEvery == 0 || n_valid_ + 1 == config_.min_history)
    update_bright_mask();
  close_events(false);
  ++n_valid_;
  return ended_;
}

std::span<const ImageTriggerEvent> ImageTrigger::flush() {
  close_events(true);
  return ended_;
}

ImageTrigger::Cutout ImageTrigger::cutout(const ImageTriggerEvent& event, std::int64_t half_px,
                                          std::int64_t n_before, std::int64_t n_after) const {
  Cutout out;
  std::vector<std::int64_t> images;  // in the ring, in order of time
  const std::int64_t last_image = event.first_image + event.n_images - 1 + n_after;
  // The oldest slot may hold an image that was skipped.
  for (std::int64_t k = std::max<std::int64_t>(0, n_valid_ - ring_images_ + 1); k < n_valid_; ++k) {
    const std::int64_t number = number_[k % ring_images_];
    if (number >= event.first_image - n_before && number <= last_image) images.push_back(k);
  }
  const std::int64_t side = 2 * half_px + 1, n = config_.n_pixels;
  out.shape = {static_cast<std::int64_t>(images.size()), config_.n_planes, side, side};
  if (!images.empty()) out.first_image = number_[images.front() % ring_images_];
  for (const std::int64_t k : images) {
    for (int p = 0; p < config_.n_planes; ++p) {
      for (std::int64_t y = event.y - half_px; y <= event.y + half_px; ++y) {
        for (std::int64_t x = event.x - half_px; x <= event.x + half_px; ++x) {
          const bool inside = x >= 0 && y >= 0 && x < n && y < n;
          const std::int64_t place = inside ? place_of_[y * n + x] : -1;
          out.values.push_back(place >= 0 ? band(k, p)[place]
                                          : std::numeric_limits<float>::quiet_NaN());
        }
      }
    }
  }
  return out;
}

}  // namespace ryle::math
