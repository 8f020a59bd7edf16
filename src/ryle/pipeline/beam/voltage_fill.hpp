// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/io/beam/voltage_dump.hpp"
#include "ryle/runtime/chunk.hpp"

namespace ryle::pipeline {

/// Ticks of every row of a dump (VoltageForm).
struct VoltageWindow {
  std::vector<Tick> first;  ///< [row], multiples of a unit
  Tick n_ticks = 0;         ///< of every row, a multiple of a unit

  Tick begin() const;
  Tick end() const;
  bool holds(const VoltageWindow& other) const;
  /// Grows to what both ask for.
  void merge(const VoltageWindow& other);
};

/// How the chunks of a source become units of a dump.
struct VoltageChunks {
  VoltageForm form;
  std::int64_t chunk_ticks = 0;  ///< of a chunk's memory, whatever it holds
  /// Spectra: planar blocks and masks of a chunk (SpectraSource::unpack), safe on any thread ...
  std::function<void(const Chunk&, SpectraBlocks&)> unpack;
  SpectraShape blocks;  ///< ... of this shape
};

/// Writes what chunks hold of a window into a dump, and marks what they lack. Samples and packets
/// are written as they lie in the chunk; spectra are unpacked and turned into [spectrum][input].
class VoltageFill {
 public:
  /// @param blocks room for VoltageChunks::blocks; null unless the form is of spectra
  VoltageFill(const VoltageChunks& chunks, const VoltageWindow& window, SpectraBlocks* blocks,
              VoltageDumpWriter& writer);

  /// @pre chunks ascend in time
  void add(const Chunk& chunk);
  /// No more chunks.
  void finish(const std::vector<DumpTrigger>& triggers, std::int64_t n_unlisted);
  /// Packets of a channel, or values of an input (in a channel), as in DumpRecord.
  std::int64_t n_absent() const { return n_absent_; }

 private:
  struct Part {
    Tick first = 0;  ///< since the beginning of the row
    Tick n = 0;      ///< <= 0: none
  };
  Part part_of(std::int64_t row, Tick begin, Tick end) const;
  void add_packets(const Chunk& chunk);
  void add_spectra(const Chunk& chunk);
  void add_samples(const Chunk& chunk);
  void mark_absent(Tick begin, Tick end);
  void write_bits(std::int64_t row, const Part& part);

  const VoltageChunks& chunks_;
  const VoltageWindow& window_;
  SpectraBlocks* blocks_;
  VoltageDumpWriter& writer_;
  std::int64_t present_bytes_;
  Tick done_;                          ///< everything before it is written or marked
  std::vector<std::uint8_t> packets_;  ///< [channel][packet], 1 = received
  std::vector<std::byte> cells_;       ///< [spectrum][input] of one channel
  std::vector<std::uint8_t> bits_;     ///< [tick][(n_inputs + 7) / 8]
  std::int64_t n_absent_ = 0;
};

}  // namespace ryle::pipeline
