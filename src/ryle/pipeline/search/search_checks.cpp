// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ryle/engine/search/normalize.hpp"
#include "ryle/engine/search/robust.hpp"
#include "ryle/pipeline/search/search_beams.hpp"

namespace ryle::pipeline {
namespace {

constexpr double kSurelyDispersed = 3;  // errors of the DM
constexpr double kMostlyThere = 0.7;    // part of the samples about an event
constexpr double kBesideThere = 0.75;   // and right beside it

/// Relative error of a scatter from the median of deviations of n numbers, 3 sigma.
double scatter_limit(double n) { return 1 + 3 / std::sqrt(2 * 0.37 * n); }

}  // namespace

BoxcarSeries::BoxcarSeries(const search::DedispersedCodes& series, const search::Baseline& baseline,
                           std::int64_t n_channels)
    : sigma_(baseline.sigma), weight_(baseline.weight) {
  const auto masked = static_cast<double>(search::kCodeMean * n_channels);
  excess_.push_back(0);
  weights_.push_back(0);
  for (std::size_t t = 0; t < series.sums.size(); ++t) {
    const auto w = static_cast<double>(series.columns[t]);
    excess_.push_back(excess_.back() + static_cast<double>(series.sums[t]) - masked -
                      (baseline.mean - masked) * w / baseline.weight);
    weights_.push_back(weights_.back() + w);
  }
}

double BoxcarSeries::snr(std::int64_t start, std::int64_t width) const {
  const auto from = static_cast<std::size_t>(start), to = static_cast<std::size_t>(start + width);
  const double weights = weights_[to] - weights_[from];
  return weights > 0 ? (excess_[to] - excess_[from]) / (sigma_ * std::sqrt(weights / weight_)) : 0;
}

double BoxcarSeries::weight(std::int64_t start, std::int64_t width) const {
  const std::int64_t from = std::clamp<std::int64_t>(start, 0, size());
  const std::int64_t to = std::clamp<std::int64_t>(start + width, from, size());
  return (weights_[to] - weights_[from]) / (weight_ * static_cast<double>(width));
}

void check_surroundings(const BoxcarSeries& series, std::int64_t start, std::int64_t width,
                        double snr, PulseChecks& checks) {
  checks.has_baseline = true;
  // Windows that overlap by half tell as much as 1.5 times those that do not.
  std::vector<double> beside;
  const std::int64_t step = std::max<std::int64_t>(1, width / 2);
  for (std::int64_t t = 0; t + width <= series.size(); t += step) {
    if (t + 2 * width > start && t < start + 2 * width) continue;
    if (series.weight(t, width) > 0.75) beside.push_back(series.snr(t, width));
  }
  constexpr std::size_t kFewest = 12;
  if (beside.size() < kFewest) return;
  const double middle = search::detail::median_of(beside);
  checks.wander = search::detail::scatter_of(beside, middle);
  if (checks.wander > 0) checks.local_snr = (snr - middle) / checks.wander;
  const double n = static_cast<double>(beside.size()) * (width > 1 ? 0.75 : 1);
  if (checks.wander < scatter_limit(n)) checks.wander = 1;
}

void check_presence(const search::Band& band, double dm_pc_cm3, double tick, double width,
                    const std::vector<std::uint8_t>& codes, std::int64_t first_tick, std::int64_t n,
                    const std::vector<std::uint8_t>& masked, PulseChecks& checks) {
  constexpr std::int64_t kRun = 16;
  struct Part {
    double from, to;  // about the middle of the pulse
    double there = 0, all = 0;
  };
  const double half = 0.5 * width, about = 2 * width + 64, beside = 0.5 * width + 4;
  Part parts[] = {{-half - about, half + about}, {-half - beside, -half}, {half, half + beside}};
  std::vector<std::int32_t> data(static_cast<std::size_t>(n) + 1);  // samples before that are data
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    if (masked[c] != 0) continue;
    const std::uint8_t* x = codes.data() + c * n;
    for (std::int64_t t = 0; t < n;) {
      std::int64_t end = t + 1;
      while (end < n && x[end] == x[t]) ++end;
      const int step = end - t < kRun ? 1 : 0;
      for (; t < end; ++t) data[static_cast<std::size_t>(t) + 1] = data[t] + step;
    }
    const double middle = tick + band.delay_samples(c, dm_pc_cm3) - static_cast<double>(first_tick);
    for (Part& part : parts) {
      const auto at = [&](double column) {
        return std::clamp<std::int64_t>(std::llround(column), 0, n);
      };
      const std::int64_t from = at(middle + part.from), to = at(middle + part.to);
      part.there += data[to] - data[from];
      part.all += static_cast<double>(to - from);
    }
  }
  const auto fraction = [](const Part& p) { return p.all > 0 ? p.there / p.all : 0; };
  checks.present = fraction(parts[0]);
  checks.present_beside = std::min(fraction(parts[1]), fraction(parts[2]));
}

