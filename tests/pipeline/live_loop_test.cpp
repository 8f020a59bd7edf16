// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_loop.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/run/sample_path.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/simulate/send_loop.hpp"

// What a live run says of itself: states, reasons, counters that do not add up.

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

/// Delivers `n_chunks` and ends.
struct ScriptedSource final : ChunkSource {
  explicit ScriptedSource(int n) : left(n) {}
  SourceInfo info() const override { return {}; }
  void start() override {}
  Chunk* next(std::chrono::milliseconds) override {
    if (left-- <= 0) return nullptr;
    if (!then.empty() && ++delivered > 1) now = then;
    return &chunk;
  }
  void release(Chunk*) override {}
  bool ended() const override { return left <= 0; }
  void stop() override { left = 0; }
  IngestCounters counters() const override { return counted; }
  std::string state() const override { return now; }
  std::int64_t memory_bytes() const override { return 0; }

  Chunk chunk;
  int left;
  IngestCounters counted;
  std::string now = "OK";
  std::string then;  ///< after the first chunk
  int delivered = 0;
};

/// Has nothing to send and ends at once.
struct EndedSimulation final : PacketSimulation {
  struct Nothing final : simulate::Sender {
    Nothing() {
      loop().schedule.rate_hz = 1e6;
      loop().schedule.duration_s = 1e-6;
    }
  };
  EndedSimulation() { sender_ = std::make_unique<Nothing>(); }
};

/// Engines that take `busy_per_data` times the time of the data.
struct ScriptedPath final : LivePath {
  void take(Chunk*) override { data += 1; }
  bool failed() const override { return false; }
  double data_s() const override { return data; }
  double busy_s() const override { return data * busy_per_data; }
  void count(Progress& progress) const override { progress.warning = warning; }

  double data = 0, busy_per_data = 0.1;
  std::string warning;
};

struct ScriptedRun {
  explicit ScriptedRun(int n_chunks) : source(n_chunks) {
    config.source.kind = "network";
    config.source.listen = {"udp://10.0.0.9:4015", "udp://10.0.0.9:4016"};
    options.progress_interval_s = 0;
    options.on_progress = [this](const Progress& p) { lines.push_back(p); };
  }
  RunSummary run() {
    loop.emplace(config, options, source, path, simulation, 1e9);
    RunSummary summary;
    loop->run(summary);
    return summary;
  }

  ObservationConfig config;
  RunOptions options;
  ScriptedSource source;
  ScriptedPath path;
  PacketSimulation* simulation = nullptr;
  std::vector<Progress> lines;
  std::optional<LiveLoop> loop;
};

TEST(LiveLoop, CountersThatDoNotBalanceAreAnError) {
  ScriptedRun good(2);
  good.source.counted.received = 10;
  good.source.counted.used = 7;
  good.source.counted.rejected["late"] = 3;
  good.run();
  EXPECT_NO_THROW(good.loop->require_balance());
  for (const std::uint64_t received : {9, 11}) {
    good.source.counted.received = received;
    try {
      good.loop->require_balance();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::internal);
    }
  }
}

TEST(LiveLoop, EnginesSlowerThanTheDataAreNotOk) {
  ScriptedRun slow(5);
  slow.path.busy_per_data = 10;
  EXPECT_EQ(slow.run().state, "DEGRADED(slow)");
  EXPECT_EQ(slow.lines.back().state, "DEGRADED(slow)");
  ScriptedRun both(5);
  both.path.busy_per_data = 10;
  both.source.now = "DEGRADED(overrun)";
  EXPECT_EQ(both.run().state, "DEGRADED(overrun,slow)");
  ScriptedRun none(5);
  none.path.busy_per_data = 10;
  none.source.now = "NO_DATA";
  EXPECT_EQ(none.run().state, "NO_DATA");
  EXPECT_EQ(ScriptedRun(5).run().state, "OK");
  ScriptedRun waits(5);  // its senders wait
  waits.path.busy_per_data = 10;
  waits.config.source.lossless = true;
  EXPECT_EQ(waits.run().state, "SLOW");
}

