// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/beam/voevent.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::io {

std::string xml_text(const std::string& text) {
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

std::string voevent_parameter(const char* name, double value, const char* unit, const char* ucd) {
  if (!std::isfinite(value)) return "";
  return fmt::format(
      "      <Param name=\"{}\" value=\"{:.10g}\" unit=\"{}\" ucd=\"{}\" dataType=\"float\"/>\n",
      name, value, unit, ucd);
}

std::string voevent_document(const VoEventFrame& f, const std::string& what,
                             const std::string& why) {
  if (f.tai_ns == 0)
    throw ConfigError("VOEvent: the instant of event " + std::to_string(f.number) +
                      " is not known; a VOEvent must have one");
  if (!(f.position_error_rad > 0))
    throw ConfigError("VOEvent: no error radius for event " + std::to_string(f.number) +
                      "; give that of the beam");
  const std::string telescope = f.telescope.empty() ? "unknown" : f.telescope;
  std::string stream;  // IVORN: letters and digits
  for (const char c : telescope)
    stream += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  const std::string utc = utc_iso(f.tai_ns, 6);
  const std::string written = utc_iso(f.author_tai_ns != 0 ? f.author_tai_ns : f.tai_ns, 0);
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<voe:VOEvent xmlns:voe=\"http://www.ivoa.net/xml/VOEvent/v2.0\" "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:schemaLocation=\"http://www.ivoa.net/xml/VOEvent/v2.0 "
      "http://www.ivoa.net/xml/VOEvent/VOEvent-v2.0.xsd\" version=\"2.0\" role=\"{}\" "
      "ivorn=\"ivo://ryle/{}#{}-{}\">\n"
      "  <Who><AuthorIVORN>ivo://ryle/{}</AuthorIVORN><Date>{}</Date></Who>\n"
      "  <What>\n{}  </What>\n",
      f.observation ? "observation" : "test", stream, utc, f.number, stream, written, what);
  const std::string time_error =
      f.time_error_s > 0 ? fmt::format("<Error>{:.9g}</Error>", f.time_error_s) : std::string();
  xml += fmt::format(
      "  <WhereWhen><ObsDataLocation>"
      "<ObservatoryLocation id=\"{}\"/><ObservationLocation>"
      "<AstroCoordSystem id=\"UTC-ICRS-TOPO\"/><AstroCoords coord_system_id=\"UTC-ICRS-TOPO\">\n"
      "    <Time unit=\"s\"><TimeInstant><ISOTime>{}</ISOTime></TimeInstant>{}</Time>\n"
      "    <Position2D unit=\"deg\"><Name1>RA</Name1><Name2>Dec</Name2>"
      "<Value2><C1>{:.6f}</C1><C2>{:.6f}</C2></Value2><Error2Radius>{:.6g}</Error2Radius>"
      "</Position2D>\n"
      "  </AstroCoords></ObservationLocation></ObsDataLocation></WhereWhen>\n",
      xml_text(telescope), utc, time_error, f.position.ra_rad / kDegree_rad,
      f.position.dec_rad / kDegree_rad, f.position_error_rad / kDegree_rad);
  return xml + why + "</voe:VOEvent>\n";
}

}  // namespace ryle::io
