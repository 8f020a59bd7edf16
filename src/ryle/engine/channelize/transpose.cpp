// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/channelize/transpose.hpp"

#include <cstring>

#include "ryle/core/error.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/channelize/cuda/transpose.hpp"
#endif

namespace ryle::channelize {
namespace {

constexpr std::int64_t kLineBits = 8 * 128;

}  // namespace

std::optional<SampleLayout> transposed_layout(const SampleLayout& from, std::int64_t n_inputs,
                                              std::int64_t n_ticks) {
  const std::int64_t bits = bits_per_sample(from.format);
  const bool words = bits == 8 || bits == 16 || bits == 32;
  if (!words || from.input_stride_bits != bits || from.sample_stride_bits != n_inputs * bits)
    return std::nullopt;
  SampleLayout turned = from;
  turned.sample_stride_bits = bits;
  turned.input_stride_bits = (n_ticks * bits + kLineBits - 1) / kLineBits * kLineBits;
  return turned;
}

std::int64_t transposed_bytes(const SampleLayout& turned, std::int64_t n_inputs) {
  return checked_product({turned.input_stride_bits / 8, n_inputs}, "turned samples");
}

void transpose_samples(Queue& queue, const void* samples, const SampleLayout& from,
                       std::int64_t n_inputs, std::int64_t n_ticks, const SampleLayout& turned,
                       void* to) {
  RYLE_ASSERT(n_ticks * turned.sample_stride_bits <= turned.input_stride_bits);
#ifdef RYLE_HAVE_CUDA
  if (queue.back_end() == BackEnd::cuda) {
    detail::transpose_samples_cuda(queue, samples, n_inputs, n_ticks, turned, to);
    return;
  }
#endif
  const auto bytes = static_cast<std::size_t>(turned.sample_stride_bits / 8);
  struct Work {
    const std::byte* from;
    std::byte* to;
    std::int64_t n_ticks, from_stride, to_stride;
    std::size_t bytes;
  } const work{static_cast<const std::byte*>(samples),
               static_cast<std::byte*>(to),
               n_ticks,
               from.sample_stride_bits / 8,
               turned.input_stride_bits / 8,
               bytes};
  queue.parallel_for(n_inputs, [&work](std::int64_t input) {
    const auto n_bytes = static_cast<std::int64_t>(work.bytes);
    for (std::int64_t t = 0; t < work.n_ticks; ++t) {
      std::memcpy(work.to + input * work.to_stride + t * n_bytes,
                  work.from + t * work.from_stride + input * n_bytes, work.bytes);
    }
  });
}

}  // namespace ryle::channelize
