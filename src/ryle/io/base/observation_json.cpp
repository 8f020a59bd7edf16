// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/observation_json.hpp"

#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

using nlohmann::json;

constexpr int kJsonSchema = 1;

json array_to_json(const ArrayLayout& array) {
  json antennas = json::array();
  for (const Antenna& antenna : array.antennas) {
    antennas.push_back({{"name", antenna.name}, {"enu_m", antenna.enu_m}});
  }
  json inputs = json::array();
  for (const ArrayInput& input : array.inputs) {
    inputs.push_back({{"antenna", input.antenna},
                      {"pol", input.pol},
                      {"cable_delay_s", input.cable_delay_s},
                      {"cable_dispersion_s", input.cable_dispersion_s},
                      {"feed_angle_rad", input.feed_angle_rad},
                      {"bad", input.bad}});
  }
  return {{"name", array.name},
          {"latitude_rad", array.latitude_rad},
          {"longitude_rad", array.longitude_rad},
          {"height_m", array.height_m},
          {"antennas", antennas},
          {"inputs", inputs}};
}

ArrayLayout array_from_json(const json& in) {
  ArrayLayout array;
  in.at("name").get_to(array.name);
  in.at("latitude_rad").get_to(array.latitude_rad);
  in.at("longitude_rad").get_to(array.longitude_rad);
  in.at("height_m").get_to(array.height_m);
  for (const json& item : in.at("antennas")) {
    Antenna& antenna = array.antennas.emplace_back();
    item.at("name").get_to(antenna.name);
    item.at("enu_m").get_to(antenna.enu_m);
  }
  for (const json& item : in.at("inputs")) {
    ArrayInput& input = array.inputs.emplace_back();
    item.at("antenna").get_to(input.antenna);
    item.at("pol").get_to(input.pol);
    item.at("cable_delay_s").get_to(input.cable_delay_s);
    item.at("cable_dispersion_s").get_to(input.cable_dispersion_s);
    item.at("feed_angle_rad").get_to(input.feed_angle_rad);
    item.at("bad").get_to(input.bad);
  }
  return array;
}

json provenance_to_json(const Provenance& p) {
  return {{"version", p.version},
          {"command_line", p.command_line},
          {"configuration", p.configuration},
          {"configuration_sha256", p.configuration_sha256},
          {"host", p.host},
          {"implementations", p.implementations},
          {"notes", p.notes}};
}

Provenance provenance_from_json(const json& in) {
  Provenance p;
  in.at("version").get_to(p.version);
  in.at("command_line").get_to(p.command_line);
  in.at("configuration").get_to(p.configuration);
  in.at("configuration_sha256").get_to(p.configuration_sha256);
  in.at("host").get_to(p.host);
  in.at("implementations").get_to(p.implementations);
  in.at("notes").get_to(p.notes);
  return p;
}

void scalars_from_json(const json& in, Observation& o) {
  const json& f = in.at("frequency");
  f.at("first_center_hz").get_to(o.frequency.first_center_hz);
  f.at("channel_width_hz").get_to(o.frequency.channel_width_hz);
  f.at("n_channels").get_to(o.frequency.n_channels);
  in.at("phase_center").at("ra_rad").get_to(o.phase_center.ra_rad);
  in.at("phase_center").at("dec_rad").get_to(o.phase_center.dec_rad);
  in.at("phase_center").at("name").get_to(o.phase_center_name);
  in.at("object").get_to(o.object);
  in.at("observer").get_to(o.observer);
  in.at("dut1_s").get_to(o.earth_orientation.dut1_s);
  in.at("nominal_dump_s").get_to(o.nominal_dump_s);
  in.at("spectrum_interval_s").get_to(o.spectrum_interval_s);
  in.at("channel_bandwidth_hz").get_to(o.channel_bandwidth_hz);
  in.at("flux_unit").get_to(o.flux_unit);
  o.time_source = static_cast<TimeSource>(in.at("time_source").get<int>());
  in.at("applied").at("n_taps").get_to(o.applied.n_taps);
  in.at("applied").at("window").get_to(o.applied.window);
  in.at("applied").at("van_vleck").get_to(o.applied.van_vleck);
}

}  // namespace

std::string observation_to_json(const Observation& o) {
  const json out = {
      {"schema", kJsonSchema},
      {"array", array_to_json(o.array)},
      {"frequency",
       {{"first_center_hz", o.frequency.first_center_hz},
        {"channel_width_hz", o.frequency.channel_width_hz},
        {"n_channels", o.frequency.n_channels}}},
      {"phase_center",
       {{"ra_rad", o.phase_center.ra_rad},
        {"dec_rad", o.phase_center.dec_rad},
        {"name", o.phase_center_name}}},
      {"object", o.object},
      {"observer", o.observer},
      {"dut1_s", o.earth_orientation.dut1_s},
      {"nominal_dump_s", o.nominal_dump_s},
      {"spectrum_interval_s", o.spectrum_interval_s},
      {"channel_bandwidth_hz", o.channel_bandwidth_hz},
      {"flux_unit", o.flux_unit},
      {"time_source", static_cast<int>(o.time_source)},
      {"applied",
       {{"n_taps", o.applied.n_taps},
        {"window", o.applied.window},
        {"van_vleck", o.applied.van_vleck}}},
      {"provenance", provenance_to_json(o.provenance)},
  };
  // Bytes that are not UTF-8 (a configuration file may hold any) are replaced, never a reason to
  // lose the product.
  return out.dump(-1, ' ', true, json::error_handler_t::replace);
}

Observation observation_from_json(const std::string& text, const std::string& where) {
  try {
    const json in = json::parse(text);
    const int schema = in.at("schema").get<int>();
    if (schema != kJsonSchema) {
      throw FormatError(where + ": observation schema " + std::to_string(schema) +
                        ", this build reads " + std::to_string(kJsonSchema));
    }
    Observation o;
    o.array = array_from_json(in.at("array"));
    scalars_from_json(in, o);
    o.provenance = provenance_from_json(in.at("provenance"));
    return o;
  } catch (const json::exception& error) {
    throw FormatError(where + ": the observation record is damaged: " + error.what());
  }
}

}  // namespace ryle

namespace ryle::io {

std::vector<std::string> printable_lines(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::string line;
  const auto flush = [&] {
    lines.push_back(line);
    line.clear();
  };
  for (const char c : text) {
    if (c == '\n') {
      flush();
      continue;
    }
    if (line.size() == width) flush();
    const auto byte = static_cast<unsigned char>(c);
    line += c == '\t' ? ' ' : (byte >= 0x20 && byte < 0x7f ? c : '?');
  }
  if (!line.empty()) flush();
  return lines;
}

}  // namespace ryle::io
