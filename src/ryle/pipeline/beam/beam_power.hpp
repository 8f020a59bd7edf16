// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/config/config.hpp"

/// Power of beams against time: drift scans of a source through beams that stand still.
namespace ryle::pipeline {

/// A source that drifts through a beam, fitted to power against time by least squares.
/// @eq p(t) = baseline + height exp(-4 ln 2 (t - middle)^2 / width^2)
struct Transit {
  double middle_s = 0, middle_error_s = 0;
  double width_s = 0, width_error_s = 0;  ///< full width at half height
  double height = 0, height_error = 0;
  double baseline = 0;
  double rms = 0;  ///< of the residuals
};

/// Nothing where fewer than eight values are finite, the fit does not converge within the data, or
/// the height is below five times its error. Errors are those of uncorrelated residuals of equal
/// rms.
/// @shape time_s, power [sample]; NaN = absent
std::optional<Transit> fit_transit(std::span<const double> time_s, std::span<const double> power);

/// Writes NAME_power.csv, the mean power of every beam over beams.power_s, and NAME_transits.csv,
/// the transit fitted to each beam, and, unless beams.pictures = 0, NAME_power.png with a line for
/// each of the first beams, at most eight. A channel of which nothing arrived in a sample keeps its
/// last mean, so that loss does not change the level; the column `present` says how much was
/// measured. Of the first segment of the stream: another one has another time, and its samples are
/// counted and left out. Works on the engine's thread; products are written in finish().
class BeamPower final : public BeamConsumer {
 public:
  BeamPower(const ObservationConfig& config, const BeamStream& stream);

  void take(const BeamChunk& chunk) override;
  void finish(RunSummary& summary) override;
  std::int64_t memory_bytes() const override;

  /// Of closed samples. @shape [sample]; [beam][sample]
  const std::vector<double>& times_s() const { return times_s_; }
  const std::vector<std::vector<double>>& power() const { return power_; }

 private:
  void add(const BeamChunk& chunk, std::int64_t begin, std::int64_t end);
  void close_sample();
  std::string power_text() const;
  std::string transit_text(const std::vector<std::optional<Transit>>& fits) const;
  void draw(const std::vector<std::optional<Transit>>& fits) const;
  std::string name(const char* ending) const;

  const ObservationConfig& config_;
  BeamStream stream_;
  std::int64_t per_sample_;  // samples of the stream
  std::int64_t segment_ = -1, first_sample_ = 0, open_ = 0;
  SampleClock clock_;
  std::vector<double> sums_, means_;        // [beam][channel] of the open sample; last means
  std::vector<std::int64_t> counts_;        // [channel]
  std::vector<double> times_s_, present_;   // [sample]
  std::vector<std::vector<double>> power_;  // [beam][sample]
  std::int64_t other_segments_ = 0;         // samples of the stream that were left out
};

}  // namespace ryle::pipeline
