// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/mwax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/visibility/covariance.hpp"
#include "ryle/io/visibility/dump_builder.hpp"

namespace ryle {
namespace {

// The array center that MWA positions are about.
constexpr double kMwaLatitude_deg = -26.703319405555554;
constexpr double kMwaLongitude_deg = 116.67081523611111;
constexpr double kMwaHeight_m = 377.827;
// Counts of a value whose weight is 1: weights are the shares of an integration that have data.
constexpr std::uint32_t kFullCount = 1000;
// Electrical length of a metre of cable where the metafits gives the length itself.
constexpr double kCableMetres = 1.204;

std::string mwa_note(const char* name) { return std::string(kCovarianceNote) + name; }

struct Tile {
  std::int64_t order = 0;  ///< the correlator's
  std::string name;
  std::array<double, 3> enu_m{};
  std::array<double, 2> cable_m{};  ///< electrical length of X and Y
  bool flagged = false;
};

struct Metafits {
  std::vector<Tile> tiles;  ///< in the correlator's order
  std::vector<std::int64_t> coarse_channels;
  double fine_width_hz = 0;
  double integration_s = 0;
  double coarse_width_hz = 0;
  bool cables_done = false;
  std::string observation;
};

// One cell of a table as text, trimmed.
std::string cell_text(const io::FitsFile& file, int column, LONGLONG row) {
  int status = 0;
  int type = 0;
  long repeat = 0;
  long width = 0;
  fits_get_coltype(file.get(), column, &type, &repeat, &width, &status);
  file.check(status, "read TILEDATA");
  std::vector<char> text(static_cast<std::size_t>(repeat) + 1, '\0');
  char* pointer = text.data();
  char null[] = "";
  int any_null = 0;
  fits_read_col(file.get(), TSTRING, column, row, 1, 1, null, &pointer, &any_null, &status);
  file.check(status, "read TILEDATA");
  return std::string(trimmed(text.data()));
}

double cell_number(const io::FitsFile& file, int column, LONGLONG row) {
  int status = 0;
  double value = 0;
  double null = 0;
  int any_null = 0;
  fits_read_col(file.get(), TDOUBLE, column, row, 1, 1, &null, &value, &any_null, &status);
  file.check(status, "read TILEDATA");
  return value;
}

int column_of(const io::FitsFile& file, const char* name) {
  int status = 0;
  int column = 0;
  std::string text(name);
  fits_get_colnum(file.get(), CASEINSEN, text.data(), &column, &status);
  if (status != 0) throw FormatError(file.path() + ": its TILEDATA has no column " + name);
  return column;
}

// "EL_-123.4": electrical metres; "RG6_90", "LMR400_150": metres of cable.
double cable_length_m(const std::string& text, const std::string& path) {
  const auto bar = text.find('_');
  double metres = 0;
  if (bar == std::string::npos || !parse_finite(text.substr(bar + 1), metres))
    throw FormatError(path + ": \"" + text + "\" is no length of a cable such as EL_-123.4");
  return text.substr(0, bar) == "EL" ? metres : metres * kCableMetres;
}

Metafits read_metafits(const std::string& path) {
  const io::FitsFile file = io::FitsFile::open(path);
  Metafits meta;
  meta.fine_width_hz = 1e3 * file.number("FINECHAN", 0);
  meta.integration_s = file.number("INTTIME", 0);
  meta.observation = file.text("FILENAME", "");
  for (const std::string& word : split(file.text("CHANNELS", ""), ',')) {
    std::int64_t channel = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), channel);
    if (error != std::errc{} || end != word.data() + word.size() || channel <= 0)
      throw FormatError(path + ": CHANNELS is no list of coarse channels");
    meta.coarse_channels.push_back(channel);
  }
  std::sort(meta.coarse_channels.begin(), meta.coarse_channels.end());
  meta.coarse_width_hz = 1e6 * file.number("BANDWDTH", 0) /
                         std::max<double>(1, static_cast<double>(meta.coarse_channels.size()));
  if (!(meta.fine_width_hz > 0) || !(meta.integration_s > 0) || !(meta.coarse_width_hz > 0) ||
      meta.coarse_channels.empty()) {
    throw FormatError(path +
                      ": no metafits of the MWA: it lacks CHANNELS, BANDWDTH, FINECHAN or INTTIME");
  }
  if (upper_case(file.text("DELAYMOD", "")) == "FULLTRACK" || file.number("GEODEL", 0) >= 1) {
    throw UnsupportedError(path +
                           ": the correlator has followed a direction of its own (DELAYMOD, "
                           "GEODEL); take these data as a Measurement Set or UVFITS");
  }
  meta.cables_done = file.number("CABLEDEL", 0) > 0;
  int status = 0;
  LONGLONG n_rows = 0;
  int kind = 0;
  fits_movabs_hdu(file.get(), 2, &kind, &status);
  fits_get_num_rowsll(file.get(), &n_rows, &status);
  file.check(status, "find TILEDATA");
  if (n_rows < 2 || n_rows > 8192) throw FormatError(path + ": its TILEDATA has no tiles");
  const int antenna = column_of(file, "Antenna"), tile_name = column_of(file, "TileName"),
            pol = column_of(file, "Pol"), length = column_of(file, "Length"),
            flag = column_of(file, "Flag");
  const int place[3] = {column_of(file, "East"), column_of(file, "North"),
                        column_of(file, "Height")};
  std::map<std::int64_t, Tile> tiles;
  for (LONGLONG row = 1; row <= n_rows; ++row) {
    const auto order = static_cast<std::int64_t>(cell_number(file, antenna, row));
    Tile& tile = tiles[order];
    tile.order = order;
    tile.name = cell_text(file, tile_name, row);
    for (std::size_t k = 0; k < 3; ++k) {
      tile.enu_m[k] = cell_number(file, place[k], row);
      if (!std::isfinite(tile.enu_m[k])) throw FormatError(path + ": a tile has no place");
    }
    const std::string feed = upper_case(cell_text(file, pol, row));
    tile.cable_m[feed == "Y" ? 1 : 0] = cable_length_m(cell_text(file, length, row), path);
    tile.flagged = tile.flagged || cell_number(file, flag, row) != 0;
  }
  for (auto& [order, tile] : tiles) meta.tiles.push_back(tile);
  return meta;
}

