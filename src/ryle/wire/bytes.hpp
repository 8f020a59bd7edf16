// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ryle::wire {

// Unaligned loads and stores by memcpy: packets come at any address, and a cast would be undefined
// behaviour. The caller has checked the size.

namespace detail {
static_assert(std::endian::native == std::endian::little, "Ryle is built for little-endian hosts");

constexpr std::uint8_t swapped(std::uint8_t v) { return v; }
constexpr std::uint16_t swapped(std::uint16_t v) { return __builtin_bswap16(v); }
constexpr std::uint32_t swapped(std::uint32_t v) { return __builtin_bswap32(v); }
constexpr std::uint64_t swapped(std::uint64_t v) { return __builtin_bswap64(v); }
}  // namespace detail

template <class T>
inline T load_le(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
inline T load_be(const std::byte* from) noexcept {
  return detail::swapped(load_le<T>(from));
}

template <class T>
inline void store_le(std::byte* to, T value) noexcept {
  std::memcpy(to, &value, sizeof value);
}

template <class T>
inline void store_be(std::byte* to, T value) noexcept {
  store_le<T>(to, detail::swapped(value));
}

}  // namespace ryle::wire
