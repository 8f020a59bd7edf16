// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/calibrate/gain_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

/// Independent samples behind one count, 0 where the file does not say it.
double samples_of_count(const VisibilityFile& file) {
  const Observation& o = file.observation;
  const double width_hz =
      o.channel_bandwidth_hz > 0 ? o.channel_bandwidth_hz : o.frequency.channel_width_hz;
  double spectrum_s = o.spectrum_interval_s;
  if (!(spectrum_s > 0)) {
    // The integration that lost nothing says it: those that are flagged or partly so do not.
    double spectra_per_s = 0;
    for (const VisibilityDump& dump : file.dumps) {
      if (dump.counts.empty() || !(dump.interval_s > 0)) continue;
      const std::uint32_t largest = *std::max_element(dump.counts.begin(), dump.counts.end());
      spectra_per_s = std::max(spectra_per_s, static_cast<double>(largest) / dump.interval_s);
    }
    if (spectra_per_s > 0) spectrum_s = 1 / spectra_per_s;
  }
  const double samples = width_hz * spectrum_s;
  return samples > 0 && std::isfinite(samples) ? samples : 0;
}

/// Phases of data that nothing was taken out of are those of the array itself.
bool is_phased(const Observation& observation) {
  const auto& notes = observation.provenance.notes;
  const auto found = notes.find("fringe_stopping");
  return found == notes.end() || found->second != "none";
}

double length_of(const Vector3& v) { return std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]); }

ApparentSource of_channel(const ApparentSource& source, std::int64_t channel, double factor) {
  ApparentSource one;
  one.enu = source.enu;
  one.tangent = source.tangent;
  one.major_rad = source.major_rad;
  one.minor_rad = source.minor_rad;
  one.angle_rad = source.angle_rad;
  one.coherency = {source.coherency[channel]};
  for (cf64& c : one.coherency.front()) c *= factor;
  return one;
}

/// Solution of A x = y with pivoting; empty where A is singular.
std::vector<double> solved(std::vector<double> a, std::vector<double> y) {
  const auto n = static_cast<std::int64_t>(y.size());
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t best = k;
    for (std::int64_t r = k + 1; r < n; ++r)
      if (std::abs(a[r * n + k]) > std::abs(a[best * n + k])) best = r;
    if (!(std::abs(a[best * n + k]) > 0)) return {};
    for (std::int64_t c = 0; c < n; ++c) std::swap(a[k * n + c], a[best * n + c]);
    std::swap(y[k], y[best]);
    for (std::int64_t r = 0; r < n; ++r) {
      if (r == k) continue;
      const double factor = a[r * n + k] / a[k * n + k];
      for (std::int64_t c = k; c < n; ++c) a[r * n + c] -= factor * a[k * n + c];
      y[r] -= factor * y[k];
    }
  }
  for (std::int64_t k = 0; k < n; ++k) y[k] /= a[k * n + k];
  return y;
}

}  // namespace

GainData::GainData(const VisibilityFile& file, const SkyModel& sky, const CalibrateConfig& settings,
                   const ElementBeam& beam, std::int64_t channels_per_solution)
    : file_(file),
      n_antennas_(file.observation.array.n_antennas()),
      n_pols_(file.dumps.front().n_pol_products == 1 ? 1 : 2),
      uv_min_(settings.uv_min),
      samples_per_count_(samples_of_count(file)) {
  if (n_pols_ == 1) sets_ = {{0}};
  const auto& notes = file.observation.provenance.notes;
  const auto single = notes.find("single_polarization");
  if (n_pols_ == 1 && single != notes.end()) {
    if (single->second == "Y" || single->second == "YY") single_product_ = 3;
    // The mean of XX and YY is either of them where the beam treats both alike.
    if (single->second == "I" && beam.is_polarized())
      throw ConfigError(fmt::format(
          "the visibilities are Stokes I, and the element beam {} differs between X and Y: take "
          "--beam isotropic or power",
          beam.name()));
  }
  if (n_pols_ == 2 && settings.polarization == "each") sets_ = {{0}, {1}};
  if (n_pols_ == 2 && settings.polarization != "each") sets_ = {{0, 1}};
  const std::int64_t n_channels = file.dumps.front().n_channels;
  const std::int64_t step =
      channels_per_solution > 0 ? std::min(channels_per_solution, n_channels) : n_channels;
  channels_per_solution_ = step;
  for (std::int64_t c = 0; c < n_channels; c += step)
    groups_.push_back({c, std::min(n_channels, c + step)});
  find_flagged();
  find_whitening();
  find_sources(sky, settings, beam);
}

