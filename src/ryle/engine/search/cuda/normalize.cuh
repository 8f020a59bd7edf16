// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include "ryle/engine/search/cuda/normalize_work.hpp"

/// Private to the normalizer on the device: its kernels, launched.
namespace ryle::search::detail {

void launch_absent(const NormalizeWork& work, cudaStream_t stream);
void launch_measure(const NormalizeWork& work, cudaStream_t stream);
void launch_medians(const NormalizeWork& work, cudaStream_t stream);
void launch_scales(const NormalizeWork& work, cudaStream_t stream);
/// Codes of `n_beams` beams from `beam` on, and sums of their groups of channels in the same pass.
void launch_codes(const NormalizeWork& work, const BurstWork& burst, int beam, int n_beams,
                  cudaStream_t stream);
void launch_keep_cells(const NormalizeWork& work, cudaStream_t stream);

/// Memory for w.flag_room, which the current device wants with so many channels; 0: its shared
/// memory suffices.
std::int64_t flag_room_bytes(std::int64_t n_channels);
void launch_flag_channels(const NormalizeWork& work, const FlagWork& flag, cudaStream_t stream);
void launch_flag_cells(const NormalizeWork& work, const FlagWork& flag, cudaStream_t stream);

/// Marks the numbers of samples that cells have.
void launch_count_samples(const NormalizeWork& work, const KurtosisWork& kurtosis,
                          cudaStream_t stream);
void launch_flag_kurtosis(const NormalizeWork& work, const KurtosisWork& kurtosis,
                          cudaStream_t stream);
/// What all channels do at once, and how each responds; masked spectra are out.
void launch_common(const NormalizeWork& work, bool weighted, cudaStream_t stream);

/// n columns of the ring from `first` on, of `n_beams` beams from `beam` on.
void launch_band(const BurstWork& burst, int beam, int n_beams, std::int64_t first, std::int64_t n,
                 cudaStream_t stream);
void launch_find_bursts(const BurstWork& burst, int n_beams, cudaStream_t stream);

}  // namespace ryle::search::detail
