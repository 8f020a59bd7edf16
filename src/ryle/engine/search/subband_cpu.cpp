// SPDX-License-Identifier: BSD-3-Clause
// Sub-bands on CPUs. A task is a tile of neighbouring trials x 1024 outputs: the rows of sub-bands
// that the tile needs are made once into scratch that stays in the second-level cache, then every
// trial adds one row of each. Nothing is kept between tasks or calls.
#include <algorithm>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/cpu/tasks.hpp"
#include "ryle/engine/search/implementations.hpp"
#include "ryle/engine/search/subband_plan.hpp"

namespace ryle::search::detail {
namespace {

constexpr std::int64_t kSubbandTimes = 1024;
constexpr std::int64_t kSubbandScratch = 384 << 10;  // 16-bit elements of a tile
constexpr std::int64_t kSubbandPad = 128;            // kernels may read a vector beyond
constexpr std::int64_t kSubbandTrials = 128;         // of a tile

/// One row of the first stage: starts [low, low + extra] of a group in a sub-band.
struct SubbandRow {
  std::int64_t subband, group;
  std::int32_t low, extra;
  std::int64_t at;  ///< elements into scratch
};
struct SubbandTile {
  std::int64_t first_trial = 0, n_trials = 0;
  std::vector<SubbandRow> rows;
  std::vector<std::int64_t> places;  ///< [trial][sub-band], elements into scratch of output 0
  std::int64_t elements = 0;
};

class SubbandCpu final : public Dedisperser {
 public:
  SubbandCpu(Queue& queue, const DedisperseConfig& config, const CpuKernel& kernel)
      : kernel_(kernel),
        name_(std::string("search/subband/") + kernel.name),
        max_code_(config.max_code),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())),
        plan_(subband_plan(config)),
        n_subbands_(static_cast<std::int64_t>(plan_.subbands.size())) {
    for (std::int64_t i = 0; i < config.n_trials; i += tiles_.back().n_trials)
      tiles_.push_back(make_tile(i, config.n_trials));
    std::int64_t elements = 0;
    for (const SubbandTile& tile : tiles_) elements = std::max(elements, tile.elements);
    set_levels(config);
    scratch_stride_ = elements + kSubbandPad;
    scratch_ = Buffer<std::uint16_t>(scratch_stride_ * queue.n_workers());
    // Partial sums of the second stage, of the widest kind; before that, of wide sub-bands.
    partial_stride_ = 0;
    for (std::int64_t n = n_subbands_; n > kMaxChildren;) {
      n = (n + kMaxChildren - 1) / kMaxChildren;
      partial_stride_ += n * (kSubbandTimes + kSubbandPad);
    }
    const std::int64_t longest = max_delay_ + kSubbandTimes + kSubbandPad;
    partial_stride_ =
        2 * std::max(partial_stride_, parts_of(plan_.subbands[0].n_channels) * longest);
    partial_ = Buffer<std::uint16_t>(partial_stride_ * queue.n_workers());
    children_.resize(n_subbands_ * queue.n_workers());
  }

