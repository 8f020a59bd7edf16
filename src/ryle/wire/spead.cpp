// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/spead.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint64_t kImmediate = std::uint64_t{1} << 63;
constexpr std::uint64_t kMagic = 0x53, kVersion = 4;
constexpr std::uint32_t kName = 0x10, kDescription = 0x11, kShape = 0x12, kFormat = 0x13,
                        kItemId = 0x14, kNumpy = 0x15;  // of a descriptor

std::uint64_t low_bits(std::uint64_t value, int bits) {
  return value & ((std::uint64_t{1} << bits) - 1);
}

// Bits of an address, or 0: ids and addresses are whole bytes, eight in all.
int address_bits(std::uint64_t header) {
  const auto id_bytes = static_cast<int>(header >> 40 & 0xFF);
  const auto address_bytes = static_cast<int>(header >> 32 & 0xFF);
  return id_bytes + address_bytes == 8 && address_bytes >= 4 && address_bytes <= 6
             ? 8 * address_bytes
             : 0;
}

std::uint64_t pointer(std::uint32_t id, bool immediate, std::uint64_t value) {
  return (immediate ? kImmediate : 0) | std::uint64_t{id} << kSpeadAddressBits |
         low_bits(value, kSpeadAddressBits);
}

}  // namespace

const SpeadItem* SpeadPacket::find(std::uint32_t id) const noexcept {
  for (std::size_t k = 0; k < n_items; ++k)
    if (items[k].id == id) return &items[k];
  return nullptr;
}

std::uint64_t SpeadPacket::end_of(const SpeadItem& item) const noexcept {
  std::uint64_t end = heap_bytes;
  for (std::size_t k = 0; k < n_items; ++k)
    if (!items[k].immediate && items[k].value > item.value) end = std::min(end, items[k].value);
  return end;
}

bool SpeadPacket::is_stop() const noexcept {
  const SpeadItem* control = find(kSpeadControl);
  return control != nullptr && control->immediate && control->value == kSpeadStop;
}

Reject parse_spead(std::span<const std::byte> datagram, SpeadPacket& packet) noexcept {
  if (datagram.size() < 8) return Reject::too_short;
  const auto header = load_be<std::uint64_t>(datagram.data());
  if (header >> 56 != kMagic) return Reject::magic;
  const int bits = address_bits(header);
  if ((header >> 48 & 0xFF) != kVersion || bits == 0) return Reject::version;
  const std::size_t n_items = header & 0xFFFF;
  const std::size_t payload_at = 8 + 8 * n_items;
  if (datagram.size() < payload_at) return Reject::too_short;
  SpeadPacket& p = packet;
  p.address_bits = bits;
  p.n_items = 0;
  std::array<std::uint64_t, 5> own{};
  std::uint32_t seen = 0;
  for (std::size_t k = 0; k < n_items; ++k) {
    const auto word = load_be<std::uint64_t>(datagram.data() + 8 + 8 * k);
    SpeadItem item;
    item.id = static_cast<std::uint32_t>((word & ~kImmediate) >> bits);
    item.immediate = (word & kImmediate) != 0;
    item.value = low_bits(word, bits);
    if (item.id == 0) continue;  // padding
    if (item.id < own.size()) {
      if (!item.immediate) return Reject::field;
      own[item.id] = item.value;
      seen |= 1u << item.id;
    } else if (p.n_items == SpeadPacket::kMaxItems) {
      return Reject::field;
    } else {
      p.items[p.n_items++] = item;
    }
  }
  if (seen != 0b11110) return Reject::field;
  p.heap_counter = own[kSpeadHeapCounter];
  p.heap_bytes = own[kSpeadHeapLength];
  p.offset = own[kSpeadPayloadOffset];
  const std::uint64_t length = own[kSpeadPayloadLength];
  if (p.offset > p.heap_bytes || length > p.heap_bytes - p.offset) return Reject::length;
  const std::size_t have = datagram.size() - payload_at;
  if (have < length) return Reject::too_short;
  if (have > length) return Reject::too_long;
  p.payload_offset = payload_at;
  p.payload_bytes = have;
  return Reject::none;
}

std::size_t write_spead_header(const SpeadPacket& packet, std::span<std::byte> out) noexcept {
  const std::size_t size = spead_header_bytes(packet.n_items);
  if (packet.n_items > SpeadPacket::kMaxItems || out.size() < size) return 0;
  const std::uint64_t n = 4 + packet.n_items;
  store_be<std::uint64_t>(out.data(), kMagic << 56 | kVersion << 48 | 0x0206'0000'0000 | n);
  const std::array<std::uint64_t, 5> own{0, packet.heap_counter, packet.heap_bytes, packet.offset,
                                         packet.payload_bytes};
  std::byte* at = out.data() + 8;
  for (std::uint32_t id = 1; id < own.size(); ++id, at += 8)
    store_be(at, pointer(id, true, own[id]));
  for (std::size_t k = 0; k < packet.n_items; ++k, at += 8) {
    const SpeadItem& item = packet.items[k];
    store_be(at, pointer(item.id, item.immediate, item.value));
  }
  return size;
}

std::optional<SpeadDescription> parse_spead_descriptor(std::span<const std::byte> bytes) noexcept {
  SpeadPacket p;
  if (parse_spead(bytes, p) != Reject::none) return std::nullopt;
  const SpeadItem* id = p.find(kItemId);
  if (id == nullptr || !id->immediate || p.offset != 0) return std::nullopt;
  SpeadDescription d;
  d.id = static_cast<std::uint32_t>(id->value);
  const auto text = [&](std::uint32_t which) -> std::string_view {
    const SpeadItem* item = p.find(which);
    if (item == nullptr || item->immediate || item->value > p.payload_bytes) return {};
    const std::uint64_t end = std::min<std::uint64_t>(p.end_of(*item), p.payload_bytes);
    const auto* begin = reinterpret_cast<const char*>(bytes.data() + p.payload_offset);
    return {begin + item->value, static_cast<std::size_t>(end - item->value)};
  };
  d.name = text(kName);
  d.numpy = text(kNumpy);
  return d;
}

std::vector<std::byte> spead_descriptor(std::uint32_t id, std::string_view name,
                                        std::string_view description, std::string_view numpy) {
  // One unsigned number: its letter, then its bits in so many bytes that ids have.
  constexpr char kNumber[] = {'u', 0, kSpeadAddressBits};
  const std::string_view format = numpy.empty() ? std::string_view(kNumber, sizeof kNumber) : "";
  SpeadPacket p;
  p.heap_counter = 1;
  p.items[p.n_items++] = {kItemId, true, id};
  std::string payload;
  for (const auto& [item, text] : {std::pair{kName, name}, std::pair{kDescription, description},
                                   std::pair{kShape, std::string_view()},
                                   std::pair{kFormat, format}, std::pair{kNumpy, numpy}}) {
    if (item == kNumpy && numpy.empty()) continue;
    p.items[p.n_items++] = {item, false, payload.size()};
    payload += text;
  }
  p.heap_bytes = p.payload_bytes = payload.size();
  std::vector<std::byte> bytes(spead_header_bytes(p.n_items) + payload.size());
  const std::size_t header = write_spead_header(p, bytes);
  std::memcpy(bytes.data() + header, payload.data(), payload.size());
  return bytes;
}

}  // namespace ryle::wire
