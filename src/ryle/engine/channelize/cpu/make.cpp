// SPDX-License-Identifier: BSD-3-Clause
// The fast CPU channelizer: unpacks a few dozen spectra of one input into the cache, then runs the
// kernel of the chosen instruction set, one vector of consecutive spectra at a time.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>

#include "ryle/core/bits.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/channelize/dither.hpp"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/engine/channelize/requantize.hpp"
#include "ryle/engine/channelize/transform_plan.hpp"
#include "ryle/engine/channelize/unpack.hpp"

namespace ryle::channelize::detail {
namespace {

struct InstructionSet {
  const char* name;
  const KernelTable& (*kernel)();
};

constexpr InstructionSet kSets[] = {
#if defined(__x86_64__)
    {"avx512_vbmi", kernel_avx512_vbmi},
    {"avx512", kernel_avx512},
    {"avx2", kernel_avx2},
#endif
    {"generic", kernel_generic},
};

const KernelTable& kernel_of(std::string_view name) {
  for (const auto& set : kSets) {
    if (name == set.name) return set.kernel();
  }
  return kernel_generic();
}

constexpr std::int64_t kStageSpectra =
    64;  // spectra unpacked at a time; a multiple of every block but ci4's
constexpr std::int64_t kMergeInputs = 8;      // statistics of as many are added together
constexpr std::int64_t kMaxGroup = 32;        // inputs unpacked together
constexpr std::int64_t kOverreadBytes = 256;  // the last vector of a row may read this far

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

/// Shifts of the spectra of one stage, and where their windows start.
struct Track {
  Tick start[128];
  PhaseRamp ramp[128];
  std::uint32_t spectrum_key[128];
  std::uint64_t valid[2];
  const std::byte* origin;       // stream position of tick `origin_tick`
  Tick origin_tick, begin, end;  // [begin, end): samples that valid spectra read
  bool has_phase;                // false: all ramps are 0
  bool sliding;                  // windows are one transform apart
  std::int64_t first_valid, end_valid;
  const std::byte* arranged;  // for the integer filter; nullptr: not yet, or never
  std::int64_t rotation;
};

}  // namespace

class Cpu final : public Channelizer {
 public:
  Cpu(Queue& queue, const Problem& problem, std::string_view set)
      : problem_(problem),
        name_("channelize/cpu/" + std::string(set)),
        kernel_(kernel_of(set)),
        unpacker_(problem.config.layout, &kernel_),
        transform_(problem, kernel_, unpacker_.floats(), unpacker_.sample_bytes()),
        delays_(problem.config.n_inputs),
        gains_(problem.config.n_inputs * problem.config.n_channels) {
    for (auto& g : gains_.span()) g = {gain_scale(), 0};
    const Config& c = problem_.config;
    per_stage_ = std::max(kStageSpectra, spectra_per_block(c.output));
    group_ = std::min({unpacker_.group(), kMaxGroup, c.n_inputs});
    n_groups_ = (c.n_inputs + group_ - 1) / group_;
    const std::int64_t stages = (c.max_spectra + per_stage_ - 1) / per_stage_;
    // Enough tasks that no worker idles for long at the end.
    n_chunks_ =
        std::clamp<std::int64_t>((4 * queue.n_workers() + n_groups_ - 1) / n_groups_, 1, stages);
    counts_ = Buffer<KernelCounts>(n_chunks_ * c.n_inputs * c.n_channels);
    // A delay that grows by kMaxDelayRate spreads the windows of a stage by that share.
    row_samples_ = (per_stage_ - 1) * problem_.step + problem_.n_filter +
                   per_stage_ * problem_.step / 32 + 1024;
    // One row more for windows that start inside the first one.
    const std::int64_t arranged_bytes =
        transform_.plan().digits == nullptr
            ? 0
            : (per_stage_ + c.n_taps + 7) / 8 * transform_.plan().arranged_stride;
    row_bytes_ = std::max(row_samples_ * unpacker_.sample_bytes() + kOverreadBytes, arranged_bytes);
    row_bytes_ = round_up(row_bytes_, 128) + 64;
    kernel_bytes_ = round_up(kernel_.scratch_bytes(transform_.plan()), 128);
    track_bytes_ = round_up(static_cast<std::int64_t>(sizeof(Track)), 128) * group_;
    codes_offset_ = kernel_bytes_ + track_bytes_ + round_up(row_bytes_ * group_, 128);
    arranged_offset_ = codes_offset_ + round_up(c.n_channels * kBlockBytes, 128);
    slot_bytes_ = arranged_offset_ + round_up(arranged_bytes, 128);
    n_slots_ = queue.n_workers();
    scratch_ = Buffer<std::byte>(slot_bytes_ * n_slots_);
    busy_ = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(n_slots_));
  }

