// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/best2_xml.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/telescope/site.hpp"
#include "ryle/telescope/xml_text.hpp"

namespace ryle {
namespace {

using detail::XmlElement;

/// One quantity under the names of both dialects; the first is what the published code reads.
struct Names {
  const char* read_by_code;
  const char* also;  ///< name in shipped search files, read as 0 by that code; nullptr = none
};

struct Known {
  const char* element;
  std::vector<Names> names;
};

// Attributes of <observation>'s children, both dialects.
const std::vector<Known>& known_elements() {
  static const std::vector<Known> known{
      {"antennas", {{"number", nullptr}}},
      {"channels",
       {{"nchans", nullptr},
        {"subchannels", nullptr},
        {"startChannel", nullptr},
        {"stopChannel", nullptr},
        {"performChannelisation", nullptr},
        {"applyPFB", nullptr},
        {"ntaps", nullptr},
        {"firPath", nullptr},
        {"npols", nullptr},
        {"ncoeffs", nullptr}}},
      {"timing", {{"tsamp", nullptr}}},
      {"samples",
       {{"nsamp", "number"}, {"nbits", "bits"}, {"downsample", nullptr}, {"voltage", nullptr}}},
      {"writer",
       {{"outputFilePrefix", "filePrefix"},
        {"outputBaseDirectory", "baseDirectory"},
        {"outputSecondsPerFile", "secondsPerFile"},
        {"outputSingleFileMode", "singleFileMode"},
        {"usePCTime", nullptr},
        {"plotBeam", nullptr},
        {"test", nullptr},
        {"writeToFile", nullptr},
        {"outputBits", nullptr},
        {"compression", nullptr}}},
      {"gpus", {{"gpuIDs", "ids"}}},
      {"dm", {{"lowDM", nullptr}, {"numDMs", nullptr}, {"dmStep", nullptr}}},
      {"rfi",
       {{"applyRFIClipper", nullptr},
        {"channelBlock", nullptr},
        {"spectrumThreshold", nullptr},
        {"channelThreshold", nullptr}}},
      {"detection",
       {{"detectionThreshold", "threshold"},
        {"applyMedianFilter", nullptr},
        {"applyDetrending", nullptr},
        {"enableTBB", nullptr}}},
      {"clustering",
       {{"applyClustering", nullptr},
        {"minPoints", nullptr},
        {"timeRange", nullptr},
        {"dmRange", nullptr},
        {"snrRange", nullptr},
        {"minPulseWidth", "minPuleWidth"},
        {"applyClassification", nullptr}}},
      {"beams", {{"antennaFile", nullptr}, {"channelise", nullptr}, {"applyBeamforming", nullptr}}},
      {"beam",
       {{"beamId", nullptr},
        {"dec", nullptr},
        {"ra", nullptr},
        {"ha", nullptr},
        {"topFrequency", nullptr},
        {"frequencyOffset", nullptr}}}};
  return known;
}

class File {
 public:
  explicit File(std::string path) : path_(std::move(path)), root_(detail::read_xml(path_)) {}
  const XmlElement& root() const { return root_; }
  std::string where(const XmlElement& e) const { return path_ + ":" + std::to_string(e.line); }
  [[noreturn]] void fail(const XmlElement& e, const std::string& what) const {
    throw FormatError(where(e) + ": " + what);
  }