void CandidateFlags::add(const std::string& name, const std::string& reason) {
  names += (names.empty() ? "" : " ") + name;
  reasons += (reasons.empty() ? "" : "; ") + reason;
}

CandidateFlags candidate_flags(const BeamEvent& b, double sweep_samples_per_dm,
                               double sample_interval_s, double trial_dm_pc_cm3,
                               double dm_candidate_min_pc_cm3) {
  CandidateFlags flags;
  const SearchEvent& e = b.event;
  const PulseChecks& checks = e.checks;
  const double dm = e.pulse.dm_pc_cm3, ms = 1e3 * sample_interval_s;
  // A burst without dispersion, or too wide to tell: local interference until shown otherwise.
  if (dm - kSurelyDispersed * e.pulse.dm_error <= 0)
    flags.add("low_dm", fmt::format("DM {:.3g} is not above 0 by {:g} of its errors of {:.3g}", dm,
                                    kSurelyDispersed, e.pulse.dm_error));
  else if (dm < dm_candidate_min_pc_cm3)
    flags.add("low_dm",
              fmt::format("DM {:.6g} is below {:.6g} as asked", dm, dm_candidate_min_pc_cm3));
  if (e.rfi_suspect)
    flags.add("rfi_suspect", "it lies on a burst that may be interference and was left in");
  if (b.multibeam)
    flags.add("rfi_multibeam", fmt::format("{} beams in {} group{} see it", b.seen.size(),
                                           b.n_groups, b.n_groups > 1 ? "s" : ""));
  if (checks.widest_samples > 0 &&
      e.pulse.whole_fwhm_samples() > static_cast<double>(checks.widest_samples))
    flags.add("wide", fmt::format("its width of {:.4g} ms is beyond the widest boxcar of {:.4g} ms",
                                  e.pulse.whole_fwhm_samples() * ms,
                                  static_cast<double>(checks.widest_samples) * ms));
  const double widest =
      std::max(static_cast<double>(e.cluster.best.width), e.pulse.whole_fwhm_samples());
  const double moved = std::abs(dm - trial_dm_pc_cm3);
  if (e.refined && moved > checks.trial_gap_pc_cm3 + 3 * e.pulse.dm_error &&
      (moved - checks.trial_gap_pc_cm3) * sweep_samples_per_dm > 2 * widest + 1)
    flags.add("dm_moved", fmt::format("its DM {:.6g} is far from that of its boxcar, {:.6g}", dm,
                                      trial_dm_pc_cm3));
  if (checks.off_dm_snr > std::max(0.85 * e.pulse.snr, 0.5 * e.pulse.snr + 4))
    flags.add("stripe", fmt::format("S/N {:.1f} at DM {:.6g}, where a pulse would have half of its "
                                    "{:.1f}: it is there at all DMs",
                                    checks.off_dm_snr, checks.off_dm_pc_cm3, e.pulse.snr));
  if (!checks.has_baseline)
    flags.add("baseline", "no mean and rms could be measured beside it");
  else if (checks.wander > 1 && checks.local_snr < checks.threshold)
    flags.add("baseline",
              fmt::format("boxcars of its width beside it scatter {:.1f} times as noise does: by "
                          "them its S/N is {:.1f}",
                          checks.wander, checks.local_snr));
  if (checks.present < kMostlyThere)
    flags.add("sparse",
              fmt::format("{:.0f} % of the samples about it are there", 100 * checks.present));
  else if (checks.present_beside < kBesideThere)
    flags.add("sparse",
              fmt::format("it lies at the edge of a gap: {:.0f} % of the samples beside it "
                          "are there",
                          100 * checks.present_beside));
  return flags;
}

}  // namespace ryle::pipeline
