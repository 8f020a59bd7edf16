// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "ryle/engine/beamform/beamform.hpp"

/// Private to the CUDA beamformer: what its kernels take. Pointers are device memory.
namespace ryle::beamform::detail {

inline constexpr int kGroupSpectra = 64;  ///< spectra a warp works on at a time
inline constexpr int kSlabRows = 16;      ///< beams of one tensor-core operand
inline constexpr int kStepAntennas = 32;  ///< antennas of one tensor-core operand

/// Samples as they came.
struct CudaSamples {
  const std::uint8_t* data = nullptr;
  std::int64_t channel_stride_bytes = 0;
  std::int64_t step_stride_bytes = 0;
  std::int64_t block_spectra = 0;  ///< 0 = [time][input]
  int n_inputs = 0;
  int n_pols = 1;
  SampleFormat format = SampleFormat::ci4;
  const char2* table = nullptr;  ///< value of each byte; nullptr = as the format says
};

/// Factors for lost inputs, [pol][row][channel][slot]; nullptr = nothing lost.
struct CudaFactors {
  const float* factor = nullptr;
  std::int64_t n_rows = 0;
  std::int64_t n_channels = 0;
  std::int64_t n_slots = 1;
  std::int64_t slot_spectra = 1;
};

/// What was summed of an unfinished window: runs of 64 spectra in `outer`, the last run in `inner`.
struct CudaWindow {
  float inner, outer, count;
};

/// Detection, integration, requantisation of what the plain or tensor kernels left in memory; see
/// reference.cpp. Channels [first_channel, +n_channels), spectra [first_spectrum, +n_spectra) of a
/// gulp.
struct FinishArgs {
  const float2* sums = nullptr;   ///< [pol][channel][beam][pitch], before the scale of the weights
  const float* powers = nullptr;  ///< instead: [pol][channel][row][pitch], each of inner_spectra
  std::int64_t pitch = 0;
  std::int64_t inner_spectra = 1;  ///< spectra already added up in each of `powers`
  float power_scale = 1;
  bool scaled = false;  ///< `powers` hold the scale of weights and losses already
  int first_row = 0;
  int n_rows = 0;  ///< in this launch
  int first_channel = 0;
  int n_channels = 0;
  int all_channels = 0;
  int n_pols = 1;
  int first_product = 0;  ///< of `powers`
  int n_products = 1;     ///< [row][product][channel] tables
  std::int64_t first_spectrum = 0;
  std::int64_t n_spectra = 0;
  Tick gulp_tick = 0;
  std::int64_t integration = 1;
  OutputKind kind = OutputKind::power;
  OutputFormat format = OutputFormat::f32;
  bool divide_by_all = false;           ///< LossMode::raw
  const float* weight_scale = nullptr;  ///< [beam][pol][channel]
  CudaFactors loss;
  const float* scale = nullptr;  ///< [row][product][channel]
  const float* offset = nullptr;
  const CudaWindow* windows_in = nullptr;  ///< [row][product][channel]
  CudaWindow* windows_out = nullptr;
  std::byte* values = nullptr;
  std::int64_t row_stride_bytes = 0, product_stride_bytes = 0, channel_stride_bytes = 0;
  std::uint32_t* low = nullptr;
  std::uint32_t* high = nullptr;
  bool dither = false;
  std::uint64_t seed = 0;
};
void launch_finish(const FinishArgs& args, cudaStream_t stream);

/// Plain complex sums in fp32, antennas in order. weights float2 [beam][channel][input].
struct PlainArgs {
  CudaSamples samples;
  const float2* weights = nullptr;
  int n_antennas = 0;
  int n_beams = 0;
  int all_channels = 0;
  int first_channel = 0;
  int n_channels = 0;
  std::int64_t first_spectrum = 0;
  std::int64_t n_spectra = 0;
  float2* sums = nullptr;  ///< [pol][channel][beam][pitch]
  std::int64_t pitch = 0;
};
void launch_plain(const PlainArgs& args, cudaStream_t stream);

/// @eq power[pol][channel][row][spectrum] = sum over antennas with mask of |v|^2
struct IncoherentArgs {
  CudaSamples samples;
  const std::uint8_t* mask = nullptr;  ///< [row][antenna]
  int n_rows = 0;
  int n_antennas = 0;
  int first_channel = 0;
  int n_channels = 0;
  std::int64_t first_spectrum = 0;
  std::int64_t n_spectra = 0;
  float* powers = nullptr;
  std::int64_t pitch = 0;
};
void launch_incoherent(const IncoherentArgs& args, cudaStream_t stream);

/// Factors of lost inputs, and the counts of a gulp.
struct LossArgs {
  const char2* codes = nullptr;  ///< weights [beam][channel][input], one of the two
  const float2* floats = nullptr;
  const float* weight_scale = nullptr;
  const std::uint8_t* mask = nullptr;  ///< incoherent rows [row][antenna]
  const std::uint64_t* present = nullptr;
  bool present_per_channel = true;
  std::int64_t n_slots = 1, slot_spectra = 1, n_spectra = 0;
  int n_beams = 0, n_incoherent = 0, n_channels = 0, n_inputs = 0, n_pols = 1;
  bool raw = false;
  bool needs_all_pols = false;               ///< a power needs all pols of its spectrum
  const std::uint32_t* full_used = nullptr;  ///< [beam][channel], nothing lost
  const float* full_power = nullptr;
  float* factor = nullptr;
  std::uint32_t* n_used = nullptr;
  float* weight_power = nullptr;
};
/// present == nullptr: counts from full_used and full_power.
void launch_loss(const LossArgs& args, cudaStream_t stream);
/// n_used and weight_power of one spectrum with nothing lost.
void launch_full_counts(const LossArgs& args, cudaStream_t stream);

/// Any input in the order the tensor-core kernels read: [channel][plane][time][padded antennas];
/// one plane of nibbles, or two of bytes (real, imaginary).
struct RepackArgs {
  CudaSamples samples;
  int pol = 0;
  int n_antennas = 0;
  int n_steps = 0;  ///< of 32 antennas
  bool bytes = false;
  bool pair_order = false;  ///< order of antennas in a step as BEST-2 heaps give it
  int n_channels = 0;
  std::int64_t n_spectra = 0;
  std::uint8_t* out = nullptr;
};
void launch_repack(const RepackArgs& args, cudaStream_t stream);

/// Codes [beam][channel][input] -> operands of the tensor cores:
/// fragments [pol][channel][slab][step][Wr, -Wi, Wi][lane].
struct PackArgs {
  const char2* codes = nullptr;
  int n_beams = 0, n_channels = 0, n_antennas = 0, n_pols = 1;
  int n_slabs = 0, n_steps = 0;
  bool pair_order = false;
  uint4* fragments = nullptr;
};
void launch_pack(const PackArgs& args, cudaStream_t stream);

enum class FusedOutput : std::uint8_t { integrated, power_f32, power_u8, cf32, cf16, ci8 };
enum class FusedLayout : std::uint8_t { pairs4, spectra4, spectra8 };

/// One pol of a gulp through the tensor cores, to one product.
struct FusedArgs {
  FusedLayout layout = FusedLayout::pairs4;
  FusedOutput output = FusedOutput::integrated;
  const std::uint8_t* samples = nullptr;
  std::int64_t channel_stride_bytes = 0;
  std::int64_t block_stride_bytes = 0;  ///< pairs
  int groups_per_block = 1;
  int block_shift = -1;  ///< its logarithm; -1 = no power of two
  int pair_stride_bytes = 0;
  int step_stride_bytes = 0;            ///< spectra: to the next spectrum
  std::int64_t plane_stride_bytes = 0;  ///< bytes: from real to imaginary
  std::int64_t n_spectra = 0;
  int n_groups = 0;
  int first_group = 0;  ///< of the samples; rows begin there

