// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/io/beam/voevent.hpp"

namespace ryle {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

std::string beams_text(const SearchCandidate& c) {
  return c.beams.empty() ? fmt::format("{}", c.beam) : fmt::format("{}", fmt::join(c.beams, " "));
}

// heimdall: snr, sample, time, filter (log2 of the boxcar), dm_trial, dm, members, begin, end.
std::string heimdall_text(const SearchDescription&, const std::vector<SearchCandidate>& list) {
  std::string out;
  for (const auto& c : list) {
    if (!c.flags.empty()) continue;
    const auto filter = static_cast<int>(
        std::lround(std::log2(static_cast<double>(std::max<std::int64_t>(1, c.boxcar_samples)))));
    out += fmt::format("{:.5g}\t{}\t{:.9g}\t{}\t{}\t{:.6g}\t{}\t{}\t{}\n", c.snr,
                       std::llround(c.tick), c.time_s, filter, c.dm_trial, c.dm_pc_cm3, c.members,
                       c.begin_sample, c.end_sample);
  }
  return out;
}

// TransientX: beam, number, MJD, DM, width ms, S/N, f_low, f_high MHz, png, plan, file.
std::string transientx_text(const SearchDescription& s, const std::vector<SearchCandidate>& list) {
  std::string out;
  for (const auto& c : list) {
    if (!c.flags.empty()) continue;
    out +=
        fmt::format("{}\t{}\t{:.15f}\t{:.2f}\t{:.2f}\t{:.1f}\t{:.0f}\t{:.0f}\t{}\t{}\t{}\n", c.beam,
                    c.number, c.mjd_utc, c.dm_pc_cm3, c.width_s * 1e3, c.snr, s.low_hz * 1e-6,
                    s.high_hz * 1e-6, c.picture.empty() ? "none" : c.picture, 1, s.file);
  }
  return out;
}

std::string singlepulse_text(const SearchDescription&, const std::vector<SearchCandidate>& list) {
  std::string out = "# DM      Sigma      Time (s)     Sample    Downfact\n";
  for (const auto& c : list) {
    if (!c.flags.empty()) continue;
    out += fmt::format("{:7.2f} {:7.2f} {:13.6f} {:10d}     {:3d}\n", c.dm_pc_cm3, c.snr, c.time_s,
                       std::llround(c.tick), c.boxcar_samples);
  }
  return out;
}

std::string candidates_csv(const SearchDescription& s, const std::vector<SearchCandidate>& list) {
  std::string out =
      "number,mjd_utc,tai_ns,time_s,sample,dm_pc_cm3,dm_error,width_s,width_error_s,snr,snr_boxcar,"
      "boxcar_samples,"
      "dm_trial,trial_dm_pc_cm3,members,begin_sample,end_sample,beam,n_beams,ra_deg,dec_deg,"
      "masked_fraction,flags,k_dm,reference_hz,picture,smearing_s,beams,reasons,"
      "time_error_s,scattering_s,scattering_error_s\n";
  for (const auto& c : list) {
    const SkyDirection at = c.position.value_or(s.position);
    out += fmt::format(
        "{},{:.12f},{},{:.9f},{:.3f},{:.6g},{:.3g},{:.6g},{:.3g},{:.5g},{:.5g},{},{},{:.8g},{},{},{"
        "},{},{},{:.6f},{:.6f},{:.4f},{},{:.10g},{:.10g},{},{:.4g},{},{},{:.3g},{:.4g},{:.3g}\n",
        c.number, c.mjd_utc, c.tai_ns, c.time_s, c.tick, c.dm_pc_cm3, c.dm_error, c.width_s,
        c.width_error_s, c.snr, c.snr_boxcar, c.boxcar_samples, c.dm_trial, c.trial_dm_pc_cm3,
        c.members, c.begin_sample, c.end_sample, c.beam, c.n_beams, at.ra_rad / kDegree_rad,
        at.dec_rad / kDegree_rad, c.masked_fraction, csv_field(c.flags), s.k_dm, s.reference_hz,
        csv_field(c.picture), c.smearing_s, beams_text(c), csv_field(c.reasons), c.time_error_s,
        c.scattering_s, c.scattering_error_s);
  }
  return out;
}

std::string voevent_xml(const SearchDescription& s, const SearchCandidate& c,
                        const std::string& role) {
  using io::voevent_parameter;
  io::VoEventFrame frame;
  frame.observation = role == "observation";
  frame.telescope = s.telescope;
  frame.tai_ns = c.tai_ns;
  frame.number = c.number;
  frame.time_error_s = std::max(0.5 * c.width_s, c.time_error_s);
  frame.position = c.position.value_or(s.position);
  frame.position_error_rad = s.position_error_rad;
  std::string what = "    <Group name=\"event parameters\">\n";
  what += voevent_parameter("dm", c.dm_pc_cm3, "pc/cm^3", "phys.dispMeasure");
  what += voevent_parameter("dm_err", c.dm_error, "pc/cm^3", "stat.error;phys.dispMeasure");
  what += voevent_parameter("snr", c.snr, "", "stat.snr");
  what += voevent_parameter("width", c.width_s * 1e3, "ms", "time.duration;src.var.pulse");
  what += voevent_parameter("width_err", c.width_error_s * 1e3, "ms", "stat.error;time.duration");
  what += voevent_parameter("smearing", c.smearing_s * 1e3, "ms", "time.duration");
  if (c.scattering_s > 0) {
    what += voevent_parameter("scattering", c.scattering_s * 1e3, "ms", "time.duration");
    what += voevent_parameter("scattering_err", c.scattering_error_s * 1e3, "ms",
                              "stat.error;time.duration");
  }
  what += voevent_parameter("k_dm", s.k_dm, "s.MHz^2.pc^-1.cm^3", "");
  what += voevent_parameter("reference_frequency", s.reference_hz * 1e-6, "MHz", "em.freq");
  what += voevent_parameter("low", s.low_hz * 1e-6, "MHz", "em.freq;stat.min");
  what += voevent_parameter("high", s.high_hz * 1e-6, "MHz", "em.freq;stat.max");
  what += voevent_parameter("sampling_time", s.sample_interval_s * 1e3, "ms", "time.resolution");
  what += voevent_parameter("beam", static_cast<double>(c.beam), "", "");
  what += fmt::format(
      "    </Group>\n    <Description>dispersed pulse found by Ryle {} in {}</Description>\n",
      version(), io::xml_text(s.file));
  return io::voevent_document(frame, what, "");
}

}  // namespace ryle
