// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/error.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ryle {

IoError IoError::from_errno(const std::string& operation, const std::string& path, int errno_value,
                            bool creating) {
  ExitCode code = ExitCode::io;
  if (errno_value == EACCES || errno_value == EPERM || errno_value == EROFS) {
    code = ExitCode::no_permission;
  } else if (creating &&
             (errno_value == ENOENT || errno_value == EEXIST || errno_value == ENOTDIR)) {
    code = ExitCode::cannot_create;
  } else if (errno_value == ENOENT || errno_value == ENOTDIR || errno_value == EISDIR) {
    code = ExitCode::no_input;
  }
  return {code, "cannot " + operation + " " + path + ": " + std::strerror(errno_value)};
}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "ryle: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace ryle
