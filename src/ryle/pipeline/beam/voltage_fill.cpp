// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/voltage_fill.hpp"

#include <algorithm>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

using Content = VoltageForm::Content;

constexpr std::int64_t kMaxMarked = 1 << 20;  // bytes of bits written at once

// Spectra [first, first + n) of a channel to [spectrum][input].
void copy_cells(const ConstBlockView& blocks, std::int64_t channel, std::int64_t first,
                std::int64_t n, std::byte* out) {
  const std::int64_t n_inputs = blocks.n_inputs;
  const bool four_bits = blocks.format == SampleFormat::ci4;
  const std::int64_t in_block = spectra_per_block(blocks.format);
  const std::int64_t run_max = four_bits ? in_block : in_block / 2;  // real parts side by side
  for (std::int64_t t = 0; t < n;) {
    const std::int64_t spectrum = first + t, at = spectrum % in_block;
    const std::int64_t run = std::min(run_max - at % run_max, n - t);
    for (std::int64_t input = 0; input < n_inputs; ++input) {
      const std::byte* cell = blocks.cell(channel, spectrum / in_block, input);
      if (four_bits) {
        for (std::int64_t k = 0; k < run; ++k) out[(t + k) * n_inputs + input] = cell[at + k];
        continue;
      }
      const std::byte* re = cell + at / run_max * 2 * run_max + at % run_max;
      for (std::int64_t k = 0; k < run; ++k) {
        std::byte* value = out + ((t + k) * n_inputs + input) * 2;
        value[0] = re[k];
        value[1] = re[run_max + k];
      }
    }
    t += run;
  }
}

}  // namespace

Tick VoltageWindow::begin() const { return *std::min_element(first.begin(), first.end()); }
Tick VoltageWindow::end() const { return *std::max_element(first.begin(), first.end()) + n_ticks; }

bool VoltageWindow::holds(const VoltageWindow& other) const {
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (other.first[c] < first[c] || other.first[c] + other.n_ticks > first[c] + n_ticks)
      return false;
  }
  return true;
}

void VoltageWindow::merge(const VoltageWindow& other) {
  Tick longest = 0;
  for (std::size_t c = 0; c < first.size(); ++c) {
    const Tick end = std::max(first[c] + n_ticks, other.first[c] + other.n_ticks);
    first[c] = std::min(first[c], other.first[c]);
    longest = std::max(longest, end - first[c]);
  }
  n_ticks = longest;
}

VoltageFill::VoltageFill(const VoltageChunks& chunks, const VoltageWindow& window,
                         SpectraBlocks* blocks, VoltageDumpWriter& writer)
    : chunks_(chunks),
      window_(window),
      blocks_(blocks),
      writer_(writer),
      present_bytes_((chunks.form.n_inputs + 7) / 8),
      done_(window.begin()) {
  if (chunks.form.content == Content::packets)
    packets_.resize(chunks.form.n_rows * window.n_ticks / chunks.form.unit_ticks());
}

VoltageFill::Part VoltageFill::part_of(std::int64_t row, Tick begin, Tick end) const {
  const Tick first = window_.first[row];
  const Tick from = std::max(first, begin), to = std::min(first + window_.n_ticks, end);
  return {from - first, to - from};
}

void VoltageFill::add(const Chunk& chunk) {
  mark_absent(done_, chunk.first_tick);
  if (chunks_.form.content == Content::packets) add_packets(chunk);
  if (chunks_.form.content == Content::spectra) add_spectra(chunk);
  if (chunks_.form.content == Content::samples) add_samples(chunk);
  done_ = chunk.first_tick + chunk.n_ticks;
}

void VoltageFill::add_packets(const Chunk& chunk) {
  const Tick unit = chunks_.form.unit_ticks();
  const std::int64_t unit_bytes = chunks_.form.unit_bytes();
  const std::int64_t chunk_packets = chunks_.chunk_ticks / unit;
  const std::int64_t n_channels = chunks_.form.n_rows, n_packets = window_.n_ticks / unit;
  for (std::int64_t c = 0; c < n_channels;) {
    const Tick first = window_.first[c];
    std::int64_t n = 1;  // channels that begin together are written together
    while (c + n < n_channels && window_.first[c + n] == first) ++n;
    const Part part = part_of(c, chunk.first_tick, chunk.first_tick + chunk.n_ticks);
    if (part.n > 0) {
      const std::int64_t in_chunk = (first + part.first - chunk.first_tick) / unit;
      writer_.write(c, n, part.first / unit, part.n / unit,
                    chunk.payload.data() + (c * chunk_packets + in_chunk) * unit_bytes,
                    chunk_packets);
      for (std::int64_t k = c; k < c + n; ++k)
        std::fill_n(packets_.begin() + k * n_packets + part.first / unit, part.n / unit,
                    std::uint8_t{1});
    }
    c += n;
  }
  for (const AbsentSpan& span : chunk.absent) {
    const Tick first = window_.first[span.input];
    const std::int64_t from = std::max<Tick>(0, (span.begin - first) / unit);
    const std::int64_t to = std::min(n_packets, (span.end - first) / unit);
    for (std::int64_t k = from; k < to; ++k) packets_[span.input * n_packets + k] = 0;
  }
}

