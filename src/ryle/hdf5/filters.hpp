// SPDX-License-Identifier: BSD-3-Clause
// Reading of HDF5 files that others compressed: LZF and bitshuffle by code of our own; LZ4, Zstd
// and Blosc where the build has the library. Every reader of Ryle opens and reads through here.
#pragma once
#include <hdf5.h>

#include <string>

namespace ryle::hdf5 {

/// H5Fopen of a file to read, with the filters registered, once walk_in_child() (hdf5/walk.hpp) has
/// not rejected it; negative when HDF5 rejects it nevertheless.
/// `access` is H5F_ACC_RDONLY, with H5F_ACC_SWMR_READ to follow a writer.
hid_t open_file(const std::string& path, unsigned access = H5F_ACC_RDONLY);

/// H5Dread. A chunk that does not decompress to exactly its size is an error of HDF5 (negative).
herr_t read(hid_t set, hid_t memory_type, hid_t memory_space, hid_t file_space, void* out);

/// Throws UnsupportedError when `set` is compressed with a filter that this build cannot undo: it
/// names the filter, the data set, the file and what would work. Called before a reader takes data,
/// or once a read has failed.
void require_filters(hid_t set, const std::string& path);

/// The filters of this build by name, for messages and `ryle doctor`.
std::string filter_names();

}  // namespace ryle::hdf5
