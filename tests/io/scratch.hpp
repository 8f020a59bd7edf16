// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ryle/core/error.hpp"

namespace ryle::test {

/// A directory of its own, removed at the end.
class Scratch {
 public:
  Scratch() {
    // Memory where there is one: hundreds of products are published here, and fsync on a disk takes
    // 10 ms each.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        ((memory ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
         "ryle-product-XXXXXX")
            .string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// Exit code of the ryle::Error that f throws; ok when it throws none.
template <class F>
ExitCode exit_code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.exit_code();
  }
  return ExitCode::ok;
}

}  // namespace ryle::test
