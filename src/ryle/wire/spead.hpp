// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/wire/packet.hpp"

// SPEAD version 4 with 64-bit item pointers, any split of them into id and address: 64-48 as
// MeerKAT's F-engines send it, 64-40 as the spead2 package does unless told otherwise (ingest.md
// 2.5). A heap is cut into packets; each says which bytes of it it holds.

namespace ryle::wire {

/// Items of every heap, and those of MeerKAT's F- and X-engines.
enum SpeadId : std::uint32_t {
  kSpeadHeapCounter = 1,
  kSpeadHeapLength = 2,
  kSpeadPayloadOffset = 3,
  kSpeadPayloadLength = 4,
  kSpeadDescriptor = 5,
  kSpeadControl = 6,  ///< value kSpeadStop: the sender ends
  kSpeadTimestamp = 0x1600,
  kSpeadXengRaw = 0x1800,
  kSpeadFengId = 0x4101,
  kSpeadFrequency = 0x4103,
  kSpeadFengRaw = 0x4300,
  kSpeadBfRaw = 0x5000,
};
inline constexpr std::uint64_t kSpeadStop = 2;
inline constexpr int kSpeadAddressBits = 48;  ///< of what Ryle sends

struct SpeadItem {
  std::uint32_t id = 0;
  bool immediate = false;
  std::uint64_t value = 0;  ///< or the address of its first byte in the heap
};

/// A packet of a heap. The items 1 to 4 are not among `items`.
struct SpeadPacket {
  static constexpr std::size_t kMaxItems = 64;
  int address_bits = kSpeadAddressBits;
  std::uint64_t heap_counter = 0;
  std::uint64_t heap_bytes = 0;
  std::uint64_t offset = 0;        ///< of its payload in the heap
  std::size_t payload_offset = 0;  ///< in the datagram
  std::size_t payload_bytes = 0;
  std::size_t n_items = 0;
  std::array<SpeadItem, kMaxItems> items;

  /// nullptr where there is none.
  const SpeadItem* find(std::uint32_t id) const noexcept;
  /// End in the heap of an item that has an address: the next address, or the end of the heap.
  std::uint64_t end_of(const SpeadItem& item) const noexcept;
  bool is_stop() const noexcept;
};

/// Takes any packet of a heap apart, also one without payload. Refused: not SPEAD-4 (magic,
/// version), more items than kMaxItems or without the items 1 to 4 as immediates (field), a payload
/// that does not lie in its heap (length), a datagram shorter or longer than it says. `packet` is
/// then left as it may be.
Reject parse_spead(std::span<const std::byte> datagram, SpeadPacket& packet) noexcept;

/// Bytes of a packet before its payload.
constexpr std::size_t spead_header_bytes(std::size_t n_items) { return 8 + 8 * (4 + n_items); }
/// Writes the header of a packet with kSpeadAddressBits: `packet` without payload_offset and
/// address_bits. Returns spead_header_bytes(), or 0 where it does not fit.
std::size_t write_spead_header(const SpeadPacket& packet, std::span<std::byte> out) noexcept;

/// What a descriptor (item 5) says of an item. Texts point into the bytes of the descriptor.
struct SpeadDescription {
  std::uint32_t id = 0;
  std::string_view name;
  std::string_view numpy;  ///< "{'descr': '|i1', 'fortran_order': False, 'shape': (4, 256, 2, 2)}"
};
std::optional<SpeadDescription> parse_spead_descriptor(std::span<const std::byte> bytes) noexcept;
/// The descriptor of an item with this numpy header, or of one unsigned number of
/// kSpeadAddressBits where that is "".
std::vector<std::byte> spead_descriptor(std::uint32_t id, std::string_view name,
                                        std::string_view description, std::string_view numpy);

}  // namespace ryle::wire