// The coarse channel in "..._ch137_000.fits".
std::int64_t coarse_channel_of(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  if (name.find("gpubox") != std::string::npos) {
    throw UnsupportedError(
        path +
        ": visibilities of the MWA before MWAX (gpubox) are not read; Birli, "
        "cotter or pyuvdata make UVFITS or a Measurement Set of them, which are");
  }
  const auto at = name.rfind("_ch");
  std::int64_t channel = -1;
  if (at != std::string::npos)
    std::from_chars(name.data() + at + 3, name.data() + name.size(), channel);
  if (channel <= 0)
    throw ConfigError(path +
                      ": which coarse channel? MWAX files are named OBSID_TIME_ch137_000.fits");
  return channel;
}

// Integrations of all files by their start (UNIX milliseconds), [coarse channel].
struct Part {
  std::string path;
  int hdu = 0;
  std::int64_t n_fine = 0;
};
using Parts = std::map<std::int64_t, std::map<std::int64_t, Part>>;

/// Weights of an integration, [baseline][XX XY YX YY], of the HDU after its values; 1 each, and
/// false, where that is not one of weights.
bool read_weights(const io::FitsFile& data, int hdu, std::vector<float>& weights) {
  int status = 0;
  int kind = 0;
  int n_axes = 0;
  int any_null = 0;
  float null = 0;
  LONGLONG extent[2] = {0, 0};
  fits_movabs_hdu(data.get(), hdu + 1, &kind, &status);
  if (status == 0) fits_get_img_dim(data.get(), &n_axes, &status);
  if (status == 0 && n_axes == 2) fits_get_img_sizell(data.get(), 2, extent, &status);
  const auto n = static_cast<LONGLONG>(weights.size());
  if (status != 0 || n_axes != 2 || extent[0] != 4 || extent[0] * extent[1] != n) {
    std::fill(weights.begin(), weights.end(), 1.0F);
    return false;
  }
  data.require_data();
  fits_read_img(data.get(), TFLOAT, 1, n, &null, weights.data(), &any_null, &status);
  data.check(status, "read weights");
  return true;
}

std::uint32_t count_of_weight(float weight) {
  if (!(weight > 0) || !std::isfinite(weight)) return 0;
  return static_cast<std::uint32_t>(
      std::clamp<double>(std::round(weight * double(kFullCount)), 1, 1e9));
}

