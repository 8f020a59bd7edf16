// SPDX-License-Identifier: BSD-3-Clause
// FITS files card by card: what no library would write can be written too.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace ryle::test {

inline std::string card(const std::string& key, const std::string& value) {
  std::string text = key;
  text.resize(8, ' ');
  if (!value.empty()) text += "= " + value;
  text.resize(80, ' ');
  return text;
}

inline void pad_block(std::string& text, char with) {
  text.resize((text.size() + 2879) / 2880 * 2880, with);
}

struct FitsColumn {
  std::string name, form;
};

/// A table whose rows repeat `row`.
inline void add_table(std::string& file, const std::string& name,
                      const std::vector<FitsColumn>& columns,
                      const std::vector<std::pair<std::string, std::string>>& keys,
                      const std::string& row, int n_rows) {
  file += card("XTENSION", "'BINTABLE'") + card("BITPIX", "8") + card("NAXIS", "2") +
          card("NAXIS1", std::to_string(row.size())) + card("NAXIS2", std::to_string(n_rows)) +
          card("PCOUNT", "0") + card("GCOUNT", "1") +
          card("TFIELDS", std::to_string(columns.size()));
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const std::string n = std::to_string(k + 1);
    file += card("TTYPE" + n, "'" + columns[k].name + "'") +
            card("TFORM" + n, "'" + columns[k].form + "'");
  }
  file += card("EXTNAME", "'" + name + "'");
  for (const auto& [key, value] : keys) file += card(key, value);
  file += card("END", "");
  pad_block(file, ' ');
  for (int r = 0; r < n_rows; ++r) file += row;
  pad_block(file, '\0');
}

/// The header of a file without an image; `keys` follow its own.
inline std::string primary_header(
    const std::vector<std::pair<std::string, std::string>>& keys = {}) {
  std::string file = card("SIMPLE", "T") + card("BITPIX", "8") + card("NAXIS", "0");
  for (const auto& [key, value] : keys) file += card(key, value);
  file += card("END", "");
  pad_block(file, ' ');
  return file;
}

inline std::string big_endian(double value) {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, 8);
  std::string text;
  for (int k = 56; k >= 0; k -= 8) text += static_cast<char>(word >> k & 255);
  return text;
}

}  // namespace ryle::test
