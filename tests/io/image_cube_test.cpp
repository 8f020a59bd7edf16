// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/io/recover/unfinished.hpp"
#include "tests/io/scratch.hpp"

namespace ryle {
namespace {

using test::exit_code_of;
using test::Scratch;

Observation observation() {
  Observation o;
  o.array.name = "cube test";
  o.array.latitude_rad = 0.6;
  o.frequency = {60e6, 25e3, 10};
  return o;
}

SkyImage image_at(std::int64_t k) {
  SkyImage image;
  image.n_pixels = 6;
  image.n_channels = 3;
  image.n_channels_per_bin = 4;
  image.stokes = {1, 2, 3, 4};
  image.frequency = {60e6, 25e3, 10};
  image.cell_direction_cosine = 0.3;
  image.plane_alpha = -0.02;
  image.beam = SynthesizedBeam{0.05, 0.04, 0.3};
  image.start_tai_ns = 1'800'000'037'000'000'000 + k * 40'000'000;
  image.centroid_tai_ns = image.start_tai_ns + 20'000'000;
  image.exposure_s = 0.04;
  image.center = {1.0 + 1e-6 * static_cast<double>(k), 0.6};
  image.north_angle_rad = -0.003;
  image.metadata = {"vis-grid", "ES", "cables", "vis-grid/cpu", 2.0};
  for (int p = 0; p < 4 * 3 * 36; ++p)
    image.pixels.push_back(p % 36 == 0 ? NAN : static_cast<float>(k * 1000 + p));
  image.weights.assign(12, static_cast<float>(k));
  return image;
}

void expect_same(const SkyImage& got, const SkyImage& want) {
  ASSERT_EQ(got.pixels.size(), want.pixels.size());
  for (std::size_t p = 0; p < want.pixels.size(); ++p) {
    ASSERT_EQ(std::isnan(got.pixels[p]), std::isnan(want.pixels[p]));
    if (!std::isnan(want.pixels[p])) {
      ASSERT_EQ(got.pixels[p], want.pixels[p]);
    }
  }
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(got.start_tai_ns, want.start_tai_ns);
  EXPECT_EQ(got.centroid_tai_ns, want.centroid_tai_ns);
  EXPECT_EQ(got.end_tai_ns, want.start_tai_ns + 40'000'000);
  EXPECT_EQ(got.center.ra_rad, want.center.ra_rad);
  EXPECT_EQ(got.north_angle_rad, want.north_angle_rad);
  EXPECT_EQ(got.stokes, want.stokes);
  EXPECT_EQ(got.plane_alpha, want.plane_alpha);
  ASSERT_EQ(got.beam.has_value(), want.beam.has_value());
  EXPECT_EQ(got.beam->major_rad, want.beam->major_rad);
  EXPECT_EQ(got.beam->minor_rad, want.beam->minor_rad);
  EXPECT_EQ(got.beam->angle_rad, want.beam->angle_rad);
  EXPECT_EQ(got.metadata.loss_ppm, 2);
  EXPECT_EQ(got.metadata.implementation, "vis-grid/cpu");
  EXPECT_EQ(bin_axis(got).first_center_hz, bin_axis(want).first_center_hz);
}

TEST(ImageCubeFile, EverythingComesBack) {
  const Scratch dir;
  const std::string path = dir / "cube.h5";
  {
    ImageCubeWriter writer(path, observation(), false);
    EXPECT_EQ(exit_code_of([&] { writer.publish(observation()); }), ExitCode::config) << "empty";
    for (std::int64_t k = 0; k < 70; ++k) writer.append(image_at(k));
    EXPECT_EQ(writer.n_images(), 70);
    EXPECT_EQ(writer.n_bytes(), 70 * 4 * 3 * 36 * 4);
    // A reader follows the growing file.
    const ImageCubeReader follower(part_path(path));
    EXPECT_EQ(follower.n_images(), 70);
    EXPECT_FALSE(follower.complete());
    writer.publish(observation());
  }
  EXPECT_THAT(dir.names(), testing::ElementsAre("cube.h5"));
  const ImageCubeReader reader(path);
  EXPECT_TRUE(reader.complete());
  EXPECT_EQ(reader.n_images(), 70);
  EXPECT_EQ(reader.observation().array.name, "cube test");
  for (const std::int64_t k : {0, 1, 63, 64, 69}) expect_same(reader.image(k), image_at(k));
  EXPECT_EQ(exit_code_of([&] { static_cast<void>(reader.image(70)); }), ExitCode::config);
}

TEST(ImageCubeFile, AnotherShapeIsAnotherSegment) {
  const Scratch dir;
  ImageCubeWriter writer(dir / "cube.h5", observation(), false);
  writer.append(image_at(0));
  SkyImage other = image_at(1);
  other.frequency.first_center_hz += 25e3;
  EXPECT_FALSE(writer.accepts(other));
  EXPECT_EQ(exit_code_of([&] { writer.append(other); }), ExitCode::config);
  writer.append(image_at(1));  // still good
  writer.publish(observation());
  EXPECT_EQ(ImageCubeReader(dir / "cube.h5").n_images(), 2);
}

TEST(ImageCubeFile, AbandonedWithAnImageItStaysForRecovery) {
  const Scratch dir;
  {
    ImageCubeWriter writer(dir / "a.h5", observation(), false);
    writer.append(image_at(0));
  }
  const auto done = recover(find_unfinished(dir.path()), {});
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].integrations, 1) << done[0].message;
  EXPECT_THAT(dir.names(), testing::ElementsAre("a.h5"));
}