void VoltageFill::add_spectra(const Chunk& chunk) {
  chunks_.unpack(chunk, *blocks_);
  const ConstBlockView blocks = blocks_->blocks();
  const SpectraMask& mask = blocks_->mask;
  for (std::int64_t c = 0; c < chunks_.form.n_rows; ++c) {
    const Part part = part_of(c, chunk.first_tick, chunk.first_tick + chunk.n_ticks);
    if (part.n <= 0) continue;
    const std::int64_t in_chunk = window_.first[c] + part.first - chunk.first_tick;
    cells_.resize(part.n * chunks_.form.unit_bytes());
    copy_cells(blocks, c, in_chunk, part.n, cells_.data());
    writer_.write(c, 1, part.first, part.n, cells_.data(), part.n);
    if (blocks_->complete) continue;
    bits_.assign(part.n * present_bytes_, 0);
    for (std::int64_t input = 0; input < chunks_.form.n_inputs; ++input) {
      const std::uint64_t* row =
          mask.bits.data() + c * mask.channel_stride_words + input * mask.words;
      const auto bit = static_cast<std::uint8_t>(1u << (input % 8));
      for (Tick t = 0; t < part.n; ++t)
        if (test_bit(row, in_chunk + t)) bits_[t * present_bytes_ + input / 8] |= bit;
    }
    write_bits(c, part);
  }
}

void VoltageFill::add_samples(const Chunk& chunk) {
  const Part part = part_of(0, chunk.first_tick, chunk.first_tick + chunk.n_ticks);
  if (part.n <= 0) return;
  const Tick begin = window_.first[0] + part.first, end = begin + part.n;
  writer_.write(0, 1, part.first, part.n,
                chunk.payload.data() + (begin - chunk.first_tick) * chunks_.form.unit_bytes(),
                part.n);
  Tick low = end, high = begin;  // where anything is absent
  for (const AbsentSpan& span : chunk.absent) {
    if (span.begin >= end || span.end <= begin) continue;
    low = std::min(low, std::max(span.begin, begin));
    high = std::max(high, std::min(span.end, end));
  }
  if (low >= high) return;
  bits_.assign((high - low) * present_bytes_, 0xff);
  for (const AbsentSpan& span : chunk.absent) {
    const auto others = static_cast<std::uint8_t>(~(1u << (span.input % 8)));
    for (Tick t = std::max(span.begin, low); t < std::min(span.end, high); ++t)
      bits_[(t - low) * present_bytes_ + span.input / 8] &= others;
  }
  write_bits(0, {low - window_.first[0], high - low});
}

// What bits_ holds, unless all is there.
void VoltageFill::write_bits(std::int64_t row, const Part& part) {
  std::int64_t there = 0;
  for (std::int64_t t = 0; t < part.n; ++t)
    for (std::int64_t input = 0; input < chunks_.form.n_inputs; ++input)
      there += bits_[t * present_bytes_ + input / 8] >> (input % 8) & 1;
  n_absent_ += part.n * chunks_.form.n_inputs - there;
  if (there < part.n * chunks_.form.n_inputs)
    writer_.write_present(row, part.first, part.n, bits_.data());
}

// Of packets what was not received is 0 to begin with.
void VoltageFill::mark_absent(Tick begin, Tick end) {
  if (begin >= end || chunks_.form.content == Content::packets) return;
  const std::int64_t at_once = std::max<std::int64_t>(1, kMaxMarked / present_bytes_);
  bits_.assign(std::min(at_once, end - begin) * present_bytes_, 0);
  for (std::int64_t row = 0; row < chunks_.form.n_rows; ++row) {
    const Part part = part_of(row, begin, end);
    for (Tick t = 0; t < part.n; t += at_once)
      write_bits(row, {part.first + t, std::min(at_once, part.n - t)});
  }
}

void VoltageFill::finish(const std::vector<DumpTrigger>& triggers, std::int64_t n_unlisted) {
  mark_absent(done_, window_.end());
  if (chunks_.form.content == Content::packets)
    n_absent_ = std::count(packets_.begin(), packets_.end(), std::uint8_t{0});
  writer_.finish(packets_, triggers, n_unlisted);
}

}  // namespace ryle::pipeline