  const XmlElement* child(const XmlElement& of, const std::string& name) const {
    const XmlElement* found = nullptr;
    for (const auto& c : of.children) {
      if (c.name != name) continue;
      if (found != nullptr) fail(c, "<" + name + "> is there twice in <" + of.name + ">");
      found = &c;
    }
    return found;
  }
  const XmlElement& needed(const XmlElement& of, const std::string& name) const {
    if (const XmlElement* c = child(of, name)) return *c;
    fail(of, "<" + of.name + "> has no <" + name + ">");
  }
  double number_of(const XmlElement& e, const std::string& what, const std::string& text) const {
    double value = 0;
    if (!parse_finite(trimmed(text), value)) fail(e, what + " = \"" + text + "\" is no number");
    return value;
  }
  double text_number(const XmlElement& of, const std::string& name) const {
    const XmlElement& e = needed(of, name);
    return number_of(e, "<" + name + ">", e.text);
  }
  double attribute_number(const XmlElement& e, const std::string& name) const {
    const std::string* text = e.attribute(name);
    if (text == nullptr) fail(e, "<" + e.name + "> has no attribute \"" + name + "\"");
    return number_of(e, "attribute \"" + name + "\"", *text);
  }
  std::int64_t count_of(const XmlElement& e, const std::string& what, double value,
                        std::int64_t low, std::int64_t high) const {
    if (value != std::floor(value) || value < static_cast<double>(low) ||
        value > static_cast<double>(high))
      fail(e, what + " must be a whole number from " + std::to_string(low) + " to " +
                  std::to_string(high));
    return static_cast<std::int64_t>(value);
  }
  void only(const XmlElement& of, const std::vector<std::string>& elements,
            const std::vector<std::string>& attributes) const {
    for (const auto& c : of.children) {
      if (std::find(elements.begin(), elements.end(), c.name) == elements.end())
        fail(c, "<" + c.name + "> is unknown in <" + of.name +
                    ">; known: " + comma_separated(elements));
    }
    for (const auto& a : of.attributes) {
      if (std::find(attributes.begin(), attributes.end(), a.name) == attributes.end())
        fail(of, "attribute \"" + a.name + "\" of <" + of.name + "> is unknown; known: " +
                     (attributes.empty() ? "none" : comma_separated(attributes)));
    }
  }

