// SPDX-License-Identifier: BSD-3-Clause
// Exact sums shared between trials (search.md 5). Inside a group of 4 adjacent channels the
// relative delays of neighbouring trials take few distinct values ("patterns"): each pattern's
// 4-channel sum is formed once, then a trial adds one row per group instead of one per channel. The
// integers are those of the definition.
#include <algorithm>
#include <array>
#include <map>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/cpu/tasks.hpp"
#include "ryle/engine/search/implementations.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kTimes = 1024;        // outputs of a task
constexpr std::int64_t kTrials = 144;        // trials of a task
constexpr std::int64_t kChannelBlock = 128;  // channels whose patterns are in scratch at a time
constexpr std::int64_t kMaxScratch_bytes = std::int64_t{1}
                                           << 20;  // stays in the second-level cache
constexpr std::int64_t kRowPad = 64;
constexpr double kByteWork = 0.8;  // a row of bytes into 16-bit sums, against one of 16 bits

std::int64_t rounded_up(std::int64_t n, std::int64_t step) { return (n + step - 1) / step * step; }

/// Sum of `group` adjacent channels at fixed relative delays, for every start the tile needs.
struct Pattern {
  std::int64_t first_channel;
  std::array<std::int32_t, 4> delays;  // of the smallest start
  std::int64_t length;                 // samples, beyond the outputs of a task
  std::int64_t offset;                 // in scratch
};

/// One tile of trials x block of channels.
struct Part {
  std::int64_t first_channel = 0, n_channels = 0;
  bool shared = false;
  std::vector<Pattern> patterns;
  std::vector<std::uint32_t> starts;  // [group][trial], offsets in scratch; empty when not shared
  std::int64_t n_groups = 0;
  std::int64_t scratch_bytes = 0;
  double work = 0;  // additions of rows x kTimes
};

struct Tile {
  std::int64_t first_trial = 0, n_trials = 0;
  std::vector<Part> parts;
};

class CpuDedisperser final : public Dedisperser {
 public:
  CpuDedisperser(Queue& queue, const DedisperseConfig& config, const CpuKernel& kernel)
      : config_(config),
        kernel_(kernel),
        name_(std::string("search/cpu/") + kernel.name),
        format_(sum_format(config.n_channels, config.max_code)),
        group_(config.max_code * 4 <= 255   ? 4
               : config.max_code * 2 <= 255 ? 2
                                            : 1),
        // Channels whose sum is sure to fit 16 bits; above, sums go to 32 bits in between.
        flush_channels_(65535 / config.max_code),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {
    std::int64_t scratch_bytes = 0;
    for (std::int64_t first = 0; first < config.n_trials; first += kTrials) {
      Tile tile;
      tile.first_trial = first;
      tile.n_trials = std::min(kTrials, config.n_trials - first);
      for (std::int64_t c = 0; c < config.n_channels; c += kChannelBlock) {
        tile.parts.push_back(make_part(tile, c, std::min(kChannelBlock, config.n_channels - c)));
        scratch_bytes = std::max(scratch_bytes, tile.parts.back().scratch_bytes);
        work_ += tile.parts.back().work / static_cast<double>(kTimes);
      }
      tiles_.push_back(std::move(tile));
    }
    scratch_stride_ = rounded_up(scratch_bytes, kChunk) + kReadAhead;
    scratch_ = Buffer<std::uint8_t>(scratch_stride_ * queue.n_workers());
    starts_ = Buffer<std::uint32_t>(kChannelBlock * kTrials * queue.n_workers());
    sums_ = Buffer<std::uint16_t>(kTrials * kTimes * queue.n_workers());
  }

