// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/dump_builder.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/telescope/observation.hpp"

/// From an observation file to the configurations of the engines: nothing here touches data.
namespace ryle::pipeline {

/// What the first stage must know of its samples, whatever they come from.
struct SampleMetadata {
  std::int64_t n_inputs = 0;
  SampleLayout layout;
  SampleClock clock;
  double reference_hz = 0;
  bool inverted_band = false;
  std::int64_t max_feed_ticks = 0;
  TimeSource time_source = TimeSource::packet;
  double length_s = 0;  ///< of a recording; 0 = not known (live)
};

/// source.sample_rate_hz, or the 1.28 MHz of MWA-32T.
Rational live_sample_rate(const ObservationConfig& config);

/// Samples of a live MWA-32T style array: one receiver (16 inputs) per endpoint, 5+5 bits,
/// time-major.
SampleMetadata live_sample_metadata(const ObservationConfig& config);

/// Array of the observation: layout, station file or TART positions. Throws when it has another
/// number of inputs than the samples.
ArrayLayout load_array(const ObservationConfig& config, std::int64_t n_inputs);

/// Queue of the engines: runtime.device, runtime.threads.
Queue make_queue(const RuntimeConfig& config);
/// One queue a device of runtime.devices, or that of runtime.device: FX is split over them.
std::vector<Queue> make_queues(const RuntimeConfig& config);
/// Where samples for these queues lie best: devices copy straight from page-locked memory.
MemorySpace sample_memory(const std::vector<Queue>& queues);
/// CUDA devices that live beams are split over: runtime.devices, or that of runtime.device; empty =
/// the CPU. Throws ConfigError.
std::vector<int> beam_devices(const RuntimeConfig& config);

/// channelize.bits, or what 0 stands for: recordings have time for float spectra, which clip
/// nothing; live data and GPUs take 8 bits.
std::int64_t spectrum_bits(const ObservationConfig& config);
/// Of spectra of 4, 8, 16 or 32 bits a part. Throws ConfigError for others.
SampleFormat spectrum_format(std::int64_t bits);
/// channelize.window by name.
channelize::Window filter_window(const std::string& name);

/// Channelizer, correlator and dump length of the observation file for these samples.
FxChain::Setup make_chain_setup(const ObservationConfig& config, const SampleMetadata& metadata,
                                const ArrayLayout& array);

/// Direction the dumps are phased to (correlate.phase_center) at the time of the first sample.
SkyDirection phase_center(const ObservationConfig& config, const ArrayLayout& array,
                          std::int64_t tai_ns);

/// Inverse of the calibration gains as [input][channel], empty without [calibration] gains.
std::vector<cf32> calibration_gains(const ObservationConfig& config, std::int64_t n_inputs,
                                    std::int64_t n_channels);

/// Header of the products for data that start at this time.
Observation make_observation(const ObservationConfig& config, const ArrayLayout& array,
                             const FrequencyAxis& frequency, double spectrum_interval_s,
                             std::int64_t start_tai_ns, const std::string& command_line);

/// Flags of the inputs the layout or station file calls bad.
std::vector<std::uint8_t> bad_inputs(const ArrayLayout& array);

/// Frequency axis of a channelizer.
FrequencyAxis frequency_axis(const channelize::Config& config);

/// "12.5 MiB".
std::string mib(std::int64_t bytes);
/// Bytes of the ring between ingest and the channelizer.
std::int64_t ring_bytes(const ObservationConfig& config, std::int64_t n_inputs);
/// Ticks of a ring chunk: source.chunk_ms rounded to whole 256-sample packets.
std::int64_t chunk_ticks(const ObservationConfig& config);
/// runtime.max_memory_gib, or what the machine has.
std::int64_t memory_limit_bytes(const ObservationConfig& config);
/// Throws OsLimitError, naming both numbers, when `bytes` exceed runtime.max_memory_gib or the
/// memory of this machine.
void require_memory(const ObservationConfig& config, std::int64_t bytes);

}  // namespace ryle::pipeline
