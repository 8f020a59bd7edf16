// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "ryle/core/descriptor.hpp"
#include "ryle/io/base/publish.hpp"

/// Private to io/: a file of bytes that grows as ".NAME.part".
namespace ryle::io {

/// Not finished when destroyed: leaves nothing. Every failure is an IoError.
class PartFile {
 public:
  PartFile(const std::string& path, bool overwrite);

  void write(const void* data, std::size_t n);
  /// Takes the end off: what comes after `n_bytes` is not whole.
  void keep(std::int64_t n_bytes);
  /// Closes and publishes; a second call does nothing.
  void finish();
  const std::string& path() const { return part_.path(); }

 private:
  Part part_;
  Descriptor file_;
};

/// " (X bytes are free on its disk; ...)" when that is next to nothing, else empty.
std::string disk_hint(const std::string& path);

}  // namespace ryle::io
