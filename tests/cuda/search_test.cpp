// SPDX-License-Identifier: BSD-3-Clause
// T-DD-17, T-DD-20 on the device: the integers and the hits of the definition, 0 difference.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/search.hpp"
#include "tests/cuda/cuda_test.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

class CudaSearch : public ryle::test::CudaTest {
 protected:
  struct Case {
    DedisperseConfig config;
    std::int64_t n_outputs = 0;
    std::int64_t code_stride = 0;
    std::int64_t offset = 0;  // bytes from the start of an allocation
    std::vector<std::uint8_t> codes;
  };

  /// aligned: channels begin at multiples of 16 bytes, else anywhere.
  Case make_case(const DedisperseConfig& config, std::int64_t n_outputs, std::uint64_t seed,
                 bool aligned = false) {
    Case c{config, n_outputs, 0, aligned ? 0 : static_cast<std::int64_t>(seed % 5), {}};
    const std::int64_t longest = *std::max_element(config.delays.begin(), config.delays.end());
    c.code_stride = n_outputs + longest + static_cast<std::int64_t>(seed % 7);
    if (aligned) c.code_stride = (c.code_stride + 15) / 16 * 16;
    c.codes.resize(static_cast<std::size_t>(config.n_channels * c.code_stride + kReadAhead));
    for (std::size_t k = 0; k < c.codes.size(); ++k)
      c.codes[k] = static_cast<std::uint8_t>(combine(seed, k) %
                                             (static_cast<std::uint64_t>(config.max_code) + 1));
    // What lies behind the last needed code may be anything.
    for (std::size_t k = c.codes.size() - kReadAhead; k < c.codes.size(); ++k) c.codes[k] = 0xFF;
    return c;
  }

  static constexpr const char* kTiles = "fdmt:cuda:tiles";
  bool trees_equal(const Case& c) {
    const auto expected = run_reference(c, "fdmt:reference");
    return run_cuda(c, "fdmt") == expected && run_cuda(c, kTiles) == expected;
  }

  /// Sums as they lie in memory, prefilled; 5 values behind each row must stay.
  std::vector<std::byte> run_cuda(const Case& c, const std::string& name) {
    DedisperseConfig config = c.config;
    config.implementation = name;
    const auto engine = make_dedisperser(queue(), config);
    EXPECT_EQ(engine->implementation(), name == "cuda:direct"    ? "search/cuda/direct"
                                        : name == "fdmt"         ? "search/fdmt/cuda"
                                        : name == kTiles         ? "search/fdmt/cuda/tiles"
                                        : name == "subband:cuda" ? "search/subband/cuda"
                                                                 : "search/cuda/shared");
    std::vector<std::byte> bytes(c.codes.size() + static_cast<std::size_t>(c.offset));
    std::memcpy(bytes.data() + c.offset, c.codes.data(), c.codes.size());
    const auto codes = upload(bytes);
    const auto sums = upload(ryle::test::garbage(n_bytes(c)));
    engine->execute(queue(), reinterpret_cast<const std::uint8_t*>(codes.data()) + c.offset,
                    c.code_stride, c.n_outputs, sums.data(), c.n_outputs + 5);
    return download(sums);
  }
  static std::vector<std::byte> run_reference(const Case& c,
                                              const std::string& name = "reference") {
    Queue host = Queue::cpu(1);
    DedisperseConfig config = c.config;
    config.implementation = name;
    auto sums = ryle::test::garbage(n_bytes(c));
    make_dedisperser(host, config)
        ->execute(host, c.codes.data(), c.code_stride, c.n_outputs, sums.data(), c.n_outputs + 5);
    return sums;
  }
  static std::int64_t n_bytes(const Case& c) {
    const bool wide = sum_format(c.config.n_channels, c.config.max_code) == SumFormat::u32;
    return c.config.n_trials * (c.n_outputs + 5) * (wide ? 4 : 2);
  }

