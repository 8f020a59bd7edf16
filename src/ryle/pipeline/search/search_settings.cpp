// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/pipeline/search/search_block_size.hpp"

namespace ryle::pipeline {

search::Band search_band(const FrequencyAxis& frequency, double sample_interval_s,
                         const std::string& k_dm) {
  search::Band band;
  for (std::int64_t c = 0; c < frequency.n_channels; ++c)
    band.center_hz.push_back(frequency.center_hz(c));
  band.channel_width_hz = frequency.channel_width_hz;
  band.sample_interval_s = sample_interval_s;
  band.k_dm = search::dispersion_constant(k_dm);
  return band;
}

std::vector<std::uint8_t> parse_channel_list(const std::string& text, std::int64_t n_channels) {
  if (text.empty()) return {};
  std::vector<std::uint8_t> masked(n_channels, 0);
  std::istringstream in(text);
  std::string word;
  while (std::getline(in, word, ',')) {
    std::int64_t first = 0, last = 0;
    try {
      std::size_t used = 0;
      first = last = std::stoll(word, &used);
      if (used < word.size() && word[used] == '-') {
        std::size_t more = 0;
        last = std::stoll(word.substr(used + 1), &more);
        used += 1 + more;
      }
      if (used != word.size() || first < 0 || last < first || last >= n_channels)
        throw std::out_of_range(word);
    } catch (const std::logic_error&) {
      throw ConfigError(
          fmt::format("channels \"{}\": write numbers and ranges within 0 .. {}, such as 0-3,17",
                      word, n_channels - 1));
    }
    std::fill(masked.begin() + first, masked.begin() + last + 1, std::uint8_t{1});
  }
  return masked;
}

namespace {

search::UserMask mask_of(const SearchSettings& s, const SearchInput& input) {
  search::UserMask mask;
  if (!s.rfifind_mask.empty())
    mask = search::parse_rfifind_mask(read_text_file(s.rfifind_mask), s.rfifind_mask, input.band);
  if (!s.kill_file.empty())
    mask.add_channels(search::parse_kill_file(read_text_file(s.kill_file), s.kill_file, input.band,
                                              input.descending));
  const auto times = search::parse_time_ranges(s.mask_times, input.band.sample_interval_s);
  mask.blocks.insert(mask.blocks.end(), times.begin(), times.end());
  mask.sort();
  return mask;
}

search::DmPlanConfig plan_of(const SearchSettings& s, const SearchInput& input) {
  search::DmPlanConfig plan;
  plan.kind = s.plan;
  plan.dm_min = s.dm_min;
  plan.dm_max = s.dm_max;
  plan.step = s.dm_step;
  plan.count = s.dm_count;
  plan.tolerance = s.tolerance;
  plan.ranges = s.ranges;
  if (input.n_samples == 0) {
    if (!wants_search(s))
      throw ConfigError("live search: give dm_max; memory and delay follow from it");
  } else if (!(s.dm_max > 0)) {
    const double half_file =
        0.5 * static_cast<double>(input.n_samples) / input.band.sweep_samples_per_dm();
    plan.dm_max = std::max(s.dm_min + 1, std::min(2000.0, half_file));
  }
  if (plan.kind == "file") plan.file = read_text_file(s.dm_file);
  return plan;
}

std::int64_t widest_boxcar(const SearchSettings& s, const SearchInput& input) {
  const double interval_s = input.band.sample_interval_s;
  const bool given = s.width_max_s > 0;
  const auto samples =
      static_cast<std::int64_t>(std::llround((given ? s.width_max_s : 0.1) / interval_s));
  if (given && samples < 1)
    throw ConfigError(fmt::format("a width of {} s is less than half a sample of {:.4g} s",
                                  s.width_max_s, interval_s));
  if (given && samples > search::kMaxWidth)
    throw ConfigError(fmt::format("a width of {} s is {} samples; at most {} ({:.4g} s)",
                                  s.width_max_s, samples, search::kMaxWidth,
                                  static_cast<double>(search::kMaxWidth) * interval_s));
  std::int64_t maximum = given ? search::kMaxWidth : 1024;
  if (input.n_samples > 0) maximum = std::clamp<std::int64_t>(input.n_samples / 8, 8, maximum);
  return std::clamp<std::int64_t>(samples, 8, maximum);
}

}  // namespace

SearchChainConfig search_chain(const SearchSettings& s, const SearchInput& input) {
  SearchChainConfig chain;
  chain.band = input.band;
  chain.dms = search::dm_trials(input.band, plan_of(s, input));
  chain.normalize.n_channels = input.band.n_channels();
  chain.normalize.masked = parse_channel_list(s.mask_channels, input.band.n_channels());
  chain.normalize.flag_channels = s.flagging;
  chain.normalize.mask = mask_of(s, input);
  chain.normalize.spectra.threshold = s.burst_threshold;
  chain.normalize.kurtosis_degrees = s.sk_degrees;
  chain.normalize.zero_dm = search::zero_dm_of(s.zero_dm);
  beam_normalization(chain);  // rejects a band too narrow for the filter, before data come
  chain.threshold = s.threshold;
  chain.max_width = widest_boxcar(s, input);
  chain.baseline_samples =
      search::drift_window(s.baseline_s, input.band.sample_interval_s, chain.max_width);
  if (s.block_samples > 0)
    chain.block_samples = s.block_samples;
  else if (input.n_samples == 0)
    chain.block_samples = kHostBlock;
  chain.implementation = s.implementation;
  chain.smear_samples = s.smear_samples;
  return chain;
}

void set_products(const SearchSettings& settings, SearchProductOptions& products) {
  products.voevents = settings.voevents;
  products.max_pictures = settings.max_pictures;
  products.dm_candidate_min = settings.dm_candidate_min;
}

std::string zero_dm_warning(const SearchChainConfig& chain) {
  if (chain.normalize.zero_dm == search::ZeroDm::off) return "";
  return search::zero_dm_losses(chain.band, chain.dms.front(), chain.max_width);
}

}  // namespace ryle::pipeline
