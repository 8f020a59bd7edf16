// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/core/view.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/geometry.hpp"

/// Weights of beams from geometry, cables, gains and masks.
/// @eq W = m_a n f(g_a,k) exp(-2 pi i s_k nu_k d_a), d_a = r_a . s / c - cable_a   (beamform.md 1)
namespace ryle::beamform {

enum class GainMode : std::uint8_t {
  inverse,  ///< 1 / g
  matched,  ///< conj(g) / sum |g|^2
  phase,    ///< exp(-i arg g)
};
enum class Normalization : std::uint8_t {
  sum,    ///< 1
  mean,   ///< 1 / sum m
  noise,  ///< 1 / sqrt(sum |W|^2): inputs of unit variance give a beam of unit variance
};

/// "inverse", "matched", "phase"; "sum", "mean", "noise". Throw ConfigError listing these.
GainMode gain_mode(std::string_view name);
Normalization normalization(std::string_view name);

/// Centre frequencies of the channels in the order of the samples; a descending band has a negative
/// step. @unit Hz
struct ChannelAxis {
  double first_center_hz = 0;
  double step_hz = 0;
  std::int64_t n_channels = 0;
  double center_hz(std::int64_t channel) const {
    return first_center_hz + static_cast<double>(channel) * step_hz;
  }
};

/// Phase model of one (beam, input): W carries exp(-2 pi i nu (delay + rate dt) + 2 pi i phase).
/// @unit delay_s: seconds at the instant the model is valid; rate_s_per_s; phase_turns: turns
struct Steering {
  double delay_s = 0;
  double rate_s_per_s = 0;
  double phase_turns = 0;
};

/// Steering [beam][input] toward unit vectors (east, north, up); cable dispersion at band center.
/// Inputs of the layout are in the order of the samples, antenna * n_pols + pol.
std::vector<Steering> steer(const ArrayLayout& array, std::span<const Vector3> directions_enu,
                            double cable_frequency_hz);
/// The same with rates, from the directions at two instants dt_s apart; valid at the first.
std::vector<Steering> steer(const ArrayLayout& array, std::span<const Vector3> directions_enu,
                            std::span<const Vector3> later_enu, double dt_s,
                            double cable_frequency_hz);

/// Fraction of the power lost where a channel is too wide for a phase to stand for a delay.
/// @eq L = (pi width delay)^2 / 3
double delay_loss(double channel_width_hz, double delay_s);

struct WeightConfig {
  std::int64_t n_antennas = 0;
  std::int64_t n_pols = 1;
  ChannelAxis channels;
  GainMode gain_mode = GainMode::inverse;
  Normalization normalization = Normalization::noise;
  /// -1 where a spectrum of the wrong sideband could not be conjugated upstream; empty: +1
  std::vector<std::int8_t> sideband;
};

/// Half of the cores, for weights that are made beside work on a device: the threads that lead that
/// work are among the others.
Queue weights_queue();

/// Makes the weights of any number of beams; keeps what does not change with the direction.
class WeightMaker {
 public:
  /// @shape gains [input][channel], v_recorded = g v_sky, empty = 1. A gain that is zero or not
  /// finite masks its input in that channel and is counted.
  /// @shape subarrays [antenna] 0..1 each, taper allowed; empty list = one of all antennas. Throws
  /// ConfigError for a sub-array without antennas, wrong shapes.
  WeightMaker(const WeightConfig& config, View<const cf32, 2> gains,
              std::vector<std::vector<double>> subarrays);

  /// weights[beam][channel][input] of beams with steering [beam][input], dt_s after the instant of
  /// the models. subarray_of_beam empty = all of the first.
  void make(std::span<const Steering> steering, double dt_s,
            std::span<const std::int64_t> subarray_of_beam, View<cf32, 3> weights) const;

  std::int64_t n_masked_gains() const { return n_masked_gains_; }
  const WeightConfig& config() const { return config_; }

 private:
  void normalize(const std::vector<double>& mask, std::int64_t channel, std::int64_t pol,
                 cf64* factors) const;

  WeightConfig config_;
  std::int64_t n_inputs_;
  std::int64_t n_masked_gains_ = 0;
  std::vector<cf64> gains_;    ///< [channel][input], 0 = masked
  std::vector<cf32> factors_;  ///< [subarray][channel][input]: m n f(g)
  std::int64_t n_subarrays_;
};

/// exp(2 pi i x) of a fraction of a turn x = turns / 2^32. Error below 1e-9.
cf64 phasor(std::uint32_t turns);
/// Fraction of a turn nearest to a phase; the whole turns are dropped in double.
std::uint32_t turns_of(double phase_turns);

}  // namespace ryle::beamform
