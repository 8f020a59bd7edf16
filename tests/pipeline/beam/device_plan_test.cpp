// SPDX-License-Identifier: BSD-3-Clause
// What a plan says of the memory of GPUs, on any machine.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/plan.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/search/search_engines.hpp"
#include "tests/io/scratch.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kBeams = 5, kChannels = 64, kBlock = 2048, kIntegration = 8;

ObservationConfig five_beams(const test::Scratch& scratch, std::vector<std::string> more) {
  std::ifstream layout(RYLE_SOURCE_DIR "/examples/best2.csv");
  std::ofstream(scratch / "best2.csv") << layout.rdbuf();
  std::ofstream out(scratch / "beams.toml");
  out << "[telescope]\nlayout = \"best2.csv\"\nlatitude_deg = 44.52358\nlongitude_deg = "
         "11.64599\nheight_m = 28.0\n[band]\nfirst_center_mhz = 417.990234375\nchannel_step_khz = "
         "-19.53125\nn_channels = 1024\n";
  for (std::int64_t k = 0; k < kBeams; ++k)
    out << "[[beam]]\nname = \"b" << k << "\"\nframe = \"azel\"\naz_deg = " << 10 * k
        << "\nel_deg = 80\n";
  out.close();
  std::vector<std::string> set{"source.kind=network",
                               "source.format=best2",
                               "source.listen=[\"udp://127.0.0.1:0\"]",
                               "source.start_utc=\"2025-03-01T16:10:00\"",
                               "source.first_channel=0",
                               "source.n_channels=64",
                               "source.chunk_ms=52.4288",
                               "source.allow_small_rcvbuf=true",
                               "beams.file=beams.toml",
                               "beams.integration_spectra=8",
                               "beams.incoherent=[\"all\"]",
                               "search.dm_max=100",
                               "search.width_max_s=0.02",
                               "search.block_samples=2048",
                               "search.blocks=3",
                               "output.directory=" + scratch.path()};
  set.insert(set.end(), more.begin(), more.end());
  return parse_observation("schema = 1\n", scratch / "obs.toml", set);
}

std::map<std::string, std::int64_t> items_of(const ObservationConfig& config) {
  const auto items = beams_device_memory(config, beam_setup(config, live_beams(config)));
  return {items.begin(), items.end()};
}

TEST(DevicePlan, SaysWhatEachDeviceHolds) {
  const test::Scratch scratch;
  EXPECT_TRUE(items_of(five_beams(scratch, {"runtime.device=cpu"})).empty());
  const auto one = items_of(five_beams(scratch, {"runtime.device=cuda:0"}));
  const auto two = items_of(five_beams(scratch, {"runtime.devices=[0,1]"}));
  // 52.4288 ms are 1024 spectra.
  EXPECT_EQ(one.at("samples of a chunk"), kChannels * 1024 * 32);
  EXPECT_EQ(two.at("samples of a chunk"), one.at("samples of a chunk"));
  EXPECT_EQ(one.at("power of beams"), (kBeams + 1) * kChannels * 1024 / kIntegration * 4);
  EXPECT_EQ(two.at("power of beams"), one.at("power of beams") / 2);
  EXPECT_EQ(one.at("blocks of power"), 3 * (kBeams + 1) * kChannels * kBlock * 4);
  EXPECT_EQ(two.at("blocks of power"), one.at("blocks of power") / 2);
  // 8 pages of codes read beyond their end, counted once a device.
  EXPECT_EQ(2 * (two.at("codes and masks of beams") - 8192),
            one.at("codes and masks of beams") - 8192);
  EXPECT_EQ(one.count("trees"), 0U);
  const auto trees =
      items_of(five_beams(scratch, {"runtime.device=cuda:0", "search.implementation=fdmt"}));
  EXPECT_GT(trees.at("trees"), 0);
}

