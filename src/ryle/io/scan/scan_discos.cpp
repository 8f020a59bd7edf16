// SPDX-License-Identifier: BSD-3-Clause
// FITS of the Italian telescopes (DISCOS, "fitszilla"): one table of times, a spectrum or total
// powers of all inputs a row, positions of the central feed in radians.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/scan/scan_formats.hpp"

namespace ryle::io {
namespace {

using Vector3 = std::array<double, 3>;

struct DiscosInput {
  int feed = 0, chain = 0, section = 0;
  std::string polarization;
  double low_hz = 0, width_hz = 0;  ///< the band begins at low_hz; a negative width runs down
};

struct DiscosFeed {
  int id = 0;
  double x_rad = 0, y_rad = 0, relative_power = 1;
  RawSamples samples;
};

std::string circular(const std::string& name) {
  return name == "LCP" ? "LL" : name == "RCP" ? "RR" : name;
}

class DiscosScans final : public ScanFile {
 public:
  DiscosScans(const FitsScans& file, const ScanTable& data, const ScanOptions& options)
      : raw_(file.raw), table_(data), options_(options) {
    metadata_.path = file.path;
    metadata_.telescope = file.key("ANTENNA");
    metadata_.object = file.key("SOURCE");
    metadata_.unit = "counts";
    metadata_.frame = SkyFrame::fk5;
    metadata_.frame_known = true;
    metadata_.samples_first = true;
    metadata_.longitude_unit_known = true;
    if (!options.longitude_unit.empty())
      throw ConfigError(file.path + ": DISCOS writes positions in radians; --ra-unit " +
                        options.longitude_unit + " is for files that do not say");
    metadata_.spectral_frame = "TOPOCENT";
    if (table_.n_rows < 1) throw FormatError(file.path + ": DATA TABLE has no rows");
    read_inputs(file);
    read_feeds(file);
    lay_out();
    metadata_.format =
        fmt::format("DISCOS FITS ({} feed{})", feeds_.size(), feeds_.size() == 1 ? "" : "s");
    metadata_.n_samples = table_.n_rows * static_cast<std::int64_t>(feeds_.size());
    const auto time = table_.numbers("time");
    if (!time.empty()) metadata_.observed_utc = iso_of_mjd(time[0]);
    reject_flags(options, file.path);
    find_flags();
    find_weights();
  }

  const ScanMetadata& metadata() const override { return metadata_; }

  void read_positions(std::vector<double>& longitude_deg,
                      std::vector<double>& latitude_deg) override {
    const auto ra = table_.numbers("raj2000"), dec = table_.numbers("decj2000");
    const auto n = static_cast<std::size_t>(metadata_.n_samples);
    longitude_deg.assign(n, std::numeric_limits<double>::quiet_NaN());
    latitude_deg = longitude_deg;
    const auto el = table_.numbers("el");
    const auto parallactic = table_.numbers("par_angle");
    std::vector<double> derotator = table_.numbers("derot_angle");
    // -9999.99 says that there is none.
    for (double& d : derotator)
      if (!(std::abs(d) < 720)) d = 0;
    std::size_t k = 0;
    for (const auto& feed : feeds_)
      for (std::size_t r = 0; r < ra.size(); ++r, ++k) {
        double lon = ra[r], lat = dec[r];
        if (feed.x_rad != 0 || feed.y_rad != 0)
          move(feed, derotator[r], el[r], parallactic[r], lon, lat);
        longitude_deg[k] = lon / kDegree_rad;
        latitude_deg[k] = lat / kDegree_rad;
      }
  }

  void read_channels(std::int64_t first, std::int64_t n, float* values) override {
    if (feeds_.size() == 1) return read_raw(*raw_, feeds_[0].samples, first, n, values);
    std::vector<float> own(n * table_.n_rows);
    for (std::size_t f = 0; f < feeds_.size(); ++f) {
      read_raw(*raw_, feeds_[f].samples, first, n, own.data());
      for (std::int64_t c = 0; c < n; ++c)
        std::copy_n(
            own.data() + c * table_.n_rows, table_.n_rows,
            values + c * metadata_.n_samples + static_cast<std::int64_t>(f) * table_.n_rows);
    }
  }

