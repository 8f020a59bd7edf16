// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/search/search_products.hpp"

/// The chain of a search as its settings ask for it, the same of files and of a live run.
namespace ryle::pipeline {

/// What is searched.
struct SearchInput {
  search::Band band;
  std::int64_t n_samples = 0;  ///< of the files; 0 = live, the end is not known
  bool descending = false;     ///< the filterbank on disk begins with its highest channel
};
search::Band search_band(const FrequencyAxis& frequency, double sample_interval_s,
                         const std::string& k_dm);

/// "0-3,17" to [channel] 1 = masked. Throws ConfigError.
std::vector<std::uint8_t> parse_channel_list(const std::string& text, std::int64_t n_channels);

/// What each beam goes through. The widest boxcar is 0.1 s unless given, then neither longer than
/// 1024 samples nor than an eighth of the files. Throws ConfigError, FormatError, IoError.
SearchChainConfig search_chain(const SearchSettings& settings, const SearchInput& input);

/// The settings of the products.
void set_products(const SearchSettings& settings, SearchProductOptions& products);
/// What a zero-DM filter takes of pulses, in words; empty without one.
std::string zero_dm_warning(const SearchChainConfig& chain);

}  // namespace ryle::pipeline
