// SPDX-License-Identifier: BSD-3-Clause
// FITS image cubes: slant SIN projection about an ICRS centre, FREQ and STOKES axes (products.md
// 3).
#include <cmath>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/fits_image_header.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle {
namespace io {
namespace {

void create_image(FitsFile& file, std::vector<LONGLONG> axes) {
  int status = 0;
  fits_create_imgll(file.get(), FLOAT_IMG, static_cast<int>(axes.size()), axes.data(), &status);
  file.check(status, "create an image in");
}

void write_values(FitsFile& file, const float* values, std::int64_t n) {
  if (const int fault = injected_fault("write", file.path()); fault != 0) {
    throw IoError::from_errno("write", file.path(), fault);
  }
  int status = 0;
  fits_write_img_flt(file.get(), 1, 1, n, const_cast<float*>(values), &status);
  file.check(status, "write");
}

int stokes_step(const SkyImage& image) {
  return n_stokes_planes(image) > 1 ? image.stokes[1] - image.stokes[0] : 1;
}

/// The cube of the real planes.
void write_cube(FitsFile& file, const SkyImage& image, const Observation& observation,
                const std::string& name) {
  const std::int64_t n_real = n_stokes_planes(image);
  create_image(file, {image.n_pixels, image.n_pixels, image.n_channels, n_real});
  if (!name.empty()) file.key("EXTNAME", name);
  write_image_wcs(file, image, image.stokes.front(), stokes_step(image));
  write_image_metadata(file, image, observation);
}

void finish_cube(FitsFile& file, const SkyImage& image) {
  write_values(file, image.pixels.data(),
               n_stokes_planes(image) * image.n_channels * image.plane_size());
  file.checksum();
}

/// Re and Im of XY* as one complex plane (FITS 4.0, 8.5: COMPLEX 1 real, 2 imaginary).
void write_cross(FitsFile& file, const SkyImage& image, const Observation& observation,
                 const std::string& name) {
  const std::int64_t n_real = n_stokes_planes(image);
  if (n_real == static_cast<std::int64_t>(image.stokes.size())) return;
  create_image(file, {image.n_pixels, image.n_pixels, image.n_channels, 1, 2});
  file.key("EXTNAME", name);
  write_image_wcs(file, image, -7, 1);
  write_axis(file, 5, "COMPLEX", "", 1, 1, 1);
  write_image_metadata(file, image, observation);
  const std::int64_t size = image.n_channels * image.plane_size();
  write_values(file, image.pixels.data() + n_real * size, 2 * size);
  file.checksum();
}

void write_weights(FitsFile& file, const SkyImage& image, const std::string& name) {
  if (image.weights.empty()) return;
  const std::int64_t n_real = n_stokes_planes(image);
  const bool per_pixel = image.weights.size() == image.pixels.size();
  if (per_pixel) {
    create_image(file, {image.n_pixels, image.n_pixels, image.n_channels, n_real});
    file.key("EXTNAME", name);
    write_image_wcs(file, image, image.stokes.front(), stokes_step(image));
  } else {
    create_image(file, {image.n_channels, n_real});
    file.key("EXTNAME", name);
    write_spectral_axes(file, image, 1, image.stokes.front(), stokes_step(image));
  }
  file.key("BUNIT", std::string(""), "pairs of valid inputs; 0: no data");
  write_values(file, image.weights.data(),
               n_real * image.n_channels * (per_pixel ? image.plane_size() : 1));
  file.checksum();
}

/// A short last bin lies off the linear axis: the table has every bin exactly. In a series it holds
/// from image `first_image` on.
void write_bins(FitsFile& file, const SkyImage& image, std::int64_t first_image = 0) {
  if (frequency_bin(image, image.n_channels - 1).n_channels == channels_per_bin(image)) return;
  create_table(file, "BINS", {"FREQ", "WIDTH", "CHANNELS"}, {"1D", "1D", "1K"}, {"Hz", "Hz", ""},
               image.n_channels);
  int status = 0;
  for (std::int64_t k = 0; k < image.n_channels; ++k) {
    FrequencyBin bin = frequency_bin(image, k);
    LONGLONG n = bin.n_channels;
    fits_write_col_dbl(file.get(), 1, k + 1, 1, 1, &bin.center_hz, &status);
    fits_write_col_dbl(file.get(), 2, k + 1, 1, 1, &bin.width_hz, &status);
    fits_write_col_lnglng(file.get(), 3, k + 1, 1, 1, &n, &status);
  }
  file.check(status, "write the table BINS of");
  if (first_image > 0)
    file.key("EXTVER", static_cast<long long>(first_image), "holds from this IMAGE on");
  file.checksum();
}

void write_history(FitsFile& file, const Observation& observation) {
  file.history(history_lines(observation));
  file.history(
      {"configuration and all applied corrections: tables RYLE_OBSERVATION, RYLE_APPLIED"});
}

void write_content(const std::string& path, const SkyImage& image, const Observation& observation) {
  FitsFile file = FitsFile::create(part_path(path), path);
  write_cube(file, image, observation, "");
  write_history(file, observation);
  finish_cube(file, image);
  write_weights(file, image, "WEIGHT");
  write_cross(file, image, observation, "XY");
  write_bins(file, image);
  append_ryle_tables(file, observation);
  file.close();
}

}  // namespace
}  // namespace io

