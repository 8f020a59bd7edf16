// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/simulate/fengine.hpp"
#include "ryle/simulate/sender.hpp"

/// The back end of BEST-2 as a sender of its packets (wire/best2.hpp).
namespace ryle::simulate {

/// Pulses of one source: in [start, start + width) of each channel's own time the packets carry
/// `record` instead of the quiet one. @unit spectra since the start of the counter, not rounded
struct Best2Pulse {
  double start_spectra = 0;  ///< of the first pulse, in the highest channel
  double width_spectra = 0;
  double period_spectra = 0;  ///< 0: once
  double dm_pc_cm3 = 0;
  const SpectraRecord* record = nullptr;  ///< of the shape of the quiet one; copied
};

struct Best2SenderConfig {
  std::string endpoint;            ///< "udp://host:port"
  std::int64_t first_channel = 0;  ///< as the sky is ordered in the packets; n = the record's
  bool descending = true;          ///< channel 0 of the packets is the highest of the record
  double speed = 1;                ///< times real time; 0 = the packet ceiling
  double duration_s = 0;           ///< of data; 0 = until stop()
  std::int64_t start_block = 0;    ///< counter of the first packet: blocks of 128 spectra
  std::vector<Outage> outages;     ///< receiver = 0
  double udp_ceiling_packets_per_s = 400'000;
  bool segmentation = true;  ///< hand the kernel many packets at once where it can cut them
  SendImpairments impairments;
  PacketSink sink;
};

/// Block after block of all channels; pulses are cut into it on the way. "Samples" of the report
/// are packets; it has one entry.
class Best2Sender final : public Sender {
 public:
  /// Packs the packets; the records are not needed afterwards. Throws ConfigError for a record that
  /// is not 32 inputs, whole blocks of 128 spectra, at most 1024 channels.
  Best2Sender(const SpectraRecord& quiet, const std::vector<Best2Pulse>& pulses,
              const Best2SenderConfig& config);
  /// Spectra that are drawn while they are sent, without a period: pulses are in them. @pre
  /// config.start_block is a multiple of the stream's blocks
  Best2Sender(std::shared_ptr<const SpectraStream> stream, const Best2SenderConfig& config);
  std::int64_t memory_bytes() const override;

 private:
  struct State;
  void make_link(const SpectraRecord& quiet, const std::vector<Best2Pulse>& pulses,
                 std::int64_t n_laps, const Best2SenderConfig& config);
  std::shared_ptr<State> state_;
};

}  // namespace ryle::simulate