  const uint4* fragments = nullptr;
  int n_slabs = 0, n_steps = 0;
  int n_beams = 0, n_channels = 0;
  int first_channel = 0, launch_channels = 0;  ///< output and scratch start at first_channel

  int n_pols = 1, pol = 0, n_products = 1, product = 0;
  const float* weight_scale = nullptr;  ///< [beam][pol][channel]; nullptr = 1
  const float* scale = nullptr;         ///< [row][product][channel]; nullptr = 1 and 0
  const float* offset = nullptr;
  float gain = 1;  ///< of powers: 1 / spectra added
  CudaFactors loss;
  int integration = 8;    ///< integrated: 8, 16, 32 or 64
  bool as_bytes = false;  ///< integrated: u8, else f32
  bool vectors = false;   ///< rows are 16-byte aligned
  std::byte* values = nullptr;
  std::int64_t row_stride_bytes = 0, channel_stride_out_bytes = 0;
  std::int64_t n_values = 0;  ///< of a row
  std::uint32_t* low = nullptr;
  std::uint32_t* high = nullptr;

  int slabs_per_block = 1;
  int groups_per_item = 1;
  int stream_warps = 12;                    ///< launch_small_beams: of a block,
  int stages = 2;                           ///< and stages of the ring of each
  bool halves = false;                      ///< launch_wgmma: half a group at a time
  int slabs_before = 0, groups_before = 0;  ///< launch_wgmma: not worked on, nor those from
  int slabs_end = 0, groups_end = 0;        ///< these on; it sets them
};
void launch_direct(const FusedArgs& args, cudaStream_t stream);
void launch_tiled(const FusedArgs& args, cudaStream_t stream);
void launch_wgmma(const FusedArgs& args, cudaStream_t stream);
/// 16 beams or fewer whose samples is_streamable().
void launch_small_beams(const FusedArgs& args, cudaStream_t stream);
/// Samples of a channel lie one behind the other, in whole runs of 128 spectra.
bool is_streamable(const FusedArgs& args);
/// Shared memory of a block.
std::int64_t tiled_shared_bytes(int slabs, int steps, FusedOutput output);

}  // namespace ryle::beamform::detail
