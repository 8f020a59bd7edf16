// SPDX-License-Identifier: BSD-3-Clause
// T-DD-01, T-DD-17, T-DD-20: every implementation gives the integers of the definition.
#include "ryle/engine/search/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ryle/core/error.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

std::vector<std::uint8_t> random_codes(std::int64_t size, int max_code, std::uint64_t seed) {
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(size));
  for (std::size_t k = 0; k < codes.size(); ++k)
    codes[k] =
        static_cast<std::uint8_t>(combine(seed, k) % (static_cast<std::uint64_t>(max_code) + 1));
  return codes;
}

/// Widened sums of one implementation; memory around them must stay as it was.
std::vector<std::uint32_t> run(Queue& queue, DedisperseConfig config, const std::string& name,
                               const std::vector<std::uint8_t>& codes, std::int64_t code_stride,
                               std::int64_t n_outputs) {
  config.implementation = name;
  const auto engine = make_dedisperser(queue, config);
  EXPECT_EQ(engine->implementation().rfind("search/", 0), 0u);
  if (name != "auto") {
    std::string wanted = "search/" + name;
    std::replace(wanted.begin(), wanted.end(), ':', '/');
    EXPECT_EQ(engine->implementation(), wanted);
  }
  const bool narrow = sum_format(config.n_channels, config.max_code) == SumFormat::u16;
  const std::int64_t size_bytes = narrow ? 2 : 4, stride = n_outputs + 5;
  std::vector<std::uint8_t> memory(static_cast<std::size_t>(config.n_trials * stride * size_bytes),
                                   0xA5);
  engine->execute(queue, codes.data(), code_stride, n_outputs, memory.data(), stride);
  std::vector<std::uint32_t> sums;
  for (std::int64_t i = 0; i < config.n_trials; ++i) {
    for (std::int64_t t = 0; t < stride; ++t) {
      std::uint32_t value = 0;
      std::memcpy(&value, memory.data() + (i * stride + t) * size_bytes,
                  static_cast<std::size_t>(size_bytes));
      if (t < n_outputs) {
        sums.push_back(value);
      } else {
        EXPECT_EQ(value, narrow ? 0xA5A5u : 0xA5A5A5A5u) << "written behind row " << i;
      }
    }
  }
  return sums;
}

void expect_all_equal(const DedisperseConfig& config, std::int64_t n_outputs, std::uint64_t seed,
                      int n_workers = 1) {
  Queue queue = Queue::cpu(n_workers);
  const std::int64_t longest = *std::max_element(config.delays.begin(), config.delays.end());
  const std::int64_t stride = n_outputs + longest + static_cast<std::int64_t>(seed % 7);
  const auto codes = random_codes(config.n_channels * stride + kReadAhead, config.max_code, seed);
  const auto expected = run(queue, config, "reference", codes, stride, n_outputs);
  for (const auto& name : available_implementations()) {
    if (name == "reference") continue;
    EXPECT_EQ(run(queue, config, name, codes, stride, n_outputs), expected)
        << name << " " << config.n_channels << " channels " << config.n_trials << " trials "
        << n_outputs << " outputs, codes to " << config.max_code << ", seed " << seed;
  }
}

TEST(Dedisperse, RandomPlansEqualTheDefinition) {
  constexpr std::int64_t kChannels[] = {1, 2, 3, 4, 5, 8, 31, 64, 100, 256, 257, 260, 300, 516};
  constexpr std::int64_t kOutputs[] = {1, 63, 64, 65, 127, 128, 129, 511, 512, 513, 700};
  for (std::uint64_t k = 0; k < 50; ++k) {
    const std::int64_t n_channels = kChannels[combine(1, k) % std::size(kChannels)];
    const std::int64_t n_outputs = kOutputs[combine(2, k) % std::size(kOutputs)];
    const int max_code = k % 5 == 0 ? 255 : k % 5 == 1 ? 127 : k % 5 == 2 ? 1 : 63;
    const Band band = test::band_of(200 + 1000 * uniform(combine(3, k)),
                                    5 + 100 * uniform(combine(4, k)), n_channels, 1e-4);
    std::vector<double> dms;
    const double step =
        (0.2 + 5 * uniform(combine(5, k))) / std::max(1.0, band.sweep_samples_per_dm());
    for (std::uint64_t i = 0; i < 1 + combine(6, k) % 70; ++i)
      dms.push_back(static_cast<double>(i) * step);
    expect_all_equal(test::plan_of(band, dms, max_code, n_outputs), n_outputs, k,
                     1 + static_cast<int>(k % 2));
  }
}

