// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/part_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::io {

PartFile::PartFile(const std::string& path, bool overwrite)
    : part_(path, overwrite),
      file_(::open(part_.unfinished().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   0644)) {
  if (!file_) throw IoError::from_errno("create", path, errno, true);
}

void PartFile::write(const void* data, std::size_t n) {
  if (const int fault = injected_fault("write", path()); fault != 0)
    throw IoError::from_errno("write", path(), fault, true);
  const auto n_bytes = static_cast<std::int64_t>(n);
  if (write_bytes(file_, data, n_bytes) != n_bytes)
    throw IoError::from_errno("write", path(), errno, true);
}

void PartFile::keep(std::int64_t n_bytes) {
  if (file_ && ::ftruncate(file_.get(), n_bytes) != 0)
    throw IoError::from_errno("cut", path(), errno);
}

void PartFile::finish() {
  if (!file_) return;
  if (file_.close() != 0) {
    const int error = errno;
    part_.discard();
    throw IoError::from_errno("write", path(), error, true);
  }
  part_.publish();
}

std::string disk_hint(const std::string& path) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const auto space =
      std::filesystem::space(parent.empty() ? std::filesystem::path(".") : parent, error);
  constexpr std::uintmax_t kNearlyFull_bytes = 16 << 20;
  if (error || space.available > kNearlyFull_bytes) return "";
  return " (" + std::to_string(space.available) +
         " bytes are free on its disk; free space or write elsewhere)";
}

}  // namespace ryle::io
