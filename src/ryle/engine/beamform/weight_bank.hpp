// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/view.hpp"
#include "ryle/engine/beamform/beamform.hpp"

/// Private to the engine: the weights as they are multiplied, and what lost inputs cost.
namespace ryle::beamform::detail {

/// Codes of one (beam, pol, channel): w = code * scale.
/// @eq code = rne(127 w / max(|re w|, |im w|)); all-zero weights have scale 0   (beamform.md 1)
struct WeightBank {
  explicit WeightBank(const Config& config);
  /// Throws ConfigError when the shape is wrong or a weight is not finite.
  void set(View<const cf32, 3> weights, Queue host = Queue::cpu(1));

  std::int64_t at(std::int64_t beam, std::int64_t channel, std::int64_t input) const {
    return (beam * n_channels + channel) * n_inputs + input;
  }
  std::int64_t scale_at(std::int64_t beam, std::int64_t pol, std::int64_t channel) const {
    return (beam * n_pols + pol) * n_channels + channel;
  }

  std::int64_t n_beams, n_channels, n_inputs, n_pols;
  bool integer;
  std::vector<cf32> values;  ///< [beam][channel][input]: codes (integer) or the weights
  std::vector<float> scale;  ///< [beam][pol][channel]; 1 for f32

 private:
  void set_beam(View<const cf32, 3> weights, std::int64_t beam);
};

/// What is there of one (beam, channel) in one slot.
struct Presence {
  float factor[2] = {1, 1};  ///< per pol; 0 = nothing there
  std::uint32_t n_used = 0;  ///< inputs present with a weight
  double weight_power = 0;   ///< sum_present |w|^2, scale included
  bool any = true;           ///< all pols have something
};
/// `present` = bits of the slot, nullptr = everything.
Presence presence_of(const WeightBank& bank, const Config& config, std::int64_t beam,
                     std::int64_t channel, const std::uint64_t* present);
/// The same for incoherent row `index`: factor[pol] = n_all / n_present.
Presence incoherent_presence(const Config& config, std::int64_t index,
                             const std::uint64_t* present);

/// Slot bits of (channel, slot), nullptr = everything present.
const std::uint64_t* slot_bits(const Config& config, const Input& input, std::int64_t channel,
                               std::int64_t slot);
std::int64_t n_slots(const Input& input);

/// Throws ConfigError unless scale and offset are [row][product][channel] and finite.
void check_requantization(const Config& config, View<const float, 3> scale,
                          View<const float, 3> offset);
/// Asserts what execute() demands of its caller and fills in dense strides.
Input checked_input(const Config& config, const Input& input);

bool is_integer_format(const Config& config);
/// Range of the sample values of integer formats.
struct Range {
  std::int32_t min, max;
};
Range value_range(const Config& config);
/// Products of a voltage row count as one.
std::int64_t n_scales(const Config& config);

}  // namespace ryle::beamform::detail
