// SPDX-License-Identifier: BSD-3-Clause
// Kernels that copy and fill rows of device memory, a warp a row, and kernels that make the weights
// of trials from the mask. cuda/rows.hpp has the layout of every array. Each moves its bytes once.
#include <type_traits>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/rows.hpp"
#include "ryle/engine/search/normalize.hpp"

namespace ryle::search {
namespace {

constexpr int kWarpsOfRows = 8;

struct RowSides {
  std::uint8_t* to;
  const std::uint8_t* from;
  std::int64_t to_outer, to_inner, from_outer, from_inner, n_rows, n_inner, n_words;
};

/// Copies a row by a warp. Word: 1, 4 or 16 bytes, what the alignment allows.
template <class Word>
__global__ void copy_kernel(const RowSides r) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarpsOfRows + threadIdx.x / 32;
  if (row >= r.n_rows) return;
  const std::int64_t outer = row / r.n_inner, inner = row % r.n_inner;
  auto* to = reinterpret_cast<Word*>(r.to + outer * r.to_outer + inner * r.to_inner);
  const auto* from =
      reinterpret_cast<const Word*>(r.from + outer * r.from_outer + inner * r.from_inner);
  for (std::int64_t k = threadIdx.x % 32; k < r.n_words; k += 32) to[k] = from[k];
}

/// Fills a row by a warp.
template <class Word>
__global__ void fill_kernel(const RowSides r, const Word value) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarpsOfRows + threadIdx.x / 32;
  if (row >= r.n_rows) return;
  auto* to =
      reinterpret_cast<Word*>(r.to + row / r.n_inner * r.to_outer + row % r.n_inner * r.to_inner);
  for (std::int64_t k = threadIdx.x % 32; k < r.n_words; k += 32) to[k] = value;
}

/// weights[trial][cell] = sums[trial][cell] / full. A thread block a trial.
template <class Sum>
__global__ void weights_kernel(const Sum* sums, std::int64_t n_cells, float full, float* weights,
                               std::int64_t weight_stride) {
  const std::int64_t trial = blockIdx.x;
  for (std::int64_t k = threadIdx.x; k < n_cells; k += blockDim.x)
    weights[trial * weight_stride + k] = static_cast<float>(sums[trial * n_cells + k]) / full;
}

/// Lists the channels of each beam that have a cell that is not full. A warp a channel.
__global__ void masked_channels_kernel(const DeviceMask m, std::int32_t* channels,
                                       std::int32_t* counts) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarpsOfRows + threadIdx.x / 32;
  if (row >= m.n_beams * m.n_channels) return;
  const std::int64_t beam = row / m.n_channels, channel = row % m.n_channels;
  const std::uint8_t* cells = m.cells + beam * m.beam_stride + channel * m.channel_stride;
  bool masked = false;
  for (std::int64_t k = threadIdx.x % 32; k < m.n_cells; k += 32) masked |= cells[k] != kFullCell;
  if (__any_sync(0xffffffffu, masked) == 0 || threadIdx.x % 32 != 0) return;
  channels[beam * m.n_channels + atomicAdd(&counts[beam], 1)] = static_cast<std::int32_t>(channel);
}

/// weights[trial][cell] = (all channels full, less what the listed channels lack at their delays) /
/// full. A thread block a trial.
__global__ void masked_weights_kernel(const DeviceMask m, const std::int32_t* channels,
                                      std::int64_t n_masked, const std::int32_t* delays, float full,
                                      float* weights, std::int64_t weight_stride) {
  const std::int32_t* delay = delays + blockIdx.x * m.n_channels;
  for (std::int64_t k = threadIdx.x; k < m.n_cells; k += blockDim.x) {
    auto sum = static_cast<std::int32_t>(m.n_channels) * kFullCell;
    for (std::int64_t i = 0; i < n_masked; ++i) {
      const std::int32_t c = channels[i];
      sum -= kFullCell - m.cells[c * m.channel_stride + k + delay[c]];
    }
    weights[blockIdx.x * weight_stride + k] = static_cast<float>(sum) / full;
  }
}

RowSides sides_of(const DeviceRows& rows, const void* from, std::int64_t from_outer,
                  std::int64_t from_inner) {
  return {static_cast<std::uint8_t*>(rows.to),
          static_cast<const std::uint8_t*>(from),
          rows.to_outer,
          rows.to_inner,
          from_outer,
          from_inner,
          rows.n_outer * rows.n_inner,
          rows.n_inner,
          rows.n_bytes};
}

unsigned blocks_of(const RowSides& r) {
  return static_cast<unsigned>((r.n_rows + kWarpsOfRows - 1) / kWarpsOfRows);
}

/// Greatest power of two up to 16 that divides all addresses.
int alignment_of(const RowSides& r) {
  const std::uint64_t all =
      reinterpret_cast<std::uintptr_t>(r.to) | reinterpret_cast<std::uintptr_t>(r.from) |
      static_cast<std::uint64_t>(r.to_outer | r.to_inner | r.from_outer | r.from_inner | r.n_words);
  return all % 16 == 0 ? 16 : all % 4 == 0 ? 4 : 1;
}