  void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
               std::int64_t n_outputs, void* sums, std::int64_t sum_stride) override {
    for_each_tile(queue, static_cast<std::int64_t>(tiles_.size()), kTimes,
                  {codes, code_stride, 0, n_outputs, sums, sum_stride},
                  [&](std::int64_t slot, std::size_t tile, const OutputWork& work) {
                    run_tile(tiles_[tile], work, slot);
                  });
  }
  std::int64_t max_delay() const override { return max_delay_; }
  double work() const override { return kByteWork * work_; }
  std::string_view implementation() const override { return name_; }

 private:
  std::int32_t delay_at(std::int64_t trial, std::int64_t channel) const {
    return config_.delays[trial * config_.n_channels + channel];
  }

  Part make_part(const Tile& tile, std::int64_t first_channel, std::int64_t n_channels) const {
    Part part;
    part.first_channel = first_channel;
    part.n_channels = n_channels;
    part.n_groups = n_channels;
    const auto direct = static_cast<double>(n_channels * tile.n_trials * kTimes);
    part.work = direct;
    if (group_ == 1 || n_channels % group_ != 0) return part;
    Part shared = part;
    shared.shared = true;
    shared.n_groups = n_channels / group_;
    shared.starts.resize(shared.n_groups * tile.n_trials);
    double work = static_cast<double>(shared.n_groups * tile.n_trials * kTimes);
    for (std::int64_t g = 0; g < shared.n_groups; ++g) work += add_patterns(tile, g, shared);
    shared.work = work;
    return work < direct && shared.scratch_bytes <= kMaxScratch_bytes ? shared : part;
  }

  /// Patterns of a group of channels; returns their cost in additions of the second stage.
  double add_patterns(const Tile& tile, std::int64_t g, Part& part) const {
    const std::int64_t c0 = part.first_channel + g * group_;
    std::map<std::array<std::int32_t, 4>, std::size_t> known;
    std::vector<std::size_t> of_trial;
    double cost = 0;
    for (std::int64_t i = 0; i < tile.n_trials; ++i) {
      const std::int32_t start = delay_at(tile.first_trial + i, c0);
      std::array<std::int32_t, 4> relative{};
      for (std::int64_t k = 1; k < group_; ++k)
        relative[k] = delay_at(tile.first_trial + i, c0 + k) - start;
      const auto [entry, fresh] = known.emplace(relative, part.patterns.size());
      if (fresh) part.patterns.push_back({c0, relative, start, start});  // first, last start
      Pattern& p = part.patterns[entry->second];
      p.length = std::min<std::int64_t>(p.length, start);
      p.offset = std::max<std::int64_t>(p.offset, start);
      of_trial.push_back(entry->second);
    }
    for (const auto& [relative, index] : known) {
      Pattern& p = part.patterns[index];
      const std::int64_t lowest = p.length, highest = p.offset;
      for (std::int64_t k = 0; k < group_; ++k)
        p.delays[k] = static_cast<std::int32_t>(lowest + relative[k]);
      p.length = highest - lowest;
      p.offset = part.scratch_bytes;
      part.scratch_bytes += rounded_up(kTimes + p.length, 64) + kRowPad;
      cost +=
          1.6 * static_cast<double>(kTimes + p.length);  // a row of stage 1 against one of stage 2
    }
    for (std::int64_t i = 0; i < tile.n_trials; ++i) {
      const Pattern& p = part.patterns[of_trial[i]];
      const std::int64_t start = delay_at(tile.first_trial + i, c0);
      part.starts[g * tile.n_trials + i] =
          static_cast<std::uint32_t>(p.offset + start - p.delays[0]);
    }
    return cost;
  }

  void run_tile(const Tile& tile, const OutputWork& work, std::int64_t slot) {
    std::uint16_t* sums = sums_.data() + slot * kTrials * kTimes;
    std::int64_t held = 0;  // channels in the 16-bit sums
    bool stored = false;
    bool done = false;
    for (const Part& part : tile.parts) {
      if (held + part.n_channels > flush_channels_) {
        store(tile, work, sums, stored);
        stored = true;
        held = 0;
      }
      // The last part's sums are complete: no second pass over whole tiles.
      const bool last = &part == &tile.parts.back() && !stored && work.n % kChunk == 0;
      done = run_part(tile, part, work, slot, sums, held == 0, last);
      held += part.n_channels;
    }
    if (!done) store(tile, work, sums, stored);
  }

  /// Whether the sums are stored: asked for by `last`.
  bool run_part(const Tile& tile, const Part& part, const OutputWork& work, std::int64_t slot,
                std::uint16_t* sums, bool first, bool last) {
    Accumulation a{};
    a.n_groups = part.n_groups;
    a.n_trials = tile.n_trials;
    a.n = rounded_up(work.n, kChunk);
    a.sums = sums;
    a.sum_stride = kTimes;
    a.first = first;
    if (last && format_ == SumFormat::u16) {
      a.to =
          static_cast<std::uint16_t*>(work.sums) + tile.first_trial * work.sum_stride + work.first;
      a.to_stride = work.sum_stride;
    }
    if (part.shared) {
      std::uint8_t* scratch = scratch_.data() + slot * scratch_stride_;
      for (const Pattern& p : part.patterns) {
        const std::uint8_t* rows[4] = {};
        for (std::int64_t k = 0; k < group_; ++k)
          rows[k] = work.codes + (p.first_channel + k) * work.code_stride + p.delays[k];
        kernel_.sum_rows(rows, static_cast<int>(group_), scratch + p.offset,
                         rounded_up(work.n + p.length, 64));  // kReadAhead allows no more
      }
      a.base = scratch;
      a.starts = part.starts.data();
      return kernel_.accumulate(a);
    }
    std::uint32_t* starts = starts_.data() + slot * kChannelBlock * kTrials;
    for (std::int64_t c = 0; c < part.n_channels; ++c) {
      for (std::int64_t i = 0; i < tile.n_trials; ++i)
        starts[c * tile.n_trials + i] = static_cast<std::uint32_t>(
            c * work.code_stride + delay_at(tile.first_trial + i, part.first_channel + c));
    }
    a.base = work.codes + part.first_channel * work.code_stride;
    a.starts = starts;
    return kernel_.accumulate(a);
  }

  void store(const Tile& tile, const OutputWork& work, const std::uint16_t* sums, bool add) {
    for (std::int64_t i = 0; i < tile.n_trials; ++i) {
      const std::int64_t at = (tile.first_trial + i) * work.sum_stride + work.first;
      if (format_ == SumFormat::u16) {
        kernel_.store_u16(sums + i * kTimes, static_cast<std::uint16_t*>(work.sums) + at, work.n);
      } else {
        kernel_.store_u32(sums + i * kTimes, static_cast<std::uint32_t*>(work.sums) + at, work.n,
                          !add);
      }
    }
  }

  DedisperseConfig config_;
  const CpuKernel& kernel_;
  std::string name_;
  SumFormat format_;
  std::int64_t group_;
  std::int64_t flush_channels_;
  std::int64_t max_delay_;
  double work_ = 0;
  std::vector<Tile> tiles_;
  std::int64_t scratch_stride_ = 0;
  Buffer<std::uint8_t> scratch_;
  Buffer<std::uint32_t> starts_;
  Buffer<std::uint16_t> sums_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_cpu(Queue& queue, const DedisperseConfig& config,
                                      const CpuKernel& kernel) {
  return std::make_unique<CpuDedisperser>(queue, config, kernel);
}

}  // namespace ryle::search::detail
