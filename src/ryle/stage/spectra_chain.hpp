// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/correlate/correlator.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/stage/fx_chain.hpp"

namespace ryle::stage {

/// Spectra of an external F-engine (TBF, TBX, ...) to raw dumps: import into planar blocks,
/// correlate.
class SpectraChain {
 public:
  SpectraChain(Queue queue, Recording& recording, const std::string& implementation,
               std::int64_t spectra_per_dump, FxChain::DumpSink sink);
  ~SpectraChain();

  /// Reads and correlates the next gulp of the first `total` spectra; false at the end (the last
  /// dump is then closed).
  bool step(std::int64_t total);

  std::int64_t done() const { return done_; }
  /// Codes lost, one per spectrum, channel and input; channels in no frame at all do not count.
  std::uint64_t lost_samples() const { return lost_samples_; }
  double busy_s() const { return busy_s_; }
  std::string implementation() const { return std::string(correlator_->implementation()); }

 private:
  void mark_valid(std::int64_t n);
  void lose(std::int64_t input, const ChannelGap& gap, std::int64_t n);
  void close_dump();

  Queue queue_;
  Queue import_queue_;  // importing runs on the host
  Recording& recording_;
  FxChain::DumpSink sink_;
  std::int64_t n_channels_ = 0, n_inputs_ = 0;
  std::int64_t spectra_per_gulp_ = 0, spectra_per_dump_ = 0;
  std::unique_ptr<correlate::Correlator> correlator_;
  std::vector<ci8> spectra_;  // [spectrum][channel][input]
  std::vector<AbsentSpan> absent_;
  std::vector<ChannelGap> gaps_;
  std::vector<std::uint8_t> absent_channels_;  // [channel][input]
  Buffer<std::byte> host_blocks_, device_blocks_;
  std::vector<std::uint64_t> valid_;  // [channel][input][words]
  std::int64_t done_ = 0, in_dump_ = 0, dump_first_ = 0;
  std::uint64_t lost_samples_ = 0;
  double busy_s_ = 0;
};

}  // namespace ryle::stage
