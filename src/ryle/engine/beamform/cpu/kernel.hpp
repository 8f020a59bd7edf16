// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// Private to the engine: the plain-C interface between the driver (cpu/make.cpp) and one
/// translation unit per instruction set. Nothing here may contain inline code: it is included by
/// files compiled for different instruction sets.
namespace ryle::beamform::detail {

inline constexpr std::int64_t kTile = 64;   ///< most spectra of a tile
inline constexpr std::int64_t kLanes = 16;  ///< rows of a block: one vector of 32-bit words
inline constexpr std::int64_t kGroup = 8;   ///< spectra are multiplied in groups: tiles are padded
inline constexpr std::int64_t kFold = 64;   ///< spectra summed before a second sum takes over
inline constexpr std::int64_t kPlane = kTile * kLanes;

/// n_rows runs of n_bytes each.
struct Expand {
  const std::uint8_t* from;
  std::uint8_t* to;
  std::int64_t n_bytes, n_rows;
  std::int64_t from_stride_bytes, to_stride_bytes;
};

// clang-format off
/// One tile of spectra times the weights of one block of 16 rows (beams) and one pol: raw = start + sum_a W v.
///
///            samples                               weights                     raw
///   integer  u8, 4 bytes a step: re, im of 2 antennas   s8 [step][re, im][lane][4]   int32 [spectrum][re, im][lane]
///   float    f32, a step: re, im of 1 antenna           f32 [step][re, im][lane]     f32 [spectrum][re, im][lane]
///
/// A lane is a row, so that no sum over lanes is needed. Sums of a group of spectra stay in registers; a
/// tile of up to 64 spectra goes from samples to stored bytes without leaving the level-1 cache.
// clang-format on
struct Multiply {
  const void* samples;
  std::int64_t step_stride_bytes;
  std::int64_t spectrum_stride_bytes;
  const void* weights;
  const std::int32_t* start;  ///< [re, im][lane]: minus offset * sum of the weights
  std::int64_t n_steps;
  std::int64_t n_spectra;       ///< multiple of kGroup
  std::int64_t steps_per_word;  ///< avx2: so many steps cannot saturate 16 bits
  void* raw;
  /// multiply_two: the same samples times a second block.
  const void* second_weights;
  const std::int32_t* second_start;
  void* second_raw;
};

enum class Detection : std::uint8_t { voltage, power, stokes_i, stokes_iquv };

/// raw of each pol -> planes[product][spectrum][lane] f32; voltages: product = 2 pol + part.
struct Detect {
  const void* raw[2];
  const float* scale[2];  ///< [lane] of each pol
  std::int64_t n_pols;
  std::int64_t n_spectra;
  Detection detection;
  float* planes;
};

/// Sums of unfinished windows of one (block, product, channel).
struct Window {
  float inner[kLanes];
  float outer[kLanes];
  float count[kLanes];
};

/// plane[spectrum][lane] -> plane[window][lane], in place; returns the number of windows finished.
/// @eq mean = sum / count over [n T, (n+1) T), added in order of time, in runs of kFold
struct Integrate {
  float* plane;
  Window* window;
  std::int64_t n_spectra;
  std::int64_t position;  ///< of the first spectrum in its window
  std::int64_t integration;
  const float* any;  ///< [lane] 1 = there, 0 = absent
  bool raw;          ///< divide by the integration, not by what was there
};

/// plane -> codes [window][lane] int32 = clamp(rne(value * scale + offset), low, high); counts of
/// what was cut are added.
struct Quantize {
  const float* plane;
  std::int64_t n;
  const float* scale;
  const float* offset;
  std::int32_t low, high;
  std::int32_t* codes;
  std::uint32_t* n_low;   ///< [lane]
  std::uint32_t* n_high;  ///< [lane]
};

/// Rows of a block in memory: lane l at first + l * stride_bytes.
struct Rows {
  std::uint8_t* first;
  std::int64_t stride_bytes;
  std::int64_t n_lanes;
};

/// Detection and bytes in one pass over the raw sums of one pol, for powers that are not
/// integrated.
/// @eq code = clamp(rne((re^2 + im^2) (sum_scale^2 scale) + offset), 0, 255)
struct PowerBytes {
  const void* raw;
  std::int64_t n;          ///< spectra
  const float* sum_scale;  ///< [lane]
  const float* scale;
  const float* offset;
  bool fits;             ///< every value is known to be in 0 .. 2^31 - 1
  std::uint32_t* n_low;  ///< [lane], added to
  std::uint32_t* n_high;
};

struct CpuKernel {
  const char* instruction_set;
  bool integer;
  /// Bytes of two nibbles -> two bytes n + 8, real first; nullptr for float kernels.
  void (*expand4)(const Expand& e);
  void (*multiply)(const Multiply& m);
  void (*multiply_two)(const Multiply& m);  ///< two blocks at once; nullptr = one by one
  void (*detect)(const Detect& d);
  std::int64_t (*integrate)(const Integrate& i);
  void (*quantize)(const Quantize& q);
  /// Quantize to 0..255 and store; nullptr = the driver does it from codes.
  void (*quantize_u8)(const Quantize& q, const Rows& out);
  void (*power_u8)(const PowerBytes& p, const Rows& out);
  /// plane -> n values of each row
  void (*store_f32)(const float* plane, std::int64_t n, const Rows& out);
  /// Called by a worker after its last store (stores past the caches); nullptr = nothing to do.
  void (*fence)();
};

/// nullptr when the compiler or architecture of this build has no such code.
const CpuKernel* cpu_kernel_avx512_vnni();
const CpuKernel* cpu_kernel_avx512_f32();
const CpuKernel* cpu_kernel_avx2();
const CpuKernel* cpu_kernel_avx2_f32();
const CpuKernel* cpu_kernel_generic_f32();

}  // namespace ryle::beamform::detail
