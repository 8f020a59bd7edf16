// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace ryle {

/// SHA-256 of a stream of bytes (FIPS 180-4).
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// 64 hexadecimal digits of everything so far. Nothing may be added afterwards.
  std::string hex();

 private:
  std::array<std::uint32_t, 8> state_{};
  std::string rest_;  // less than a block
  std::uint64_t n_bytes_ = 0;
};

/// SHA-256 of a text as 64 hexadecimal digits (FIPS 180-4): the fingerprint of a configuration in a
/// product.
std::string sha256_hex(std::string_view text);

}  // namespace ryle