// Without a device here its memory is not known: by the sweep, and by how long candidates may wait.
TEST(DevicePlan, ChoosesBlocks) {
  const test::Scratch scratch;
  const auto chosen = [&](const std::vector<std::string>& more) {
    std::vector<std::string> set{"search.block_samples=0", "search.blocks=0"};
    set.insert(set.end(), more.begin(), more.end());
    const auto config = five_beams(scratch, set);
    return with_search_blocks(config, beam_setup(config, live_beams(config))).search;
  };
  const SearchConfig on_cpu = chosen({"runtime.device=cpu"});
  EXPECT_EQ(on_cpu.block_samples, 4096);
  EXPECT_EQ(on_cpu.blocks, 3);
  if (!cuda_unavailable_reason().empty()) {
    const SearchConfig on_device = chosen({"runtime.device=cuda:0", "search.block_max_s=10"});
    EXPECT_EQ(on_device.block_samples, 8192);
    EXPECT_EQ(on_device.blocks, 2);
    // Samples of 0.4096 ms; a second holds two steps of 1024.
    EXPECT_EQ(chosen({"runtime.device=cuda:0"}).block_samples, 2048);
  }
  const auto given = five_beams(scratch, {"runtime.device=cuda:0"});
  EXPECT_EQ(with_search_blocks(given, beam_setup(given, live_beams(given))).search.block_samples,
            kBlock);
}

// Files of [search] are looked up beside the observation file and read when the run is planned.
TEST(DevicePlan, ReadsTheFilesOfTheSearchBeforeData) {
  const test::Scratch scratch;
  const auto memory = [&](const std::vector<std::string>& more) {
    std::vector<std::string> set{"runtime.device=cpu", "search.dm_max=0"};
    set.insert(set.end(), more.begin(), more.end());
    const auto config = five_beams(scratch, set);
    return total_bytes(graph_memory(config, spectra_input(config), std::nullopt));
  };
  const std::vector<std::string> trials{"search.plan=file", "search.dm_file=dms.txt"};
  EXPECT_THROW(memory(trials), IoError);
  std::ofstream(scratch / "dms.txt") << "10\n100\n";
  EXPECT_GT(memory(trials), memory({}));  // a plan of its own is a search, without dm_max
  EXPECT_THROW(memory({"search.dm_max=100", "search.kill_file=kill.txt"}), IoError);
  std::ofstream(scratch / "kill.txt") << "zap 398 here\n";
  EXPECT_THROW(memory({"search.dm_max=100", "search.kill_file=kill.txt"}), FormatError);
  EXPECT_THROW(memory({"search.dm_max=100", "search.mask_times=later"}), ConfigError);
}

TEST(DevicePlan, IsPartOfThePlan) {
  const test::Scratch scratch;
  const auto config = five_beams(scratch, {"runtime.device=cuda:0"});
  const Plan plan = make_plan(config);
  std::int64_t sum = 0;
  for (const auto& [what, bytes] : items_of(config)) sum += bytes;
  EXPECT_EQ(plan.total_device_memory_bytes, sum);
  EXPECT_NE(to_text(plan).find("memory of each GPU"), std::string::npos);
  EXPECT_EQ(to_text(make_plan(five_beams(scratch, {"runtime.device=cpu"}))).find("GPU"),
            std::string::npos);
}

// The same function sizes the blocks of the CPU, which are there to be asked.
TEST(DevicePlan, BlocksAreWhatEnginesAllocate) {
  SearchChainConfig c;
  c.band.channel_width_hz = 20e6 / 64;
  for (int k = 0; k < 64; ++k) c.band.center_hz.push_back(398e6 + (k + 0.5) * 20e6 / 64);
  c.band.sample_interval_s = 1e-3;
  for (int k = 0; k < 37; ++k) c.dms.push_back(2.5 * k);
  c.normalize.n_channels = 64;
  c.max_width = 100;
  c.block_samples = 2048;
  for (const std::int64_t block : {1024, 3072}) {
    c.block_samples = block;
    const SearchEngines engines(Queue::cpu(1), c);
    EXPECT_EQ(search_engine_bytes(c, false), engines.memory_bytes());
    // Columns in whole pieces of 1024; 14 windows of a tile of 32 x 2 cells.
    const std::int64_t columns = (128 + block + 64 + 1023) / 1024 * 1024;
    EXPECT_EQ(search_engine_bytes(c, true),
              37 * (columns * 2 + columns / 64 * (2 + 4) + 14 * 32 * 4));
  }
}

}  // namespace
}  // namespace ryle::pipeline
