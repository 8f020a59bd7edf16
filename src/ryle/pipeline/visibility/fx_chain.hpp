// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/pipeline/base/device_ring.hpp"
#include "ryle/pipeline/base/sample_staging.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"

namespace ryle::pipeline {

/// One integration as the correlator left it, with what is needed to finish it.
struct RawDump {
  std::int64_t segment = 0;
  std::int64_t first_spectrum = 0;  ///< of the segment's clock
  std::int64_t n_spectra = 0;       ///< nominal; the counts in `sums` know what arrived
  SampleClock clock;                ///< of the segment
  correlate::Sums sums;
  std::vector<channelize::ChannelStatistics> statistics;  ///< [channel][input]
  std::vector<channelize::LevelStatistics> levels;        ///< [input], of a part of the dump
};

/// F and X in one place: raw samples in, raw dumps out, gulp by gulp, on one queue or several.
/// - Thread: one stage thread owns it and calls feed() and flush(). On a device, dumps leave beside
///   the work on the next one (AsyncReadback): another thread then calls the sink, a dump at a
///   time, in order.
/// - Reads samples that follow one another in time. It channelizes as many spectra as they allow
///   and correlates them while they are in the cache. To a device each sample crosses the bus once,
///   while chunks before it are worked on (DeviceSamples).
/// - Hands on a RawDump: a dump closes after spectra_per_dump spectra, in process() and
/// close_dump(),
///   at a new segment, and in flush().
/// - A gap inside a segment becomes absent samples where filters still see real ones; of a long gap
///   the rest is only counted as spectra that never came. Counts say what arrived.
/// Each of several queues (devices) gets all samples and correlates its part of the channels, with
/// the bits of one queue.
class FxChain {
 public:
  /// Called with every gulp of spectra, in host memory, as other engines read them: spectra
  /// [first, first + n_spectra) of `clock`, which counts samples.
  using SpectraSink = std::function<void(const SpectraGulp&, std::int64_t first,
                                         std::int64_t segment, const SampleClock& clock)>;
  struct Setup {
    channelize::Config
        channelize;  ///< layout = of the samples feed() brings; max_spectra is set here
    correlate::Config correlate;  ///< n_inputs, n_channels, format and max_spectra are set here
    std::int64_t spectra_per_dump = 0;
    std::int64_t spectra_per_gulp = 512;
    std::int64_t max_delay_samples = 0;  ///< largest |delay| the model will ask for
    std::int64_t max_feed_ticks = 0;     ///< longest feed()
    double target_rms_lsb = 16;          ///< requantiser level per part; set from the first samples
    bool channel_statistics = true;      ///< in every dump
    bool correlates = true;              ///< else no dump is made: spectra are all that is wanted
    SpectraSink on_spectra;              ///< others that read the spectra; may be empty
    bool always_streamed = false;        ///< in tests: on the CPU, too, where it gains nothing
    /// In tests: queues of the rings other than make_ring_queues().
    std::function<std::unique_ptr<RingQueues>(const Queue&, int n_slots)> ring_queues;
  };
  /// Called before the first spectrum of every dump: refresh delays for a dump that starts at this
  /// tick.
  using DelayUpdate =
      std::function<void(channelize::Channelizer&, const SampleClock&, Tick first, Tick last)>;
  using DumpSink = std::function<void(RawDump&&)>;

  FxChain(Queue queue, const Setup& setup, DelayUpdate delay_update, DumpSink sink);
  /// @param queues of one back-end, one a device; those beyond the number of channels are not used
  FxChain(const std::vector<Queue>& queues, const Setup& setup, DelayUpdate delay_update,
          DumpSink sink);
  ~FxChain();

  /// Gains of the calibration [input][channel], multiplied with the requantiser's level before the
  /// first spectrum.
  void set_calibration(std::vector<cf32> gains) { calibration_ = std::move(gains); }

  const std::vector<cf32>& calibration() const { return calibration_; }

