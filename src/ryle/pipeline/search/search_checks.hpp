// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/search/baseline.hpp"

/// What speaks against an event being a pulse of the sky (docs/search.md, Flags).
namespace ryle::pipeline {

struct BeamEvent;

/// Measured on the codes about an event, at the DM of its best boxcar unless said otherwise.
struct PulseChecks {
  bool has_baseline = true;  ///< a mean and an rms could be measured beside it
  /// Of the samples about it, two widths and 64 samples on either side, those with data: not in a
  /// run of 16 and more equal codes, as masked, lost and zero ones are.
  double present = 1;
  /// The same of half a width and 4 samples right before or after it, the lower one.
  double present_beside = 1;
  /// Scatter of boxcars of its width beside it, in that of white noise; 0 = too few of them.
  double wander = 0;
  double local_snr = 0;  ///< of the event above the median of these, by their scatter
  /// Highest S/N of a boxcar where the bow tie of a pulse as strong leaves half, at another DM; 0 =
  /// not looked at.
  double off_dm_snr = 0, off_dm_pc_cm3 = 0;
  std::int64_t widest_samples = 0;  ///< boxcar of the search; 0 = not known
  double threshold = 0;             ///< of the search
  double trial_gap_pc_cm3 = 0;      ///< to the farther neighbour of its trial
};

/// S/N of boxcars that hold masked samples: codes of weight 0 that are the code of nothing.
/// @eq S/N = sum (x - mu(w)) / (sigma sqrt(sum w)), mu(w) = K + w (mu - K), K that of masked
/// channels
class BoxcarSeries {
 public:
  BoxcarSeries(const search::DedispersedCodes& series, const search::Baseline& baseline,
               std::int64_t n_channels);
  std::int64_t size() const { return static_cast<std::int64_t>(excess_.size()) - 1; }
  double snr(std::int64_t start, std::int64_t width) const;
  /// Mean weight of a column over that of the baseline.
  double weight(std::int64_t start, std::int64_t width) const;

 private:
  double sigma_, weight_;
  std::vector<double> excess_, weights_;  // sums of the columns before
};

/// Fills wander and local_snr of an event of S/N `snr` in columns [start, start + width).
void check_surroundings(const BoxcarSeries& series, std::int64_t start, std::int64_t width,
                        double snr, PulseChecks& checks);

/// Fills present and present_beside of an event of `width` samples about `tick` at the highest
/// channel. @shape codes [channel][n] from `first_tick` on; masked [channel] channels do not count
void check_presence(const search::Band& band, double dm_pc_cm3, double tick, double width,
                    const std::vector<std::uint8_t>& codes, std::int64_t first_tick, std::int64_t n,
                    const std::vector<std::uint8_t>& masked, PulseChecks& checks);

/// Names of flags with a blank between, and a sentence on each with "; " between. Both empty: a
/// candidate.
struct CandidateFlags {
  std::string names, reasons;
  void add(const std::string& name, const std::string& reason);
};
CandidateFlags candidate_flags(const BeamEvent& event, double sweep_samples_per_dm,
                               double sample_interval_s, double trial_dm_pc_cm3,
                               double dm_candidate_min_pc_cm3);

}  // namespace ryle::pipeline
