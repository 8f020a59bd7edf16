// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/input_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"

namespace ryle {

std::int64_t require_regular_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw IoError::from_errno("open", path, errno);
  if (S_ISDIR(status.st_mode)) throw IoError::from_errno("read", path, EISDIR);
  if (!S_ISREG(status.st_mode))
    throw FormatError(path +
                      ": not a regular file; a pipe or device is not read, write its content to a "
                      "file first");
  if (::access(path.c_str(), R_OK) != 0) throw IoError::from_errno("open", path, errno);
  return status.st_size;
}

std::string read_text_file(const std::string& path, std::int64_t max_bytes) {
  require_regular_file(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) throw IoError::from_errno("open", path, errno);
  std::string text;
  char buffer[65536];
  while (const auto n = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, n);
    if (static_cast<std::int64_t>(text.size()) > max_bytes)
      throw FormatError(path + ": larger than " + std::to_string(max_bytes) +
                        " bytes, the most that is read of a text file");
  }
  if (std::ferror(file.get()) != 0) throw IoError::from_errno("read", path, errno);
  return text;
}

void require_descriptors(std::int64_t n, const std::string& what) {
  std::error_code error;
  const auto wanted = static_cast<rlim_t>(
      n + std::distance(std::filesystem::directory_iterator("/proc/self/fd", error), {}));
  rlimit limit{};
  if (error || ::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  if (limit.rlim_cur < wanted || ::setrlimit(RLIMIT_NOFILE, &limit) != 0)
    throw OsLimitError(what + " wants " + std::to_string(n) + " more open files; `ulimit -n` is " +
                       std::to_string(soft) + ": raise it to " + std::to_string(wanted) +
                       " or more");
}

std::int64_t checked_file_product(std::initializer_list<std::int64_t> factors, const char* what) {
  try {
    return checked_product(factors, what);
  } catch (const ConfigError& error) {
    throw FormatError(error.what());
  }
}

}  // namespace ryle
