// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/engine/search/normalize.hpp"

/// The normalizer of many beams on a device; in builds with CUDA only (RYLE_HAVE_CUDA).
namespace ryle::search {

/// Power of all beams, device memory. @shape values [beam][channel][n] f32, NaN = absent
struct DevicePower {
  const float* values = nullptr;
  std::int64_t beam_stride = 0, channel_stride = 0;  ///< floats
  std::int64_t n = 0;
};

/// Where codes go, device memory. @shape codes [beam][channel][n] u8, cells [beam][channel][n / 64]
struct DeviceCodes {
  std::uint8_t* codes = nullptr;
  std::int64_t beam_stride = 0, channel_stride = 0;
  std::uint8_t* cells = nullptr;
  std::int64_t cell_beam_stride = 0, cell_channel_stride = 0;
};

/// Codes, cells, flags and reports of each beam are those of Normalizer, bit for bit: same sums in
/// the same order, no fused multiply-adds. A burst that stands out of the band sum of a beam is
/// decomposed on the host by SpectraFlagger, from the sums of 16 groups of channels.
class CudaNormalizer {
 public:
  /// "" or what this configuration has that the device does not do: more than 16384 channels,
  /// medians over more than 64 cells.
  static std::string unsupported(const NormalizeConfig& config);
  /// Throws UnsupportedError with it.
  CudaNormalizer(Queue& queue, const NormalizeConfig& config, std::int64_t n_beams,
                 std::int64_t max_samples);
  ~CudaNormalizer();
  CudaNormalizer(const CudaNormalizer&) = delete;
  CudaNormalizer& operator=(const CudaNormalizer&) = delete;

  /// As Normalizer::execute(), for all beams. Waits for the device.
  void execute(Queue& queue, const DevicePower& power, const DeviceCodes& to);
  void skip(std::int64_t n);
  const NormalizeReport& report(std::int64_t beam) const;  ///< of all gulps
  const std::vector<std::uint8_t>& channel_flags(std::int64_t beam) const;
  const std::vector<TickRange>& undecided(std::int64_t beam) const;
  std::int64_t n_bursts() const;  ///< gulps of beams that went to the host
  std::int64_t memory_bytes() const;
  static std::int64_t memory_bytes(const NormalizeConfig& config, std::int64_t n_beams,
                                   std::int64_t max_samples);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::search