// Delays without any order: no patterns to share.
TEST(Dedisperse, ArbitraryDelays) {
  DedisperseConfig config;
  config.n_channels = 132;
  config.n_trials = 50;
  config.max_outputs = 600;
  for (std::uint64_t k = 0; k < 132 * 50; ++k)
    config.delays.push_back(static_cast<std::int32_t>(combine(9, k) % 900));
  expect_all_equal(config, 600, 77);
}

// T-DD-20: the largest sums that fit 16 bits, and one more.
TEST(Dedisperse, RangeProof) {
  EXPECT_EQ(sum_format(1040, 63), SumFormat::u16);
  EXPECT_EQ(sum_format(1041, 63), SumFormat::u32);
  EXPECT_EQ(sum_format(257, 255), SumFormat::u16);
  Queue queue = Queue::cpu(1);
  for (const std::int64_t n_channels : {1040, 1041, 4096}) {
    const Band band = test::best2_band(n_channels);
    const auto config = test::plan_of(band, {0, 0.5, 1, 1.5, 2}, 63, 130);
    const std::int64_t stride = 130 + 200;
    const std::vector<std::uint8_t> codes(
        static_cast<std::size_t>(n_channels * stride + kReadAhead), 63);
    for (const auto& name : available_implementations()) {
      for (const auto sum : run(queue, config, name, codes, stride, 130))
        ASSERT_EQ(sum, static_cast<std::uint32_t>(63 * n_channels)) << name;
    }
  }
}

// Codes of 255 in 700 channels: 16-bit sums are emptied every 257 channels.
TEST(Dedisperse, FullBytes) {
  Queue queue = Queue::cpu(1);
  const auto config = test::plan_of(test::best2_band(700), {0, 1, 2, 3}, 255, 100);
  const std::vector<std::uint8_t> codes(700 * 400 + kReadAhead, 255);
  for (const auto& name : available_implementations()) {
    for (const auto sum : run(queue, config, name, codes, 400, 100))
      ASSERT_EQ(sum, 255u * 700u) << name;
  }
}

TEST(Dedisperse, TheBlockOfThePaper) {
  const Band band = test::best2_band();
  std::vector<double> dms;
  for (int k = 0; k < 864; k += 9) dms.push_back(0.1 * k);  // 96 of the 864, wide steps
  for (int k = 500; k < 548; ++k) dms.push_back(0.1 * k);   // 48 in a row: shared sums
  std::sort(dms.begin(), dms.end());
  dms.erase(std::unique(dms.begin(), dms.end()), dms.end());
  expect_all_equal(test::plan_of(band, dms, 63, 200), 200, 3);
  dms.erase(dms.begin(), dms.begin() + 80);  // whole tiles of times, and a rest
  for (const std::int64_t n : {1024, 1280})
    expect_all_equal(test::plan_of(band, dms, 63, n), n, 4, 2);
}

TEST(Dedisperse, RejectsWhatCannotBe) {
  Queue queue = Queue::cpu(1);
  auto config = test::plan_of(test::best2_band(8), {0, 1}, 63, 10);
  config.implementation = "cpu:mmx";
  try {
    make_dedisperser(queue, config);
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_NE(std::string(e.what()).find("cpu:generic"), std::string::npos);
  }
  config.implementation = "auto";
  config.max_code = 256;
  EXPECT_THROW(make_dedisperser(queue, config), ConfigError);
  config.max_code = 63;
  config.delays.pop_back();
  EXPECT_THROW(make_dedisperser(queue, config), ConfigError);
  config.delays.push_back(-1);
  EXPECT_THROW(make_dedisperser(queue, config), ConfigError);
}

}  // namespace
}  // namespace ryle::search
