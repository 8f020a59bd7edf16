// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace ryle::test {

/// Path of a real-data file under $RYLE_DATA or beside the checkout (../shared/data), or nothing
/// when it is not there.
inline std::optional<std::string> data_file(const std::string& relative) {
  const char* root = std::getenv("RYLE_DATA");
  const std::filesystem::path path =
      (root != nullptr ? std::filesystem::path(root)
                       : std::filesystem::path(RYLE_SOURCE_DIR) / ".." / "shared" / "data") /
      relative;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path.lexically_normal().string();
}

}  // namespace ryle::test

/// Declares `variable` = path of the file, or skips the test saying why.
#define RYLE_REQUIRE_DATA(variable, relative)                                          \
  const auto variable##_optional = ::ryle::test::data_file(relative);                  \
  if (!variable##_optional) GTEST_SKIP() << "skipped: no data (" << (relative) << ")"; \
  const std::string variable = *variable##_optional
