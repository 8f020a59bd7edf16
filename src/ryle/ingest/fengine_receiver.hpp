// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <span>
#include <vector>

#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/receiver_thread.hpp"
#include "ryle/ingest/segment_clocks.hpp"

namespace ryle {

/// The thread behind FengineSource: reads the sockets, the furthest behind first, and feeds the
/// assembler one spectrum of one stream at a time.
class FengineReceiver : public ReceiverThread {
 public:
  explicit FengineReceiver(const FengineSourceConfig& config);
  ~FengineReceiver() override;

  const FengineSourceConfig& config() const { return config_; }
  const FengineLayout& layout() const { return layout_; }
  SampleClock clock() const { return clocks_.newest(); }
  /// Of a segment chunks of which are with the consumer or wait for it.
  SampleClock clock(std::int64_t segment) const { return clocks_.of(segment); }

 private:
  bool serve(int timeout_ms) override;
  void segment_begun() override;
  bool keeps_grid() const override;
  void date_by_arrival();
  Reason take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) override;

  FengineSourceConfig config_;
  FengineLayout layout_;
  std::int64_t skew_limit_;           ///< spectra a socket may be read ahead of another
  std::uint64_t ticks_per_spectrum_;  ///< of the packets' counter
  std::uint64_t tick_raw_ = 0;        ///< of the packet that is being offered
  std::uint64_t grid_ = 0;            ///< ticks that those of this segment begin after spectra
  SegmentClocks clocks_;
};

}  // namespace ryle
