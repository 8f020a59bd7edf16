// SPDX-License-Identifier: BSD-3-Clause
// A device that fails in flight: the integrations before are published, whole, and the run ends
// with the error.
#include "ryle/pipeline/base/device_loss.hpp"

#include <gtest/gtest.h>

#include "ryle/core/random.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/run/sample_path.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"
#include "tests/io/scratch.hpp"
#include "tests/io/simulated_sky.hpp"
#include "tests/support/faulty_queue.hpp"

namespace ryle::pipeline {
namespace {

using test::Scratch;

constexpr std::int64_t kLostInputs = 4, kLostChannels = 16;

ObservationConfig lost_observation(const Scratch& dir) {
  ObservationConfig config;
  config.channelize.n_channels = kLostChannels;
  config.channelize.taps = 4;
  config.correlate.integration_s = 0.01;  // 100 spectra of 16 ticks
  config.correlate.fringe_stopping = "none";
  config.output.directory = dir.path();
  config.output.name = "run";
  config.output.ms = config.output.uvfits = false;
  config.runtime.device = "cpu";
  config.runtime.threads = 1;
  return config;
}

SampleMetadata lost_samples() {
  SampleMetadata metadata;
  metadata.n_inputs = kLostInputs;
  metadata.layout.format = SampleFormat::ci8;
  metadata.layout.input_stride_bits = 16;
  metadata.layout.sample_stride_bits = 16 * kLostInputs;
  metadata.clock = {test::kStart_tai_ns, {160000, 1}};
  metadata.reference_hz = 150e6;
  metadata.max_feed_ticks = 1600;
  return metadata;
}

struct LostRun {
  RunSummary summary;
  std::string error;
  ExitCode code = ExitCode::ok;
  std::size_t dumps_in_file = 0;
  int feeds = 0;
};

/// Ten integrations, fed until the path has failed.
LostRun run_with(int n_good_looks) {
  const Scratch dir;
  const ArrayLayout array = test::make_observation({.n_antennas = kLostInputs / 2}).array;
  LostRun run;
  SamplePath path(lost_observation(dir), lost_samples(), array, false, "test",
                  {test::FaultyQueue::make(n_good_looks)});
  std::vector<std::int8_t> samples(1600 * 2 * kLostInputs);
  for (std::size_t k = 0; k < samples.size(); ++k)
    samples[k] = static_cast<std::int8_t>(20 * gaussian(k));
  for (; run.feeds < 10 && !path.failed(); ++run.feeds)
    path.feed(samples.data(), 1600 * run.feeds, 1600, {}, 0, lost_samples().clock);
  try {
    path.finish(run.summary, {});
  } catch (const Error& error) {
    run.error = error.what();
    run.code = error.exit_code();
  }
  const std::string file = dir / "run.uvh5";
  if (std::filesystem::exists(file)) run.dumps_in_file = read_visibility_file(file).dumps.size();
  return run;
}

TEST(DeviceLoss, WhatIsWholeIsPublished) {
  const LostRun whole = run_with(1000);
  EXPECT_EQ(whole.error, "");
  EXPECT_EQ(whole.dumps_in_file, 10u);
  EXPECT_EQ(whole.feeds, 10);

  const LostRun lost = run_with(4);  // a look a dump: the fifth is lost
  EXPECT_EQ(lost.dumps_in_file, 4u);
  EXPECT_EQ(lost.summary.integrations, 4);
  EXPECT_LT(lost.feeds, 10);
  EXPECT_EQ(lost.code, ExitCode::try_again);
  EXPECT_NE(lost.error.find("planted"), std::string::npos) << lost.error;
  EXPECT_NE(lost.error.find("4 integrations were whole"), std::string::npos) << lost.error;
  EXPECT_NE(lost.error.find("run.uvh5"), std::string::npos) << lost.error;
}

TEST(DeviceLoss, NothingWholeIsNothingPublished) {
  const LostRun lost = run_with(0);
  EXPECT_EQ(lost.dumps_in_file, 0u);
  EXPECT_EQ(lost.code, ExitCode::try_again);
  EXPECT_NE(lost.error.find("0 integrations were whole"), std::string::npos) << lost.error;
}

}  // namespace
}  // namespace ryle::pipeline
