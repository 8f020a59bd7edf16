// SPDX-License-Identifier: BSD-3-Clause
// The driver of the CPU kernels: a task is a channel (or, with few channels, some blocks of its
// rows); it walks the gulp in tiles of up to 64 spectra that stay in the level-1 cache from the
// raw samples to the stored bytes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/device/tasks.hpp"
#include "ryle/engine/beamform/cpu/kernel.hpp"
#include "ryle/engine/beamform/cpu/store.hpp"
#include "ryle/engine/beamform/cpu/unpack.hpp"
#include "ryle/engine/beamform/dither.hpp"
#include "ryle/engine/beamform/implementations.hpp"
#include "ryle/engine/beamform/weight_bank.hpp"

namespace ryle::beamform::detail {
namespace {

constexpr std::int64_t blocks_of(std::int64_t rows) { return (rows + kLanes - 1) / kLanes; }

struct Tile {
  std::int64_t t, n;  // spectra [t, t + n) of the gulp
  const std::uint64_t* present;
};

// Memory of one worker.
struct Scratch {
  std::uint8_t* samples;
  std::byte* raw[2][2];  // [block of a pair][pol]
  float* planes;
  std::int32_t* codes;
  std::uint32_t* cut;  // [block][pol][low, high][lane], of a task whose powers go straight to bytes
};

class CpuBeamformer final : public Beamformer {
 public:
  CpuBeamformer(Queue& queue, const Config& config, const CpuKernel& kernel);
  void set_weights(Queue&, View<const cf32, 3> weights) override;
  void set_requantization(Queue&, View<const float, 3> scale, View<const float, 3> offset) override;
  std::int64_t execute(Queue& queue, const Input& input, const Output& output) override;
  void reset() override {
    std::memset(windows_.data(), 0, static_cast<std::size_t>(windows_.bytes()));
  }
  std::string_view implementation() const override { return name_; }
  const Config& config() const override { return config_; }

 private:
  // Blocks of 16 rows: coherent beams first, then incoherent ones, never mixed.
  std::int64_t first_row(std::int64_t block) const {
    return block < beam_blocks_ ? block * kLanes
                                : config_.n_beams + (block - beam_blocks_) * kLanes;
  }
  std::int64_t n_lanes(std::int64_t block) const {
    const std::int64_t end = block < beam_blocks_ ? config_.n_beams : config_.n_rows();
    return std::min(kLanes, end - first_row(block));
  }
  // [channel][pol][block]
  std::int64_t weight_index(std::int64_t channel, std::int64_t pol, std::int64_t block) const {
    return (channel * config_.n_pols + pol) * beam_blocks_ + block;
  }
  // [channel][block][product]
  std::int64_t cell(std::int64_t channel, std::int64_t block, std::int64_t product) const {
    return (channel * n_blocks_ + block) * n_scales_ + product;
  }

  std::int64_t cut_bytes() const { return n_blocks_ * config_.n_pols * 2 * kLanes * 4; }
  std::uint32_t* cut_of(const Scratch& scratch, std::int64_t block, std::int64_t pol) const {
    return scratch.cut + (block * config_.n_pols + pol) * 2 * kLanes;
  }

