// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/pipeline/beam/voltage_ring.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"
#include "ryle/pipeline/search/search_consumers.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

constexpr Tick kDumpPacket = VoltageDumpWriter::kPacketSpectra;
constexpr __int128 kDumpSecond_ns = 1'000'000'000;

// Ticks since the epoch: a whole number, and what remains of one.
struct RealTick {
  Tick whole;
  double rest;
};
RealTick real_tick(const SampleClock& clock, std::int64_t tai_ns) {
  const __int128 scaled = static_cast<__int128>(tai_ns - clock.epoch_tai_ns) * clock.rate_hz.num;
  const __int128 unit = kDumpSecond_ns * clock.rate_hz.den;
  __int128 whole = scaled / unit;
  if (scaled % unit < 0) --whole;
  return {static_cast<Tick>(whole),
          static_cast<double>(scaled - whole * unit) / static_cast<double>(unit)};
}

// Seconds after the highest channel for 1 pc/cm3.
double delay_per_dm_s(const VoltageShape& s, std::int64_t channel) {
  const double mhz = s.frequency.center_hz(channel) * 1e-6;
  const double top_mhz = s.frequency.center_hz(s.frequency.n_channels - 1) * 1e-6;
  return s.k_dm * (1 / (mhz * mhz) - 1 / (top_mhz * top_mhz));
}

Tick packet_down(Tick t) {
  return (t >= 0 ? t / kDumpPacket : (t - kDumpPacket + 1) / kDumpPacket) * kDumpPacket;
}

}  // namespace

Tick VoltageWindow::begin() const { return *std::min_element(first.begin(), first.end()); }
Tick VoltageWindow::end() const {
  return *std::max_element(first.begin(), first.end()) + n_packets * kDumpPacket;
}

bool VoltageWindow::holds(const VoltageWindow& other) const {
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (other.first[c] < first[c] ||
        other.first[c] + other.n_packets * kDumpPacket > first[c] + n_packets * kDumpPacket)
      return false;
  }
  return true;
}

void VoltageWindow::merge(const VoltageWindow& other) {
  std::int64_t packets = 0;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const Tick end = std::max(first[c] + n_packets * kDumpPacket,
                              other.first[c] + other.n_packets * kDumpPacket);
    first[c] = std::min(first[c], other.first[c]);
    packets = std::max(packets, (end - first[c]) / kDumpPacket);
  }
  n_packets = packets;
}

VoltageWindow voltage_window(const VoltageShape& shape, const DumpTrigger& trigger) {
  const RealTick reference = real_tick(shape.clock, trigger.tai_ns);
  const double rate_hz = shape.clock.rate_hz.value();
  VoltageWindow window;
  Tick earliest = 0, latest = 0;
  for (std::int64_t c = 0; c < shape.frequency.n_channels; ++c) {
    const double per_dm_s = delay_per_dm_s(shape, c);
    const double center_s = trigger.dm_pc_cm3 * per_dm_s;
    const double half_s = 0.5 * trigger.width_s + shape.margin_s + trigger.dm_error * per_dm_s;
    const auto at = [&](double s) { return reference.rest + s * rate_hz; };
    const Tick first =
        packet_down(reference.whole + static_cast<Tick>(std::floor(at(center_s - half_s))));
    const Tick end = reference.whole + static_cast<Tick>(std::ceil(at(center_s + half_s)));
    window.first.push_back(first);
    window.n_packets = std::max(window.n_packets, (end - first + kDumpPacket - 1) / kDumpPacket);
    earliest = c == 0 ? first : std::min(earliest, first);
    latest = c == 0 ? end : std::max(latest, end);
  }
  if (shape.per_channel) return window;
  std::fill(window.first.begin(), window.first.end(), earliest);
  window.n_packets = (latest - earliest + kDumpPacket - 1) / kDumpPacket;
  return window;
}

