// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_picture.hpp"

#include "ryle/core/units.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kMaxBins = 120, kMaxRows = 128, kDms = 65;

/// Time bins of a whole number of samples about the pulse.
struct Bins {
  std::int64_t samples = 1;  // per bin
  std::int64_t n = 0;
  double first = 0;  // tick of the left edge of the first bin, at the highest channel
};

Bins bins_of(const SearchEvent& e) {
  Bins b;
  const double half = std::max(8 * e.pulse.whole_fwhm_samples(), 24.0);
  b.samples = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::ceil(2 * half / static_cast<double>(kMaxBins))));
  b.n = std::min(kMaxBins, static_cast<std::int64_t>(2 * half) / b.samples) | 1;
  b.first =
      std::round(e.pulse.tick) - 0.5 - static_cast<double>((b.n / 2) * b.samples + b.samples / 2);
  return b;
}

/// Sum of (code - mean) of a channel over a bin, dedispersed; false where the window does not
/// reach.
bool bin_sum(const search::Band& band, const SearchEvent& e, const Bins& bins, std::int64_t channel,
             double dm, std::int64_t bin, double& sum) {
  const auto shift = static_cast<std::int64_t>(std::llround(band.delay_samples(channel, dm)));
  const std::int64_t first = static_cast<std::int64_t>(std::ceil(bins.first)) + bin * bins.samples +
                             shift - e.window_first;
  if (first < 0 || first + bins.samples > e.window_samples) return false;
  const std::uint8_t* x = e.codes.data() + channel * e.window_samples + first;
  sum = 0;
  for (std::int64_t t = 0; t < bins.samples; ++t)
    sum += static_cast<double>(x[t]) - search::kCodeMean;
  return true;
}

void fill_waterfall(const search::Band& band, const SearchEvent& e, const Bins& bins,
                    CandidatePicture& p) {
  const std::int64_t n = band.n_channels();
  p.n_frequencies = std::min(n, kMaxRows);  // rows of equal parts of the band
  p.waterfall.assign(p.n_frequencies * bins.n, kNaN);
  for (std::int64_t row = 0; row < p.n_frequencies; ++row) {
    for (std::int64_t bin = 0; bin < bins.n; ++bin) {
      double total = 0;
      std::int64_t count = 0;
      for (std::int64_t c = row * n / p.n_frequencies; c < (row + 1) * n / p.n_frequencies; ++c) {
        double sum = 0;
        if (e.channel_masked[c] != 0 || !bin_sum(band, e, bins, c, e.pulse.dm_pc_cm3, bin, sum))
          continue;
        total += sum;
        ++count;
      }
      if (count > 0)
        p.waterfall[row * bins.n + bin] = static_cast<float>(
            total / (e.noise * std::sqrt(static_cast<double>(count * bins.samples))));
    }
  }
}

/// Band sum in units of its own noise.
float series_value(const search::Band& band, const SearchEvent& e, const Bins& bins, double dm,
                   std::int64_t bin) {
  double total = 0;
  std::int64_t count = 0;
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    double sum = 0;
    if (e.channel_masked[c] != 0 || !bin_sum(band, e, bins, c, dm, bin, sum)) continue;
    total += sum;
    ++count;
  }
  return count > 0 ? static_cast<float>(
                         total / (e.noise * std::sqrt(static_cast<double>(count * bins.samples))))
                   : kNaN;
}

/// The tail of a scattered pulse in bins, by the mean of its times in all channels.
void add_tail(const search::Band& band, const SearchEvent& e, const Bins& bins,
              std::vector<double>& shape) {
  double tau = 0;
  for (const double hz : band.center_hz)
    tau += std::pow(band.center_hz.back() / hz, 4) * e.pulse.scattering_samples /
           static_cast<double>(band.n_channels() * bins.samples);
  if (!(tau > 0)) return;
  const double fall = -std::expm1(-1 / tau);
  double y = 0;
  for (double& v : shape) v = y += fall * (v - y);
}

}  // namespace

CandidatePicture candidate_picture(const search::Band& band, const SearchEvent& e) {
  CandidatePicture p;
  const Bins bins = bins_of(e);
  p.n_times = bins.n;
  p.first_time_s = (bins.first - e.pulse.tick) * band.sample_interval_s;
  p.last_time_s =
      p.first_time_s + static_cast<double>(bins.n * bins.samples) * band.sample_interval_s;
  fill_waterfall(band, e, bins, p);
  for (std::int64_t bin = 0; bin < bins.n; ++bin) {
    const float value = series_value(band, e, bins, e.pulse.dm_pc_cm3, bin);
    p.profile.push_back(std::isfinite(value) ? value : 0.0f);
  }
  // The template scaled to the profile by least squares.
  const double sigma = std::max(0.5, e.pulse.fwhm_samples / 2.3548);
  double product = 0, square = 0;
  std::vector<double> shape;
  for (std::int64_t bin = 0; bin < bins.n; ++bin) {
    const double z =
        (bins.first + (static_cast<double>(bin) + 0.5) * static_cast<double>(bins.samples) -
         e.pulse.tick) /
        sigma;
    shape.push_back(std::exp(-0.5 * z * z));
  }
  add_tail(band, e, bins, shape);
  for (std::size_t bin = 0; bin < shape.size(); ++bin) {
    product += shape[bin] * static_cast<double>(p.profile[bin]);
    square += shape[bin] * shape[bin];
  }
  for (const double v : shape)
    p.model.push_back(static_cast<float>(square > 0 ? v * product / square : 0));
  const double half = std::max(
      {4 * e.pulse.dm_error,
       6 * e.pulse.whole_fwhm_samples() / std::max(band.sweep_samples_per_dm(), 1e-9), 1e-3});
  p.n_dms = kDms;
  const double low = std::max(0.0, e.pulse.dm_pc_cm3 - half),
               step = 2 * half / static_cast<double>(kDms - 1);
  p.dm_low = low - 0.5 * step;
  p.dm_high = p.dm_low + step * static_cast<double>(kDms);
  for (std::int64_t row = 0; row < kDms; ++row)
    for (std::int64_t bin = 0; bin < bins.n; ++bin)
      p.dm_time.push_back(series_value(band, e, bins, low + step * static_cast<double>(row), bin));
  return p;
}

}  // namespace ryle::pipeline