std::string GainData::set_name(std::int64_t set) const {
  if (n_pols_ == 1) return "";
  if (sets_[set].size() == 2) return "X and Y";
  return sets_[set].front() == 0 ? "X" : "Y";
}

void GainData::find_flagged() {
  flagged_.assign(n_antennas_ * n_pols_, 0);
  for (const ArrayInput& input : file_.observation.array.inputs)
    if (input.bad && input.pol < n_pols_) flagged_[input.antenna * n_pols_ + input.pol] = 1;
}

void GainData::find_whitening() {
  // A band is not flat, and its slope differs from antenna to antenna: each solution by itself.
  std::vector<double> power(n_sets() * n_solutions() * n_antennas_), weight(power.size());
  for (const VisibilityDump& dump : file_.dumps) {
    for (std::int64_t set = 0; set < n_sets(); ++set) {
      for (std::int64_t a = 0; a < n_antennas_; ++a) {
        for (const std::int64_t pol : sets_[set]) {
          for (std::int64_t c = 0; c < dump.n_channels; ++c) {
            const auto k = dump.index(c, pair_index(a, a), n_pols_ == 1 ? 0 : 3 * pol);
            const double value = static_cast<double>(dump.data[k].real());
            if (!std::isfinite(value)) continue;
            const auto to = (set * n_solutions() + c / channels_per_solution_) * n_antennas_ + a;
            power[to] += value * dump.counts[k];
            weight[to] += dump.counts[k];
          }
        }
      }
    }
  }
  has_autos_ = std::any_of(power.begin(), power.end(), [](double p) { return p > 0; });
  whitening_.assign(power.size(), 1.0);
  if (!has_autos_) return scale_without_autos();
  for (std::size_t row = 0; row < power.size(); row += static_cast<std::size_t>(n_antennas_)) {
    std::vector<double> known;
    for (std::size_t k = row; k < row + static_cast<std::size_t>(n_antennas_); ++k) {
      if (!(power[k] > 0)) continue;
      whitening_[k] = std::sqrt(weight[k] / power[k]);
      known.push_back(whitening_[k]);
    }
    if (known.empty()) continue;  // a solution without data
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    std::nth_element(known.begin(), middle, known.end());
    for (std::size_t k = row; k < row + static_cast<std::size_t>(n_antennas_); ++k)
      if (!(power[k] > 0)) whitening_[k] = *middle;
  }
}

/// Sums are in single precision: values far from 1 leave its range.
void GainData::scale_without_autos() {
  double power = 0, n = 0;
  for (const VisibilityDump& dump : file_.dumps) {
    for (std::size_t k = 0; k < dump.data.size(); ++k) {
      const double value = std::norm(cf64(dump.data[k]));
      if (dump.counts[k] == 0 || !std::isfinite(value)) continue;
      power += value;
      ++n;
    }
  }
  if (power > 0 && n > 0) whitening_.assign(whitening_.size(), 1 / std::sqrt(std::sqrt(power / n)));
}

