// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/beamform/weights.hpp"
#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/base/beam_summary.hpp"
#include "ryle/pipeline/base/command_result.hpp"
#include "ryle/pipeline/base/device_loss.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/visibility/device_blocks.hpp"
#include "ryle/telescope/beams_file.hpp"

/// Voltages of antennas -> power of beams -> consumers. Weights change at fixed instants of the
/// data, never where a chunk happens to end: products do not depend on how the data came.
namespace ryle::pipeline {

struct BeamSetup {
  BeamsConfig beams;
  BeamsFile file;           ///< inputs in the order of the samples, antenna * n_pols + pol
  FrequencyAxis frequency;  ///< of the samples, ascending
  SampleClock clock;        ///< of spectra
  std::int64_t max_spectra = 0;
  TimeSource time_source = TimeSource::configured;
  std::int64_t n_pols = 1;  ///< of two the beams are Stokes I
  SampleFormat format = SampleFormat::ci4;
  beamform::InputOrder order = beamform::InputOrder::pairs;
  std::vector<double> scale;  ///< [input] samples were multiplied with it; empty = 1
  /// [input] of planar blocks that it is; empty = the one of the same number
  std::vector<std::int64_t> block_inputs;
};
/// The engine as the setup wants it. Throws ConfigError.
beamform::Config beamformer_config(const BeamSetup& setup);
/// Spectra between two sets of weights: update_s in whole packets.
std::int64_t update_spectra(const BeamSetup& setup);
/// Names of the rows of power: coherent beams, then incoherent ones.
std::vector<std::string> beam_names(const BeamSetup& setup);
std::int64_t beam_chain_bytes(const BeamSetup& setup);

/// Spectra of all inputs in the order of the setup.
struct BeamInput {
  const void* samples = nullptr;  ///< in host memory; not read by devices where there are blocks
  std::int64_t channel_stride_bytes = 0;
  /// The same spectra as planar blocks of all channels, from which devices take them: they are
  /// there once for all nodes. nullptr: devices take `samples`.
  DeviceBlocks* blocks = nullptr;
  std::int64_t n_spectra = 0;  ///< pairs: multiple of 128
  Tick first_tick = 0;         ///< pairs: multiple of 128
  std::int64_t segment = 0;
  SampleClock clock;
  /// [channel or 1][slot][words_for_bits(n_inputs)], bit = input; nullptr = all are there
  const std::uint64_t* present = nullptr;
  std::int64_t slot_spectra = 128;  ///< successive spectra of the input that share a mask
  bool present_per_channel = true;
  /// Of which no input was there, input = channel; sorted by channel, then time. A span may begin
  /// before first_tick.
  std::span<const AbsentSpan> absent;
};

/// Voltages of antennas to power of beams, for all consumers.
/// - Thread: the engine's thread calls feed() and finish(); consumers are called on it.
/// - Reads spectra of any number of inputs; samples may be overwritten once feed() returns. Weights
/// are made
///   in point() and make_weights() at multiples of update_spectra() of the data.
/// - Hands every consumer a BeamChunk of at most max_samples samples of all beams, and the voltages
///   behind them where it wants those; these are made on the CPU, of samples in host memory.
/// - Ends with finish(). Once a device is lost feed() does nothing, and report_loss() throws.
/// - Samples of which nothing arrived are 0 and listed in BeamChunk::absent; where some antennas
/// are
///   missing, sums are renormalised (beams.loss). A new segment starts the engines anew; sample
///   numbers tell a consumer of a gap between chunks.
class BeamChain {
 public:
  /// Called once, when the first data tell where the beams stand.
  using MakeConsumers =
      std::function<std::vector<std::unique_ptr<BeamConsumer>>(const BeamStream&)>;
  /// @param queues one CPU queue, or one of each device that makes its share of the rows
  /// (beam_range()): rows do not depend on the ranges
  BeamChain(std::vector<Queue> queues, BeamSetup setup, MakeConsumers make_consumers);
  BeamChain(Queue queue, BeamSetup setup, MakeConsumers make_consumers);
  ~BeamChain();
  BeamChain(const BeamChain&) = delete;
  BeamChain& operator=(const BeamChain&) = delete;