double voltage_window_s(const VoltageShape& shape, double dm_pc_cm3, double dm_error,
                        double width_s) {
  return width_s + 2 * shape.margin_s + (dm_pc_cm3 + 2 * dm_error) * delay_per_dm_s(shape, 0);
}

VoltageShape voltage_shape(const ObservationConfig& config, const BeamSetup& setup) {
  return {setup.frequency, setup.clock, search::dispersion_constant(config.search.k_dm),
          config.search.voltage_margin_s, config.search.voltage_window == "channel"};
}

std::int64_t voltage_ring_chunks(const ObservationConfig& config, const LiveBeams& beams) {
  if (!(config.search.voltage_ring_s > 0)) return 0;
  const double chunks = config.search.voltage_ring_s * beams.receiver.clock.rate_hz.value() /
                        static_cast<double>(beams.receiver.chunk_spectra);
  return static_cast<std::int64_t>(std::ceil(chunks)) + 1;  // the oldest is only partly in it
}

void require_voltage_ring(const ObservationConfig& config, const LiveBeams& beams) {
  const SearchConfig& s = config.search;
  if (!(s.voltage_ring_s > 0)) {
    if (s.trigger_socket.empty()) return;
    throw ConfigError(
        "search.trigger_socket is where dumps of voltages are asked for, but none are kept: "
        "search.voltage_ring_s is 0");
  }
  const bool searched = wants_search(s);
  if (!searched && s.trigger_socket.empty())
    throw ConfigError(
        "search.voltage_ring_s keeps voltages for candidates, but search.dm_max is 0: nothing is "
        "searched for; with search.trigger_socket others may ask for them");
  // Levels of a sample are known half a window later (search::DriftFilter).
  const double sample_s =
      static_cast<double>(config.beams.integration_spectra) / beams.receiver.clock.rate_hz.value();
  double lag_s = 0, dm_max = 0, width_s = 0;
  if (searched) {
    const SearchChainConfig chain = search_chain(
        live_search_config(config, ""), {search_band(beams.frequency, sample_s, s.k_dm), 0, true});
    lag_s = 0.5 * sample_s * static_cast<double>(chain.baseline_samples);
    width_s = sample_s * static_cast<double>(chain.max_width);
    dm_max = chain.dms.back();
  }
  const double longest_s =
      lag_s +
      voltage_window_s(voltage_shape(config, beam_setup(config, beams)), dm_max, 0, width_s);
  const auto block = static_cast<double>(s.block_samples > 0 ? s.block_samples : kHostBlock);
  const bool given = s.block_samples > 0 || beam_devices(config.runtime).empty();
  const double block_s = given ? block * sample_s : s.block_max_s;
  if (longest_s > s.voltage_ring_s)
    throw ConfigError(fmt::format(
        "search.voltage_ring_s = {:.3g}: a pulse of DM {:.6g} with its margins, and half a window "
        "of its levels, take {:.3f} s, and the search some more before it tells; {:.1f} s would do",
        s.voltage_ring_s, dm_max, longest_s, longest_s + 4 * block_s));
}

VoltageRingConfig voltage_ring_config(const ObservationConfig& config, const LiveBeams& beams,
                                      const std::string& command_line) {
  VoltageRingConfig c;
  c.shape = voltage_shape(config, beam_setup(config, beams));
  c.n_chunks = voltage_ring_chunks(config, beams);
  c.chunk_spectra = beams.receiver.chunk_spectra;
  c.input_line = beams.input_line;
  c.dumps_per_minute = config.search.voltage_per_minute;
  c.ahead_s = config.search.trigger_ahead_s;
  c.max_bytes = config.search.voltage_max_gib * 1073741824.0;
  c.path_stem =
      (std::filesystem::path(config.output.directory) / (config.output.name + "_voltages"))
          .string();
  c.overwrite = config.output.overwrite;
  c.telescope = beams.file.array.name;
  c.command_line = command_line;
  return c;
}

}  // namespace ryle::pipeline
