// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <zlib.h>

#include <string>

namespace ryle::test {

/// `bytes` by zlib. @param window_bits -15 without a header, as zip has it; 31 with that of gzip
inline std::string deflated(const std::string& bytes, int window_bits, int level = 6) {
  z_stream z{};
  deflateInit2(&z, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&z, static_cast<uLong>(bytes.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

}  // namespace ryle::test
