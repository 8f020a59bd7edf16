// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

namespace ryle {

/// Name under which a product grows: ".NAME.part" in the same directory.
std::string part_path(const std::string& final_path);
/// Throws IoError when final_path exists and not `overwrite`, or its directory cannot be written. Removes a dead .part.
void prepare_part(const std::string& final_path, bool overwrite);
/// fsync (files of a directory one by one), rename to the final name, fsync the directory. After a failed fsync throws
/// and leaves nothing under the final name (products.md 5).
void publish_part(const std::string& final_path, bool overwrite);
/// Removes the .part (file or directory), ignoring that it may not exist.
void discard_part(const std::string& final_path) noexcept;

}  // namespace ryle
