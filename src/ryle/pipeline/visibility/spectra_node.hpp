// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/engine/correlate/finish.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"

namespace ryle::pipeline {

/// A consumer of spectra in the graph of a run: visibilities, images, beams. All nodes read the
/// same gulp in memory, one after the other, on the thread of the engines; none changes it. What
/// they make goes to the disk on threads of their own.
class SpectraNode {
 public:
  virtual ~SpectraNode() = default;
  /// "visibilities", "images", "beams".
  virtual std::string node() const = 0;
  /// What Ryle's channelizer multiplied the samples of an input with, and what coarse samples did
  /// to them; before the first feed(), and only where Ryle channelizes. @shape [input] or empty
  virtual void set_levels(const std::vector<double>& /*scale*/,
                          const std::vector<correlate::SamplerGain>& /*samplers*/) {}
  /// A gulp of any length that starts at spectrum `first` of the clock. Spectra that were skipped
  /// are absent; a new segment starts anew.
  virtual void feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                    const SampleClock& clock) = 0;
  /// Closes what is open as short, drains, publishes; fills in its part of the summary. Throws
  /// DeviceError, after that, if a device was lost in flight.
  virtual void finish(const std::map<std::string, std::string>& notes, RunSummary& summary) = 0;
  /// Cannot go on, and the observation asks to stop then.
  virtual bool failed() const = 0;
  virtual double data_s() const = 0;
  /// Seconds inside its engines.
  virtual double busy_s() const = 0;
  /// Products so far.
  virtual void count(Progress& progress) const = 0;
};

}  // namespace ryle::pipeline