  bool has_weights() const override { return !weights_.empty(); }
  void read_weights(float* weights) override {
    if (!has_weights()) return ScanFile::read_weights(weights);
    for (std::size_t f = 0; f < feeds_.size(); ++f)
      std::copy(weights_.begin(), weights_.end(), weights + f * weights_.size());
  }
  bool has_flags() const override { return !flagged_.empty(); }
  void read_flags(std::int64_t, std::int64_t n, std::uint8_t* flags) override {
    for (std::int64_t c = 0; c < n * static_cast<std::int64_t>(feeds_.size()); ++c) {
      if (flagged_.empty())
        std::fill_n(flags + c * table_.n_rows, table_.n_rows, std::uint8_t{0});
      else
        std::copy(flagged_.begin(), flagged_.end(), flags + c * table_.n_rows);
    }
  }

 private:
  /// A feed beside the axis: the array of feeds turns with the derotator in azimuth and elevation;
  /// the small step there is turned by the parallactic angle onto the sky. A rotation as a whole,
  /// so that nothing is lost near the zenith.
  static void move(const DiscosFeed& feed, double derotator_rad, double el_rad,
                   [[maybe_unused]] double parallactic_rad, double& lon, double& lat) {
    const double apart = std::hypot(feed.x_rad, feed.y_rad);
    const double angle_rad = std::atan2(feed.y_rad, feed.x_rad) - derotator_rad;
    const double new_el = el_rad + apart * std::sin(angle_rad);
    const double turn = apart * std::cos(angle_rad) / std::cos(new_el);  // in azimuth
    // The new direction along the old one, along growing azimuth, and along growing elevation.
    const double ahead =
        std::cos(new_el) * std::cos(turn) * std::cos(el_rad) + std::sin(new_el) * std::sin(el_rad);
    const double right = std::cos(new_el) * std::sin(turn);
    const double up =
        std::sin(new_el) * std::cos(el_rad) - std::cos(new_el) * std::cos(turn) * std::sin(el_rad);
    // Azimuth grows to the west of a source in the south: east = -cos q, north = sin q there.
    const double east = -right * std::cos(parallactic_rad) + up * std::sin(parallactic_rad);
    const double north = right * std::sin(parallactic_rad) + up * std::cos(parallactic_rad);
    const double sl = std::sin(lon), cl = std::cos(lon), sb = std::sin(lat), cb = std::cos(lat);
    const Vector3 v{ahead * cb * cl - east * sl - north * sb * cl,
                    ahead * cb * sl + east * cl - north * sb * sl, ahead * sb + north * cb};
    lon = std::atan2(v[1], v[0]);
    if (lon < 0) lon += 2 * kPi;
    lat = std::atan2(v[2], std::hypot(v[0], v[1]));
  }

  void read_inputs(const FitsScans& file) {
    const ScanTable* rf = file.table("RF INPUTS");
    const ScanTable* sections = file.table("SECTION TABLE");
    if (rf == nullptr || sections == nullptr)
      throw FormatError(metadata_.path +
                        ": a DISCOS DATA TABLE, but no RF INPUTS or SECTION TABLE");
    const auto feed = rf->numbers("feed"), chain = rf->numbers("ifChain"),
               section = rf->numbers("section"), frequency = rf->numbers("frequency"),
               width = rf->numbers("bandWidth");
    const auto polarization = rf->texts("polarization");
    const auto bins = sections->numbers("bins");
    if (feed.empty() || section.empty() || frequency.empty() || width.empty() || bins.empty() ||
        polarization.empty())
      throw FormatError(
          metadata_.path +
          ": RF INPUTS lacks feed, section, frequency, bandWidth or polarization; it has " +
          rf->list());
    for (const double b : bins)
      if (b != bins[0] || !(b >= 1 && b < 1e9))
        throw UnsupportedError(metadata_.path + ": sections with different numbers of bins");
    metadata_.n_channels = static_cast<std::int64_t>(bins[0]);
    const double mhz = hertz_in(rf->unit("frequency"), 1e6, metadata_.path);
    for (std::size_t k = 0; k < feed.size(); ++k)
      inputs_.push_back({whole(feed[k]), chain.empty() ? static_cast<int>(k) : whole(chain[k]),
                         whole(section[k]), circular(upper_case(polarization[k])),
                         frequency[k] * mhz, width[k] * mhz});
    for (const auto& [column, value] : options_.select) select(upper_case(column), value);
    if (rf->find("bandWidthRoach2") != nullptr && metadata_.n_channels > 1)
      metadata_.warnings.push_back(
          "the band of the spectra is bandWidth of RF INPUTS; bandWidthRoach2 says another");
  }

