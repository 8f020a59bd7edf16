// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/runtime/bounded_queue.hpp"

namespace ryle::pipeline {

/// Samples of all beams. @shape values [beam][channel][block] f32, NaN = absent; with devices
/// empty, and parts[k] has the beams of device k in its memory
struct PowerBlock {
  Buffer<float> values;
  std::vector<Buffer<float>> parts;
  std::int64_t n_samples = 0;
  std::int64_t first_sample = 0;
  SampleClock clock;
  std::chrono::steady_clock::time_point complete;  ///< when its last sample came
};

/// A block, or the end of samples that follow on, or both.
struct PowerMessage {
  PowerBlock* block = nullptr;
  bool ends = false;
};

/// Chunks of any length -> blocks of one length on a grid that begins with the first sample.
/// - Thread: one thread fills (take, place, finish), one takes messages() and release()s blocks.
/// - Where no block is free the samples of a whole block are dropped and counted, unless `wait`.
/// - Gaps become NaN; a new segment, or a gap longer than kMaxGapBlocks, ends the grid.
class BlockGatherer {
 public:
  static constexpr std::int64_t kMaxGapBlocks = 8;

  BlockGatherer(std::int64_t n_beams, std::int64_t n_channels, std::int64_t block_samples,
                std::int64_t n_blocks, const std::vector<int>& devices = {});

  void take(const BeamChunk& chunk, bool wait);
  /// Room in the block that `next` falls into: take() copies nothing that was made there.
  BeamDestination place(const BeamChunk& next, bool wait);
  void finish();  ///< the last block may be a short one

  BoundedQueue<PowerMessage>& messages() { return messages_; }
  void release(PowerBlock* block) { free_.offer(block); }
  std::int64_t block_samples() const { return block_samples_; }
  std::int64_t channel_stride() const { return block_samples_; }
  std::int64_t beam_stride() const { return n_channels_ * block_samples_; }
  std::int64_t dropped_blocks() const { return dropped_; }
  std::int64_t memory_bytes() const;

 private:
  BeamRange beams_of(std::size_t device) const;
  void end_grid();
  /// The grid up to the chunk's first sample.
  void follow(const BeamChunk& chunk, bool wait);
  /// A block for the samples from next_ on, or none: they are dropped.
  void open_block(bool wait);
  /// n more samples: of `chunk` from its sample `from`, or absent ones when it is nullptr.
  void append(const BeamChunk* chunk, std::int64_t from, std::int64_t n, bool wait);
  void copy(const BeamChunk& chunk, std::int64_t from, std::int64_t n);
  void blank(std::int64_t n);
  /// The same for blocks on devices.
  void copy_on_devices(const BeamChunk& chunk, std::int64_t from, std::int64_t n);
  void blank_on_device(std::size_t part, std::int64_t first_channel, std::int64_t n_channels,
                       std::int64_t at, std::int64_t n);
  void send(bool ends);

  std::int64_t n_beams_, n_channels_, block_samples_;
  std::vector<Queue> queues_;  // one a device
  std::vector<PowerBlock> blocks_;
  BoundedQueue<PowerBlock*> free_;
  BoundedQueue<PowerMessage> messages_;
  PowerBlock* block_ = nullptr;  // nullptr within a block: it is being dropped
  bool started_ = false;
  bool opened_ = false;  // block_ is that of the samples from next_ on
  std::int64_t next_ = 0, fill_ = 0, segment_ = 0;
  SampleClock clock_;
  std::atomic<std::int64_t> dropped_{0};
};

}  // namespace ryle::pipeline
