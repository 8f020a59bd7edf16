// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// Private to the engine: the plain-C interface between the driver (cpu.cpp) and one translation
/// unit per instruction set. Nothing here may contain inline code: it is included by files compiled
/// for different instruction sets.
namespace ryle::beamform::detail {

inline constexpr std::int64_t kTile = 64;   ///< most spectra of a tile
inline constexpr std::int64_t kLanes = 16;  ///< rows of a block: one vector of 32-bit words
inline constexpr std::int64_t kGroup = 8;   ///< spectra are multiplied in groups: tiles are padded
inline constexpr std::int64_t kFold = 64;   ///< spectra summed before a second sum takes over
inline constexpr std::int64_t kPlane = kTile * kLanes;

/// One tile times the weights of one block and pol.
/// integer: samples u8, 4 bytes a step = (re, im) of 2 antennas; weights s8 [step][re,
/// im][lane][4];
///          raw[spectrum][re, im][lane] int32 = start + sum
/// float:   samples f32, a step = (re, im) of 1 antenna; weights f32 [step][re, im][lane]; raw f32
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

struct CpuKernel {
  const char* instruction_set;
  bool integer;
  /// Bytes of two nibbles -> two bytes n + 8, real first; nullptr for float kernels.
  void (*expand4)(const std::uint8_t* from, std::uint8_t* to, std::int64_t n_bytes);
  void (*multiply)(const Multiply& m);
  void (*detect)(const Detect& d);
  std::int64_t (*integrate)(const Integrate& i);
  void (*quantize)(const Quantize& q);
  /// Quantize to 0..255 and store out[lane][0..n); nullptr = the driver does it from codes.
  void (*quantize_u8)(const Quantize& q, std::uint8_t* const* out, std::int64_t n_lanes);
  /// plane -> out[lane][0..n)
  void (*store_f32)(const float* plane, std::int64_t n, float* const* out, std::int64_t n_lanes);
};

/// nullptr when the compiler or architecture of this build has no such code.
const CpuKernel* cpu_kernel_avx512_vnni();
const CpuKernel* cpu_kernel_avx512_f32();
const CpuKernel* cpu_kernel_avx2();
const CpuKernel* cpu_kernel_avx2_f32();
const CpuKernel* cpu_kernel_generic_f32();

}  // namespace ryle::beamform::detail