  void pack(std::int64_t channel, std::int64_t pol, std::int64_t block);
  void run(const Input& input, const Output& output, std::int64_t channel, std::int64_t first_block,
           std::int64_t end_block, const Scratch& scratch);
  void clear_counts(const Input& input, const Output& output, std::int64_t channel,
                    std::int64_t block) const;
  void form(const Input& input, const Output& output, const Tile& tile, const TileView& view,
            std::int64_t channel, std::int64_t block, const Scratch& scratch, int half);
  bool lossy_scale(const Input& input, const Output& output, const Tile& tile, std::int64_t channel,
                   std::int64_t block, float (&scale)[2][kLanes], float* any) const;
  void multiply(const TileView& view, std::int64_t n, std::int64_t channel, std::int64_t block,
                bool two, const Scratch& scratch, int half);
  void coherent(const Input& input, const Output& output, const Tile& tile, std::int64_t channel,
                std::int64_t block, const Scratch& scratch, int half, float* any);
  void emit_bytes(const Output& output, const Tile& tile, std::int64_t channel, std::int64_t block,
                  std::int64_t pol, const std::byte* raw, const float* scale,
                  std::uint32_t* cut) const;
  void update_fits();
  void incoherent(const Tile& tile, const TileView& view, std::int64_t block,
                  const Scratch& scratch, float* any);
  void emit_power(const Input& input, const Output& output, const Tile& tile, std::int64_t channel,
                  std::int64_t block, const Scratch& scratch, const float* any);
  void emit_voltage(const Input& input, const Output& output, const Tile& tile,
                    std::int64_t channel, std::int64_t block, const Scratch& scratch);
  Rows rows(const Output& output, std::int64_t channel, std::int64_t block, std::int64_t product,
            std::int64_t index) const;
  void add_counts(const Output& output, std::int64_t channel, std::int64_t block,
                  std::int64_t product, const std::uint32_t* low, const std::uint32_t* high) const;

  Config config_;
  const CpuKernel& kernel_;
  std::string name_;
  Unpacker unpacker_;
  WeightBank bank_;
  std::int64_t n_scales_, value_bytes_, beam_blocks_, n_blocks_, packed_bytes_, steps_per_word_;
  Buffer<std::byte> packed_;      // [channel][pol][block][step][re, im][lane]
  Buffer<std::int32_t> start_;    // [channel][pol][block][re, im][lane]
  Buffer<float> weight_scale_;    // [channel][pol][block][lane]
  Buffer<float> scale_, offset_;  // [channel][block][product][lane]
  Buffer<Window> windows_;        // [channel][block][product]
  std::vector<Presence> full_;    // [beam][channel]: nothing lost
  Buffer<std::byte> scratch_memory_;
  std::int64_t scratch_bytes_;
  bool power_bytes_;  // powers, not integrated, to bytes: detected and rounded in one pass
  bool fits_ = false;
  Tick next_tick_ = 0;
};

CpuBeamformer::CpuBeamformer(Queue& queue, const Config& config, const CpuKernel& kernel)
    : config_(config),
      kernel_(kernel),
      name_(std::string("beamform/cpu/") + kernel.instruction_set),
      unpacker_(config, kernel),
      bank_(config),
      n_scales_(n_scales(config)),
      value_bytes_(config.bytes_per_value()),
      beam_blocks_(blocks_of(config.n_beams)),
      n_blocks_(beam_blocks_ + blocks_of(static_cast<std::int64_t>(config.incoherent.size()))),
      packed_bytes_(unpacker_.n_steps() * 2 * kLanes * 4) {
  const std::int64_t cells = config.n_channels * config.n_pols * beam_blocks_;
  packed_ = Buffer<std::byte>(cells * packed_bytes_);
  start_ = Buffer<std::int32_t>(cells * 2 * kLanes);
  weight_scale_ = Buffer<float>(cells * kLanes);
  const std::int64_t outputs = config.n_channels * n_blocks_ * n_scales_;
  scale_ = Buffer<float>(outputs * kLanes);
  offset_ = Buffer<float>(outputs * kLanes);
  std::fill(scale_.data(), scale_.data() + scale_.size(), 1.0f);
  windows_ = Buffer<Window>(config.integration > 1 ? outputs : 0);
  full_.resize(config.n_beams * config.n_channels);
  power_bytes_ = kernel.power_u8 != nullptr && config.output == OutputKind::power &&
                 config.output_format == OutputFormat::u8 && config.integration == 1;
  steps_per_word_ = 1;
  if (kernel.integer) {
    const Range range = value_range(config);
    steps_per_word_ = std::max<std::int64_t>(1, 32767 / (2 * (range.max - range.min) * 127));
  }
  // 128-byte aligned pieces: samples, raw sums of two blocks and pols, 4 planes, 4 planes of codes.
  scratch_bytes_ = (unpacker_.tile_bytes() + 127) / 128 * 128 + 4 * 2 * kPlane * 4 +
                   4 * kPlane * 4 + 4 * kPlane * 4;
  if (power_bytes_) scratch_bytes_ += cut_bytes();
  scratch_memory_ = Buffer<std::byte>(queue.n_workers() * scratch_bytes_);
}

void CpuBeamformer::set_weights(Queue& queue, View<const cf32, 3> weights) {
  bank_.set(weights, queue);
  for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
    for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
      for (std::int64_t block = 0; block < beam_blocks_; ++block) pack(channel, pol, block);
    }
  }
  for (std::int64_t beam = 0; beam < config_.n_beams; ++beam) {
    for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
      full_[beam * config_.n_channels + channel] =
          presence_of(bank_, config_, beam, channel, nullptr);
    }
  }
  update_fits();
}