 private:
  std::string path_;
  XmlElement root_;
};

// "44:31:24.88N": degrees, minutes, seconds and a letter; south and west are negative.
double angle_of(const File& file, const XmlElement& e, const char* letters, double max_deg) {
  const std::string& text = e.text;
  const char letter = text.empty() ? '\0' : text.back();
  double parts[3] = {};
  std::string rest = text.substr(0, text.empty() ? 0 : text.size() - 1);
  bool good = letter == letters[0] || letter == letters[1];
  for (int k = 0; k < 3 && good; ++k) {
    const auto colon = rest.find(':');
    good = (k < 2) == (colon != std::string::npos) &&
           parse_finite(rest.substr(0, colon), parts[k]) && parts[k] >= 0 &&
           (k == 0 || parts[k] < 60);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  const double degrees = parts[0] + parts[1] / 60 + parts[2] / 3600;
  if (!good || degrees > max_deg)
    file.fail(e, "<" + e.name + "> = \"" + text + "\" is not dd:mm:ss.ss with " + letters[0] +
                     " or " + letters[1]);
  return letter == letters[0] ? degrees : -degrees;
}

struct Element {
  std::int64_t id = 0, adc = 0;
  Antenna antenna;
};

Element read_antenna(const File& file, const XmlElement& ant, double unit_m) {
  file.only(ant, {"adc_chan", "position"}, {"id", "pols", "name"});
  Element e;
  e.id = file.count_of(ant, "attribute \"id\"", file.attribute_number(ant, "id"), 0, 65535);
  if (ant.attribute("pols") != nullptr && file.attribute_number(ant, "pols") != 1)
    file.fail(ant, "attribute \"pols\": only antennas of one polarization are read");
  const std::string* name = ant.attribute("name");
  e.antenna.name = name != nullptr && !name->empty() ? *name : "ant" + std::to_string(e.id);
  const XmlElement& adc = file.needed(ant, "adc_chan");
  file.only(adc, {}, {"pol"});
  e.adc = file.count_of(adc, "<adc_chan>", file.number_of(adc, "<adc_chan>", adc.text), 0, 65535);
  const XmlElement& position = file.needed(ant, "position");
  file.only(position, {"grid", "x", "y", "z"}, {});
  e.antenna.enu_m = {file.text_number(position, "x") * unit_m,
                     file.text_number(position, "y") * unit_m,
                     file.text_number(position, "z") * unit_m};
  return e;
}

// @eq meters = wavelengths * c / center_freq
void read_antennas(const std::string& path, Best2Positions positions, Best2Observation& out) {
  const File file(path);
  const XmlElement& root = file.root();
  if (root.name != "array") file.fail(root, "the root is <" + root.name + ">, not <array>");
  file.only(root, {"receiver", "grid", "antennas"}, {"name"});
  const XmlElement& receiver = file.needed(root, "receiver");
  file.only(receiver, {"center_freq"}, {});
  const double center_ghz = file.text_number(receiver, "center_freq");
  if (!(center_ghz > 0.001 && center_ghz < 100))
    file.fail(receiver, "<center_freq> is " + std::to_string(center_ghz) +
                            "; it is wanted in GHz, 0.001 to 100");
  out.center_frequency_hz = center_ghz * 1e9;
  const double unit_m =
      positions == Best2Positions::meters ? 1 : kSpeedOfLight_m_per_s / out.center_frequency_hz;
  const XmlElement& antennas = file.needed(root, "antennas");
  file.only(antennas, {"reference", "ant"}, {});
  const XmlElement& place = file.needed(file.needed(antennas, "reference"), "position");
  file.only(place, {"lat", "long"}, {});
  if (const std::string* name = root.attribute("name")) out.array.name = *name;
  detail::set_site(out.array, angle_of(file, file.needed(place, "lat"), "NS", 90),
                   angle_of(file, file.needed(place, "long"), "EW", 180), 0);
  std::vector<Element> elements;
  std::set<std::int64_t> ids, adcs;
  std::set<std::string> names;
  for (const auto& ant : antennas.children) {
    if (ant.name != "ant") continue;
    Element e = read_antenna(file, ant, unit_m);
    if (!ids.insert(e.id).second)
      file.fail(ant, "antenna id " + std::to_string(e.id) + " is there twice");
    if (!adcs.insert(e.adc).second)
      file.fail(ant, "<adc_chan> " + std::to_string(e.adc) + " is there twice");
    if (!names.insert(e.antenna.name).second)
      file.fail(ant, "antenna name \"" + e.antenna.name + "\" is there twice");
    elements.push_back(std::move(e));
  }
  if (elements.empty()) file.fail(antennas, "there is no <ant>");
  if (*adcs.rbegin() != static_cast<std::int64_t>(elements.size()) - 1)
    file.fail(antennas, "<adc_chan> must be 0 to " + std::to_string(elements.size() - 1) +
                            ", each once; the highest is " + std::to_string(*adcs.rbegin()));
  // Samples arrive in the order of the ADC channels, not in that of the file.
  std::sort(elements.begin(), elements.end(),
            [](const Element& a, const Element& b) { return a.adc < b.adc; });
  for (const auto& e : elements) {
    ArrayInput input;
    input.antenna = out.array.n_antennas();
    out.array.antennas.push_back(e.antenna);
    out.array.inputs.push_back(input);
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    double low = 1e300, high = -1e300;
    for (const auto& a : out.array.antennas) {
      low = std::min(low, a.enu_m[axis]);
      high = std::max(high, a.enu_m[axis]);
    }
    out.aperture_m[axis] = high - low;
  }
}

/// Attribute values of the observation file by the name that the published code reads.
class Attributes {
 public:
  Attributes(const File& file, std::vector<std::string>& warnings)
      : file_(file), warnings_(warnings) {}

  /// Checks every attribute, warns of names of the other dialect.
  void check(const XmlElement& e) {
    const auto known = std::find_if(known_elements().begin(), known_elements().end(),
                                    [&](const Known& k) { return e.name == k.element; });
    std::vector<std::string> all;
    for (const auto& n : known->names) {
      all.emplace_back(n.read_by_code);
      if (n.also == nullptr) continue;
      all.emplace_back(n.also);
      const std::string *first = e.attribute(n.read_by_code), *second = e.attribute(n.also);
      if (first != nullptr && second != nullptr && *first != *second)
        file_.fail(e, std::string("attributes \"") + n.read_by_code + "\" and \"" + n.also +
                          "\" mean the same and differ");
      if (first == nullptr && second != nullptr)
        warnings_.push_back(file_.where(e) + ": \"" + n.also + "\" = " + *second +
                            " is taken; the published code reads \"" + n.read_by_code +
                            "\" and took 0");
    }
    file_.only(e, e.name == "beams" ? std::vector<std::string>{"beam"} : std::vector<std::string>{},
               all);
  }
  /// A number by either name; nothing when it is not there.
  std::optional<double> number(const XmlElement* e, const char* name, const char* also) const {
    if (e == nullptr) return {};
    for (const char* key : {name, also}) {
      if (key != nullptr && e->attribute(key) != nullptr) return file_.attribute_number(*e, key);
    }
    return {};
  }

 private:
  const File& file_;
  std::vector<std::string>& warnings_;
};

BeamPointing read_beam(const File& file, const XmlElement& e, const Attributes& values,
                       std::vector<std::string>& warnings) {
  BeamPointing beam;
  const double id = values.number(&e, "beamId", nullptr).value_or(0);
  beam.name = "beam" + std::to_string(file.count_of(e, "attribute \"beamId\"", id, 0, 65535));
  const double dec_deg = file.attribute_number(e, "dec");
  const double ra_deg = values.number(&e, "ra", nullptr).value_or(0);
  const double ha_deg = values.number(&e, "ha", nullptr).value_or(0);
  if (std::fabs(dec_deg) > 90) file.fail(e, "attribute \"dec\" is not within 90 deg");
  if (std::fabs(ra_deg) > 360 || std::fabs(ha_deg) > 360)
    file.fail(e, "\"ra\" and \"ha\" are degrees, within 360");
  beam.latitude_rad = dec_deg * kDegree_rad;
  beam.frame = ra_deg != 0 ? BeamFrame::icrs : BeamFrame::hadec;
  beam.longitude_rad = (ra_deg != 0 ? ra_deg : ha_deg) * kDegree_rad;
  if (ra_deg != 0 && ha_deg != 0)
    warnings.push_back(file.where(e) + ": both \"ra\" and \"ha\"; ra is not 0, so the beam tracks");
  if (ra_deg != 0 && (ra_deg < 0.57 || ra_deg > 359.43))
    warnings.push_back(file.where(e) +
                       ": the published code does not track within 0.57 deg of RA 0; Ryle does");
  return beam;
}

void read_band(const File& file, const XmlElement& beams, const Attributes& values, Best2Band band,
               Best2Observation& out) {
  std::optional<double> offset_mhz, top_mhz;
  const bool beamformer = beams.attribute("antennaFile") != nullptr;
  for (const auto& e : beams.children) {
    const double offset = file.attribute_number(e, "frequencyOffset");
    const auto top = values.number(&e, "topFrequency", nullptr);
    if (offset == 0) file.fail(e, "attribute \"frequencyOffset\" is 0");
    if ((offset_mhz && *offset_mhz != offset) || (top_mhz && top && *top_mhz != *top))
      file.fail(e, "beams differ in \"frequencyOffset\" or \"topFrequency\"");
    offset_mhz = offset;
    if (top) top_mhz = top;
  }
  if (!offset_mhz) file.fail(beams, "<beams> has no <beam>: no \"frequencyOffset\" to take");
  const double width_hz = std::fabs(*offset_mhz) * 1e6;
  const bool down = band == Best2Band::descending;
  const bool says_down = beamformer ? *offset_mhz > 0 : *offset_mhz < 0;
  if (down != says_down)
    out.warnings.push_back(file.where(beams) +
                           ": \"frequencyOffset\" = " + std::to_string(*offset_mhz) +
                           (beamformer ? " in a beamformer file (positive: descending)"
                                       : " in a search file (negative: descending)") +
                           " says the band runs the other way than was asked for");
  const double half_hz = 0.5 * static_cast<double>(out.n_channels) * width_hz;
  const double edge_hz = out.center_frequency_hz + (down ? half_hz : -half_hz);
  out.channel_step_hz = down ? -width_hz : width_hz;
  out.first_center_hz = edge_hz + 0.5 * out.channel_step_hz;
  if (top_mhz && std::fabs(*top_mhz * 1e6 - (out.center_frequency_hz + half_hz)) > width_hz)
    out.warnings.push_back(
        file.where(beams) + ": \"topFrequency\" = " + std::to_string(*top_mhz) +
        " MHz does not fit <center_freq> of the antenna file with these channels (" +
        std::to_string((out.center_frequency_hz + half_hz) * 1e-6) +
        " MHz); <center_freq> is used, as for the weights of the published code");
}

void read_observation(const std::string& path, Best2Band band, Best2Observation& out) {
  const File file(path);
  const XmlElement& root = file.root();
  if (root.name != "observation")
    file.fail(root, "the root is <" + root.name + ">, not <observation>");
  std::vector<std::string> children;
  for (const auto& k : known_elements()) {
    if (std::string(k.element) != "beam") children.emplace_back(k.element);
  }
  file.only(root, children, {});
  Attributes values(file, out.warnings);
  for (const auto& e : root.children) {
    values.check(e);
    if (e.name != "beams") continue;
    for (const auto& beam : e.children) values.check(beam);
  }
  const XmlElement& channels = file.needed(root, "channels");
  out.n_channels = file.count_of(channels, "attribute \"nchans\"",
                                 file.attribute_number(channels, "nchans"), 1, 1 << 20);
  const XmlElement& timing = file.needed(root, "timing");
  out.spectrum_interval_s = file.attribute_number(timing, "tsamp");
  if (!(out.spectrum_interval_s > 0)) file.fail(timing, "attribute \"tsamp\" must be positive");
  if (const XmlElement* samples = file.child(root, "samples")) {
    const auto whole = [&](const char* name, const char* also, std::int64_t otherwise) {
      const auto value = values.number(samples, name, also);
      return value ? file.count_of(*samples, std::string("attribute \"") + name + "\"", *value, 0,
                                   std::int64_t{1} << 40)
                   : otherwise;
    };
    out.block_spectra = whole("nsamp", "number", 0);
    out.bits = whole("nbits", "bits", 0);
    out.downsample = whole("downsample", nullptr, 1);
  }
  if (const XmlElement* antennas = file.child(root, "antennas")) {
    const double number = file.attribute_number(*antennas, "number");
    if (number != static_cast<double>(out.array.n_antennas()))
      file.fail(*antennas, "attribute \"number\" is " + std::to_string(std::llround(number)) +
                               ", but the antenna file has " +
                               std::to_string(out.array.n_antennas()));
  }
  const XmlElement& beams = file.needed(root, "beams");
  read_band(file, beams, values, band, out);
  std::set<std::string> names;
  for (const auto& e : beams.children) {
    const bool direction = e.attribute("dec") != nullptr;
    if (!direction && e.attribute("ra") == nullptr && e.attribute("ha") == nullptr) continue;
    BeamPointing beam = read_beam(file, e, values, out.warnings);
    if (!names.insert(beam.name).second) file.fail(e, "\"beamId\" of " + beam.name + " twice");
    out.beams.push_back(std::move(beam));
  }
}

std::string text_of(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// A basic TOML string.
std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) out += c;
  }
  return out + "\"";
}

}  // namespace

