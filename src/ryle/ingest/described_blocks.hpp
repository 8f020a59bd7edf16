// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/wire/described.hpp"
#include "ryle/wire/strided_copy.hpp"

namespace ryle {

/// Turns chunks of described packets of spectra, kept as they were sent, into planar blocks.
/// Allocates when it is made.
class DescribedBlocks {
 public:
  struct Shape {
    std::int64_t n_channels = 0;
    std::int64_t n_inputs = 0;
    std::int64_t chunk_spectra = 0;  ///< a multiple of 128 and of the spectra of a packet
    bool descending = false;         ///< channels of a packet descend in frequency: order is turned
  };
  /// Blocks are ci4 where samples are ci4, ci8 for parts of up to 8 bits, else ci16. Throws
  /// ConfigError for real samples and for channels and inputs that packets do not divide.
  DescribedBlocks(const wire::PacketDescription& packet, const Shape& shape);

  SpectraShape spectra_shape() const;
  std::int64_t n_streams() const { return n_blocks_ * n_boards_; }
  std::int64_t n_boards() const { return n_boards_; }

  /// `chunk` has payloads [stream][packet][payload bytes], streams as blocks of channels ascend in
  /// frequency, boards inside; absent spans are of streams. Absent
  /// samples and the tail of the last block are 0 whatever the chunk holds there.
  void unpack(const Chunk& chunk, SpectraBlocks& spectra) const;

 private:
  std::int64_t memory_channel(std::int64_t block) const;
  void copy_block(const std::byte* packets, std::int64_t block, std::byte* cells) const;
  void convert_block(const std::byte* packets, std::int64_t block, std::int64_t stream,
                     std::int64_t n_spectra, const BlockView& out) const;
  void finish_codes(std::int64_t stream, std::int64_t block, const BlockView& out) const;
  void clear(std::int64_t stream, std::int64_t begin, std::int64_t end, const BlockView& out) const;

  Shape shape_;
  SampleFormat format_;
  wire::PayloadMap map_;
  std::int64_t packet_channels_, packet_spectra_, packet_inputs_, payload_bytes_;
  std::int64_t n_blocks_, n_boards_, block_spectra_;
  bool copies_ = false;     ///< otherwise every sample is decoded
  wire::StridedCopy copy_;  ///< of one block of one stream
  std::int64_t first_bytes_ = 0;
  std::uint8_t flip_ = 0;  ///< offset binary to two's complement
  bool swap_nibbles_ = false;
};

}  // namespace ryle
