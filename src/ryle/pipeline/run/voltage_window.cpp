// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/pipeline/image/image_setup.hpp"
#include "ryle/pipeline/run/voltage_node.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"
#include "ryle/pipeline/search/search_consumers.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

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

// Seconds after the trigger's frequency for 1 pc/cm3. Waves have no frequency at or below 0 Hz.
double delay_per_dm_s(const VoltageShape& s, std::int64_t channel) {
  const double mhz = s.frequency.center_hz(channel) * 1e-6;
  const double trigger_mhz = s.trigger_hz() * 1e-6;
  if (!(mhz > 0) || !(trigger_mhz > 0)) return 0;
  return s.k_dm * (1 / (mhz * mhz) - 1 / (trigger_mhz * trigger_mhz));
}

Tick unit_down(Tick t, Tick unit) { return (t >= 0 ? t / unit : (t - unit + 1) / unit) * unit; }
Tick unit_up(Tick t, Tick unit) { return (t + unit - 1) / unit * unit; }

}  // namespace

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
    const Tick first = unit_down(
        reference.whole + static_cast<Tick>(std::floor(at(center_s - half_s))), shape.unit_ticks);
    const Tick end = reference.whole + static_cast<Tick>(std::ceil(at(center_s + half_s)));
    window.first.push_back(first);
    window.n_ticks = std::max(window.n_ticks, unit_up(end - first, shape.unit_ticks));
    earliest = c == 0 ? first : std::min(earliest, first);
    latest = c == 0 ? end : std::max(latest, end);
  }
  if (shape.samples) window.first.resize(1);
  if (shape.per_channel && !shape.samples) return window;
  std::fill(window.first.begin(), window.first.end(), earliest);
  window.n_ticks = unit_up(latest - earliest, shape.unit_ticks);
  return window;
}

double voltage_window_s(const VoltageShape& shape, double dm_pc_cm3, double dm_error,
                        double width_s) {
  std::int64_t lowest = 0;
  while (lowest + 1 < shape.frequency.n_channels && !(shape.frequency.center_hz(lowest) > 0))
    ++lowest;
  return width_s + 2 * shape.margin_s + (dm_pc_cm3 + 2 * dm_error) * delay_per_dm_s(shape, lowest);
}

bool keeps_voltages(const ObservationConfig& config) { return config.voltages.ring_s > 0; }

std::int64_t voltage_ring_chunks(const ObservationConfig& config, double ticks_per_s,
                                 std::int64_t chunk_ticks) {
  if (!keeps_voltages(config)) return 0;
  const double chunks = config.voltages.ring_s * ticks_per_s / static_cast<double>(chunk_ticks);
  return static_cast<std::int64_t>(std::ceil(chunks)) + 1;  // the oldest is only partly in it
}

