// SPDX-License-Identifier: BSD-3-Clause
// A FITS table with columns of longitude, latitude and values.
#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/io/scan/scan_arrays.hpp"

namespace ryle::io {
namespace {

class ColumnArrays final : public ScanArrays {
 public:
  ColumnArrays(const ScanTable& table, std::shared_ptr<const RawFile> raw)
      : table_(table), raw_(std::move(raw)) {
    for (const auto& column : table_.columns) {
      ScanArray array{column.name, {table_.n_rows}, column.numbers, column.unit};
      if (column.repeat > 1) array.shape.push_back(column.repeat);
      std::int64_t total = 1;
      for (const std::int64_t n : column.axes) {
        if (n > column.repeat / total) {
          total = -1;  // the axes ask for more than there is: they are not used
          break;
        }
        total *= n;
      }
      if (total == column.repeat && column.axes.size() > 1) {
        array.shape.resize(1);
        array.shape.insert(array.shape.end(), column.axes.rbegin(), column.axes.rend());
      }
      arrays_.push_back(std::move(array));
    }
  }

  std::optional<RawLayout> raw(const ScanArray& array) override {
    const ScanColumn* column = table_.find(array.name);
    RawLayout place{raw_, column->form, table_.first_byte + column->offset_bytes, {}};
    place.step_bytes.resize(array.shape.size());
    std::int64_t step = column->form.bytes;
    for (std::size_t k = array.shape.size(); k-- > 1; step *= array.shape[k])
      place.step_bytes[k] = step;
    place.step_bytes[0] = table_.row_bytes;
    return place;
  }

  std::string attribute(const std::string&, const std::string& name) override {
    const auto found = table_.keywords.find(upper_case(name));
    return found == table_.keywords.end() ? std::string() : found->second;
  }

 private:
  ScanTable table_;
  std::shared_ptr<const RawFile> raw_;
};

}  // namespace

std::unique_ptr<ScanFile> open_fits_table(const FitsScans& file, const ScanOptions& options) {
  for (const auto& table : file.tables) {
    ColumnArrays arrays(table, file.raw);
    const auto& all = arrays.arrays();
    const auto has = [&](const std::string& wanted, const std::vector<std::string>& names) {
      return std::any_of(all.begin(), all.end(), [&](const ScanArray& a) {
        return wanted.empty() ? std::find(names.begin(), names.end(), a.last_part()) != names.end()
                              : a.name == wanted || "/" + a.name == wanted;
      });
    };
    if (table.n_rows > 0 && has(options.longitude, longitude_names()) &&
        has(options.latitude, latitude_names()))
      return open_named_scans(file.path, "FITS table",
                              std::make_unique<ColumnArrays>(table, file.raw), options);
  }
  return nullptr;
}

}  // namespace ryle::io
