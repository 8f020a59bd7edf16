// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/simulate/fengine_sender.hpp"
#include "ryle/simulate/sender.hpp"
#include "ryle/wire/described.hpp"

namespace ryle::simulate {

struct DescribedSenderConfig {
  wire::PacketDescription packet;
  wire::DescribedGeometry streams;     ///< boards and channels sent
  bool descending = false;             ///< the first channel number is the highest of the record
  std::vector<std::string> endpoints;  ///< "udp://host:port": one for all boards, or one each
  double speed = 1;                    ///< times real time; 0 = the packet ceiling
  double duration_s = 0;               ///< of data; 0 = until stop()
  std::vector<Outage> outages;         ///< receiver = board
  double udp_ceiling_packets_per_s = 200'000;
  bool segmentation = true;  ///< hand the kernel many packets at once where it can cut them
  SendImpairments impairments;
  PacketSink sink;
};

/// Pulses of one source: in [start, start + width) of each channel's own time the packets carry
/// `record` instead of the quiet one. @unit spectra since the start of the counter, not rounded
struct DispersedPulse {
  double start_spectra = 0;  ///< of the first pulse, in the highest channel
  double width_spectra = 0;
  double period_spectra = 0;  ///< 0: once
  double dm_pc_cm3 = 0;
  const SpectraRecord* record = nullptr;  ///< of the shape of the quiet one; copied
};

/// The boards of a described array, over UDP. "Samples" of the report are packets; it has an entry
/// for each board. Counters begin at 0, or where they are dated at the time of the record.
class DescribedSender final : public Sender {
 public:
  /// Time samples: `record` was made with the bits and kind of the description's samples. Throws
  /// ConfigError for a record that packets do not divide.
  DescribedSender(const VoltageRecord& record, const DescribedSenderConfig& config);
  /// Spectra, 4+4 bits whatever the description has; a sky that changes as FengineSender's.
  DescribedSender(std::span<const SpectraEpoch> epochs, const DescribedSenderConfig& config);
  /// Spectra with pulses that are cut into the packets on the way; no record is needed afterwards.
  DescribedSender(const SpectraRecord& quiet, const std::vector<DispersedPulse>& pulses,
                  const DescribedSenderConfig& config);
  /// Samples and spectra that are drawn while they are sent, without a period.
  DescribedSender(std::shared_ptr<const VoltageStream> stream, const DescribedSenderConfig& config);
  DescribedSender(std::shared_ptr<const SpectraStream> stream, const DescribedSenderConfig& config);
  std::int64_t memory_bytes() const override;

 private:
  struct Shape;
  class Packer;
  class PulseCutter;
  std::shared_ptr<const Packer> add_links(const Shape& shape, const DescribedSenderConfig& config,
                                          const std::vector<DispersedPulse>& pulses = {});
  template <class Value>
  void pack_records(const Packer& packer, std::int64_t n_records, const Value& value);
  template <class Draw>
  void feed(std::shared_ptr<const Packer> packer, const Draw& draw);

  std::int64_t pulse_bytes_ = 0;
};

}  // namespace ryle::simulate
