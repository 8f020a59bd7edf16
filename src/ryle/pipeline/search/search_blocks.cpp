// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_blocks.hpp"

#include <algorithm>
#include <limits>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/search/cuda/rows.hpp"
#endif

namespace ryle::pipeline {

BlockGatherer::BlockGatherer(std::int64_t n_beams, std::int64_t n_channels,
                             std::int64_t block_samples, std::int64_t n_blocks,
                             const std::vector<int>& devices)
    : n_beams_(n_beams),
      n_channels_(n_channels),
      block_samples_(block_samples),
      blocks_(n_blocks),
      free_(static_cast<std::size_t>(n_blocks)),
      messages_(static_cast<std::size_t>(n_blocks) + 16) {
  for (const int device : devices) queues_.push_back(Queue::cuda(device));
  for (auto& block : blocks_) {
    if (devices.empty())
      block.values =
          Buffer<float>(checked_product({n_beams, n_channels, block_samples}, "block of beams"));
    for (std::size_t k = 0; k < queues_.size(); ++k) {
      const OnDevice scope(queues_[k]);
      block.parts.emplace_back(
          checked_product({beams_of(k).size(), n_channels, block_samples}, "block of beams"),
          MemorySpace::device);
    }
    free_.offer(&block);
  }
}

std::int64_t BlockGatherer::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& block : blocks_) {
    bytes += block.values.bytes();
    for (const auto& part : block.parts) bytes += part.bytes();
  }
  return bytes;
}

void BlockGatherer::follow(const BeamChunk& chunk, bool wait) {
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
}

void BlockGatherer::take(const BeamChunk& chunk, bool wait) {
  follow(chunk, wait);
  append(&chunk, 0, chunk.n_samples, wait);
}

BeamDestination BlockGatherer::place(const BeamChunk& next, bool wait) {
  follow(next, wait);
  open_block(wait);
  if (block_ == nullptr) return {};
  BeamDestination place;
  place.n_samples = std::min(next.n_samples, block_samples_ - fill_);
  place.beam_stride = beam_stride();
  place.channel_stride = channel_stride();
  if (queues_.empty()) place.values = block_->values.data() + fill_;
  for (auto& part : block_->parts) place.parts.push_back(part.data() + fill_);
  return place;
}

void BlockGatherer::open_block(bool wait) {
  if (opened_) return;
  opened_ = true;
  auto block = wait ? free_.pop() : free_.try_pop();
  block_ = block ? *block : nullptr;
  if (block_ == nullptr) {
    ++dropped_;
    return;
  }
  block_->first_sample = next_;
  block_->clock = clock_;
}

void BlockGatherer::append(const BeamChunk* chunk, std::int64_t from, std::int64_t n, bool wait) {
  while (n > 0) {
    open_block(wait);
    const std::int64_t piece = std::min(n, block_samples_ - fill_);
    if (block_ != nullptr && chunk != nullptr) copy(*chunk, from, piece);
    if (block_ != nullptr && chunk == nullptr) blank(piece);
    fill_ += piece;
    next_ += piece;
    from += piece;
    n -= piece;
    if (fill_ == block_samples_) send(false);
  }
}

BeamRange BlockGatherer::beams_of(std::size_t device) const {
  return beam_range(n_beams_, static_cast<std::int64_t>(queues_.size()),
                    static_cast<std::int64_t>(device));
}

void BlockGatherer::blank(std::int64_t n) {
  for (std::size_t k = 0; k < queues_.size(); ++k) blank_on_device(k, 0, n_channels_, fill_, n);
  if (!queues_.empty()) return;
  for (std::int64_t row = 0; row < n_beams_ * n_channels_; ++row)
    std::fill_n(block_->values.data() + row * block_samples_ + fill_, n,
                std::numeric_limits<float>::quiet_NaN());
}

#ifdef RYLE_HAVE_CUDA
void BlockGatherer::blank_on_device(std::size_t part, std::int64_t first_channel,
                                    std::int64_t n_channels, std::int64_t at, std::int64_t n) {
  search::fill_rows(
      queues_[part],
      {block_->parts[part].data() + first_channel * block_samples_ + at, beam_stride() * 4,
       block_samples_ * 4, beams_of(part).size(), n_channels, n * 4},
      std::numeric_limits<float>::quiet_NaN());
}

void BlockGatherer::copy_on_devices(const BeamChunk& chunk, std::int64_t from, std::int64_t n) {
  RYLE_ASSERT(chunk.parts.empty() || chunk.parts.size() == queues_.size());
  for (std::size_t k = 0; k < queues_.size(); ++k) {
    const BeamRange beams = beams_of(k);
    const search::DeviceRows rows{block_->parts[k].data() + fill_,
                                  beam_stride() * 4,
                                  block_samples_ * 4,
                                  beams.size(),
                                  n_channels_,
                                  n * 4};
    if (chunk.parts.empty()) {
      search::transfer_rows(queues_[k], rows, chunk.row(beams.first, 0) + from,
                            chunk.beam_stride * 4, chunk.channel_stride * 4);
    } else {
      // Behind the beams, and in front of those that overwrite them.
      const BeamPart& part = chunk.parts[k];
      RYLE_ASSERT(part.first_beam == beams.first && part.n_beams == beams.size());
      if (part.queue.native_handle() != queues_[k].native_handle()) queues_[k].synchronize();
      queues_[k] = part.queue;
      if (part.values + from != block_->parts[k].data() + fill_)
        search::copy_rows(queues_[k], rows, part.values + from, chunk.beam_stride * 4,
                          chunk.channel_stride * 4);
    }
    const Tick first = chunk.first_sample + from, end = first + n;
    for (const ChannelGap& gap : chunk.absent) {
      const Tick a = std::max(first, gap.begin), z = std::min(end, gap.end);
      if (a < z)
        blank_on_device(k, gap.channel_begin, gap.channel_end - gap.channel_begin,
                        fill_ + (a - first), z - a);
    }
    if (chunk.parts.empty()) queues_[k].synchronize();
  }
}
#else
void BlockGatherer::blank_on_device(std::size_t, std::int64_t, std::int64_t, std::int64_t,
                                    std::int64_t) {}
void BlockGatherer::copy_on_devices(const BeamChunk&, std::int64_t, std::int64_t) {}
#endif

void BlockGatherer::copy(const BeamChunk& chunk, std::int64_t from, std::int64_t n) {
  if (!queues_.empty()) return copy_on_devices(chunk, from, n);
  const bool made_here = chunk.values + from == block_->values.data() + fill_;
  for (std::int64_t b = 0; b < n_beams_ && !made_here; ++b)
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
    for (Queue& queue : queues_) queue.synchronize();
    block_->n_samples = fill_;
    block_->complete = std::chrono::steady_clock::now();
  }
  if (block_ != nullptr || ends) messages_.offer({block_, ends});
  block_ = nullptr;
  opened_ = false;
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

}  // namespace ryle::pipeline
