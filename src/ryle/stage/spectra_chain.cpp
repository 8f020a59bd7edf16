// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/spectra_chain.hpp"

#include <algorithm>
#include <chrono>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/import.hpp"

namespace ryle::stage {
namespace {

// A gulp is bounded by memory: spectra x channels x inputs x 2 bytes.
std::int64_t gulp_for(std::int64_t n_channels, std::int64_t n_inputs,
                      std::int64_t spectra_per_dump) {
  constexpr std::int64_t kGulpBytes = 16 << 20;
  return std::clamp<std::int64_t>(kGulpBytes / (2 * n_channels * n_inputs), 1,
                                  std::min<std::int64_t>(spectra_per_dump, 1024));
}

}  // namespace

SpectraChain::SpectraChain(Queue queue, Recording& recording, const std::string& implementation,
                           std::int64_t spectra_per_dump, FxChain::DumpSink sink)
    : queue_(std::move(queue)),
      import_queue_(queue_.back_end() == BackEnd::cpu ? queue_ : Queue::cpu()),
      recording_(recording),
      sink_(std::move(sink)),
      n_channels_(recording.info().frequency.n_channels),
      n_inputs_(recording.info().n_inputs),
      spectra_per_gulp_(gulp_for(n_channels_, n_inputs_, spectra_per_dump)),
      spectra_per_dump_(spectra_per_dump) {
  correlate::Config config;
  config.n_inputs = n_inputs_;
  config.n_channels = n_channels_;
  config.format = SampleFormat::ci8;
  config.max_spectra = spectra_per_gulp_;
  config.implementation = implementation;
  correlator_ = correlate::make_correlator(queue_, config);
  spectra_.resize(static_cast<std::size_t>(spectra_per_gulp_ * n_channels_ * n_inputs_));
  const std::int64_t bytes =
      dense_blocks_bytes(SampleFormat::ci8, n_channels_, spectra_per_gulp_, n_inputs_);
  host_blocks_ = Buffer<std::byte>(bytes);
  if (queue_.back_end() == BackEnd::cuda)
    device_blocks_ = Buffer<std::byte>(bytes, MemorySpace::device);
  absent_channels_.resize(static_cast<std::size_t>(n_channels_ * n_inputs_));
  valid_.resize(
      static_cast<std::size_t>(n_channels_ * n_inputs_ * words_for_bits(spectra_per_gulp_)));
}

SpectraChain::~SpectraChain() = default;

bool SpectraChain::step(std::int64_t total) {
  const std::int64_t n = std::min({total - done_, spectra_per_gulp_, spectra_per_dump_ - in_dump_});
  if (n <= 0) {
    if (in_dump_ > 0) close_dump();
    return false;
  }
  const auto start = std::chrono::steady_clock::now();
  absent_.clear();
  gaps_.clear();
  std::fill(absent_channels_.begin(), absent_channels_.end(), std::uint8_t{0});
  recording_.read_spectra(done_, n, spectra_, absent_, &absent_channels_, &gaps_);
  mark_valid(n);
  const BlockView blocks =
      dense_blocks(host_blocks_.data(), SampleFormat::ci8, n_channels_, n, n_inputs_);
  correlate::import_voltages(
      import_queue_, spectra_.data(),
      correlate::spectrum_channel_input(SampleFormat::ci8, n_channels_, n_inputs_), n, blocks);
  BlockView input = blocks;
  if (device_blocks_.size() > 0) {
    input.data = device_blocks_.data();
    copy_bytes(queue_, input.data, blocks.data,
               dense_blocks_bytes(SampleFormat::ci8, n_channels_, n, n_inputs_));
  }
  const std::int64_t words = words_for_bits(n);
  if (in_dump_ == 0) dump_first_ = done_;
  correlator_->execute(queue_, {input, n, valid_.data(), words, n_inputs_ * words});
  queue_.synchronize();  // the host buffers are used again for the next gulp
  done_ += n;
  in_dump_ += n;
  if (in_dump_ == spectra_per_dump_) close_dump();
  busy_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return true;
}

void SpectraChain::mark_valid(std::int64_t n) {
  const std::int64_t words = words_for_bits(n);
  std::fill(valid_.begin(), valid_.end(), std::uint64_t{0});
  for (std::int64_t c = 0; c < n_channels_; ++c) {
    for (std::int64_t p = 0; p < n_inputs_; ++p) {
      if (absent_channels_[static_cast<std::size_t>(c * n_inputs_ + p)] != 0) continue;
      set_bits(valid_.data() + (c * n_inputs_ + p) * words, 0, n);
    }
  }
  for (const auto& a : absent_) lose(a.input, {0, n_channels_, a.begin, a.end}, n);
#if RYLE_MUTANT != 131
  for (const auto& g : gaps_) {
    for (std::int64_t p = 0; p < n_inputs_; ++p) lose(p, g, n);
  }
#endif
}

void SpectraChain::lose(std::int64_t input, const ChannelGap& gap, std::int64_t n) {
  const std::int64_t words = words_for_bits(n);
  const std::int64_t begin = std::max(gap.begin, done_) - done_;
  const std::int64_t end = std::min(gap.end, done_ + n) - done_;
  if (begin >= end) return;
  for (std::int64_t c = gap.channel_begin; c < gap.channel_end; ++c) {
    if (absent_channels_[static_cast<std::size_t>(c * n_inputs_ + input)] != 0) continue;
    lost_samples_ += static_cast<std::uint64_t>(end - begin);
    clear_bits(valid_.data() + (c * n_inputs_ + input) * words, begin, end);
  }
}

void SpectraChain::close_dump() {
  RawDump dump;
  dump.first_spectrum = dump_first_;
  dump.n_spectra = in_dump_;
  dump.clock = recording_.info().clock;
  correlator_->finish(queue_, dump.sums);
  in_dump_ = 0;
  sink_(std::move(dump));
}

}  // namespace ryle::stage
