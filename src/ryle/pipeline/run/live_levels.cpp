// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_levels.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/ingest/spectra_source.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kLiveLevelSamples = 512;  // of an input
constexpr std::int64_t kLiveLevelChannels = 16;

double rms_level(double sum2, std::int64_t n) {
  return n > 0 ? std::sqrt(sum2 / static_cast<double>(2 * n)) : 0;
}

bool is_absent(const Chunk& chunk, std::int64_t input, Tick tick) {
  return std::any_of(chunk.absent.begin(), chunk.absent.end(), [&](const AbsentSpan& span) {
    return span.input == input && tick >= span.begin && tick < span.end;
  });
}

std::vector<double> levels_of_samples(const SourceInfo& info, const Chunk& chunk) {
  std::vector<double> levels;
  const std::int64_t step = std::max<std::int64_t>(1, chunk.n_ticks / kLiveLevelSamples);
  for (std::int64_t input = 0; input < info.n_inputs; ++input) {
    double sum2 = 0;
    std::int64_t n = 0;
    for (std::int64_t t = 0; t < chunk.n_ticks; t += step) {
      if (!chunk.absent.empty() && is_absent(chunk, input, chunk.first_tick + t)) continue;
      sum2 += std::norm(decode_sample(info.layout, chunk.payload.data(), input, t));
      ++n;
    }
    levels.push_back(rms_level(sum2, n));
  }
  return levels;
}

std::vector<double> levels_of_spectra(const SpectraBlocks& spectra) {
  const ConstBlockView blocks = spectra.blocks();
  const std::int64_t channel_step =
      std::max<std::int64_t>(1, blocks.n_channels / kLiveLevelChannels);
  const std::int64_t step =
      std::max<std::int64_t>(1, spectra.n_spectra * kLiveLevelChannels / kLiveLevelSamples);
  std::vector<double> levels;
  for (std::int64_t input = 0; input < blocks.n_inputs; ++input) {
    double sum2 = 0;
    std::int64_t n = 0;
    for (std::int64_t channel = 0; channel < blocks.n_channels; channel += channel_step) {
      for (std::int64_t t = 0; t < spectra.n_spectra; t += step) {
        const auto word = static_cast<std::size_t>(channel * spectra.mask.channel_stride_words +
                                                   input * spectra.mask.words + t / 64);
        if (!spectra.complete && (spectra.mask.bits[word] >> (t % 64) & 1) == 0) continue;
        sum2 += std::norm(get_sample(blocks, channel, t, input));
        ++n;
      }
    }
    levels.push_back(rms_level(sum2, n));
  }
  return levels;
}

}  // namespace

std::vector<double> LiveLevels::of(const ChunkSource& source, const Chunk& chunk) {
  if (const auto* spectra = dynamic_cast<const SpectraSource*>(&source)) {
    if (!blocks_) blocks_ = std::make_unique<SpectraBlocks>(spectra->shape());
    spectra->unpack(chunk, *blocks_);
    return levels_of_spectra(*blocks_);
  }
  const SourceInfo info = source.info();
  return info.layout.sample_stride_bits > 0 ? levels_of_samples(info, chunk)
                                            : std::vector<double>();
}

}  // namespace ryle::pipeline
