// SPDX-License-Identifier: BSD-3-Clause
#include "tests/engine/beamform/harness.hpp"

namespace ryle::beamform::test {
namespace {

Config good() {
  Config c;
  c.n_antennas = 4;
  c.n_beams = 3;
  c.n_channels = 2;
  c.max_spectra = 64;
  return c;
}

TEST(Plan, UnknownNameListsWhatWorks) {
  Config c = good();
  c.implementation = "cpu:mmx";
  Queue queue = Queue::cpu(1);
  try {
    make_beamformer(queue, c);
    FAIL();
  } catch (const UnsupportedError& error) {
    const std::string message = error.what();
    for (const auto& name : cpu_names(good()))
      EXPECT_NE(message.find(name), std::string::npos) << message;
    EXPECT_NE(message.find("reference"), std::string::npos) << message;
  }
}

TEST(Plan, RejectsWhatMakesNoSense) {
  Queue queue = Queue::cpu(1);
  EXPECT_NO_THROW(make_beamformer(queue, good()));
  for (auto change : {
           +[](Config& c) { c.n_antennas = 0; },
           +[](Config& c) { c.n_beams = 0; },
           +[](Config& c) { c.n_channels = -1; },
           +[](Config& c) { c.max_spectra = 0; },
           +[](Config& c) { c.n_pols = 3; },
           +[](Config& c) { c.integration = 0; },
           +[](Config& c) { c.output = OutputKind::stokes_i; },  // one pol
           +[](Config& c) { c.output = OutputKind::voltage; },   // f32
           +[](Config& c) { c.output_format = OutputFormat::ci8; },
           +[](Config& c) { c.table.resize(16); },
           +[](Config& c) { c.dither = true; },
           +[](Config& c) {
             c.incoherent = {{1, 1}};
           },
           +[](Config& c) {
             c.incoherent = {{0, 0, 0, 0}};
           },  // an empty sub-array
           +[](Config& c) {
             c.order = InputOrder::pairs;
             c.n_antennas = 5;
           },
           +[](Config& c) {
             c.output = OutputKind::voltage;
             c.output_format = OutputFormat::cf32;
             c.integration = 2;
           },
       }) {
    Config bad = good();
    change(bad);
    EXPECT_THROW(make_beamformer(queue, bad), ConfigError);
  }
  Config bad = good();
  bad.format = SampleFormat::ci5;
  EXPECT_THROW(make_beamformer(queue, bad), UnsupportedError);
}

// vpmaddubsw saturates: it may serve 4-bit codes, never bytes of full range.
TEST(Plan, NamesTellWhatRuns) {
  Config c = good();
  Queue queue = Queue::cpu(1);
  c.implementation = "cpu:avx512_vnni";
  c.weights = WeightFormat::f32;
  EXPECT_THROW(make_beamformer(queue, c), UnsupportedError);
  const auto sets = cpu_instruction_sets();
  c = good();
  const std::string best = std::string(make_beamformer(queue, c)->implementation());
  if (std::find(sets.begin(), sets.end(), "avx512_vnni") != sets.end()) {
    EXPECT_EQ(best, "beamform/cpu/avx512_vnni");
  }
  c.format = SampleFormat::ci16;
  EXPECT_NE(make_beamformer(queue, c)->implementation(), "beamform/cpu/avx512_vnni");
}

TEST(Plan, RejectsWeightsAndScalesThatAreNotNumbers) {
  Queue queue = Queue::cpu(1);
  auto names = cpu_names(good());
  names.push_back("reference");
  for (const auto& name : names) {
    Config c = good();
    c.implementation = name;
    auto beamformer = make_beamformer(queue, c);
    std::vector<cf32> weights(24, cf32(1));
    EXPECT_NO_THROW(beamformer->set_weights(queue, view_of(c, weights)));
    weights[7] = cf32(NAN, 0);
    EXPECT_THROW(beamformer->set_weights(queue, view_of(c, weights)), ConfigError);
    Config other = c;
    other.n_beams = 2;
    EXPECT_THROW(beamformer->set_weights(queue, view_of(other, weights)), ConfigError);
    EXPECT_THROW(set_requantization(*beamformer, queue, {INFINITY, 0}), ConfigError);
  }
}

TEST(Plan, CostCountsEightOperations) {
  const Cost cost = beamform::cost(good());
  EXPECT_EQ(cost.useful_ops_per_spectrum, 8 * 4 * 3 * 2);
  EXPECT_EQ(cost.bytes_in_per_spectrum, 8);
  EXPECT_EQ(cost.bytes_out_per_spectrum, 3 * 2 * 4);
}

}  // namespace
}  // namespace ryle::beamform::test
