// SPDX-License-Identifier: BSD-3-Clause
// Rows of the tables of an SDFITS file: which are read, and what their axes are. Private to
// io/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/scan/scan_formats.hpp"

namespace ryle::io {

/// The axes of one table's spectra, in numbers.
struct SdfitsLayout {
  const ScanColumn* data = nullptr;
  std::int64_t n_channels = 0, channel_step = 1, n_polarizations = 1, polarization_step = 1;
  int frequency_axis = 0, polarization_axis = 0;  ///< n of CTYPEn; 0: none
  std::string frequency_type;                     ///< "FREQ-OBS"
  bool class_axis = false;                        ///< frequencies are offsets from RESTFREQ
  bool fast_axis = false;                         ///< FREQ, CHAN_BW and NCHAN columns
  std::string axis_note;                          ///< why frequencies are not known
  bool same_form(const SdfitsLayout& other) const;
};

struct RowAxis {
  double first_hz = 0, step_hz = 0;
  std::int64_t n_channels = 0;
  /// No channel is off by more than 0.05.
  bool agrees(const RowAxis& other) const;
};

struct RowPositions {
  std::vector<double> longitude_deg, latitude_deg;  ///< NaN: no place on the sky
  SkyFrame frame = SkyFrame::icrs;
  std::vector<std::string> warnings;
};

class SdfitsRows {
 public:
  /// Some table is SDFITS.
  static bool any(const FitsScans& file);
  /// All rows that options.select takes.
  SdfitsRows(const FitsScans& file, const ScanOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(rows_.size()); }
  std::size_t n_tables() const { return tables_.size(); }
  std::size_t n_tables_used() const;
  void keep(const std::vector<bool>& which);
  void keep_where(const std::string& column, const std::string& value);

  const SdfitsLayout& layout(std::int64_t row) const { return layouts_[rows_[row].table]; }
  bool has_column(const std::string& name) const;
  /// Numbers a row of a column; the most of all tables, 0: none has it.
  std::int64_t repeat(const std::string& column) const;
  /// Of the selected rows; empty: no table has the column or keyword.
  std::vector<double> numbers(const std::string& word, std::int64_t element = 0) const;
  std::vector<std::string> texts(const std::string& word) const;
  std::string unit(const std::string& column) const;
  std::string list() const;

  std::string stokes_word() const;  ///< "CRVAL4"; empty: none
  std::int64_t axis_polarizations() const;
  /// Names of the polarizations along the axis of the spectra of a row.
  std::vector<std::string> axis_names(std::int64_t row) const;
  std::vector<std::int64_t> begin_bytes(const ScanColumn& column) const;
  /// The column when all tables in use have it with the repeat of the data; else null.
  const ScanColumn* same_shape(const std::string& column) const;
  std::vector<RowAxis> frequency_axes() const;
  /// Notes in `metadata` whether the unit of longitudes is known.
  RowPositions positions(const ScanOptions& options, ScanMetadata& metadata) const;

  [[noreturn]] void reject_empty() const;
  /// Says which selection would do.
  [[noreturn]] void reject_mixture(const std::vector<bool>& good, std::size_t bad,
                                   const std::vector<RowAxis>& axes) const;

 private:
  struct Row {
    int table = 0;
    std::int64_t row = 0;
  };
  [[noreturn]] void reject_frames() const;
  std::vector<double> equinoxes() const;  ///< years; empty: not said
  void lay_out(std::size_t table);
  int axis_of(const ScanTable& table, const std::vector<std::string>& words,
              std::string* type) const;
  void place_on_source(const ScanOptions& options, ScanMetadata& metadata,
                       RowPositions& positions) const;

  std::string path_;
  std::vector<ScanTable> tables_;
  std::vector<SdfitsLayout> layouts_;
  std::vector<Row> rows_;
};

}  // namespace ryle::io
