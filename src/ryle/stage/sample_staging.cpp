// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/sample_staging.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/core/error.hpp"

namespace ryle::stage {
namespace {

// Planar rows move in whole 64-tick groups, so that every format (1 bit included) stays on byte
// boundaries.
constexpr std::int64_t kGroupTicks = 64;

SampleLayout staged_layout(SampleLayout layout, bool planar, std::int64_t capacity) {
  if (planar) layout.input_stride_bits = capacity * layout.sample_stride_bits;
  return layout;
}

std::int64_t round_up(std::int64_t n) { return (n + kGroupTicks - 1) / kGroupTicks * kGroupTicks; }

}  // namespace

SampleStaging::SampleStaging(const SampleLayout& layout, std::int64_t n_inputs,
                             std::int64_t capacity_ticks, MemorySpace space)
    : n_inputs_(n_inputs),
      capacity_(round_up(capacity_ticks)),
      // Interleaved when successive samples of one input leave room for all inputs of an instant.
      planar_(layout.sample_stride_bits == bits_per_sample(layout.format) && n_inputs > 1) {
  if (n_inputs == 1) planar_ = true;
  layout_ = staged_layout(layout, planar_, capacity_);
  const std::int64_t bits =
      planar_ ? checked_product({n_inputs, layout_.input_stride_bits}, "sample staging")
              : checked_product({capacity_, layout_.sample_stride_bits}, "sample staging");
  buffer_ = Buffer<std::byte>(bits / 8 + 64, space);
  absent_.reserve(1024);
}

std::byte* SampleStaging::row(std::int64_t input) const {
  return buffer_.data() + input * layout_.input_stride_bits / 8;
}

std::int64_t SampleStaging::used_bytes() const {
  return planar_ ? buffer_.bytes() : (n_ticks_ * layout_.sample_stride_bits + 7) / 8;
}

void SampleStaging::restart(Tick first) {
  begin_ = first;
  n_ticks_ = 0;
  absent_.clear();
}

void SampleStaging::drop_before(Tick tick) {
  std::int64_t n = std::clamp<std::int64_t>(tick - begin_, 0, n_ticks_);
  if (planar_) n = n / kGroupTicks * kGroupTicks;
  if (n == 0) return;
  const std::int64_t keep_bytes = ((n_ticks_ - n) * layout_.sample_stride_bits + 7) / 8;
  const std::int64_t skip_bytes = n * layout_.sample_stride_bits / 8;
  const std::int64_t rows = planar_ ? n_inputs_ : 1;
  for (std::int64_t p = 0; p < rows; ++p) {
    std::byte* start = planar_ ? row(p) : buffer_.data();
    std::memmove(start, start + skip_bytes, static_cast<std::size_t>(keep_bytes));
  }
  begin_ += n;
  n_ticks_ -= n;
  std::erase_if(absent_, [&](const AbsentSpan& a) { return a.end <= begin_; });
}

void SampleStaging::append(const void* source, const SampleLayout& source_layout,
                           std::int64_t offset, std::int64_t n,
                           std::span<const AbsentSpan> absent) {
  RYLE_ASSERT(n <= free_ticks() && source_layout.sample_stride_bits == layout_.sample_stride_bits);
  const auto* from = static_cast<const std::byte*>(source);
  const std::int64_t bits = layout_.sample_stride_bits;
  RYLE_ASSERT(n_ticks_ * bits % 8 == 0 && offset * bits % 8 == 0);
  const std::int64_t n_bytes = (n * bits + 7) / 8;
  const std::int64_t rows = planar_ ? n_inputs_ : 1;
  for (std::int64_t p = 0; p < rows; ++p) {
    const std::byte* source_row =
        from + (planar_ ? p * source_layout.input_stride_bits / 8 : 0) + offset * bits / 8;
    std::byte* target = (planar_ ? row(p) : buffer_.data()) + n_ticks_ * bits / 8;
    std::memcpy(target, source_row, static_cast<std::size_t>(n_bytes));
  }
  const Tick first = end();
  for (const auto& a : absent) {
    const AbsentSpan clipped{a.input, std::max(a.begin, first), std::min(a.end, first + n)};
    if (clipped.begin < clipped.end) absent_.push_back(clipped);
  }
  n_ticks_ += n;
}

void SampleStaging::append_absent(std::int64_t n) {
  RYLE_ASSERT(n <= free_ticks());
  const std::int64_t bits = layout_.sample_stride_bits;
  const std::int64_t rows = planar_ ? n_inputs_ : 1;
  for (std::int64_t p = 0; p < rows; ++p) {
    std::byte* target = (planar_ ? row(p) : buffer_.data()) + n_ticks_ * bits / 8;
    std::memset(target, 0, static_cast<std::size_t>((n * bits + 7) / 8));
  }
  for (std::int64_t p = 0; p < n_inputs_; ++p) absent_.push_back({p, end(), end() + n});
  n_ticks_ += n;
}

}  // namespace ryle::stage
