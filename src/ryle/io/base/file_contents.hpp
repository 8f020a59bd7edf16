// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

namespace ryle {

/// What lies in a file that no reader of samples, powers, scans or visibilities takes: the header
/// of a FITS image, HDUs, data sets and attributes of HDF5, tables of SQLite, parameters of a
/// VOEvent, keys of JSON. By content, whatever its name.
/// @return a JSON object that begins with "kind"; "" when the content is of no known format. Throws
///   FormatError for one that is damaged, IoError when it cannot be read.
std::string describe_contents(const std::string& path);

/// The first bytes say FITS, HDF5, SQLite, ZIP, XML or JSON: "fits", "hdf5", "sqlite", "zip",
/// "xml", "json"; "" for others.
std::string container_of(const std::string& path);

}  // namespace ryle
