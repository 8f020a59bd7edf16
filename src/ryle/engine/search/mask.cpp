// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/mask.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"

namespace ryle::search {
namespace {

/// Little-endian numbers from memory, every one checked against the end.
class MaskBytes {
 public:
  MaskBytes(const std::string& bytes, const std::string& path) : bytes_(bytes), path_(path) {}

  template <class T>
  T next(const char* what) {
    T value{};
    if (bytes_.size() - at_ < sizeof value)
      throw FormatError(path_ + ": the mask ends at byte " + std::to_string(bytes_.size()) +
                        ", within " + what);
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::int32_t count(const char* what, std::int32_t maximum) {
    const std::size_t at = at_;
    const auto n = next<std::int32_t>(what);
    if (n < 0 || n > maximum)
      throw FormatError(path_ + ": byte " + std::to_string(at) + ": " + what + " is " +
                        std::to_string(n) + "; 0 .. " + std::to_string(maximum));
    return n;
  }

  /// A list of numbers below `end`.
  std::vector<std::int32_t> list(const char* what, std::int32_t n, std::int32_t end) {
    std::vector<std::int32_t> out(n);
    for (std::int32_t& value : out) value = count(what, end - 1);
    return out;
  }

 private:
  const std::string& bytes_;
  const std::string& path_;
  std::size_t at_ = 0;
};

double number_of(const std::string& word, const std::string& where) {
  double value = 0;
  if (parse_finite(word, value)) return value;
  throw FormatError(where + "\"" + word + "\" is not a number");
}

}  // namespace

void UserMask::add_channels(const std::vector<std::uint8_t>& more) {
  if (channels.empty()) channels.assign(more.size(), 0);
  for (std::size_t c = 0; c < more.size(); ++c) channels[c] |= more[c];
}

void UserMask::sort() {
  std::sort(blocks.begin(), blocks.end(),
            [](const MaskBlock& a, const MaskBlock& b) { return a.first < b.first; });
}

UserMask UserMask::since(std::int64_t tick) const {
  UserMask later{channels, {}};
  for (const MaskBlock& b : blocks)
    if (b.end > tick) later.blocks.push_back({b.first - tick, b.end - tick, b.channels});
  return later;
}

std::vector<MaskBlock> parse_time_ranges(const std::string& text, double sample_interval_s) {
  std::vector<MaskBlock> blocks;
  std::istringstream in(text);
  std::string word;
  while (std::getline(in, word, ',')) {
    double first_s = -1, end_s = -1;
    try {
      std::size_t used = 0;
      first_s = std::stod(word, &used);
      const std::string rest =
          used < word.size() && word[used] == '-' ? word.substr(used + 1) : "x";
      end_s = std::stod(rest, &used);
      if (used != rest.size()) end_s = -1;
    } catch (const std::logic_error&) {
    }
    if (!(first_s >= 0) || !(end_s > first_s) || !(end_s < 1e9))
      throw ConfigError("times \"" + word +
                        "\": write ranges in seconds from the start, such as 12.5-13.1,40-41");
    blocks.push_back({static_cast<std::int64_t>(std::floor(first_s / sample_interval_s)),
                      static_cast<std::int64_t>(std::ceil(end_s / sample_interval_s)),
                      {}});
  }
  return blocks;
}

UserMask parse_rfifind_mask(const std::string& bytes, const std::string& path, const Band& band) {
  MaskBytes in(bytes, path);
  for (const char* what : {"the time threshold", "the frequency threshold", "the MJD"})
    in.next<double>(what);
  const auto interval_s = in.next<double>("the length of an interval");
  const auto low_mhz = in.next<double>("the lowest frequency");
  const auto width_mhz = in.next<double>("the channel width");
  const std::int32_t n_channels = in.count("the number of channels", 1 << 24);
  const std::int32_t n_intervals = in.count("the number of intervals", 1 << 28);
  const std::int32_t n_points = in.count("the samples of an interval", 0x7fffffff);
  if (n_channels != band.n_channels())
    throw ConfigError(path + ": a mask of " + std::to_string(n_channels) + " channels for " +
                      std::to_string(band.n_channels()));
  const double expected_s = n_points * band.sample_interval_s;
  if (n_points < 1 || !(std::abs(interval_s - expected_s) <= 1e-3 * expected_s))
    throw ConfigError(path + ": intervals of " + std::to_string(interval_s) + " s and " +
                      std::to_string(n_points) + " samples; the samples here are " +
                      std::to_string(band.sample_interval_s) + " s long");
  if (!(std::abs(low_mhz * 1e6 - band.center_hz.front()) <= band.channel_width_hz) ||
      !(std::abs(width_mhz * 1e6 - band.channel_width_hz) <= 0.01 * band.channel_width_hz))
    throw ConfigError(path + ": a mask from " + std::to_string(low_mhz) +
                      " MHz, the band is from " + std::to_string(band.center_hz.front() * 1e-6) +
                      " MHz");
  const auto n = static_cast<std::size_t>(n_channels);
  UserMask mask;
  const std::int32_t n_zapped = in.count("the number of channels zapped", n_channels);
  for (const auto c : in.list("a zapped channel", n_zapped, n_channels)) {
    mask.channels.resize(n, 0);
    mask.channels[c] = 1;
  }
  const std::int32_t n_out = in.count("the number of intervals zapped", n_intervals);
  const auto add = [&](std::int64_t k, std::vector<std::uint8_t> channels) {
    mask.blocks.push_back({k * n_points, (k + 1) * n_points, std::move(channels)});
  };
  for (const auto k : in.list("a zapped interval", n_out, n_intervals)) add(k, {});
  std::vector<std::int32_t> counts(n_intervals);
  for (std::int32_t& count : counts) count = in.count("the channels of an interval", n_channels);
  for (std::int32_t k = 0; k < n_intervals; ++k) {
    const std::int32_t count = counts[k];
    if (count == 0) continue;
    if (count == n_channels) {  // all: no list follows
      add(k, {});
      continue;
    }
    std::vector<std::uint8_t> channels(n, 0);
    for (const auto c : in.list("a channel of an interval", count, n_channels)) channels[c] = 1;
    add(k, std::move(channels));
  }
  mask.sort();
  return mask;
}

std::vector<std::uint8_t> parse_kill_file(const std::string& text, const std::string& path,
                                          const Band& band, bool descending) {
  const auto n = static_cast<std::size_t>(band.n_channels());
  std::vector<std::uint8_t> masked(n, 0), listed;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string where = path + ": line " + std::to_string(number) + ": ";
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word, low, high, more;
    while (words >> word) {
      if (word != "zap") {
        if (word != "0" && word != "1")
          throw FormatError(where + "\"" + word + "\": 0, 1 or zap LOW HIGH (MHz)");
        listed.push_back(word == "0" ? 1 : 0);
        continue;
      }
      if (!(words >> low >> high)) throw FormatError(where + "zap needs two frequencies in MHz");
      const double from = number_of(low, where) * 1e6, to = number_of(high, where) * 1e6;
      for (std::size_t c = 0; c < n; ++c)
        if (band.center_hz[c] >= std::min(from, to) && band.center_hz[c] <= std::max(from, to))
          masked[c] = 1;
    }
  }
  if (!listed.empty() && listed.size() != n)
    throw FormatError(path + ": " + std::to_string(listed.size()) +
                      " channels are listed, the data have " + std::to_string(n));
  for (std::size_t k = 0; k < listed.size(); ++k) masked[descending ? n - 1 - k : k] |= listed[k];
  return masked;
}

}  // namespace ryle::search
