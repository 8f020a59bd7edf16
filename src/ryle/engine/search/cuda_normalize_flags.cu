// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/cuda_normalize_flags.cuh"

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/search/cuda_normalize.cuh"

namespace ryle::search::detail {

void launch_flag_channels(const NormalizeWork& w, const FlagWork& f, cudaStream_t stream) {
  const int bytes = kBytesPerChannel * w.n_channels;
  cuda::allow_all_shared(channels_kernel);
  channels_kernel<<<static_cast<unsigned>(w.n_beams), kSelectThreads,
                    static_cast<std::size_t>(bytes), stream>>>(w, f);
  RYLE_CUDA_LAUNCHED("flags of channels");
}

void launch_flag_cells(const NormalizeWork& w, const FlagWork& f, cudaStream_t stream) {
  const int bytes = kBytesPerChannel * w.n_channels;
  cuda::allow_all_shared(cells_kernel);
  cells_kernel<<<static_cast<unsigned>(w.n_beams) * static_cast<unsigned>(w.n_cells),
                 kSelectThreads, static_cast<std::size_t>(bytes), stream>>>(w, f);
  RYLE_CUDA_LAUNCHED("flags of cells");
}

void launch_count_samples(const NormalizeWork& w, const KurtosisWork& k, cudaStream_t stream) {
  const std::int64_t jobs = static_cast<std::int64_t>(w.n_beams) * w.n_channels * w.n_cells;
  count_samples_kernel<<<static_cast<unsigned>((jobs + 255) / 256), 256, 0, stream>>>(w, k, jobs);
  RYLE_CUDA_LAUNCHED("samples of cells");
}

void launch_flag_kurtosis(const NormalizeWork& w, const KurtosisWork& k, cudaStream_t stream) {
  const int bytes = kBytesPerChannel * w.n_channels;
  cuda::allow_all_shared(kurtosis_kernel);
  kurtosis_kernel<<<static_cast<unsigned>(w.n_beams) * static_cast<unsigned>(w.n_cells),
                    kSelectThreads, static_cast<std::size_t>(bytes), stream>>>(w, k);
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