// @eq re = sum wr xr - wi xi, im = sum wi xr + wr xi; stored u8 are x + offset, so a sum starts at
// minus offset times the sum of its weights (exact)
void CpuBeamformer::pack(std::int64_t channel, std::int64_t pol, std::int64_t block) {
  const std::int64_t index = weight_index(channel, pol, block);
  std::byte* packed = packed_.data() + index * packed_bytes_;
  std::int32_t* start = start_.data() + index * 2 * kLanes;
  for (std::int64_t lane = 0; lane < n_lanes(block); ++lane) {
    const std::int64_t beam = block * kLanes + lane;
    weight_scale_[index * kLanes + lane] = bank_.scale[bank_.scale_at(beam, pol, channel)];
    std::int32_t sums[2] = {};
    for (std::int64_t antenna = 0; antenna < config_.n_antennas; ++antenna) {
      const cf32 w = bank_.values[bank_.at(beam, channel, antenna * config_.n_pols + pol)];
      if (!kernel_.integer) {
        float* to = reinterpret_cast<float*>(packed) + antenna * 2 * kLanes + lane;
        to[0] = w.real();
        to[kLanes] = w.imag();
        continue;
      }
      const auto wr = static_cast<std::int8_t>(w.real()), wi = static_cast<std::int8_t>(w.imag());
      auto* to =
          reinterpret_cast<std::int8_t*>(packed) + antenna / 2 * 128 + lane * 4 + antenna % 2 * 2;
      to[0] = wr;
      to[1] = static_cast<std::int8_t>(-wi);
      to[64] = wi;
      to[65] = wr;
      sums[0] += wr - wi;
      sums[1] += wi + wr;
    }
    start[lane] = -unpacker_.offset() * sums[0];
    start[kLanes + lane] = -unpacker_.offset() * sums[1];
  }
}

void CpuBeamformer::set_requantization(Queue&, View<const float, 3> scale,
                                       View<const float, 3> offset) {
  check_requantization(config_, scale, offset);
  for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
    for (std::int64_t block = 0; block < n_blocks_; ++block) {
      for (std::int64_t product = 0; product < n_scales_; ++product) {
        for (std::int64_t lane = 0; lane < n_lanes(block); ++lane) {
          const std::int64_t at = cell(channel, block, product) * kLanes + lane;
          scale_[at] = scale(first_row(block) + lane, product, channel);
          offset_[at] = offset(first_row(block) + lane, product, channel);
        }
      }
    }
  }
  update_fits();
}

// Whether power_u8 meets neither negative values nor large ones: |re|, |im| <= 2 A max|v| 127,
// losses scale by at most A.
void CpuBeamformer::update_fits() {
  fits_ = false;
  if (!kernel_.integer || !power_bytes_) return;
  const Range range = value_range(config_);
  const double part = 2.0 * 127 * static_cast<double>(config_.n_antennas) *
                      std::max(-range.min, range.max) * static_cast<double>(config_.n_antennas);
  double weight = 0, scale = 0, offset = 0, minimum = 0;
  for (const float w : weight_scale_.span()) weight = std::max(weight, double{w});
  for (const float x : scale_.span()) {
    scale = std::max(scale, double{x});
    minimum = std::min(minimum, double{x});
  }
  for (const float x : offset_.span()) {
    offset = std::max(offset, double{x});
    minimum = std::min(minimum, double{x});
  }
  fits_ = minimum >= 0 && 2 * part * part * weight * weight * scale + offset < 2e9;
}

