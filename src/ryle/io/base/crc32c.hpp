// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace ryle::io {

/// CRC-32C (Castagnoli polynomial 0x1EDC6F41 reflected, as in RFC 3720) of bytes, four tables.
/// crc32c("123456789") = 0xE3069283.
inline std::uint32_t crc32c(const void* data, std::size_t n_bytes, std::uint32_t crc = 0) {
  static const auto kTables = [] {
    std::array<std::array<std::uint32_t, 256>, 4> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78U : 0U);
      tables[0][byte] = value;
    }
    for (std::size_t t = 1; t < 4; ++t) {
      for (std::size_t byte = 0; byte < 256; ++byte) {
        const std::uint32_t before = tables[t - 1][byte];
        tables[t][byte] = (before >> 8) ^ tables[0][before & 0xFF];
      }
    }
    return tables;
  }();
  const auto* bytes = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; n_bytes >= 4; n_bytes -= 4, bytes += 4) {
    crc ^= static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
           static_cast<std::uint32_t>(bytes[2]) << 16 | static_cast<std::uint32_t>(bytes[3]) << 24;
    crc = kTables[3][crc & 0xFF] ^ kTables[2][(crc >> 8) & 0xFF] ^ kTables[1][(crc >> 16) & 0xFF] ^
          kTables[0][crc >> 24];
  }
  for (; n_bytes > 0; --n_bytes, ++bytes) crc = (crc >> 8) ^ kTables[0][(crc ^ *bytes) & 0xFF];
  return ~crc;
}

/// Ryle/weights_crc32c of UVH5: of a dump's nsamples as they lie in the file (float32), then of its
/// flags (a byte each, 0 or 1). Ryle/visdata_crc32c is that of its visdata.
inline std::uint32_t uvh5_weights_crc(const float* samples, const std::int8_t* flags,
                                      std::size_t n) {
  return crc32c(flags, n, crc32c(samples, n * sizeof(float)));
}

}  // namespace ryle::io
