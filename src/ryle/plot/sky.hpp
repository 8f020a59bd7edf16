// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/io/image/image_file.hpp"
#include "ryle/plot/picture.hpp"
#include "ryle/telescope/catalog.hpp"

/// Pictures of sky images: as seen looking up, north up, east left; right ascension and
/// declination, horizon, elevations, the galactic plane, named sources, beam, a color bar, what and
/// when. Fields narrower than the sky are drawn as maps.
namespace ryle {

struct SkyPictureOptions {
  int plane = 0;              ///< of image.stokes
  std::int64_t channel = -1;  ///< one bin; -1 = mean of all
  /// Ends of the color scale; equal: from the image. Stokes Q, U, V get a scale symmetric about 0.
  double color_min = 0, color_max = 0;
  double color_gamma = 0;      ///< 0: 1, or 0.5 where a source outshines the rest
  std::int64_t disc_px = 760;  ///< diameter of the horizon, 200 .. 4000
  bool sources = true;         ///< bright sources, Sun, Moon, Jupiter above the horizon
  bool galactic_plane = true;
  std::vector<WatchTarget> watch;  ///< further marks
  std::string title;               ///< empty: name of the array
};

/// A finished picture. @shape rgb [y][x][3]
struct RgbPicture {
  std::int64_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;
};

/// Draws the hemisphere about image.center; what lies below the horizon is paler. Throws
/// ConfigError for a plane, channel or size that is not there.
RgbPicture draw_sky(const SkyImage& image, const Observation& observation,
                    const SkyPictureOptions& options = {});
/// draw_sky, or a map of a narrow field, as PNG, PDF or SVG by the ending of the name, published by
/// rename.
void write_sky_picture(const std::string& path, const SkyImage& image,
                       const Observation& observation, const SkyPictureOptions& options,
                       bool overwrite);
/// The ends of the scale that draw_sky chooses for this image, to hold them through a sequence.
struct ColorScale {
  double low = 0, high = 1, gamma = 1;
};
ColorScale color_scale(const SkyImage& image, const SkyPictureOptions& options = {});

/// "STEM_000001.png", "STEM_000002.png", ...: every frame complete under its name or absent.
class SkyPictureSequence {
 public:
  /// `hold_scale`: the colors of the first frame for all of them.
  SkyPictureSequence(std::string stem, Observation observation, SkyPictureOptions options,
                     bool hold_scale, bool overwrite);
  /// Returns the name written.
  std::string append(const SkyImage& image);
  std::int64_t n_frames() const { return n_frames_; }

 private:
  std::string stem_;
  Observation observation_;
  SkyPictureOptions options_;
  bool hold_scale_, overwrite_;
  std::int64_t n_frames_ = 0;
};

/// Frames piped to the ffmpeg program: .mp4, .mkv (H.264), .webm (VP9) or .gif by the name's end.
class SkyMovie {
 public:
  /// Starts ffmpeg. Throws UnsupportedError when it is not installed or the name's end is unknown,
  /// IoError when the file cannot be created.
  SkyMovie(const std::string& path, Observation observation, SkyPictureOptions options,
           double frames_per_s, bool hold_scale, bool overwrite);
  ~SkyMovie();  ///< not finished: nothing stays
  SkyMovie(const SkyMovie&) = delete;
  SkyMovie& operator=(const SkyMovie&) = delete;
  /// Throws IoError with ffmpeg's last words when it has died.
  void append(const SkyImage& image);
  void finish();  ///< waits for ffmpeg and publishes
  std::int64_t n_frames() const;
  /// Throws UnsupportedError for a name whose end is no movie, to be called before any data is
  /// read; `option` names the option that it is from. No name, no movie.
  static void require_name(const std::string& path, const std::string& option);
  /// The program, "" when there is none (PATH).
  static std::string find_ffmpeg();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