TEST(ImageCubeFile, AnErrorBeforeTheFirstImageLeavesNothing) {
  const Scratch dir;
  set_publish_fault_hook([](std::string_view operation, const std::string&) {
    return operation == "write" ? ENOSPC : 0;
  });
  ImageCubeWriter writer(dir / "b.h5", observation(), false);
  EXPECT_EQ(exit_code_of([&] { writer.append(image_at(0)); }), ExitCode::io);
  set_publish_fault_hook({});
  EXPECT_THAT(dir.names(), testing::IsEmpty());
}

TEST(ImageCubeFile, AFullDiskLeavesTheImagesBeforeIt) {
  const Scratch dir;
  const std::string path = dir / "b.h5";
  int n_writes = 0;
  set_publish_fault_hook([&](std::string_view operation, const std::string&) {
    return operation == "write" && ++n_writes == 3 ? ENOSPC : 0;
  });
  {
    ImageCubeWriter writer(path, observation(), false);
    for (int k = 0; k < 2; ++k) writer.append(image_at(k));
    try {
      writer.append(image_at(2));
      ADD_FAILURE() << "not refused";
    } catch (const IoError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("2 whole images stay"));
    }
  }
  set_publish_fault_hook({});
  const auto done = recover(find_unfinished(path), {});
  ASSERT_EQ(done.size(), 1u);
  ASSERT_EQ(done[0].outcome, Recovered::Outcome::published) << done[0].message;
  EXPECT_EQ(done[0].integrations, 2);
  EXPECT_EQ(ImageCubeReader(path).n_images(), 2);
}

TEST(ImageCubeFile, AKilledWriterLosesNothingThatWasAppended) {
  for (int kill_no = 0; kill_no < 5; ++kill_no) {
    const Scratch dir;
    const std::string path = dir / "cube.h5";
    int pipe_ends[2];
    ASSERT_EQ(::pipe(pipe_ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ImageCubeWriter writer(path, observation(), false);
      for (std::int64_t k = 0;; ++k) {
        writer.append(image_at(k));
        if (::write(pipe_ends[1], &k, sizeof k) != sizeof k) ::_exit(1);
      }
    }
    ::close(pipe_ends[1]);
    std::int64_t last = -1;
    while (last < 20 && ::read(pipe_ends[0], &last, sizeof last) == sizeof last) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kill_no));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    while (::read(pipe_ends[0], &last, sizeof last) == sizeof last) {
    }
    ::close(pipe_ends[0]);
    const std::int64_t n = recover_image_cube(part_path(path), dir / "recovered.h5", false);
    EXPECT_GE(n, last + 1) << "every image that append() returned from";
    const ImageCubeReader reader(dir / "recovered.h5");
    EXPECT_FALSE(reader.complete());
    expect_same(reader.image(last), image_at(last));
  }
}

// `ryle recover` by whatever name the cube has: the content tells.
TEST(ImageCubeFile, RecoveryPublishesTheWholeImages) {
  const Scratch dir;
  const std::string path = dir / "night.cube";
  const pid_t child = ::fork();
  if (child == 0) {
    ImageCubeWriter writer(path, observation(), false);
    for (std::int64_t k = 0; k < 5; ++k) writer.append(image_at(k));
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  std::ofstream(dir / ".other.cube.part") << "no cube";
  auto results = recover(find_unfinished(dir.path()), {.write = false});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].outcome, Recovered::Outcome::whole) << results[0].message;
  EXPECT_EQ(results[0].integrations, 5);
  EXPECT_EQ(results[0].unit, "image");
  EXPECT_EQ(results[1].outcome, Recovered::Outcome::lost);
  EXPECT_NE(results[1].unit, "image");
  results = recover(find_unfinished(path), {});
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].outcome, Recovered::Outcome::published) << results[0].message;
  EXPECT_EQ(results[0].product, path);
  EXPECT_TRUE(results[0].removed);
  EXPECT_THAT(dir.names(), testing::UnorderedElementsAre("night.cube", ".other.cube.part"));
  const ImageCubeReader reader(path);
  ASSERT_EQ(reader.n_images(), 5);
  EXPECT_FALSE(reader.complete());
  for (std::int64_t k = 0; k < 5; ++k) expect_same(reader.image(k), image_at(k));
}

TEST(ImageCubeFile, DamageIsFound) {
  const Scratch dir;
  const std::string path = dir / "cube.h5";
  {
    ImageCubeWriter writer(path, observation(), false);
    writer.append(image_at(7));
    writer.publish(observation());
  }
  std::string bytes = test::contents(path);
  const float value = 7005;
  const auto at = bytes.find(std::string(reinterpret_cast<const char*>(&value), 4));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  std::ofstream(path, std::ios::binary) << bytes;
  const ImageCubeReader reader(path);
  EXPECT_EQ(exit_code_of([&] { static_cast<void>(reader.image(0)); }), ExitCode::bad_data);
  EXPECT_EQ(exit_code_of([&] { ImageCubeReader(dir / "none.h5"); }), ExitCode::no_input);
}

}  // namespace
}  // namespace ryle
