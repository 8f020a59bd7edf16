// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/setup.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/sha256.hpp"
#include "ryle/io/visibility/gain_file.hpp"
#include "ryle/pipeline/visibility/live_described.hpp"
#include "ryle/telescope/gains.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kPacketTicks = 256;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

ArrayLayout read_array(const ObservationConfig& config) {
  const auto& t = config.telescope;
  if (!t.layout.empty() && !t.station.empty()) {
    throw ConfigError("[telescope] has both layout and station: give one of them");
  }
  if (!t.station.empty()) return read_lwa_ssmif(resolve_path(config, t.station));
  const std::string path = resolve_path(config, t.layout);
  if (path.ends_with(".json"))
    return read_tart_positions(path, t.latitude_deg, t.longitude_deg, t.height_m);
  return read_layout_csv(path, t.latitude_deg, t.longitude_deg, t.height_m);
}

}  // namespace

SampleFormat spectrum_format(std::int64_t bits) {
  switch (bits) {
    case 4:
      return SampleFormat::ci4;
    case 8:
      return SampleFormat::ci8;
    case 16:
      return SampleFormat::cf16;
    case 32:
      return SampleFormat::cf32;
    default:
      throw ConfigError(
          fmt::format("channelize.bits = {}: must be 4, 8, 16 (half floats) or 32 (float)", bits));
  }
}

channelize::Window filter_window(const std::string& name) {
  if (name == "rectangular") return channelize::Window::rectangular;
  if (name == "hann") return channelize::Window::hann;
  if (name == "hamming") return channelize::Window::hamming;
  if (name == "blackman") return channelize::Window::blackman;
  return channelize::Window::kaiser;
}

Rational live_sample_rate(const ObservationConfig& config) {
  return config.source.sample_rate_hz.num > 0 ? config.source.sample_rate_hz
                                              : Rational{wire::kMwa32tSampleRateHz, 1};
}

SampleMetadata live_sample_metadata(const ObservationConfig& config) {
  const auto& source = config.source;
  if (is_described(source)) return described_sample_metadata(config);
  if (source.format != "mwa32t") {
    throw UnsupportedError(
        "source.format = \"" + source.format +
        "\": mwa32t, chips, tbf, tbx, best2, spead, vdif, codif, dada and guppi are known live, "
        "others with a [source.packet] (docs/bring_up.md); files of others with "
        "source.kind = \"file\" (`ryle info` lists them)");
  }
  constexpr std::int64_t kInputsPerReceiver = 16;
  const auto n_receivers = static_cast<std::int64_t>(source.listen.size());
  if (n_receivers == 0) {
    throw ConfigError(
        "source.listen is empty: give one endpoint per receiver, e.g. [\"tcp://127.0.0.1:4015\", "
        "...]");
  }
  SampleMetadata metadata;
  metadata.n_inputs = kInputsPerReceiver * n_receivers;
  metadata.layout.format = SampleFormat::ci5;
  metadata.layout.input_stride_bits = 16;
  metadata.layout.sample_stride_bits = 16 * metadata.n_inputs;
  metadata.clock.rate_hz = live_sample_rate(config);
  metadata.clock.epoch_tai_ns =
      source.start_utc == "now" ? 0 : tai_ns_from_utc_iso(source.start_utc);
  metadata.reference_hz = source.center_mhz * 1e6;
  metadata.inverted_band = source.inverted_band;
  metadata.max_feed_ticks = chunk_ticks(config);
  return metadata;
}

ArrayLayout load_array(const ObservationConfig& config, std::int64_t n_inputs) {
  const auto& t = config.telescope;
  if (t.layout.empty() && t.station.empty()) {
    throw ConfigError(
        "no array: set telescope.layout (CSV or TART JSON) or telescope.station (LWA SSMIF); on "
        "the command "
        "line --layout FILE or --station FILE");
  }
  ArrayLayout array = read_array(config);
  if (t.name != "array" || array.name.empty()) array.name = t.name;
  if (n_inputs > 0 && array.n_inputs() != n_inputs) {
    throw ConfigError(
        fmt::format("{} has {} inputs, the samples have {}: this is not the array that made them",
                    t.station.empty() ? t.layout : t.station, array.n_inputs(), n_inputs));
  }
  return array;
}

