// SPDX-License-Identifier: BSD-3-Clause
// From the simulated sky through packets, ingest and beams to power and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/pattern.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/beam_files.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/run/beam_node.hpp"
#include "ryle/simulate/described_sender.hpp"
#include "tests/io/scratch.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kSources = 20, kSpectra = 256;  // of each
constexpr const char* kStart = "2025-03-01T16:10:00";

// Where the sources are: a spiral about the zenith, at most 6 degrees from it.
SkyDirection source_direction(const ArrayLayout& array, std::int64_t k) {
  const double angle = 2.4 * static_cast<double>(k);
  const double radius = 0.10 * std::sqrt((static_cast<double>(k) + 0.5) / kSources);
  const double l = radius * std::sin(angle), m = radius * std::cos(angle);
  return direction_of_enu(array, {l, m, std::sqrt(1 - l * l - m * m)}, tai_ns_from_utc_iso(kStart));
}

// The array of the example with a beam on every source.
std::string write_beams(const test::Scratch& scratch) {
  std::ifstream layout(RYLE_SOURCE_DIR "/examples/best2.csv");
  std::ofstream(scratch / "best2.csv") << layout.rdbuf();
  const ArrayLayout array = read_layout_csv(scratch / "best2.csv", 44.52358, 11.64599, 28);
  std::ofstream out(scratch / "beams.toml");
  out << "[telescope]\nlayout = \"best2.csv\"\nlatitude_deg = 44.52358\nlongitude_deg = "
         "11.64599\nheight_m = 28.0\n[band]\nfirst_center_mhz = 417.990234375\nchannel_step_khz = "
         "-19.53125\nn_channels = 1024\n";
  out.precision(15);
  for (std::int64_t k = 0; k < kSources; ++k) {
    const auto d = source_direction(array, k);
    out << "[[beam]]\nname = \"b" << k
        << "\"\nframe = \"icrs\"\nra_deg = " << d.ra_rad / kDegree_rad
        << "\ndec_deg = " << d.dec_rad / kDegree_rad << "\n";
  }
  return scratch / "beams.toml";
}

ObservationConfig observation(const test::Scratch& scratch,
                              std::vector<std::string> overrides = {}) {
  overrides.insert(
      overrides.begin(),
      {"source.kind=network", "source.format=best2", "source.listen=[\"udp://127.0.0.1:0\"]",
       "source.start_utc=\"" + std::string(kStart) + "\"", "source.max_clock_error_s=0",
       "source.first_channel=505", "source.n_channels=16", "source.chunk_ms=52.4288",
       "source.allow_small_rcvbuf=true", "beams.file=beams.toml", "beams.integration_spectra=128",
       "runtime.device=cpu", "runtime.threads=1", "output.directory=" + scratch.path(),
       "output.name=t"});
  return parse_observation("schema = 1\n", scratch / "obs.toml", overrides);
}

/// Keeps the power of every beam, channels averaged.
class Keeper final : public BeamConsumer {
 public:
  Keeper(const BeamStream& stream, std::vector<std::vector<double>>& power)
      : n_channels_(stream.frequency.n_channels), power_(power) {
    power_.resize(static_cast<std::size_t>(stream.n_beams()));
  }
  void take(const BeamChunk& chunk) override {
    for (std::size_t beam = 0; beam < power_.size(); ++beam) {
      for (std::int64_t t = 0; t < chunk.n_samples; ++t) {
        double sum = 0;
        for (std::int64_t c = 0; c < n_channels_; ++c)
          sum += static_cast<double>(chunk.row(static_cast<std::int64_t>(beam), c)[t]);
        power_[beam].push_back(sum / static_cast<double>(n_channels_));
      }
    }
  }
  void finish(RunSummary&) override {}

 private:
  std::int64_t n_channels_;
  std::vector<std::vector<double>>& power_;
};

