// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/device/event.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/pipeline/base/device_samples.hpp"

namespace ryle::pipeline {

/// F and X of samples that come in chunks of page-locked memory as fast as the device takes them:
/// a chunk is copied in while those before it are channelized and correlated and the sums of a dump
/// before are copied out. Every sample crosses the bus once. No gaps between chunks; FxChain takes
/// samples as they come. Not thread safe: one stage thread owns it.
class FxStream {
 public:
  struct Setup {
    channelize::Config channelize;       ///< layout: whole bytes a tick; max_spectra is set here
    correlate::Config correlate;         ///< sizes and format are set here
    std::int64_t chunk_ticks = 0;        ///< of every push(), a multiple of 64
    std::int64_t max_delay_samples = 0;  ///< largest |delay| that will be set
    int n_slots = 4;                     ///< chunks on the device, waiting ones included
    bool always_transposed = false;      ///< as DeviceSamples::Setup
  };
  FxStream(const Queue& queue, const Setup& setup);
  ~FxStream();

  /// As many chunks wait as there are slots but for the one to be worked on.
  bool full() const { return samples_.full(); }
  bool empty() const { return samples_.empty(); }
  /// Begins to copy the next chunk_ticks ticks. The memory is read until wait_copied() returns.
  /// @param absent of this chunk, in ticks since the first one pushed
  void push(const void* chunk, std::span<const AbsentSpan> absent = {});
  void wait_copied() { samples_.wait_copied(); }
  /// Gives the queue the work on the oldest chunk that waits: all spectra it completes.
  /// @pre !empty()
  void advance();

  /// Sums of everything advance() was called for since the last dump, once they are here.
  struct Dump {
    std::span<const ci64> integer;  ///< or `real`; [channel][pair]
    std::span<const cf64> real;
    std::span<const std::uint32_t> counts;  ///< empty = n_spectra everywhere
    std::int64_t n_spectra = 0;
  };
  /// Sends them on their way. @pre the dump before was waited for
  void begin_dump();
  /// Valid until the next begin_dump().
  Dump wait_dump();

  channelize::Channelizer& channelizer() { return *channelizer_; }
  const correlate::Correlator& correlator() const { return *correlator_; }
  std::int64_t spectra_done() const { return next_spectrum_ - first_spectrum_; }

 private:
  struct Outgoing;  // CUDA: a dump on its way to the host

  Setup setup_;
  Queue queue_;
  DeviceSamples samples_;
  std::unique_ptr<channelize::Channelizer> channelizer_;
  std::unique_ptr<correlate::Correlator> correlator_;
  Buffer<std::byte> blocks_;
  Buffer<std::uint64_t> valid_;
  std::vector<AbsentSpan> absent_;
  correlate::Sums sums_;
  std::unique_ptr<Outgoing> outgoing_;
  bool dump_waits_ = false;
  Tick pushed_ = 0;
  Tick received_ = 0;  // end of the last chunk worked on
  std::int64_t first_spectrum_ = 0;
  std::int64_t next_spectrum_ = 0;
};

}  // namespace ryle::pipeline