  /// n ticks that start at `first`; ticks skipped since the last call are absent. A new segment
  /// closes the open dump.
  void feed(const void* samples, Tick first, std::int64_t n, std::span<const AbsentSpan> absent,
            std::int64_t segment, const SampleClock& clock);
  /// Closes the open dump as short and waits until the sink has had all dumps.
  void flush();
  /// For flush() when a device was lost: waits for the dump on its way, which may be whole.
  void wait_readback() noexcept;

  /// Scale the requantiser multiplied the samples of an input with: divide V_ij by scale_i scale_j.
  /// Empty before data.
  const std::vector<double>& requantiser_scale() const { return scale_; }
  /// Of the samples that set it. @shape [input], empty before data
  const std::vector<channelize::LevelStatistics>& first_levels() const { return first_levels_; }
  /// Most spectra in a gulp.
  std::int64_t max_gulp() const { return setup_.spectra_per_gulp; }
  const channelize::Channelizer& channelizer() const;
  const correlate::Correlator& correlator() const;
  /// Queues that share the channels.
  int n_parts() const { return static_cast<int>(parts_.size()); }
  std::int64_t memory_bytes() const;
  std::int64_t spectra_done() const { return spectra_done_; }
  /// Seconds spent inside feed(), for the real-time margin.
  double busy_s() const { return busy_s_; }

 private:
  void process_available();
  std::int64_t available() const;
  bool is_worthwhile(std::int64_t n) const;
  void stage_next_chunk(std::int64_t n);
  void send_chunk(std::int64_t n);
  bool goes_directly(const void* samples, std::int64_t n) const;
  void feed_directly(const std::byte* samples, Tick first, std::int64_t n,
                     std::span<const AbsentSpan> absent);
  void send(const void* samples, Tick first, std::int64_t n);
  void process(std::int64_t n);
  void hand_on(std::int64_t n);
  void drain();
  void skip_spectra(std::int64_t n);
  void close_dump();
  void deliver(RawDump& dump, bool any, std::size_t counted);
  void wait_delivered();
  void wait_copied();
  void start_levels(const channelize::Input& input);
  void bridge_gap(std::int64_t ticks);
  void append_absent(std::int64_t ticks);
  void update_delays();
  void restart_staging(Tick first);
  SampleStaging& staging() { return *chunks_[chunk_]; }
  const SampleStaging& staging() const { return *chunks_[chunk_]; }
  Tick margin() const { return setup_.max_delay_samples; }

  struct Part;  // one queue, its engines, its channels
  Setup setup_;
  Queue queue_;  // the first one
  bool streams_;
  Queue host_;  // copies what is fed
  std::vector<std::unique_ptr<Part>> parts_;
  DelayUpdate delay_update_;
  DumpSink sink_;
  // Samples that were fed. Staged: one, with the history that filters look back on. Streamed: what
  // was not sent yet; the others are still being copied, and history is kept on the device.
  std::vector<std::unique_ptr<SampleStaging>> chunks_;
  std::size_t chunk_ = 0;           // being filled
  channelize::Input input_;         // what spectra are made of now, in host memory
  std::vector<AbsentSpan> absent_;  // streamed: of what is on the devices
  /// Of the open dump at counting_, of the one that leaves at the other.
  std::array<std::vector<channelize::ChannelStatistics>, 2> statistics_;
  std::size_t counting_ = 0;
  std::vector<channelize::LevelStatistics> levels_;
  std::vector<cf32> calibration_;
  std::vector<double> scale_;
  std::vector<channelize::LevelStatistics> first_levels_;
  Buffer<std::byte> host_blocks_;    // of a device, for on_spectra
  DeviceBlocks spectra_on_devices_;  // the same spectra where they were made
  std::int64_t filter_length_ = 0;
  std::int64_t step_ = 0;
  std::int64_t segment_ = -1;
  SampleClock clock_;
  bool started_ = false;
  std::int64_t next_spectrum_ = 0;
  std::int64_t dump_first_ = 0;
  std::int64_t in_dump_ = 0;
  std::int64_t valid_in_dump_ = 0;
  std::int64_t spectra_done_ = 0;
  double busy_s_ = 0;
  std::future<void> delivery_;  // of the dump that leaves; last: what it uses goes after it
};

}  // namespace ryle::pipeline
