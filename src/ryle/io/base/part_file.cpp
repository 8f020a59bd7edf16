// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/part_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::io {

PartFile::PartFile(const std::string& path, bool overwrite) : path_(path), overwrite_(overwrite) {
  prepare_part(path, overwrite);
  fd_ = ::open(part_path(path).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) throw IoError::from_errno("create", path, errno, true);
}

PartFile::~PartFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  discard_part(path_);
}

void PartFile::write(const void* data, std::size_t n) {
  if (const int fault = injected_fault("write", path_); fault != 0)
    throw IoError::from_errno("write", path_, fault);
  const auto* from = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t put = ::write(fd_, from, n);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw IoError::from_errno("write", path_, errno);
    from += put;
    n -= static_cast<std::size_t>(put);
  }
}

void PartFile::keep(std::int64_t n_bytes) {
  if (fd_ >= 0 && ::ftruncate(fd_, n_bytes) != 0) throw IoError::from_errno("cut", path_, errno);
}

void PartFile::finish() {
  if (fd_ < 0) return;
  const int closed = ::close(fd_);
  const int error = errno;
  fd_ = -1;
  if (closed != 0) {
    discard_part(path_);
    throw IoError::from_errno("write", path_, error);
  }
  publish_part(path_, overwrite_);
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