// One source after the other, each alone in almost no noise.
class SkyOfSources {
 public:
  explicit SkyOfSources(const LiveBeams& truth) {
    simulate::SpectraConfig config;
    config.n_spectra = kSpectra;
    config.spectrum_rate_hz = truth.receiver.clock.rate_hz;
    config.channels = truth.frequency;
    config.start_tai_ns = truth.receiver.clock.epoch_tai_ns;
    config.level_lsb = 2.5;
    config.n_workers = 1;
    for (std::int64_t k = 0; k < kSources; ++k) {
      simulate::Scene scene;
      scene.sefd_jy = 1e-6;
      auto& source = scene.sources.emplace_back();
      source.icrs = source_direction(truth.file.array, k);
      records_.push_back(simulate_spectra(truth.file.array, scene, config));
    }
    for (std::int64_t k = 0; k < kSources; ++k)
      pulses_.push_back({static_cast<double>(k * kSpectra), static_cast<double>(kSpectra), 0, 0,
                         &records_[static_cast<std::size_t>(k)]});
  }
  const simulate::SpectraRecord& quiet() const { return records_.front(); }
  const std::vector<simulate::DispersedPulse>& pulses() const { return pulses_; }

 private:
  std::vector<simulate::SpectraRecord> records_;
  std::vector<simulate::DispersedPulse> pulses_;
};

