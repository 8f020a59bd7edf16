// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/sample_staging.hpp"

#include <algorithm>
#include <cstring>

#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

/// With all workers of a CPU queue.
void copy(Queue& queue, std::byte* to, const std::byte* from, std::int64_t bytes) {
  constexpr std::int64_t kSliceBytes = 512 << 10;
  const auto copy_slice = [=](std::int64_t i) {
    const std::int64_t begin = i * kSliceBytes;
    std::memcpy(to + begin, from + begin,
                static_cast<std::size_t>(std::min(kSliceBytes, bytes - begin)));
  };
  const std::int64_t n_slices = (bytes + kSliceBytes - 1) / kSliceBytes;
  if (queue.back_end() == BackEnd::cpu && n_slices > 1) {
    queue.parallel_for(n_slices, copy_slice);
  } else {
    for (std::int64_t i = 0; i < n_slices; ++i) copy_slice(i);
  }
}

}  // namespace

SampleStaging::SampleStaging(const SampleLayout& layout, std::int64_t n_inputs,
                             std::int64_t capacity_ticks, MemorySpace space)
    : layout_(layout),
      n_inputs_(n_inputs),
      capacity_((capacity_ticks + kGroupTicks - 1) / kGroupTicks * kGroupTicks) {
  if (layout.input_stride_bits * n_inputs > layout.sample_stride_bits) {
    throw ConfigError("samples must be time-major (all inputs of an instant together)");
  }
  // Room past the end: engines may load whole words.
  constexpr std::int64_t kSlackBytes = 64;
  buffer_ = Buffer<std::byte>(
      checked_product({capacity_, layout.sample_stride_bits}, "sample staging") / 8 + kSlackBytes,
      space);
  absent_.reserve(1024);
}

void SampleStaging::restart(Tick first) {
  begin_ = first;
  n_ticks_ = 0;
  absent_.clear();
}

void SampleStaging::drop_before(Tick tick, Queue& queue) {
  const std::int64_t n =
      std::clamp<std::int64_t>(tick - begin_, 0, n_ticks_) / kGroupTicks * kGroupTicks;
  if (n == 0) return;
  const std::int64_t kept = n_ticks_ - n;
  if (kept <= n) {
    copy(queue, buffer_.data(), buffer_.data() + bytes_of(n), bytes_of(kept));
  } else {  // the parts overlap
    std::memmove(buffer_.data(), buffer_.data() + bytes_of(n),
                 static_cast<std::size_t>(bytes_of(kept)));
  }
  begin_ += n;
  n_ticks_ -= n;
  std::erase_if(absent_, [&](const AbsentSpan& a) { return a.end <= begin_; });
}

void SampleStaging::append(const void* source, std::int64_t offset, std::int64_t n,
                           std::span<const AbsentSpan> absent, Queue& queue) {
  RYLE_ASSERT(n <= free_ticks());
  RYLE_ASSERT(n_ticks_ * layout_.sample_stride_bits % 8 == 0 &&
              offset * layout_.sample_stride_bits % 8 == 0);
  std::byte* to = buffer_.data() + bytes_of(n_ticks_);
  const std::byte* from = static_cast<const std::byte*>(source) + bytes_of(offset);
  const std::int64_t bytes = bytes_of(n);
  copy(queue, to, from, bytes);
  for (const auto& a : absent) {
    const AbsentSpan clipped{a.input, std::max(a.begin, end()), std::min(a.end, end() + n)};
    if (clipped.begin < clipped.end) absent_.push_back(clipped);
  }
  n_ticks_ += n;
}

void SampleStaging::append_absent(std::int64_t n) {
  RYLE_ASSERT(n <= free_ticks());
  std::memset(buffer_.data() + bytes_of(n_ticks_), 0, static_cast<std::size_t>(bytes_of(n)));
  for (std::int64_t p = 0; p < n_inputs_; ++p) absent_.push_back({p, end(), end() + n});
  n_ticks_ += n;
}

}  // namespace ryle::pipeline
