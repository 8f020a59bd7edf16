// SPDX-License-Identifier: BSD-3-Clause
// A device that fails while beams are made: the power before is published, and the run ends with
// the error.
#include <gtest/gtest.h>

#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/beam_files.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/faulty_queue.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kLostGulp = 1024, kLostGulps = 5, kLostBandChannels = 4;

ObservationConfig observation_of_one_beam(const test::Scratch& scratch) {
  std::ifstream layout(RYLE_SOURCE_DIR "/examples/best2.csv");
  std::ofstream(scratch / "best2.csv") << layout.rdbuf();
  std::ofstream(scratch / "beams.toml")
      << "[telescope]\nlayout = \"best2.csv\"\nlatitude_deg = 44.52358\nlongitude_deg = "
         "11.64599\nheight_m = 28.0\n[band]\nfirst_center_mhz = 417.990234375\nchannel_step_khz = "
         "-19.53125\nn_channels = 1024\n[[beam]]\nname = \"b\"\nframe = \"azel\"\naz_deg = 0\n"
         "el_deg = 80\n";
  return parse_observation(
      "schema = 1\n", scratch / "obs.toml",
      {"source.kind=network", "source.format=best2", "source.listen=[\"udp://127.0.0.1:0\"]",
       "source.start_utc=\"2025-03-01T16:10:00\"", "source.first_channel=0",
       "source.n_channels=" + std::to_string(kLostBandChannels), "source.chunk_ms=52.4288",
       "source.allow_small_rcvbuf=true", "beams.file=beams.toml", "beams.integration_spectra=8",
       "beams.bits=32", "beams.scale_s=0.01", "beams.queue=64", "runtime.device=cpu",
       "runtime.threads=1", "output.directory=" + scratch.path(), "output.name=t"});
}

struct LostBeams {
  RunSummary summary;
  std::string error;
  ExitCode code = ExitCode::ok;
  bool lost = false;
  std::size_t values = 0;  // in the file
};

LostBeams beams_with(int n_good_looks) {
  const test::Scratch scratch;
  const ObservationConfig config = observation_of_one_beam(scratch);
  const LiveBeams live = live_beams(config);
  LostBeams run;
  {
    BeamSetup setup = beam_setup(config, live);
    setup.max_spectra = kLostGulp;
    BeamChain chain(test::FaultyQueue::make(n_good_looks), setup, [&](const BeamStream& stream) {
      std::vector<std::unique_ptr<BeamConsumer>> consumers;
      consumers.push_back(std::make_unique<BeamFiles>(config, stream));
      return consumers;
    });
    const std::vector<std::uint8_t> samples(
        static_cast<std::size_t>(kLostBandChannels * kLostGulp * 32), 0x21);
    for (std::int64_t k = 0; k < kLostGulps; ++k) {
      BeamInput input;
      input.samples = samples.data();
      input.channel_stride_bytes = kLostGulp * 32;
      input.n_spectra = kLostGulp;
      input.first_tick = k * kLostGulp;
      input.clock = live.receiver.clock;
      chain.feed(input);
    }
    run.lost = chain.lost();
    chain.finish(run.summary);
    try {
      chain.report_loss(run.summary);
    } catch (const DeviceError& error) {
      run.error = error.what();
      run.code = error.exit_code();
    }
  }
  for (const auto& product : run.summary.products)
    if (product.ends_with(".fil"))
      run.values = (test::contents(product).size()) / (4 * kLostBandChannels);
  return run;
}

TEST(BeamsLost, WhatIsWholeIsPublished) {
  const LostBeams whole = beams_with(1000);
  EXPECT_FALSE(whole.lost);
  EXPECT_EQ(whole.error, "");
  EXPECT_EQ(whole.summary.beams->samples, kLostGulps * kLostGulp / 8);
  EXPECT_GE(whole.values, static_cast<std::size_t>(kLostGulps * kLostGulp / 8));

  const LostBeams lost = beams_with(2);  // a look a gulp: the third is the last to be made
  EXPECT_TRUE(lost.lost);
  EXPECT_EQ(lost.summary.beams->samples, 3 * kLostGulp / 8);
  EXPECT_GE(lost.values, static_cast<std::size_t>(3 * kLostGulp / 8));
  EXPECT_LT(lost.values, static_cast<std::size_t>(4 * kLostGulp / 8));
  EXPECT_EQ(lost.code, ExitCode::try_again);
  EXPECT_NE(lost.error.find("planted"), std::string::npos) << lost.error;
  EXPECT_NE(lost.error.find("384 samples of beams were whole"), std::string::npos) << lost.error;
}

}  // namespace
}  // namespace ryle::pipeline
