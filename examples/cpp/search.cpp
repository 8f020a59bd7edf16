// SPDX-License-Identifier: BSD-3-Clause
// Finds a dispersed pulse in noise and prints its dispersion measure, time and S/N.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <ryle/engine/search/dispersion.hpp>
#include <ryle/engine/search/search.hpp>
#include <vector>

int main() {
  constexpr std::int64_t kChannels = 64, kOutputs = 8192;
  ryle::search::Band band;  // 1.2 to 1.5 GHz, 1 ms
  for (int c = 0; c < kChannels; ++c)
    band.center_hz.push_back(1.2e9 + (c + 0.5) * 300e6 / kChannels);
  band.channel_width_hz = 300e6 / kChannels;
  band.sample_interval_s = 1e-3;
  const auto dms = ryle::search::dm_trials(band, {.dm_max = 500});
  auto queue = ryle::Queue::cpu();
  const auto dedisperser =
      ryle::search::make_dedisperser(queue, {.n_channels = kChannels,
                                             .n_trials = static_cast<std::int64_t>(dms.size()),
                                             .delays = ryle::search::delay_table(band, dms),
                                             .max_outputs = kOutputs});
  // Codes [channel][time], mean 16: noise, and a pulse of DM 300 at 2.5 s.
  const std::int64_t stride = kOutputs + dedisperser->max_delay();
  std::vector<std::uint8_t> codes(
      static_cast<std::size_t>(kChannels * stride + ryle::search::kReadAhead));
  std::mt19937 random(1);
  std::normal_distribution<double> noise(16, 4);
  for (auto& code : codes) code = static_cast<std::uint8_t>(std::clamp(noise(random), 0.0, 63.0));
  for (int c = 0; c < kChannels; ++c)
    codes[static_cast<std::size_t>(c * stride + 2500 + std::lround(band.delay_samples(c, 300)))] +=
        12;
  std::vector<std::uint16_t> sums(dms.size() * kOutputs);
  dedisperser->execute(queue, codes.data(), stride, kOutputs, sums.data(), kOutputs);
  constexpr std::int64_t kWidest = 32;
  const auto detector =
      ryle::search::make_detector(queue, {.n_trials = static_cast<std::int64_t>(dms.size()),
                                          .max_width = kWidest,
                                          .max_columns = kOutputs});
  std::vector<ryle::search::Hit> hits;
  detector->execute(queue,
                    {.sums = sums.data(),
                     .stride = kOutputs,
                     .n_columns = kOutputs,
                     .end_start = (kOutputs - kWidest) / 64 * 64,
                     .stat_end = kOutputs},
                    hits);
  if (hits.empty()) return 1;
  const auto best = *std::max_element(hits.begin(), hits.end(),
                                      [](const auto& a, const auto& b) { return a.snr < b.snr; });
  std::printf("%s: DM %.1f pc/cm3 at %.4f s, S/N %.1f\n",
              std::string(dedisperser->implementation()).c_str(),
              dms[static_cast<std::size_t>(best.trial)], best.center() * band.sample_interval_s,
              static_cast<double>(best.snr));
}
