// SPDX-License-Identifier: BSD-3-Clause
// Files of other programs, and those a killed Ryle left.

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/map/map_projection.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "ryle/io/visibility/dump_journal.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"
#include "tests/fuzz/bodies.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"
#include "tests/support/fits_text.hpp"

namespace ryle::fuzz {
namespace {

namespace fs = std::filesystem;
using test::Scratch;

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// What was read has the sizes it says it has.
void check_visibilities(const VisibilityFile& file) {
  const Observation& o = file.observation;
  for (const VisibilityDump& dump : file.dumps) {
    const auto size =
        static_cast<std::size_t>(dump.n_channels * dump.n_baselines * dump.n_pol_products);
    require(dump.n_channels == o.frequency.n_channels, "the channels of the observation");
    require(dump.n_baselines == o.array.n_antennas() * (o.array.n_antennas() + 1) / 2,
            "a pair of antennas each");
    require(dump.data.size() == size && dump.counts.size() == size, "a value a place");
  }
}

const test::Shape& shape() {
  static const test::Shape small{3, 2, 2};
  return small;
}

/// Two integrations as our writer writes them.
std::string visibility_seed(const std::string& folder, const std::string& suffix) {
  const Observation o = test::make_observation(shape());
  const std::string path = folder + "/seed" + suffix;
  const auto writer = open_visibility_writer(path, o, true);
  for (std::int64_t d = 0; d < 2; ++d) writer->write(test::make_dump(o, {}, d));
  writer->publish(o);
  return path;
}

std::vector<Bytes> seed_of(const std::string& suffix) {
  const Scratch scratch;
  return {bytes_of(file_text(visibility_seed(scratch.path(), suffix)))};
}

void uvfits(std::span<const std::byte> data) {
  accepts([&] { check_visibilities(io::read_uvfits(memory_file(data), {})); });
}

/// Ours has checksums of all that counts: what is taken is what was written, or was another's.
void uvh5(std::span<const std::byte> data) {
  accepts([&] { check_visibilities(io::read_uvh5(memory_file(data), {})); });
}

std::string values_of(const VisibilityFile& file) {
  std::string values;
  for (const VisibilityDump& dump : file.dumps)
    values += raw_text(dump.data) + raw_text(dump.counts);
  return values;
}

/// True at a byte of the data of a FITS file: DATASUM says nothing of headers.
bool in_fits_data(std::span<const std::byte> data, std::size_t at) {
  const std::string text = text_of(data);
  bool header = false;
  for (std::size_t block = 0; block <= at; block += 2880) {
    header = header || text.compare(block, 9, "SIMPLE  =") == 0 ||
             text.compare(block, 9, "XTENSION=") == 0;
    if (at < block + 2880) return !header;
    for (std::size_t card = block; header && card < block + 2880; card += 80)
      if (text.compare(card, 8, "END     ") == 0) {
        header = false;
        break;
      }
  }
  return false;
}

std::optional<std::string> uvfits_values(std::span<const std::byte> data) {
  return values_if_accepted([&] { return values_of(io::read_uvfits(memory_file(data), {})); });
}

std::optional<std::string> uvh5_values(std::span<const std::byte> data) {
  return values_if_accepted([&] { return values_of(io::read_uvh5(memory_file(data), {})); });
}

std::vector<Bytes> uvfits_seeds() { return seed_of(".uvfits"); }
std::vector<Bytes> uvh5_seeds() { return seed_of(".uvh5"); }

/// Reads the beginning, the middle and the end.
void filterbank(std::span<const std::byte> data) {
  for (const char* polarization : {"", "I"}) {
    accepts([&] {
      FilterbankOptions options;
      options.polarization = polarization;
      const auto reader = open_filterbank(memory_file(data), options);
      const FilterbankInfo& info = reader->info();
      require(info.n_channels >= 1 && info.n_samples >= 1, "an empty file is refused");
      require(info.channel_center_hz.size() == static_cast<std::size_t>(info.n_channels),
              "a frequency a channel");
      require(static_cast<double>(info.n_channels) * static_cast<double>(info.n_samples) <=
                  33.0 * 8 * static_cast<double>(data.size()),
              "no more samples than bits");
      const std::int64_t n = std::min<std::int64_t>(info.n_samples, 70);
      std::vector<float> values(static_cast<std::size_t>(info.n_channels * n) + 1, 77);
      for (const std::int64_t first :
           {std::int64_t{0}, (info.n_samples - n) / 2, info.n_samples - n})
        reader->read(first, n, values.data(), n);
      require(values.back() == 77, "nothing behind the end");
    });
  }
}

std::vector<Bytes> sigproc_seeds() {
  const Scratch scratch;
  std::vector<Bytes> seeds;
  for (const int bits : {8, 2}) {
    FilterbankInfo info;
    info.bits = bits;
    info.n_channels = 8;
    info.sample_interval_s = 1e-3;
    info.channel_width_hz = 1e6;
    for (int c = 0; c < 8; ++c) info.channel_center_hz.push_back(400e6 + 1e6 * c);
    info.start_mjd_utc = 59'000;
    SigprocWriter writer(scratch / "seed.fil", info, {true, bits == 8});
    const std::vector<float> values(8 * 90, 2);
    writer.append(values.data(), 90, 90);
    writer.finish();
    seeds.push_back(bytes_of(file_text(scratch / "seed.fil")));
  }
  return seeds;
}

std::vector<Bytes> psrfits_seeds() {
  std::vector<Bytes> seeds;
  for (const int bits : {8, 4}) {
    std::string file = test::primary_header({{"FITSTYPE", "'PSRFITS'"},
                                             {"OBS_MODE", "'SEARCH'"},
                                             {"TELESCOP", "'Parkes'"},
                                             {"RA", "'12:00:01.5'"},
                                             {"DEC", "'-01:02:03'"},
                                             {"STT_IMJD", "59000"},
                                             {"STT_SMJD", "10"},
                                             {"STT_OFFS", "0.5"}});
    std::string row;
    for (int c = 0; c < 4; ++c) row += test::big_endian(1400.0 - c);
    const std::string one("\x3f\x80\0\0", 4);
    for (int k = 0; k < 4 + 4 + 4; ++k) row += one;
    row += std::string(static_cast<std::size_t>(16 * 4 * bits / 8), '\x21');
    test::add_table(file, "SUBINT",
                    {{"DAT_FREQ", "4D"},
                     {"DAT_WTS", "4E"},
                     {"DAT_OFFS", "4E"},
                     {"DAT_SCL", "4E"},
                     {"DATA", std::to_string(16 * 4 * bits / 8) + "B"}},
                    {{"NCHAN", "4"},
                     {"NPOL", "1"},
                     {"POL_TYPE", "'AA+BB'"},
                     {"NBITS", std::to_string(bits)},
                     {"NSBLK", "16"},
                     {"NSUBOFFS", "0"},
                     {"TBIN", "6.4E-5"},
                     {"ZERO_OFF", "0.5"}},
                    row, 3);
    seeds.push_back(bytes_of(file));
  }
  return seeds;
}

void covariance(std::span<const std::byte> data) {
  static const std::string antennas =
      memory_file(bytes_of("a 0 0 0\nb 10 0 0\nc 0 12.5 1 # the third\nd 3 4 5\n"), 1);
  static const std::string good = memory_file(bytes_of("SIMPLE"), 2);
  accepts([&] {
    CovarianceFiles files;
    files.real_path = memory_file(data);
    files.imaginary_path = files.real_path;
    files.antennas_path = antennas;
    files.frequency_hz = 150e6;
    files.latitude_deg = -26.7;
    files.longitude_deg = 116.7;
    files.utc = "2024-01-01T05:00:00";
    files.conjugate = Conjugate::no;
    check_visibilities(read_covariance(files));
  });
}

std::string image_header(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string file = test::card("SIMPLE", "T");
  for (const auto& [key, value] : keys) file += test::card(key, value);
  file += test::card("END", "");
  test::pad_block(file, ' ');
  return file;
}

std::vector<Bytes> covariance_seeds() {
  std::string file =
      image_header({{"BITPIX", "-64"}, {"NAXIS", "2"}, {"NAXIS1", "4"}, {"NAXIS2", "4"}});
  for (int k = 0; k < 16; ++k) file += test::big_endian(k);
  test::pad_block(file, '\0');
  return {bytes_of(file)};
}

void map_target(std::span<const std::byte> data) {
  accepts([&] {
    const MapProjection map = MapProjection::read(memory_file(data));
    require(map.width() >= 1 && map.height() >= 1, "a map has pixels");
    if (map.width() > 100'000) return;
    const auto n = static_cast<std::size_t>(map.width());
    std::vector<double> lon(n + 1, 77), lat(n + 1, 77);
    map.directions(map.height() - 1, 1, lon.data(), lat.data());
    require(lon.back() == 77 && lat.back() == 77, "nothing behind the end");
    map.pixel_of(30, 40);
    MapProjection::from_cards(map.cards(), map.width(), map.height());
  });
}

std::vector<Bytes> map_target_seeds() {
  std::vector<Bytes> seeds;
  for (const char* code : {"SIN", "ZPN", "CAR"}) {
    seeds.push_back(bytes_of(image_header({{"BITPIX", "-32"},
                                           {"NAXIS", "3"},
                                           {"NAXIS1", "20"},
                                           {"NAXIS2", "10"},
                                           {"NAXIS3", "1"},
                                           {"CTYPE1", std::string("'RA---") + code + "'"},
                                           {"CTYPE2", std::string("'DEC--") + code + "'"},
                                           {"CTYPE3", "'FREQ'"},
                                           {"CRVAL3", "1.4E9"},
                                           {"CRPIX1", "10.5"},
                                           {"CRPIX2", "5.5"},
                                           {"CDELT1", "-0.1"},
                                           {"CDELT2", "0.1"},
                                           {"CRVAL1", "30.0"},
                                           {"CRVAL2", "40.0"},
                                           {"PV2_1", "1.0"},
                                           {"PV2_3", "20.0"},
                                           {"LONPOLE", "170.0"},
                                           {"RADESYS", "'FK5'"},
                                           {"EQUINOX", "2000.0"}})));
  }
  return seeds;
}

/// What a kill left of UVH5.
void recover_uvh5(std::span<const std::byte> data) {
  accepts([&] { check_visibilities(io::read_unfinished_uvh5(memory_file(data))); });
}

std::vector<Bytes> recover_uvh5_seeds() {
  const Scratch scratch;
  const Observation o = test::make_observation(shape());
  const std::string path = scratch / "seed.uvh5";
  const auto writer = open_visibility_writer(path, o, true);
  writer->write(test::make_dump(o, {}, 0));
  return {bytes_of(file_text(part_path(path)))};
}

/// The journal beside an unfinished Measurement Set.
void journal(std::span<const std::byte> data) {
  accepts([&] { io::read_journal(memory_file(data)); });
}

std::vector<Bytes> journal_seeds() {
  const Scratch scratch;
  {
    io::DumpJournal out(scratch / "j", test::make_observation(shape()));
    out.append({1, 2, 0.5, 3, 4});
    out.append({5, 6, 0.5, 3, 7});
  }
  return {bytes_of(file_text(scratch / "j"))};
}

/// A Measurement Set is a folder: the bytes are changes to one that is whole, six each (file, two
/// of the place, value, number of bytes, kind).
class DamagedSet {
 public:
  DamagedSet() {
    const std::string set = visibility_seed(scratch_.path(), ".ms");
    for (const auto& entry : fs::recursive_directory_iterator(set)) {
      if (entry.is_regular_file())
        files_.emplace_back(entry.path().string(), file_text(entry.path().string()));
    }
    std::sort(files_.begin(), files_.end());
    path_ = set;
  }

  /// Path of the set with these changes; those of the call before are undone.
  const std::string& damaged(std::span<const std::byte> data) {
    for (const std::size_t k : changed_) write(files_[k].first, files_[k].second);
    changed_.clear();
    for (std::size_t at = 0; at + 6 <= data.size() && changed_.size() < 8; at += 6) {
      const auto byte = [&](std::size_t k) { return std::to_integer<std::size_t>(data[at + k]); };
      const std::size_t k = byte(0) % files_.size();
      std::string text = file_text(files_[k].first);
      changed_.push_back(k);
      if (text.empty()) continue;
      const std::size_t place = (byte(1) << 8 | byte(2)) % text.size();
      if (byte(5) % 16 == 0) {
        text.resize(place);
      } else {
        for (std::size_t n = 0; n <= byte(4) % 4 && place + n < text.size(); ++n)
          text[place + n] = static_cast<char>(byte(3));
      }
      write(files_[k].first, text);
    }
    return path_;
  }

 private:
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
  }
  Scratch scratch_;
  std::string path_;
  std::vector<std::pair<std::string, std::string>> files_;
  std::vector<std::size_t> changed_;
};

void measurement_set(std::span<const std::byte> data) {
  if (!measurement_sets_supported()) return;
  static DamagedSet set;
  accepts([&] { check_visibilities(io::read_measurement_set(set.damaged(data), {})); });
}

std::vector<Bytes> measurement_set_seeds() {
  return {{}, Bytes(6), Bytes(12, std::byte{0x5A}), Bytes(18, std::byte{0xFF})};
}

}  // namespace

std::vector<Body> file_bodies() {
  return {{"sigproc", filterbank, sigproc_seeds},
          {"psrfits", filterbank, psrfits_seeds},
          {"uvfits", uvfits, uvfits_seeds, kAllWhole, uvfits_values, in_fits_data},
          {"uvh5", uvh5, uvh5_seeds, kAllWhole, uvh5_values},
          {"covariance", covariance, covariance_seeds},
          {"map_target", map_target, map_target_seeds, 2},
          {"recover", recover_uvh5, recover_uvh5_seeds},
          {"journal", journal, journal_seeds},
          {"measurement_set", measurement_set, measurement_set_seeds,
           measurement_sets_supported() ? std::size_t{1} : 0}};
}

}  // namespace ryle::fuzz
