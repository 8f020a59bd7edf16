// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// Named arrays of rows in an HDF5 file, each row with its CRC-32C: states of runs that others
/// continue. A name may have a group: "part_0/weighted".
namespace ryle {

class RowFileReader {
 public:
  /// Throws IoError when it cannot be opened, FormatError when it is no HDF5 file.
  explicit RowFileReader(const std::string& path);
  ~RowFileReader();
  RowFileReader(const RowFileReader&) = delete;
  RowFileReader& operator=(const RowFileReader&) = delete;
  bool has(const std::string& name) const;
  std::string text(const std::string& name) const;
  /// Rows [first, first + n). Throws FormatError for another shape or a wrong CRC.
  /// @shape out [n][row_length]
  void rows(const std::string& name, std::int64_t first, std::int64_t n, std::int64_t row_length,
            std::int64_t* out) const;
  void rows(const std::string& name, std::int64_t first, std::int64_t n, std::int64_t row_length,
            std::int8_t* out) const;
  const std::string& path() const;

 private:
  friend class RowFileWriter;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Grows as ".NAME.part"; destroyed before publish(): nothing stays.
class RowFileWriter {
 public:
  RowFileWriter(const std::string& path, bool overwrite);
  ~RowFileWriter();
  RowFileWriter(const RowFileWriter&) = delete;
  RowFileWriter& operator=(const RowFileWriter&) = delete;
  void text(const std::string& name, const std::string& value);
  /// @shape data [n][row_length]
  void rows(const std::string& name, std::int64_t n, std::int64_t row_length,
            const std::int64_t* data);
  void rows(const std::string& name, std::int64_t n, std::int64_t row_length,
            const std::int8_t* data);
  /// A group with all that is in it, as it is.
  void copy(const RowFileReader& from, const std::string& group, const std::string& to);
  void publish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
