// SPDX-License-Identifier: BSD-3-Clause
// FITS files of scans: which dialect, and HCGrid's pair of images.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/io/scan/scan_formats.hpp"

namespace ryle::io {
namespace {

/// HCGrid: the primary image holds values (S x 1), the first extension longitudes and latitudes
/// (2 x S), without names, units or a frame.
class HcgridScans final : public ScanFile {
 public:
  HcgridScans(const FitsFile& file, const FitsScans& scans, const ScanOptions& options)
      : raw_(scans.raw) {
    metadata_.path = scans.path;
    degrees_ = longitude_degrees(options, "", metadata_);
    metadata_.format = "HCGrid FITS";
    if (options.weights != "none" && !options.weights.empty())
      throw ConfigError(scans.path + ": HCGrid's FITS files hold no weights");
    reject_flags(options, scans.path);
    values_ = image(file, 1);
    positions_ = image(file, 2);
    if (positions_.n_channels != 2 || positions_.n_samples != values_.n_samples)
      throw FormatError(fmt::format(
          "{}: {} values, but positions of {} x {}; HCGrid's files have N values and 2 "
          "x N positions",
          metadata_.path, values_.n_samples, positions_.n_channels, positions_.n_samples));
    metadata_.n_samples = values_.n_samples;
    metadata_.n_channels = metadata_.frequency.n_channels = 1;
    metadata_.unit = scans.key("BUNIT");
    metadata_.object = scans.key("OBJECT");
  }
  const ScanMetadata& metadata() const override { return metadata_; }
  void read_positions(std::vector<double>& longitude_deg,
                      std::vector<double>& latitude_deg) override {
    RawSamples row = positions_;
    longitude_deg = read_raw_numbers(*raw_, row);
    row.first_byte += row.channel_step_bytes;
    latitude_deg = read_raw_numbers(*raw_, row);
    for (double& l : longitude_deg) l *= degrees_;
    check_longitudes(longitude_deg, latitude_deg, metadata_);
  }
  void read_channels(std::int64_t first, std::int64_t n, float* values) override {
    read_raw(*raw_, values_, first, n, values);
  }
  void read_channels_of(std::int64_t first_channel, std::int64_t n_channels, std::int64_t first,
                        std::int64_t n, float* values) override {
    read_raw(*raw_, some_of(values_, first, n), first_channel, n_channels, values);
  }

 private:
  // [channel][sample], the sample axis being the long one.
  RawSamples image(const FitsFile& file, int hdu) const {
    int status = 0, type = 0, n_axes = 0, bits = 0;
    LONGLONG size[2] = {0, 0}, head = 0, data = 0, end = 0;
    fits_movabs_hdu(file.get(), hdu, &type, &status);
    fits_get_img_paramll(file.get(), 2, &bits, &n_axes, size, &status);
    fits_get_hduaddrll(file.get(), &head, &data, &end, &status);
    file.check(status, fmt::format("read image {} of", hdu));
    file.require_data_sum();
    if (n_axes == 1) size[1] = 1;
    if (size[0] == 1) std::swap(size[0], size[1]);
    RawSamples s;
    s.number.big_endian = true;
    s.number.kind = bits < 0    ? RawNumber::Kind::real
                    : bits == 8 ? RawNumber::Kind::without_sign
                                : RawNumber::Kind::with_sign;
    s.number.bytes = std::abs(bits) / 8;
    s.number.scale = file.number("BSCALE", 1);
    s.number.zero = file.number("BZERO", 0);
    s.n_samples = size[0];
    s.n_channels = size[1];
    s.first_byte = data;
    s.sample_step_bytes = s.number.bytes;
    const std::int64_t room = raw_->size_bytes();
    if (s.n_samples < 1 || s.n_channels < 1 || s.n_channels > 2 || s.n_samples > room ||
        !raw_->holds(data, s.n_samples * s.n_channels * s.number.bytes))
      throw FormatError(
          fmt::format("{}: image {} is said to have {} x {} numbers; the file has {} bytes",
                      metadata_.path, hdu, size[0], size[1], room));
    s.channel_step_bytes = s.n_samples * s.number.bytes;
    return s;
  }