  void expect_equal(const DedisperseConfig& config, std::int64_t n_outputs, std::uint64_t seed) {
    const Case c = make_case(config, n_outputs, seed);
    const auto expected = run_reference(c);
    for (const char* name : {"cuda", "cuda:direct"}) {
      const auto found = run_cuda(c, name);
      const auto at = std::mismatch(found.begin(), found.end(), expected.begin()).first;
      EXPECT_EQ(found == expected, true)
          << name << " " << config.n_channels << " channels " << config.n_trials << " trials "
          << n_outputs << " outputs, codes to " << config.max_code << ", seed " << seed
          << ", first at byte " << at - found.begin();
    }
  }
};

std::vector<double> steps(std::int64_t n, double step) {
  std::vector<double> dms;
  for (std::int64_t i = 0; i < n; ++i) dms.push_back(static_cast<double>(i) * step);
  return dms;
}

DedisperseConfig random_plan(std::uint64_t k, std::int64_t n_outputs) {
  constexpr std::int64_t kChannels[] = {1, 2, 3, 4, 5, 8, 31, 64, 100, 256, 257, 260, 300, 516};
  const int max_code = k % 5 == 0 ? 255 : k % 5 == 1 ? 127 : k % 5 == 2 ? 1 : 63;
  const Band band =
      test::band_of(200 + 1000 * uniform(combine(3, k)), 5 + 100 * uniform(combine(4, k)),
                    kChannels[combine(1, k) % std::size(kChannels)], 1e-4);
  const double step =
      (0.2 + 5 * uniform(combine(5, k))) / std::max(1.0, band.sweep_samples_per_dm());
  return test::plan_of(band, steps(1 + static_cast<std::int64_t>(combine(6, k) % 170), step),
                       max_code, n_outputs);
}

TEST_F(CudaSearch, SmallPlansEqualTheDefinition) {
  expect_equal(test::plan_of(test::best2_band(64), steps(90, 1.0), 63, 1100), 1100, 1);
  expect_equal(test::plan_of(test::best2_band(37), steps(7, 3.0), 127, 70), 70, 2);
  expect_equal(test::plan_of(test::best2_band(1100), steps(3, 10.0), 63, 200), 200, 3);
}

TEST_F(CudaSearch, RandomPlansEqualTheDefinition) {
  constexpr std::int64_t kOutputs[] = {1, 63, 64, 65, 128, 511, 1023, 1024, 1025, 2300};
  for (std::uint64_t k = 0; k < 50; ++k) {
    const std::int64_t n_outputs = kOutputs[combine(2, k) % std::size(kOutputs)];
    expect_equal(random_plan(k, n_outputs), n_outputs, k);
  }
}

// No patterns to share, and starts too far apart for any tile.
TEST_F(CudaSearch, ArbitraryDelays) {
  for (const std::uint64_t longest : {900, 30'000, 400'000}) {
    DedisperseConfig config;
    config.n_channels = 33;
    config.n_trials = 50;
    config.max_outputs = 600;
    for (std::uint64_t k = 0; k < 33 * 50; ++k)
      config.delays.push_back(static_cast<std::int32_t>(combine(9, k) % longest));
    expect_equal(config, 600, 77);
  }
}

TEST_F(CudaSearch, TheBlockOfThePaper) {
  auto dms = steps(864, 0.1);
  dms.erase(dms.begin() + 180, dms.begin() + 700);
  expect_equal(test::plan_of(test::best2_band(), dms, 63, 1300), 1300, 3);
}

// The largest sums that fit 16 bits, one more, and many times as many.
TEST_F(CudaSearch, RangeProof) {
  for (const std::int64_t n_channels : {1040, 1041, 4096}) {
    Case c = make_case(test::plan_of(test::best2_band(n_channels), steps(5, 0.5), 63, 130), 130, 1);
    std::fill(c.codes.begin(), c.codes.end(), std::uint8_t{63});
    EXPECT_EQ(run_cuda(c, "cuda") == run_reference(c), true) << n_channels;
  }
  Case c = make_case(test::plan_of(test::best2_band(700), steps(4, 1), 255, 100), 100, 1);
  std::fill(c.codes.begin(), c.codes.end(), std::uint8_t{255});
  EXPECT_EQ(run_cuda(c, "cuda") == run_reference(c), true);
}