// Engines that work for long on what waits do not make a silent array of a simulator that has sent
// everything. Nothing more of a network is silence.
TEST(LiveLoop, ASimulatorThatHasEndedIsNoSilence) {
  EndedSimulation simulation;
  for (const bool simulated : {true, false}) {
    ScriptedRun run(3);
    run.source.then = "NO_DATA";
    if (simulated) run.simulation = &simulation;
    run.config.source.kind = simulated ? "simulator" : "network";
    EXPECT_EQ(run.run().state, simulated ? "OK" : "NO_DATA");
  }
}

// Rules of run_state(), one after the other.
TEST(LiveLoop, StatesAreTrue) {
  const auto state = [](const Condition& c) { return run_state(c); };
  Condition c{"OK", 10, 3, 1, false, 0, false};
  EXPECT_EQ(state(c), "OK");
  c.margin = 0.1;
  EXPECT_EQ(state(c), "DEGRADED(slow)");
  c.sender_waits = true;
  EXPECT_EQ(state(c), "SLOW");
  c.receiver = "DEGRADED(missing_streams)";
  EXPECT_EQ(state(c), "DEGRADED(missing_streams)");
  c.sender_waits = false;
  EXPECT_EQ(state(c), "DEGRADED(missing_streams,slow)");
  c.receiver = "PRELOCK";
  EXPECT_EQ(state(c), "PRELOCK");
  // A simulator at ten times real time asks for ten times the speed.
  EXPECT_EQ(state({"OK", 10, 3, 10, false, 0, false}), "DEGRADED(slow)");
  // One at a fiftieth of it loses nothing to engines that reach a seventh: no array would be so
  // kind.
  EXPECT_EQ(state({"OK", 10, 0.14, 0.02, false, 0, false}), "SLOW");
  // In the first second the engines are made; what keeps up already is well.
  EXPECT_EQ(state({"OK", 0, 0, 1, false, 0, false}), "STARTING");
  EXPECT_EQ(state({"OK", 0.5, 0.1, 1, false, 0, false}), "STARTING");
  EXPECT_EQ(state({"OK", 0.5, 2, 1, false, 0, false}), "OK");
  EXPECT_EQ(state({"OK", 0.5, 0.1, 1, false, 0, true}), "SLOW");
  EXPECT_EQ(state({"OK", 10, 3, 1, false, 2e-3, false}), "DEGRADED(loss)");
  EXPECT_EQ(state({"OK", 10, 3, 1, false, 0.5e-3, false}), "OK");
}

