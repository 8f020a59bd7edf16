// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/calibrate/gain_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kMinInputs = 4;
constexpr double kMinShare = 0.6;         // of the inputs that have data
constexpr double kIncoherentBelow = 0.3;  // of the median amplitude
constexpr double kMinNoiseShare =
    0.02;  // of the system power: a bound without noise has no inverse

double middle_value(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Bound over least squares of independent noise, for inputs of these amplitudes.
/// @shape model [input][input] of the inputs in `live`; result in their order
calibrate::ErrorBound bound_ratios(const std::vector<cf64>& model, std::int64_t n_all,
                                   const std::vector<std::int64_t>& live,
                                   const std::vector<cf64>& gains, double system_power,
                                   double n_samples) {
  const auto n = static_cast<std::int64_t>(live.size());
  calibrate::BoundInput input;
  input.n_inputs = n;
  input.n_samples = n_samples;
  input.signal.resize(n * n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j)
      input.signal[i * n + j] =
          gains[live[i]] * std::conj(gains[live[j]]) * model[live[i] * n_all + live[j]];
    const double signal = input.signal[i * n + i].real();
    input.noise.push_back(std::max(kMinNoiseShare * system_power, system_power - signal));
  }
  calibrate::ErrorBound ratios = calibrate::error_bound(input);
  for (std::int64_t i = 0; i < n; ++i) {
    double power = 0;
    for (std::int64_t j = 0; j < n; ++j)
      if (j != i) power += std::norm(input.signal[i * n + j]);
    const double least_squares = system_power / std::sqrt(2 * n_samples * power);
    ratios.phase_rad[i] /= least_squares;
    ratios.amplitude[i] /= least_squares;
  }
  return ratios;
}

}  // namespace

std::string reason_text(const DroppedInput& d) {
  using calibrate::Dropped;
  switch (d.why) {
    case Dropped::no_data:
      return "no data";
    case Dropped::low_power:
      return fmt::format("dead: {:.3g} x the median power", d.ratio);
    case Dropped::high_power:
      return fmt::format("wild: {:.3g} x the median power", d.ratio);
    case Dropped::no_coherence:
      return fmt::format(
          "does not see the model: {:.2g} x the median gain (swapped, inverted band, other place?)",
          d.ratio);
    case Dropped::no:
      break;
  }
  return "";
}

GainSet::GainSet(Queue& queue, GainData& data, const CalibrateConfig& settings, std::int64_t set)
    : queue_(queue),
      data_(data),
      settings_(settings),
      set_(set),
      equations_(data.equations(queue, set)),
      is_dropped_(data.n_antennas(), 0) {
  report_.name = data.set_name(set);
  report_.n_solutions = data.n_solutions();
}

std::string GainSet::where() const {
  return report_.name.empty() ? "" : "polarization " + report_.name + ": ";
}

std::string GainSet::name_of(std::int64_t antenna) const {
  const std::string& name = data_.observation().array.antennas[antenna].name;
  return name.empty() ? fmt::format("{}", antenna) : name;
}

void GainSet::drop(const std::vector<calibrate::Dropped>& why, const std::vector<double>& ratios) {
  for (std::int64_t a = 0; a < data_.n_antennas(); ++a) {
    if (why[a] == calibrate::Dropped::no || is_dropped_[a] != 0) continue;
    is_dropped_[a] = 1;
    equations_.drop(a);
    dropped_.push_back({a, name_of(a), report_.name, why[a], ratios[a]});
  }
}

void GainSet::screen() {
  const auto screened =
      calibrate::screen(data_.pair_powers(set_), {settings_.drop_below, settings_.drop_above});
  drop(screened.dropped, screened.ratio);
  require_inputs();
}

