// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/calibrate/apply_gains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/telescope/gains.hpp"

namespace ryle::pipeline {
namespace {

constexpr const char* kAppliedNote = "gains_applied";

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

/// Channel of the table of each channel of the data.
std::vector<std::int64_t> channels_of_table(const FrequencyAxis& axis, std::int64_t n_channels,
                                            const GainTable& table) {
  std::vector<std::int64_t> channels;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    const double hz = axis.center_hz(c);
    std::int64_t best = 0;
    for (std::int64_t t = 1; t < table.n_channels(); ++t)
      if (std::abs(table.center_hz[t] - hz) < std::abs(table.center_hz[best] - hz)) best = t;
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
    table.gains[k] = gains[p];
    table.flags[k] = array.inputs[p].bad ? 1 : 0;
  }
  return table;
}

AppliedGains apply_gains(VisibilityFile& file, const GainTable& table) {
  Observation& o = file.observation;
  auto& notes = o.provenance.notes;
  if (const auto before = notes.find(kAppliedNote); before != notes.end())
    throw ConfigError("the table of gains " + before->second +
                      " was divided out of these visibilities before; apply one to the file that "
                      "they were made of");
  AppliedGains applied;
  applied.table_id = gain_table_id(table);
  const auto rows = rows_of(o.array, table.observation.array);
  const std::int64_t n_pols = file.dumps.front().n_pol_products == 1 ? 1 : 2;
  if (n_pols > table.n_pols)
    throw ConfigError("the table of gains is of one polarization, the visibilities are of two");
  const auto channels = channels_of_table(o.frequency, file.dumps.front().n_channels, table);
  for (VisibilityDump& dump : file.dumps) {
    for (std::int64_t c = 0; c < dump.n_channels; ++c) {
      for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
        const auto [i, j] = pair_of(b);
        for (std::int64_t product = 0; product < dump.n_pol_products; ++product) {
          const auto k = static_cast<std::size_t>(dump.index(c, b, product));
          if (dump.counts[k] == 0) continue;
          const auto of_i = table.at(rows[i], channels[c], n_pols == 1 ? 0 : product / 2);
          const auto of_j = table.at(rows[j], channels[c], n_pols == 1 ? 0 : product % 2);
          if (table.flags[of_i] != 0 || table.flags[of_j] != 0) {
            dump.data[k] = 0;
            dump.counts[k] = 0;
            ++applied.n_flagged;
            continue;
          }
          dump.data[k] =
              cf32(cf64(dump.data[k]) / (table.gains[of_i] * std::conj(table.gains[of_j])));
          ++applied.n_values;
        }
      }
    }
  }
  notes[kAppliedNote] = applied.table_id;
  if (!table.flux_unit.empty()) o.flux_unit = table.flux_unit;
  return applied;
}

}  // namespace ryle::pipeline
