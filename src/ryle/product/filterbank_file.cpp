// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/filterbank_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "ryle/core/error.hpp"

namespace ryle {

std::unique_ptr<FilterbankReader> open_filterbank(const std::string& path,
                                                  const FilterbankOptions& options) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError::from_errno("read", path, errno != 0 ? errno : ENOENT);
  std::array<char, 16> head{};
  in.read(head.data(), head.size());
  if (std::memcmp(head.data(), "SIMPLE  =", 9) == 0) return product::open_psrfits(path, options);
  return product::open_sigproc(path, options);  // says what is wrong, and where
}

}  // namespace ryle
