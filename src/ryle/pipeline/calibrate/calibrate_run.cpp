// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/calibrate/calibrate_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/visibility/element_beam_file.hpp"
#include "ryle/pipeline/calibrate/gain_sets.hpp"

namespace ryle::pipeline {
namespace {

std::string name_of(const Observation& observation, std::int64_t antenna) {
  const std::string& name = observation.array.antennas[antenna].name;
  return name.empty() ? fmt::format("{}", antenna) : name;
}

bool wants_fluxes(const CalibrateConfig& settings, const GainData& data) {
  const auto n = static_cast<std::int64_t>(data.source_names().size());
  if (settings.fluxes == "given" || n < 2) return false;
  if (settings.fluxes == "fitted") return true;
  for (std::int64_t k = 0; k < n; ++k)
    if (data.is_flux_free(k)) return true;
  return false;
}

/// The antenna of calibrate.reference: a name, or a number from 0.
std::int64_t named_antenna(const Observation& observation, const std::string& text) {
  const std::int64_t n = observation.array.n_antennas();
  for (std::int64_t a = 0; a < n; ++a)
    if (observation.array.antennas[a].name == text) return a;
  char rest = 0;
  long long number = -1;
  if (std::sscanf(text.c_str(), "%lld%c", &number, &rest) == 1 && number >= 0 && number < n)
    return number;
  throw ConfigError(fmt::format(
      "calibrate.reference = \"{}\": there is no antenna of this name, and numbers go from 0 to {}",
      text, n - 1));
}

/// The antenna with the smallest error over all sets that has a gain in each of their solutions.
std::int64_t best_antenna(const std::vector<GainSet>& sets, std::int64_t n_antennas) {
  std::int64_t best = -1;
  double smallest = 0;
  std::int64_t fewest = 0;
  for (std::int64_t a = 0; a < n_antennas; ++a) {
    double sum = 0;
    std::int64_t n_flagged = 0;
    for (const GainSet& set : sets) {
      const auto& g = set.solutions();
      for (std::int64_t s = 0; s < g.n_solutions; ++s) {
        n_flagged += g.is_flagged(s, a) ? 1 : 0;
        sum += std::pow(set.phase_sigma()[g.at(s, a)], 2);
      }
    }
    if (best < 0 || n_flagged < fewest || (n_flagged == fewest && sum < smallest)) {
      best = a;
      smallest = sum;
      fewest = n_flagged;
    }
  }
  return best;
}

void require_model_of_one(const CalibrateConfig& settings, const GainData& data) {
  if (settings.method != "eigenvector" || data.source_names().size() == 1) return;
  throw ConfigError(fmt::format(
      "calibrate.method = \"eigenvector\" is of one source that rules; the model has {} above {:g} "
      "deg: name one, or take stefcal",
      data.source_names().size(), settings.min_elevation_deg));
}

GainTable table_of(const GainData& data, const std::vector<GainSet>& sets,
                   const VisibilityFile& file) {
  GainTable t;
  t.observation = data.observation();
  t.n_pols = data.n_pols();
  const FrequencyAxis& axis = data.observation().frequency;
  for (const ChannelGroup& g : data.groups()) {
    t.center_hz.push_back(0.5 * (axis.center_hz(g.first) + axis.center_hz(g.last - 1)));
    t.width_hz.push_back(axis.channel_width_hz * static_cast<double>(g.last - g.first));
  }
  const VisibilityDump &first = file.dumps.front(), &last = file.dumps.back();
  t.start_tai_ns = first.start_tai_ns;
  t.middle_tai_ns = first.centroid_tai_ns + (last.centroid_tai_ns - first.centroid_tai_ns) / 2;
  t.interval_s =
      static_cast<double>(last.start_tai_ns - first.start_tai_ns) * 1e-9 + last.interval_s;
  const std::int64_t n = data.n_antennas();
  const auto size = static_cast<std::size_t>(n * t.n_channels() * t.n_pols);
  t.gains.assign(size, 1);
  t.flags.assign(size, 1);
  t.sigma_rad.assign(size, 0);
  t.sigma_amplitude.assign(size, 0);
  t.chi2.assign(size, 0);
  for (const GainSet& set : sets) {
    const auto& g = set.solutions();
    for (const std::int64_t pol : data.pols_of(set.set())) {
      for (std::int64_t a = 0; a < n; ++a) {
        for (std::int64_t s = 0; s < g.n_solutions; ++s) {
          const auto to = t.at(a, s, pol);
          const auto from = g.at(s, a);
          if (g.is_flagged(s, a)) continue;
          t.gains[to] = g.gains[from] / data.whitening(set.set(), s, a);
          t.flags[to] = 0;
          t.sigma_rad[to] = set.phase_sigma()[from];
          t.sigma_amplitude[to] = set.amplitude_sigma()[from];
          t.chi2[to] = g.chi2[from];
        }
      }
    }
  }
  return t;
}

/// Where no flux is known amplitudes are relative: their median over a table is 1.
void normalize(GainTable& t) {
  std::vector<double> amplitudes;
  for (std::size_t k = 0; k < t.gains.size(); ++k)
    if (t.flags[k] == 0) amplitudes.push_back(std::abs(t.gains[k]));
  if (amplitudes.empty()) return;
  const auto middle = amplitudes.begin() + static_cast<std::ptrdiff_t>(amplitudes.size() / 2);
  std::nth_element(amplitudes.begin(), middle, amplitudes.end());
  const double scale = *middle;
  for (std::size_t k = 0; k < t.gains.size(); ++k)
    if (t.flags[k] == 0) t.gains[k] /= scale;
}

void warn_of(const GainSetReport& set, const CalibrateConfig& settings,
             std::vector<std::string>& warnings) {
  constexpr double kMaxUnexplained = 0.05;
  const std::string where = set.name.empty() ? "" : "polarization " + set.name + ": ";
  if (set.n_without_data > 0)
    warnings.push_back(fmt::format("{}{} of {} solutions have no data and are flagged", where,
                                   set.n_without_data, set.n_solutions));
  const std::int64_t open = set.n_solutions - set.n_without_data - set.n_converged;
  if (open > 0)
    warnings.push_back(
        fmt::format("{}{} of {} solutions did not converge in {} rounds and are flagged", where,
                    open, set.n_solutions, settings.max_rounds));
  if (set.unexplained > kMaxUnexplained)
    warnings.push_back(fmt::format(
        "{}{:.0f} % of the power of the visibilities are neither the model nor noise: it is not "
        "the "
        "whole sky of these data (other sources, the Galaxy on short baselines: --uv-min)",
        where, 100 * set.unexplained));
}

void note_table(const CalibrateConfig& settings, CalibrateReport& report) {
  auto& notes = report.table.observation.provenance.notes;
  notes["gains_model"] = report.table.model;
  notes["gains_method"] = settings.method == "auto" ? "stefcal" : settings.method;
  notes["gains_uv_min"] = fmt::format("{:g} wavelengths", settings.uv_min);
  notes["gains_beam"] = settings.beam;
  for (const GainSetReport& set : report.sets) {
    const std::string of = set.name.empty() ? "" : " " + set.name;
    notes["gains_sigma" + of] =
        fmt::format("{:.3g} deg predicted, {:.3g} deg found, {:.3g} deg between halves",
                    set.predicted_sigma_deg, set.sigma_deg, set.halves_deg);
  }
  std::string dropped;
  for (const DroppedInput& d : report.dropped)
    dropped += fmt::format("{}{}{} {}", dropped.empty() ? "" : ", ", d.name,
                           d.set.empty() ? "" : " " + d.set, reason_text(d));
  if (!dropped.empty()) notes["gains_dropped"] = dropped;
  report.table.observation.provenance.implementations = {report.implementation};
}

}  // namespace

CalibrateReport calibrate_visibilities(const CalibrateConfig& settings, const VisibilityFile& file,
                                       std::int64_t channels, int n_workers) {
  Queue queue = Queue::cpu(n_workers);
  const SkyModel sky = sky_model_named(settings.model);
  const auto& inputs = file.observation.array.inputs;
  const ElementBeam beam =
      element_beam_of(settings.beam, inputs.empty() ? 0 : inputs.front().feed_angle_rad);
  GainData data(file, sky, settings, beam, channels);
  require_model_of_one(settings, data);
  CalibrateReport report;
  report.notes = data.left_out();
  report.notes.insert(report.notes.end(), sky.notes.begin(), sky.notes.end());
  report.warnings = data.warnings();
  if (const std::string before = gains_applied(file.observation); !before.empty())
    report.warnings.push_back("the table of gains " + before +
                              " was divided out of these visibilities before: the new gains are "
                              "those that are left, and hold for this file alone");
  std::vector<GainSet> sets;
  const bool fitted = wants_fluxes(settings, data);
  for (std::int64_t k = 0; k < data.n_sets(); ++k) {
    // A polarization without data must not stop the other.
    const auto powers = data.pair_powers(k);
    const bool is_empty =
        std::none_of(powers.begin(), powers.end(), [](double p) { return p > 0; });
    if (is_empty && (k + 1 < data.n_sets() || !sets.empty())) {
      report.warnings.push_back(fmt::format(
          "polarization {}: no visibility may be used (all are flagged or 0): it has no gains",
          data.set_name(k)));
      continue;
    }
    GainSet& set = sets.emplace_back(queue, data, settings, k);
    set.screen();
    // The first set finds the fluxes for all.
    if (fitted && sets.size() == 1) set.fit_fluxes();
    set.require_sensitivity();
    set.solve();
  }
  if (fitted)
    for (std::size_t k = 0; k < data.source_names().size(); ++k)
      report.flux_factors.emplace_back(data.source_names()[k], data.flux_factors()[k]);
  const std::int64_t reference = settings.reference == "auto"
                                     ? best_antenna(sets, data.n_antennas())
                                     : named_antenna(data.observation(), settings.reference);
  for (GainSet& set : sets) {
    set.set_reference(reference);
    report.sets.push_back(set.report());
    report.dropped.insert(report.dropped.end(), set.dropped().begin(), set.dropped().end());
    for (const DroppedInput& d : set.dropped())
      if (d.antenna == reference)
        report.warnings.push_back(
            fmt::format("the reference {} has no gain ({}): phases are not against it", d.name,
                        reason_text(d)));
  }
  report.implementation = sets.front().implementation();
  report.reference = name_of(data.observation(), reference);
  report.table = table_of(data, sets, file);
  report.table.reference_antenna = reference;
  report.table.model = data.model_text();
  bool any_flux = false;
  std::int64_t n_seen = 0;
  const auto n_sources = static_cast<std::int64_t>(data.source_names().size());
  for (std::int64_t k = 0; k < n_sources; ++k) {
    any_flux = any_flux || data.carries_scale(k);
    n_seen += data.is_seen(k) ? 1 : 0;
  }
  // Gains put one source wherever the model has one: two tell by their places which they are.
  if (fitted && n_sources > 1 && n_seen < 2) {
    any_flux = false;
    report.warnings.emplace_back(
        "one source of the model is seen alone (5 standard errors of its fitted flux), and gains "
        "cannot tell which one it is: phases may be those of another one, amplitudes are relative, "
        "without Jy (name the brightest source alone)");
  }
  if (any_flux) report.table.flux_unit = "Jy";
  if (!any_flux) normalize(report.table);
  for (const GainSetReport& set : report.sets) warn_of(set, settings, report.warnings);
  note_table(settings, report);
  if (any_flux && data.flux_error() > 0) {
    const std::string error = fmt::format("{:.2g} %", 100 * data.flux_error());
    report.table.observation.provenance.notes["gains_flux_error"] = error;
    report.notes.push_back("the flux of the model, and with it all of Jy, is known to " + error);
  }
  return report;
}

std::string to_json(const CalibrateReport& report, const std::vector<std::string>& products) {
  using Json = nlohmann::ordered_json;
  Json sets = Json::array();
  for (const GainSetReport& s : report.sets) {
    Json delays = Json::array();
    for (const auto& d : s.delays)
      delays.push_back({{"delay_ns", d.delay_s * 1e9},
                        {"sigma_ns", d.sigma_s * 1e9},
                        {"phase_deg", d.phase_rad / kDegree_rad},
                        {"coherence", d.coherence}});
    sets.push_back({{"polarization", s.name},
                    {"n_inputs", s.n_inputs},
                    {"n_solutions", s.n_solutions},
                    {"n_converged", s.n_converged},
                    {"n_without_data", s.n_without_data},
                    {"rounds", s.max_rounds},
                    {"source_fraction", s.source_fraction},
                    {"predicted_sigma_deg", s.predicted_sigma_deg},
                    {"bound", s.full_bound ? "full" : "independent noise"},
                    {"sigma_deg", s.sigma_deg},
                    {"phase_rms_deg", s.phase_rms_deg},
                    {"amplitude_rms", s.amplitude_rms},
                    {"halves_deg", s.halves_deg},
                    {"noise", s.noise},
                    {"unexplained", s.unexplained},
                    {"delays", std::move(delays)}});
  }
  Json dropped = Json::array();
  for (const DroppedInput& d : report.dropped)
    dropped.push_back({{"antenna", d.antenna},
                       {"name", d.name},
                       {"polarization", d.set},
                       {"why", reason_text(d)},
                       {"ratio", d.ratio}});
  Json fluxes = Json::object();
  for (const auto& [name, factor] : report.flux_factors) fluxes[name] = factor;
  Json json{{"products", products},
            {"implementation", report.implementation},
            {"table_id", gain_table_id(report.table)},
            {"model", report.table.model},
            {"flux_unit", report.table.flux_unit},
            {"reference", report.reference},
            {"sets", std::move(sets)},
            {"dropped", std::move(dropped)},
            {"flux_factors", std::move(fluxes)},
            {"notes", report.notes},
            {"warnings", report.warnings}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ryle::pipeline
