// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/search/dispersion.hpp"

/// What the user wants out of a search, from lists and from the files of other programs. Channels
/// ascend in frequency, ticks are samples from the start of the file.
namespace ryle::search {

struct MaskBlock {
  std::int64_t first = 0, end = 0;     ///< ticks
  std::vector<std::uint8_t> channels;  ///< [channel], 1 = out; empty = all
};

struct UserMask {
  std::vector<std::uint8_t> channels;  ///< [channel], 1 = out all along; empty = none
  std::vector<MaskBlock> blocks;       ///< ascending, may overlap

  bool empty() const { return channels.empty() && blocks.empty(); }
  void add_channels(const std::vector<std::uint8_t>& more);
  void sort();
  UserMask since(std::int64_t tick) const;  ///< the same of data that begin at this tick
};

/// "12.5-13.1,40-41": seconds from the first sample. Throws ConfigError.
std::vector<MaskBlock> parse_time_ranges(const std::string& text, double sample_interval_s);

/// PRESTO's rfifind .mask (little endian): 6 doubles, counts, channels and intervals out all along,
/// channels by interval. Channel 0 is the lowest. Throws FormatError with the byte, ConfigError
/// when its channels or band are not those of `band`.
UserMask parse_rfifind_mask(const std::string& bytes, const std::string& path, const Band& band);

/// Kill file as text. Either one number for each channel, in the order of the data file, 1 = keep
/// and 0 = out (heimdall, peasoup, dedisp), or lines "zap LOW HIGH" in MHz, the words of
/// TransientX's --rfi. '#' starts a comment. Throws FormatError with the line.
/// @param descending the data file has its highest channel first
std::vector<std::uint8_t> parse_kill_file(const std::string& text, const std::string& path,
                                          const Band& band, bool descending);

}  // namespace ryle::search
