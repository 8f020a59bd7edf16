// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

namespace ryle::hdf5 {

/// Walks through all of a file that somebody else may have made, in a child process with limits
/// (core/child.hpp), with the filters that are registered. Throws FormatError for what is no HDF5
/// file or damaged, for links to and data in other files, groups nested deeper than 32, and data
/// sets far larger than the file; IoError for a missing one.
void walk_in_child(const std::string& path, unsigned access);

/// H5Fopen without that. Beside a writer (H5F_ACC_SWMR_READ) a damaged file is tried for
/// milliseconds only.
std::int64_t open_unwalked(const std::string& path, unsigned access);

}  // namespace ryle::hdf5
