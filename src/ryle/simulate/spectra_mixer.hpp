// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/samples.hpp"

namespace ryle::simulate::detail {

/// How the white waves of one channel reach the inputs, in counts.
/// @eq v_i(t) = sum_w amplitude[w][i] z_w(t) + noise_rms[i] n_i(t), z and n white complex Gaussian
/// with E|.|^2 = 1
struct Mix {
  std::int64_t n_waves = 0;
  std::int64_t n_inputs = 0;
  std::vector<cf32> amplitude;   ///< [wave][input]
  std::vector<float> noise_rms;  ///< [input]

  cf32& at(std::int64_t wave, std::int64_t input) { return amplitude[wave * n_inputs + input]; }
  cf32 at(std::int64_t wave, std::int64_t input) const {
    return amplitude[wave * n_inputs + input];
  }
};

/// What quantising did, per input.
struct Levels {
  std::vector<std::int64_t> sum2, clipped;  ///< over both parts
};

/// Mixes and quantises spectra of one channel. Inputs are regrouped so that a wave passes over the
/// inputs it reaches only (one polarization; below the diagonal of a Cholesky factor).
class Mixer {
 public:
  explicit Mixer(const Mix& mix);
  /// Spectra [first, first + n) of a channel: key of spectrum t is first_key + t * key_step; writes
  /// bytes (re << 4) | (im & 15) of spectrum t at out + (t - first) * stride_bytes and adds to
  /// `levels`. Values depend on the key alone.
  void run(std::uint64_t seed, std::int64_t first_key, std::int64_t key_step, std::int64_t n,
           std::uint8_t* out, std::int64_t stride_bytes, Levels& levels) const;

 private:
  static constexpr std::int64_t kLanes = 4;  // of a baseline vector: sums stay in registers
  struct Wave {
    std::int64_t first_group = 0, last_group = 0;  // of kLanes columns it reaches
    std::size_t offset = 0;                        // of its amplitudes
  };
  void mix_group(std::int64_t group, const float* z, float* re, float* im) const;

  std::int64_t n_groups_;
  std::vector<std::int64_t> input_of_column_;  // -1: padding
  std::vector<Wave> waves_;
  std::vector<float> amplitudes_;  // [wave][group][re kLanes | im kLanes]
  std::vector<float> noise_;       // [column]
};

/// Standard complex Gaussians from 64 random bits: two of them, E|z|^2 = 1, by a table of 2^16
/// quantiles a part. Their tails end at 4.2 sigma, beyond any 4-bit quantiser.
void two_gaussians(std::uint64_t bits, float out[4]);

}  // namespace ryle::simulate::detail
