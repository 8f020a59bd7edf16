// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/device/buffer.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/beamform/cpu/kernel.hpp"

/// Private to the engine: samples of one channel and tile as the operand of a kernel.
namespace ryle::beamform::detail {

/// Where sample (pol, antenna, spectrum) lies. integer: 2 bytes re + offset, im + offset; float: 2
/// floats.
struct TileView {
  const std::uint8_t* data = nullptr;
  std::int64_t pol_stride_bytes = 0;
  std::int64_t step_stride_bytes = 0;  ///< integer: 2 antennas a step; float: 1
  std::int64_t spectrum_stride_bytes = 0;
};

class Unpacker {
 public:
  Unpacker(const Config& config, const CpuKernel& kernel);
  /// Spectra [t, t + n), n <= kTile, inside one block; `memory` has tile_bytes().
  TileView unpack(const Input& input, std::int64_t channel, std::int64_t t, std::int64_t n,
                  std::uint8_t* memory) const;
  /// @eq power[spectrum] = sum over antennas with mask 1 of |v|^2, exact for integers
  void incoherent(const TileView& tile, std::int64_t pol, const std::vector<std::uint8_t>& mask,
                  std::int64_t n, float* power) const;
  std::int64_t tile_bytes() const { return tile_bytes_; }
  std::int64_t n_steps() const { return n_steps_; }
  std::int32_t offset() const { return offset_; }

 private:
  const std::uint8_t* row(const Input& input, std::int64_t channel, std::int64_t t,
                          std::int64_t pair) const;
  void expand(const Expand& e) const;
  void to_codes(const Input& input, std::int64_t channel, std::int64_t t, std::int64_t n,
                const TileView& view, std::uint8_t* memory) const;
  void to_floats(const Input& input, std::int64_t channel, std::int64_t t, std::int64_t n,
                 const TileView& view, std::uint8_t* memory) const;

  Config config_;
  const CpuKernel& kernel_;
  bool nibbles_;
  std::int64_t sample_bytes_, n_steps_, tile_bytes_, spare_bytes_;
  std::int32_t offset_ = 0;
  std::vector<std::uint16_t> codes_;  ///< of each byte
  std::vector<cf32> values_;          ///< of each byte
};

}  // namespace ryle::beamform::detail
