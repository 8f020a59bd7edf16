// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ryle/core/units.hpp"
#include "ryle/plot/color.hpp"
#include "ryle/plot/sky.hpp"
#include "tests/io/scratch.hpp"
#include "tests/plot/decoded.hpp"

namespace ryle {
namespace {

using plot::test::decode;
using plot::test::Decoded;
using test::exit_code_of;
using test::Scratch;

Observation observation() {
  Observation o;
  o.array.name = "LWA-SV";
  o.array.latitude_rad = 34.35 * kDegree_rad;
  o.array.longitude_rad = -106.89 * kDegree_rad;
  o.array.height_m = 1477;
  return o;
}

/// Nothing but a spot at a pixel's direction.
SkyImage spot(double l, double m, int stokes = 1, float value = 10) {
  SkyImage image;
  image.n_pixels = 128;
  image.stokes = {stokes};
  image.cell_direction_cosine = 1 / 51.2;
  image.frequency = {60e6, 25e3, 132};
  image.start_tai_ns = image.centroid_tai_ns = tai_ns_from_utc_iso("2024-06-27T06:32:27.02");
  image.exposure_s = 0.04;
  image.pixels.assign(128 * 128, 0.0F);
  for (int y = 0; y < 128; ++y) {
    for (int x = 0; x < 128; ++x) {
      const double dl = (64 - x) / 51.2, dm = (y - 64) / 51.2;
      float& v = image.pixels[static_cast<std::size_t>(y * 128 + x)];
      if (dl * dl + dm * dm >= 1) v = NAN;
      if (std::hypot(dl - l, dm - m) < 0.06) v = value;
    }
  }
  place_at_zenith(image, observation().array);
  return image;
}

SkyPictureOptions bare() {
  SkyPictureOptions o;
  o.disc_px = 400;
  o.sources = false;
  o.galactic_plane = false;
  return o;
}

struct Place {
  double x = 0, y = 0;
  int n = 0;
};
/// Middle of the pixels of one color inside the disc (the color bar lies to its right).
Place middle_of(const RgbPicture& p, plot::Rgb color, std::int64_t right) {
  Place place;
  for (std::int64_t y = 0; y < p.height; ++y) {
    for (std::int64_t x = 0; x < right; ++x) {
      const auto k = static_cast<std::size_t>(3 * (y * p.width + x));
      if (p.rgb[k] != color.r || p.rgb[k + 1] != color.g || p.rgb[k + 2] != color.b) continue;
      place.x += static_cast<double>(x) + 0.5;
      place.y += static_cast<double>(y) + 0.5;
      ++place.n;
    }
  }
  place.x /= std::max(1, place.n);
  place.y /= std::max(1, place.n);
  return place;
}

/// Middle of the pixels in which two pictures differ.
Place difference(const RgbPicture& a, const RgbPicture& b) {
  Place place;
  for (std::int64_t k = 0; k < a.width * a.height; ++k) {
    if (std::equal(a.rgb.begin() + 3 * k, a.rgb.begin() + 3 * k + 3, b.rgb.begin() + 3 * k))
      continue;
    place.x += static_cast<double>(k % a.width) + 0.5;
    place.y += static_cast<double>(k / a.width) + 0.5;
    ++place.n;
  }
  place.x /= std::max(1, place.n);
  place.y /= std::max(1, place.n);
  return place;
}

constexpr double kUnit = 400.0 / 760;
constexpr double kCenterX = 200 + 58 * kUnit, kCenterY = 200 + 118 * kUnit;

TEST(PictureSky, NorthUpEastLeft) {
  SkyPictureOptions options = bare();
  options.color_max = 8;  // the spot saturates
  for (const auto& [l, m] : {std::pair{0.5, 0.25}, std::pair{-0.25, 0.5}, std::pair{-0.5, -0.5}}) {
    const RgbPicture p = draw_sky(spot(l, m), observation(), options);
    const Place at = middle_of(p, plot::color_at(ColorMap::inferno, 1), 440);
    ASSERT_GT(at.n, 200);
    EXPECT_NEAR(at.x, kCenterX - 200 * l, 1.5);
    EXPECT_NEAR(at.y, kCenterY - 200 * m, 1.5);
    EXPECT_EQ(p.width % 2, 0) << "movies want even sizes";
    EXPECT_EQ(p.height % 2, 0);
  }
}

TEST(PictureSky, MarksLieOnTheirSources) {
  // A slanted plane moves the source in the image; its mark goes with it.
  const Observation o = observation();
  SkyImage image = spot(0, 0);
  image.plane_alpha = -0.10;
  image.plane_beta = 0.08;
  const Vector3 s = enu_of_direction(o.array, body("Cyg A", 0), image.centroid_tai_ns);
  const double l = s[0] + 0.10 * (1 - s[2]), m = s[1] - 0.08 * (1 - s[2]);
  std::fill(image.pixels.begin(), image.pixels.end(), 0.0F);
  image.pixels[static_cast<std::size_t>(std::llround(64 + m * 51.2) * 128 +
                                        std::llround(64 - l * 51.2))] = 10;
  SkyPictureOptions options = bare();
  options.color_max = 5;
  const Place source =
      middle_of(draw_sky(image, o, options), plot::color_at(ColorMap::inferno, 1), 440);
  const RgbPicture without = draw_sky(image, o, options);
  options.watch = {parse_watch("Cyg A")};
  options.watch[0].name = "";  // the circle without its name
  const Place mark = difference(without, draw_sky(image, o, options));
  ASSERT_GT(source.n, 5) << "lines of the graticule may cross it";
  ASSERT_GT(mark.n, 50);
  EXPECT_NEAR(mark.x, source.x, 2.1);  // half a pixel of the image is 2
  EXPECT_NEAR(mark.y, source.y, 2.1);
}

/// Direction cosines of a source about a center, textbook formula.
std::array<double, 2> cosines_about(const SkyDirection& center, const SkyDirection& source) {
  const double d = source.ra_rad - center.ra_rad;
  return {std::cos(source.dec_rad) * std::sin(d),
          std::sin(source.dec_rad) * std::cos(center.dec_rad) -
              std::cos(source.dec_rad) * std::sin(center.dec_rad) * std::cos(d)};
}

// An image about another place than the zenith has its own axes.
TEST(PictureSky, MarksLieOnTheirSourcesAboutAnyCenter) {
  const Observation o = observation();
  SkyImage image = spot(0, 0);
  const SkyDirection source = body("Cyg A", 0);
  image.center = {source.ra_rad + 0.5, source.dec_rad - 0.4};
  image.north_angle_rad = 0;
  const auto [l, m] = cosines_about(image.center, source);
  std::fill(image.pixels.begin(), image.pixels.end(), 0.0F);
  image.pixels[static_cast<std::size_t>(std::llround(64 + m * 51.2) * 128 +
                                        std::llround(64 - l * 51.2))] = 10;
  SkyPictureOptions options = bare();
  options.color_max = 5;
  const RgbPicture without = draw_sky(image, o, options);
  const Place spot_at = middle_of(without, plot::color_at(ColorMap::inferno, 1), 440);
  options.watch = {parse_watch("Cyg A")};
  options.watch[0].name = "";
  const Place mark = difference(without, draw_sky(image, o, options));
  ASSERT_GT(spot_at.n, 5);
  ASSERT_GT(mark.n, 50);
  EXPECT_NEAR(mark.x, spot_at.x, 3);
  EXPECT_NEAR(mark.y, spot_at.y, 3);
}

TEST(PictureSky, NarrowFieldsAreMapsWithMarksInPlace) {
  const Scratch dir;
  const Observation o = observation();
  SkyImage image = spot(0, 0);
  image.cell_direction_cosine = 0.001;
  const SkyDirection source = body("Cyg A", 0);
  image.center = {source.ra_rad - 0.02, source.dec_rad + 0.03};
  image.north_angle_rad = 0;
  image.unit = "Jy/beam";
  const auto [l, m] = cosines_about(image.center, source);
  std::fill(image.pixels.begin(), image.pixels.end(), 0.0F);
  image.pixels[static_cast<std::size_t>(std::llround(64 + m / 0.001) * 128 +
                                        std::llround(64 - l / 0.001))] = 10;
  SkyPictureOptions options = bare();
  write_sky_picture(dir / "without.png", image, o, options, false);
  options.watch = {parse_watch("Cyg A")};
  options.watch[0].name = "";
  write_sky_picture(dir / "with.png", image, o, options, false);
  const Decoded a = decode(dir / "without.png"), b = decode(dir / "with.png");
  const RgbPicture plain{a.width, a.height, a.rgb};
  const Place spot_at = middle_of(plain, plot::color_at(ColorMap::inferno, 1), a.width - 120);
  const Place mark = difference(plain, {b.width, b.height, b.rgb});
  ASSERT_GT(spot_at.n, 10);
  ASSERT_GT(mark.n, 50);
  EXPECT_NEAR(mark.x, spot_at.x, 3) << "half a pixel of the image is 2";
  EXPECT_NEAR(mark.y, spot_at.y, 3);
}

// Antennas along north-east: the beam is narrow along it and wide across, of the sizes of a
// Gaussian.
TEST(PictureSky, BeamHasTheShapeOfTheArray) {
  Observation o = observation();
  const SkyImage image = spot(0, 0);
  const RgbPicture without = draw_sky(image, o, bare());
  const double wave_m = 299792458.0 / image.frequency.band_center_hz();
  for (const double along : {-10.0, 10.0}) {
    for (const double across : {-2.0, 2.0}) {  // rms 10 and 2 wavelengths
      const double e = (along + across) * std::sqrt(0.5) * wave_m;
      const double n = (along - across) * std::sqrt(0.5) * wave_m;
      o.array.antennas.push_back({"A", {e, n, 0}});
    }
  }
  const RgbPicture with = draw_sky(image, o, bare());
  const double small = 200 * std::sqrt(std::log(2.0)) / (2 * kPi * 10), large = 5 * small;
  const double x0 = kCenterX - 0.97 * 200 + large, y0 = kCenterY + 0.97 * 200 - large;
  double n = 0, along = 0, across = 0;
  for (std::int64_t y = 0; y < with.height; ++y) {
    for (std::int64_t x = 0; x < with.width; ++x) {
      const std::int64_t k = 3 * (y * with.width + x);
      if (std::equal(with.rgb.begin() + k, with.rgb.begin() + k + 3, without.rgb.begin() + k))
        continue;
      const double east = x0 - static_cast<double>(x) - 0.5,
                   north = y0 - static_cast<double>(y) - 0.5;
      if (north < -large - 1) continue;  // the words
      ++n;
      along = std::max(along, std::abs(east + north) * std::sqrt(0.5));
      across = std::max(across, std::abs(east - north) * std::sqrt(0.5));
    }
  }
  ASSERT_GT(n, 20);
  EXPECT_NEAR(along, small, 1.6);  // half a line and a pixel of smoothing
  EXPECT_NEAR(across, large, 1.6);
}

TEST(PictureSky, SignedPlanesAreSymmetric) {
  const SkyImage image = spot(0.2, 0.2, 4, -7);
  const ColorScale scale = color_scale(image);
  EXPECT_EQ(scale.low, -scale.high);
  SkyPictureOptions options = bare();
  options.color_min = -5;
  options.color_max = 5;
  const Place at =
      middle_of(draw_sky(image, observation(), options), plot::color_at(ColorMap::polar, 0), 440);
  EXPECT_NEAR(at.x, kCenterX - 40, 1.5);
  EXPECT_EQ(color_scale(spot(0, 0)).low, 0);
  EXPECT_EQ(color_scale(spot(0, 0)).high, 10);
}

TEST(PictureSky, RejectsWhatIsNotThere) {
  SkyPictureOptions options = bare();
  options.plane = 1;
  EXPECT_EQ(exit_code_of([&] { draw_sky(spot(0, 0), observation(), options); }), ExitCode::config);
  options = bare();
  options.channel = 1;
  EXPECT_EQ(exit_code_of([&] { draw_sky(spot(0, 0), observation(), options); }), ExitCode::config);
  options = bare();
  options.disc_px = 10;
  EXPECT_EQ(exit_code_of([&] { draw_sky(spot(0, 0), observation(), options); }), ExitCode::config);
  EXPECT_EQ(exit_code_of([&] { draw_sky(SkyImage{}, observation(), bare()); }), ExitCode::config);
}

TEST(PictureSky, SequenceHoldsItsScale) {
  const Scratch dir;
  SkyPictureSequence frames(dir / "sky", observation(), bare(), true, false);
  EXPECT_EQ(frames.append(spot(0.3, 0.3, 1, 10)), dir / "sky_000001.png");
  EXPECT_EQ(frames.append(spot(0.3, 0.3, 1, 5)), dir / "sky_000002.png");
  EXPECT_THAT(dir.names(), testing::ElementsAre("sky_000001.png", "sky_000002.png"));
  const auto x = static_cast<std::int64_t>(kCenterX - 60),
             y = static_cast<std::int64_t>(kCenterY - 60);
  EXPECT_EQ(decode(dir / "sky_000001.png").at(x, y), plot::color_at(ColorMap::inferno, 1));
  const plot::Rgb second = decode(dir / "sky_000002.png").at(x, y);
  const plot::Rgb half = plot::color_at(ColorMap::inferno, std::sqrt(0.5));
  EXPECT_NEAR(second.r, half.r, 3) << "half as bright on the scale of the first";
  EXPECT_NEAR(second.g, half.g, 3);
  SkyPictureSequence again(dir / "sky", observation(), bare(), true, false);
  EXPECT_EQ(exit_code_of([&] { again.append(spot(0, 0)); }), ExitCode::cannot_create);
}

/// A PATH whose ffmpeg is this script.
class FakeFfmpeg {
 public:
  FakeFfmpeg(const Scratch& dir, const std::string& script) {
    const char* before = std::getenv("PATH");
    before_ = before != nullptr ? before : "";
    if (!script.empty()) {
      std::ofstream(dir / "ffmpeg") << "#!/bin/sh\n" << script;
      std::filesystem::permissions(dir / "ffmpeg", std::filesystem::perms::owner_all);
    }
    ::setenv("PATH", (script.empty() ? dir.path() : dir.path() + ":" + before_).c_str(), 1);
  }
  ~FakeFfmpeg() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

TEST(SkyMovie, FramesReachFfmpegWhole) {
  const Scratch dir, tools;
  // Writes what it was told and what it was given to its output, the last argument.
  const FakeFfmpeg fake(tools,
                        "for last; do :; done\nout=${last#file:}\necho \"$@\" > \"$out\"\n"
                        "wc -c >> \"$out\"\n");
  SkyMovie movie(dir / "sky.mp4", observation(), bare(), 12.5, true, false);
  for (int k = 0; k < 3; ++k) movie.append(spot(0.1 * k, 0));
  EXPECT_EQ(movie.n_frames(), 3);
  movie.finish();
  EXPECT_THAT(dir.names(), testing::ElementsAre("sky.mp4"));
  const RgbPicture frame = draw_sky(spot(0, 0), observation(), bare());
  const std::string text = test::contents(dir / "sky.mp4");
  EXPECT_THAT(text, testing::HasSubstr("-s " + std::to_string(frame.width) + "x" +
                                       std::to_string(frame.height) + " -r 12.5"));
  EXPECT_THAT(text, testing::HasSubstr("libx264"));
  EXPECT_THAT(text, testing::EndsWith(std::to_string(3 * frame.rgb.size()) + "\n"));
}

TEST(SkyMovie, FailuresAreSaidAndLeaveNothing) {
  const Scratch dir, tools, empty;
  {
    const FakeFfmpeg none(empty, "");
    try {
      SkyMovie movie(dir / "sky.mp4", observation(), bare(), 25, true, false);
      FAIL();
    } catch (const UnsupportedError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("ffmpeg is not installed"));
    }
  }
  const FakeFfmpeg dying(tools, "echo 'Unknown encoder libx264' >&2\nexit 3\n");
  EXPECT_EQ(
      exit_code_of([&] { SkyMovie(dir / "sky.avi", observation(), bare(), 25, true, false); }),
      ExitCode::unavailable);
  SkyMovie movie(dir / "sky.mp4", observation(), bare(), 25, true, false);
  try {
    for (int k = 0; k < 5; ++k) movie.append(spot(0, 0));
    movie.finish();
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Unknown encoder libx264"));
  }
  {
    const FakeFfmpeg idle(tools, "cat > /dev/null\n");
    SkyMovie abandoned(dir / "other.webm", observation(), bare(), 25, true, false);
    abandoned.append(spot(0, 0));
  }
  EXPECT_THAT(dir.names(), testing::IsEmpty());
}

}  // namespace
}  // namespace ryle
