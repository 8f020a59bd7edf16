// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <vector>

#include "ryle/engine/image/cuda/all_sky_host.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

/// Private to the CUDA imager: direct Fourier sums of visibilities on tensor cores. Pointers are
/// device memory.
/// @eq I(l,m) = 2 Re sum_b conj(s_b) sum_{a<b} V_ab s_a, s_a = exp(-2 pi i (nu/c) r_a.(l, m, n-1)),
///     V_ab with the heights phased to zenith
namespace ryle::image::detail {

inline constexpr int kDftPixels = 64;  ///< directions a thread block sums for
/// Up to here operands are sums of two halves (22 bits); above, rounding to 11 bits averages out
/// over the baselines: error / peak 7e-5 at 100 antennas, falling as 1 / antennas.
inline constexpr std::int64_t kDftSplitAntennas = 224;

struct DftArgs {
  int n_antennas = 0;
  int n_channels = 0;
  int n_directions = 0;
  std::int64_t n_baselines = 0;
  bool autos = false;
  bool split = false;                   ///< operands as two halves each
  const double* waves_per_m = nullptr;  ///< [channel] nu / c
  const double* enu_m = nullptr;        ///< [a][3]
  const double* direction = nullptr;    ///< [direction][3] l, m, n - 1
  const int* pixel = nullptr;           ///< [direction] where it goes in a plane
};
/// Directions above the horizon, l, m, n - 1, and where they go in a plane.
void dft_directions(const AllSkyConfig& config, std::vector<double>& directions,
                    std::vector<std::int32_t>& pixels);
/// Positions of the used antennas and nu / c of the channels.
void dft_array(const AllSkyConfig& config, const ArrayOfUsed& used, std::vector<double>& enu_m,
               std::vector<double>& waves_per_m);
/// Tiles of 16 x 16 antennas on and below the diagonal.
inline std::int64_t dft_tiles(std::int64_t n_antennas) {
  const std::int64_t n = (n_antennas + 15) / 16;
  return n * (n + 1) / 2;
}
/// Bytes of shared memory; the number of antennas is limited by it.
std::int64_t dft_shared_bytes(std::int64_t n_antennas, bool split);
void prepare_dft(bool split, std::int64_t shared_bytes);

/// Products as fp16 in the order of the matrix unit's registers: [channel][product][tile][lane][8]
/// words (split: 16, what the rounding left behind), scaled by the largest of the channel, which
/// goes to largest[channel] (float bits).
void launch_dft_operands(const DftArgs& args, const float4* products, unsigned* largest,
                         uint4* operands, cudaStream_t stream);
/// sums [channel][product][direction].
void launch_dft(const DftArgs& args, const uint4* operands, const unsigned* largest, float* sums,
                cudaStream_t stream);
/// Fills pixels [bin][plane][n_pixels]; those without a direction become NaN.
void launch_dft_finish(const DftArgs& args, const float* sums, const FinishArgs& finish,
                       std::int64_t n_pixels, cudaStream_t stream);

}  // namespace ryle::image::detail
