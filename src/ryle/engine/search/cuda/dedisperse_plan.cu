// SPDX-License-Identifier: BSD-3-Clause
// Which sums trials share: patterns of relative delays within groups of adjacent channels, packed
// into stages of shared memory.
#include "ryle/engine/search/cuda/dedisperse_plan.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>

#include "ryle/engine/search/cuda/dedisperse.cuh"

namespace ryle::search::detail {
namespace {

struct Pattern {
  std::array<std::int32_t, 4> delays{};  // of the smallest start
  std::int32_t span = 0;                 // largest start - smallest
  int words() const { return (span >> 2) + kTileTimes / 4; }
};

/// Adjacent channels that are added first.
struct Group {
  std::int32_t first_channel = 0;
  int n_channels = 0;
  std::vector<Pattern> patterns;
  std::vector<std::uint16_t> of_trial;

  int row_words() const {
    int n = 0;
    for (const auto& p : patterns) n += 4 * p.words();
    return n;
  }
  // Start and pieces of the codes of channel k; a piece more for the alignment of the address.
  RawRow raw(int k) const {
    std::int32_t lo = patterns[0].delays[static_cast<std::size_t>(k)], end = 0;
    for (const auto& p : patterns) {
      const std::int32_t start = p.delays[static_cast<std::size_t>(k)];
      lo = std::min(lo, start);
      end = std::max(end, start + 4 * p.words() + 8);
    }
    return {first_channel + k, lo, 0, (end - lo + 15) / 16 + 1};
  }
  int raw_bytes() const {
    int n = 0;
    for (int k = 0; k < n_channels; ++k) n += 16 * raw(k).n_pieces;
    return n;
  }
  int n_units() const {
    int n = 0;
    for (const auto& p : patterns) n += (p.words() + kUnitWords - 1) / kUnitWords;
    return n;
  }
};

struct Tile {
  std::int64_t first, n;
};

class Planner {
 public:
  Planner(const DedisperseConfig& config, int trials_per_warp)
      : config_(config),
        trials_per_warp_(trials_per_warp),
        group_(config.max_code * 4 <= 255   ? 4
               : config.max_code * 2 <= 255 ? 2
                                            : 1),
        flush_channels_(65535 / config.max_code) {}

  /// The stages of a tile; nothing when they do not fit.
  std::optional<std::vector<std::vector<std::uint8_t>>> stages(const Tile& tile) const {
    std::vector<std::vector<std::uint8_t>> out;
    std::vector<Group> held;
    std::int64_t summed = 0;  // channels in the 16-bit sums
    const auto close = [&] {
      std::int64_t n = 0;
      for (const auto& g : held) n += g.n_channels;
      const bool flush = summed + n > flush_channels_;
      summed = flush ? n : summed + n;
      out.push_back(describe(tile, held, flush));
      held.clear();
    };
    for (Group& group : groups(tile)) {
      held.push_back(std::move(group));
      if (fits(held)) continue;
      // Sums are added in pairs: an odd group waits for the next stage.
      std::vector<Group> later;
      do {
        later.insert(later.begin(), std::move(held.back()));
        held.pop_back();
      } while (!held.empty() && held.size() % 2 == 1 && held.size() > 1);
      if (held.empty()) return std::nullopt;
      close();
      held = std::move(later);
      if (!fits(held)) return std::nullopt;
    }
    close();
    return out;
  }

 private:
  std::int32_t delay(std::int64_t trial, std::int64_t channel) const {
    return config_.delays[static_cast<std::size_t>(trial * config_.n_channels + channel)];
  }
  int padded() const { return (trials_per_warp_ + 3) / 4 * 4; }

