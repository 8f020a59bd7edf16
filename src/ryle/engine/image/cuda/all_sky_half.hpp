// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/image/cuda/all_sky_host.hpp"

/// Private to the CUDA imager, plain C++: tables of E-field imaging on tensor cores.
/// Gridding along x and the transform along x are one matrix per grid row y, so no grid exists:
/// @eq R[y](l) = sum_a wy_a(y) X_a(l) E_a,  X_a(l) = sum_i wx_a(i) exp(2 pi i (x_a + i) l / G)
/// @eq B(l, m) = sum_y R[y](l) exp(2 pi i (y - y0) m / G)
/// X_a(-l) = conj X_a(l), and with y0 half way between two rows rows y0 +- (j + 1/2) share their
/// cosines and opposite sines: all matrices are real, a quarter of the complex work.
namespace ryle::image::detail {

inline constexpr int kHalfColumns = 8;    ///< |l| of a thread block
inline constexpr int kHalfRows = 64;      ///< |m| of a thread block
inline constexpr int kHalfMaxPairs = 64;  ///< pairs of rows of the box

/// Sixteen antennas [start, start + 16) of the channel's order, and the row of the box they touch.
struct HalfTile {
  std::uint16_t start = 0, row = 0;
};
/// A pair of rows, y0 + (pair + 1/2) and y0 - (pair + 1/2): tiles [begin, begin + plus) and the
/// `minus` that follow.
struct HalfPair {
  std::uint16_t begin = 0, plus = 0, minus = 0, pair = 0;
};
/// Pixels of a thread block.
struct HalfBlock {
  std::uint16_t first_l = 0, first_m = 0;
  std::uint32_t n_row_tiles = 0;  ///< of 16 |m| that see the sky
};
/// An antenna in the channel's order and the first cell of its footprint in the box.
struct HalfSlot {
  std::int32_t antenna = -1;
  std::int16_t x = 0, y = 0;
};

struct HalfTables {
  std::string why_not;  ///< empty: the kernel can run
  int n_antennas = 0;
  int n_pairs = 0;              ///< pairs of rows, a multiple of 16, all channels
  int n_tiles = 0;              ///< largest of any channel
  int n_spectra = 0;            ///< a thread block takes at a time
  std::vector<HalfSlot> slots;  ///< [channel][a] sorted by y
  std::vector<HalfTile> tiles;  ///< [channel][n_tiles]
  std::vector<HalfPair> pairs;  ///< [channel][n_pairs], busiest first
  std::vector<HalfBlock> blocks;
};

/// Fp16 from one column of the operand to the next: fragments of eight columns then lie in
/// different banks.
constexpr int operand_pitch(int n_antennas) { return (n_antennas + 7) / 16 * 16 + 8; }
/// Fp16 of the row sums of one spectrum and polarization.
constexpr int half_plane(int n_pairs) { return 64 * n_pairs + 8; }
std::int64_t half_shared_bytes(int n_antennas, int n_pairs, int n_tiles, int n_spectra);
HalfTables half_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                       const std::vector<double>& positions, std::int64_t max_shared_bytes);

/// A power of two per channel that keeps row sums of full-scale 4-bit samples, all in phase, below
/// the largest half. @shape factors [channel][a][pol] re, im
std::vector<float> half_scales(const std::vector<float>& factors, std::size_t n_channels,
                               int support);

}  // namespace ryle::image::detail