void GainSet::require_inputs() const {
  std::int64_t n_data = 0, n_left = 0;
  for (std::int64_t a = 0; a < data_.n_antennas(); ++a) n_left += is_dropped_[a] == 0 ? 1 : 0;
  for (const DroppedInput& d : dropped_) n_data += d.why != calibrate::Dropped::no_data ? 1 : 0;
  n_data += n_left;
  if (n_left >= kMinInputs &&
      static_cast<double>(n_left) >= kMinShare * static_cast<double>(n_data))
    return;
  if (n_data == 0)
    throw FormatError(fmt::format(
        "{}no visibility may be used: all are flagged, or shorter than --uv-min {:g} wavelengths",
        where(), settings_.uv_min));
  std::string list;
  for (const DroppedInput& d : dropped_) {
    if (d.why == calibrate::Dropped::no_data) continue;
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", d.name, reason_text(d));
    if (list.size() > 400) {
      list += ", ...";
      break;
    }
  }
  throw FormatError(fmt::format(
      "{}{} of {} antennas are left, and gains need {} and {:.0f} % of those with data{}; other "
      "limits are --drop-below and --drop-above, shorter baselines --uv-min",
      where(), n_left, data_.n_antennas(), kMinInputs, 100 * kMinShare,
      list.empty() ? "" : " (" + list + ")"));
}

std::vector<std::int64_t> GainSet::sampled_solutions() const {
  // A bound takes as long as many rounds of a solution, and changes slowly over a band.
  const std::int64_t wanted = data_.n_antennas() > 128 ? 3 : 8;
  std::vector<std::int64_t> with_data, list;
  for (std::int64_t s = 0; s < data_.n_solutions(); ++s)
    if (equations_.n_values(s) > 0) with_data.push_back(s);
  const auto n_data = static_cast<std::int64_t>(with_data.size());
  const std::int64_t n = std::min(wanted, n_data);
  for (std::int64_t k = 0; k < n; ++k) list.push_back(with_data[(2 * k + 1) * n_data / (2 * n)]);
  return list;
}

void GainSet::require_sensitivity() {
  std::vector<std::int64_t> live;
  for (std::int64_t a = 0; a < data_.n_antennas(); ++a)
    if (is_dropped_[a] == 0) live.push_back(a);
  std::vector<double> sigmas, fractions;
  std::int64_t n_detected = 0;
  const auto sampled = sampled_solutions();
  for (const std::int64_t s : sampled) {
    const double n_samples = data_.n_samples(s);
    const auto strength = calibrate::model_strength(equations_, s, n_samples);
    const double flux = strength.detected ? strength.flux : strength.limit;
    if (!(flux > 0)) continue;
    n_detected += strength.detected ? 1 : 0;
    // Rows divided by their autocorrelations have a system power of 1.
    const double noise = n_samples > 0 && data_.has_autos() ? 1 : strength.noise;
    std::vector<double> ratios(live.size(), 1);
    const auto model = data_.model_matrix(set_, s);
    if (n_samples > 0) {
      const double power = std::sqrt(noise);
      const std::vector<cf64> gains(data_.n_antennas(), std::sqrt(flux));
      ratios = bound_ratios(model, data_.n_antennas(), live, gains, power, n_samples).phase_rad;
      fractions.push_back(flux * model[live.front() * (data_.n_antennas() + 1)].real() / power);
    }
    report_.full_bound = n_samples > 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      double power = 0;
      for (std::int64_t b = 0; b < data_.n_antennas(); ++b)
        power += equations_.power(s, live[i], b);
      if (power > 0) sigmas.push_back(ratios[i] * std::sqrt(0.5 * noise / (flux * flux * power)));
    }
  }
  const bool seen = 2 * n_detected > static_cast<std::int64_t>(sampled.size());
  const double sigma_deg = middle_value(std::move(sigmas)) / kDegree_rad;
  report_.predicted_sigma_deg = sigma_deg;
  report_.source_fraction = middle_value(std::move(fractions));
  if (seen && sigma_deg <= settings_.max_sigma_deg) return;
  if (sigma_deg == 0)
    throw FormatError(where() + "no baseline that may be used has data" +
                      fmt::format(" (--uv-min {:g})", settings_.uv_min));
  // Errors fall with the root of the samples.
  const double more = std::max(1.0, std::pow(sigma_deg / settings_.max_sigma_deg, 2));
  const double spectra = std::ceil(more * static_cast<double>(data_.n_spectra()));
  const std::string groups =
      data_.n_solutions() > 1 ? ", or channels that share a gain (--channels-per-gain)" : "";
  throw FormatError(fmt::format(
      "{}the phases would be {}wrong by {:.0f} deg, more than --max-sigma-deg {:g}: {}; about "
      "{:.0f} "
      "spectra like {} would do{}",
      where(), seen ? "" : "at least ", sigma_deg, settings_.max_sigma_deg,
      seen ? (report_.source_fraction > 0
                  ? fmt::format("the model is {:.2g} of the power of an input",
                                report_.source_fraction)
                  : std::string("the noise of the baselines is too large"))
           : std::string("the model is not seen in the data"),
      spectra, data_.n_spectra() == 1 ? "this one" : fmt::format("these {}", data_.n_spectra()),
      groups));
}