std::int64_t CpuBeamformer::execute(Queue& queue, const Input& sparse, const Output& output) {
  const Input input = checked_input(config_, sparse);
  const std::int64_t window = config_.integration;
  // A gap inside a window leaves it open; any other leaves unfinished windows behind.
  if (input.first_tick != next_tick_ &&
      floor_divide(input.first_tick, window) != floor_divide(next_tick_ - 1, window)) {
    reset();
  }
  next_tick_ = input.first_tick + input.n_spectra;
  const std::int64_t workers = queue.n_workers();
  const std::int64_t groups =
      config_.n_channels >= 2 * workers
          ? 1
          : std::min(n_blocks_, (2 * workers + config_.n_channels - 1) / config_.n_channels);
  for_each_task(queue, groups * config_.n_channels, [&](std::int64_t slot, std::int64_t task) {
    std::byte* at = scratch_memory_.data() + slot * scratch_bytes_;
    Scratch scratch;
    scratch.samples = reinterpret_cast<std::uint8_t*>(at);
    at += (unpacker_.tile_bytes() + 127) / 128 * 128;
    for (auto& pair : scratch.raw) {
      for (auto& raw : pair) {
        raw = at;
        at += 2 * kPlane * 4;
      }
    }
    scratch.planes = reinterpret_cast<float*>(at);
    scratch.codes = reinterpret_cast<std::int32_t*>(at + 4 * kPlane * 4);
    scratch.cut = power_bytes_ ? reinterpret_cast<std::uint32_t*>(at + 8 * kPlane * 4) : nullptr;
    const std::int64_t group = task % groups;
    run(input, output, task / groups, group * n_blocks_ / groups, (group + 1) * n_blocks_ / groups,
        scratch);
  });
  return config_.n_windows(input.first_tick, input.n_spectra);
}

void CpuBeamformer::clear_counts(const Input& input, const Output& output, std::int64_t channel,
                                 std::int64_t block) const {
  for (std::int64_t row = first_row(block); row < first_row(block) + n_lanes(block); ++row) {
    for (std::int64_t product = 0; product < n_scales_; ++product) {
      const std::int64_t at = (row * n_scales_ + product) * config_.n_channels + channel;
      if (output.saturated_low != nullptr) output.saturated_low[at] = 0;
      if (output.saturated_high != nullptr) output.saturated_high[at] = 0;
    }
    if (row >= config_.n_beams) continue;
    // Nothing lost: the same for every spectrum. Else the tiles add their shares.
    const bool whole = input.present == nullptr && input.n_spectra > 0;
    const std::int64_t at = row * config_.n_channels + channel;
    const Presence& full = full_[at];
    const auto n = static_cast<std::uint32_t>(input.n_spectra);
    if (output.n_used != nullptr) output.n_used[at] = whole ? full.n_used * n : 0;
    if (output.weight_power != nullptr)
      output.weight_power[at] = whole ? static_cast<float>(full.weight_power) : 0;
  }
}

// Everything of one channel and some of its blocks.
void CpuBeamformer::run(const Input& input, const Output& output, std::int64_t channel,
                        std::int64_t first_block, std::int64_t end_block, const Scratch& scratch) {
  for (std::int64_t block = first_block; block < end_block; ++block)
    clear_counts(input, output, channel, block);
  if (power_bytes_) std::memset(scratch.cut, 0, static_cast<std::size_t>(cut_bytes()));
  for (Tile tile{0, 0, nullptr}; tile.t < input.n_spectra; tile.t += tile.n) {
    tile.n = std::min(kTile, input.n_spectra - tile.t);
    if (config_.order == InputOrder::pairs)
      tile.n = std::min(tile.n, config_.block_spectra - tile.t % config_.block_spectra);
    if (input.present != nullptr) {
      tile.n = std::min(tile.n, input.slot_spectra - tile.t % input.slot_spectra);
      tile.present = slot_bits(config_, input, channel, tile.t / input.slot_spectra);
    }
    const TileView view = unpacker_.unpack(input, channel, tile.t, tile.n, scratch.samples);
    const std::int64_t last_beams = std::min(end_block, beam_blocks_);
    for (std::int64_t block = first_block; block < end_block; block += 2) {
      const bool two = kernel_.multiply_two != nullptr && block + 1 < last_beams;
      if (block < beam_blocks_) multiply(view, tile.n, channel, block, two, scratch, 0);
      form(input, output, tile, view, channel, block, scratch, 0);
      if (block + 1 >= end_block) continue;
      if (!two && block + 1 < beam_blocks_)
        multiply(view, tile.n, channel, block + 1, false, scratch, 1);
      form(input, output, tile, view, channel, block + 1, scratch, 1);
    }
  }
  if (kernel_.fence != nullptr) kernel_.fence();
  if (!power_bytes_) return;
  for (std::int64_t block = first_block; block < std::min(end_block, beam_blocks_); ++block) {
    for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
      const std::uint32_t* cut = cut_of(scratch, block, pol);
      add_counts(output, channel, block, pol, cut, cut + kLanes);
    }
  }
}