void write_fits_image(const std::string& path, const SkyImage& image,
                      const Observation& observation, bool overwrite) {
  io::check_image(path, image);
  Part part(path, overwrite);
  io::write_content(path, image, observation);
  part.publish();
}

struct FitsImageSeries::Impl {
  struct Row {
    std::string begin;
    double mjd_avg, exposure_s, ra_deg, dec_deg, north_angle_deg;
  };
  Part part;
  Observation observation;
  std::optional<io::FitsFile> file = {};
  std::vector<Row> rows = {};
  std::vector<double> bins = {};  // of the last image, as bins_of() says

  void abandon() noexcept {
    file.reset();
    part.discard();
  }

  /// What table BINS depends on.
  static std::vector<double> bins_of(const SkyImage& image) {
    return {image.frequency.first_center_hz, image.frequency.channel_width_hz,
            static_cast<double>(image.frequency.n_channels),
            static_cast<double>(channels_per_bin(image))};
  }

  void write_image(const SkyImage& image) {
    const auto at = static_cast<std::int64_t>(rows.size()) + 1;
    const std::string number = std::to_string(at);
    io::write_cube(*file, image, observation, "IMAGE" + number);
    io::finish_cube(*file, image);
    io::write_weights(*file, image, "WEIGHT" + number);
    io::write_cross(*file, image, observation, "XY" + number);
    if (bins_of(image) != bins) io::write_bins(*file, image, at);
  }

  /// Takes back what a failed image left; false when the file cannot be mended.
  bool remove_hdus_after(int n_good) noexcept {
    // cfitsio does not count an HDU whose header is still open: delete until there is none.
    int status = 0, type = 0;
    while (status == 0) {
      fits_movabs_hdu(file->get(), n_good + 1, &type, &status);
      if (status != 0) break;
      fits_delete_hdu(file->get(), nullptr, &status);
    }
    const bool mended = status == END_OF_FILE || status == BAD_HDU_NUM;
    fits_clear_errmsg();
    return mended;
  }

  void write_times() {
    io::create_table(*file, "TIMES", {"DATE_BEG", "MJD_AVG", "EXPTIME", "RA", "DEC", "NORTH_PA"},
                     {"26A", "1D", "1D", "1D", "1D", "1D"}, {"", "d", "s", "deg", "deg", "deg"},
                     static_cast<LONGLONG>(rows.size()));
    int status = 0;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      Row& row = rows[k];
      const auto at = static_cast<LONGLONG>(k + 1);
      char* text = row.begin.data();
      fits_write_col_str(file->get(), 1, at, 1, 1, &text, &status);
      double values[5] = {row.mjd_avg, row.exposure_s, row.ra_deg, row.dec_deg,
                          row.north_angle_deg};
      for (int c = 0; c < 5; ++c)
        fits_write_col_dbl(file->get(), 2 + c, at, 1, 1, &values[c], &status);
    }
    file->check(status, "write the table TIMES of");
    file->key("TIMESYS", std::string("UTC"));
    file->checksum();
  }
};

FitsImageSeries::FitsImageSeries(const std::string& path, const Observation& observation,
                                 bool overwrite)
    : impl_(new Impl{{path, overwrite}, observation}) {
  impl_->file.emplace(io::FitsFile::create(part_path(path), path));
  io::FitsFile& file = *impl_->file;
  int status = 0;
  fits_create_img(file.get(), BYTE_IMG, 0, nullptr, &status);
  file.check(status, "create");
  io::write_history(file, observation);
  file.checksum();
}

FitsImageSeries::~FitsImageSeries() = default;

std::int64_t FitsImageSeries::n_images() const {
  return static_cast<std::int64_t>(impl_->rows.size());
}

void FitsImageSeries::append(const SkyImage& image) {
  if (!impl_->file)
    throw ConfigError(impl_->part.path() +
                      " takes no more images: it is published, or was given up");
  io::check_image(impl_->part.path(), image);
  int status = 0, n_good = 0;
  fits_get_num_hdus(impl_->file->get(), &n_good, &status);
  impl_->file->check(status, "write");
  try {
    impl_->write_image(image);
  } catch (...) {
    if (!impl_->remove_hdus_after(n_good)) impl_->abandon();
    throw;
  }
  impl_->bins = Impl::bins_of(image);
  const auto jd = utc_julian_date(image.centroid_tai_ns);
  impl_->rows.push_back({utc_iso(image.start_tai_ns, 6), (jd[0] - 2400000.5) + jd[1],
                         image.exposure_s, image.center.ra_rad / kDegree_rad,
                         image.center.dec_rad / kDegree_rad, image.north_angle_rad / kDegree_rad});
}

void FitsImageSeries::publish() {
  if (!impl_->file) throw ConfigError(impl_->part.path() + " is published already");
  try {
    impl_->write_times();
    io::append_ryle_tables(*impl_->file, impl_->observation);
    impl_->file->close();
    impl_->file.reset();
  } catch (...) {
    impl_->abandon();
    throw;
  }
  impl_->part.publish();
}

}  // namespace ryle
