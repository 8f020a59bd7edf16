// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/beam_gains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"

namespace ryle {
namespace {

std::vector<std::string> gain_words(std::string line) {
  line = line.substr(0, line.find('#'));
  std::replace(line.begin(), line.end(), ',', ' ');
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

}  // namespace

BeamGains BeamGains::read(const std::string& path) {
  std::istringstream in(read_text_file(path));
  BeamGains gains;
  gains.path_ = path;
  std::string line;
  bool first = true;
  for (int number = 1; std::getline(in, line); ++number) {
    std::vector<std::string> words = gain_words(line);
    if (words.empty()) continue;
    double beam = 0, frequency_mhz = 0, gain = 0;
    if (std::exchange(first, false) && !parse_finite(words.back(), gain)) continue;  // of columns
    if (words[0][0] == 'M' || words[0][0] == 'm') words[0].erase(0, 1);
    const bool good =
        (words.size() == 2 || words.size() == 3) && parse_finite(words[0], beam) && beam >= 0 &&
        beam == std::floor(beam) && beam < 1e6 && parse_finite(words.back(), gain) && gain > 0 &&
        (words.size() == 2 || (parse_finite(words[1], frequency_mhz) && frequency_mhz > 0));
    if (!good)
      throw FormatError(fmt::format(
          "{}: line {}: \"{}\" is no beam with its gain; rows such as \"M01 16.02\" (K/Jy) or "
          "\"M01 1250 16.02\" (MHz, K/Jy) are read",
          path, number, line));
    auto& rows = gains.beams_[static_cast<std::int64_t>(beam)];
    if (!rows.empty() && !(frequency_mhz * 1e6 > rows.back().frequency_hz))
      throw FormatError(
          fmt::format("{}: line {}: frequencies of beam {} do not ascend", path, number, beam));
    rows.push_back({frequency_mhz * 1e6, gain});
  }
  if (gains.beams_.empty()) throw FormatError(path + ": no gain of a beam");
  return gains;
}

std::vector<double> BeamGains::of(std::int64_t beam, const FrequencyAxis& channels) const {
  const auto found = beams_.find(beam);
  if (found == beams_.end())
    throw ConfigError(
        fmt::format("{}: no gain of beam {}; it has {} beams", path_, beam, beams_.size()));
  const std::vector<Row>& rows = found->second;
  std::vector<double> gains(channels.n_channels, rows[0].gain_k_per_jy);
  if (rows.size() == 1) return gains;
  if (!(channels.channel_width_hz > 0))
    throw ConfigError(path_ + ": gains by frequency need scans that say their frequencies");
  for (std::size_t c = 0; c < gains.size(); ++c) {
    const double hz = std::clamp(channels.center_hz(static_cast<std::int64_t>(c)),
                                 rows.front().frequency_hz, rows.back().frequency_hz);
    std::size_t k = 1;
    while (k + 1 < rows.size() && rows[k].frequency_hz < hz) ++k;
    const Row &a = rows[k - 1], &b = rows[k];
    const double t = (hz - a.frequency_hz) / (b.frequency_hz - a.frequency_hz);
    gains[c] = a.gain_k_per_jy + t * (b.gain_k_per_jy - a.gain_k_per_jy);
  }
  return gains;
}

}  // namespace ryle
