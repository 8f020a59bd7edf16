// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cerrno>
#include <cstdio>
#include <string>

#include "ryle/core/error.hpp"

namespace ryle::simulate::detail {

/// A file that takes its final name only when everything is in it.
class WholeFile {
 public:
  explicit WholeFile(const std::string& path)
      : path_(path), partial_(path + ".partial"), file_(std::fopen(partial_.c_str(), "wb")) {
    if (file_ == nullptr) throw IoError::from_errno("create", path, errno, true);
  }
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile() {
    if (file_ == nullptr) return;
    std::fclose(file_);
    std::remove(partial_.c_str());
  }
  void write(const void* data, std::size_t n_bytes) {
    if (std::fwrite(data, 1, n_bytes, file_) != n_bytes) {
      throw IoError::from_errno("write", path_, errno);
    }
  }
  void publish() {
    std::FILE* file = file_;
    file_ = nullptr;
    const bool closed = std::fclose(file) == 0;
    if (!closed || std::rename(partial_.c_str(), path_.c_str()) != 0) {
      const int reason = errno;
      std::remove(partial_.c_str());
      throw IoError::from_errno("write", path_, reason);
    }
  }

 private:
  std::string path_;
  std::string partial_;
  std::FILE* file_;
};

}  // namespace ryle::simulate::detail