calibrate::Solutions GainSet::solved(const calibrate::Equations& equations) {
  calibrate::Config config;
  config.n_inputs = equations.n_inputs();
  config.n_solutions = equations.n_solutions();
  config.method = settings_.method == "eigenvector" ? calibrate::Method::eigenvector
                                                    : calibrate::Method::stefcal;
  config.max_rounds = static_cast<int>(settings_.max_rounds);
  config.implementation = settings_.implementation;
  const auto solver = calibrate::make_solver(config);
  implementation_ = std::string(solver->implementation());
  calibrate::Solutions solutions;
  solver->execute(queue_, equations, solutions);
  return solutions;
}

void GainSet::rebuild() {
  equations_ = data_.equations(queue_, set_);
  for (std::int64_t a = 0; a < data_.n_antennas(); ++a)
    if (is_dropped_[a] != 0) equations_.drop(a);
}

double GainSet::fit_fluxes_from(std::int64_t source) {
  const auto n = static_cast<std::int64_t>(data_.source_names().size());
  data_.flux_factors().assign(n, 0);
  data_.flux_factors()[source] = 1;
  constexpr int kRounds = 3;  // gains and fluxes by turns
  for (int round = 0; round < kRounds; ++round) {
    rebuild();
    data_.fit_fluxes(set_, solved(equations_));
    // The gains take the scale: one flux stays that of the model.
    auto& factors = data_.flux_factors();
    std::int64_t kept = source;
    for (std::int64_t k = 0; k < n; ++k)
      if (data_.carries_scale(k) && !data_.carries_scale(kept)) kept = k;
    const double scale = factors[kept];
    if (!(scale > 0)) return std::numeric_limits<double>::infinity();
    for (double& f : factors) f /= scale;
  }
  rebuild();
  const auto found = solved(equations_);
  std::vector<double> noise;
  for (std::int64_t s = 0; s < found.n_solutions; ++s) {
    if (equations_.n_values(s) == 0) continue;
    noise.push_back(found.change[s] < 1e-3 ? found.noise[s]
                                           : std::numeric_limits<double>::infinity());
  }
  return middle_value(std::move(noise));
}

void GainSet::fit_fluxes() {
  // Gains can put any one source where the brightest is: only all of them together tell which it
  // was, by what they leave.
  constexpr std::int64_t kMaxStarts = 6;
  const auto n =
      std::min<std::int64_t>(kMaxStarts, static_cast<std::int64_t>(data_.source_names().size()));
  double least = std::numeric_limits<double>::infinity();
  std::vector<double> best(data_.source_names().size(), 1);
  std::vector<double> significance = data_.flux_significance();
  for (std::int64_t k = 0; k < n; ++k) {
    const double noise = fit_fluxes_from(k);
    if (!(noise < least)) continue;
    least = noise;
    best = data_.flux_factors();
    significance = data_.flux_significance();
  }
  data_.flux_factors() = best;
  data_.flux_significance() = significance;
  rebuild();
}

