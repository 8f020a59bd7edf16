// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ryle {

/// Process exit codes (sysexits.h where one fits); the table users see is docs/exit-codes.md.
enum class ExitCode : int {
  ok = 0,
  check_failed = 1,
  usage = 64,
  bad_data = 65,
  no_input = 66,
  unavailable = 69,
  internal = 70,
  os_limit = 71,
  cannot_create = 73,
  io = 74,
  try_again = 75,
  no_permission = 77,
  config = 78,
};

/// Base of every exception Ryle throws. what() is one line: what, where, why, and what would work.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode exit_code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

/// A wrong or impossible configuration: thrown at load and plan, never later.
class ConfigError : public Error {
 public:
  explicit ConfigError(const std::string& message) : Error(ExitCode::config, message) {}
};

/// Something this build or machine cannot do; the message lists what would work.
class UnsupportedError : public Error {
 public:
  explicit UnsupportedError(const std::string& message) : Error(ExitCode::unavailable, message) {}
};

/// A device call failed. `in_flight` = lost while running (exit 75), else at start (69).
class DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& message, bool in_flight = false)
      : Error(in_flight ? ExitCode::try_again : ExitCode::unavailable, message) {}
};

/// A file or packet that is not what its format says; the message has file, byte offset, field,
/// value and limit.
class FormatError : public Error {
 public:
  explicit FormatError(const std::string& message) : Error(ExitCode::bad_data, message) {}
};

/// Operating-system I/O failed; made from a path, the operation and errno.
class IoError : public Error {
 public:
  IoError(ExitCode code, const std::string& message) : Error(code, message) {}
  /// "cannot OPERATION PATH: REASON"; the exit code follows from errno and `creating`:
  /// ENOENT 66 (73 when creating), EACCES/EPERM/EROFS 77, otherwise 74.
  static IoError from_errno(const std::string& operation, const std::string& path, int errno_value,
                            bool creating = false);
};

/// Operating-system limit too small (socket buffer, descriptors); exit 71.
class OsLimitError : public Error {
 public:
  explicit OsLimitError(const std::string& message) : Error(ExitCode::os_limit, message) {}
};

/// Reports a broken invariant of the program itself and aborts.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace ryle

/// Programmer errors only; always on in host code outside inner loops.
#define RYLE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::ryle::assertion_failed(#condition, __FILE__, __LINE__))