Parts list_parts(const MwaxFiles& files, const Metafits& meta, std::int64_t n_baselines) {
  Parts parts;
  for (const std::string& path : files.data_paths) {
    const std::int64_t coarse = coarse_channel_of(path);
    if (std::find(meta.coarse_channels.begin(), meta.coarse_channels.end(), coarse) ==
        meta.coarse_channels.end()) {
      throw ConfigError(fmt::format("{}: coarse channel {} is not among those of {}", path, coarse,
                                    files.metafits_path));
    }
    const io::FitsFile file = io::FitsFile::open(path);
    if (file.number("CORR_VER", 0) < 2) {
      throw UnsupportedError(path + ": no file of MWAX: its header has no CORR_VER of 2 or more");
    }
    int status = 0;
    int n_hdus = 0;
    fits_get_num_hdus(file.get(), &n_hdus, &status);
    file.check(status, "count its HDUs");
    for (int hdu = 2; hdu <= n_hdus; hdu += 2) {  // every second one has the weights
      int kind = 0;
      int n_axes = 0;
      LONGLONG extent[2] = {0, 0};
      fits_movabs_hdu(file.get(), hdu, &kind, &status);
      fits_get_img_dim(file.get(), &n_axes, &status);
      if (n_axes == 2) fits_get_img_sizell(file.get(), 2, extent, &status);
      file.check(status, "read an HDU");
      if (n_axes != 2 || extent[0] % 8 != 0 || extent[0] == 0 || extent[1] != n_baselines) {
        throw FormatError(fmt::format(
            "{}: HDU {} is {} x {}: {} baselines of {} tiles with XX, XY, YX, YY are expected",
            path, hdu, extent[0], extent[1], n_baselines, meta.tiles.size()));
      }
      file.require_data();
      const double time_s = file.number("TIME", -1);
      if (time_s < 0) throw FormatError(fmt::format("{}: HDU {} has no TIME", path, hdu));
      const auto unix_ms =
          static_cast<std::int64_t>(std::llround(time_s * 1e3 + file.number("MILLITIM", 0)));
      auto& of_time = parts[unix_ms];
      if (of_time.count(coarse) != 0) {
        throw ConfigError(fmt::format("{} and {} have the same integration of coarse channel {}",
                                      of_time[coarse].path, path, coarse));
      }
      of_time[coarse] = {path, hdu, extent[0] / 8};
    }
  }
  if (parts.empty()) throw ConfigError("MWA visibilities: the files hold no integration");
  return parts;
}

}  // namespace

