// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/run/live_metrics.hpp"
#include "ryle/pipeline/run/sample_path.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

class SlowDisk : public ::testing::Test {
 protected:
  SlowDisk()
      : directory_(fs::temp_directory_path() / ("ryle-slow-disk-" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
    std::ofstream(directory_ / "layout.csv") << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n"
                                                "A,0,0,0,X,0\nB,30,0,0,X,0\nC,0,40,0,X,0\n";
  }
  ~SlowDisk() override {
    set_publish_fault_hook({});
    fs::remove_all(directory_);
  }
  fs::path directory_;
};

constexpr std::int64_t kInputs = 3;
constexpr std::int64_t kSpectraPerDump = 32;
constexpr std::int64_t kDumps = 60;

TEST_F(SlowDisk, DropsWholeNewestDumpsAndNeverHoldsUpTheEngines) {
  // For the first half the disk does nothing at all: who waits for it waits for ever.
  std::atomic<bool> hangs{false};
  set_publish_fault_hook([&](std::string_view operation, const std::string&) {
    while (hangs && operation == "write") std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return 0;
  });
  const std::string file = (directory_ / "slow.uvh5").string();
  const auto config = parse_observation(
      "[telescope]\nlatitude_deg = -26.7\nlongitude_deg = 116.7\n[channelize]\nn_channels = "
      "16\n[correlate]\n"
      "integration_s = 0.000512\n[runtime]\nthreads = 1\ndump_queue = 2\n[output]\npictures = "
      "false\nfiles = [\"" +
          file + "\"]\ndirectory = \"" + directory_.string() + "\"\n",
      (directory_ / "obs.toml").string(), {"telescope.layout=layout.csv"});
  SampleMetadata metadata;
  metadata.n_inputs = kInputs;
  metadata.layout.format = SampleFormat::ci8;
  metadata.layout.input_stride_bits = 16;
  metadata.layout.sample_stride_bits = 16 * kInputs;
  metadata.clock = {1'700'000'000'000'000'000, {1'000'000, 1}};
  metadata.reference_hz = 150e6;
  metadata.max_feed_ticks = 512;
  SamplePath path(config, metadata, load_array(config, kInputs), true, "test");

  std::vector<ci8> samples(512 * kInputs);
  for (std::size_t k = 0; k < samples.size(); ++k)
    samples[k] = {static_cast<std::int8_t>(mix64(k) % 64), 5};
  const auto feed = [&](std::int64_t first, std::int64_t end) {
    for (Tick t = first * 512; t < end * 512; t += 512)
      path.feed(samples.data(), t, 512, {}, 0, metadata.clock);
  };
  hangs = true;
  feed(0, kDumps / 2);
  hangs = false;
  for (int ms = 0; ms < 60'000 && path.integrations() < 2; ++ms)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // The first dump starts behind the filter's edge: one feed more than dumps.
  feed(kDumps / 2, kDumps + 1);
  RunSummary summary;
  path.finish(summary, {});

  // Kept of the first half: the queue of two, and one in the writer's hand.
  EXPECT_GE(summary.dropped_dumps, kDumps / 2 - 4);
  const VisibilityFile read = read_visibility_file(file);
  ASSERT_EQ(static_cast<std::int64_t>(read.dumps.size()), summary.integrations);
  EXPECT_GE(summary.integrations + summary.dropped_dumps, kDumps);
  EXPECT_GT(read.dumps.back().start_tai_ns - read.dumps.front().start_tai_ns,
            (kDumps / 2 - 2) * kSpectraPerDump * 16'000);
  for (const auto& dump : read.dumps) {
    // Whole dumps on the grid of the clock: a dropped one is a gap in time, never a shifted
    // neighbour.
    const std::int64_t offset_ns = dump.start_tai_ns - read.dumps.front().start_tai_ns;
    EXPECT_EQ(offset_ns % (kSpectraPerDump * 16'000), 0);
    if (&dump != &read.dumps.back()) {
      for (const auto count : dump.counts)
        ASSERT_EQ(count, static_cast<std::uint32_t>(kSpectraPerDump));
    }
  }
}

TEST_F(SlowDisk, MetricsFileIsRewrittenWhole) {
  const fs::path file = directory_ / "ryle.prom";
  LiveMetrics metrics(file.string(), {});
  IngestCounters counters;
  counters.received = 10;
  counters.used = 7;
  counters.rejected["late"] = 3;
  Progress progress;
  progress.margin = 2.5;
  progress.state = "OK";
  progress.ingest = counters;
  progress.input_rms_lsb = {4.5, 0};
  metrics.update(progress, 3);
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(text.find("ryle_ingest_datagrams_total 10"), std::string::npos) << text;
  EXPECT_NE(text.find("ryle_ingest_rejected_total{reason=\"late\"} 3"), std::string::npos) << text;
  EXPECT_NE(text.find("ryle_ingest_balance 0"), std::string::npos) << text;
  EXPECT_NE(text.find("ryle_realtime_margin_ratio 2.5"), std::string::npos) << text;
  EXPECT_NE(text.find("ryle_input_level_lsb{input=\"0\"} 4.5"), std::string::npos) << text;
  EXPECT_NE(text.find("ryle_ring_waiting_chunks 3"), std::string::npos) << text;
  EXPECT_NE(text.find("ryle_state{state=\"OK\"} 1"), std::string::npos) << text;
  progress.state = "DEGRADED(slow)";
  metrics.update(progress, 0);
  EXPECT_EQ(metrics.text().find("state=\"OK\""), std::string::npos);
  EXPECT_NE(metrics.text().find("ryle_up 0"), std::string::npos);
  EXPECT_FALSE(fs::exists(directory_ / "ryle.prom.part"));
}

}  // namespace
}  // namespace ryle::pipeline