void GainData::find_sources(const SkyModel& sky, const CalibrateConfig& settings,
                            const ElementBeam& beam) {
  const Observation& o = file_.observation;
  std::vector<double> frequencies_hz;
  for (std::int64_t c = 0; c < file_.dumps.front().n_channels; ++c)
    frequencies_hz.push_back(o.frequency.center_hz(c));
  std::string nothing_up;
  std::size_t n_without_sky = 0;
  bool is_first = true;
  for (std::size_t d = 0; d < file_.dumps.size(); ++d) {
    const std::int64_t when = file_.dumps[d].centroid_tai_ns;
    ApparentSky seen;
    try {
      seen = apparent_sky(sky, o.array, when, frequencies_hz, beam,
                          settings.min_elevation_deg * kDegree_rad, o.earth_orientation);
    } catch (const ConfigError& error) {
      // What sets during a file leaves the integrations before it.
      if (nothing_up.empty()) nothing_up = error.what();
      ++n_without_sky;
      moments_.emplace_back();
      continue;
    }
    Moment moment;
    if (is_phased(o))
      moment.phase_center = uvw_axes(o.array, o.phase_center, when, o.earth_orientation)[2];
    for (const ApparentSource& source : seen.sources) {
      auto found = std::find(source_names_.begin(), source_names_.end(), source.name);
      if (found == source_names_.end()) {
        source_names_.push_back(source.name);
        flux_free_.push_back(source.is_flux_free ? 1 : 0);
        model_text_ +=
            fmt::format("{}{}{} at elevation {:.1f} deg", model_text_.empty() ? "" : ", ",
                        source.name, source.is_flux_free ? " (flux not known)" : "",
                        std::asin(std::clamp(source.enu[2], -1.0, 1.0)) / kDegree_rad);
        found = source_names_.end() - 1;
      }
      moment.source_index.push_back(found - source_names_.begin());
    }
    moment.sources = std::move(seen.sources);
    moments_.push_back(std::move(moment));
    for (std::string& line : seen.warnings)
      if (is_first) warnings_.push_back(std::move(line));
    if (is_first) left_out_ = std::move(seen.left_out);
    is_first = false;
  }
  if (n_without_sky == file_.dumps.size())
    throw ConfigError(nothing_up + " (--min-elevation-deg sets the limit)");
  if (n_without_sky > 0)
    warnings_.push_back(fmt::format("{} of {} integrations are not used: {} (--min-elevation-deg)",
                                    n_without_sky, file_.dumps.size(), nothing_up));
  for (std::size_t k = 0; k < source_names_.size(); ++k) {
    const auto n_up = static_cast<std::size_t>(
        std::count_if(moments_.begin(), moments_.end(), [&](const Moment& m) {
          return std::find(m.source_index.begin(), m.source_index.end(),
                           static_cast<std::int64_t>(k)) != m.source_index.end();
        }));
    if (n_up + n_without_sky < file_.dumps.size())
      left_out_.push_back(fmt::format("{}: above --min-elevation-deg in {} of {} integrations",
                                      source_names_[k], n_up, file_.dumps.size()));
  }
  flux_factors_.assign(source_names_.size(), 1);
  flux_significance_.assign(source_names_.size(), std::numeric_limits<double>::infinity());
}

std::vector<cf64> GainData::model(std::int64_t dump, std::int64_t channel, std::int64_t product,
                                  std::int64_t only) const {
  const Moment& moment = moments_[dump];
  std::vector<ApparentSource> sources;
  for (std::size_t k = 0; k < moment.sources.size(); ++k) {
    const std::int64_t index = moment.source_index[k];
    const double factor = only < 0 ? flux_factors_[index] : 1;
    if ((only >= 0 && index != only) || factor == 0) continue;
    sources.push_back(of_channel(moment.sources[k], channel, factor));
  }
  const double frequency_hz = file_.observation.frequency.center_hz(channel);
  const int wanted = static_cast<int>(product);
  return model_visibilities(file_.observation.array, sources, {&frequency_hz, 1},
                            moment.phase_center, {&wanted, 1});
}