// T-DD-18: the tree, bit for bit.
TEST_F(CudaSearch, SmallTreesEqualTheDefinition) {
  for (const std::int64_t n_channels : {1, 7, 64, 100, 1024}) {
    const std::int64_t n_outputs = n_channels == 64 ? 512 : 700;
    const auto config = test::plan_of(test::best2_band(n_channels),
                                      steps(30, 0.05 * 1024 / n_channels), 63, n_outputs);
    const Case c = make_case(config, n_outputs, static_cast<std::uint64_t>(n_channels));
    EXPECT_EQ(trees_equal(c), true) << n_channels;
  }
}

TEST_F(CudaSearch, RandomTreesEqualTheDefinition) {
  constexpr std::int64_t kOutputs[] = {1, 63, 512, 513, 1024, 1300};
  for (std::uint64_t k = 0; k < 30; ++k) {
    const std::int64_t n_outputs = kOutputs[combine(2, k) % std::size(kOutputs)];
    const auto config = random_plan(k, n_outputs);
    if (sum_format(config.n_channels, config.max_code) == SumFormat::u32) continue;
    for (const bool aligned : {false, true}) {
      const Case c = make_case(config, n_outputs, k, aligned);
      EXPECT_EQ(trees_equal(c), true)
          << config.n_channels << " channels " << config.n_trials << " trials " << n_outputs
          << " outputs, codes to " << config.max_code << ", case " << k
          << (aligned ? ", aligned" : "");
    }
  }
}

// Codes of which 1, 2, 4, 8 and all fit a byte, at their largest, in odd numbers of channels and
// rows; few outputs and some more than a thread block makes.
TEST_F(CudaSearch, TreesOfTheLargestCodes) {
  for (const int max_code : {1, 31, 63, 100, 255}) {
    for (const std::int64_t n_outputs : {3, 1029}) {
      const auto config = test::plan_of(test::best2_band(101), steps(67, 0.4), max_code, n_outputs);
      Case c = make_case(config, n_outputs, static_cast<std::uint64_t>(max_code), true);
      for (std::size_t k = 0; k < c.codes.size(); ++k)
        c.codes[k] = static_cast<std::uint8_t>(combine(5, k) % 8 == 0 ? 0 : max_code);
      EXPECT_EQ(trees_equal(c), true) << "codes to " << max_code << ", " << n_outputs << " outputs";
    }
  }
}

// Rows to a sweep of thousands of samples, every one and far apart.
TEST_F(CudaSearch, LongTreesEqualTheDefinition) {
  for (const double step : {0.0209, 1.9}) {
    auto dms = steps(static_cast<std::int64_t>(87 / step), step);
    if (dms.size() > 1000) dms.erase(dms.begin() + 200, dms.end() - 300);
    const Case c = make_case(test::plan_of(test::best2_band(), dms, 63, 90), 90, 11);
    EXPECT_EQ(trees_equal(c), true) << step;
  }
}

// The last has more outputs than are made at a time.
TEST_F(CudaSearch, SubbandsEqualTheirDefinition) {
  struct {
    std::int64_t n_channels, n_trials;
    double step;
    int max_code;
    std::int64_t n_outputs;
    double smear;
  } const cases[] = {{1, 3, 1, 63, 100, 1},        {3, 5, 3, 255, 1025, 2},
                     {100, 33, 0.2, 127, 1500, 1}, {1040, 20, 0.5, 63, 777, 2},
                     {1100, 9, 2, 63, 1030, 1},    {40, 9, 0.3, 63, 17003, 1}};
  std::uint64_t seed = 0;
  for (const auto& k : cases) {
    auto config = test::plan_of(test::best2_band(k.n_channels), steps(k.n_trials, k.step),
                                k.max_code, k.n_outputs);
    config.smear_samples = k.smear;
    const Case c = make_case(config, k.n_outputs, ++seed);
    EXPECT_EQ(run_cuda(c, "subband:cuda") == run_reference(c, "subband:reference"), true)
        << k.n_channels;
  }
}