  /// Does nothing once a device is lost.
  void feed(const BeamInput& input);
  /// Publishes what the consumers have, of devices that were lost, too.
  void finish(RunSummary& summary);
  /// Throws DeviceError (in flight) if a device was lost, after finish().
  void report_loss(const RunSummary& summary) const { loss_.report(summary); }

  /// Other directions, gains and sub-arrays of the same beams, from the next set of weights on
  /// (update_spectra()): the answer names that instant. Rejected where the beams are others: their
  /// files and their search are named after them.
  CommandResult steer(BeamsFile file);
  const BeamsFile& file() const { return setup_.file; }
  /// The instant up to which the data were taken, TAI; 0 = none.
  std::int64_t data_tai_ns() const { return data_tai_ns_; }

  /// A consumer has given up.
  bool failed() const;
  bool lost() const { return loss_.lost(); }
  double data_s() const { return data_s_; }
  double busy_s() const { return busy_s_; }
  std::int64_t samples() const { return samples_; }
  std::string_view implementation() const;

 private:
  struct Partition;
  struct Voltages;
  void make_voltages();
  std::vector<float> voltage_scale(const beamform::Input& in);
  void send_voltages(const BeamInput& given, beamform::Input in, std::int64_t first);
  void start(const BeamInput& input);
  void take(const BeamInput& input);
  void add_rows(Queue queue, BeamRange rows);
  void upload(BeamInput& input);
  void form(const beamform::Input& in, std::int64_t first, std::int64_t n_windows);
  void ask_for_destination(const BeamInput& input, Tick tick, std::int64_t n);
  BeamChunk next_chunk(const BeamInput& input, Tick tick, std::int64_t n) const;
  beamform::Output output(const beamform::Config& config, std::size_t share,
                          std::int64_t n_windows) const;
  void begin(const BeamInput& input);
  void point(const BeamInput& input, std::int64_t interval);
  void make_weights(std::span<const beamform::Steering> steering);
  /// @param given with what is in host memory
  void piece(const BeamInput& input, const BeamInput& given, std::int64_t first, std::int64_t n);
  void find_absent(const BeamInput& input, Tick first, Tick last);
  void find_present(const BeamInput& input, std::int64_t first, std::int64_t n,
                    beamform::Input& in);
  std::int64_t spectrum_bytes() const;

  BeamSetup setup_;
  MakeConsumers make_consumers_;
  beamform::Config config_;
  std::int64_t update_;
  BeamSky sky_;
  std::unique_ptr<beamform::WeightMaker> maker_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::unique_ptr<Voltages> voltages_;  ///< where a consumer wants them
  bool on_devices_ = false, host_wanted_ = true;
  std::vector<cf32> weights_;
  Buffer<float> values_;   // on the host
  BeamDestination place_;  // of a consumer, for the piece at hand
  std::vector<BeamPart> parts_;
  std::vector<ChannelGap> absent_;
  std::vector<std::uint64_t> present_;  // of a piece
  std::vector<std::unique_ptr<BeamConsumer>> consumers_;
  std::int64_t segment_ = -1, interval_ = 0, weights_tai_ns_ = 0;
  std::int64_t samples_ = 0, updates_ = 0;
  double absent_cells_ = 0, data_s_ = 0, busy_s_ = 0;
  std::int64_t data_tai_ns_ = 0;
  Tick next_tick_ = 0;
  SampleClock clock_;     // of the data taken
  bool steered_ = false;  // weights of the next interval are others, whether or not beams move
  DeviceLoss loss_;
};

}  // namespace ryle::pipeline
