// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ryle::test {

using Bytes = std::vector<unsigned char>;

inline void put_word(Bytes& bytes, std::size_t at, std::uint32_t word) {
  for (std::size_t k = 0; k < 4; ++k) bytes[at + k] = static_cast<unsigned char>(word >> (8 * k));
}

/// A VDIF frame written from the definition: 32 bytes of header (16 when legacy), then the codes of
/// elementary samples [time][channel][re, im], the first in the lowest bits of 32-bit words, none
/// across two words.
struct VdifFrame {
  std::uint32_t second = 100, frame = 0, thread = 0, station = 0;
  std::uint32_t log2_channels = 0, bits = 8;
  bool complex = false, invalid = false, legacy = false;
  std::uint32_t edv = 0, word4 = 0, word6 = 0, word7 = 0;

  Bytes operator()(const std::vector<int>& codes) const {
    const std::size_t per_word =
        complex ? 32 / (2 * bits) * 2 : static_cast<std::size_t>(32) / bits;
    const std::size_t header = legacy ? 16 : 32;
    const std::size_t n_words = (codes.size() + per_word - 1) / per_word;
    Bytes out(header + (n_words + 1) / 2 * 8);
    put_word(out, 0, second | (legacy ? 1U << 30 : 0) | (invalid ? 1U << 31 : 0));
    put_word(out, 4, frame | 40U << 24);  // 2020-01-01
    put_word(out, 8, static_cast<std::uint32_t>(out.size() / 8) | log2_channels << 24);
    put_word(out, 12, station | thread << 16 | (bits - 1) << 26 | (complex ? 1U << 31 : 0));
    if (!legacy) {
      put_word(out, 16, word4 | edv << 24);
      put_word(out, 20, edv != 0 ? 0xACABFEED : 0);
      put_word(out, 24, word6);
      put_word(out, 28, word7);
    }
    for (std::size_t w = 0; w < n_words; ++w) {
      std::uint32_t word = 0;
      for (std::size_t k = 0; k < per_word && w * per_word + k < codes.size(); ++k)
        word |= static_cast<std::uint32_t>(codes[w * per_word + k]) << (k * bits);
      put_word(out, header + 4 * w, word);
    }
    return out;
  }
};

inline void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

}  // namespace ryle::test