  std::vector<Group> groups(const Tile& tile) const {
    std::vector<Group> list;
    for (std::int64_t c = 0; c < config_.n_channels; c += group_) {
      const auto n = static_cast<int>(std::min<std::int64_t>(group_, config_.n_channels - c));
      Group shared = make_group(tile, c, n);
      // Loads and stores of shared memory: a word of a row costs 2 per channel and 5, an
      // addition 1.
      const auto cost = [&](const Group& g) {
        return (2.0 * g.n_channels + 5) * g.row_words() / 4 +
               static_cast<double>(tile.n) * kTileTimes / 4;
      };
      std::vector<Group> single;
      double apart = 0;
      for (int k = 0; k < n && n > 1; ++k) {
        single.push_back(make_group(tile, c + k, 1));
        apart += cost(single.back());
      }
      const bool share = n == 1 || (n != 3 && cost(shared) < apart && fits({shared}));
      if (share) {
        list.push_back(std::move(shared));
      } else {
        for (auto& g : single) list.push_back(std::move(g));
      }
    }
    return list;
  }

  Group make_group(const Tile& tile, std::int64_t first_channel, int n_channels) const {
    Group g;
    g.first_channel = static_cast<std::int32_t>(first_channel);
    g.n_channels = n_channels;
    std::map<std::array<std::int32_t, 4>, std::uint16_t> known;
    for (std::int64_t i = 0; i < tile.n; ++i) {
      const std::int32_t start = delay(tile.first + i, first_channel);
      std::array<std::int32_t, 4> relative{}, delays{};
      for (int k = 0; k < n_channels; ++k) {
        delays[static_cast<std::size_t>(k)] = delay(tile.first + i, first_channel + k);
        relative[static_cast<std::size_t>(k)] = delays[static_cast<std::size_t>(k)] - start;
      }
      const auto [entry, fresh] =
          known.emplace(relative, static_cast<std::uint16_t>(g.patterns.size()));
      if (fresh) g.patterns.push_back({delays, 0});
      Pattern& p = g.patterns[entry->second];
      if (start < p.delays[0]) {
        p.span += p.delays[0] - start;
        p.delays = delays;
      }
      p.span = std::max(p.span, start - p.delays[0]);
      g.of_trial.push_back(entry->second);
    }
    return g;
  }

  bool fits(const std::vector<Group>& groups) const {
    std::int64_t rows = kTileTimes, raws = 0, channels = 0, units = 0;
    for (const auto& g : groups) {
      rows += 4 * std::int64_t{g.row_words()};
      raws += g.raw_bytes();
      channels += g.n_channels;
      units += g.n_units();
    }
    const std::int64_t meta =
        static_cast<std::int64_t>(sizeof(StageHead)) +
        channels * static_cast<std::int64_t>(sizeof(RawRow)) +
        units * static_cast<std::int64_t>(sizeof(RowUnit)) + 64 +
        static_cast<std::int64_t>((groups.size() + 1) / 2) * kTileWarps * padded() * 4;
    return rows <= kRowBytes && raws <= kRawBytes && meta <= kMetaBytes &&
           channels <= std::min<std::int64_t>(kMaxStageChannels, flush_channels_);
  }