/// Calls use(a, b, baseline, pol, visibility, weight), whitened, of what may be used.
template <class Use>
void GainData::visit(std::int64_t set, std::int64_t d, std::int64_t channel, const Use& use) const {
  if (moments_[d].sources.empty()) return;
  const VisibilityDump& dump = file_.dumps[d];
  const double per_count = samples_per_count_ > 0 ? samples_per_count_ : 1;
  const double wavelength_m =
      kSpeedOfLight_m_per_s / file_.observation.frequency.center_hz(channel);
  const auto& antennas = file_.observation.array.antennas;
  for (std::int64_t b = 1; b < n_antennas_; ++b) {
    for (std::int64_t a = 0; a < b; ++a) {
      const Vector3 &ra = antennas[a].enu_m, &rb = antennas[b].enu_m;
      const double length_m = length_of({ra[0] - rb[0], ra[1] - rb[1], ra[2] - rb[2]});
      if (length_m < uv_min_ * wavelength_m) continue;
      const std::int64_t s = channel / channels_per_solution_;
      const double scale = whitening(set, s, a) * whitening(set, s, b);
      for (const std::int64_t pol : sets_[set]) {
        if (flagged_[a * n_pols_ + pol] != 0 || flagged_[b * n_pols_ + pol] != 0) continue;
        const auto k = dump.index(channel, pair_index(a, b), n_pols_ == 1 ? 0 : 3 * pol);
        if (dump.counts[k] == 0) continue;
        use(a, b, pair_index(a, b), pol, scale * cf64(dump.data[k]), per_count * dump.counts[k]);
      }
    }
  }
}

calibrate::Equations GainData::equations(Queue& queue, std::int64_t set) const {
  calibrate::Equations equations(n_antennas_, n_solutions());
  queue.parallel_for(n_solutions(), [&](std::int64_t s) {
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(file_.dumps.size()); ++d) {
      for (std::int64_t c = groups_[s].first; c < groups_[s].last; ++c) {
        std::vector<cf64> models[2];
        for (const std::int64_t pol : sets_[set]) models[pol] = model(d, c, product_of(pol), -1);
        visit(set, d, c, [&](auto a, auto b, auto baseline, auto pol, cf64 v, double weight) {
          equations.add(s, a, b, v, models[pol][baseline], weight);
        });
      }
    }
  });
  return equations;
}

std::vector<double> GainData::pair_powers(std::int64_t set) const {
  std::vector<double> sum(n_antennas_ * n_antennas_), weight(sum.size());
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(file_.dumps.size()); ++d) {
    for (std::int64_t c = 0; c < file_.dumps[d].n_channels; ++c) {
      visit(set, d, c, [&](auto a, auto b, auto, auto, cf64 v, double w) {
        const std::int64_t s = c / channels_per_solution_;
        const double scale = whitening(set, s, a) * whitening(set, s, b);
        sum[a * n_antennas_ + b] += w * std::norm(v / scale);
        weight[a * n_antennas_ + b] += w;
      });
    }
  }
  for (std::int64_t b = 0; b < n_antennas_; ++b) {
    for (std::int64_t a = 0; a < b; ++a) {
      const double w = weight[a * n_antennas_ + b];
      const double mean = w > 0 ? sum[a * n_antennas_ + b] / w : 0;
      sum[a * n_antennas_ + b] = sum[b * n_antennas_ + a] = mean;
    }
  }
  return sum;
}

double GainData::n_samples(std::int64_t solution) const {
  if (!(samples_per_count_ > 0)) return 0;
  double sum = 0;
  for (std::size_t d = 0; d < file_.dumps.size(); ++d) {
    if (moments_[d].sources.empty()) continue;
    const VisibilityDump& dump = file_.dumps[d];
    std::uint32_t most = 0;
    for (std::int64_t c = groups_[solution].first; c < groups_[solution].last; ++c) {
      const auto begin = dump.counts.begin() + dump.index(c, 0, 0);
      most =
          std::max(most, *std::max_element(begin, begin + dump.n_baselines * dump.n_pol_products));
    }
    sum += most;
  }
  const double n_channels = static_cast<double>(groups_[solution].last - groups_[solution].first);
  return sum * n_channels * samples_per_count_;
}

