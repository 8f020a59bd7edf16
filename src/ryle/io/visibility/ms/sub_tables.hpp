// SPDX-License-Identifier: BSD-3-Clause
// Private to this folder: sub-tables, and casacore's errors as one line.
#pragma once
#include <casacore/casa/Exceptions/Error.h>
#include <casacore/ms/MeasurementSets/MeasurementSet.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "ryle/io/visibility/ms/ms_file.hpp"

namespace ryle::ms {

/// Fills ANTENNA .. HISTORY of an MS whose default sub-tables exist.
void fill_sub_tables(casacore::MeasurementSet& ms, const Impl& content);
/// Creates and fills RYLE_APPLIED and RYLE_DUMP.
void write_ryle_tables(casacore::MeasurementSet& ms, const Impl& content);
/// The inverse, into content; false when the MS has no such tables.
bool read_ryle_tables(const casacore::Table& ms, Impl& content);

/// casacore takes the dot off a relative ".v.ms.part" and then works beside it: names go absolute.
inline std::string table_name(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

template <class F>
void one_line_errors(F&& f) {
  try {
    f();
  } catch (const casacore::AipsError& error) {
    std::string what = error.what();
    for (char& c : what) c = c == '\n' ? ' ' : c;
    throw std::runtime_error(what);
  }
}

}  // namespace ryle::ms