  void execute(Queue& queue, const Input& input, std::int64_t first, std::int64_t n_spectra,
               const Output& output) override;

  void set_delays(std::span<const DelayPolynomial> delays) override {
    check_delays(problem_, delays);
    delays_.assign(delays.begin(), delays.end());
  }
  void set_gains(View<const cf32, 2> gains) override {
    const std::int64_t channels = problem_.config.n_channels;
    std::vector<cf32> by_channel(gains_.size());
    copy_gains(problem_, gains, by_channel.data());
    for (std::int64_t i = 0; i < gains_.size(); ++i) {
      const std::int64_t c = transform_.plan().channel_of[i % channels];
      gains_[i] = by_channel[i / channels * channels + c] * gain_scale();
    }
  }
  std::string_view implementation() const override { return name_; }
  const Config& config() const override { return problem_.config; }
  std::span<const double> filter() const override { return problem_.filter; }

 private:
  struct Call {
    Cpu* self;
    const Input* input;
    std::int64_t first, n_spectra, n_stages, stages_per_chunk;
    const Output* output;
  };

  std::int64_t acquire() {
    for (std::int64_t slot = 0;; slot = (slot + 1) % n_slots_) {
      if (!busy_[slot].exchange(true, std::memory_order_acquire)) return slot;
    }
  }

  void run_task(const Call& call, std::int64_t task);
  void run_stage(const Call& call, std::int64_t stage, std::int64_t input, std::int64_t n,
                 std::byte* slot, KernelCounts* counts);
  void follow(const Call& call, std::int64_t begin, std::int64_t n, std::int64_t p,
              const std::uint32_t* keys, Track& track) const;
  bool arrange_group(const Input& input, std::int64_t p, std::int64_t n, Tick begin, Tick end,
                     Track* tracks, std::byte* rows) const;
  void fill_rows(const Input& input, std::int64_t p, std::int64_t n, Track* tracks,
                 std::byte* rows) const;
  void run_input(const Call& call, std::int64_t begin, std::int64_t n, std::int64_t p, Track& track,
                 std::byte* slot, KernelCounts* counts);
  void run_lanes(const Track& track, std::int64_t i, std::int64_t n, std::int64_t p,
                 std::byte* codes, std::byte* slot, KernelCounts* counts);
  /// Exact, a power of two.
  float gain_scale() const {
    return (transform_.plan().fixed_point ? 65536.0f : 1.0f) * transform_.plan().unit;
  }
  void merge_counts(const Call& call, std::int64_t p, std::int64_t n_chunks) const;

  Problem problem_;
  std::string name_;
  const KernelTable& kernel_;
  Unpacker unpacker_;
  TransformPlan transform_;
  std::vector<DelayPolynomial> delays_;
  Buffer<cf32> gains_;           // [input][place]
  Buffer<KernelCounts> counts_;  // [chunk][input][place]
  Buffer<std::byte> scratch_;    // [slot]
  std::unique_ptr<std::atomic<bool>[]> busy_;
  std::int64_t per_stage_ = 0, group_ = 0, n_groups_ = 0, n_chunks_ = 0, row_samples_ = 0,
               row_bytes_ = 0;
  std::int64_t kernel_bytes_ = 0, track_bytes_ = 0, slot_bytes_ = 0, n_slots_ = 0,
               codes_offset_ = 0, arranged_offset_ = 0;
};

void Cpu::execute(Queue& queue, const Input& input, std::int64_t first, std::int64_t n_spectra,
                  const Output& output) {
  check_call(problem_, input, n_spectra, output);
  if (n_spectra == 0) return;
  mark_valid(queue, problem_, delays_, input, first, n_spectra, output.valid, output.valid_words);
  Call call{this, &input, first, n_spectra, (n_spectra + per_stage_ - 1) / per_stage_, 0, &output};
  const std::int64_t wanted = std::min(n_chunks_, call.n_stages);
  call.stages_per_chunk = (call.n_stages + wanted - 1) / wanted;
  const std::int64_t n_chunks = (call.n_stages + call.stages_per_chunk - 1) / call.stages_per_chunk;
  // One captured pointer: std::function then needs no memory.
  queue.parallel_for(n_groups_ * n_chunks,
                     [&call](std::int64_t task) { call.self->run_task(call, task); });
  if (output.statistics == nullptr) return;
  struct Merge {
    const Call* call;
    std::int64_t n_chunks;
  } merge{&call, n_chunks};
  const std::int64_t n_tasks = (problem_.config.n_inputs + kMergeInputs - 1) / kMergeInputs;
  queue.parallel_for(n_tasks, [&merge](std::int64_t task) {
    merge.call->self->merge_counts(*merge.call, task * kMergeInputs, merge.n_chunks);
  });
}