TEST(LiveLoop, WhatIsSlowNowIsSlow) {
  RecentRates rates;
  EXPECT_EQ(rates.margin(), 0);
  for (int k = 1; k <= 1000; ++k) rates.add(k, 0.1 * k, 100 * k, 0);  // ten times real time
  EXPECT_NEAR(rates.margin(), 10, 1e-9);
  for (int k = 1; k <= 12; ++k) rates.add(1000 + k, 100 + 2.0 * k, 100'000 + 50 * k, 50 * k);
  EXPECT_NEAR(rates.margin(), 0.5, 1e-9);
  EXPECT_NEAR(rates.lost_fraction(), 0.5, 1e-9);
}

TEST(LiveLoop, WhatWasRejectedIsInEveryLineThatIsNotAllWell) {
  ScriptedRun run(3);
  run.source.counted.received = run.source.counted.rejected["too_short"] = 2000;
  run.source.counted.last_rejected["too_short"] = {"10.1.2.3:4015", 60, "4d 57 33 32"};
  run.source.now = "PRELOCK";
  const RunSummary summary = run.run();
  ASSERT_GE(run.lines.size(), 2u);
  for (const auto& line : run.lines) {
    const std::string text = to_text(line, run.lines.front().ingest);  // nothing is new
    EXPECT_NE(text.find("2000 rejected: 2000 too_short (the last from 10.1.2.3:4015, 60 bytes: 4d "
                        "57 33 32)"),
              std::string::npos)
        << text;
    EXPECT_NE(to_json(line).find(
                  "\"rejected\":{\"too_short\":{\"packets\":2000,\"sender\":\"10.1.2.3:4015\","
                  "\"bytes\":60,\"header\":\"4d 57 33 32\"}}"),
              std::string::npos)
        << to_json(line);
  }
  EXPECT_NE(to_json(summary).find("\"last_rejected\":{\"too_short\":{\"sender\":\"10.1.2.3:4015\","
                                  "\"bytes\":60,\"header\":\"4d 57 33 32\"}}"),
            std::string::npos)
      << to_json(summary);
}

// "no data arrived" beside "2000 rejected" is a contradiction.
TEST(LiveLoop, NothingCameSaysWhetherAnythingArrived) {
  ScriptedRun silent(0);
  silent.source.now = "NO_DATA";
  silent.run();
  EXPECT_EQ(silent.loop->nothing_came(),
            "no data arrived on udp://10.0.0.9:4015, udp://10.0.0.9:4016 (state NO_DATA)");
  ScriptedRun rejected(0);
  rejected.source.now = "PRELOCK";
  rejected.source.counted.received = rejected.source.counted.rejected["magic"] = 2000;
  rejected.run();
  const std::string text = rejected.loop->nothing_came();
  EXPECT_EQ(text.find("no data arrived"), std::string::npos) << text;
  EXPECT_NE(text.find("2000 packets arrived on"), std::string::npos) << text;
  EXPECT_NE(text.find("2000 rejected: 2000 magic"), std::string::npos) << text;
}

// Samples that never came are no part of a level.
TEST(LiveLoop, LevelsAreThoseOfTheSamplesThatCame) {
  struct TwoInputs final : ChunkSource {
    SourceInfo info() const override {
      SourceInfo info;
      info.n_inputs = 2;
      info.layout.format = SampleFormat::ci8;
      info.layout.input_stride_bits = 16;
      info.layout.sample_stride_bits = 32;
      return info;
    }
    void start() override {}
    Chunk* next(std::chrono::milliseconds) override { return nullptr; }
    void release(Chunk*) override {}
    bool ended() const override { return true; }
    void stop() override {}
    IngestCounters counters() const override { return {}; }
    std::string state() const override { return "OK"; }
    std::int64_t memory_bytes() const override { return 0; }
  } source;
  Chunk chunk;
  chunk.payload = Buffer<std::byte>(4000);
  chunk.n_ticks = 1000;
  auto* samples = reinterpret_cast<ci8*>(chunk.payload.data());
  for (int t = 0; t < 1000; ++t) {
    samples[2 * t] = {3, 4};
    samples[2 * t + 1] = t < 500 ? ci8{6, -8} : ci8{0, 0};
  }
  chunk.absent.push_back({1, 500, 1000});
  const auto levels = LiveLevels().of(source, chunk);
  ASSERT_EQ(levels.size(), 2u);
  EXPECT_NEAR(levels[0], 5 / std::sqrt(2), 1e-9);
  EXPECT_NEAR(levels[1], 10 / std::sqrt(2), 1e-9);
}

TEST(LiveLoop, AWarningIsSaidOnce) {
  ScriptedRun run(4);
  run.path.warning = "cut";
  run.run();
  ASSERT_GE(run.lines.size(), 3u);
  EXPECT_EQ(run.lines[0].warning, "cut");
  for (std::size_t k = 1; k < run.lines.size(); ++k) EXPECT_EQ(run.lines[k].warning, "");
}

// A scraper must not see a run that has ended as one that is up.
TEST(LiveLoop, NothingIsUpAfterTheEnd) {
  const fs::path file = fs::temp_directory_path() / ("ryle-up-" + std::to_string(getpid()));
  const auto up = [&file] {
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    return text.substr(text.find("\nryle_up ") + 1, 9);
  };
  {
    ScriptedRun run(2);
    run.config.runtime.metrics_file = file.string();
    run.options.on_progress = [&](const Progress&) { EXPECT_EQ(up(), "ryle_up 1"); };
    run.run();
    EXPECT_EQ(up(), "ryle_up 0");
  }
  {
    LiveMetrics metrics(file.string(), {});  // a run that ends by an exception
    Progress progress;
    progress.state = "OK";
    metrics.update(progress, 0);
    EXPECT_EQ(up(), "ryle_up 1");
  }
  EXPECT_EQ(up(), "ryle_up 0");
  fs::remove(file);
}

TEST(LiveSetup, AnUnknownLiveFormatNamesThoseThatAreKnown) {
  ObservationConfig config;
  config.source.kind = "network";
  config.source.format = "lofar";
  config.source.listen = {"udp://0.0.0.0:4015"};
  try {
    run_observation(config, {});
    ADD_FAILURE() << "accepted";
  } catch (const UnsupportedError& error) {
    for (const char* format :
         {"\"lofar\"", "mwa32t", "chips", "tbf", "tbx", "best2", "vdif", "spead"})
      EXPECT_NE(std::string(error.what()).find(format), std::string::npos) << error.what();
  }
}

/// What a live run of noise of an rms of 20 makes, input 1 with a spike in every 1000 samples after
/// the first feed.
RunSummary run_of_spikes(const fs::path& directory, bool spikes, int bits) {
  constexpr std::int64_t kInputs = 3, kTicks = 4096;
  fs::create_directories(directory);
  std::ofstream(directory / "layout.csv") << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n"
                                             "A,0,0,0,X,0\nB,30,0,0,X,0\nC,0,40,0,X,0\n";
  const auto config = parse_observation(
      "[telescope]\nlatitude_deg = -26.7\nlongitude_deg = 116.7\n[channelize]\nn_channels = 16\n"
      "bits = " +
          std::to_string(bits) +
          "\n[correlate]\nintegration_s = 0.004\n[runtime]\n"
          "threads = 1\n[output]\npictures = false\nms = false\nuvfits = false\ndirectory = \"" +
          directory.string() + "\"\n",
      (directory / "obs.toml").string(), {"telescope.layout=layout.csv"});
  SampleMetadata metadata;
  metadata.n_inputs = kInputs;
  metadata.layout.format = SampleFormat::ci8;
  metadata.layout.input_stride_bits = 16;
  metadata.layout.sample_stride_bits = 16 * kInputs;
  metadata.clock = {1'700'000'000'000'000'000, {1'000'000, 1}};
  metadata.reference_hz = 150e6;
  metadata.max_feed_ticks = kTicks;
  SamplePath path(config, metadata, load_array(config, kInputs), true, "test");
  std::vector<ci8> samples(kTicks * kInputs);
  for (std::int64_t feed = 0; feed < 8; ++feed) {
    for (std::size_t k = 0; k < samples.size(); ++k) {
      const std::uint64_t key = mix64(k + samples.size() * static_cast<std::uint64_t>(feed));
      samples[k] = {static_cast<std::int8_t>(static_cast<int>(key % 9) - 4),
                    static_cast<std::int8_t>(static_cast<int>(key / 16 % 9) - 4)};
      if (spikes && feed > 0 && k % kInputs == 1 && k / kInputs % 200 == 0)
        samples[k] = {127, -127};
    }
    path.feed(samples.data(), feed * kTicks, kTicks, {}, 0, metadata.clock);
  }
  RunSummary summary;
  path.finish(summary, {});
  fs::remove_all(directory);
  return summary;
}

// 1.7 of the issue, live: what the requantiser cuts is said once, and how much of each input.
TEST(LiveSaturation, IsWarnedOfOnceAndIsInTheSummary) {
  const fs::path directory =
      fs::temp_directory_path() / ("ryle-saturation-" + std::to_string(getpid()));
  const RunSummary cut = run_of_spikes(directory, true, 8);
  ASSERT_EQ(cut.saturated_fraction.size(), 3u);
  EXPECT_GT(cut.saturated_fraction[1], 1e-3);
  EXPECT_LT(cut.saturated_fraction[0], 1e-4);
  ASSERT_EQ(cut.warnings.size(), 1u);
  EXPECT_NE(cut.warnings[0].find("1 of 3 inputs are cut by the 8-bit requantiser, input 1"),
            std::string::npos)
      << cut.warnings[0];
  EXPECT_NE(to_json(cut).find("\"saturated_fraction\":["), std::string::npos);
  EXPECT_TRUE(run_of_spikes(directory, false, 8).warnings.empty());
  EXPECT_TRUE(run_of_spikes(directory, true, 32).warnings.empty());
}

}  // namespace
}  // namespace ryle::pipeline
