// SPDX-License-Identifier: BSD-3-Clause
// A FITS table with a row for every cell and a vector over the channels in it. Private to io/.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/image/cube_writer.hpp"

namespace ryle::io {

inline constexpr std::int64_t kCellTableBlock_bytes = std::int64_t{256} << 20;

struct CellTable {
  std::string name;  ///< EXTNAME
  /// Columns before the values.
  std::vector<std::string> columns, forms, units;
  std::size_t prefix_bytes = 0;                                       ///< of those in a row
  std::function<void(std::int64_t row, std::uint8_t* bytes)> prefix;  ///< big-endian, as FITS
  std::int64_t n_rows = 0;
  std::vector<std::int64_t> cell_of_row;       ///< empty: the same
  std::function<void(FitsFile& file)> header;  ///< more cards of the table
  std::int64_t block_bytes = kCellTableBlock_bytes;
};

/// Planes are kept until they are a block of channels (block_bytes), then put into their columns.
std::unique_ptr<CubeWriter> create_cell_table(const std::string& path, CellTable table,
                                              std::int64_t n_channels, CubeValues values,
                                              const MapMetadata& metadata, bool overwrite);

/// Planes that a writer keeps. @unit bytes
std::int64_t cell_table_bytes(std::int64_t n_rows, std::int64_t n_channels, CubeValues values);

/// Bytes of a number, most significant first.
void put_big_endian(std::uint8_t* to, std::uint64_t value, int n_bytes);

}  // namespace ryle::io