  static int whole(double value) {
    return value >= -1 && value < 1e6 ? static_cast<int>(value) : -1;
  }

  void select(const std::string& column, const std::string& value) {
    if (column != "FEED" && column != "SECTION")
      throw ConfigError(metadata_.path + ": DISCOS files are selected by FEED and SECTION, not " +
                        column);
    const double wanted = scan_number(value);
    std::erase_if(inputs_, [&](const DiscosInput& i) {
      return (column == "FEED" ? i.feed : i.section) != wanted;
    });
    if (inputs_.empty())
      throw ConfigError(metadata_.path + ": there is no " + column + " " + value);
  }

  void read_feeds(const FitsScans& file) {
    const ScanTable* table = file.table("FEED TABLE");
    for (const auto& input : inputs_) {
      if (std::any_of(feeds_.begin(), feeds_.end(), [&](auto& f) { return f.id == input.feed; }))
        continue;
      DiscosFeed feed;
      feed.id = input.feed;
      feeds_.push_back(feed);
    }
    if (table == nullptr) return;
    const auto id = table->numbers("id"), x = table->numbers("xOffset"),
               y = table->numbers("yOffset"), power = table->numbers("relativePower");
    for (auto& feed : feeds_)
      for (std::size_t k = 0; k < id.size(); ++k) {
        if (whole(id[k]) != feed.id) continue;
        if (!x.empty()) feed.x_rad = x[k];
        if (!y.empty()) feed.y_rad = y[k];
        if (!power.empty()) feed.relative_power = power[k];
      }
    for (const char* word : {"raj2000", "decj2000"})
      if (table_.numbers(word).empty())
        throw FormatError(metadata_.path + ": DATA TABLE has no numbers " + word);
    bool beside = false;
    for (const auto& feed : feeds_) beside = beside || feed.x_rad != 0 || feed.y_rad != 0;
    for (const char* word : {"el", "par_angle", "derot_angle"})
      if (beside && table_.numbers(word).empty())
        throw FormatError(metadata_.path + ": feeds beside the axis need the column " + word);
  }

  /// Where the numbers of an input begin in a row, and how many there are.
  std::int64_t offset_of(const DiscosInput& input, const ScanColumn*& column) const {
    const bool spectrum = table_.find("SPECTRUM") != nullptr;
    const std::string name = spectrum ? "SPECTRUM" : "Ch" + std::to_string(input.section);
    column = table_.find(name);
    if (column == nullptr || !column->numbers)
      throw FormatError(metadata_.path + ": no numbers " + name + " in DATA TABLE; there are " +
                        table_.list());
    // Spectra of all chains of a section lie in one column.
    const std::int64_t place = metadata_.n_channels > 1 ? input.chain * metadata_.n_channels : 0;
    if (input.chain < 0 || place + metadata_.n_channels > column->repeat)
      throw FormatError(fmt::format("{}: {} has {} numbers a row, chain {} of {} bins is beyond",
                                    metadata_.path, name, column->repeat, input.chain,
                                    metadata_.n_channels));
    return column->offset_bytes + place * column->form.bytes;
  }