VisibilityFile read_mwax(const MwaxFiles& files) {
  if (files.data_paths.empty() || files.metafits_path.empty())
    throw ConfigError("MWA visibilities need files and their metafits");
  const Metafits meta = read_metafits(files.metafits_path);
  const auto n_tiles = static_cast<std::int64_t>(meta.tiles.size());
  const Parts parts = list_parts(files, meta, n_pairs(n_tiles));
  std::set<std::int64_t> coarse;
  std::int64_t n_fine = 0;
  for (const auto& [time, of_time] : parts) {
    for (const auto& [channel, part] : of_time) {
      coarse.insert(channel);
      if (n_fine != 0 && part.n_fine != n_fine) {
        throw ConfigError(
            fmt::format("{}: {} fine channels, others have {}", part.path, part.n_fine, n_fine));
      }
      n_fine = part.n_fine;
    }
  }
  const auto n_coarse = static_cast<std::int64_t>(coarse.size());
  if (*coarse.rbegin() - *coarse.begin() + 1 != n_coarse) {
    throw ConfigError(fmt::format(
        "MWA visibilities: {} coarse channels from {} to {} do not follow each other; give those "
        "that do",
        n_coarse, *coarse.begin(), *coarse.rbegin()));
  }
  VisibilityFile file;
  Observation& observation = file.observation;
  ArrayLayout& array = observation.array;
  array.name = "MWA";
  array.latitude_rad = kMwaLatitude_deg * kDegree_rad;
  array.longitude_rad = kMwaLongitude_deg * kDegree_rad;
  array.height_m = kMwaHeight_m;
  std::string flagged;
  for (const Tile& tile : meta.tiles) {
    array.antennas.push_back({tile.name, tile.enu_m});
    for (int pol = 0; pol < 2; ++pol) {
      ArrayInput input;
      input.antenna = array.n_antennas() - 1;
      input.pol = pol;
      input.feed_angle_rad = kPi / 2;  // of X, of either input: it lies east-west
      input.bad = tile.flagged;
      array.inputs.push_back(input);
    }
    if (tile.flagged) flagged += (flagged.empty() ? "" : ", ") + tile.name;
  }
  // Fine channel n_fine / 2 (rounded down) is the center of its coarse channel.
  observation.frequency = {static_cast<double>(*coarse.begin()) * meta.coarse_width_hz -
                               static_cast<double>(n_fine / 2) * meta.fine_width_hz,
                           meta.fine_width_hz, n_coarse * n_fine};
  observation.channel_bandwidth_hz = meta.fine_width_hz;
  observation.nominal_dump_s = meta.integration_s;
  observation.object = meta.observation;
  observation.time_source = TimeSource::header;
  observation.provenance.version = version();

  const bool with_cables = !files.as_recorded && !meta.cables_done;
  const bool conjugate = files.conjugate == Conjugate::yes;  // MWAX has <v_i conj(v_j)>
  std::vector<float> values(static_cast<std::size_t>(n_pairs(n_tiles) * n_fine * 8));
  std::vector<float> weights(static_cast<std::size_t>(n_pairs(n_tiles) * 4));
  std::int64_t n_missing = 0;
  std::int64_t n_unweighted = 0;
  for (const auto& [unix_ms, of_time] : parts) {
    VisibilityDump dump;
    dump.start_tai_ns = tai_ns_from_unix(unix_ms / 1000, unix_ms % 1000 * 1'000'000);
    const auto interval_ns = static_cast<std::int64_t>(std::llround(1e9 * meta.integration_s));
    dump.centroid_tai_ns = dump.start_tai_ns + interval_ns / 2;
    dump.interval_s = meta.integration_s;
    dump.n_spectra = kFullCount;
    dump.n_channels = observation.frequency.n_channels;
    dump.n_baselines = n_pairs(n_tiles);
    dump.n_pol_products = 4;
    dump.data.assign(dump.n_channels * dump.n_baselines * 4, {});
    dump.counts.assign(dump.n_channels * dump.n_baselines * 4, 0);
    n_missing += n_coarse - static_cast<std::int64_t>(of_time.size());
    for (const auto& [channel, part] : of_time) {
      const io::FitsFile data = io::FitsFile::open(part.path);
      int status = 0;
      int kind = 0;
      int any_null = 0;
      float null = 0;
      fits_movabs_hdu(data.get(), part.hdu, &kind, &status);
      fits_read_img(data.get(), TFLOAT, 1, static_cast<LONGLONG>(values.size()), &null,
                    values.data(), &any_null, &status);
      data.check(status, "read visibilities");
      if (!read_weights(data, part.hdu, weights)) ++n_unweighted;
      const std::int64_t first = (channel - *coarse.begin()) * n_fine;
      const float* in = values.data();
      const float* weight = weights.data();
      for (std::int64_t i = 0; i < n_tiles; ++i) {
        for (std::int64_t j = i; j < n_tiles; ++j, weight += 4) {
          for (std::int64_t fine = 0; fine < n_fine; ++fine, in += 8) {
            const double per_m =
                observation.frequency.center_hz(first + fine) / kSpeedOfLight_m_per_s;
            for (std::int64_t product = 0; product < 4; ++product) {
              cf64 v(in[2 * product], in[2 * product + 1]);
              if (conjugate) v = std::conj(v);
              const std::uint32_t count = count_of_weight(weight[product]);
              if (count == 0 || v == 0.0 || !std::isfinite(v.real()) || !std::isfinite(v.imag()))
                continue;
              if (with_cables) {
                const double turns = per_m * (meta.tiles[i].cable_m[product / 2] -
                                              meta.tiles[j].cable_m[product % 2]);
                v *= std::polar(1.0, 2 * kPi * (turns - std::round(turns)));
              }
              const auto at =
                  static_cast<std::size_t>(dump.index(first + fine, pair_index(i, j), product));
              dump.data[at] = cf32(v);
              dump.counts[at] = count;
            }
          }
        }
      }
    }
    file.dumps.push_back(std::move(dump));
  }
  observation.phase_center = zenith(array, file.dumps.front().centroid_tai_ns);
  io::phase_from_ground(file);
  auto& notes = observation.provenance.notes;
  notes[mwa_note("cables")] = with_cables        ? "lengths of the metafits taken out"
                              : meta.cables_done ? "taken out by the correlator"
                                                 : "left in, as asked";
  notes[mwa_note("sign")] =
      conjugate ? "conjugated: yes, as given" : "conjugated: no, <v_i conj(v_j)> as MWAX writes it";
  if (!flagged.empty()) notes[mwa_note("tiles flagged")] = flagged;
  notes[mwa_note("weights")] =
      n_unweighted == 0
          ? fmt::format("of the file: {} counts are a whole integration", kFullCount)
          : fmt::format("{} pieces of a coarse channel and an integration have none: 1 each",
                        n_unweighted);
  if (n_missing > 0) {
    notes[mwa_note("missing")] =
        fmt::format("{} of {} pieces of a coarse channel and an integration are not there",
                    n_missing, static_cast<std::int64_t>(parts.size()) * n_coarse);
  }
  const std::string left_out = leave_out(observation, file.dumps, files.dead);
  if (!left_out.empty()) notes[mwa_note("tiles left out")] = left_out + ", as given";
  return file;
}

}  // namespace ryle
