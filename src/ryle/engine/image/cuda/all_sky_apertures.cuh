// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

/// Private to the CUDA imager: user apertures. Every antenna and polarization has complex weights
/// of its own on k x k cells, [channel][a][y][x] = X re, im, Y re, im, which no product of two 1-D
/// functions replaces.
namespace ryle::image::detail {

/// As launch_gather_fields(); `args.weights` is the table of apertures.
void launch_gather_aperture_fields(const GatherArgs& args, const float4* values, float4* grid,
                                   cudaStream_t stream);

/// As launch_gather_products(), n_taps = 2 k - 1; the correlated functions are made on the way.
/// `baselines`: the two antennas of every footprint, which lies at the first minus the second.
/// @eq H_xx = XX K_xx, H_yy = YY K_yy, H_u = (XY K_xy + YX K_yx)/2, H_v = -i (XY K_xy - YX K_yx)/2,
///     K_pq(d) = sum_r w_ap(r + d) conj(w_bq(r))
void launch_gather_aperture_products(const GatherArgs& args, const int2* baselines, int n_antennas,
                                     int support, const float4* values, float4* grid,
                                     cudaStream_t stream);

/// What autocorrelations add to the grid: lags [channel][XX, YY, XY][2 k - 1][2 k - 1] complex.
/// @eq L_pq(d) = sum_a P_a,pq sum_r w_ap(r + d) conj(w_aq(r)); powers as of launch_powers()
void launch_aperture_lags(const double* powers, const float* weights, int n_antennas, int support,
                          int n_channels, float2* lags, cudaStream_t stream);
/// Takes the image of the lags out of the first slice of planes [channel][slice][4][y][x].
void launch_subtract_lags(int n_pixels, const float2* lags, int support, int n_channels,
                          int n_slices, float* planes, cudaStream_t stream);

}  // namespace ryle::image::detail
