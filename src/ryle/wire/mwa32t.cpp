// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/mwa32t.hpp"

#include <bit>
#include <cstring>

#include "ryle/wire/bytes.hpp"
#include "ryle/wire/extend.hpp"

namespace ryle::wire {
namespace {

// The largest n whose packet fits one UDP datagram (65507 bytes over IPv4).
constexpr std::uint32_t kMaxInstants =
    (65507 - kMwa32tUdpHeaderBytes) / kMwa32tPayloadBytesPerInstant;

bool instants_fit(const Mwa32tGeometry& geometry, std::uint32_t n) {
  return geometry.n_instants != 0 ? n == geometry.n_instants : n >= 1 && n <= kMaxInstants;
}

std::uint32_t low_bits(int bits) { return (std::uint32_t{1} << bits) - 1; }

// Inverse of an odd number mod 2^32 by Newton's iteration: each step doubles the correct bits (3,
// 6, 12, 24, 48).
std::uint32_t inverse_of_odd(std::uint32_t odd) {
  std::uint32_t x = odd;
  for (int step = 0; step < 4; ++step) x *= 2 - odd * x;
  return x;
}

}  // namespace

Reject decode(const Mwa32tGeometry& geometry, std::span<const std::byte> datagram,
              Packet& packet) noexcept {
  if (datagram.size() < kMwa32tUdpHeaderBytes) return Reject::too_short;
  const std::byte* p = datagram.data();
  if (load_be<std::uint32_t>(p) != kMwa32tUdpMagic) return Reject::magic;
  if (load_be<std::uint8_t>(p + 4) != kMwa32tUdpVersion) return Reject::version;
  const std::uint32_t receiver = load_be<std::uint8_t>(p + 5);
  const std::uint32_t n = load_be<std::uint16_t>(p + 6);
  if (!instants_fit(geometry, n)) return Reject::length;
  const std::size_t payload_bytes = n * kMwa32tPayloadBytesPerInstant;
  if (datagram.size() < kMwa32tUdpHeaderBytes + payload_bytes) return Reject::too_short;
  if (datagram.size() > kMwa32tUdpHeaderBytes + payload_bytes) return Reject::too_long;
  if (receiver >= geometry.n_receivers) return Reject::foreign_stream;
  packet = Packet{};
  packet.stream = receiver;
  packet.tick_raw = load_be<std::uint64_t>(p + 8);
  packet.tick_bits = 64;
  packet.n_ticks = n;
  packet.n_channels = 1;
  packet.input = receiver * kMwa32tInputsPerReceiver;
  packet.n_inputs = kMwa32tInputsPerReceiver;
  packet.payload_offset = kMwa32tUdpHeaderBytes;
  packet.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  return Reject::none;
}

std::size_t encode(const Mwa32tGeometry& geometry, const Packet& packet,
                   std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  if (packet.stream >= geometry.n_receivers || packet.stream > 255) return 0;
  if (!instants_fit(geometry, packet.n_ticks) || packet.n_ticks > kMaxInstants) return 0;
  if (payload.size() != packet.n_ticks * kMwa32tPayloadBytesPerInstant) return 0;
  const std::size_t total = kMwa32tUdpHeaderBytes + payload.size();
  if (out.size() < total) return 0;
  std::byte* p = out.data();
  store_be(p, kMwa32tUdpMagic);
  store_be(p + 4, kMwa32tUdpVersion);
  store_be(p + 5, static_cast<std::uint8_t>(packet.stream));
  store_be(p + 6, static_cast<std::uint16_t>(packet.n_ticks));
  store_be(p + 8, packet.tick_raw);
  std::memcpy(p + kMwa32tUdpHeaderBytes, payload.data(), payload.size());
  return total;
}

std::uint16_t pack_mwa32t_word(ci8 sample, int re_shift, int im_shift) noexcept {
  const unsigned re = static_cast<unsigned>(sample.re) & 31u;
  const unsigned im = static_cast<unsigned>(sample.im) & 31u;
  return static_cast<std::uint16_t>((re << re_shift) | (im << im_shift));
}

ci8 unpack_mwa32t_word(std::uint16_t word, int re_shift, int im_shift) noexcept {
  const auto part = [word](int shift) {
    const int code = (word >> shift) & 31;
    return static_cast<std::int8_t>((code ^ 16) - 16);
  };
  return {part(re_shift), part(im_shift)};
}

std::uint16_t mwa32t_marker_word(const Mwa32tMarker& marker, std::int64_t instant) noexcept {
  if (marker.mode == MarkerMode::ignore) return 0;
  std::uint32_t word = marker.value;
  if (marker.mode == MarkerMode::counter)
    word += static_cast<std::uint32_t>(instant) * marker.increment;
  return static_cast<std::uint16_t>(word & low_bits(marker.bits));
}

MarkerCheck check_mwa32t_marker(const Mwa32tMarker& marker, std::uint16_t word,
                                std::int64_t expected) noexcept {
  const std::uint32_t mask = low_bits(marker.bits);
  switch (marker.mode) {
    case MarkerMode::ignore:
      return {true, expected};
    case MarkerMode::constant:
      return {((word ^ marker.value) & mask) == 0, expected};
    case MarkerMode::counter:
      break;
  }
  // Solve value + t * increment = word mod 2^bits. With increment = odd * 2^k the solution is t =
  // (difference / 2^k) / odd mod 2^(bits-k), and there is none when 2^k does not divide the
  // difference.
  const std::uint32_t increment = marker.increment & mask;
  if (increment == 0) return {((word ^ marker.value) & mask) == 0, expected};
  const std::uint32_t difference = (word - marker.value) & mask;
  const int k = std::countr_zero(increment);
  if ((difference & ((std::uint32_t{1} << k) - 1)) != 0) return {false, expected};
  const std::uint32_t solution = (difference >> k) * inverse_of_odd(increment >> k);
  return {true, extend(solution & (mask >> k), marker.bits - k, expected)};
}

void encode_mwa32t_group(const Mwa32tMarker& marker, std::int64_t instant,
                         std::span<const std::uint16_t, kMwa32tInputsPerReceiver> words,
                         std::span<std::byte, kMwa32tGroupBytes> out) noexcept {
  store_le(out.data(), mwa32t_marker_word(marker, instant));
  for (std::size_t k = 0; k < words.size(); ++k) store_le(out.data() + 2 + 2 * k, words[k]);
}

}  // namespace ryle::wire
