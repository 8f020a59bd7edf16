// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/frequency_axis.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/channelize/channelize.hpp"

namespace ryle::pipeline {

/// @unit rate_hz: spectra a second, the sample rate of a channel
struct FineConfig {
  beamform::Config beams;  ///< cf32 voltages; max_spectra as there
  FrequencyAxis coarse;    ///< as wide as rate_hz: critically sampled
  double rate_hz = 0;
  std::int64_t n_fine = 0;  ///< K channels of each coarse one, even
  std::int64_t n_taps = 4;
  beamform::OutputKind kind = beamform::OutputKind::power;  ///< power, stokes_i, stokes_iquv
  std::int64_t integration = 1;                             ///< fine spectra per value
};

/// Beam voltages through a channelizer: fine channels of every channel, detected and integrated.
/// The engine writes into target(), take() makes values of what is whole.
class FineChannels {
 public:
  FineChannels(Queue& queue, const FineConfig& config);

  /// Where voltages of the next n spectra go (@pre n <= max_spectra).
  beamform::Output target(std::int64_t n);
  /// They are there: ticks [first, first + n), those in `absent` [begin, end) not. Returns values
  /// made, in values().
  std::int64_t take(Tick first, std::int64_t n,
                    const std::vector<std::pair<std::int64_t, std::int64_t>>& absent);
  /// f32 [row][product][channel K + fine][value]
  beamform::Output values() const;
  std::int64_t first_value() const { return first_value_; }

  FrequencyAxis frequency() const;
  /// Ticks from the first sample of a fine spectrum to the middle of its window.
  double half_window_ticks() const { return 0.5 * static_cast<double>(length_ - 1); }
  std::string_view implementation() const { return channelizer_->implementation(); }

 private:
  void detect(std::int64_t first, std::int64_t n);

  FineConfig config_;
  Queue& queue_;
  std::int64_t length_, capacity_, max_fine_, max_values_, n_products_;
  std::unique_ptr<channelize::Channelizer> channelizer_;
  std::vector<cf32> voltages_;  ///< [row][channel][capacity][pol]
  Tick held_first_ = 0;
  std::int64_t held_ = 0;
  bool started_ = false;
  std::vector<AbsentSpan> absent_;
  Buffer<std::byte> blocks_[2];  ///< of each pol
  std::vector<std::uint64_t> valid_;
  std::vector<double> sums_;          ///< [row][product][fine channel]
  std::vector<std::int64_t> counts_;  ///< [row][channel]
  std::int64_t next_ = 0;             ///< fine spectrum
  std::vector<float> values_;
  std::int64_t first_value_ = 0, n_values_ = 0;
};

}  // namespace ryle::pipeline