Best2Observation read_best2(const std::string& observation_path, const std::string& antennas_path,
                            Best2Positions positions, Best2Band band) {
  Best2Observation out;
  read_antennas(antennas_path, positions, out);
  read_observation(observation_path, band, out);
  return out;
}

std::string best2_layout_csv(const Best2Observation& observation) {
  std::string csv =
      "# Inputs in the order of the packets (ADC channels). Meters of the reference.\n"
      "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";
  for (const auto& input : observation.array.inputs) {
    const Antenna& a = observation.array.antennas[input.antenna];
    std::string name = a.name;
    std::replace(name.begin(), name.end(), ',', '_');
    csv += name;
    for (const double m : a.enu_m) csv += "," + text_of("%.6f", m);
    csv += ",X,0\n";
  }
  return csv;
}

std::string best2_beams_toml(const Best2Observation& o, const std::string& layout_file) {
  std::string toml = "[telescope]\nname = " + toml_string(o.array.name) +
                     "\nlayout = " + toml_string(layout_file) +
                     "\nlatitude_deg = " + text_of("%.8f", o.array.latitude_rad / kDegree_rad) +
                     "\nlongitude_deg = " + text_of("%.8f", o.array.longitude_rad / kDegree_rad) +
                     "\nheight_m = 0.0\n";
  toml += "\n# Order of the data; a negative step descends.\n[band]\nfirst_center_mhz = " +
          text_of("%.9f", o.first_center_hz * 1e-6) +
          "\nchannel_step_khz = " + text_of("%.9f", o.channel_step_hz * 1e-3) +
          "\nn_channels = " + std::to_string(o.n_channels) + "\n";
  for (const auto& beam : o.beams) {
    const bool tracks = beam.frame == BeamFrame::icrs;
    toml += "\n[[beam]]\nname = " + toml_string(beam.name) +
            "\nframe = " + (tracks ? toml_string("icrs") : toml_string("hadec")) +
            (tracks ? "\nra_deg = " : "\nha_deg = ") +
            text_of("%.9f", beam.longitude_rad / kDegree_rad) +
            "\ndec_deg = " + text_of("%.9f", beam.latitude_rad / kDegree_rad) + "\n";
  }
  return toml;
}

}  // namespace ryle
