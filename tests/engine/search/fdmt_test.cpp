// SPDX-License-Identifier: BSD-3-Clause
// T-DD-18: the tree on every instruction set, in any gulps, and against exact tracks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/fdmt_plan.hpp"
#include "ryle/engine/search/search.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

DedisperseConfig tree_config(const Band& band, const std::vector<double>& dms, int max_code,
                             std::int64_t max_outputs) {
  DedisperseConfig config = test::plan_of(band, dms, max_code, max_outputs);
  for (const double hz : band.center_hz) config.dispersion.push_back(1e18 / (hz * hz));
  return config;
}

std::vector<double> native(const Band& band, std::int64_t first, std::int64_t n, double step = 1) {
  std::vector<double> dms;
  for (std::int64_t k = 0; k < n; ++k)
    dms.push_back((static_cast<double>(first) + static_cast<double>(k) * step) /
                  std::max(1e-9, band.sweep_samples_per_dm()));
  return dms;
}

struct Data {
  std::int64_t stride;
  std::vector<std::uint8_t> codes;
};
Data random_data(const DedisperseConfig& config, std::int64_t n_outputs, std::uint64_t seed) {
  Data data;
  data.stride = n_outputs + *std::max_element(config.delays.begin(), config.delays.end());
  data.codes.resize(static_cast<std::size_t>(config.n_channels * data.stride + kReadAhead));
  for (std::size_t k = 0; k < data.codes.size(); ++k)
    data.codes[k] = static_cast<std::uint8_t>(combine(seed, k) %
                                              (static_cast<std::uint64_t>(config.max_code) + 1));
  return data;
}

/// Sums made in gulps; what lies around them must stay as it was.
std::vector<std::uint32_t> run(Queue& queue, DedisperseConfig config, const std::string& name,
                               const Data& data, std::int64_t n_outputs, std::int64_t gulp) {
  config.implementation = name;
  const auto engine = make_dedisperser(queue, config);
  std::string wanted = "search/" + name;
  std::replace(wanted.begin(), wanted.end(), ':', '/');
  if (name != "fdmt") {
    EXPECT_EQ(engine->implementation(), wanted);
  }
  const bool narrow = sum_format(config.n_channels, config.max_code) == SumFormat::u16;
  const std::int64_t stride = n_outputs + 3, size = narrow ? 2 : 4;
  std::vector<std::uint8_t> memory(static_cast<std::size_t>(config.n_trials * stride * size), 0xA5);
  for (std::int64_t t = 0; t < n_outputs; t += gulp)
    engine->execute(queue, data.codes.data() + t, data.stride, std::min(gulp, n_outputs - t),
                    memory.data() + t * size, stride);
  std::vector<std::uint32_t> sums;
  for (std::int64_t k = 0; k < config.n_trials * stride; ++k) {
    std::uint32_t value = 0;
    std::memcpy(&value, memory.data() + k * size, static_cast<std::size_t>(size));
    if (k % stride < n_outputs) {
      sums.push_back(value);
    } else {
      EXPECT_EQ(value, narrow ? 0xA5A5u : 0xA5A5A5A5u);
    }
  }
  return sums;
}

TEST(Fdmt, EveryImplementationAndGulpGivesTheTree) {
  EXPECT_GE(available_trees().size(), 2u);
  for (const std::int64_t n_channels : {1, 2, 5, 8, 9, 63, 100, 130, 300}) {
    for (const int max_code : {63, 255}) {
      const Band band = test::band_of(390, 25, n_channels, 2e-4);
      auto dms = native(band, 3, 40, 1.7);
      if (n_channels == 1) dms = {0, 1, 2};
      dms.push_back(dms.front());  // two trials of one row
      const std::int64_t n_outputs = n_channels % 2 == 0 ? 700 : 129;
      auto config = tree_config(band, dms, max_code, n_outputs);
      const Data data = random_data(config, n_outputs, static_cast<std::uint64_t>(n_channels));
      Queue queue = Queue::cpu(1 + static_cast<int>(n_channels % 2));
      const auto expected = run(queue, config, "fdmt:reference", data, n_outputs, n_outputs);
      for (const auto& name : available_trees()) {
        for (const std::int64_t gulp : {n_outputs, std::int64_t{64}, std::int64_t{333}})
          ASSERT_EQ(run(queue, config, name, data, n_outputs, gulp), expected)
              << name << " " << n_channels << " channels, gulps of " << gulp;
      }
    }
  }
}

// More than one tile of trials, three levels, 16 and 32 bits.
TEST(Fdmt, TilesAndWideSums) {
  Queue queue = Queue::cpu(2);
  for (const std::int64_t n_channels : {1040, 1041, 1300}) {
    const Band band = test::best2_band(n_channels);
    auto config = tree_config(band, native(band, 0, 6, 130), 63, 70);
    Data data = random_data(config, 70, 5);
    std::fill(data.codes.begin(), data.codes.begin() + 400 * data.stride, std::uint8_t{63});
    const auto expected = run(queue, config, "fdmt:reference", data, 70, 70);
    for (const auto& name : available_trees())
      EXPECT_EQ(run(queue, config, name, data, 70, 1000), expected) << name << n_channels;
    std::fill(data.codes.begin(), data.codes.end(), std::uint8_t{63});
    for (const auto sum : run(queue, config, "fdmt", data, 70, 70))
      ASSERT_EQ(sum, static_cast<std::uint32_t>(63 * n_channels));
  }
}