void CpuBeamformer::form(const Input& input, const Output& output, const Tile& tile,
                         const TileView& view, std::int64_t channel, std::int64_t block,
                         const Scratch& scratch, int half) {
  float any[kLanes];
  if (block < beam_blocks_) {
    coherent(input, output, tile, channel, block, scratch, half, any);
  } else {
    incoherent(tile, view, block, scratch, any);
  }
  if (power_bytes_ && block < beam_blocks_) return;  // done
  if (config_.output == OutputKind::voltage) {
    emit_voltage(input, output, tile, channel, block, scratch);
  } else {
    emit_power(input, output, tile, channel, block, scratch, any);
  }
}

// Scales of a tile with losses, and its share of the counts; false when nothing was lost in the
// gulp (what then holds for every tile is counted once, in clear_counts).
bool CpuBeamformer::lossy_scale(const Input& input, const Output& output, const Tile& tile,
                                std::int64_t channel, std::int64_t block, float (&scale)[2][kLanes],
                                float* any) const {
  std::fill(any, any + kLanes, 1.0f);
  if (tile.present == nullptr) return false;
  std::fill(scale[0], scale[0] + 2 * kLanes, 0.0f);
  for (std::int64_t lane = 0; lane < n_lanes(block); ++lane) {
    const std::int64_t beam = first_row(block) + lane;
    const Presence there = presence_of(bank_, config_, beam, channel, tile.present);
    any[lane] = there.any ? 1.0f : 0.0f;
    for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
      // A power needs all pols of its spectrum; a voltage of one pol stands alone.
      const bool keep = there.any || config_.output == OutputKind::voltage;
      scale[pol][lane] = weight_scale_[weight_index(channel, pol, block) * kLanes + lane] *
                         (keep ? there.factor[pol] : 0.0f);
    }
    const std::int64_t at = beam * config_.n_channels + channel;
    if (output.n_used != nullptr)
      output.n_used[at] += there.n_used * static_cast<std::uint32_t>(tile.n);
    if (output.weight_power != nullptr) {
      output.weight_power[at] += static_cast<float>(
          there.weight_power * static_cast<double>(tile.n) / static_cast<double>(input.n_spectra));
    }
  }
  return true;
}

// Raw sums of a block, or of it and the next one, of all pols.
void CpuBeamformer::multiply(const TileView& view, std::int64_t n, std::int64_t channel,
                             std::int64_t block, bool two, const Scratch& scratch, int half) {
  for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
    const std::int64_t index = weight_index(channel, pol, block);
    Multiply m{view.data + pol * view.pol_stride_bytes,
               view.step_stride_bytes,
               view.spectrum_stride_bytes,
               packed_.data() + index * packed_bytes_,
               start_.data() + index * 2 * kLanes,
               unpacker_.n_steps(),
               (n + kGroup - 1) / kGroup * kGroup,
               steps_per_word_,
               scratch.raw[half][pol],
               nullptr,
               nullptr,
               nullptr};
    if (!two) {
      kernel_.multiply(m);
      continue;
    }
    m.second_weights = packed_.data() + (index + 1) * packed_bytes_;
    m.second_start = start_.data() + (index + 1) * 2 * kLanes;
    m.second_raw = scratch.raw[1][pol];
    kernel_.multiply_two(m);
  }
}

