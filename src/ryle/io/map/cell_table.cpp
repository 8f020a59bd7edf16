// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/cell_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/fits_cube.hpp"
#include "ryle/io/map/map_header.hpp"

namespace ryle::io {
namespace {

constexpr std::int64_t kBatchRows = 2048;

std::int64_t block_channels(std::int64_t block_bytes, std::int64_t n_rows, std::int64_t n_channels,
                            std::int64_t n_words) {
  return std::clamp<std::int64_t>(block_bytes / (4 * n_words * n_rows), 1, n_channels);
}

class CellTableWriter final : public FitsCubeWriter {
 public:
  CellTableWriter(const std::string& path, CellTable table, std::int64_t n_channels,
                  CubeValues values, const MapMetadata& metadata, bool overwrite)
      : path_(path),
        table_(std::move(table)),
        n_channels_(n_channels),
        n_words_(values == CubeValues::float64 ? 2 : 1),
        values_(values) {
    if (n_channels < 1 || table_.n_rows < 1)
      throw ConfigError(path + ": a table without cells or channels");
    if (metadata.stokes.size() > 1)
      throw UnsupportedError(path +
                             ": a table of pixels or sight lines has no axis for polarizations; "
                             "grid them one by one (--pol XX)");
    n_block_ = block_channels(table_.block_bytes, table_.n_rows, n_channels, n_words_);
    planes_.resize(n_block_ * n_words_ * table_.n_rows);
    part_.emplace(path, overwrite);
    create(metadata);
  }

  void append(const float* plane) override { take(plane, CubeValues::float32); }
  void append(const double* plane) override { take(plane, CubeValues::float64); }
  void append(const std::int32_t* plane) override { take(plane, CubeValues::int32); }

  void add_history(const std::vector<std::string>& lines) override { file_->history(lines); }

  void publish() override {
    complete_file().checksum();
    file_->close();
    part_->publish();
  }

 protected:
  FitsFile& complete_file() override {
    if (n_taken_ != n_channels_)
      throw ConfigError(fmt::format("{}: {} of {} planes written", path_, n_taken_, n_channels_));
    return *file_;
  }

 private:
  void create(const MapMetadata& metadata) {
    file_.emplace(FitsFile::create(part_path(path_), path_));
    int status = 0;
    fits_create_img(file_->get(), BYTE_IMG, 0, nullptr, &status);
    file_->check(status, "begin");
    if (!metadata.object.empty()) file_->key("OBJECT", metadata.object);
    file_->key("ORIGIN", std::string("Ryle"));
    file_->checksum();
    auto columns = table_.columns, forms = table_.forms, units = table_.units;
    columns.push_back(upper_case(metadata.quantity));
    forms.push_back(fmt::format("{}{}", n_channels_,
                                values_ == CubeValues::int32     ? "J"
                                : values_ == CubeValues::float64 ? "D"
                                                                 : "E"));
    units.push_back(metadata.unit);
    create_table(*file_, table_.name.c_str(), columns, forms, units, table_.n_rows);
    write_column_axis(*file_, static_cast<int>(columns.size()), n_channels_, metadata);
    MapMetadata others = metadata;
    others.object.clear();  // stands in the first header: HEALPix has another use for the keyword
    write_map_metadata(*file_, others, true);
    table_.header(*file_);
    // Room for history that comes after the data: else the rows would move for it.
    constexpr int kLaterTableCards = 36;
    fits_set_hdrsize(file_->get(), kLaterTableCards, &status);
    file_->check(status, "make room in the header of");
  }

  template <class T>
  void take(const T* plane, CubeValues values) {
    if (values != values_)
      throw ConfigError(path_ + ": a plane of another type than the file was made for");
    if (n_taken_ == n_channels_)
      throw ConfigError(fmt::format("{}: more planes than the {} announced", path_, n_channels_));
    auto* to = planes_.data() + n_held_ * n_words_ * table_.n_rows;
    for (std::int64_t row = 0; row < table_.n_rows; ++row) {
      if constexpr (sizeof(T) == 8) {
        const auto bits = std::bit_cast<std::uint64_t>(plane[row]);
        *to++ = static_cast<std::uint32_t>(bits >> 32);
        *to++ = static_cast<std::uint32_t>(bits);
      } else {
        *to++ = std::bit_cast<std::uint32_t>(plane[row]);
      }
    }
    ++n_held_;
    ++n_taken_;
    if (n_held_ == n_block_ || n_taken_ == n_channels_) write_block();
  }

  void write_block() {
    if (const int fault = injected_fault("write", path_); fault != 0)
      throw IoError::from_errno("write", path_, fault);
    const std::int64_t first = n_taken_ - n_held_;
    const bool with_prefix = first == 0, whole = with_prefix && n_held_ == n_channels_;
    const std::int64_t prefix = with_prefix ? static_cast<std::int64_t>(table_.prefix_bytes) : 0;
    const std::int64_t offset =
        with_prefix ? 0 : static_cast<std::int64_t>(table_.prefix_bytes) + 4 * n_words_ * first;
    const std::int64_t piece = prefix + 4 * n_words_ * n_held_;
    // Whole rows go out many at a time, pieces of rows one by one.
    const std::int64_t batch = whole ? kBatchRows : 1;
    std::vector<std::uint8_t> bytes(piece * batch);
    int status = 0;
    for (std::int64_t row = 0; row < table_.n_rows && status == 0; row += batch) {
      const std::int64_t n = std::min(batch, table_.n_rows - row);
      for (std::int64_t r = 0; r < n; ++r) fill(row + r, with_prefix, bytes.data() + r * piece);
      fits_write_tblbytes(file_->get(), row + 1, offset + 1, n * piece, bytes.data(), &status);
    }
    file_->check(status, "write");
    n_held_ = 0;
  }

  void fill(std::int64_t row, bool with_prefix, std::uint8_t* to) const {
    if (with_prefix) {
      table_.prefix(row, to);
      to += table_.prefix_bytes;
    }
    const std::int64_t cell = table_.cell_of_row.empty() ? row : table_.cell_of_row[row];
    for (std::int64_t c = 0; c < n_held_; ++c)
      for (std::int64_t w = 0; w < n_words_; ++w, to += 4)
        put_big_endian(to, planes_[(c * table_.n_rows + cell) * n_words_ + w], 4);
  }

  std::string path_;
  CellTable table_;
  std::int64_t n_channels_, n_words_;  ///< words of 32 bits of a value
  std::int64_t n_block_ = 1, n_held_ = 0, n_taken_ = 0;
  CubeValues values_;
  std::vector<std::uint32_t> planes_;
  std::optional<Part> part_;
  std::optional<FitsFile> file_;
};

}  // namespace

std::int64_t cell_table_bytes(std::int64_t n_rows, std::int64_t n_channels, CubeValues values) {
  const std::int64_t n_words = values == CubeValues::float64 ? 2 : 1;
  return 4 * n_words * n_rows * block_channels(kCellTableBlock_bytes, n_rows, n_channels, n_words);
}

void put_big_endian(std::uint8_t* to, std::uint64_t value, int n_bytes) {
  for (int k = n_bytes - 1; k >= 0; --k, value >>= 8) to[k] = static_cast<std::uint8_t>(value);
}

std::unique_ptr<CubeWriter> create_cell_table(const std::string& path, CellTable table,
                                              std::int64_t n_channels, CubeValues values,
                                              const MapMetadata& metadata, bool overwrite) {
  return std::make_unique<CellTableWriter>(path, std::move(table), n_channels, values, metadata,
                                           overwrite);
}

}  // namespace ryle::io
