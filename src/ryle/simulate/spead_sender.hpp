// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/simulate/fengine_sender.hpp"

namespace ryle::simulate {

struct SpeadSenderConfig {
  /// "udp://host:port": one for all F-engines, or one each; of beams one each.
  std::vector<std::string> endpoints;
  bool beams = false;                  ///< heaps of a B-engine, one polarization each
  std::int64_t first_channel = 0;      ///< number of channel 0 of the record, as the heaps count
  std::int64_t channels_per_heap = 0;  ///< 0 = all; must divide
  std::int64_t spectra_per_heap = 256;
  std::int64_t ticks_per_spectrum = 1;    ///< of the timestamps, which begin at 0
  std::int64_t max_payload_bytes = 8192;  ///< of a packet; all packets of a heap have as many
  double speed = 1;                       ///< times real time; 0 = the packet ceiling
  double duration_s = 0;                  ///< of data; 0 = until stop()
  std::vector<Outage> outages;            ///< receiver = F-engine
  double udp_ceiling_packets_per_s = 100'000;
  bool segmentation = true;  ///< hand the kernel many packets at once where it can cut them
  SendImpairments impairments;
  PacketSink sink;
};

/// F-engines that send SPEAD-64-48 heaps as MeerKAT's do (wire/spead.hpp), every packet with all
/// items: feng_raw [channel][spectrum][polarization][re, im] of signed bytes that hold the 4+4 bits
/// of the record. Or the B-engines of single beams: bf_raw without the axis of the polarization.
/// "Samples" of the report are packets; it has one entry per (channel block, F-engine).
class SpeadSender final : public Sender {
 public:
  /// A sky that changes, as FengineSender's. Throws ConfigError for a record that is no whole
  /// number of heaps.
  SpeadSender(std::span<const SpectraEpoch> epochs, const SpeadSenderConfig& config);
  /// Spectra that are drawn while they are sent, without a period.
  SpeadSender(std::shared_ptr<const SpectraStream> stream, const SpeadSenderConfig& config);

 private:
  struct Heaps;
  std::shared_ptr<const Heaps> make_links(const SpectraRecord& record, std::int64_t n_laps,
                                          std::span<const SpectraEpoch> epochs,
                                          const SpeadSenderConfig& config);
};

}  // namespace ryle::simulate
