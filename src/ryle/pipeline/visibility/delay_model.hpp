// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {

/// Delays that follow a phase center: d_p(t) = r_p.s_0(t)/c - cable_p (conventions.md 5).
class DelayModel {
 public:
  DelayModel(const ArrayLayout& array, const EarthOrientation& eo, const SkyDirection& phase_center,
             double frequency_hz)
      : array_(array), eo_(eo), phase_center_(phase_center), frequency_hz_(frequency_hz) {}

  /// Delay of every input at an instant, seconds.
  std::vector<double> delays_s(std::int64_t tai_ns) const;
  /// Cubic polynomials through four instants of [first, last]: the geometric delay of a baseline
  /// under 10 km turns by less than 1e-15 s from its cubic within an hour, so one per dump is exact
  /// for any dump.
  std::vector<channelize::DelayPolynomial> polynomials(const SampleClock& clock, Tick first,
                                                       Tick last) const;
  /// The largest |delay| any direction can ask for: array radius / c plus the longest cable.
  static double largest_delay_s(const ArrayLayout& array, double frequency_hz);

 private:
  ArrayLayout array_;
  EarthOrientation eo_;
  SkyDirection phase_center_;
  double frequency_hz_;
};

}  // namespace ryle::pipeline
