// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ryle::fuzz {

/// Opens any bytes as a file of scans and reads all of it.
void scans(std::span<const std::byte> data);
/// Small whole files to begin with: SDFITS of two dialects, a table of DISCOS, .npz.
std::vector<std::vector<std::byte>> scan_seeds();
/// The samples of an .npz file, which has a sum of each array; nothing for other formats.
std::optional<std::string> scan_values(std::span<const std::byte> data);

}  // namespace ryle::fuzz
