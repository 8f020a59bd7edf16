// SPDX-License-Identifier: BSD-3-Clause
// What a stream does to an imager: gains that change, inputs that die, resets, workers.
#include "ryle/core/error.hpp"
#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

struct Named {
  Path path;
  std::string implementation;
};

// Everything that images voltages here, the reference too.
std::vector<Named> field_imagers() {
  std::vector<Named> all;
  for (const auto& each : available_all_sky_implementations()) {
    const auto slash = each.find('/');
    const Path path = path_named(each.substr(0, slash));
    if (takes_voltages(path) && each.find("cuda") == std::string::npos) {
      all.push_back({path, each.substr(slash + 1)});
    }
  }
  return all;
}

struct Stream {
  Stream(Queue& queue, const Named& named, const AllSkyCase& c) : queue_(queue), data(c) {
    AllSkyConfig config = c.config;
    config.path = named.path;
    config.implementation = named.implementation;
    imager = make_field_imager(queue, config);
  }
  void run(std::int64_t first, std::int64_t n) { imager->execute(queue_, data.input(first, n)); }
  Images finish() {
    Images images = garbage_images();
    imager->finish(queue_, images);
    return images;
  }
  Queue& queue_;
  CaseData data;
  std::unique_ptr<FieldImager> imager;
};

AllSkyCase small_case() {
  AllSkyCase c = case_of("stream", random_array(7, 30, 2, 12), 40);
  c.config.channels.n_channels = 2;
  c.config.products = Products::linear;
  return c;
}

// Gains act from the next execute(): the image is the sum of two images with one gain each.
TEST(AllSkyStream, GainsActFromTheNextGulp) {
  Queue queue = Queue::cpu(2);
  const AllSkyCase c = small_case();
  for (const auto& named : field_imagers()) {
    std::vector<cf32> first(28, cf32(0.5f, 0.5f)), second(28, cf32(0, -2));
    second[3] = 0;  // an input dies
    Stream mixed(queue, named, c);
    mixed.imager->set_gains(queue, first);
    mixed.run(0, 16);
    mixed.imager->set_gains(queue, second);
    mixed.run(16, 24);
    const Images all = mixed.finish();
    Stream one(queue, named, c), two(queue, named, c);
    one.imager->set_gains(queue, first);
    one.run(0, 16);
    two.imager->set_gains(queue, second);
    two.run(16, 24);
    const Images a = one.finish(), b = two.finish();
    EXPECT_EQ(all.n_spectra, 40);
    double peak = 0, worst = 0;
    for (std::size_t p = 0; p < all.pixels.size(); ++p) {
      if (std::isnan(all.pixels[p])) continue;
      const std::size_t bin = p / (4 * 900), plane = p / 900 % 4,
                        w = 3 * bin + std::min<std::size_t>(plane, 2);
      ASSERT_EQ(all.weights[w], a.weights[w] + b.weights[w]);
      const double sum = (a.pixels[p] * a.weights[w] + b.pixels[p] * b.weights[w]) / all.weights[w];
      peak = std::max(peak, std::abs(sum));
      // Compared inside r < 0.8, where the taper does not enlarge the rounding.
      const double r = std::hypot(double(p % 30) - 15, double(p % 900 / 30) - 15) / 12;
      if (r < 0.8) worst = std::max(worst, std::abs(sum - all.pixels[p]));
    }
    EXPECT_LT(worst, 1e-5 * peak) << name(named.path) << "/" << named.implementation;
  }
}

// Before set_gains() all gains are 1; a gain that is not finite is none.
TEST(AllSkyStream, GainsThatAreNotFiniteAreNone) {
  Queue queue = Queue::cpu(2);
  const AllSkyCase c = small_case();
  for (const auto& named : field_imagers()) {
    std::vector<cf32> ones(28, cf32(1)), bad = ones, zero = ones;
    bad[5] = {std::numeric_limits<float>::quiet_NaN(), 0};
    bad[20] = {0, std::numeric_limits<float>::infinity()};
    zero[5] = zero[20] = 0;
    Stream a(queue, named, c), b(queue, named, c), d(queue, named, c), e(queue, named, c);
    a.imager->set_gains(queue, bad);
    b.imager->set_gains(queue, zero);
    d.imager->set_gains(queue, ones);
    for (auto* s : {&a, &b, &d, &e}) s->run(0, 40);
    const Images with_bad = a.finish(), with_zero = b.finish(), with_ones = d.finish(),
                 fresh = e.finish();
    EXPECT_EQ(with_bad.weights, with_zero.weights);
    EXPECT_EQ(fresh.weights, with_ones.weights);
    const auto bytes = with_bad.pixels.size() * sizeof(float);
    EXPECT_EQ(std::memcmp(with_bad.pixels.data(), with_zero.pixels.data(), bytes), 0)
        << named.implementation;
    EXPECT_EQ(std::memcmp(fresh.pixels.data(), with_ones.pixels.data(), bytes), 0)
        << named.implementation;
    EXPECT_THROW(a.imager->set_gains(queue, std::vector<cf32>(27)), ConfigError)
        << named.implementation;
  }
}

TEST(AllSkyStream, ResetForgetsAndWorkersDoNotMatter) {
  Queue queue = Queue::cpu(2), one_worker = Queue::cpu(1);
  const AllSkyCase c = small_case();
  for (const auto& named : field_imagers()) {
    Stream a(queue, named, c), b(queue, named, c), d(one_worker, named, c);
    a.run(0, 16);
    a.imager->reset(queue);
    for (auto* s : {&a, &b, &d}) s->run(8, 32);
    const Images reset = a.finish(), plain = b.finish(), alone = d.finish();
    EXPECT_EQ(reset.weights, plain.weights);
    EXPECT_EQ(reset.n_spectra, 32);
    const auto bytes = plain.pixels.size() * sizeof(float);
    EXPECT_EQ(std::memcmp(reset.pixels.data(), plain.pixels.data(), bytes), 0)
        << named.implementation;
    EXPECT_EQ(plain.weights, alone.weights);
    double worst = 0, peak = 0;
    for (std::size_t p = 0; p < plain.pixels.size(); ++p) {
      if (std::isnan(plain.pixels[p])) continue;
      peak = std::max(peak, std::abs(double(plain.pixels[p])));
      worst = std::max(worst, std::abs(double(plain.pixels[p]) - double(alone.pixels[p])));
    }
    EXPECT_LT(worst, 1e-5 * peak) << name(named.path) << "/" << named.implementation;
  }
}

}  // namespace
}  // namespace ryle::image