void CpuBeamformer::coherent(const Input& input, const Output& output, const Tile& tile,
                             std::int64_t channel, std::int64_t block, const Scratch& scratch,
                             int half, float* any) {
  float scale[2][kLanes];
  const bool lossy = lossy_scale(input, output, tile, channel, block, scale, any);
  const float* scales[2] = {};
  for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
    const std::int64_t index = weight_index(channel, pol, block);
    scales[pol] = lossy ? scale[pol] : weight_scale_.data() + index * kLanes;
  }
  if (power_bytes_) {
    for (std::int64_t pol = 0; pol < config_.n_pols; ++pol)
      emit_bytes(output, tile, channel, block, pol, scratch.raw[half][pol], scales[pol],
                 cut_of(scratch, block, pol));
    return;
  }
  kernel_.detect({{scratch.raw[half][0], scratch.raw[half][1]},
                  {scales[0], scales[1]},
                  config_.n_pols,
                  tile.n,
                  static_cast<Detection>(config_.output),
                  scratch.planes});
}

// Straight from the sums to bytes.
void CpuBeamformer::emit_bytes(const Output& output, const Tile& tile, std::int64_t channel,
                               std::int64_t block, std::int64_t pol, const std::byte* raw,
                               const float* scale, std::uint32_t* cut) const {
  const Rows to = rows(output, channel, block, pol, tile.t);
  const std::int64_t at = cell(channel, block, pol) * kLanes;
  kernel_.power_u8(
      {raw, tile.n, scale, scale_.data() + at, offset_.data() + at, fits_, cut, cut + kLanes}, to);
}

void CpuBeamformer::incoherent(const Tile& tile, const TileView& view, std::int64_t block,
                               const Scratch& scratch, float* any) {
  std::fill(any, any + kLanes, 0.0f);
  for (std::int64_t lane = 0; lane < n_lanes(block); ++lane) {
    const std::int64_t index = first_row(block) + lane - config_.n_beams;
    const Presence there = incoherent_presence(config_, index, tile.present);
    any[lane] = there.any ? 1.0f : 0.0f;
    float power[2][kTile];
    for (std::int64_t pol = 0; pol < config_.n_pols; ++pol) {
      unpacker_.incoherent(view, pol, config_.incoherent[index], tile.n, power[pol]);
      const float factor = there.any ? there.factor[pol] : 0.0f;
      for (std::int64_t s = 0; s < tile.n; ++s) power[pol][s] *= factor;
    }
    for (std::int64_t s = 0; s < tile.n; ++s) {
      float* to = scratch.planes + s * kLanes + lane;
      to[0] = power[0][s];
      if (config_.n_pols == 1) continue;
      if (config_.output == OutputKind::stokes_i) {
        to[0] = (power[0][s] + power[1][s]) * 0.5f;
      } else {
        to[kPlane] = power[1][s];
      }
    }
  }
}

Rows CpuBeamformer::rows(const Output& output, std::int64_t channel, std::int64_t block,
                         std::int64_t product, std::int64_t index) const {
  auto* first = static_cast<std::uint8_t*>(output.values) +
                first_row(block) * output.row_stride_bytes + product * output.product_stride_bytes +
                channel * output.channel_stride_bytes + index * value_bytes_;
  return {first, output.row_stride_bytes, n_lanes(block)};
}
void CpuBeamformer::add_counts(const Output& output, std::int64_t channel, std::int64_t block,
                               std::int64_t product, const std::uint32_t* low,
                               const std::uint32_t* high) const {
  std::uint32_t cut = 0;
  for (std::int64_t lane = 0; lane < kLanes; ++lane) cut |= low[lane] | high[lane];
  if (cut == 0) return;
  for (std::int64_t lane = 0; lane < n_lanes(block); ++lane) {
    const std::int64_t at =
        ((first_row(block) + lane) * n_scales_ + product) * config_.n_channels + channel;
    if (output.saturated_low != nullptr) output.saturated_low[at] += low[lane];
    if (output.saturated_high != nullptr) output.saturated_high[at] += high[lane];
  }
}