  std::vector<std::uint8_t> describe(const Tile& tile, const std::vector<Group>& groups,
                                     bool flush) const {
    std::vector<RawRow> raws;
    std::vector<RowUnit> units;
    const auto n_pairs = static_cast<std::int64_t>((groups.size() + 1) / 2);
    // Groups that are not there add the row of zeros at offset 0.
    std::vector<std::uint16_t> pairs(static_cast<std::size_t>(n_pairs * kTileWarps * padded() * 2),
                                     std::uint16_t{0});
    std::int32_t raw_bytes = 0, row_words = kTileTimes / 4;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Group& group = groups[g];
      const std::size_t first_raw = raws.size();
      for (int k = 0; k < group.n_channels; ++k) {
        RawRow raw = group.raw(k);
        raw.offset = raw_bytes;
        raw_bytes += 16 * raw.n_pieces;
        raws.push_back(raw);
      }
      std::vector<std::int32_t> at;
      for (const Pattern& p : group.patterns) {
        RowUnit row{};
        at.push_back(row_words);
        row.offset = static_cast<std::uint16_t>(row_words);
        row.n_words = static_cast<std::uint16_t>(p.words());
        row.n_channels = static_cast<std::uint16_t>(group.n_channels);
        for (int k = 0; k < group.n_channels; ++k) {
          const std::size_t raw = first_raw + static_cast<std::size_t>(k);
          row.parts[k] = {
              static_cast<std::uint16_t>(raw),
              static_cast<std::uint16_t>(p.delays[static_cast<std::size_t>(k)] - raws[raw].start)};
        }
        row_words += 4 * p.words();
        for (int w = 0; w < p.words(); w += kUnitWords) {
          row.word = static_cast<std::uint16_t>(w);
          units.push_back(row);
        }
      }
      for (std::int64_t slot = 0; slot < kTileWarps * trials_per_warp_; ++slot) {
        const std::int64_t trial = std::min(slot, tile.n - 1);
        const std::uint16_t index = group.of_trial[static_cast<std::size_t>(trial)];
        const Pattern& p = group.patterns[index];
        const std::int32_t behind = delay(tile.first + trial, group.first_channel) - p.delays[0];
        const std::int64_t entry =
            (static_cast<std::int64_t>(g / 2) * kTileWarps + slot / trials_per_warp_) * padded() +
            slot % trials_per_warp_;
        pairs[static_cast<std::size_t>(entry * 2) + g % 2] =
            static_cast<std::uint16_t>(at[index] + (behind & 3) * p.words() + (behind >> 2));
      }
    }
    StageHead head{};
    head.n_raws = static_cast<std::int32_t>(raws.size());
    head.n_units = static_cast<std::int32_t>(units.size());
    head.n_pairs = static_cast<std::int32_t>(n_pairs);
    head.flush = flush ? 1 : 0;
    std::vector<std::uint8_t> bytes(sizeof(StageHead));
    const auto append = [&](const auto& list) {
      const std::size_t at = bytes.size(), n = list.size() * sizeof(list[0]);
      bytes.resize((at + n + 15) / 16 * 16);
      std::memcpy(bytes.data() + at, list.data(), n);
      return static_cast<std::int32_t>(at);
    };
    append(raws);
    head.units_at = append(units);
    head.pairs_at = append(pairs);
    std::memcpy(bytes.data(), &head, sizeof(head));
    return bytes;
  }

  const DedisperseConfig& config_;
  int trials_per_warp_;
  int group_;
  std::int64_t flush_channels_;
};

SharedPlan plan_with(const DedisperseConfig& config, int trials_per_warp) {
  SharedPlan plan;
  plan.trials_per_warp = trials_per_warp;
  plan.stage_at.push_back(0);
  const Planner planner(config, trials_per_warp);
  const std::int64_t maximum = kTileWarps * trials_per_warp;
  const std::int64_t n_tiles = (config.n_trials + maximum - 1) / maximum;
  for (std::int64_t k = 0; k < n_tiles; ++k) {
    const std::int64_t first = config.n_trials * k / n_tiles;
    const std::int64_t end = config.n_trials * (k + 1) / n_tiles;
    const auto stages = planner.stages({first, end - first});
    if (!stages) {
      plan.direct.push_back({first, end - first});
      continue;
    }
    plan.tiles.push_back({static_cast<std::int32_t>(plan.stage_at.size() - 1),
                          static_cast<std::int32_t>(stages->size()),
                          static_cast<std::int32_t>(first),
                          static_cast<std::int32_t>(end - first)});
    for (const auto& bytes : *stages) {
      plan.stages.insert(plan.stages.end(), bytes.begin(), bytes.end());
      plan.stage_at.push_back(static_cast<std::int32_t>(plan.stages.size()));
    }
  }
  return plan;
}

}  // namespace

SharedPlan plan_shared(const DedisperseConfig& config) {
  SharedPlan plan;
  for (const int trials_per_warp : {5, 3, 1}) {
    if (trials_per_warp > 1 && config.n_trials <= kTileWarps * (trials_per_warp - 2)) continue;
    plan = plan_with(config, trials_per_warp);
    if (plan.direct.empty()) break;  // the largest tiles that all fit
  }
  return plan;
}

}  // namespace ryle::search::detail
