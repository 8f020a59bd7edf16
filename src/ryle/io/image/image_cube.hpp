// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>

#include "ryle/io/image/image_file.hpp"

/// Continuous images in HDF5: one file a segment (contiguous in time, one frequency setting), grown
/// image by image. Layout, also for h5py:
///   images [time][stokes][freq][y][x] f32      weights [time][stokes][freq] f32
///   start_tai_ns, centroid_tai_ns, end_tai_ns [time] i64     exposure_s, loss_ppm [time] f64
///   ra_rad, dec_rad, north_angle_rad [time] f64: coordinates turn with the sky
///   crc32c [time] u32 of the image's bytes, written last: a row without it does not count
///   Header/...: stokes, bin_center_hz, bin_width_hz, cell_direction_cosine, plane_alpha, ...
namespace ryle {

/// Appends images under SWMR with a flush each: a reader may follow, a kill loses none that
/// append() returned from (recover_image_cube() brings them back), the final name appears at
/// publish().
class ImageCubeWriter {
 public:
  ImageCubeWriter(const std::string& path, const Observation& observation, bool overwrite);
  ~ImageCubeWriter();  ///< not published: nothing stays
  ImageCubeWriter(const ImageCubeWriter&) = delete;
  ImageCubeWriter& operator=(const ImageCubeWriter&) = delete;
  /// The first image sets the shape; one of another shape or frequency throws ConfigError: publish
  /// this segment and begin a new one (accepts() tells beforehand).
  void append(const SkyImage& image);
  bool accepts(const SkyImage& image) const;
  std::int64_t n_images() const;
  std::int64_t n_bytes() const;  ///< of pixels so far, to rotate segments by size
  /// Renames to the final name; without any image nothing is written (ConfigError).
  void publish(const Observation& observation);
  void publish_incomplete();  ///< the same, but readers are told that the observation broke off

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads a cube, a growing one too (part_path(path)).
class ImageCubeReader {
 public:
  explicit ImageCubeReader(const std::string& path);
  ~ImageCubeReader();
  ImageCubeReader(const ImageCubeReader&) = delete;
  ImageCubeReader& operator=(const ImageCubeReader&) = delete;
  std::int64_t n_images() const;  ///< with a checksum
  bool complete() const;          ///< published, not recovered
  /// Throws FormatError when the checksum does not fit.
  SkyImage image(std::int64_t k) const;
  const Observation& observation() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether a file, finished or not, is an image cube. False for what is no HDF5 file, or another.
bool is_image_cube(const std::string& file);
/// Images of a cube up to the first whose checksum does not fit.
std::int64_t count_whole_images(const std::string& file);

/// Copies the whole images of an unfinished cube (".NAME.part" of a dead writer) to `path`, which
/// is marked incomplete. Returns their number.
std::int64_t recover_image_cube(const std::string& part, const std::string& path, bool overwrite);

}  // namespace ryle
