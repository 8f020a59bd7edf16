// SPDX-License-Identifier: BSD-3-Clause
// What is particular to the CPU paths of the all-sky imager; conformance to the reference is in
// test_all_sky_conformance.cpp.
#include <algorithm>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/engine/image/cpu/plan.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

// Bit for bit, NaN included.
bool same_bits(const Images& a, const Images& b) {
  return a.weights == b.weights && a.pixels.size() == b.pixels.size() &&
         std::memcmp(a.pixels.data(), b.pixels.data(), a.pixels.size() * sizeof(float)) == 0;
}

Images vis_images(Queue& queue, const AllSkyConfig& config, const std::vector<ci64>& sums,
                  const std::vector<std::uint32_t>& counts, std::int64_t n_spectra) {
  Images images = garbage_images();
  VisInput in;
  in.sums = sums.data();
  in.counts = counts.data();
  in.n_spectra = n_spectra;
  make_vis_imager(queue, config)->execute(queue, in, images);
  return images;
}

// Parts and their order belong to the plan, not to the workers.
TEST(AllSkyCpu, AnyNumberOfWorkersGivesTheSameBits) {
  auto each = case_of("workers", random_array(20, 64, 2, 30), 100);
  each.config.channels.n_channels = 3;
  CaseData data(each);
  std::vector<ci64> sums;
  std::vector<std::uint32_t> counts;
  data.correlate(sums, counts);
  for (const Path path : {Path::efield, Path::efield_dft, Path::vis_grid, Path::vis_dft}) {
    each.config.path = path;
    std::vector<Images> all;
    for (const int workers : {1, 2, 5}) {
      Queue queue = Queue::cpu(workers);
      all.push_back(takes_voltages(path)
                        ? field_images(queue, "cpu", path, each)
                        : vis_images(queue, each.config, sums, counts, each.n_spectra));
    }
    EXPECT_TRUE(same_bits(all[0], all[1])) << name(path);
    EXPECT_TRUE(same_bits(all[0], all[2])) << name(path);
  }
}

// Sums of every type are the same image: the values are small integers.
TEST(AllSkyCpu, SumsOfEveryTypeGiveTheSameBits) {
  auto each = case_of("types", random_array(12, 64, 2, 24), 9);
  each.config.path = Path::vis_grid;
  CaseData data(each);
  std::vector<ci64> sums;
  std::vector<std::uint32_t> counts;
  data.correlate(sums, counts);
  std::vector<ci32> narrow;
  std::vector<cf32> single;
  std::vector<cf64> twice;
  for (const auto& v : sums) {
    narrow.push_back({static_cast<std::int32_t>(v.re), static_cast<std::int32_t>(v.im)});
    single.emplace_back(static_cast<float>(v.re), static_cast<float>(v.im));
    twice.emplace_back(static_cast<double>(v.re), static_cast<double>(v.im));
  }
  Queue queue = Queue::cpu(2);
  const Images expected = vis_images(queue, each.config, sums, counts, each.n_spectra);
  auto imager = make_vis_imager(queue, each.config);
  const auto image_of = [&](VisInput::Type type, const void* data_of_type) {
    VisInput in;
    in.type = type;
    in.sums = data_of_type;
    in.n_spectra = each.n_spectra;
    Images images = garbage_images();
    imager->execute(queue, in, images);
    return images;
  };
  EXPECT_TRUE(same_bits(image_of(VisInput::Type::ci64, sums.data()), expected));
  EXPECT_TRUE(same_bits(image_of(VisInput::Type::ci32, narrow.data()), expected));
  EXPECT_TRUE(same_bits(image_of(VisInput::Type::cf32, single.data()), expected));
  EXPECT_TRUE(same_bits(image_of(VisInput::Type::cf64, twice.data()), expected));
}

// A product that is not finite is left out, and its weight with it.
TEST(AllSkyCpu, ProductsThatAreNotFiniteCountNothing) {
  auto each = case_of("nan", random_array(8, 64, 2, 24), 9);
  CaseData data(each);
  std::vector<ci64> sums;
  std::vector<std::uint32_t> counts;
  data.correlate(sums, counts);
  std::vector<cf32> single;
  for (const auto& v : sums) {
    single.emplace_back(static_cast<float>(v.re), static_cast<float>(v.im));
  }
  const auto bad = static_cast<std::size_t>(pair_index(2, 6));  // XX of antennas 1 and 3
  single[bad] = {std::numeric_limits<float>::quiet_NaN(), 1};
  Queue queue = Queue::cpu(1);
  for (const Path path : {Path::vis_grid, Path::vis_dft}) {
    Images images[2];
    for (int i = 0; i < 2; ++i) {
      each.config.path = path;
      each.config.implementation = i == 0 ? "reference" : "cpu";
      VisInput in;
      in.type = VisInput::Type::cf32;
      in.sums = single.data();
      in.n_spectra = each.n_spectra;
      make_vis_imager(queue, each.config)->execute(queue, in, images[i]);
    }
    expect_same_images(images[1], images[0], each.config, path, {}, std::string(name(path)));
    EXPECT_EQ(images[1].weights[0], 8 * 7 * 9 - 2 * 9) << name(path);
  }
}

// Every pass and every order of radices, against the sum.
TEST(AllSkyCpu, GridsOfManySizes) {
  Queue queue = Queue::cpu(2);
  for (const std::int64_t g : {64, 72, 80, 100, 108, 120, 150, 162, 192, 250}) {
    auto each = case_of("size " + std::to_string(g), random_array(6, g, 2, 0.3 * double(g)), 2);
    each.config.channels.n_channels = 1;
    check_field_imager(queue, "cpu", Path::efield, each);
  }
}

TEST(AllSkyCpu, SizesWithoutATransformAreRejectedWithNeighbours) {
  Queue queue = Queue::cpu(1);
  auto config = random_array(6, 74, 2, 20);
  config.path = Path::efield;
  try {
    make_field_imager(queue, config);
    FAIL() << "74 = 2 x 37 was accepted";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("72 or 80"), std::string::npos) << error.what();
  }
}

// 4096 spectra are 64 folds of fp32 sums or more on every instruction set.
TEST(AllSkyCpu, LongSumsKeepTheirPrecision) {
  auto each = case_of("long", random_array(6, 64, 2, 20), 4096);
  each.config.channels.n_channels = 1;
  Queue queue = Queue::cpu(2);
  check_field_imager(queue, "cpu", Path::efield, each);
}

}  // namespace
}  // namespace ryle::image
