// SPDX-License-Identifier: BSD-3-Clause
// Blocks of power of many beams on devices: the events of the CPU, on one device or split.
#include <algorithm>
#include <cmath>
#include <utility>

#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/search/search_device.hpp"
#include "ryle/pipeline/search/search_live.hpp"
#include "ryle/pipeline/search/search_stream.hpp"
#include "tests/cuda/cuda_test.hpp"
#include "tests/io/scratch.hpp"
#include "tests/pipeline/search/pulses.hpp"

namespace ryle::pipeline {
namespace {

using test::add_pulse;
using test::noise_with_pulse;
using test::small_band;

class CudaChain : public ryle::test::CudaTest {};

TEST(BeamRanges, CoverAllRowsOnce) {
  for (const std::int64_t rows : {1, 5, 32, 1024})
    for (std::int64_t devices = 1; devices <= std::min<std::int64_t>(rows, 7); ++devices) {
      std::int64_t next = 0;
      for (std::int64_t k = 0; k < devices; ++k) {
        const BeamRange share = beam_range(rows, devices, k);
        EXPECT_EQ(share.first, next);
        EXPECT_GT(share.size(), 0);
        next = share.end;
      }
      EXPECT_EQ(next, rows);
    }
}

/// [beam][channel][n] with pulses at ends of blocks, a flagged channel, a gap and a burst.
std::vector<float> sky(const search::Band& band, std::int64_t n_beams, std::int64_t n) {
  std::vector<float> all;
  for (std::int64_t b = 0; b < n_beams; ++b) {
    auto beam = noise_with_pulse(band, n, -1e6, 0, 0, 300 + static_cast<std::uint64_t>(b));
    const double sweep = band.delay_samples(0, 60);
    add_pulse(band, beam.data(), n, 300.5 + 211 * static_cast<double>(b), 60, 24);
    add_pulse(band, beam.data(), n, 2048 - sweep, 60, 20);
    add_pulse(band, beam.data(), n, 4090 + static_cast<double>(b), 35, 30);
    add_pulse(band, beam.data(), n, static_cast<double>(n) - 0.6 * sweep, 60, 40);
    if (b == 1)
      for (std::int64_t t = 0; t < n; ++t) beam[static_cast<std::size_t>(7 * n + t)] *= 3;
    if (b == 2)
      for (std::int64_t c = 0; c < 64; ++c)
        std::fill_n(beam.begin() + c * n + 1500, 200, std::nanf(""));
    if (b == 3)
      for (std::int64_t c = 0; c < 64; ++c) beam[static_cast<std::size_t>(c * n + 2600)] += 60;
    all.insert(all.end(), beam.begin(), beam.end());
  }
  return all;
}

BeamSearchConfig config_of(const search::Band& band, std::int64_t n_beams) {
  BeamSearchConfig config;
  config.chain.band = band;
  search::DmPlanConfig plan;
  plan.dm_max = 120;
  config.chain.dms = search::dm_trials(band, plan);
  config.chain.normalize.n_channels = band.n_channels();
  config.chain.max_width = 64;
  config.chain.block_samples = 1024;
  config.beams.n_beams = n_beams;
  config.n_workers = 1;
  return config;
}

std::vector<BeamEvent> run(const BeamSearchConfig& config, const std::vector<float>& data,
                           std::int64_t n, SearchCounts* counts = nullptr) {
  BeamSearch search(config);
  std::vector<BeamEvent> events;
  const std::int64_t block = config.chain.block_samples;
  const std::int64_t beam_stride = config.chain.band.n_channels() * n;
  for (std::int64_t first = 0; first < n; first += block) {
    if (first == 3 * block)  // a block that was dropped
      search.feed(nullptr, 0, 0, block, events);
    else
      search.feed(data.data() + first, beam_stride, n, std::min(block, n - first), events);
  }
  search.finish(events);
  if (counts != nullptr) *counts = search.counts();
  return events;
}

void expect_same(const std::vector<BeamEvent>& found, const std::vector<BeamEvent>& expected,
                 const std::string& name) {
  ASSERT_EQ(found.size(), expected.size()) << name;
  for (std::size_t k = 0; k < found.size(); ++k) {
    const SearchEvent &a = found[k].event, &b = expected[k].event;
    EXPECT_EQ(found[k].beam, expected[k].beam) << name << k;
    EXPECT_EQ(found[k].seen, expected[k].seen) << name << k;
    EXPECT_EQ(a.cluster.best, b.cluster.best) << name << k;
    EXPECT_EQ(a.cluster.n_hits, b.cluster.n_hits) << name << k;
    EXPECT_EQ(a.pulse.tick, b.pulse.tick) << name << k;
    EXPECT_EQ(a.pulse.snr, b.pulse.snr) << name << k;
    EXPECT_EQ(a.pulse.dm_pc_cm3, b.pulse.dm_pc_cm3) << name << k;
    EXPECT_EQ(a.refined, b.refined) << name << k;
    EXPECT_EQ(a.codes, b.codes) << name << k;
    EXPECT_EQ(a.channel_masked, b.channel_masked) << name << k;
    EXPECT_EQ(a.rfi_suspect, b.rfi_suspect) << name << k;
  }
}

// Every hit, every refined number and the codes of the picture.
TEST_F(CudaChain, EventsAreThoseOfTheCpu) {
  const auto band = small_band();
  const std::int64_t n = 6700, n_beams = 5;
  const auto data = sky(band, n_beams, n);
  BeamSearchConfig config = config_of(band, n_beams);
  for (const auto& [name, baseline] :
       {std::pair{"auto", 0}, {"fdmt", 0}, {"auto", 600}, {"auto", 3000}}) {
    config.chain.implementation = name;
    config.chain.baseline_samples = baseline;  // held back: 1024 and 2048 samples
    config.devices.clear();
    SearchCounts expected_counts;
    const auto expected = run(config, data, n, &expected_counts);
    ASSERT_GE(expected.size(), 7U);
    for (const auto& devices : std::vector<std::vector<int>>{{0}, {0, 0}, {0, 0, 0}}) {
      config.devices = devices;
      SearchCounts counts;
      expect_same(run(config, data, n, &counts), expected,
                  name + std::string(" on ") + std::to_string(devices.size()));
      EXPECT_EQ(counts.n_hits, expected_counts.n_hits);
      EXPECT_EQ(counts.normalize.written, expected_counts.normalize.written);
      EXPECT_EQ(counts.normalize.masked_spectra, expected_counts.normalize.masked_spectra);
    }
  }
}

TEST_F(CudaChain, AgainFromTheStart) {
  const auto band = small_band();
  const auto data = sky(band, 2, 3000);
  BeamSearchConfig config = config_of(band, 2);
  config.devices = {0};
  BeamSearch search(config);
  std::vector<std::vector<BeamEvent>> found(2);
  for (auto& events : found) {
    for (std::int64_t first = 0; first < 3000; first += 1024)
      search.feed(data.data() + first, 64 * 3000, 3000, std::min<std::int64_t>(1024, 3000 - first),
                  events);
    search.finish(events);
  }
  expect_same(found[1], found[0], "again ");
  EXPECT_GE(found[0].size(), 3U);
}

// Live: chunks from the host become blocks on devices; the same bytes in the products.
TEST_F(CudaChain, LiveProductsAreThoseOfTheCpu) {
  const auto band = small_band();
  const std::int64_t n = 5200, n_beams = 4;
  const auto data = sky(band, n_beams, n);
  BeamStream stream;
  stream.frequency = {band.center_hz.front(), band.channel_width_hz, band.n_channels()};
  stream.clock = {1'700'000'000'000'000'000, {1000, 1}};
  for (std::int64_t b = 0; b < n_beams; ++b) {
    BeamInfo info;
    info.position = {1.0, 0.2 + 0.0174533 * static_cast<double>(b)};
    info.n_antennas = 16;
    stream.beams.push_back(info);
  }
  std::string expected;
  for (const auto& devices : std::vector<std::vector<int>>{{}, {0}, {0, 0}}) {
    test::Scratch scratch;
    LiveSearchConfig config;
    config.dm_max = 120;
    config.width_max_s = 0.064;
    config.block_samples = 1024;
    config.n_workers = 1;
    config.devices = devices;
    config.products.output_directory = scratch.path();
    config.products.name = "live";
    config.products.pictures = false;
    LiveSearch search(stream, config);
    search.wait_when_full(true);
    EXPECT_EQ(search.wants_host_values(), devices.empty());
    const ChannelGap gap{10, 20, 2100, 2400};
    for (std::int64_t at = 0; at < n; at += 700) {
      if (at == 2800) continue;  // never came
      BeamChunk chunk;
      chunk.values = data.data() + at;
      chunk.beam_stride = 64 * n;
      chunk.channel_stride = n;
      chunk.n_samples = std::min<std::int64_t>(700, n - at);
      chunk.first_sample = at;
      chunk.clock = stream.clock;
      chunk.absent = {&gap, 1};
      search.take(chunk);
    }
    RunSummary summary;
    search.finish(summary);
    EXPECT_TRUE(summary.errors.empty()) << summary.errors.front();
    const std::string csv = test::contents(scratch / "live.csv");
    if (devices.empty()) {
      expected = csv;
      EXPECT_GT(std::count(csv.begin(), csv.end(), '\n'), 4);
      continue;
    }
    EXPECT_EQ(std::count(summary.implementations.begin(), summary.implementations.end(),
                         "search/cuda/normalize"),
              1);
    // The name of the engine is the one thing that may differ.
    const auto rows = [](const std::string& text) { return text.substr(text.find("\n1,") + 1); };
    EXPECT_EQ(rows(csv), rows(expected));
  }
}

TEST_F(CudaChain, TakesTheMemoryThatThePlanSays) {
  auto config = config_of(small_band(), 5);
  for (const std::int64_t baseline : {0, 1536}) {
    config.chain.baseline_samples = baseline;
    std::int64_t planned = 0;
    for (const auto& [what, bytes] : device_search_memory(config.chain, 5, 3)) planned += bytes;
    EXPECT_EQ(DeviceSearch(0, config.chain, 5, 3).memory_bytes(), planned);
  }
}

}  // namespace
}  // namespace ryle::pipeline
