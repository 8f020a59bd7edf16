// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace ryle::io {

/// SHA-256 of a stream of bytes (FIPS 180-4), by OpenSSL's libcrypto.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// 64 hexadecimal digits of everything so far. Nothing may be added afterwards.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

/// SHA-256 of a text as 64 hexadecimal digits: the fingerprint of a configuration in a product.
std::string sha256_hex(std::string_view text);

}  // namespace ryle::io
