// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

namespace ryle {

/// Consecutive slots of one stream as they lie in a packet or a read buffer: slot k at data + k *
/// stride_bytes.
struct Run {
  std::uint32_t stream = 0;
  std::int64_t slot = 0;  ///< first one, absolute
  std::int64_t n_slots = 0;
  const std::byte* data = nullptr;
  std::int64_t stride_bytes = 0;
};

/// Where slots lie in a chunk's payload. Offsets are slots since the start of the chunk.
class Placement {
 public:
  virtual ~Placement() = default;
  virtual std::int64_t chunk_bytes(std::int64_t chunk_slots) const = 0;
  /// Copies all slots of `run` to offset, offset + 1, ...
  virtual void place(std::byte* payload, std::int64_t offset, const Run& run) const = 0;
  /// True when one slot of the payload holds what `bytes` points to.
  virtual bool equal(const std::byte* payload, std::int64_t offset, std::uint32_t stream,
                     const std::byte* bytes) const = 0;
  /// Writes the code of sample zero into slots [begin, end) of a stream.
  virtual void fill(std::byte* payload, std::uint32_t stream, std::int64_t begin,
                    std::int64_t end) const = 0;
  /// Called before a chunk goes to another thread: all that was placed is visible from then on.
  virtual void fence_stores() const {}
};

/// Payload [slot][stream][slot_bytes]: time-major interleave (MWA-32T: 32 bytes per receiver and
/// instant).
class InterleavedPlacement final : public Placement {
 public:
  InterleavedPlacement(int n_streams, std::int64_t slot_bytes, std::byte fill_byte);
  std::int64_t chunk_bytes(std::int64_t chunk_slots) const override;
  void place(std::byte* payload, std::int64_t offset, const Run& run) const override;
  bool equal(const std::byte* payload, std::int64_t offset, std::uint32_t stream,
             const std::byte* bytes) const override;
  void fill(std::byte* payload, std::uint32_t stream, std::int64_t begin,
            std::int64_t end) const override;

 private:
  std::int64_t slot_bytes_, row_bytes_;
  std::byte fill_byte_;
};

/// Payload [stream][slot][slot_bytes]: whole packets, stream by stream, for packets of one spectrum
/// (ingest.md 5.1: as sent). Spectra of a stream lie one behind the other, so that a later
/// transpose walks through one stream's memory only.
class StreamMajorPlacement final : public Placement {
 public:
  StreamMajorPlacement(int n_streams, std::int64_t slot_bytes, std::int64_t chunk_slots,
                       std::byte fill_byte);
  std::int64_t chunk_bytes(std::int64_t chunk_slots) const override;
  void place(std::byte* payload, std::int64_t offset, const Run& run) const override;
  bool equal(const std::byte* payload, std::int64_t offset, std::uint32_t stream,
             const std::byte* bytes) const override;
  void fill(std::byte* payload, std::uint32_t stream, std::int64_t begin,
            std::int64_t end) const override;
  void fence_stores() const override;

 private:
  std::int64_t at(std::uint32_t stream, std::int64_t slot) const {
    return (stream * chunk_slots_ + slot) * slot_bytes_;
  }
  std::int64_t n_streams_, slot_bytes_, chunk_slots_;
  std::byte fill_byte_;
};

}  // namespace ryle
