// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/frame_samples.hpp"

#include <algorithm>
#include <array>

#include "ryle/wire/bytes.hpp"

namespace ryle {
namespace {

constexpr std::int16_t value_of(std::uint32_t bits, int code) {
  if (bits == 1) return static_cast<std::int16_t>(2 * code - 1);
  if (bits == 2) return std::array<std::int16_t, 4>{-10, -3, 3, 10}[static_cast<unsigned>(code)];
  return static_cast<std::int16_t>(code - (1 << (bits - 1)));
}

/// The elements of every byte, the lowest bits first.
template <std::uint32_t kBits>
constexpr auto byte_table() {
  constexpr std::size_t kPerByte = 8 / kBits;
  std::array<std::array<std::int16_t, kPerByte>, 256> table{};
  for (std::size_t byte = 0; byte < 256; ++byte) {
    for (std::size_t k = 0; k < kPerByte; ++k)
      table[byte][k] = value_of(kBits, static_cast<int>(byte >> (k * kBits) & ((1U << kBits) - 1)));
  }
  return table;
}

// Bits is a power of two up to 8, so the words are one stream of bits. `flip` turns the sign bits
// of a byte over.
template <std::uint32_t kBits>
void unpack_bytes(bool twos_complement, const std::byte* payload, std::int64_t first,
                  std::int64_t n, std::int16_t* values) {
  static constexpr auto kTable = byte_table<kBits>();
  constexpr std::int64_t kPerByte = 8 / kBits;
  std::size_t flip = 0;
  for (std::size_t k = 0; twos_complement && k < 8; k += kBits)
    flip |= std::size_t{1} << (k + kBits - 1);
  const auto elements = [&](std::int64_t byte) -> const auto& {
    return kTable[static_cast<std::size_t>(payload[byte]) ^ flip];
  };
  std::int64_t k = 0;
  for (; k < n && (first + k) % kPerByte != 0; ++k)
    values[k] = elements((first + k) / kPerByte)[static_cast<std::size_t>((first + k) % kPerByte)];
  for (; k + kPerByte <= n; k += kPerByte) {
    const auto& some = elements((first + k) / kPerByte);
    std::copy(some.begin(), some.end(), values + k);
  }
  for (; k < n; ++k)
    values[k] = elements((first + k) / kPerByte)[static_cast<std::size_t>((first + k) % kPerByte)];
}

// Any width: 32 / bits elements a word (whole pairs of complex samples), the rest of it unused.
void unpack_words(const FrameCoding& coding, const std::byte* payload, std::int64_t first,
                  std::int64_t n, std::int16_t* values) {
  const std::int64_t per_word =
      coding.complex ? 32 / (2 * coding.bits) * 2 : std::int64_t{32} / coding.bits;
  const std::uint32_t mask = (std::uint32_t{1} << coding.bits) - 1;
  // Two's complement is offset binary with the sign bit turned over.
  const int sign = coding.twos_complement ? 1 << (coding.bits - 1) : 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t word = (first + k) / per_word, place = (first + k) % per_word;
    const auto code = wire::load_le<std::uint32_t>(payload + 4 * word) >>
                          static_cast<std::uint32_t>(place * coding.bits) &
                      mask;
    values[k] = value_of(coding.bits, static_cast<int>(code) ^ sign);
  }
}

}  // namespace

void unpack_elements(const FrameCoding& coding, const std::byte* payload, std::int64_t first,
                     std::int64_t n, std::int16_t* values) {
  const bool twos = coding.twos_complement;
  switch (coding.bits) {
    case 1:
      return unpack_bytes<1>(twos, payload, first, n, values);
    case 2:
      return unpack_bytes<2>(twos, payload, first, n, values);
    case 4:
      return unpack_bytes<4>(twos, payload, first, n, values);
    case 8:
      return unpack_bytes<8>(twos, payload, first, n, values);
    default:
      return unpack_words(coding, payload, first, n, values);
  }
}

}  // namespace ryle
