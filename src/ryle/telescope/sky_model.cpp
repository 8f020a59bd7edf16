// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/sky_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/source_table.hpp"

namespace ryle {
namespace {

constexpr std::string_view kSun = "Sun";
// Sources whose flux is published and which one antenna of a station sees.
constexpr const char* kAteam[] = {"Cyg A", "Cas A", "Tau A", "Vir A",
                                  "Hya A", "For A", "Pic A", "Her A"};

SkySource source_of(const detail::TabulatedSource& row) {
  SkySource source;
  source.name = row.name;
  source.fixed = SkyDirection{row.ra_deg * kDegree_rad, row.dec_deg * kDegree_rad};
  for (const auto& tabulated : row.laws) {
    if (tabulated.max_hz == 0) continue;
    FluxLaw law;
    law.reference_hz = tabulated.reference_hz;
    law.coefficients.assign(tabulated.coefficients.begin(), tabulated.coefficients.end());
    law.min_hz = tabulated.min_hz;
    law.max_hz = tabulated.max_hz;
    law.epoch_year = tabulated.epoch_year;
    law.fading_per_year = tabulated.fading_per_year;
    law.fading_error_per_year = tabulated.fading_error_per_year;
    law.relative_error = tabulated.relative_error;
    law.reference = tabulated.reference;
    source.laws.push_back(std::move(law));
  }
  return source;
}

SkySource sun_source() {
  SkySource source;
  source.name = kSun;
  return source;
}

const FluxLaw* law_at(const SkySource& source, double frequency_hz) {
  for (const FluxLaw& law : source.laws) {
    if (frequency_hz >= law.min_hz && frequency_hz <= law.max_hz) return &law;
  }
  return nullptr;
}

std::string frequency_text(double hz) {
  return hz >= 1e9 ? fmt::format("{:g} GHz", hz / 1e9) : fmt::format("{:g} MHz", hz / 1e6);
}

bool is_file_name(std::string_view word) {
  const auto dot = word.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string ending = lower_case(std::string(word.substr(dot)));
  for (const char* known : {".csv", ".tsv", ".txt", ".skymodel", ".bbs", ".json", ".yaml", ".yml"})
    if (ending == known) return true;
  return false;
}

}  // namespace

SkyDirection SkySource::direction(std::int64_t tai_ns, const ArrayLayout* site) const {
  return fixed ? *fixed : body(name, tai_ns, site);
}

double julian_year(std::int64_t tai_ns) {
  const auto jd = utc_julian_date(tai_ns);
  return 2000 + ((jd[0] - 2'451'545.0) + jd[1]) / 365.25;
}

bool has_flux(const SkySource& source, double frequency_hz) {
  return law_at(source, frequency_hz) != nullptr;
}

std::string flux_range(const SkySource& source) {
  std::string text;
  for (const FluxLaw& law : source.laws) {
    text += (text.empty() ? "" : ", ") + frequency_text(law.min_hz) + " to " +
            (std::isfinite(law.max_hz) ? frequency_text(law.max_hz) : "any frequency");
  }
  return text.empty() ? "no flux is known" : text;
}

FluxDensity flux_density(const SkySource& source, double frequency_hz, double year) {
  const FluxLaw* law = law_at(source, frequency_hz);
  if (law == nullptr) {
    throw ConfigError(fmt::format(
        "{}: its flux density at {} is not known ({}), and none is extrapolated; give a model file "
        "that has it, or leave the source out",
        source.name, frequency_text(frequency_hz), flux_range(source)));
  }
  const double x = std::log10(frequency_hz / law->reference_hz);
  double log_flux = 0;
  for (std::size_t k = law->coefficients.size(); k-- > 0;)
    log_flux = log_flux * x + law->coefficients[k];
  double jy = std::pow(10.0, log_flux);
  double relative_error = law->relative_error;
  if (law->fading_per_year != 0) {
    const double years = year - law->epoch_year;
    jy *= std::pow(1 - law->fading_per_year, years);
    relative_error = std::hypot(relative_error, law->fading_error_per_year * years);
  }
  if (!std::isfinite(jy))
    throw ConfigError(fmt::format(
        "{}: its flux density at {} is not a finite number: look at its spectral index and "
        "curvature in the model",
        source.name, frequency_text(frequency_hz)));
  return {law->sign * jy, relative_error * jy};
}

SkyModel built_in_sky() {
  SkyModel sky;
  for (const auto& row : detail::tabulated_sources()) sky.sources.push_back(source_of(row));
  sky.sources.push_back(sun_source());
  return sky;
}

SkyModel sky_model_named(std::string_view text) {
  SkyModel sky;
  const auto add = [&](SkySource source) {
    const std::string key = detail::folded_name(source.name);
    for (SkySource& known : sky.sources) {
      if (detail::folded_name(known.name) != key || key.empty()) continue;
      // A name beside the group it belongs to asks for it by name.
      if (known.of_group != source.of_group) {
        known.of_group = false;
        return;
      }
      throw ConfigError("sky model \"" + std::string(text) + "\": " + source.name +
                        " is there twice; leave one out");
    }
    sky.sources.push_back(std::move(source));
  };
  for (const std::string& word : split(text, ',')) {
    if (word.empty()) continue;
    const std::string key = detail::folded_name(word);
    if (key == "ateam") {
      for (const char* name : kAteam) {
        SkySource source = source_of(*detail::find_tabulated(name));
        source.of_group = true;
        add(std::move(source));
      }
    } else if (is_file_name(word)) {
      SkyModel file = read_sky_model(word);
      // Components of one source share its name: they are of one file, not given twice.
      sky.sources.insert(sky.sources.end(), file.sources.begin(), file.sources.end());
      sky.notes.insert(sky.notes.end(), file.notes.begin(), file.notes.end());
    } else if (key == detail::folded_name(kSun)) {
      add(sun_source());
    } else if (const auto* row = detail::find_tabulated(word)) {
      add(source_of(*row));
    } else {
      std::vector<std::string> known{"a-team", std::string(kSun)};
      for (const auto& tabulated : detail::tabulated_sources()) known.emplace_back(tabulated.name);
      const std::string like = nearest_word(word, known);
      throw ConfigError("sky model: \"" + word + "\" is no source with a known place" +
                        (like.empty() ? "" : " (\"" + like + "\"?)") + "; known are " +
                        comma_separated(known) +
                        "; or give a file (.csv, .tsv, .txt, .skymodel, .bbs, .json)");
    }
  }
  if (sky.sources.empty()) {
    throw ConfigError("the sky model \"" + std::string(text) +
                      "\" names no source; write for example \"sun\" or \"Cas A, Cyg A\"");
  }
  return sky;
}

}  // namespace ryle