Queue make_queue(const RuntimeConfig& config) {
  const auto cpu = [&] { return Queue::cpu(static_cast<int>(config.threads)); };
  if (config.device == "cpu") return cpu();
  if (config.device == "auto") return cuda_unavailable_reason().empty() ? Queue::cuda(0) : cpu();
  if (config.device.rfind("cuda:", 0) == 0) {
    int index = 0;
    if (std::sscanf(config.device.c_str(), "cuda:%d", &index) == 1) return Queue::cuda(index);
  }
  throw ConfigError("runtime.device = \"" + config.device + "\": must be auto, cpu or cuda:N");
}

std::vector<Queue> make_queues(const RuntimeConfig& config) {
  if (config.devices.empty()) return {make_queue(config)};
  std::vector<Queue> queues;
  for (const int device : beam_devices(config)) queues.push_back(Queue::cuda(device));
  return queues;
}

MemorySpace sample_memory(const std::vector<Queue>& queues) {
  return queues.front().back_end() == BackEnd::cuda ? MemorySpace::pinned : MemorySpace::host;
}

std::vector<int> beam_devices(const RuntimeConfig& config) {
  const bool automatic = config.device == "auto";
  if (!config.devices.empty() && !automatic)
    throw ConfigError("runtime.device = \"" + config.device +
                      "\" and runtime.devices are both given: leave one out");
  if (!config.devices.empty()) return {config.devices.begin(), config.devices.end()};
  if (automatic)
    return cuda_unavailable_reason().empty() ? std::vector<int>{0} : std::vector<int>{};
  if (config.device == "cpu") return {};
  int index = 0;
  if (std::sscanf(config.device.c_str(), "cuda:%d", &index) == 1) return {index};
  throw ConfigError("runtime.device = \"" + config.device + "\": must be auto, cpu or cuda:N");
}

std::int64_t spectrum_bits(const ObservationConfig& config) {
  if (config.channelize.bits != 0) return config.channelize.bits;
  // Implementations that are named are those of 8-bit spectra.
  const bool named = config.correlate.implementation != "auto";
  const bool on_gpu = !config.runtime.devices.empty() || config.runtime.device != "cpu";
  const bool cpu =
      config.runtime.device.rfind("cuda", 0) != 0 && !(on_gpu && cuda_unavailable_reason().empty());
  return config.source.kind == "file" && cpu && !named ? 32 : 8;
}

FxChain::Setup make_chain_setup(const ObservationConfig& config, const SampleMetadata& metadata,
                                const ArrayLayout& array) {
  FxChain::Setup setup;
  auto& f = setup.channelize;
  const auto& c = config.channelize;
  f.n_inputs = metadata.n_inputs;
  f.n_channels = c.n_channels;
  f.n_taps = c.taps;
  f.window = c.taps == 1 ? channelize::Window::rectangular : filter_window(c.window);
  f.kaiser_beta = c.kaiser_beta;
  f.step_samples = c.step_samples;
  f.layout = metadata.layout;
  f.sample_rate_hz = metadata.clock.rate_hz.value();
  f.reference_hz = metadata.reference_hz;
  f.inverted_band = metadata.inverted_band;
  const std::int64_t bits = spectrum_bits(config);
  f.output = spectrum_format(bits);
  f.rounding = c.rounding == "truncate" ? channelize::Rounding::truncate
                                        : channelize::Rounding::nearest_even;
  f.dither = c.dither;
  f.seed = c.seed;
  f.implementation = c.implementation;
  setup.correlate.implementation = config.correlate.implementation;
  setup.target_rms_lsb = bits == 4 ? std::min(c.target_rms_lsb, 2.83) : c.target_rms_lsb;
  setup.max_feed_ticks = metadata.max_feed_ticks;
  const double step = static_cast<double>(channelize::step_length(f));
  setup.spectra_per_dump = std::max<std::int64_t>(
      1, std::llround(config.correlate.integration_s * f.sample_rate_hz / step));
  if (config.correlate.fringe_stopping == "f") {
    const double largest = DelayModel::largest_delay_s(array, frequency_axis(f).band_center_hz());
    setup.max_delay_samples = static_cast<std::int64_t>(std::ceil(largest * f.sample_rate_hz)) + 2;
  }
  return setup;
}

