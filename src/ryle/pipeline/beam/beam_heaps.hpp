// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"
#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/spead_output.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

/// Voltages of beams as heaps of SPEAD-64-48, as B-engines of MeerKAT send them: of a recording
/// (`ryle beamform -o udp://...`) and of a live run (beams.spead).
namespace ryle::pipeline {

/// Endpoints of `n_streams` streams: the groups of one text with +N, or one host with ports one
/// after the other. Throws ConfigError that names `key` where the numbers differ.
std::vector<std::string> beam_endpoints(const std::string& key, const std::string& text,
                                        std::size_t n_streams);

/// One heap of every stream, whole or what has come of it; the rest is 0.
struct BeamHeap {
  static constexpr std::int64_t kSpectra = 256;
  std::vector<std::byte> values;                    ///< [stream][channel][spectrum][re, im]
  std::int64_t number = 0;                          ///< timestamp / kSpectra
  SampleClock clock;                                ///< of timestamps
  std::shared_ptr<const std::vector<float>> scale;  ///< as BeamVoltages::scale
};

inline bool same_clock(const SampleClock& a, const SampleClock& b) {
  return a.epoch_tai_ns == b.epoch_tai_ns && a.rate_hz == b.rate_hz;
}

/// Cuts voltages into heaps.
class BeamHeapCutter {
 public:
  /// A stream is a polarization of a beam.
  BeamHeapCutter(std::int64_t n_streams, std::int64_t n_pols, std::int64_t n_channels);
  /// Calls `whole(heap)` for each heap that ends before the voltages do, or where their clock or
  /// their time goes on elsewhere. `whole` may take what is in it.
  template <class Whole>
  void take(const BeamVoltages& voltages, const SampleClock& clock, const Whole& whole) {
    for (std::int64_t done = 0; done < voltages.n;) {
      const Tick tick = voltages.first + done;
      const std::int64_t number = tick / BeamHeap::kSpectra;
      if (number != heap_.number || !same_clock(clock, heap_.clock)) flush(whole);
      heap_.number = number;
      heap_.clock = clock;
      heap_.scale = voltages.scale;
      const std::int64_t n = std::min(voltages.n - done, (number + 1) * BeamHeap::kSpectra - tick);
      copy(voltages, done, n);
      done += n;
    }
  }
  template <class Whole>
  void flush(const Whole& whole) {
    if (any_) whole(heap_);
    any_ = false;
  }

 private:
  void copy(const BeamVoltages& voltages, std::int64_t first, std::int64_t n);

  std::int64_t n_streams_, n_pols_, n_channels_;
  BeamHeap heap_;
  bool any_ = false;
};

/// Sends heaps: bf_raw [channel][spectrum][re, im] of signed bytes, timestamp in spectra since the
/// epoch, frequency 0, beam_ants. A heap of descriptors, with the axes, the epoch and the scale of
/// each channel, goes first, again every ten seconds and where the clock or the scale is another.
/// Not thread-safe. The destructor ends each stream with a stop.
class BeamHeapStreams {
 public:
  struct Info {
    FrequencyAxis frequency;
    std::int64_t n_antennas = 0;
    std::int64_t n_pols = 1;
    std::int64_t packet_bytes = 1472;
    double mb_per_s = 100;  ///< of each stream
  };
  /// Throws ConfigError, IoError.
  BeamHeapStreams(const std::string& key, std::vector<std::string> endpoints, const Info& info);

  /// Waits as mb_per_s asks. Throws ConfigError for a heap or scales of another number of streams.
  void send(const BeamHeap& heap);
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  /// What could not be sent, a text for each stream.
  std::vector<std::string> troubles() const;
  std::int64_t rejected() const;  ///< datagrams that the network rejected

 private:
  using Clock = std::chrono::steady_clock;
  void describe(const BeamHeap& heap);
  void send_started();

  Info info_;
  std::vector<std::string> endpoints_;
  std::vector<std::unique_ptr<SpeadHeaps>> streams_;
  std::vector<SpeadHeaps*> waiting_;  ///< with datagrams that are not sent yet
  SampleClock clock_;
  std::shared_ptr<const std::vector<float>> scale_;
  bool described_ = false;
  Clock::time_point described_at_;
};

/// Endpoints of beams.spead for these beams. Throws ConfigError for what cannot be sent, and where
/// one of them is that of the visibilities or one that the source listens on, by whatever name;
/// IoError (exit 69) for a host or an interface that is not known.
std::vector<std::string> live_beam_endpoints(const ObservationConfig& config,
                                             const BeamSetup& setup);
/// The streams of beams.spead, their sockets connected: before there are data. Throws as
/// live_beam_endpoints() does.
std::unique_ptr<BeamHeapStreams> open_live_beam_streams(const ObservationConfig& config,
                                                        const BeamSetup& setup);
/// Bytes of heaps that wait for the network.
std::int64_t beam_heaps_bytes(const ObservationConfig& config, const BeamSetup& setup);

/// The voltages of a live run as heaps (beams.spead).
/// - Thread: take_voltages() cuts heaps on the engine's thread; "ryle-heaps" sends them.
/// - Reads a queue of beams.queue heaps: a network (or beams.spead_mb_per_s) that is slower than
/// the
///   data drops whole heaps of all streams, counted; a recording waits.
/// - Ends when finish() has sent what is queued, each stream with a stop.
class BeamHeaps final : public BeamConsumer {
 public:
  /// @param streams of open_live_beam_streams()
  BeamHeaps(const ObservationConfig& config, const BeamSetup& setup,
            std::unique_ptr<BeamHeapStreams> streams);
  ~BeamHeaps() override;

  bool wants_host_values() const override { return false; }
  bool wants_voltages() const override { return true; }
  void take(const BeamChunk&) override {}
  void take_voltages(const BeamVoltages& voltages, const SampleClock& clock) override;
  void finish(RunSummary& summary) override;
  std::int64_t memory_bytes() const override;
  bool failed() const override { return failed_; }

 private:
  void offer(BeamHeap& heap);
  void run();

  std::unique_ptr<BeamHeapStreams> streams_;
  BeamHeapCutter cutter_;
  std::int64_t heap_bytes_;
  BoundedQueue<BeamHeap> queue_;
  BoundedQueue<std::vector<std::byte>> free_;
  std::int64_t dropped_ = 0;
  std::int64_t sent_ = 0;  ///< of the thread, until it is joined
  std::atomic<bool> failed_{false};
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle::pipeline