// power[beam][source] of what was sent by `sky`, received as `config` has it.
std::vector<std::vector<double>> received_power(const ObservationConfig& config,
                                                const SkyOfSources& sky) {
  LiveBeams live = live_beams(config);
  live.receiver.close_after_ns = live.receiver.idle_close_ns = std::int64_t{1} << 60;
  live.receiver.stall_budget_s = 1;  // all that is sent
  DescribedSpectraSource source(live.receiver);
  source.start();
  simulate::DescribedSenderConfig to;
  to.packet = live.receiver.packet;
  to.streams = described_geometry(to.packet, live.receiver.n_inputs, live.receiver.first_channel,
                                  live.receiver.n_channels);
  to.descending = live.receiver.descending;
  to.endpoints = source.endpoints();
  to.speed = 1;
  to.duration_s = kSources * kSpectra / 19531.25;
  simulate::DescribedSender sender(sky.quiet(), sky.pulses(), to);
  sender.start();
  const auto sent = static_cast<std::uint64_t>(sender.join().receivers[0].packets_sent);
  EXPECT_EQ(sent, static_cast<std::uint64_t>(kSources * kSpectra / 128 * 16));
  for (int i = 0; i < 60'000 && source.counters().received < sent; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  source.stop();
  std::vector<std::vector<double>> samples;
  BeamChain chain(Queue::cpu(1), beam_setup(config, live), [&](const BeamStream& stream) {
    std::vector<std::unique_ptr<BeamConsumer>> consumers;
    consumers.push_back(std::make_unique<Keeper>(stream, samples));
    return consumers;
  });
  while (!source.ended()) {
    Chunk* chunk = source.next(std::chrono::milliseconds(50));
    if (chunk == nullptr) continue;
    EXPECT_TRUE(chunk->absent.empty());
    BeamInput input;
    input.samples = chunk->payload.data();
    input.channel_stride_bytes = described_stream_bytes(live.receiver);
    input.n_spectra = chunk->n_ticks;
    input.first_tick = chunk->first_tick;
    input.clock = live.receiver.clock;
    chain.feed(input);
    source.release(chunk);
  }
  std::vector<std::vector<double>> power;
  constexpr std::size_t kEach = kSpectra / 128;
  for (const auto& row : samples) {
    EXPECT_EQ(row.size(), kSources * kEach);
    power.emplace_back();
    for (std::size_t k = 0; k + kEach <= row.size(); k += kEach)
      power.back().push_back((row[k] + row[k + 1]) / kEach);
  }
  return power;
}

std::int64_t peaks_found(const std::vector<std::vector<double>>& power) {
  std::int64_t found = 0;
  for (std::size_t k = 0; k < power.size(); ++k) {
    std::size_t best = 0;
    for (std::size_t beam = 1; beam < power.size(); ++beam)
      if (power[beam][k] > power[best][k]) best = beam;
    found += best == k;
  }
  return found;
}

// T-BF-18. The beam on a source has the most power, in the others it is what the pattern says.
// Rounding to 4 bits at 2.5 LSB makes errors of (1/12) / 6.25 = -18.8 dB an antenna: -33.8 dB of a
// beam's peak when those of antennas are independent. Antennas that see the source in nearly the
// same phase err alike, four at most here: -28 dB, as amplitude 0.1 dB at -10 dB when it adds in
// quadrature and 0.5 dB at -20 dB.
TEST(BeamsLive, SourcesAreInTheBeamsThatPointAtThem) {
  const test::Scratch scratch;
  write_beams(scratch);
  const ObservationConfig config = observation(scratch);
  const LiveBeams truth = live_beams(config);
  const SkyOfSources sky(truth);
  const auto power = received_power(config, sky);
  ASSERT_EQ(power.size(), static_cast<std::size_t>(kSources));
  EXPECT_EQ(peaks_found(power), kSources);

  beamform::WeightConfig wc;
  wc.n_antennas = 32;
  wc.channels = {truth.frequency.band_center_hz(), 0, 1};
  const beamform::WeightMaker maker(wc, {}, {});
  std::vector<std::int64_t> inputs(32);
  for (std::size_t i = 0; i < 32; ++i) inputs[i] = static_cast<std::int64_t>(i);
  const std::int64_t tai_ns = truth.receiver.clock.epoch_tai_ns;
  int compared = 0;
  for (std::size_t beam = 0; beam < kSources; ++beam) {
    std::vector<cf32> weights(32);
    const auto enu = enu_of_direction(
        truth.file.array, source_direction(truth.file.array, static_cast<std::int64_t>(beam)),
        tai_ns);
    maker.make(beamform::steer(truth.file.array, {{enu}}, wc.channels.first_center_hz), 0, {},
               {weights.data(), {1, 1, 32}});
    const beamform::BeamPattern pattern(truth.file.array, inputs, weights,
                                        wc.channels.first_center_hz);
    for (std::size_t k = 0; k < kSources; ++k) {
      const auto toward = enu_of_direction(
          truth.file.array, source_direction(truth.file.array, static_cast<std::int64_t>(k)),
          tai_ns);
      const double expected_db = 10 * std::log10(pattern.power(toward) / pattern.power(enu));
      const double measured_db = 10 * std::log10(power[beam][k] / power[k][k]);
      if (expected_db > -20) {
        EXPECT_NEAR(measured_db, expected_db, expected_db > -10 ? 0.1 : 0.5) << beam << " " << k;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 60);
  EXPECT_LE(peaks_found(received_power(observation(scratch, {"source.pair_swap=true"}), sky)), 10);
  // As if packets had the antennas element by element, row by row.
  std::string map;
  for (int element = 0; element < 32; ++element) {
    const int row = element / 4, column = element % 4;
    const int adc = 8 * column + (row % 2 == 0 ? row / 2 : 4 + (row - 1) / 2);
    map += (map.empty() ? "[" : ",") + std::to_string(adc);
  }
  const auto mapped =
      received_power(observation(scratch, {"source.antenna_map=" + map + "]"}), sky);
  EXPECT_LE(peaks_found(mapped), 10);
}

// Blocks of packets in memory, as the source leaves them: [channel][block][pair][128][2].
std::vector<std::uint8_t> drawn_blocks(std::int64_t n_channels, std::int64_t n_spectra) {
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n_channels * n_spectra * 32));
  std::uint64_t state = 7;
  for (auto& b : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    b = static_cast<std::uint8_t>(state >> 56);
  }
  return bytes;
}

struct Lost {
  std::int64_t channel, packet;
};

// Feeds spectra [first, last) in gulps, packets of `lost` absent, and publishes the files.
RunSummary make_files(const ObservationConfig& config, const LiveBeams& live,
                      const std::vector<std::uint8_t>& bytes, std::int64_t n_spectra,
                      std::int64_t first, std::int64_t gulp, const std::vector<Lost>& lost = {},
                      bool may_fail = false) {
  BeamSetup setup = beam_setup(config, live);
  setup.max_spectra = gulp;
  BeamChain chain(Queue::cpu(1), setup, [&](const BeamStream& stream) {
    std::vector<std::unique_ptr<BeamConsumer>> consumers;
    consumers.push_back(std::make_unique<BeamFiles>(config, stream));
    return consumers;
  });
  auto samples = bytes;
  for (const auto& l : lost)
    std::fill_n(samples.begin() + (l.channel * n_spectra + 128 * l.packet) * 32, 4096, 0);
  for (std::int64_t at = first; at < n_spectra; at += gulp) {
    Chunk chunk;
    chunk.first_tick = at;
    chunk.n_ticks = std::min(gulp, n_spectra - at);
    for (const auto& l : lost) {
      if (128 * l.packet >= at && 128 * l.packet < at + chunk.n_ticks)
        chunk.absent.push_back({l.channel, 128 * l.packet, 128 * l.packet + 128});
    }
    BeamInput input;
    input.samples = samples.data() + at * 32;
    input.channel_stride_bytes = n_spectra * 32;
    input.n_spectra = chunk.n_ticks;
    input.first_tick = at;
    input.clock = live.receiver.clock;
    std::vector<std::uint64_t> present;
    if (packet_presence(live.receiver, chunk, present)) input.present = present.data();
    input.absent = chunk.absent;
    chain.feed(input);
  }
  RunSummary summary;
  chain.finish(summary);
  EXPECT_TRUE(may_fail || summary.errors.empty()) << summary.errors.front();
  return summary;
}

// One file that fails does not cost the others: all end with the last sample that all have.
TEST(BeamsLive, AFullDiskLeavesWhatAllBeamsHave) {
  const test::Scratch scratch;
  write_beams(scratch);
  const auto bytes = drawn_blocks(16, 8192);
  const auto config = [&](const std::string& name) {
    return observation(scratch, {"output.name=" + name, "beams.integration_spectra=4",
                                 "beams.update_s=0.05", "beams.scale_s=0.05", "beams.queue=64"});
  };
  const auto good = config("good");
  const auto all = make_files(good, live_beams(good), bytes, 8192, 0, 512);
  const auto bad = config("bad");
  const std::string failing = beam_file(bad, "b7");
  int n_writes = 0;
  set_publish_fault_hook([&](std::string_view operation, const std::string& path) {
    return operation == "write" && path == failing && ++n_writes == 30 ? ENOSPC : 0;
  });
  const auto summary = make_files(bad, live_beams(bad), bytes, 8192, 0, 512, {}, true);
  set_publish_fault_hook({});
  ASSERT_EQ(summary.errors.size(), 1u);
  EXPECT_THAT(summary.errors[0], testing::HasSubstr("are published"));
  EXPECT_GT(summary.beams->dropped_samples, 0);
  std::size_t missing = 0;  // the same of all: headers differ, by the lengths of names
  for (std::size_t k = 0; k + 1 < summary.products.size(); ++k) {
    const std::string whole = test::contents(summary.products[k]);
    std::string name = summary.products[k];
    name.replace(name.rfind("bad_"), 4, "good_");
    const std::string wanted = test::contents(name);
    ASSERT_LT(whole.size(), wanted.size());
    EXPECT_GT(whole.size(), 1000u);
    EXPECT_EQ(whole, wanted.substr(0, whole.size())) << name;
    EXPECT_TRUE(missing == 0 || missing == wanted.size() - whole.size());
    missing = wanted.size() - whole.size();
  }
  EXPECT_EQ(summary.products.size(), all.products.size());
}

// T-BF-20: beams that move and get new weights on the way, whatever the gulps; a restart in the
// middle goes on with the same samples.
TEST(BeamsLive, FilesDoNotDependOnGulpsOrRestarts) {
  const test::Scratch scratch;
  write_beams(scratch);
  const auto bytes = drawn_blocks(16, 8192);
  const auto run = [&](const std::string& name, std::int64_t first, std::int64_t gulp,
                       std::int64_t bits) {
    const auto config = observation(
        scratch, {"output.name=" + name, "beams.integration_spectra=4", "beams.update_s=0.05",
                  "beams.scale_s=0.1", "beams.queue=64", "beams.bits=" + std::to_string(bits)});
    const auto summary = make_files(config, live_beams(config), bytes, 8192, first, gulp);
    EXPECT_EQ(summary.beams->weight_updates, (8192 + 1023) / 1024 - first / 1024);
    EXPECT_EQ(summary.beams->dropped_samples, 0);
    return test::contents(beam_file(config, "b7"));
  };
  const std::string whole = run("a", 0, 8192, 8);
  EXPECT_GT(whole.size(), 2048u * 16u);
  EXPECT_EQ(whole, run("b", 0, 128, 8));
  EXPECT_EQ(whole, run("c", 0, 1024 - 128, 8));
  const std::string floats = run("d", 0, 4096, 32), late = run("e", 3 * 128, 1024, 32);
  const std::size_t tail = (2048 - 3 * 32) * 16 * 4;
  ASSERT_GT(late.size(), tail);
  EXPECT_EQ(late.substr(late.size() - tail), floats.substr(floats.size() - tail));
}

// Beams that an operator points anew: as they were up to the next set of weights, from there on as
// if they had always pointed there.
TEST(BeamsLive, AreSteeredFromTheNextSetOfWeightsOn) {
  const test::Scratch scratch;
  write_beams(scratch);
  const auto config = observation(scratch, {"beams.update_s=0.05"});  // 1024 spectra
  const LiveBeams live = live_beams(config);
  BeamsFile turned = live.file;
  for (std::size_t k = 0; k < turned.beams.size(); ++k) {
    turned.beams[k] = live.file.beams[(k + 1) % turned.beams.size()];
    turned.beams[k].name = live.file.beams[k].name;
  }
  turned.gains.assign(32, cf64(0.5, 0.25));
  const auto bytes = drawn_blocks(16, 4096);
  CommandResult answer;
  const auto power = [&](bool begin_turned, std::int64_t steer_at) {
    BeamSetup setup = beam_setup(config, live);
    if (begin_turned) setup.file = turned;
    std::vector<std::vector<double>> rows;
    BeamChain chain(Queue::cpu(1), setup, [&](const BeamStream& stream) {
      std::vector<std::unique_ptr<BeamConsumer>> consumers;
      consumers.push_back(std::make_unique<Keeper>(stream, rows));
      return consumers;
    });
    EXPECT_FALSE(chain.steer(turned).done);  // no data yet
    for (std::int64_t at = 0; at < 4096; at += 512) {
      if (at == steer_at) answer = chain.steer(turned);
      BeamInput input;
      input.samples = bytes.data() + at * 32;
      input.channel_stride_bytes = 4096 * 32;
      input.n_spectra = 512;
      input.first_tick = at;
      input.clock = live.receiver.clock;
      chain.feed(input);
    }
    return rows;
  };
  const auto before = power(false, -1), after = power(true, -1), steered = power(false, 1536);
  ASSERT_TRUE(answer.done) << answer.message;
  EXPECT_EQ(answer.from_tai_ns, live.receiver.clock.tai_ns(2048));
  for (std::size_t beam = 0; beam < steered.size(); ++beam) {
    for (std::size_t t = 0; t < steered[beam].size(); ++t)
      ASSERT_EQ(steered[beam][t], (t < 16 ? before : after)[beam][t]) << beam << " " << t;
  }
  EXPECT_NE(before, after);
  BeamSetup setup = beam_setup(config, live);
  BeamChain chain(Queue::cpu(1), setup,
                  [](const BeamStream&) { return std::vector<std::unique_ptr<BeamConsumer>>(); });
  BeamInput input;
  input.samples = bytes.data();
  input.channel_stride_bytes = 4096 * 32;
  input.n_spectra = 512;
  input.clock = live.receiver.clock;
  chain.feed(input);
  BeamsFile fewer = turned;
  fewer.beams.pop_back();
  EXPECT_FALSE(chain.steer(fewer).done);
}

// Lost packets: the samples they would have made are the mean, all others are untouched.
TEST(BeamsLive, LossIsWrittenAsTheMeanAndListed) {
  const test::Scratch scratch;
  write_beams(scratch);
  const auto bytes = drawn_blocks(16, 4096);
  const auto run = [&](const std::string& name, const std::vector<Lost>& lost) {
    const auto config = observation(scratch, {"output.name=" + name, "beams.integration_spectra=32",
                                              "beams.scale_s=0.05", "beams.queue=64"});
    const auto summary = make_files(config, live_beams(config), bytes, 4096, 0, 1024, lost);
    EXPECT_NEAR(summary.beams->absent_fraction, static_cast<double>(lost.size()) / (16.0 * 32.0),
                1e-12);
    return test::contents(beam_file(config, "b3"));
  };
  // After the 976 spectra that set the scale.
  const std::string whole = run("whole", {}), holed = run("holed", {{2, 20}, {9, 31}});
  ASSERT_EQ(whole.size(), holed.size());
  const std::size_t header = whole.size() - 128u * 16u;
  std::int64_t means = 0;
  for (std::size_t t = 0; t < 128; ++t) {
    for (std::size_t c = 0; c < 16; ++c) {
      const std::size_t at = header + t * 16 + (15 - c);  // descending on disk
      const bool gone = (c == 2 && t / 4 == 20) || (c == 9 && t / 4 == 31);
      if (gone) means += static_cast<std::uint8_t>(holed[at]) == 64;
      if (!gone) {
        EXPECT_EQ(holed[at], whole[at]) << t << " " << c;
      }
    }
  }
  EXPECT_EQ(means, 8);
}

// Who reads beams as they are made does not keep the samples from the memory of the search.
TEST(BeamsLive, SamplesAreMadeInTheMemoryOfTheSearchBesideAHook) {
  const test::Scratch scratch;
  write_beams(scratch);
  const auto config = observation(
      scratch, {"beams.filterbank=false", "output.pictures=false", "beams.integration_spectra=4",
                "beams.update_s=0.05", "search.dm_max=10"});
  StreamBeams beams;
  beams.setup = beam_setup(config, live_beams(config));
  beams.setup.max_spectra = 512;
  RunOptions options;
  std::int64_t n_samples = 0, n_dense = 0;
  options.hooks.on_beams = [&](const BeamChunk& chunk, const BeamStream&) {
    n_samples += chunk.n_samples;
    if (chunk.channel_stride == chunk.n_samples) n_dense += chunk.n_samples;
  };
  BeamNode node(config, beams, nullptr, options);
  const auto bytes = drawn_blocks(16, 4096);
  for (std::int64_t at = 0; at < 4096; at += 512) {
    BeamInput input;
    input.samples = bytes.data() + at * 32;
    input.channel_stride_bytes = 4096 * 32;
    input.n_spectra = 512;
    input.first_tick = at;
    input.clock = beams.setup.clock;
    node.feed(input);
  }
  RunSummary summary;
  node.finish({}, summary);
  EXPECT_EQ(n_samples, 1024);
  EXPECT_EQ(n_dense, 0);
}

TEST(BeamsLive, RejectsWhatDoesNotFit) {
  const test::Scratch scratch;
  write_beams(scratch);
  const auto config_rejected = [&](const ObservationConfig& config, const std::string& word) {
    try {
      simulate_live_beams(config, live_beams(config));
      ADD_FAILURE() << word;
    } catch (const ConfigError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  const auto rejected = [&](const std::vector<std::string>& overrides, const std::string& word) {
    config_rejected(observation(scratch, overrides), word);
  };
  rejected({"beams.file="}, "beams.file");
  rejected({"beams.integration_spectra=3"}, "power of two");
  rejected({"beams.bits=16"}, "bits");
  rejected({"source.start_utc=now"}, "start_utc");
  rejected({"source.antenna_map=[1,2]"}, "antenna_map");
  rejected({"source.n_channels=600"}, "1024");
  rejected({"telescope.layout=best2.csv"}, "twice");
  const std::vector<std::string> no_beams{"beams.file=", "telescope.layout=best2.csv"};
  auto beyond = observation(scratch, no_beams);
  beyond.source.first_channel = 1000;
  beyond.source.n_channels = 64;
  config_rejected(beyond, "has 1024 channels, source takes 1000 to 1063; the packets count 1024");
  auto untold = observation(scratch, no_beams);
  untold.source.n_channels = 0;
  std::ranges::find(untold.source.packet->header, wire::FieldMeaning::first_channel,
                    &wire::HeaderField::meaning)
      ->count = 0;
  config_rejected(untold, "set source.n_channels");
  auto samples = observation(scratch);
  std::erase_if(samples.source.packet->header, [](const wire::HeaderField& f) {
    return f.meaning == wire::FieldMeaning::first_channel;
  });
  config_rejected(samples, "add a header field \"first_channel\"");
  // Three records of 1.3 GiB: a quiet one, that of the pulses and its packets.
  auto flashes = observation(scratch);
  flashes.source.kind = "simulator";
  flashes.simulator.period_samples = 2'796'288;
  auto& pulsar = flashes.simulator.sources.emplace_back();
  pulsar.m = 0.1;
  pulsar.flux_jy = 1;
  pulsar.duration_s = 0.1;
  config_rejected(flashes, "have at most 2796202 spectra, 4 GiB in all");
  auto config = observation(scratch, {"beams.incoherent=[\"north\"]"});
  EXPECT_THROW(beamformer_config(beam_setup(config, live_beams(config))), ConfigError);
}

}  // namespace
}  // namespace ryle::pipeline