void Cpu::run_task(const Call& call, std::int64_t task) {
  const std::int64_t chunk = task / n_groups_;
  const std::int64_t input = task % n_groups_ * group_;
  const std::int64_t n = std::min(group_, problem_.config.n_inputs - input);
  const std::int64_t channels = problem_.config.n_channels;
  KernelCounts* counts = nullptr;
  if (call.output->statistics != nullptr) {
    counts = counts_.data() + (chunk * problem_.config.n_inputs + input) * channels;
    std::memset(counts, 0, static_cast<std::size_t>(n * channels) * sizeof(KernelCounts));
  }
  const std::int64_t slot = acquire();
  const std::int64_t from = chunk * call.stages_per_chunk;
  const std::int64_t to = std::min(from + call.stages_per_chunk, call.n_stages);
  for (std::int64_t stage = from; stage < to; ++stage) {
    run_stage(call, stage, input, n, scratch_.data() + slot * slot_bytes_, counts);
  }
  busy_[slot].store(false, std::memory_order_release);
}

void Cpu::run_stage(const Call& call, std::int64_t stage, std::int64_t input, std::int64_t n,
                    std::byte* slot, KernelCounts* counts) {
  const std::int64_t begin = stage * per_stage_;
  const std::int64_t n_spectra = std::min(per_stage_, call.n_spectra - begin);
  auto* tracks = reinterpret_cast<Track*>(slot + kernel_bytes_);
  std::uint32_t keys[128];
  for (std::int64_t i = 0; i < n_spectra; ++i)
    keys[i] = dither_spectrum_key(call.first + begin + i);
  for (std::int64_t j = 0; j < n; ++j) follow(call, begin, n_spectra, input + j, keys, tracks[j]);
  fill_rows(*call.input, input, n, tracks, slot + kernel_bytes_ + track_bytes_);
  for (std::int64_t j = 0; j < n; ++j) {
    run_input(call, begin, n_spectra, input + j, tracks[j], slot,
              counts == nullptr ? nullptr : counts + j * problem_.config.n_channels);
  }
}

/// Window starts, phases and dither keys of one input's spectra; [begin, end) covers the valid
/// ones.
void Cpu::follow(const Call& call, std::int64_t begin, std::int64_t n, std::int64_t p,
                 const std::uint32_t* keys, Track& track) const {
  const std::uint64_t* valid = call.output->valid + p * call.output->valid_words + begin / 64;
  const std::uint32_t input_key = dither_input_key(p);
  const std::int64_t first = call.first + begin;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t key = keys[i] ^ input_key;
    track.spectrum_key[i] = key ^ key >> 16;
  }
  // Stages begin at whole words, and bits beyond the call are 0.
  track.valid[0] = valid[0];
  track.valid[1] = n > 64 ? valid[1] : 0;
  track.begin = track.end = 0;
  track.arranged = nullptr;
  track.rotation = 0;
  const bool any = (track.valid[0] | track.valid[1]) != 0;
  track.first_valid = track.valid[0] != 0 ? std::countr_zero(track.valid[0])
                                          : 64 + std::countr_zero(track.valid[1]);
  track.end_valid = track.valid[1] != 0 ? 128 - std::countl_zero(track.valid[1])
                                        : 64 - std::countl_zero(track.valid[0]);
  track.has_phase = !is_zero(delays_[p]) || problem_.step != problem_.n_points;
  track.sliding = any;
  if (!track.has_phase) {
    for (std::int64_t i = 0; i < n; ++i) {
      track.start[i] = (first + i) * problem_.step;
      track.ramp[i] = {};
    }
    if (!any) return;
    track.begin = track.start[track.first_valid];
    track.end = track.start[track.end_valid - 1] + problem_.n_filter;
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    const Shift shift = evaluate(problem_, delays_[p], first + i);
    track.start[i] = (first + i) * problem_.step - shift.samples;
    track.ramp[i] = phase_ramp(problem_, shift, first + i);
  }
  for (std::int64_t i = track.first_valid; any && i < track.end_valid; ++i) {
    if (!test_bit(track.valid, i)) continue;
    const Tick start = track.start[i];
    track.begin = i == track.first_valid ? start : std::min(track.begin, start);
    track.end = std::max(i == track.first_valid ? start : track.end, start + problem_.n_filter);
  }
  for (std::int64_t i = 1; i < n; ++i)
    track.sliding = track.sliding && track.start[i] - track.start[i - 1] == problem_.n_points;
  if (track.end - track.begin >
      row_samples_) {  // a cubic that leaps within one stage: not followed
    track.valid[0] = track.valid[1] = 0;
    track.begin = track.end = 0;
    track.sliding = false;
  }
}

