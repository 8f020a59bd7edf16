// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/engine/correlate/correlate.hpp"

/// What happens to raw sums once per dump, on the host, in double: order, mean, gains, Van Vleck,
/// rotation.
namespace ryle::correlate {

/// Order of a finished dump.
enum class Order : std::uint8_t {
  products,  ///< [channel][baseline][pol_product], baselines of antennas, pol_product = 2 pol_i +
             ///< pol_j (default)
  triangle,  ///< [channel][pair] over inputs
  matrix,    ///< [channel][i][j], both halves
};

/// Which input is which antenna and polarization; -1 where an antenna lacks the polarization.
/// @shape input [2*antenna + pol] -> index of the input
struct InputMap {
  std::int64_t n_antennas = 0;
  std::vector<std::int64_t> input;
};

/// Codes the correlator saw, for Van Vleck: levels -(n_levels-1)/2 .. (n_levels-1)/2 in unit steps
/// (odd n_levels) or mid-rise (even: 2, 4, 16).
struct Quantizer {
  std::int64_t n_levels = 255;
  bool dithered = false;
  /// One more code below the others: -8 .. 7 of four bits are {15, false, true}.
  bool twos_complement = false;
};

/// What the products of an input must be multiplied with to undo quantisation before the
/// channelizer (or instead of the full correction): cross for V_ij = cross_i cross_j V, autos for
/// V_ii.
struct SamplerGain {
  double cross = 1;
  double autos = 1;
};

/// First-order correction of codes whose mean power |c|^2 is `power`; {1, 1} where no rms gives it.
/// @eq E[c_1 c_2] = k_1 k_2 r + O(r^3),  cross = rms / k
SamplerGain quantized_gain(const Quantizer& quantizer, double power);

struct FinishConfig {
  Order order = Order::products;
  InputMap map;  ///< needed for `products`
  FrequencyAxis frequency;
  /// Channels of fewer than 256 spectra do not know their levels: they get the first order, with
  /// the power of the whole band.
  bool van_vleck = false;
  Quantizer quantizer;
  std::vector<SamplerGain> samplers;  ///< [input], empty = 1
  /// Multiplies V_ij by gain_i conj(gain_j): [input][channel], empty = 1. Here to undo the
  /// requantiser's scale and to apply calibration after correlation.
  std::vector<cf64> gains;
};

/// One finished dump: mean visibilities with the exact number of spectra behind each.
/// A product with count 0 has value 0.
struct Finished {
  std::int64_t n_channels = 0;
  std::int64_t n_products = 0;        ///< per channel, in the order asked for
  std::vector<cf64> mean;             ///< [channel][product]
  std::vector<std::uint32_t> counts;  ///< [channel][product]
  std::int64_t n_spectra = 0;
};

/// @eq V_ij -> V_ij exp(-2 pi i nu_k (d_i - d_j)), the way Wayth 2009 applies delays after
/// correlation; delays_s is per input (empty = none) and taken at the centre of the dump.
Finished finish_dump(const Sums& sums, const FinishConfig& config, std::int64_t n_inputs,
                     std::span<const double> delays_s = {});

}  // namespace ryle::correlate
