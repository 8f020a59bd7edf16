// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/correlate/correlate.hpp"

namespace ryle::correlate::detail {

/// Exact number of spectra in which both inputs of a pair were valid.
/// @eq n_ij = sum_t valid_i(t) valid_j(t)   (reliability.md 3)
/// Inputs with identical masks form classes (a lost packet hits a whole board, so they are few):
/// one popcount per pair of classes; above kMaxClasses every pair is counted by itself. Whatever is
/// common to all pairs costs nothing per pair.
class PairCounter {
 public:
  static constexpr std::int64_t kMaxClasses = 64;

  PairCounter(const Config& config, std::int64_t n_workers);
  void add(Queue& queue, const Input& input);
  /// Writes [channel][pair], resized on first use, and resets.
  void finish(std::vector<std::uint32_t>& counts);
  /// The same on all workers.
  void finish(Queue& queue, std::vector<std::uint32_t>& counts);
  void reset();
  /// Every pair counts n_spectra: no mask has hidden anything since reset().
  bool all_equal(std::int64_t n_spectra) const;
  static std::int64_t bytes(const Config& config);

 private:
  struct Masks {
    const std::uint64_t* first;
    std::int64_t stride_words;
    std::int64_t n_words;
    std::uint64_t tail;  // valid bits of the last word
    const std::uint64_t* row(std::int64_t input) const { return first + input * stride_words; }
  };
  std::int64_t classify(const Masks& masks, std::uint8_t* class_of,
                        std::int64_t* representative) const;
  std::uint32_t common_bits(const Masks& masks, const std::uint64_t* a,
                            const std::uint64_t* b) const;
  void add_masks(const Masks& masks, std::int64_t slot, std::uint32_t& uniform,
                 std::uint32_t* pairs, bool& touched);

  void write_channel(std::int64_t channel, std::uint32_t* to) const;

  std::int64_t n_inputs_;
  std::int64_t n_channels_;
  std::int64_t pairs_;
  std::uint32_t (*and_popcount_)(const std::uint64_t*, const std::uint64_t*, std::int64_t);
  std::vector<std::uint8_t> class_of_;          // [slot][input]
  std::vector<std::uint32_t> common_;           // [pair], masks shared by all channels
  std::vector<std::uint32_t> channel_pairs_;    // [channel][pair]
  std::vector<std::uint32_t> channel_uniform_;  // [channel]
  std::vector<std::uint8_t> channel_touched_;   // [channel]
  std::uint32_t uniform_ = 0;
  bool common_touched_ = false;
};

}  // namespace ryle::correlate::detail
