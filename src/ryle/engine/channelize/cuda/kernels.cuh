// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/channelize/cuda/ramp.hpp"

// clang-format off
/// Private to the CUDA channelizer: the arguments of its three kernels. Pointers are device memory unless
/// said otherwise.
///
///   ramps    delay polynomials -> first sample, phase base and slope of every (input, spectrum)
///   spectra  samples -> unpack, FIR, transform -> fp32 spectra in a scratch that stays in the L2 cache
///   post     spectra -> phase, gain, dither, rounding, statistics -> planar blocks
// clang-format on
///
/// Work is counted in units: one input x the spectra of one output block. Unit u = block * n_inputs
/// + input.
namespace ryle::channelize::detail {

inline constexpr int kMaxStages = 24;
inline constexpr int kThreads = 256;

/// Transform of n points as stages of one radix each (Stockham: sorted output, no bit reversal).
struct CudaTransform {
  int n_points = 0;
  int n_stages = 0;
  int radix[kMaxStages] = {};
  unsigned inverse_stride[kMaxStages] =
      {};  ///< floor(2^32 / d) + 1 of the product d of the radices before; 0: d = 1
  unsigned inverse_butterflies[kMaxStages] = {};  ///< the same of n_points / radix
  const float2* roots = nullptr;                  ///< exp(-2 pi i k / n_points)
};

struct RampArguments {
  const std::uint64_t* valid = nullptr;  ///< [input][valid_words]
  std::int64_t valid_words = 0;
  const DelayPolynomial* delays = nullptr;
  CudaRamp* ramps = nullptr;  ///< [input][max_spectra]
  int n_inputs = 0;
  int n_spectra = 0;
  std::int64_t max_spectra = 0;
  std::int64_t first_spectrum = 0;
  std::int64_t n_points = 0;  ///< K
  std::int64_t n_filter = 0;
  std::int64_t step = 0;
  std::int64_t zero_channel = 0;
  double sample_rate_hz = 0;
  double reference_hz = 0;
};

/// Which units of the call one launch does, and which spectra exist.
struct UnitRange {
  int first_unit = 0;
  int n_units = 0;
  int n_inputs = 0;
  int n_spectra = 0;
  int spectra_per_unit = 0;
  const CudaRamp* ramps = nullptr;  ///< [input][max_spectra]
  std::int64_t max_spectra = 0;
};

struct SpectraArguments {
  UnitRange units;
  CudaTransform transform;
  const void* samples = nullptr;
  Tick first_tick = 0;
  SampleLayout layout;
  const float* filter = nullptr;     ///< [tap][K]
  const float2* untangle = nullptr;  ///< exp(-2 pi i k / 2 n_points), real input only
  std::int64_t step = 0;
  int n_taps = 0;
  int group = 1;              ///< spectra a thread block transforms together
  float2* spectra = nullptr;  ///< [unit of the launch][spectrum][bin]
  float2* work = nullptr;  ///< second buffer of the same shape when the transform does not fit in
                           ///< shared memory
};

struct PostArguments {
  UnitRange units;
  const float2* spectra = nullptr;
  int n_bins = 0;
  int n_points = 0;
  int zero_channel = 0;
  int sense = 1;
  int n_channels = 0;
  const float2* gains = nullptr;                ///< [input][channel]
  const std::uint32_t* channel_keys = nullptr;  ///< dither_channel_key() of every channel
  bool dither = false;
  bool truncate = false;
  BlockView blocks;
  CudaStatistics* statistics = nullptr;  ///< [channel][input] or null
};

/// Bytes of shared memory for `group` spectra of n points (two buffers, padded against bank
/// conflicts).
std::int64_t spectra_shared_bytes(std::int64_t n_points, std::int64_t group);
/// Raises the shared-memory limit of the kernels; call once per device before launching.
void prepare_spectra();
/// Thread blocks of the spectra kernel that the device runs at a time.
std::int64_t concurrent_groups(std::int64_t shared_bytes, int device);

void launch_ramps(const RampArguments& arguments, cudaStream_t stream);
void launch_spectra(const SpectraArguments& arguments, std::int64_t shared_bytes,
                    cudaStream_t stream);
void launch_post(const PostArguments& arguments, cudaStream_t stream);

}  // namespace ryle::channelize::detail
