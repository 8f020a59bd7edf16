// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <utility>

namespace ryle::pipeline {

/// What a command did.
struct CommandResult {
  bool done = false;
  std::string message;  ///< what happened; where it was not done, why, and what would work
  /// Of the data, from which on it holds; 0: none.
  std::int64_t from_tai_ns = 0;

  static CommandResult refused(std::string why) { return {false, std::move(why), 0}; }
};

}  // namespace ryle::pipeline
