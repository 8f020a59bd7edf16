// SPDX-License-Identifier: BSD-3-Clause
// Files of text: tables of antennas and gains, station files, XML, ephemerides, masks.
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/mask.hpp"
#include "ryle/io/map/beam_gains.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"
#include "ryle/telescope/array.hpp"
#include "ryle/telescope/beams_file.hpp"
#include "ryle/telescope/best2_xml.hpp"
#include "ryle/telescope/catalog.hpp"
#include "ryle/telescope/dut1.hpp"
#include "ryle/telescope/gains.hpp"
#include "ryle/telescope/pulsar.hpp"
#include "tests/fuzz/bodies.hpp"

namespace ryle::fuzz {
namespace {

const char* const kLayout =
    "antenna,east_m,north_m,up_m,pol,cable_delay_ns,feed_angle_deg,bad\n# two\na,0,0,0,X,1.5,0,0\n"
    "a,0,0,0,Y,1.5,90,1\nb,10,-3.25,0.5,X,2,0,0\nb,10,-3.25,0.5,Y,2,90,0\n";
const char* const kBeams =
    "[telescope]\nname = \"two\"\nlayout = \"/proc/self/fd/3\"\nlatitude_deg = 44.5\n"
    "longitude_deg = 11.6\n[band]\nfirst_center_mhz = 418.0\nchannel_step_khz = -19.5\n"
    "n_channels = 16\n[subarray.east]\nantennas = \"0-1\"\ntaper = [0.5, 1.0]\n[[beam]]\n"
    "name = \"b0329\"\nframe = \"icrs\"\nra = \"03h32m59.4s\"\ndec = \"+54d34m43s\"\n[[beam]]\n"
    "frame = \"hadec\"\nha_deg = 0.0\ndec_deg = 58.8\nsubarray = \"east\"\n[[beam_grid]]\n"
    "around = \"b0329\"\npattern = \"hex\"\ncount = 7\nspacing_deg = 0.5\n";
const char* const kAntennas =
    "<?xml version=\"1.0\"?>\n<array name='x'>\n <receiver><center_freq>0.408</center_freq>"
    "</receiver>\n <antennas>\n  <reference><position><lat>44:31:24.88N</lat><long>11:38:45.56E"
    "</long></position></reference>\n  <ant id='0' pols='1' name='a'><adc_chan pol='x'>0</adc_chan>"
    "<position><grid x='0' y='0'/><x>0.5</x><y>1</y><z>0.0</z></position></ant>\n  <ant id='1' "
    "pols='1' name='b'><adc_chan pol='x'>1</adc_chan><position><grid x='1' y='0'/><x>8.5</x><y>1"
    "</y><z>0.0</z></position></ant>\n </antennas>\n</array>\n";
const char* const kBeamformer =
    "<observation>\n <antennas number=\"2\" />\n <channels nchans=\"1024\" subchannels=\"1024\" "
    "startChannel=\"408\" stopChannel=\"412\"/>\n <timing tsamp=\"0.0000512\" />\n <samples nsamp="
    "\"8192\" nbits=\"8\" downsample=\"4\" />\n <beams antennaFile=\"antennas.xml\" >\n  <beam "
    "beamId=\"0\" dec=\"54.579\" ra=\"0\" ha=\"0.5\" topFrequency=\"418\" frequencyOffset="
    "\"0.01953125\"/>\n </beams>\n</observation>\n";
const char* const kPar =
    "PSRJ J0332+5434\nRAJ 03:32:59.4096 1 0.001\nDECJ +54:34:43.329 1\nF0 1.399541538720 1\nF1 "
    "-4.011970D-15\nPEPOCH 46473.00\nDM 26.7641\nPMRA 17.3\nPOSEPOCH 46473\nUNITS TDB\n";

void layout(std::span<const std::byte> data) {
  const std::string path = memory_file(data);
  accepts([&] {
    const ArrayLayout array = read_layout_csv(path, 44.5, 11.6, 20);
    for (const ArrayInput& input : array.inputs)
      require(input.antenna >= 0 && input.antenna < array.n_antennas() && input.pol >= 0 &&
                  input.pol < 2,
              "an input of an antenna that is there");
  });
  accepts([&] { require(read_gains_csv(path, 3, [] {}).size() == 3, "a gain an input"); });
  accepts([&] { BeamGains::read(path); });
  accepts([&] { read_sight_lines(path); });
  accepts([&] { Dut1Table::parse(text_of(data), "table"); });
  accepts([&] { parse_watch_list(text_of(data)); });
}
std::vector<Bytes> layout_seeds() {
  return {bytes_of(kLayout),
          bytes_of("input,amplitude,phase_deg\n0,1,0\n1,0.5,-90\n2,2,1e1\n"),
          bytes_of("name,lon,lat\nA,83.6,22.0\nB,10,-5\n"),
          bytes_of("M01 1250 16.02\nM02 15.5\n"),
          bytes_of("60000,0.01\n60001,0.011\n60002,0.012\n"),
          bytes_of("Cyg A;sun;X=299.868,+40.734;19:59:28.36,+40:44:02.1")};
}

void station(std::span<const std::byte> data) {
  const std::string path = memory_file(data);
  accepts([&] { read_lwa_ssmif(path); });
  accepts([&] { read_tart_positions(path, 44.5, 11.6, 20); });
}
std::vector<Bytes> station_seeds() {
  return {
      bytes_of("# station\nSTATION_ID VL\nGEO_N 34.07\nGEO_E -107.6\nGEO_EL 2133\nN_STD 2\n"
               "STD_LX[1] 0.5\nSTD_LY[1] 1.5\nSTD_LZ[1] 0\nSTD_LX[2] -3\nSTD_LY[2] 2\nSTD_LZ[2] "
               "0.1\nN_ANT 4\nANT_STD[1] 1\nANT_ORIE[1] 0\nANT_STAT[2] 3\nRPD_LENG[1] 120\n"
               "RPD_VF[1] 83\nRPD_DD[1] 2.4\nRPD_STR[1] 1\n"),
      bytes_of("{\"antenna_positions\": [[0, 0, 0], [1.5, -2.25, 0.01], [3e0, 4, 5]]}"),
      bytes_of("[[0, 0, 0], [1, 2, 3]]")};
}

void beams_file(std::span<const std::byte> data) {
  static const std::string layout_path = memory_file(bytes_of(kLayout), 3);
  std::string text = text_of(data);
  const auto at = text.find("/proc/self/fd/3\"");
  if (at != std::string::npos) text.replace(at, 15, layout_path);
  accepts([&] {
    const BeamsFile file = parse_beams(text, "beams.toml");
    require(file.subarray_of_beam.size() == file.beams.size(), "a sub-array a beam");
    for (const auto k : file.subarray_of_beam)
      require(k >= 0 && k < static_cast<std::int64_t>(file.subarrays.size()), "one that is there");
  });
}
std::vector<Bytes> beams_file_seeds() { return {bytes_of(kBeams)}; }

void best2_xml(std::span<const std::byte> data) {
  static const std::string antennas = memory_file(bytes_of(kAntennas), 4);
  static const std::string observation = memory_file(bytes_of(kBeamformer), 5);
  const std::string path = memory_file(data);
  const auto read = [](const std::string& a, const std::string& b) {
    accepts([&] {
      const auto o = read_best2(a, b, Best2Positions::meters, Best2Band::ascending);
      require(o.array.n_inputs() >= 1 && o.n_channels >= 1, "an array and a band");
      best2_layout_csv(o);
      best2_beams_toml(o, "layout.csv");
    });
  };
  read(path, antennas);
  read(observation, path);
}
std::vector<Bytes> best2_xml_seeds() { return {bytes_of(kAntennas), bytes_of(kBeamformer)}; }

void par(std::span<const std::byte> data) {
  accepts([&] {
    const Pulsar pulsar = parse_par(text_of(data), "x.par");
    require(pulsar.f0_hz > 0 && pulsar.dm_pc_cm3 >= 0, "a pulsar turns, behind matter");
    PulsarClock(pulsar, nullptr).turns(std::int64_t{1'600'000'000} * 1'000'000'000, 0);
  });
}
std::vector<Bytes> par_seeds() { return {bytes_of(kPar)}; }

void masks(std::span<const std::byte> data) {
  search::Band band;
  for (int c = 0; c < 8; ++c) band.center_hz.push_back(400e6 + 1e6 * c);
  band.channel_width_hz = 1e6;
  band.sample_interval_s = 1e-3;
  const std::string text = text_of(data);
  accepts([&] {
    const search::UserMask mask = search::parse_rfifind_mask(text, "x.mask", band);
    require(mask.channels.empty() || mask.channels.size() == 8, "a channel each");
    for (const auto& block : mask.blocks)
      require(block.first <= block.end && (block.channels.empty() || block.channels.size() == 8),
              "a block of the band");
  });
  accepts([&] {
    require(search::parse_kill_file(text, "x.kill", band, true).size() == 8, "a channel each");
  });
  accepts([&] { search::parse_time_ranges(text, 1e-3); });
}
std::vector<Bytes> mask_seeds() {
  const auto number = [](auto value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string presto;
  for (const double value : {4.0, 4.0, 59000.0, 1.0, 400.0, 1.0}) presto += number(value);
  for (const int value : {8, 3, 1000, 1, 2, 1, 1, 2, 0, 1, 3, 4}) presto += number(value);
  return {bytes_of("1\n1\n0\n1\n1\n1\n0\n1\n"), bytes_of("12.5-13.1,40-41"),
          bytes_of("zap 401.5 403\n# x\n"), bytes_of(presto)};
}

}  // namespace

std::vector<Body> table_bodies() {
  return {{"layout", layout, layout_seeds},
          {"station", station, station_seeds},
          {"beams_file", beams_file, beams_file_seeds},
          {"best2_xml", best2_xml, best2_xml_seeds},
          {"par", par, par_seeds},
          {"masks", masks, mask_seeds, 2}};
}

}  // namespace ryle::fuzz
