// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/samples.hpp"
#include "ryle/ingest/placement.hpp"
#include "ryle/wire/described.hpp"
#include "ryle/wire/strided_copy.hpp"

namespace ryle {

/// How time samples of described packets lie in a chunk, [tick][input]: in the format they are sent
/// in where engines read it, otherwise as i8 or i16 (ci8, ci16) in two's complement.
/// @pre validate() has passed, the packets hold no channels
SampleLayout described_samples(const wire::PacketDescription& packet, std::int64_t n_inputs);

/// Puts described packets of time samples into chunks of described_samples(): a slot is a packet, a
/// stream a board; its inputs follow those of the boards before it.
class DescribedPlacement final : public Placement {
 public:
  DescribedPlacement(const wire::PacketDescription& packet, std::int64_t n_inputs);
  std::int64_t chunk_bytes(std::int64_t chunk_slots) const override;
  void place(std::byte* payload, std::int64_t offset, const Run& run) const override;
  bool equal(const std::byte* payload, std::int64_t offset, std::uint32_t stream,
             const std::byte* bytes) const override;
  void fill(std::byte* payload, std::uint32_t stream, std::int64_t begin,
            std::int64_t end) const override;

 private:
  std::byte* at(std::byte* payload, std::int64_t slot, std::uint32_t stream) const {
    return payload + slot * packet_ticks_ * row_bytes_ + stream * board_bytes_;
  }
  void convert(const std::byte* packet, std::byte* to) const;

  SampleLayout layout_;
  wire::PayloadMap map_;
  wire::StridedCopy copy_;
  std::int64_t first_bytes_ = 0;
  bool copies_ = false;  ///< otherwise every part is decoded
  std::int64_t packet_ticks_, packet_inputs_, row_bytes_, board_bytes_;
};

}  // namespace ryle
