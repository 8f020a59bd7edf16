// SPDX-License-Identifier: BSD-3-Clause
// Live packets of an F-engine: what a run needs, and what it makes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/pipeline/run/plan.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

class LiveSpectra : public ::testing::Test {
 protected:
  LiveSpectra()
      : directory_(fs::temp_directory_path() / ("ryle-live-spectra-" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
    std::ofstream layout(directory_ / "layout.csv");
    layout << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";
    for (int a = 0; a < 16; ++a) {
      for (const char* pol : {"X", "Y"}) {
        layout << "A" << a << ',' << 7 * a % 31 << ',' << 11 * a % 29 << ",0," << pol << ",0\n";
      }
    }
  }
  ~LiveSpectra() override { fs::remove_all(directory_); }

  ObservationConfig config(std::vector<std::string> overrides = {}) const {
    overrides.insert(overrides.begin(), {"telescope.layout=layout.csv",
                                         "telescope.latitude_deg=34",
                                         "telescope.longitude_deg=-107",
                                         "source.kind=network",
                                         "source.format=chips",
                                         "source.listen=[\"udp://127.0.0.1:0\"]",
                                         "source.start_utc=\"2024-06-27T06:00:00\"",
                                         "source.first_channel=2400",
                                         "source.n_channels=16",
                                         "source.allow_small_rcvbuf=true",
                                         "image.n_pixels=32",
                                         "image.path=vis-grid",
                                         "image.cadence_s=0.01",
                                         "image.trigger_sigma=8",
                                         "image.fits=false",
                                         "image.latest=false",
                                         "output.ms=false",
                                         "output.uvfits=false",
                                         "output.uvh5=false",
                                         "runtime.device=cpu",
                                         "runtime.threads=1",
                                         "output.directory=" + directory_.string()});
    return parse_observation("schema = 1\n", (directory_ / "obs.toml").string(), overrides);
  }

  /// Opens everything, receives nothing.
  static RunSummary run_once(const ObservationConfig& config) {
    std::atomic<int> stop{1};
    RunOptions options;
    options.stop = &stop;
    return run_live(config, options);
  }

  fs::path directory_;
};

// One number: what `ryle plan` prints is what the run asks for, no byte more or less.
TEST_F(LiveSpectra, PlanAndRunAgreeOnTheMemory) {
  const Plan plan = make_plan(config());
  std::int64_t sum = 0;
  for (const auto& [what, bytes] : plan.memory_bytes) {
    EXPECT_GT(bytes, 0) << what;
    sum += bytes;
  }
  EXPECT_EQ(sum, plan.total_memory_bytes);
  // The ring, the blocks of a chunk and the imager with its trigger are in it.
  const ObservationConfig setup = config();
  const auto receiver = live_spectra_config(setup, load_array(setup, 0));
  const FengineLayout layout = fengine_layout(receiver);
  const SpectraBlocks blocks(layout.shape());
  const auto held = blocks.bytes.bytes() +
                    static_cast<std::int64_t>(blocks.mask.bits.size() * sizeof(std::uint64_t));
  EXPECT_EQ(spectra_blocks_bytes(layout.shape()), held);
  EXPECT_GE(plan.total_memory_bytes, fengine_source_chunk_bytes(receiver) + held + plan.sky->bytes);

  EXPECT_EQ(run_once(config()).planned_memory_bytes, plan.total_memory_bytes);
  const auto limit = [&](std::int64_t bytes) {
    return config({"runtime.max_memory_gib=" +
                   std::to_string(static_cast<double>(bytes) / (1 << 30)) + "e0"});
  };
  // to_string keeps 6 decimals: 1e-6 GiB = 1074 bytes.
  EXPECT_NO_THROW(run_once(limit(plan.total_memory_bytes + 2048)));
  EXPECT_THROW(run_once(limit(plan.total_memory_bytes - 2048)), OsLimitError);
  EXPECT_THROW(make_plan(limit(plan.total_memory_bytes - 2048)), OsLimitError);
}

}  // namespace
}  // namespace ryle::pipeline
