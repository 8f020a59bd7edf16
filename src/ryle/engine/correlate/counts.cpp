// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/counts.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/device/tasks.hpp"

namespace ryle::correlate::detail {
namespace {

std::uint32_t and_popcount_portable(const std::uint64_t* a, const std::uint64_t* b,
                                    std::int64_t n) {
  std::uint32_t count = 0;
  for (std::int64_t k = 0; k < n; ++k)
    count += static_cast<std::uint32_t>(__builtin_popcountll(a[k] & b[k]));
  return count;
}

#if defined(__x86_64__)
__attribute__((target("popcnt"))) std::uint32_t and_popcount_instruction(const std::uint64_t* a,
                                                                         const std::uint64_t* b,
                                                                         std::int64_t n) {
  std::uint32_t count = 0;
  for (std::int64_t k = 0; k < n; ++k)
    count += static_cast<std::uint32_t>(__builtin_popcountll(a[k] & b[k]));
  return count;
}
#endif

auto best_and_popcount() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("popcnt")) return and_popcount_instruction;
#endif
  return and_popcount_portable;
}

}  // namespace

PairCounter::PairCounter(const Config& config, std::int64_t n_workers)
    : n_inputs_(config.n_inputs),
      n_channels_(config.n_channels),
      pairs_(n_pairs(config.n_inputs)),
      and_popcount_(best_and_popcount()),
      class_of_(n_workers * n_inputs_),
      common_(pairs_),
      channel_pairs_(pairs_ * n_channels_),
      channel_uniform_(n_channels_),
      channel_touched_(n_channels_) {}

std::int64_t PairCounter::bytes(const Config& config) {
  return n_pairs(config.n_inputs) * 4 * (config.n_channels + 1) + config.n_channels * 5;
}

std::uint32_t PairCounter::common_bits(const Masks& masks, const std::uint64_t* a,
                                       const std::uint64_t* b) const {
  const std::int64_t last = masks.n_words - 1;
  return and_popcount_(a, b, last) +
         static_cast<std::uint32_t>(__builtin_popcountll(a[last] & b[last] & masks.tail));
}

// Number of classes found, or kMaxClasses + 1 when there are more.
std::int64_t PairCounter::classify(const Masks& masks, std::uint8_t* class_of,
                                   std::int64_t* representative) const {
  const std::int64_t last = masks.n_words - 1;
  std::int64_t n_classes = 0;
  for (std::int64_t input = 0; input < n_inputs_; ++input) {
    const std::uint64_t* row = masks.row(input);
    std::int64_t c = 0;
    for (; c < n_classes; ++c) {
      const std::uint64_t* known = masks.row(representative[c]);
      if (((row[last] ^ known[last]) & masks.tail) == 0 &&
          std::memcmp(row, known, static_cast<std::size_t>(last) * 8) == 0) {
        break;
      }
    }
    if (c == n_classes) {
      if (n_classes == kMaxClasses) return kMaxClasses + 1;
      representative[n_classes++] = input;
    }
    class_of[input] = static_cast<std::uint8_t>(c);
  }
  return n_classes;
}

void PairCounter::add_masks(const Masks& masks, std::int64_t slot, std::uint32_t& uniform,
                            std::uint32_t* pairs, bool& touched) {
  std::uint8_t* class_of = class_of_.data() + slot * n_inputs_;
  std::int64_t representative[kMaxClasses];
  const std::int64_t n_classes = classify(masks, class_of, representative);
  if (n_classes == 1) {
    uniform += common_bits(masks, masks.row(0), masks.row(0));
    return;
  }
  touched = true;
  if (n_classes > kMaxClasses) {
    for (std::int64_t j = 0; j < n_inputs_; ++j) {
      for (std::int64_t i = 0; i <= j; ++i)
        *pairs++ += common_bits(masks, masks.row(i), masks.row(j));
    }
    return;
  }
  std::uint32_t both[kMaxClasses][kMaxClasses];
  for (std::int64_t a = 0; a < n_classes; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      both[a][b] = both[b][a] =
          common_bits(masks, masks.row(representative[a]), masks.row(representative[b]));
    }
  }
  for (std::int64_t j = 0; j < n_inputs_; ++j) {
    const std::uint32_t* with_j = both[class_of[j]];
    for (std::int64_t i = 0; i <= j; ++i) *pairs++ += with_j[class_of[i]];
  }
}

void PairCounter::add(Queue& queue, const Input& input) {
  if (input.n_spectra <= 0) return;
  if (input.valid == nullptr) {
    uniform_ += static_cast<std::uint32_t>(input.n_spectra);
    return;
  }
  const int spare = static_cast<int>(input.n_spectra & 63);
  const std::uint64_t tail = spare == 0 ? ~std::uint64_t{0} : (std::uint64_t{1} << spare) - 1;
  const Masks masks{input.valid, input.valid_words, words_for_bits(input.n_spectra), tail};
  if (input.valid_channel_stride_words == 0) {
    add_masks(masks, 0, uniform_, common_.data(), common_touched_);
    return;
  }
  for_each_task(queue, n_channels_, [&](std::int64_t slot, std::int64_t channel) {
    Masks own = masks;
    own.first += channel * input.valid_channel_stride_words;
    bool touched = channel_touched_[channel] != 0;
    add_masks(own, slot, channel_uniform_[channel], channel_pairs_.data() + channel * pairs_,
              touched);
    channel_touched_[channel] = touched;
  });
}

void PairCounter::write_channel(std::int64_t channel, std::uint32_t* to) const {
  std::fill(to, to + pairs_, uniform_ + channel_uniform_[channel]);
  if (common_touched_) {
    for (std::int64_t p = 0; p < pairs_; ++p) to[p] += common_[p];
  }
  if (channel_touched_[channel] != 0) {
    const std::uint32_t* from = channel_pairs_.data() + channel * pairs_;
    for (std::int64_t p = 0; p < pairs_; ++p) to[p] += from[p];
  }
}

void PairCounter::finish(std::vector<std::uint32_t>& counts) {
  counts.resize(n_channels_ * pairs_);
  for (std::int64_t channel = 0; channel < n_channels_; ++channel) {
    write_channel(channel, counts.data() + channel * pairs_);
  }
  reset();
}

void PairCounter::finish(Queue& queue, std::vector<std::uint32_t>& counts) {
  counts.resize(n_channels_ * pairs_);
  for_each_task(queue, n_channels_, [&](std::int64_t, std::int64_t channel) {
    write_channel(channel, counts.data() + channel * pairs_);
  });
  reset();
}

bool PairCounter::all_equal(std::int64_t n_spectra) const {
  if (common_touched_) return false;
  for (std::int64_t channel = 0; channel < n_channels_; ++channel) {
    if (channel_touched_[channel] != 0) return false;
    if (std::int64_t{uniform_} + channel_uniform_[channel] != n_spectra) return false;
  }
  return true;
}

void PairCounter::reset() {
  for (std::int64_t channel = 0; channel < n_channels_; ++channel) {
    if (channel_touched_[channel] == 0) continue;
    std::fill_n(channel_pairs_.begin() + channel * pairs_, pairs_, 0u);
  }
  if (common_touched_) std::fill(common_.begin(), common_.end(), 0u);
  std::fill(channel_uniform_.begin(), channel_uniform_.end(), 0u);
  std::fill(channel_touched_.begin(), channel_touched_.end(), std::uint8_t{0});
  uniform_ = 0;
  common_touched_ = false;
}

}  // namespace ryle::correlate::detail
