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

/// The boards of a described array, over UDP. "Samples" of the report are packets; it has an entry
/// for each board. Counters begin at 0, or where they are dated at the time of the record.
class DescribedSender final : public Sender {
 public:
  /// Time samples: `record` was made with the bits and kind of the description's samples. Throws
  /// ConfigError for a record that packets do not divide.
  DescribedSender(const VoltageRecord& record, const DescribedSenderConfig& config);
  /// Spectra, 4+4 bits whatever the description has; a sky that changes as FengineSender's.
  DescribedSender(std::span<const SpectraEpoch> epochs, const DescribedSenderConfig& config);
  /// Samples and spectra that are drawn while they are sent, without a period.
  DescribedSender(std::shared_ptr<const VoltageStream> stream, const DescribedSenderConfig& config);
  DescribedSender(std::shared_ptr<const SpectraStream> stream, const DescribedSenderConfig& config);

 private:
  struct Shape;
  class Packer;
  std::shared_ptr<const Packer> add_links(const Shape& shape, const DescribedSenderConfig& config);
  template <class Value>
  void pack_records(const Packer& packer, std::int64_t n_records, const Value& value);
  template <class Draw>
  void feed(std::shared_ptr<const Packer> packer, const Draw& draw);
};

}  // namespace ryle::simulate