void CpuBeamformer::emit_power(const Input& input, const Output& output, const Tile& tile,
                               std::int64_t channel, std::int64_t block, const Scratch& scratch,
                               const float* any) {
  const std::int64_t window = config_.integration;
  const Tick tick = input.first_tick + tile.t;
  // Divisions cost as much as a group of products: none where windows are single spectra.
  const std::int64_t number = window == 1 ? tick : floor_divide(tick, window);
  const std::int64_t index = window == 1 ? tile.t : number - floor_divide(input.first_tick, window);
  for (std::int64_t product = 0; product < n_scales_; ++product) {
    float* plane = scratch.planes + product * kPlane;
    const std::int64_t at = cell(channel, block, product);
    std::int64_t n = tile.n;
    if (window > 1) {
      n = kernel_.integrate({plane, windows_.data() + at, tile.n, tick - number * window, window,
                             any, config_.loss == LossMode::raw});
    }
    if (n == 0) continue;
    const Rows to = rows(output, channel, block, product, index);
    if (config_.output_format == OutputFormat::f32) {
      kernel_.store_f32(plane, n, to);
      continue;
    }
    std::uint32_t low[kLanes] = {}, high[kLanes] = {};
    if (config_.output_format == OutputFormat::f16) {
      store_fp16(plane, n, low, high, to);
      add_counts(output, channel, block, product, low, high);
      continue;
    }
    const bool bytes = config_.output_format == OutputFormat::u8;
    const Quantize quantize{plane,
                            n,
                            scale_.data() + at * kLanes,
                            offset_.data() + at * kLanes,
                            0,
                            bytes ? 255 : 65535,
                            scratch.codes,
                            low,
                            high};
    if (bytes && kernel_.quantize_u8 != nullptr) {
      kernel_.quantize_u8(quantize, to);
    } else {
      kernel_.quantize(quantize);
      store_codes(config_.output_format, scratch.codes, n, to);
    }
    add_counts(output, channel, block, product, low, high);
  }
}

void CpuBeamformer::emit_voltage(const Input& input, const Output& output, const Tile& tile,
                                 std::int64_t channel, std::int64_t block, const Scratch& scratch) {
  const Rows to = rows(output, channel, block, 0, tile.t);
  const bool codes =
      config_.output_format == OutputFormat::ci8 || config_.output_format == OutputFormat::ci4;
  if (codes) {
    const std::int32_t maximum = config_.output_format == OutputFormat::ci8 ? 127 : 7;
    const float* scale = scale_.data() + cell(channel, block, 0) * kLanes;
    static constexpr float kOnes[kLanes] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    static constexpr float kZeros[kLanes] = {};
    std::uint32_t low[kLanes] = {}, high[kLanes] = {};
    for (std::int64_t plane = 0; plane < 2 * config_.n_pols; ++plane) {
      float* values = scratch.planes + plane * kPlane;
      if (config_.dither) {
        std::uint64_t keys[kLanes];
        for (std::int64_t lane = 0; lane < n_lanes(block); ++lane)
          keys[lane] = dither_key(config_.seed, first_row(block) + lane, channel, plane / 2);
        add_dither(values, scale, tile.n, input.first_tick + tile.t, keys,
                   static_cast<int>(plane % 2), n_lanes(block));
      }
      kernel_.quantize({values, tile.n, config_.dither ? kOnes : scale, kZeros, -maximum, maximum,
                        scratch.codes + plane * kPlane, low, high});
    }
    add_counts(output, channel, block, 0, low, high);
  }
  store_voltages(config_.output_format, scratch.planes, scratch.codes, tile.n, config_.n_pols, to);
}

}  // namespace

std::unique_ptr<Beamformer> make_cpu(Queue& queue, const Config& config, const CpuKernel& kernel) {
  return std::make_unique<CpuBeamformer>(queue, config, kernel);
}

}  // namespace ryle::beamform::detail
