// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/calibrate/apply_gains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/telescope/gains.hpp"

namespace ryle::pipeline {
namespace {

/// Row of the table of each antenna of the data.
std::vector<std::int64_t> rows_of(const ArrayLayout& data, const ArrayLayout& table) {
  std::vector<std::int64_t> rows;
  for (std::int64_t a = 0; a < data.n_antennas(); ++a) {
    const std::string& name = data.antennas[a].name;
    const auto found = std::find_if(table.antennas.begin(), table.antennas.end(),
                                    [&](const Antenna& t) { return t.name == name; });
    if (found != table.antennas.end() && !name.empty()) {
      rows.push_back(found - table.antennas.begin());
    } else if (name.empty() && data.n_antennas() == table.n_antennas()) {
      rows.push_back(a);
    } else {
      throw ConfigError(fmt::format(
          "the table of gains has no antenna \"{}\": it is of another array ({} antennas, {} here)",
          name, table.n_antennas(), data.n_antennas()));
    }
  }
  return rows;
}

/// Channel of the table of each channel of the data: the one that holds it, else the nearest.
std::vector<std::int64_t> channels_of_table(const FrequencyAxis& axis, std::int64_t n_channels,
                                            const GainTable& table) {
  std::vector<std::int64_t> channels;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const double hz = axis.center_hz(c);
    const auto outside_hz = [&](std::int64_t t) {
      return std::max(0.0, std::abs(table.center_hz[t] - hz) - 0.5 * table.width_hz[t]);
    };
    std::int64_t best = 0;
    for (std::int64_t t = 1; t < table.n_channels(); ++t)
      if (outside_hz(t) < outside_hz(best)) best = t;
    const double half_hz = 0.5 * std::max(table.width_hz[best], axis.channel_width_hz);
    if (std::abs(table.center_hz[best] - hz) > 1.001 * half_hz + 1)
      throw ConfigError(
          fmt::format("the table of gains holds from {:.6g} to {:.6g} MHz, and there is a channel "
                      "at {:.6g} MHz",
                      table.center_hz.front() * 1e-6, table.center_hz.back() * 1e-6, hz * 1e-6));
    channels.push_back(best);
  }
  return channels;
}

/// Polarizations of the table whose gains calibrate a product of two polarizations of the data: of
/// each the place in the table of the first and of the second antenna.
using Pols = std::vector<std::array<std::int64_t, 2>>;

std::vector<Pols> pols_of_products(const VisibilityFile& file, const GainTable& table) {
  const std::string of_table = gain_polarization(table);
  if (file.dumps.front().n_pol_products != 1) {
    if (table.n_pols != 2)
      throw ConfigError("the table of gains is of " + of_table +
                        " alone, the visibilities are of X and Y");
    return {{{0, 0}}, {{0, 1}}, {{1, 0}}, {{1, 1}}};
  }
  const std::string of_data = lone_polarization(file.observation);
  if (of_table == of_data) return {{{0, 0}}};
  if (table.n_pols != 2)
    throw ConfigError("the table of gains is of " + of_table + " alone, the visibilities are of " +
                      of_data);
  if (of_data == "I") return {{{0, 0}, {1, 1}}};
  return {of_data == "YY" ? Pols{{1, 1}} : Pols{{0, 0}}};
}

/// Whether X and Y have the same gains: one was found for both.
bool are_shared(const GainTable& table) {
  for (std::size_t k = 0; k + 1 < table.gains.size(); k += 2)
    if (table.flags[k] == 0 && table.flags[k + 1] == 0 && table.gains[k] != table.gains[k + 1])
      return false;
  return true;
}

/// What the visibilities no longer are, or not yet.
void note_limits(Observation& o, const GainTable& table, std::int64_t n_products,
                 AppliedGains& applied) {
  if (table.flux_unit.empty() && o.flux_unit == "Jy")
    applied.warnings.emplace_back(
        "the table of gains has no flux scale: the visibilities were in Jy, and are uncalibrated "
        "now");
  o.flux_unit = table.flux_unit.empty() ? "uncalibrated" : table.flux_unit;
  if (n_products == 1 || are_shared(table)) return;
  o.provenance.notes["xy_phase"] =
      "not calibrated: gains of X and of Y were found apart; XY, YX, U and V have a phase of their "
      "own";
  applied.warnings.emplace_back(
      "the phase between X and Y is not calibrated: gains of each were found apart, so that XY and "
      "YX (Stokes U and V) keep an unknown phase; `ryle calibrate --polarization shared` finds one "
      "gain for both");
}

}  // namespace

GainTable gains_for(const std::string& path, const Observation& observation) {
  require_gain_suffix(path, "--gains");
  if (lower_case(std::filesystem::path(path).extension().string()) != ".csv")
    return read_gain_table(path);
  const ArrayLayout& array = observation.array;
  const auto gains = read_gains_csv(path, array.n_inputs());
  const FrequencyAxis& axis = observation.frequency;
  GainTable table;
  table.observation = observation;
  table.n_pols = array.n_pols();
  table.center_hz = {axis.band_center_hz()};
  table.width_hz = {axis.channel_width_hz * static_cast<double>(axis.n_channels)};
  table.gains.assign(array.n_antennas() * table.n_pols, 1);
  table.flags.assign(table.gains.size(), 1);
  for (std::int64_t p = 0; p < array.n_inputs(); ++p) {
    const auto k = table.at(array.inputs[p].antenna, 0, array.inputs[p].pol);
    const bool has_gain = gains[p] != cf64{} && !array.inputs[p].bad;
    table.gains[k] = has_gain ? gains[p] : 1;
    table.flags[k] = has_gain ? 0 : 1;
  }
  return table;
}

AppliedGains apply_gains(VisibilityFile& file, const GainTable& table) {
  Observation& o = file.observation;
  if (const std::string before = gains_applied(o); !before.empty())
    throw ConfigError("the table of gains " + before +
                      " was divided out of these visibilities before; apply one to the file that "
                      "they were made of");
  AppliedGains applied;
  applied.table_id = gain_table_id(table);
  const auto rows = rows_of(o.array, table.observation.array);
  const auto pols = pols_of_products(file, table);
  const auto channels = channels_of_table(o.frequency, file.dumps.front().n_channels, table);
  for (VisibilityDump& dump : file.dumps) {
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        const auto [i, j] = pair_of(b);
        for (std::int64_t product = 0; product < dump.n_pol_products; ++product) {
          const auto k = static_cast<std::size_t>(dump.index(c, b, product));
          if (dump.counts[k] == 0) continue;
          cf64 gain{};
          bool flagged = false;
          for (const auto& [pol_i, pol_j] : pols[product]) {
            const auto of_i = table.at(rows[i], channels[c], pol_i);
            const auto of_j = table.at(rows[j], channels[c], pol_j);
            flagged = flagged || table.flags[of_i] != 0 || table.flags[of_j] != 0;
            gain += table.gains[of_i] * std::conj(table.gains[of_j]);
          }
          gain /= static_cast<double>(pols[product].size());
          if (flagged || gain == cf64{}) {
            dump.data[k] = 0;
            dump.counts[k] = 0;
            ++applied.n_flagged;
            continue;
          }
          dump.data[k] = cf32(cf64(dump.data[k]) / gain);
          ++applied.n_values;
        }
      }
    }
  }
  o.provenance.notes[kGainsAppliedNote] = applied.table_id;
  note_limits(o, table, file.dumps.front().n_pol_products, applied);
  return applied;
}

}  // namespace ryle::pipeline
