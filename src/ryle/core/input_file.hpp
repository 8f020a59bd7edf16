// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>

/// What is asked of every file before a byte of it is read.
namespace ryle {

/// Size of an ordinary file in bytes. Throws IoError (66) when it is missing or a folder, (77) when
/// it may not be read, FormatError when it is a named pipe, a socket or a device: reading one may
/// wait for ever or never end.
std::int64_t require_regular_file(const std::string& path);

/// Whole text of a file. Throws what require_regular_file() throws, and FormatError beyond
/// `max_bytes`.
std::string read_text_file(const std::string& path, std::int64_t max_bytes = std::int64_t{1} << 28);

/// Throws OsLimitError (71) when `what` cannot have `n` more open files. The soft limit is raised
/// first.
void require_descriptors(std::int64_t n, const std::string& what);

/// Product of sizes that a file says; throws FormatError naming `what` on overflow or a negative
/// factor.
std::int64_t checked_file_product(std::initializer_list<std::int64_t> factors, const char* what);

}  // namespace ryle
