// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace ryle::fuzz {

/// Opens any bytes as a file of scans and reads all of it.
void scans(std::span<const std::byte> data);
/// Small whole files to begin with: SDFITS of two dialects, a table of DISCOS, .npz.
std::vector<std::vector<std::byte>> scan_seeds();

}  // namespace ryle::fuzz
