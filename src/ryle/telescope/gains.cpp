// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/gains.hpp"

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/csv.hpp"

namespace ryle {

std::vector<cf64> read_gains_csv(const std::string& path, std::int64_t n_inputs) {
  const detail::CsvTable table(path, {"input", "amplitude", "phase_deg"}, {});
  std::vector<cf64> gains(static_cast<std::size_t>(n_inputs));
  std::vector<std::int64_t> line_of(gains.size(), 0);
  for (std::int64_t row = 0; row < table.n_rows(); ++row) {
    const std::int64_t input = table.integer(row, "input");
    if (input < 0 || input >= n_inputs) {
      table.fail(row, "input = " + std::to_string(input) + " is not between 0 and " +
                          std::to_string(n_inputs - 1) + ", the inputs of the layout");
    }
    if (line_of[input] != 0) {
      table.fail(row, "input " + std::to_string(input) + " was already given on line " +
                          std::to_string(line_of[input]));
    }
    line_of[input] = table.line(row);
    const double amplitude = table.number(row, "amplitude");
    if (amplitude <= 0) {
      table.fail(row, "amplitude = " + table.text(row, "amplitude") +
                          " is not positive; flag a dead input in the layout (column bad) instead");
    }
    gains[input] = std::polar(amplitude, table.number(row, "phase_deg") * kDegree_rad);
  }
  for (std::int64_t input = 0; input < n_inputs; ++input) {
    if (line_of[input] == 0) {
      throw FormatError(path + ": input " + std::to_string(input) + " is missing; all " +
                        std::to_string(n_inputs) + " inputs need a line");
    }
  }
  return gains;
}

}  // namespace ryle
