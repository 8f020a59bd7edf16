// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/frame_samples.hpp"

#include <array>

#include "ryle/wire/bytes.hpp"

namespace ryle {
namespace {

std::int16_t value_of(std::uint32_t bits, int code) {
  if (bits == 1) return static_cast<std::int16_t>(2 * code - 1);
  if (bits == 2) return std::array<std::int16_t, 4>{-10, -3, 3, 10}[static_cast<unsigned>(code)];
  return static_cast<std::int16_t>(code - (1 << (bits - 1)));
}

// Bits is a power of two below 16, so the words are one stream of bits.
template <std::uint32_t kBits>
void unpack_bytes(int sign, const std::byte* payload, std::int64_t first, std::int64_t n,
                  std::int16_t* values) {
  constexpr std::int64_t kPerByte = 8 / kBits;
  constexpr int kMask = (1 << kBits) - 1;
  for (std::int64_t k = 0; k < n; ++k) {
    const std::int64_t at = first + k;
    const int shift = static_cast<int>(at % kPerByte) * static_cast<int>(kBits);
    values[k] = value_of(kBits, (static_cast<int>(payload[at / kPerByte]) >> shift & kMask) ^ sign);
  }
}

// Any width: 32 / bits elements a word (whole pairs of complex samples), the rest of it unused.
void unpack_words(const FrameCoding& coding, int sign, const std::byte* payload, std::int64_t first,
                  std::int64_t n, std::int16_t* values) {
  const std::int64_t per_word =
      coding.complex ? 32 / (2 * coding.bits) * 2 : std::int64_t{32} / coding.bits;
  const std::uint32_t mask = (std::uint32_t{1} << coding.bits) - 1;
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
  // Two's complement is offset binary with the sign bit turned over.
  const int sign = coding.twos_complement ? 1 << (coding.bits - 1) : 0;
  switch (coding.bits) {
    case 1:
      return unpack_bytes<1>(sign, payload, first, n, values);
    case 2:
      return unpack_bytes<2>(sign, payload, first, n, values);
    case 4:
      return unpack_bytes<4>(sign, payload, first, n, values);
    case 8:
      return unpack_bytes<8>(sign, payload, first, n, values);
    default:
      return unpack_words(coding, sign, payload, first, n, values);
  }
}

}  // namespace ryle