/// Brings the samples of all inputs of a group into stream order, or points at them where they
/// already are.
void Cpu::fill_rows(const Input& input, std::int64_t p, std::int64_t n, Track* tracks,
                    std::byte* rows) const {
  Tick begin = 0;
  Tick end = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    if (tracks[j].begin == tracks[j].end) continue;
    begin = begin == end ? tracks[j].begin : std::min(begin, tracks[j].begin);
    end = std::max(end, tracks[j].end);
  }
  if (begin == end || arrange_group(input, p, n, begin, end, tracks, rows)) return;
  const bool together = end - begin <= row_samples_ && !unpacker_.is_direct();
  if (together) {
    unpacker_.unpack(input.samples, p, n, begin - input.first_tick, end - begin, rows, row_bytes_);
  }
  const std::int64_t overread = kOverreadBytes / unpacker_.sample_bytes();
  for (std::int64_t j = 0; j < n; ++j) {
    Track& t = tracks[j];
    t.origin = rows + j * row_bytes_;
    t.origin_tick = together ? begin : t.begin;
    if (together || t.begin == t.end) continue;
    if (unpacker_.is_direct() && t.end - input.first_tick + overread <= input.n_samples) {
      t.origin = unpacker_.direct(input.samples, p + j);
      t.origin_tick = input.first_tick;
    } else {
      unpacker_.unpack(input.samples, p + j, 1, t.begin - input.first_tick, t.end - t.begin,
                       rows + j * row_bytes_, row_bytes_);
    }
  }
}

/// Words of neighbouring inputs go straight to where the integer filter wants them. False where
/// that cannot be: other formats, no such filter, a delay that steps within this stage.
bool Cpu::arrange_group(const Input& input, std::int64_t p, std::int64_t n, Tick begin, Tick end,
                        Track* tracks, std::byte* rows) const {
  const KernelPlan& plan = transform_.plan();
  const std::int64_t tile = kernel_.n_word_inputs;
  if (plan.digits == nullptr || n % tile != 0 || !unpacker_.interleaved()) return false;
  Tick origin = 0;
  Tick latest = 0;
  bool any = false;
  for (std::int64_t j = 0; j < n; ++j) {
    const Track& t = tracks[j];
    if (t.begin == t.end) continue;
    if (!t.sliding) return false;
    origin = any ? std::min(origin, t.start[0]) : t.start[0];
    latest = any ? std::max(latest, t.start[0]) : t.start[0];
    any = true;
  }
  if (latest - origin >= (plan.n_columns == 1 ? plan.n_points : 1)) return false;
  for (std::int64_t j = 0; j < n; ++j) {
    if (j % tile == 0) {
      unpacker_.arrange(plan, input.samples, p + j, origin - input.first_tick, begin - origin,
                        end - origin, rows + j * row_bytes_, row_bytes_);
    }
    tracks[j].arranged = rows + j * row_bytes_;
    tracks[j].rotation = tracks[j].start[0] - origin;
  }
  return true;
}

/// One block at a time: codes gather in scratch, a vector of spectra at a time, and leave as whole
/// cells, because cells of neighbouring channels are often a power of two apart and would evict one
/// another line by line.
void Cpu::run_input(const Call& call, std::int64_t begin, std::int64_t n, std::int64_t p,
                    Track& track, std::byte* slot, KernelCounts* counts) {
  const Config& config = problem_.config;
  const BlockView& blocks = call.output->blocks;
  const std::int64_t per_block = spectra_per_block(config.output);
  std::byte* codes = slot + codes_offset_;
  if (transform_.plan().digits != nullptr && track.sliding && track.arranged == nullptr) {
    std::byte* arranged = slot + arranged_offset_;
    const std::byte* start =
        track.origin + (track.start[0] - track.origin_tick) * unpacker_.sample_bytes();
    kernel_.arrange_rows(transform_.plan(), start, track.first_valid,
                         track.end_valid - 1 + config.n_taps, arranged);
    track.arranged = arranged;
  }
  const std::int64_t lane_bytes = config.n_channels * kBlockBytes / per_block;
  for (std::int64_t i = 0; i < n; i += per_block) {
    for (std::int64_t l = 0; l < per_block; l += kernel_.n_lanes) {
      run_lanes(track, i + l, n, p, codes + l * lane_bytes, slot, counts);
    }
    const std::int64_t block = (begin + i) / per_block;
    kernel_.flush(transform_.plan(), codes, blocks.cell(0, block, p), blocks.channel_stride_bytes,
                  counts);
  }
}

