// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/search_blocks.hpp"

#include <algorithm>
#include <limits>

#include "ryle/core/checked.hpp"

namespace ryle::stage {

BlockGatherer::BlockGatherer(std::int64_t n_beams, std::int64_t n_channels,
                             std::int64_t block_samples, std::int64_t n_blocks)
    : n_beams_(n_beams),
      n_channels_(n_channels),
      block_samples_(block_samples),
      blocks_(static_cast<std::size_t>(n_blocks)),
      free_(static_cast<std::size_t>(n_blocks)),
      messages_(static_cast<std::size_t>(n_blocks) + 16) {
  for (auto& block : blocks_) {
    block.values =
        Buffer<float>(checked_product({n_beams, n_channels, block_samples}, "block of beams"));
    free_.offer(&block);
  }
}

std::int64_t BlockGatherer::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& block : blocks_) bytes += block.values.bytes();
  return bytes;
}

void BlockGatherer::take(const BeamChunk& chunk, bool wait) {
  if (started_) {
    const std::int64_t gap = chunk.first_sample - next_;
    if (chunk.segment != segment_ || gap < 0 || gap > kMaxGapBlocks * block_samples_) end_grid();
  }
  if (!started_) {
    started_ = true;
    next_ = chunk.first_sample;
    segment_ = chunk.segment;
    clock_ = chunk.clock;
    fill_ = 0;
  }
  append(nullptr, 0, chunk.first_sample - next_, wait);
  append(&chunk, 0, chunk.n_samples, wait);
}

void BlockGatherer::append(const BeamChunk* chunk, std::int64_t from, std::int64_t n, bool wait) {
  while (n > 0) {
    if (fill_ == 0) {
      auto block = wait ? free_.pop() : free_.try_pop();
      block_ = block ? *block : nullptr;
      if (block_ != nullptr) {
        block_->first_sample = next_;
        block_->clock = clock_;
      } else {
        ++dropped_;
      }
    }
    const std::int64_t piece = std::min(n, block_samples_ - fill_);
    if (block_ != nullptr && chunk != nullptr) copy(*chunk, from, piece);
    if (block_ != nullptr && chunk == nullptr) {
      for (std::int64_t row = 0; row < n_beams_ * n_channels_; ++row)
        std::fill_n(block_->values.data() + row * block_samples_ + fill_, piece,
                    std::numeric_limits<float>::quiet_NaN());
    }
    fill_ += piece;
    next_ += piece;
    from += piece;
    n -= piece;
    if (fill_ == block_samples_) send(false);
  }
}

void BlockGatherer::copy(const BeamChunk& chunk, std::int64_t from, std::int64_t n) {
  for (std::int64_t b = 0; b < n_beams_; ++b)
    for (std::int64_t c = 0; c < n_channels_; ++c)
      std::copy_n(chunk.row(b, c) + from, n,
                  block_->values.data() + b * beam_stride() + c * block_samples_ + fill_);
  const Tick first = chunk.first_sample + from, end = first + n;
  for (const ChannelGap& gap : chunk.absent) {
    const Tick a = std::max(first, gap.begin), z = std::min(end, gap.end);
    if (a >= z) continue;
    for (std::int64_t b = 0; b < n_beams_; ++b)
      for (std::int64_t c = gap.channel_begin; c < gap.channel_end; ++c)
        std::fill_n(
            block_->values.data() + b * beam_stride() + c * block_samples_ + fill_ + (a - first),
            z - a, std::numeric_limits<float>::quiet_NaN());
  }
}

void BlockGatherer::send(bool ends) {
  if (block_ != nullptr) {
    block_->n_samples = fill_;
    block_->complete = std::chrono::steady_clock::now();
  }
  if (block_ != nullptr || ends) messages_.offer({block_, ends});
  block_ = nullptr;
  fill_ = 0;
}

void BlockGatherer::end_grid() {
  send(true);
  started_ = false;
}

void BlockGatherer::finish() {
  if (started_) end_grid();
  messages_.close();
}

}  // namespace ryle::stage