TEST_F(CudaSearch, RejectsWhatCannotBe) {
  auto config = test::plan_of(test::best2_band(8), steps(2, 1), 63, 10);
  config.implementation = "cuda:tensor";
  EXPECT_THROW(make_dedisperser(queue(), config), UnsupportedError);
  auto wide = test::plan_of(test::best2_band(1041), steps(2, 1), 63, 10);
  wide.implementation = "fdmt";
  EXPECT_THROW(make_dedisperser(queue(), wide), UnsupportedError);  // 32-bit sums
}

// A CPU queue that asks for CUDA by name: host memory in, host memory out.
TEST_F(CudaSearch, HostMemory) {
  Queue host = Queue::cpu(1);
  const Case c = make_case(test::plan_of(test::best2_band(64), steps(9, 2), 63, 300), 300, 4);
  EXPECT_EQ(run_reference(c, "cuda") == run_reference(c), true);
  EXPECT_EQ(run_reference(c, "fdmt:cuda") == run_reference(c, "fdmt:reference"), true);
  EXPECT_EQ(run_reference(c, "subband:cuda") == run_reference(c, "subband:reference"), true);
}

/// Noise with pulses of several widths, on host and device.
template <class T>
void detect_case(Queue& queue, std::int64_t n_columns, std::int64_t max_width, double threshold,
                 bool weighted, std::uint64_t seed, double rms = 256) {
  constexpr std::int64_t kTrials = 9;
  // Rows in whole words are taken to shared memory.
  const std::int64_t stride = seed % 2 == 1 ? (n_columns + 7) / 8 * 8 : n_columns + 3;
  const std::int64_t cells = (n_columns + 63) / 64 + 1;
  std::vector<T> sums(static_cast<std::size_t>(kTrials * stride));
  std::vector<float> weights(static_cast<std::size_t>(kTrials * cells));
  for (std::int64_t i = 0; i < kTrials; ++i) {
    for (std::int64_t t = 0; t < n_columns; ++t) {
      double x = 24576 + rms * gaussian(combine(seed, static_cast<std::uint64_t>(i * stride + t)));
      if (i == 7) x = 5;  // no scatter: not searched
      for (const auto& [at, width, height] :
           {std::tuple{n_columns / 3, 4, 6 * rms}, std::tuple{n_columns / 2 + 61, 40, 2 * rms},
            std::tuple{n_columns / 2 + 400, 1, 120 * rms}, std::tuple{n_columns / 4 - 7, 300, rms}})
        if (i % 3 == 1 && t >= at && t < at + width) x += height;
      sums[static_cast<std::size_t>(i * stride + t)] = static_cast<T>(std::clamp(x, 0.0, 65535.0));
    }
    for (std::int64_t k = 0; k < cells; ++k) {
      const double w = uniform(combine(seed + 1, static_cast<std::uint64_t>(i * cells + k)));
      weights[static_cast<std::size_t>(i * cells + k)] =
          w < 0.1 ? 0.0f : static_cast<float>(std::round(63 * (0.1 + 0.9 * w)) / 63);
    }
  }
  DetectConfig config;
  config.n_trials = kTrials;
  config.max_width = max_width;
  config.max_columns = n_columns;
  config.threshold = threshold;
  config.format = sizeof(T) == 2 ? SumFormat::u16 : SumFormat::u32;
  DetectInput in;
  in.sums = sums.data();
  in.stride = stride;
  in.n_columns = n_columns;
  in.first_tick = 1'000'000'000'007;
  in.first_start = 128;
  in.end_start = n_columns - (max_width + 63) / 64 * 64;
  in.stat_first = 130;
  in.stat_end = n_columns - 1;
  if (weighted) in.weights = weights.data();
  if (!weighted && seed % 2 == 1) in.level = 50.0f / 63;
  in.weight_stride = cells;
  Queue host = Queue::cpu(1);
  config.implementation = "reference";
  const auto reference = make_detector(host, config);
  std::vector<Hit> expected, found;
  reference->execute(host, in, expected);
  EXPECT_GT(expected.size(), 5u);

  const Buffer<T> device_sums(static_cast<std::int64_t>(sums.size()), MemorySpace::device);
  copy_bytes(queue, device_sums.data(), sums.data(), device_sums.bytes());
  const Buffer<float> device_weights(static_cast<std::int64_t>(weights.size()),
                                     MemorySpace::device);
  copy_bytes(queue, device_weights.data(), weights.data(), device_weights.bytes());
  in.sums = device_sums.data();
  if (weighted) in.weights = device_weights.data();
  config.implementation = "cuda";
  const auto engine = make_detector(queue, config);
  EXPECT_EQ(engine->implementation(), "search/cuda");
  engine->execute(queue, in, found);
  in.sums = sums.data();
  if (weighted) in.weights = weights.data();
  std::vector<Hit> through;
  make_detector(host, config)->execute(host, in, through);
  EXPECT_EQ(through == expected, true);
  EXPECT_EQ(found == expected, true)
      << found.size() << " hits, expected " << expected.size() << "; " << n_columns
      << " columns, widths to " << max_width << (weighted ? ", weighted" : "");
  for (std::size_t k = 0; k < kTrials; ++k) {
    EXPECT_EQ(engine->statistics()[k].mu, reference->statistics()[k].mu) << k;
    EXPECT_EQ(engine->statistics()[k].sigma, reference->statistics()[k].sigma) << k;
  }
}

