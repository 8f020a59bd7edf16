// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/product/candidate_file.hpp"

namespace ryle {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= ' ')
      out += c;
  }
  return out;
}

std::string parameter(const char* name, double value, const char* unit, const char* ucd) {
  if (!std::isfinite(value)) return "";
  return fmt::format(
      "    <Param name=\"{}\" value=\"{:.10g}\" unit=\"{}\" ucd=\"{}\" dataType=\"float\"/>\n",
      name, value, unit, ucd);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

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
      "dm_trial,trial_dm_pc_cm3,members,begin_sample,end_sample,beam,masked_fraction,flags,k_dm,"
      "reference_hz,picture\n";
  for (const auto& c : list) {
    out += fmt::format(
        "{},{:.12f},{},{:.9f},{:.3f},{:.6g},{:.3g},{:.6g},{:.3g},{:.5g},{:.5g},{},{},{:.8g},{},{},{"
        "},{},{:.4f},{},{:.10g},{:.10g},{}\n",
        c.number, c.mjd_utc, c.tai_ns, c.time_s, c.tick, c.dm_pc_cm3, c.dm_error, c.width_s,
        c.width_error_s, c.snr, c.snr_boxcar, c.boxcar_samples, c.dm_trial, c.trial_dm_pc_cm3,
        c.members, c.begin_sample, c.end_sample, c.beam, c.masked_fraction, csv_field(c.flags),
        s.k_dm, s.reference_hz, csv_field(c.picture));
  }
  return out;
}

std::string voevent_xml(const SearchDescription& s, const SearchCandidate& c,
                        const std::string& role) {
  const std::string telescope = s.telescope.empty() ? "unknown" : s.telescope;
  std::string stream;  // IVORN: letters and digits
  for (const char letter : telescope)
    stream += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
  const std::string utc = c.tai_ns != 0 ? utc_iso(c.tai_ns, 6) : "1960-01-01T00:00:00.000000";
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<voe:VOEvent xmlns:voe=\"http://www.ivoa.net/xml/VOEvent/v2.0\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://www.ivoa.net/xml/VOEvent/v2.0 "
      "http://www.ivoa.net/xml/VOEvent/VOEvent-v2.0.xsd\" version=\"2.0\" role=\"{}\" "
      "ivorn=\"ivo://ryle/{}#{}-{}\">\n"
      "  <Who><AuthorIVORN>ivo://ryle/{}</AuthorIVORN><Date>{}</Date></Who>\n  <What>\n",
      role == "observation" ? "observation" : "test", stream, utc, c.number, stream,
      utc.substr(0, 19));
  xml += "   <Group name=\"event parameters\">\n";
  xml += parameter("dm", c.dm_pc_cm3, "pc/cm^3", "phys.dispMeasure");
  xml += parameter("dm_err", c.dm_error, "pc/cm^3", "stat.error;phys.dispMeasure");
  xml += parameter("snr", c.snr, "", "stat.snr");
  xml += parameter("width", c.width_s * 1e3, "ms", "time.duration;src.var.pulse");
  xml += parameter("width_err", c.width_error_s * 1e3, "ms", "stat.error;time.duration");
  xml += parameter("k_dm", s.k_dm, "s.MHz^2.pc^-1.cm^3", "");
  xml += parameter("reference_frequency", s.reference_hz * 1e-6, "MHz", "em.freq");
  xml += parameter("low", s.low_hz * 1e-6, "MHz", "em.freq;stat.min");
  xml += parameter("high", s.high_hz * 1e-6, "MHz", "em.freq;stat.max");
  xml += parameter("sampling_time", s.sample_interval_s * 1e3, "ms", "time.resolution");
  xml += fmt::format(
      "   </Group>\n    <Description>dispersed pulse found by Ryle {} in {}</Description>\n  "
      "</What>\n",
      version(), escaped(s.file));
  xml += fmt::format(
      "  <WhereWhen><ObsDataLocation><ObservatoryLocation id=\"{}\"/><ObservationLocation>"
      "<AstroCoordSystem id=\"UTC-ICRS-TOPO\"/><AstroCoords coord_system_id=\"UTC-ICRS-TOPO\">\n"
      "    <Time unit=\"s\"><TimeInstant><ISOTime>{}</ISOTime></TimeInstant></Time>\n"
      "    <Position2D unit=\"deg\"><Name1>RA</Name1><Name2>Dec</Name2>"
      "<Value2><C1>{:.6f}</C1><C2>{:.6f}</C2></Value2><Error2Radius>1</Error2Radius></Position2D>\n"
      "  </AstroCoords></ObservationLocation></ObsDataLocation></WhereWhen>\n",
      escaped(telescope), utc, s.position.ra_rad / kDegree_rad, s.position.dec_rad / kDegree_rad);
  return xml + "</voe:VOEvent>\n";
}

}  // namespace ryle