SkyDirection phase_center(const ObservationConfig& config, const ArrayLayout& array,
                          std::int64_t tai_ns) {
  return named_direction(config.correlate.phase_center, array, tai_ns, "correlate.phase_center",
                         {config.telescope.dut1_s});
}

std::vector<cf32> calibration_gains(const ObservationConfig& config, std::int64_t n_inputs,
                                    std::int64_t n_channels) {
  if (config.calibration.gains.empty()) return {};
  const auto gains = read_gains_csv(resolve_path(config, config.calibration.gains), n_inputs);
  std::vector<cf32> inverse(n_inputs * n_channels);
  for (std::int64_t p = 0; p < n_inputs; ++p) {
    const cf64 g = gains[p];
    const cf64 inverted = std::abs(g) > 0 ? 1.0 / g : cf64{};
    std::fill_n(inverse.begin() + p * n_channels, n_channels, cf32(inverted));
  }
  return inverse;
}

std::vector<std::uint8_t> bad_inputs(const ArrayLayout& array) {
  std::vector<std::uint8_t> bad;
  for (const auto& input : array.inputs) bad.push_back(input.bad ? 1 : 0);
  return bad;
}

FrequencyAxis frequency_axis(const channelize::Config& config) {
  return {channelize::channel_center_hz(config, 0),
          config.sample_rate_hz / static_cast<double>(channelize::transform_length(config)),
          config.n_channels};
}

Observation make_observation(const ObservationConfig& config, const ArrayLayout& array,
                             const FrequencyAxis& frequency, double spectrum_interval_s,
                             std::int64_t start_tai_ns, const std::string& command_line) {
  Observation o;
  o.array = array;
  o.frequency = frequency;
  o.phase_center = phase_center(config, array, start_tai_ns);
  o.phase_center_name = config.correlate.phase_center;
  o.object = config.correlate.phase_center == "sun" ? "Sun" : "all-sky";
  o.observer = "ryle";
  o.earth_orientation.dut1_s = config.telescope.dut1_s;
  o.spectrum_interval_s = spectrum_interval_s;
  o.nominal_dump_s = config.correlate.integration_s;
  o.channel_bandwidth_hz = frequency.channel_width_hz;
  o.flux_unit = config.calibration.jy_per_count2 > 0 ? "Jy" : "uncalibrated";
  o.provenance.version = version();
  o.provenance.command_line = command_line;
  o.provenance.configuration = config.text;
  o.provenance.configuration_sha256 = io::sha256_hex(config.text);
  o.provenance.host = host_name();
  if (!config.calibration.gains.empty())
    o.provenance.notes[kGainsAppliedNote] = config.calibration.gains;
  if (array.n_pols() == 1) o.provenance.notes["single_polarization"] = "XX";
  if (config.telescope.dut1_s == 0)
    o.provenance.notes["dut1"] = "0 assumed: sky rotation uncertain by up to 13.5 arcsec";
  return o;
}

std::int64_t chunk_ticks(const ObservationConfig& config) {
  const double ticks = config.source.chunk_ms * 1e-3 * live_sample_rate(config).value();
  return std::max<std::int64_t>(1, std::llround(ticks / kPacketTicks)) * kPacketTicks;
}

std::int64_t ring_bytes(const ObservationConfig& config, std::int64_t n_inputs) {
  if (is_described(config.source))
    return described_source_chunk_bytes(live_described_config(config, n_inputs, 0));
  return checked_product(
      {config.source.n_chunks + config.source.window_chunks, chunk_ticks(config), n_inputs, 2},
      "ring");
}

std::string mib(std::int64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

std::int64_t memory_limit_bytes(const ObservationConfig& config) {
  if (config.runtime.max_memory_gib > 0)
    return static_cast<std::int64_t>(config.runtime.max_memory_gib * (1LL << 30));
  return list_devices().front().memory_bytes;
}

void require_memory(const ObservationConfig& config, std::int64_t bytes) {
  const std::int64_t limit = memory_limit_bytes(config);
  if (bytes > limit) {
    throw OsLimitError(fmt::format(
        "this observation needs {} of memory, {} is {}: make chunk_ms, n_chunks or n_channels "
        "smaller",
        mib(bytes), mib(limit),
        config.runtime.max_memory_gib > 0 ? "allowed (runtime.max_memory_gib)"
                                          : "what the machine has"));
  }
}

}  // namespace ryle::pipeline
