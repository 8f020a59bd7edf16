// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/spead.hpp"

#include <array>
#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint64_t kImmediate = std::uint64_t{1} << 63;
constexpr std::uint64_t kValueMask = (std::uint64_t{1} << 48) - 1;
constexpr std::uint32_t kPrefix =
    0x53040206;  // magic, version, id bytes 2 (mode bit included), address bytes 6

// The items every packet must carry, in the order they are written.
enum Item : std::size_t {
  heap_counter,
  heap_length,
  payload_offset,
  payload_length,
  timestamp,
  feng_id,
  frequency
};
constexpr std::array<std::uint32_t, 7> kIds{1, 2, 3, 4, 0x1600, 0x4101, 0x4103};
constexpr std::size_t kHeaderBytes = 8 + 8 * kIds.size();

struct Items {
  std::array<std::uint64_t, kIds.size()> value{};
  std::uint32_t seen = 0;
  bool control = false;
};

Items read_items(const std::byte* pointers, std::size_t n) {
  Items items;
  for (std::size_t k = 0; k < n; ++k) {
    const auto pointer = load_be<std::uint64_t>(pointers + 8 * k);
    const auto id = static_cast<std::uint32_t>(pointer >> 48) & 0x7FFFu;
    if (id == 5 || id == 6) items.control = true;
    for (std::size_t j = 0; j < kIds.size(); ++j) {
      if (id != kIds[j] || (pointer & kImmediate) == 0) continue;
      items.value[j] = pointer & kValueMask;
      items.seen |= 1u << j;
    }
  }
  return items;
}

// A payload must be inside its heap and cut between samples of 4 bytes (two polarizations).
bool payload_fits(const SpeadGeometry& geometry, std::uint64_t offset, std::uint64_t length) {
  const std::uint64_t heap = geometry.heap_bytes();
  return length > 0 && length <= heap && offset <= heap - length && offset % 4 == 0 &&
         length % 4 == 0 && heap <= 0xFFFFFFFFu;
}

}  // namespace

Reject decode(const SpeadGeometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept {
  if (datagram.size() < 8) return Reject::too_short;
  const auto header = load_be<std::uint64_t>(datagram.data());
  if (header >> 56 != 0x53) return Reject::magic;
  if (header >> 32 != kPrefix) return Reject::version;
  const std::size_t n_items = header & 0xFFFF;
  if ((header >> 16 & 0xFFFF) != 0) return Reject::field;
  if (datagram.size() < 8 + 8 * n_items) return Reject::too_short;
  const Items items = read_items(datagram.data() + 8, n_items);
  if (items.control) return Reject::control;
  if (items.seen != (1u << kIds.size()) - 1) return Reject::field;
  const std::uint64_t offset = items.value[payload_offset], length = items.value[payload_length];
  if (items.value[heap_length] != geometry.heap_bytes() ||
      !payload_fits(geometry, offset, length)) {
    return Reject::length;
  }
  const std::size_t have = datagram.size() - (8 + 8 * n_items);
  if (have < length) return Reject::too_short;
  if (have > length) return Reject::too_long;
  if (items.value[feng_id] >= geometry.n_streams) return Reject::foreign_stream;
  if (geometry.n_channels > geometry.max_channels) return Reject::field;
  if (items.value[frequency] > geometry.max_channels - geometry.n_channels) return Reject::field;
  packet = Packet{};
  packet.stream = static_cast<std::uint32_t>(items.value[feng_id]);
  packet.tick_raw = items.value[timestamp];
  packet.tick_bits = 48;
  packet.n_ticks = geometry.n_spectra;
  packet.channel = static_cast<std::uint32_t>(items.value[frequency]);
  packet.n_channels = geometry.n_channels;
  packet.input = 2 * packet.stream;
  packet.n_inputs = 2;
  packet.payload_offset = static_cast<std::uint32_t>(8 + 8 * n_items);
  packet.payload_bytes = static_cast<std::uint32_t>(length);
  packet.flags = static_cast<std::uint32_t>(offset);
  return Reject::none;
}

std::size_t encode(const SpeadGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.stream >= geometry.n_streams || packet.tick_raw > kValueMask) return 0;
  if (geometry.n_channels > geometry.max_channels) return 0;
  if (packet.channel > geometry.max_channels - geometry.n_channels) return 0;
  if (!payload_fits(geometry, packet.flags, payload.size())) return 0;
  const std::size_t total = kHeaderBytes + payload.size();
  if (out.size() < total) return 0;
  const std::array<std::uint64_t, kIds.size()> value{
      packet.tick_raw, geometry.heap_bytes(), packet.flags,  payload.size(),
      packet.tick_raw, packet.stream,         packet.channel};
  store_be(out.data(), std::uint64_t{kPrefix} << 32 | kIds.size());
  for (std::size_t k = 0; k < kIds.size(); ++k) {
    store_be(out.data() + 8 + 8 * k, kImmediate | std::uint64_t{kIds[k]} << 48 | value[k]);
  }
  std::memcpy(out.data() + kHeaderBytes, payload.data(), payload.size());
  return total;
}

}  // namespace ryle::wire