TEST_F(CudaSearch, HitsEqualTheDefinition) {
  detect_case<std::uint16_t>(queue(), 6000, 256, 5, false, 1);
  detect_case<std::uint16_t>(queue(), 5001, 100, 4, true, 2);
  detect_case<std::uint32_t>(queue(), 9000, 2048, 6, true, 3);
  detect_case<std::uint32_t>(queue(), 3000, 1, 4, false, 4);
  // Rows that are read once: some cells count; longer ones; of one weight.
  detect_case<std::uint16_t>(queue(), 7003, 256, 5, true, 7);
  detect_case<std::uint32_t>(queue(), 5000, 300, 6, true, 9);
  detect_case<std::uint16_t>(queue(), 15'999, 128, 5, true, 13);
  detect_case<std::uint16_t>(queue(), 30'000, 256, 6, false, 15);
  // Such boxcars are searched in rows that are read twice, the shorter ones from shared memory.
  detect_case<std::uint16_t>(queue(), 7003, 512, 5, true, 7);
  detect_case<std::uint16_t>(queue(), 15'999, 512, 5, true, 13);
  detect_case<std::uint16_t>(queue(), 30'000, 512, 6, false, 15);
  detect_case<std::uint16_t>(queue(), 9001, 512, 4.5, false, 17);
  detect_case<std::uint16_t>(queue(), 380, 32, 5, false, 19);  // too short to be read once
}

// Units of one value and of many, beyond 16 bits too; boxcars over the ends of thread blocks; sums
// at the top of the units, which say nothing of the boxcars over them.
TEST_F(CudaSearch, HitsOfAnyScatter) {
  std::uint64_t seed = 10;
  for (const double rms : {0.4, 20.0, 700.0, 5000.0}) {
    for (const std::int64_t max_width : {13, 64, 300, 2048}) {
      detect_case<std::uint16_t>(queue(), 13'000, max_width, 4.5, false, ++seed, rms);
    }
    detect_case<std::uint32_t>(queue(), 9'001, 1000, 5, true, ++seed, rms);
  }
}

// More hits than the list begins with.
TEST_F(CudaSearch, ManyHits) { detect_case<std::uint16_t>(queue(), 120'000, 32, 1.1, false, 5); }

}  // namespace
}  // namespace ryle::search
