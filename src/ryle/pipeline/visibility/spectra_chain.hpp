// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"
#include "ryle/pipeline/visibility/integration.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"

namespace ryle::pipeline {

/// Spectra of an external F-engine, live or recorded, to raw dumps.
/// - Thread: one stage thread owns it; the sink is called on it.
/// - Reads gulps that end where dumps do: advance(), then feed().
/// - Hands on a RawDump every spectra_per_dump spectra, at a new segment, and in flush().
/// - Spectra that a gap skips count as nominal spectra without weight; a whole integration of
///   nothing is not made (Integration).
class SpectraChain {
 public:
  struct Setup {
    std::int64_t n_inputs = 0;
    std::int64_t n_channels = 0;
    SampleFormat format = SampleFormat::ci8;
    std::int64_t max_gulp = 512;  ///< most spectra feed() brings
    std::int64_t spectra_per_dump = 1;
    std::string implementation = "auto";
  };
  SpectraChain(Queue queue, const Setup& setup, FxChain::DumpSink sink);
  ~SpectraChain();

  /// Where the next gulp starts; returns the spectra that still go into the open dump
  /// (Integration::advance).
  std::int64_t advance(std::int64_t first, std::int64_t segment, const SampleClock& clock);
  /// Adds a gulp. @pre n_spectra <= what advance() returned, max_gulp
  void feed(const SpectraGulp& gulp);
  /// Closes the open dump as short.
  void flush();

  std::int64_t spectra_done() const { return dump_.total(); }
  double busy_s() const { return busy_s_; }
  std::string implementation() const { return std::string(correlator_->implementation()); }

 private:
  void close_dump();

  Setup setup_;
  Queue queue_;
  FxChain::DumpSink sink_;
  std::unique_ptr<correlate::Correlator> correlator_;
  DeviceBlocks own_blocks_;  // of gulps that no other node reads
  Integration dump_;
  double busy_s_ = 0;
};

/// The correlator of these dumps.
correlate::Config correlator_config(const SpectraChain::Setup& setup);

}  // namespace ryle::pipeline