void GainSet::solve() {
  solutions_ = solved(equations_);
  if (data_.has_autos()) {
    const auto blind = calibrate::incoherent(solutions_, kIncoherentBelow);
    if (std::any_of(blind.dropped.begin(), blind.dropped.end(),
                    [](calibrate::Dropped d) { return d != calibrate::Dropped::no; })) {
      drop(blind.dropped, blind.ratio);
      require_inputs();
      solutions_ = solved(equations_);
    }
  }
  for (std::int64_t s = 0; s < solutions_.n_solutions; ++s) {
    report_.max_rounds = std::max(report_.max_rounds, solutions_.rounds[s]);
    bool any = false;
    for (std::int64_t a = 0; a < solutions_.n_inputs; ++a)
      any = any || !solutions_.is_flagged(s, a);
    report_.n_converged += any ? 1 : 0;
    report_.n_without_data += equations_.n_values(s) == 0 ? 1 : 0;
  }
  if (report_.n_converged == 0)
    throw FormatError(fmt::format(
        "{}none of {} solutions converged in {} rounds: is the model the sky of these data? "
        "(--max-rounds; --uv-min leaves short baselines out)",
        where(), solutions_.n_solutions, settings_.max_rounds));
  for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) {
    bool any = false;
    for (std::int64_t s = 0; s < solutions_.n_solutions; ++s)
      any = any || !solutions_.is_flagged(s, a);
    report_.n_inputs += any ? 1 : 0;
  }
  find_scatter();
  find_sigma();
  compare_halves();
  equations_ = {};  // the largest thing of a set: the next one need not stand beside it
  if (report_.halves_deg > settings_.max_sigma_deg)
    throw FormatError(fmt::format(
        "{}two halves of the baselines find phases that differ by {:.0f} deg, more than "
        "--max-sigma-deg {:g}: the model is not the sky of these data (sources that it lacks; "
        "--uv-min leaves the baselines out that see the Galaxy)",
        where(), report_.halves_deg, settings_.max_sigma_deg));
}

calibrate::ErrorBound GainSet::ratios_to_least_squares(std::int64_t s) const {
  const std::vector<double> ones(solutions_.n_inputs, 1);
  calibrate::ErrorBound ratios{ones, ones};
  const double n_samples = data_.n_samples(s);
  std::vector<std::int64_t> live;
  std::vector<cf64> gains(solutions_.n_inputs);
  for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) {
    gains[a] = solutions_.gains[solutions_.at(s, a)];
    if (!solutions_.is_flagged(s, a)) live.push_back(a);
  }
  if (!(n_samples > 0) || live.size() < 2 || !(solutions_.noise[s] > 0)) return ratios;
  const double power = data_.has_autos() ? 1 : std::sqrt(solutions_.noise[s]);
  const auto found =
      bound_ratios(data_.model_matrix(set_, s), solutions_.n_inputs, live, gains, power, n_samples);
  for (std::size_t i = 0; i < live.size(); ++i) {
    ratios.phase_rad[live[i]] = found.phase_rad[i];
    ratios.amplitude[live[i]] = found.amplitude[i];
  }
  return ratios;
}

void GainSet::find_sigma() {
  phase_sigma_ = calibrate::least_squares_sigma(equations_, solutions_);
  amplitude_sigma_ = phase_sigma_;
  const auto sampled = sampled_solutions();
  std::vector<calibrate::ErrorBound> ratios;
  for (const std::int64_t s : sampled) ratios.push_back(ratios_to_least_squares(s));
  std::vector<double> all, noise;
  for (std::int64_t s = 0; s < solutions_.n_solutions; ++s) {
    if (equations_.n_values(s) == 0) continue;
    // The noise of a bright source looks like other gains, which take it out of the residuals: what
    // is left is no less than the noise of the samples, more where the model lacks something.
    const double residual = solutions_.noise[s];
    const bool known = data_.has_autos() && data_.n_samples(s) > 0 && residual > 0;
    const double scale = known ? std::sqrt(std::max(1.0, residual) / residual) : 1;
    const auto next = std::min_element(
        sampled.begin(), sampled.end(),
        [s](std::int64_t i, std::int64_t j) { return std::abs(i - s) < std::abs(j - s); });
    const auto& of_nearest = ratios[static_cast<std::size_t>(next - sampled.begin())];
    for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) {
      const auto k = solutions_.at(s, a);
      phase_sigma_[k] *= scale * of_nearest.phase_rad[a];
      amplitude_sigma_[k] *= scale * of_nearest.amplitude[a];
      if (phase_sigma_[k] > 0) all.push_back(phase_sigma_[k]);
    }
    noise.push_back(solutions_.noise[s]);
  }
  report_.sigma_deg = middle_value(std::move(all)) / kDegree_rad;
  report_.noise = middle_value(std::move(noise));
  if (!data_.has_autos() || sampled.empty() || !(data_.n_samples(sampled.front()) > 0)) return;
  double power = 0, n_values = 0;
  for (std::int64_t s = 0; s < solutions_.n_solutions; ++s) {
    for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) power += equations_.data_power(s, a);
    n_values += static_cast<double>(equations_.n_values(s));
  }
  if (power > 0) report_.unexplained = std::max(0.0, report_.noise - 1) * n_values / power;
}