  void lay_out() {
    const DiscosInput& reference = inputs_.front();
    std::vector<std::string> names;
    for (const auto& i : inputs_)
      if (i.feed == reference.feed) names.push_back(i.polarization);
    for (const auto& i : inputs_)
      if (i.low_hz != reference.low_hz || i.width_hz != reference.width_hz)
        throw ConfigError(fmt::format(
            "{}: inputs with different bands ({} and {} MHz); --select SECTION={} takes one",
            metadata_.path, reference.low_hz / 1e6, i.low_hz / 1e6, reference.section));
    const auto chosen = choose_polarizations(names, options_.polarization, metadata_.path);
    metadata_.polarization = chosen.text;
    metadata_.polarizations = names;
    metadata_.frequency.n_channels = metadata_.n_channels;
    metadata_.frequency.channel_width_hz =
        std::abs(reference.width_hz) / static_cast<double>(metadata_.n_channels);
    metadata_.frequency.first_center_hz = reference.low_hz + std::min(0.0, reference.width_hz) +
                                          0.5 * metadata_.frequency.channel_width_hz;
    for (auto& feed : feeds_) {
      const ScanColumn* column = nullptr;
      std::vector<std::int64_t> offsets;
      for (const std::size_t p : chosen.which)
        for (const auto& i : inputs_)
          if (i.feed == feed.id && i.polarization == names[p]) {
            offsets.push_back(offset_of(i, column));
            break;
          }
      if (offsets.size() != chosen.which.size())
        throw FormatError(
            fmt::format("{}: feed {} lacks {}", metadata_.path, feed.id, chosen.text));
      if (!column->unit.empty()) metadata_.unit = column->unit;
      feed.samples = table_.samples(*column);
      feed.samples.first_byte = table_.first_byte;
      feed.samples.number.scale *= feed.relative_power;
      feed.samples.number.zero *= feed.relative_power;
      feed.samples.n_channels = metadata_.n_channels;
      // A single number: further apart than the samples are, so that it is read along them.
      if (metadata_.n_channels == 1) feed.samples.channel_step_bytes = table_.row_bytes + 8;
      feed.samples.polarization_bytes = offsets;
      feed.samples.descending = reference.width_hz < 0;
    }
  }

  void find_flags() {
    const auto marked = table_.numbers("flag_cal");
    const auto n = std::count_if(marked.begin(), marked.end(), [](double m) { return m != 0; });
    if (n == 0) return;
    for (const double m : marked) flagged_.push_back(m != 0 ? 1 : 0);
    metadata_.warnings.push_back(fmt::format("{} rows with the noise source on are left out", n));
  }

  void find_weights() {
    const std::string name = weights_column(options_.weights);
    if (name.empty() && !options_.weights.empty() && options_.weights != "none")
      throw ConfigError(metadata_.path + ": weights " + options_.weights +
                        " need TSYS and EXPOSURE of an SDFITS file; column:NAME takes a column");
    if (name.empty()) return;
    const auto values = table_.numbers(name);
    if (values.empty())
      throw ConfigError(metadata_.path + ": no column " + name + " of numbers; there are " +
                        table_.list());
    weights_.assign(values.begin(), values.end());
  }

  std::shared_ptr<const RawFile> raw_;
  ScanTable table_;
  ScanOptions options_;
  ScanMetadata metadata_;
  std::vector<DiscosInput> inputs_;
  std::vector<DiscosFeed> feeds_;
  std::vector<float> weights_;
  std::vector<std::uint8_t> flagged_;
};

}  // namespace

std::unique_ptr<ScanFile> open_discos(const FitsScans& file, const ScanOptions& options) {
  const ScanTable* data = file.table("DATA TABLE");
  if (data == nullptr || data->find("raj2000") == nullptr) return nullptr;
  return std::make_unique<DiscosScans>(file, *data, options);
}

}  // namespace ryle::io