double boxcar_response(const std::vector<double>& profile) {
  std::vector<double> prefix(profile.size() + 1, 0.0);
  std::partial_sum(profile.begin(), profile.end(), prefix.begin() + 1);
  double best = 0;
  for (const std::int32_t width : boxcar_widths(64))
    for (std::size_t t = 0; t + static_cast<std::size_t>(width) < prefix.size(); ++t)
      best = std::max(best, (prefix[t + static_cast<std::size_t>(width)] - prefix[t]) /
                                std::sqrt(static_cast<double>(width)));
  return best;
}

/// Best boxcar on a Gaussian pulse whose channels, smeared by dispersion over `smear` samples each,
/// are summed `error` samples off.
double response(const std::vector<double>& error, double fwhm, double smear) {
  const double s = std::hypot(fwhm, smear) / 2.3548200450309493 * std::sqrt(2.0);
  std::vector<double> profile(96, 0.0);
  for (const double e : error)
    for (std::size_t t = 0; t < profile.size(); ++t) {
      const double x = static_cast<double>(t) - 48 - e;
      profile[t] += 0.5 * (std::erf((x + 0.5) / s) - std::erf((x - 0.5) / s));
    }
  return boxcar_response(profile);
}

// Tracks of all 4161 rows of the block against fractional delays; what the pulses keep of exact
// sums. A rounding costs up to 1/2 sample and a part of the next level inherits it: 3 levels stay
// within 3/2. Pulses are smeared within the channels as real ones are.
TEST(Fdmt, TracksAndLossOfTheBlock) {
  const Band band = test::best2_band();
  const auto config = tree_config(band, native(band, 0, 4161), 63, 64);
  const auto x = detail::tree_dispersion(config);
  const auto tree = detail::tree_of(1024);
  double squares = 0;
  std::vector<double> loss(4, 0.0);
  int n = 0;
  for (std::int32_t row = 0; row <= 4160; row += 8) {
    const auto track = detail::tree_track(tree, x, row);
    std::vector<double> tree_error, exact_error;
    for (std::size_t c = 0; c < track.size(); ++c) {
      const double exact = row * x[c];
      tree_error.push_back(exact - track[c]);
      exact_error.push_back(exact - std::rint(exact));
      squares += tree_error.back() * tree_error.back();
      ASSERT_LE(std::abs(tree_error.back()), 1.5) << row << " " << c;
    }
    if (row % 416 != 8) continue;
    ++n;
    const double smear = row / 1023.0;
    for (std::size_t k = 0; k < 4; ++k) {
      const double fwhm = std::ldexp(1.0, static_cast<int>(k));
      loss[k] += 1 - response(tree_error, fwhm, smear) / response(exact_error, fwhm, smear);
    }
  }
  EXPECT_LE(std::sqrt(squares / (521.0 * 1024)), 0.43);  // 0.29 for exact sums
  for (auto& value : loss) value /= n;
  EXPECT_LE(loss[0], 0.03);
  EXPECT_LE(loss[1], 0.03);
  EXPECT_LE(loss[2], 0.006);
  EXPECT_LE(loss[3], 0.005);
}

TEST(Fdmt, SaysHowFarItIsOffThePlan) {
  Queue queue = Queue::cpu(1);
  auto config = tree_config(test::best2_band(), {0, 10.03, 40.07, 86}, 63, 64);
  config.implementation = "fdmt";
  const auto error = make_dedisperser(queue, config)->track_error();
  EXPECT_GT(error.rms_samples, 0.1);
  EXPECT_LE(error.max_samples, 2);
  config.implementation = "auto";
  EXPECT_EQ(make_dedisperser(queue, config)->track_error().max_samples, 0);
  // Without the band the delays tell it nearly as well.
  config.implementation = "fdmt";
  config.dispersion.clear();
  EXPECT_LE(make_dedisperser(queue, config)->track_error().max_samples, 2);
}

TEST(Fdmt, RejectsWhatIsNoDispersion) {
  Queue queue = Queue::cpu(1);
  auto config = tree_config(test::best2_band(64), {1, 2}, 63, 64);
  config.implementation = "fdmt:mmx";
  EXPECT_THROW(make_dedisperser(queue, config), UnsupportedError);
  config.implementation = "fdmt";
  config.delays[20] += 40;
  EXPECT_THROW(make_dedisperser(queue, config), UnsupportedError);
  config.dispersion.pop_back();
  EXPECT_THROW(make_dedisperser(queue, config), ConfigError);
}

}  // namespace
}  // namespace ryle::search