double GainData::flux_error() const {
  double flux = 0, variance = 0;
  for (const Moment& moment : moments_) {
    for (const ApparentSource& source : moment.sources) {
      if (source.is_flux_free) continue;
      const auto& c = source.coherency[source.coherency.size() / 2];
      const double jy = std::abs(0.5 * (c[0] + c[3]).real());
      flux += jy;
      variance += std::pow(jy * source.relative_error, 2);
    }
    if (flux > 0) return std::sqrt(variance) / flux;
  }
  return 0;
}

std::int64_t GainData::n_spectra() const {
  std::int64_t n = 0;
  for (const VisibilityDump& dump : file_.dumps) n += std::max<std::int64_t>(1, dump.n_spectra);
  return n;
}

void GainData::fit_fluxes(std::int64_t set, const calibrate::Solutions& solutions) {
  constexpr std::int64_t kMaxSolutions = 16;
  const auto n = static_cast<std::int64_t>(source_names_.size());
  std::vector<double> a_matrix(n * n), y(n);
  double total = 0, n_values = 0;
  const std::int64_t step = (n_solutions() + kMaxSolutions - 1) / kMaxSolutions;
  for (std::int64_t s = 0; s < n_solutions(); s += step) {
    const std::int64_t c = (groups_[s].first + groups_[s].last) / 2;
    for (std::int64_t d = 0; d < static_cast<std::int64_t>(file_.dumps.size()); ++d) {
      std::vector<std::vector<cf64>> models;  // [source * 2 + pol]
      for (std::int64_t k = 0; k < n; ++k)
        for (std::int64_t pol = 0; pol < 2; ++pol)
          models.push_back(model(d, c, product_of(pol), k));
      visit(set, d, c, [&](auto a, auto b, auto baseline, auto pol, cf64 v, double w) {
        const cf64 gain =
            solutions.gains[solutions.at(s, a)] * std::conj(solutions.gains[solutions.at(s, b)]);
        total += w * std::norm(v);
        n_values += 2;
        for (std::int64_t k = 0; k < n; ++k) {
          const cf64 of_k = gain * models[2 * k + pol][baseline];
          y[k] += w * (v * std::conj(of_k)).real();
          for (std::int64_t l = 0; l < n; ++l)
            a_matrix[k * n + l] +=
                w * (of_k * std::conj(gain * models[2 * l + pol][baseline])).real();
        }
      });
    }
  }
  const auto factors = solved(a_matrix, y);
  if (factors.empty()) return;
  double residual = total;
  for (std::int64_t k = 0; k < n; ++k) {
    flux_factors_[k] = std::isfinite(factors[k]) ? std::max(0.0, factors[k]) : 0;
    residual -= factors[k] * y[k];
  }
  // Of a value's real or imaginary part. Errors of factors are taken alone: where sources lie so
  // close that their factors depend on each other, they are larger.
  const double variance =
      std::max(0.0, residual) / std::max(1.0, n_values - static_cast<double>(n));
  for (std::int64_t k = 0; k < n; ++k)
    flux_significance_[k] = flux_factors_[k] * std::sqrt(a_matrix[k * n + k] / variance);
}

std::vector<cf64> GainData::model_matrix(std::int64_t set, std::int64_t solution) const {
  const ChannelGroup& group = groups_[solution];
  const std::int64_t pol = sets_[set].front();
  std::vector<std::int64_t> used;
  for (std::size_t d = 0; d < moments_.size(); ++d)
    if (!moments_[d].sources.empty()) used.push_back(static_cast<std::int64_t>(d));
  const auto pairs =
      model(used[used.size() / 2], (group.first + group.last) / 2, product_of(pol), -1);
  std::vector<cf64> matrix(n_antennas_ * n_antennas_);
  for (std::int64_t b = 0; b < n_antennas_; ++b) {
    for (std::int64_t a = 0; a <= b; ++a) {
      matrix[a * n_antennas_ + b] = pairs[pair_index(a, b)];
      matrix[b * n_antennas_ + a] = std::conj(pairs[pair_index(a, b)]);
    }
  }
  return matrix;
}

}  // namespace ryle::pipeline