  void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
               std::int64_t n_outputs, void* sums, std::int64_t sum_stride) override {
    for_each_tile(queue, static_cast<std::int64_t>(tiles_.size()), kSubbandTimes,
                  {codes, code_stride, 0, n_outputs, sums, sum_stride},
                  [&](std::int64_t slot, std::size_t tile, const OutputWork& work) {
                    run_tile(tiles_[tile], work,
                             {scratch_.data() + slot * scratch_stride_,
                              partial_.data() + slot * partial_stride_,
                              children_.data() + slot * n_subbands_});
                  });
  }
  std::int64_t max_delay() const override { return max_delay_; }
  TrackError track_error() const override { return plan_.error; }
  double work() const override { return subband_work(plan_); }
  std::string_view implementation() const override { return name_; }

 private:
  /// What a task works in.
  struct Memory {
    std::uint16_t *scratch, *partial;
    const void** children;
  };

  static std::int64_t parts_of(std::int64_t n) { return (n + kMaxChildren - 1) / kMaxChildren; }

  /// Trials from `first` on, as many as the scratch holds rows for.
  SubbandTile make_tile(std::int64_t first, std::int64_t n_all) const {
    SubbandTile tile;
    std::int64_t wanted = std::min(kSubbandTrials, n_all - first);
    while (true) {
      tile = tile_of(first, wanted);
      if (tile.elements <= kSubbandScratch || wanted == 1) return tile;
      wanted = std::max<std::int64_t>(1, wanted / 2);
    }
  }

  SubbandTile tile_of(std::int64_t first, std::int64_t n) const {
    SubbandTile tile{first, n, {}, {}, 0};
    tile.places.resize(n * n_subbands_);
    for (std::int64_t b = 0; b < n_subbands_; ++b) {
      const Subband& s = plan_.subbands[b];
      for (std::int64_t i = 0; i < n;) {
        const std::int32_t group = s.group[first + i];
        std::int32_t low = INT32_MAX, high = 0;
        std::int64_t end = i;
        for (; end < n && s.group[first + end] == group; ++end) {
          low = std::min(low, s.start[first + end]);
          high = std::max(high, s.start[first + end]);
        }
        for (; i < end; ++i)
          tile.places[i * n_subbands_ + b] = tile.elements + s.start[first + i] - low;
        tile.rows.push_back({b, group, low, high - low, tile.elements});
        tile.elements += (kSubbandTimes + high - low + 63) / 64 * 64;
      }
    }
    return tile;
  }

  // Whether sums of a level need 32 bits: its fullest node decides.
  void set_levels(const DedisperseConfig& config) {
    std::int64_t channels = plan_.subbands[0].n_channels;
    for (std::int64_t n = n_subbands_; n > kMaxChildren; n = parts_of(n)) {
      channels = std::min(channels * kMaxChildren, config.n_channels);
      wide_.push_back(sum_format(channels, config.max_code) == SumFormat::u32);
    }
    wide_.push_back(sum_format(config.n_channels, config.max_code) == SumFormat::u32);
  }

  void add(MergeFunction function, const void* const* children, std::int64_t n_children,
           const std::int32_t* offsets, std::int64_t n, void* to) const {
    const TreeRow row{0, 0};
    function({children, n_children, offsets, &row, 1, n, to});
  }

  /// First stage: channels of a sub-band along the delays of a group.
  void make_row(const SubbandRow& row, const OutputWork& work, std::uint16_t* scratch,
                std::uint16_t* partial) const {
    const Subband& s = plan_.subbands[row.subband];
    const std::int32_t* relative = s.relative.data() + row.group * s.n_channels;
    const std::int64_t n = work.n + row.extra;
    const MergeFunction bytes =
        max_code_ * 4 <= 255 ? kernel_.merge_byte_quads : kernel_.merge_bytes;
    const void* parts[kMaxChildren] = {};
    const std::int32_t zeros[kMaxChildren] = {};
    const std::int64_t n_parts = parts_of(s.n_channels);
    for (std::int64_t p = 0; p < n_parts; ++p) {
      const std::int64_t c0 = p * kMaxChildren;
      const std::int64_t channels = std::min(kMaxChildren, s.n_channels - c0);
      const void* rows[kMaxChildren] = {};
      for (std::int64_t c = 0; c < channels; ++c)
        rows[c] = work.codes + (s.first_channel + c0 + c) * work.code_stride + row.low;
      std::uint16_t* to = n_parts == 1 ? scratch + row.at : partial + p * (n + kSubbandPad);
      add(bytes, rows, channels, relative + c0, n, to);
      parts[p] = to;
    }
    if (n_parts > 1) add(kernel_.merge_u16, parts, n_parts, zeros, n, scratch + row.at);
  }

  MergeFunction second_stage(bool from_wide, bool to_wide) const {
    if (!to_wide) return kernel_.merge_u16;
    return from_wide ? kernel_.merge_u32 : kernel_.merge_u16_u32;
  }

  /// Second stage: a row of each sub-band, up to 16 at a time.
  void sum_trial(const void** rows, const OutputWork& work, std::int64_t trial,
                 std::uint16_t* partial) const {
    const std::int32_t zeros[kMaxChildren] = {};
    std::int64_t n = n_subbands_;
    bool wide = false;
    std::size_t level = 0;
    for (; n > kMaxChildren; ++level) {
      const MergeFunction function = second_stage(wide, wide_[level]);
      const std::int64_t made = parts_of(n);
      for (std::int64_t p = 0; p < made; ++p) {
        const std::int64_t from = p * kMaxChildren;
        add(function, rows + from, std::min(kMaxChildren, n - from), zeros, work.n, partial);
        rows[p] = partial;  // behind what this level still reads
        partial += (kSubbandTimes + kSubbandPad) * (wide_[level] ? 2 : 1);
      }
      wide = wide_[level];
      n = made;
    }
    const std::int64_t size_bytes = wide_[level] ? 4 : 2;
    add(second_stage(wide, wide_[level]), rows, n, zeros, work.n,
        static_cast<std::byte*>(work.sums) + (trial * work.sum_stride + work.first) * size_bytes);
  }

  void run_tile(const SubbandTile& tile, const OutputWork& work, const Memory& memory) const {
    for (const SubbandRow& row : tile.rows) make_row(row, work, memory.scratch, memory.partial);
    for (std::int64_t i = 0; i < tile.n_trials; ++i) {
      const std::int64_t* places = tile.places.data() + i * n_subbands_;
      for (std::int64_t b = 0; b < n_subbands_; ++b)
        memory.children[b] = memory.scratch + places[b];
      sum_trial(memory.children, work, tile.first_trial + i, memory.partial);
    }
  }

  const CpuKernel& kernel_;
  std::string name_;
  int max_code_;
  std::int64_t max_delay_;
  SubbandPlan plan_;
  std::int64_t n_subbands_;
  std::vector<bool> wide_;  // [level of the second stage]
  std::vector<SubbandTile> tiles_;
  std::vector<const void*> children_;  // [worker][sub-band]
  std::int64_t scratch_stride_ = 0, partial_stride_ = 0;
  Buffer<std::uint16_t> scratch_, partial_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_subband_cpu(Queue& queue, const DedisperseConfig& config,
                                              const CpuKernel& kernel) {
  return std::make_unique<SubbandCpu>(queue, config, kernel);
}

}  // namespace ryle::search::detail