  std::shared_ptr<const RawFile> raw_;
  double degrees_ = 1;  ///< of one of its longitudes
  ScanMetadata metadata_;
  RawSamples values_, positions_;
};

/// "NAXIS1  =   12 / text" -> 12; NaN for what is no number.
double card_number(const std::string& card) {
  return scan_number(
      card.substr(10, card.find('/') == std::string::npos ? 70 : card.find('/') - 10));
}

/// cfitsio makes room for TFIELDS columns before it looks for one: a header that lies would take
/// gigabytes. FITS allows 999.
void check_numbers_of_columns(const RawFile& file) {
  std::int64_t at = 0;
  for (int hdu = 1; at < file.size_bytes(); ++hdu) {
    double axes = 1, bits = 8, parameters = 0, groups = 1;
    bool end = false, data = false;
    for (; !end && file.holds(at, 2880); at += 2880) {
      std::string block(2880, ' ');
      file.read(at, 2880, block.data());
      for (std::size_t k = 0; k < block.size() && !end; k += 80) {
        const std::string card = block.substr(k, 80),
                          key = card.substr(0, card.find_first_of(" ="));
        end = key == "END";
        if (key == "TFIELDS" && !(card_number(card) >= 0 && card_number(card) <= 999))
          throw FormatError(fmt::format("{}: table {} is said to have {} columns; FITS allows 999",
                                        file.path(), hdu, card_number(card)));
        // 70 characters without quotes overrun cfitsio's own copy of a name.
        if ((key.rfind("TTYPE", 0) == 0 || key.rfind("TFORM", 0) == 0) &&
            card[std::min<std::size_t>(card.find_first_not_of(' ', 10), 79)] != '\'')
          throw FormatError(
              fmt::format("{}: {} of table {} is no text in quotes", file.path(), key, hdu));
        if (key == "BITPIX") bits = std::abs(card_number(card));
        if (key == "PCOUNT") parameters = card_number(card);
        if (key == "GCOUNT") groups = card_number(card);
        if (key.size() > 5 && key.rfind("NAXIS", 0) == 0) {
          axes *= card_number(card);
          data = true;
        }
      }
    }
    const double bytes = data ? bits / 8 * groups * (parameters + axes) : 0;
    if (!end || !(bytes >= 0 && bytes <= static_cast<double>(file.size_bytes()))) return;
    at += (static_cast<std::int64_t>(bytes) + 2879) / 2880 * 2880;
  }
}

bool is_image(const FitsFile& file, int hdu) {
  int status = 0, type = 0, n_axes = 0;
  fits_movabs_hdu(file.get(), hdu, &type, &status);
  if (status == 0 && type == IMAGE_HDU) fits_get_img_dim(file.get(), &n_axes, &status);
  if (status != 0) fits_clear_errmsg();
  return status == 0 && type == IMAGE_HDU && n_axes >= 1 && n_axes <= 2;
}

}  // namespace

std::unique_ptr<ScanFile> open_hcgrid_fits(const FitsFile& file, const FitsScans& scans,
                                           const ScanOptions& options) {
  int status = 0, n = 0;
  fits_get_num_hdus(file.get(), &n, &status);
  if (status != 0 || n < 2 || !is_image(file, 1) || !is_image(file, 2)) return nullptr;
  return std::make_unique<HcgridScans>(file, scans, options);
}

std::unique_ptr<ScanFile> open_fits_scans(const std::string& path, const ScanOptions& options) {
  FitsScans scans;
  scans.path = path;
  scans.raw = std::make_shared<const RawFile>(path);
  check_numbers_of_columns(*scans.raw);
  const FitsFile file = FitsFile::open(path);
  scans.primary = read_scan_keywords(file);
  scans.tables = read_scan_tables(file, scans.raw);
  if (auto found = open_discos(scans, options)) return found;
  if (auto found = open_sdfits(scans, options)) return found;
  if (auto found = open_hcgrid_fits(file, scans, options)) return found;
  if (auto found = open_fits_table(scans, options)) return found;
  std::string list;
  for (const auto& t : scans.tables) list += (list.empty() ? "" : ", ") + ("\"" + t.name + "\"");
  throw FormatError(path + ": a FITS file, but none of scans: " +
                    (list.empty() ? std::string("it has no table") : "it has the tables " + list) +
                    "; SDFITS (a SINGLE DISH or MATRIX table), DISCOS (DATA TABLE), HCGrid (two "
                    "images) and tables with columns of longitude and latitude are read");
}

}  // namespace ryle::io
