// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/cuda/normalize_flags.cuh"

#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/search/cuda/normalize.cuh"

namespace ryle::search::detail {

namespace {

/// n_blocks thread blocks, each with arrays of its own.
template <class InShared, class InRoom, class Decide>
void launch_decisions(InShared in_shared, InRoom in_room, const NormalizeWork& w,
                      const Decide& decide, int n_blocks, cudaStream_t stream) {
  if (w.flag_room == nullptr) {
    cuda::allow_all_shared(in_shared);
    in_shared<<<static_cast<unsigned>(n_blocks), kSelectThreads,
                static_cast<std::size_t>(kFlagChannel_bytes * w.n_channels), stream>>>(
        w, decide, FlagRoom{nullptr, 0, 0});
    return;
  }
  for (int first = 0; first < n_blocks; first += kFlagRoomBlocks)
    in_room<<<static_cast<unsigned>(std::min(kFlagRoomBlocks, n_blocks - first)), kSelectThreads, 0,
              stream>>>(w, decide, FlagRoom{w.flag_room, flag_room_stride(w.n_channels), first});
}

}  // namespace

std::int64_t flag_room_bytes(std::int64_t n_channels) {
  const int maximum = cuda::max_dynamic_shared(cells_kernel<true>);
  const int max_channels = cuda::max_dynamic_shared(channels_kernel<true>);
  return device_flag_room_bytes(n_channels, std::min(maximum, max_channels));
}

void launch_flag_channels(const NormalizeWork& w, const FlagWork& f, cudaStream_t stream) {
  launch_decisions(channels_kernel<true>, channels_kernel<false>, w, f, w.n_beams, stream);
  RYLE_CUDA_LAUNCHED("flags of channels");
}

void launch_flag_cells(const NormalizeWork& w, const FlagWork& f, cudaStream_t stream) {
  launch_decisions(cells_kernel<true>, cells_kernel<false>, w, f, w.n_beams * w.n_cells, stream);
  RYLE_CUDA_LAUNCHED("flags of cells");
}

void launch_count_samples(const NormalizeWork& w, const KurtosisWork& k, cudaStream_t stream) {
  const std::int64_t jobs = static_cast<std::int64_t>(w.n_beams) * w.n_channels * w.n_cells;
  count_samples_kernel<<<static_cast<unsigned>((jobs + 255) / 256), 256, 0, stream>>>(w, k, jobs);
  RYLE_CUDA_LAUNCHED("samples of cells");
}

void launch_flag_kurtosis(const NormalizeWork& w, const KurtosisWork& k, cudaStream_t stream) {
  launch_decisions(kurtosis_kernel<true>, kurtosis_kernel<false>, w, k, w.n_beams * w.n_cells,
                   stream);
  RYLE_CUDA_LAUNCHED("spectral kurtosis");
}

void launch_band(const BurstWork& b, int beam, int n_beams, std::int64_t first, std::int64_t n,
                 cudaStream_t stream) {
  if (n <= 0) return;
  band_kernel<<<dim3(static_cast<unsigned>((n + 255) / 256), static_cast<unsigned>(n_beams)), 256,
                0, stream>>>(b, beam, first, n);
  RYLE_CUDA_LAUNCHED("band sums");
}

void launch_find_bursts(const BurstWork& b, int n_beams, cudaStream_t stream) {
  cuda::allow_all_shared(bursts_kernel);
  bursts_kernel<<<static_cast<unsigned>(n_beams * kBurstWidths), kSelectThreads,
                  static_cast<std::size_t>(burst_list_bytes(static_cast<int>(b.n_past + b.n))),
                  stream>>>(b);
  RYLE_CUDA_LAUNCHED("bursts");
}

}  // namespace ryle::search::detail