namespace {

VoltageShape voltage_shape(const ObservationConfig& config, const FrequencyAxis& frequency) {
  VoltageShape shape;
  shape.frequency = frequency;
  shape.k_dm = search::dispersion_constant(config.search.k_dm);
  shape.margin_s = config.voltages.margin_s;
  shape.per_channel = config.voltages.window == "channel";
  return shape;
}

// From the beginning of a pulse to when the search tells it, without the blocks it works on.
void require_room_for_search(const ObservationConfig& config, const FrequencyAxis& frequency,
                             double rate_hz) {
  const SearchConfig& s = config.search;
  // Levels of a sample are known half a window later (search::DriftFilter).
  const double sample_s = static_cast<double>(config.beams.integration_spectra) / rate_hz;
  const SearchChainConfig chain = search_chain(live_search_config(config, ""),
                                               {search_band(frequency, sample_s, s.k_dm), 0, true});
  const double lag_s = 0.5 * sample_s * static_cast<double>(chain.baseline_samples);
  const double width_s = sample_s * static_cast<double>(chain.max_width);
  const double dm_max = chain.dms.back();
  const double longest_s =
      lag_s + voltage_window_s(voltage_shape(config, frequency), dm_max, 0, width_s);
  const auto block = static_cast<double>(s.block_samples > 0 ? s.block_samples : kHostBlock);
  const bool given = s.block_samples > 0 || beam_devices(config.runtime).empty();
  const double block_s = given ? block * sample_s : s.block_max_s;
  if (longest_s > config.voltages.ring_s)
    throw ConfigError(fmt::format(
        "voltages.ring_s = {:.3g}: a pulse of DM {:.6g} with its margins, and half a window "
        "of its levels, take {:.3f} s, and the search some more before it tells; {:.1f} s would do",
        config.voltages.ring_s, dm_max, longest_s, longest_s + 4 * block_s));
}

// The trigger waits so many images before it calls an event ended (math::ImageTrigger).
constexpr double kImagesOfEvent = 1 + 8;

void require_room_for_images(const ObservationConfig& config, double rate_hz) {
  const Cadence cadence = make_cadence(config.image.cadence_s, rate_hz, 0);
  const double image_s = static_cast<double>(cadence.spectra_per_image) / rate_hz;
  const double longest_s = kImagesOfEvent * image_s + 2 * config.voltages.margin_s;
  if (longest_s > config.voltages.ring_s)
    throw ConfigError(fmt::format(
        "voltages.ring_s = {:.3g}: the trigger of images tells an event of one image of {:.3g} s "
        "eight images later, {:.3f} s with the margins after it began; {:.1f} s would do",
        config.voltages.ring_s, image_s, longest_s, 2 * longest_s));
}

}  // namespace

void require_voltage_ring(const ObservationConfig& config, const FrequencyAxis& frequency,
                          double rate_hz) {
  if (!keeps_voltages(config)) {
    if (config.voltages.socket.empty()) return;
    throw ConfigError(
        "voltages.socket is where dumps of voltages are asked for, but none are kept: "
        "voltages.ring_s is 0");
  }
  const bool searched = wants_search(config.search) && !config.beams.file.empty();
  const bool triggered = wants_images(config) && config.image.trigger_sigma > 0;
  if (!searched && !triggered && config.voltages.socket.empty() &&
      config.runtime.command_socket.empty())
    throw ConfigError(
        "voltages.ring_s keeps voltages, but nobody asks for dumps of them: set search.dm_max or "
        "image.trigger_sigma; with voltages.socket or runtime.command_socket others may ask");
  if (2 * config.voltages.margin_s >= config.voltages.ring_s)
    throw ConfigError(fmt::format(
        "voltages.ring_s = {:.3g} is no longer than the margins before and after what is asked "
        "for, twice voltages.margin_s = {:.3g}",
        config.voltages.ring_s, config.voltages.margin_s));
  if (searched) require_room_for_search(config, frequency, rate_hz);
  if (triggered) require_room_for_images(config, rate_hz);
}

VoltageRingConfig voltage_ring_config(const ObservationConfig& config, const VoltageStream& stream,
                                      const std::string& command_line) {
  VoltageRingConfig c;
  c.shape = voltage_shape(config, stream.frequency);
  c.shape.clock = stream.clock;
  c.shape.reference_hz = stream.reference_hz;
  c.shape.samples = stream.chunks.form.content == VoltageForm::Content::samples;
  c.shape.unit_ticks = stream.chunks.form.unit_ticks();
  c.chunks = stream.chunks;
  c.n_chunks = voltage_ring_chunks(config, stream.clock.rate_hz.value(), stream.chunks.chunk_ticks);
  c.input_line = stream.input_line;
  c.dumps_per_minute = config.voltages.per_minute;
  c.ahead_s = config.voltages.ahead_s;
  c.max_bytes = config.voltages.max_gib * 1073741824.0;
  c.path_stem =
      (std::filesystem::path(config.output.directory) / (config.output.name + "_voltages"))
          .string();
  c.overwrite = config.output.overwrite;
  c.telescope = stream.telescope;
  c.command_line = command_line;
  return c;
}

}  // namespace ryle::pipeline