void Cpu::run_lanes(const Track& track, std::int64_t i, std::int64_t n, std::int64_t p,
                    std::byte* codes, std::byte* slot, KernelCounts* counts) {
  const std::int64_t lanes = kernel_.n_lanes;
  KernelGroup group{};
  group.codes = codes;
  group.valid = static_cast<std::uint32_t>(track.valid[i >> 6] >> (i & 63)) & ((1u << lanes) - 1);
  if (group.valid == 0) {
    const std::int64_t per_block = spectra_per_block(problem_.config.output);
    const std::int64_t bytes = problem_.config.n_channels * kBlockBytes / per_block * lanes;
    std::memset(codes, 0, static_cast<std::size_t>(bytes));
    return;
  }
  group.gains = reinterpret_cast<const float*>(gains_.data() + p * problem_.config.n_channels);
  group.counts = counts;
  if (track.arranged != nullptr) {
    group.arranged = track.arranged + i / 8 * transform_.plan().arranged_stride;
    group.rotation = track.rotation;
    group.prefetch = track.arranged;
    if (unpacker_.is_direct()) {  // the next stage's new samples
      const Tick next = track.start[i] + (per_stage_ - 1) * problem_.step + problem_.n_filter;
      group.prefetch = track.origin + (next - track.origin_tick) * unpacker_.sample_bytes();
    }
  }
  for (std::int64_t l = 0; l < lanes; ++l)
    group.dither_keys[l] = track.spectrum_key[std::min(i + l, n - 1)];
  for (std::int64_t l = 0; l < lanes && track.has_phase; ++l) {
    const PhaseRamp& ramp = track.ramp[std::min(i + l, n - 1)];
    group.phase_base[l] = ramp.base;
    group.phase_slope[l] = ramp.slope;
    group.has_phase = group.has_phase || ramp.base != 0 || ramp.slope != 0;
  }
  for (std::int64_t l = 0; l < lanes && group.arranged == nullptr; ++l) {
    const Tick start = track.start[std::min(i + l, n - 1)];
    // Lanes without a valid spectrum read some valid one's samples; their codes are masked to 0.
    const bool readable =
        i + l < n && start >= track.begin && start + problem_.n_filter <= track.end;
    group.start[l] = track.origin + ((readable ? start : track.begin) - track.origin_tick) *
                                        unpacker_.sample_bytes();
  }
  kernel_.run(transform_.plan(), group, slot);
}

/// Inputs [p, p + kMergeInputs), which share lines of the statistics.
void Cpu::merge_counts(const Call& call, std::int64_t p, std::int64_t n_chunks) const {
  const Config& config = problem_.config;
  const std::int64_t n_inputs = std::min(kMergeInputs, config.n_inputs - p);
  std::int64_t n_valid[kMergeInputs] = {};
  for (std::int64_t j = 0; j < n_inputs; ++j) {
    const std::uint64_t* valid = call.output->valid + (p + j) * call.output->valid_words;
    for (std::int64_t w = 0; w < words_for_bits(call.n_spectra); ++w)
      n_valid[j] += std::popcount(valid[w]);
  }
  for (std::int64_t place = 0; place < config.n_channels; ++place) {
    const std::int64_t c = transform_.plan().channel_of[place];
    for (std::int64_t j = 0; j < n_inputs; ++j) {
      ChannelStatistics& s = call.output->statistics[c * config.n_inputs + p + j];
      s.n_samples += n_valid[j];
      const KernelCounts* counts = counts_.data() + (p + j) * config.n_channels + place;
      for (std::int64_t chunk = 0; chunk < n_chunks; ++chunk) {
        s.saturated_low += counts->low;
        s.saturated_high += counts->high;
        s.sum_of_squares += counts->sum_of_squares;
        counts += config.n_inputs * config.n_channels;
      }
    }
  }
}

std::vector<std::string> cpu_instruction_sets_here() {
  std::vector<std::string> names;
  for (const auto& set : kSets) {
    if (has_instruction_set(set.name)) names.emplace_back(set.name);
  }
  return names;
}

std::unique_ptr<Channelizer> make_cpu(Queue& queue, const Problem& problem,
                                      std::string_view instruction_set) {
  return std::make_unique<Cpu>(queue, problem, instruction_set);
}

}  // namespace ryle::channelize::detail