template <class Word>
void launch_copy(RowSides r, cudaStream_t stream) {
  r.n_words /= static_cast<std::int64_t>(sizeof(Word));
  copy_kernel<Word><<<blocks_of(r), 32 * kWarpsOfRows, 0, stream>>>(r);
  RYLE_CUDA_LAUNCHED("copy of rows");
}

}  // namespace

void copy_rows(Queue& queue, const DeviceRows& rows, const void* from, std::int64_t from_outer,
               std::int64_t from_inner) {
  const RowSides r = sides_of(rows, from, from_outer, from_inner);
  if (r.n_rows == 0 || r.n_words == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  const auto stream = cuda::stream_of(queue);
  switch (alignment_of(r)) {
    case 16:
      return launch_copy<uint4>(r, stream);
    case 4:
      return launch_copy<std::uint32_t>(r, stream);
    default:
      return launch_copy<std::uint8_t>(r, stream);
  }
}

void transfer_rows(Queue& queue, const DeviceRows& rows, const void* from, std::int64_t from_outer,
                   std::int64_t from_inner) {
  if (rows.n_bytes == 0 || rows.n_inner == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  for (std::int64_t k = 0; k < rows.n_outer; ++k)
    RYLE_CUDA(cudaMemcpy2DAsync(
        static_cast<std::uint8_t*>(rows.to) + k * rows.to_outer,
        static_cast<std::size_t>(rows.to_inner),
        static_cast<const std::uint8_t*>(from) + k * from_outer,
        static_cast<std::size_t>(from_inner), static_cast<std::size_t>(rows.n_bytes),
        static_cast<std::size_t>(rows.n_inner), cudaMemcpyDefault, cuda::stream_of(queue)));
}

void fill_rows(Queue& queue, const DeviceRows& rows, std::uint8_t value) {
  const RowSides r = sides_of(rows, nullptr, 0, 0);
  if (r.n_rows == 0 || r.n_words == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  fill_kernel<std::uint8_t>
      <<<blocks_of(r), 32 * kWarpsOfRows, 0, cuda::stream_of(queue)>>>(r, value);
  RYLE_CUDA_LAUNCHED("fill of rows");
}

void fill_rows(Queue& queue, const DeviceRows& rows, float value) {
  RowSides r = sides_of(rows, nullptr, 0, 0);
  if (r.n_rows == 0 || r.n_words == 0) return;
  r.n_words /= 4;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  fill_kernel<float><<<blocks_of(r), 32 * kWarpsOfRows, 0, cuda::stream_of(queue)>>>(r, value);
  RYLE_CUDA_LAUNCHED("fill of rows");
}

void weights_from_sums(Queue& queue, const void* sums, SumFormat format, std::int64_t n_trials,
                       std::int64_t n_cells, float full, float* weights,
                       std::int64_t weight_stride) {
  if (n_trials == 0 || n_cells == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  const auto blocks = static_cast<unsigned>(n_trials);
  const auto stream = cuda::stream_of(queue);
  if (format == SumFormat::u16)
    weights_kernel<<<blocks, 128, 0, stream>>>(static_cast<const std::uint16_t*>(sums), n_cells,
                                               full, weights, weight_stride);
  else
    weights_kernel<<<blocks, 128, 0, stream>>>(static_cast<const std::uint32_t*>(sums), n_cells,
                                               full, weights, weight_stride);
  RYLE_CUDA_LAUNCHED("weights from sums");
}

void find_masked_channels(Queue& queue, const DeviceMask& mask, std::int32_t* channels,
                          std::int32_t* counts) {
  if (mask.n_beams == 0 || mask.n_channels == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  const auto stream = cuda::stream_of(queue);
  RYLE_CUDA(
      cudaMemsetAsync(counts, 0, static_cast<std::size_t>(mask.n_beams) * sizeof(*counts), stream));
  const std::int64_t rows = mask.n_beams * mask.n_channels;
  masked_channels_kernel<<<static_cast<unsigned>((rows + kWarpsOfRows - 1) / kWarpsOfRows),
                           32 * kWarpsOfRows, 0, stream>>>(mask, channels, counts);
  RYLE_CUDA_LAUNCHED("masked channels");
}

void weights_from_masked(Queue& queue, const DeviceMask& cells, const std::int32_t* channels,
                         std::int64_t n_masked, const std::int32_t* delays, std::int64_t n_trials,
                         float full, float* weights, std::int64_t weight_stride) {
  if (n_trials == 0 || cells.n_cells == 0) return;
  const cuda::DeviceScope scope(cuda::device_of(queue));
  masked_weights_kernel<<<static_cast<unsigned>(n_trials), 128, 0, cuda::stream_of(queue)>>>(
      cells, channels, n_masked, delays, full, weights, weight_stride);
  RYLE_CUDA_LAUNCHED("weights from masked channels");
}

}  // namespace ryle::search
