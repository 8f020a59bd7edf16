// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>

namespace ryle {

/// How the payload of a VDIF or CODIF frame holds its elementary samples: [time][channel][re, im],
/// the first in the lowest bits of little-endian words of 32 bits, none across two words.
struct FrameCoding {
  std::uint32_t bits = 0;        ///< of an elementary sample, 1..16
  bool complex = false;          ///< a pair lies in one word
  bool twos_complement = false;  ///< else offset binary: value = code - 2^(bits - 1)
  friend bool operator==(const FrameCoding&, const FrameCoding&) = default;
};

/// Elementary samples [first, first + n) of a payload in LSB units; 1 bit gives -1 and +1, 2 bits
/// -10 -3 +3 +10 (ingest.md 2.7).
/// @pre 1 <= coding.bits <= 16; the payload holds them
void unpack_elements(const FrameCoding& coding, const std::byte* payload, std::int64_t first,
                     std::int64_t n, std::int16_t* values);

}  // namespace ryle