void GainSet::find_scatter() {
  double phase2 = 0, amplitude2 = 0;
  std::int64_t n_used = 0;
  for (std::int64_t s = 0; s < solutions_.n_solutions; ++s) {
    cf64 mean{};
    double amplitude = 0;
    std::int64_t n = 0;
    for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) {
      if (solutions_.is_flagged(s, a)) continue;
      const cf64 g = solutions_.gains[solutions_.at(s, a)];
      mean += g / std::abs(g);
      amplitude += std::abs(g);
      ++n;
    }
    if (n == 0) continue;
    amplitude /= static_cast<double>(n);
    for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) {
      if (solutions_.is_flagged(s, a)) continue;
      const cf64 g = solutions_.gains[solutions_.at(s, a)];
      phase2 += std::pow(std::arg(g * std::conj(mean)), 2);
      amplitude2 += std::pow(std::abs(g) / amplitude - 1, 2);
      ++n_used;
    }
  }
  if (n_used == 0) return;
  report_.phase_rms_deg = std::sqrt(phase2 / static_cast<double>(n_used)) / kDegree_rad;
  report_.amplitude_rms = std::sqrt(amplitude2 / static_cast<double>(n_used));
}

void GainSet::compare_halves() {
  // Few gains: several splits, so that the luck of one counts less.
  const std::uint64_t n_splits = solutions_.n_solutions < 8 ? 4 : 1;
  double sum = 0;
  std::int64_t n = 0;
  for (std::uint64_t split = 0; split < n_splits; ++split) {
    const auto first = solved(equations_.half(0, split)),
               second = solved(equations_.half(1, split));
    for (std::int64_t s = 0; s < first.n_solutions; ++s) {
      cf64 turn{};
      const auto product = [&](std::int64_t a) {
        return first.gains[first.at(s, a)] * std::conj(second.gains[second.at(s, a)]);
      };
      for (std::int64_t a = 0; a < first.n_inputs; ++a)
        if (std::abs(product(a)) > 0) turn += product(a) / std::abs(product(a));
      for (std::int64_t a = 0; a < first.n_inputs; ++a) {
        if (!(std::abs(product(a)) > 0)) continue;
        sum += std::pow(std::arg(product(a) * std::conj(turn)), 2);
        ++n;
      }
    }
  }
  // Each half has twice the variance of the whole, their difference four times.
  if (n > 0) report_.halves_deg = 0.5 * std::sqrt(sum / static_cast<double>(n)) / kDegree_rad;
}

void GainSet::set_reference(std::int64_t antenna) {
  calibrate::gauge(solutions_, antenna);
  const double width_hz = data_.observation().frequency.channel_width_hz;
  const auto& groups = data_.groups();
  if (solutions_.n_solutions < 3 || !(width_hz > 0)) return;
  // A last group of fewer channels is off the even steps by less than half of one.
  const double step_hz = width_hz * static_cast<double>(groups[0].last - groups[0].first);
  report_.delays.clear();
  for (std::int64_t a = 0; a < solutions_.n_inputs; ++a) {
    std::vector<cf64> gains;
    std::vector<double> weights;
    for (std::int64_t s = 0; s < solutions_.n_solutions; ++s) {
      const auto k = solutions_.at(s, a);
      gains.push_back(solutions_.gains[k]);
      weights.push_back(phase_sigma_[k] > 0 ? 1 / (phase_sigma_[k] * phase_sigma_[k]) : 0);
    }
    report_.delays.push_back(calibrate::fit_delay(gains, weights, step_hz));
  }
}

}  // namespace ryle::pipeline
