// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/gains.hpp"

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/csv.hpp"

namespace ryle {

namespace {

constexpr int kMaxReadings = 100;
constexpr std::chrono::milliseconds kWriterPause{50};

struct GainsStamp {
  std::uintmax_t bytes = 0;
  std::filesystem::file_time_type changed;
  bool operator==(const GainsStamp&) const = default;
};
GainsStamp stamp_of(const std::string& path) {
  std::error_code gone;  // between two names of a file that is replaced
  GainsStamp stamp;
  stamp.bytes = std::filesystem::file_size(path, gone);
  stamp.changed = std::filesystem::last_write_time(path, gone);
  return stamp;
}

bool ends_its_last_line(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() <= 0) return false;
  in.seekg(-1, std::ios::end);
  return in.get() == '\n';
}

std::vector<cf64> gains_now(const std::string& path, std::int64_t n_inputs) {
  const detail::CsvTable table(path, {"input", "amplitude", "phase_deg"}, {"flag"});
  std::vector<cf64> gains(n_inputs);
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
    const std::int64_t flag = table.has("flag") ? table.integer(row, "flag") : 0;
    if (flag != 0 && flag != 1)
      table.fail(row, "flag = " + std::to_string(flag) + " is neither 0 nor 1 (no gain)");
    if (flag == 1) continue;  // 0: the input has no gain
    const double amplitude = table.number(row, "amplitude");
    if (amplitude <= 0) {
      table.fail(row,
                 "amplitude = " + table.text(row, "amplitude") +
                     " is not positive; flag a dead input instead, here (column flag) or in the "
                     "layout (column bad)");
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

}  // namespace

std::vector<cf64> read_gains_csv(const std::string& path, std::int64_t n_inputs,
                                 const std::function<void()>& pause) {
  for (int reading = 0; reading < kMaxReadings; ++reading) {
    const GainsStamp before = stamp_of(path);
    std::vector<cf64> gains;
    std::exception_ptr wrong;
    try {
      gains = gains_now(path, n_inputs);
    } catch (const FormatError&) {
      wrong = std::current_exception();
    }
    if (!wrong && ends_its_last_line(path) && stamp_of(path) == before) return gains;
    if (pause)
      pause();
    else
      std::this_thread::sleep_for(kWriterPause);
    if (stamp_of(path) != before) continue;
    if (wrong) std::rethrow_exception(wrong);
    return gains;
  }
  throw FormatError(path + ": it changes while it is read, " + std::to_string(kMaxReadings) +
                    " times; write it under another name and rename it");
}

}  // namespace ryle
