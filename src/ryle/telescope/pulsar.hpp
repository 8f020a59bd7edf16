// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ryle/telescope/geometry.hpp"

/// Ephemerides of isolated pulsars (.par files) and the rotation they predict at a telescope.
/// @eq turns = F0 dt + F1 dt^2 / 2 + F2 dt^3 / 6, dt = TDB at the barycenter - PEPOCH (search.md 7)
namespace ryle {

struct Pulsar {
  std::string name;
  double f0_hz = 0, f1_hz_per_s = 0, f2_hz_per_s2 = 0;
  std::int64_t epoch_mjd = 0;  ///< PEPOCH, TDB: day ...
  double epoch_day_fraction = 0;
  SkyDirection position;  ///< ICRS at position_mjd
  double position_mjd = 0;
  double pm_ra_rad_per_year = 0;  ///< of RA times cos(Dec)
  double pm_dec_rad_per_year = 0;
  double dm_pc_cm3 = 0;
  std::vector<std::string> ignored;  ///< keys of the file that are not used
};

/// Reads PSR (PSRJ, PSRB), F0, F1, F2 or P0 (P), P1, PEPOCH, DM, RAJ, DECJ, PMRA, PMDEC, POSEPOCH.
/// Throws FormatError with the line for what cannot be read, UnsupportedError for binaries, TCB and
/// ecliptic coordinates.
Pulsar parse_par(const std::string& text, const std::string& path);
Pulsar read_par(const std::string& path);

/// Where a telescope of a known name stands (SIGPROC and PSRFITS names), to about 100 m = 0.3 us of
/// light; only the place is set. Nothing for others.
std::optional<ArrayLayout> known_telescope(const std::string& name);

/// Rotation of a pulsar against the clock of a telescope.
/// Roemer delay and Earth's place by ERFA, TDB - TT of the geocenter; no Shapiro delay (< 0.2 ms,
/// constant within hours), no parallax.
class PulsarClock {
 public:
  /// `site` nullptr: the geocenter (up to 21 ms off, 1.5e-6 of the period). `barycentric`: times
  /// are TDB at the barycenter already, written as if they were TAI + 32.184 s.
  PulsarClock(const Pulsar& pulsar, const ArrayLayout* site, bool barycentric = false);

  /// Seconds from PEPOCH at the barycenter for light that reaches the telescope at `tai_ns`.
  double barycentric_s(std::int64_t tai_ns) const;
  /// Turns since those at `reference_tai_ns`, a whole number of them left out: the phase at
  /// the reference is within [0, 1).
  double turns(std::int64_t tai_ns, std::int64_t reference_tai_ns) const;
  /// Topocentric spin frequency, from 10 s about an instant.
  double spin_hz(std::int64_t tai_ns) const;

 private:
  long double absolute_turns(std::int64_t tai_ns) const;
  Pulsar pulsar_;
  std::optional<ArrayLayout> site_;
  bool barycentric_;
};

}  // namespace ryle
