// SPDX-License-Identifier: BSD-3-Clause
// Live beams on devices: the power of the CPU, the same bits however the rows are split.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/beam/beam_chain.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "tests/cuda/cuda_test.hpp"
#include "tests/io/scratch.hpp"

namespace ryle::pipeline {
namespace {

class CudaBeams : public ryle::test::CudaTest {};

constexpr std::int64_t kBeams = 21, kChannels = 16, kSpectra = 1024, kChunks = 5;

ObservationConfig observation(const test::Scratch& scratch) {
  // The machine with the GPU may hold the checkout elsewhere (scripts/gpu_check.sh).
  const char* checkout = std::getenv("RYLE_CHECKOUT");
  std::ifstream layout(
      (checkout != nullptr ? std::string(checkout) : std::string(RYLE_SOURCE_DIR)) +
      "/examples/best2.csv");
  std::ofstream(scratch / "best2.csv") << layout.rdbuf();
  std::ofstream out(scratch / "beams.toml");
  out << "[telescope]\nlayout = \"best2.csv\"\nlatitude_deg = 44.52358\nlongitude_deg = "
         "11.64599\nheight_m = 28.0\n[band]\nfirst_center_mhz = 417.990234375\nchannel_step_khz = "
         "-19.53125\nn_channels = 1024\n";
  for (std::int64_t k = 0; k < kBeams; ++k)
    out << "[[beam]]\nname = \"b" << k << "\"\nframe = \"icrs\"\nra_deg = " << 40 + k
        << "\ndec_deg = 44\n";
  out.close();
  return parse_observation(
      "schema = 1\n", scratch / "obs.toml",
      {"source.kind=network", "source.format=best2", "source.listen=[\"udp://127.0.0.1:0\"]",
       "source.start_utc=\"2025-03-01T16:10:00\"", "source.first_channel=505",
       "source.n_channels=16", "source.allow_small_rcvbuf=true", "beams.file=beams.toml",
       "beams.integration_spectra=4", "beams.incoherent=[\"all\"]", "beams.update_s=0.1",
       "runtime.device=cpu", "runtime.threads=1", "output.directory=" + scratch.path()});
}

/// [sample][beam][channel] of all chunks, by way of the host or of the devices' memory.
struct Power {
  std::vector<float> values;
  std::int64_t n_samples = 0;
  bool from_parts = false;
  int n_chunks_with_host_values = 0;
  std::vector<Queue> places;  // of the shares: their rows are wanted in memory of the consumer
  bool as_parts = true;       // offered as such, else all as values on the host
  int n_chunks = 0, n_chunks_made_there = 0;
};

/// Room for less than a chunk of each share, where no row begins at a multiple of 16 bytes.
constexpr std::int64_t kRoom = 96, kRoomStride = kRoom + 5, kRoomBegin = 3;

class PowerKeeper final : public BeamConsumer {
 public:
  PowerKeeper(const BeamStream& stream, Power& power)
      : n_beams_(stream.n_beams()), n_channels_(stream.frequency.n_channels), power_(power) {
    const auto n_shares = std::ssize(power.places);
    for (std::int64_t k = 0; k < n_shares; ++k) {
      const OnDevice scope(power.places[static_cast<std::size_t>(k)]);
      rooms_.emplace_back(
          beam_range(n_beams_, n_shares, k).size() * n_channels_ * kRoomStride + kRoomBegin,
          power.places[0].back_end() == BackEnd::cpu ? MemorySpace::host : MemorySpace::device);
    }
  }
  BeamDestination place(const BeamChunk& next) override {
    BeamDestination place;
    if (rooms_.empty()) return place;
    place.n_samples = std::min(next.n_samples, kRoom);
    place.beam_stride = n_channels_ * kRoomStride;
    place.channel_stride = kRoomStride;
    if (!power_.as_parts) place.values = rooms_[0].data() + kRoomBegin;
    for (const auto& room : rooms_)
      if (power_.as_parts) place.parts.push_back(room.data() + kRoomBegin);
    return place;
  }
  void take(const BeamChunk& chunk) override {
    ++power_.n_chunks;
    const float* made = chunk.parts.empty() ? chunk.values : chunk.parts.back().values;
    if (!rooms_.empty() && made == rooms_.back().data() + kRoomBegin) ++power_.n_chunks_made_there;
    if (chunk.values != nullptr) ++power_.n_chunks_with_host_values;
    std::vector<float> rows(static_cast<std::size_t>(n_beams_ * chunk.beam_stride));
    if (power_.from_parts) {
      for (const BeamPart& part : chunk.parts) {
        Queue queue = part.queue;
        copy_bytes(queue, rows.data() + part.first_beam * chunk.beam_stride, part.values,
                   part.n_beams * chunk.beam_stride * 4);
        queue.synchronize();
      }
    } else {
      std::copy_n(chunk.values, rows.size(), rows.begin());
    }
    for (std::int64_t t = 0; t < chunk.n_samples; ++t)
      for (std::int64_t b = 0; b < n_beams_; ++b)
        for (std::int64_t c = 0; c < n_channels_; ++c)
          power_.values.push_back(
              rows[static_cast<std::size_t>(b * chunk.beam_stride + c * chunk.channel_stride + t)]);
    power_.n_samples += chunk.n_samples;
  }
  bool wants_host_values() const override { return !power_.from_parts; }
  void finish(RunSummary&) override {}

 private:
  std::int64_t n_beams_, n_channels_;
  Power& power_;
  std::vector<Buffer<float>> rooms_;
};

/// The packets of a chunk as planar blocks, which other nodes of a run read, too.
struct PacketBlocks {
  Buffer<std::byte> memory{dense_blocks_bytes(SampleFormat::ci4, kChannels, kSpectra, 32)};
  BlockView view = dense_blocks(memory.data(), SampleFormat::ci4, kChannels, kSpectra, 32);
  DeviceBlocks devices;

  void take(const std::vector<std::uint8_t>& packets) {
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t t = 0; t < kSpectra; ++t)
        for (std::int64_t k = 0; k < 32; ++k)
          view.cell(c, t / 128, k)[t % 128] =
              static_cast<std::byte>(packets[static_cast<std::size_t>(
                  c * kSpectra * 32 + t / 128 * 4096 + k / 2 * 256 + t % 128 * 2 + k % 2)]);
    devices.renew(view);
  }
};

Power beams_of(const ObservationConfig& config, std::vector<Queue> queues, bool from_parts,
               std::string* implementation = nullptr, const std::vector<Queue>& places = {},
               bool as_parts = true, PacketBlocks* blocks = nullptr) {
  const LiveBeams live = live_beams(config);
  BeamSetup setup = beam_setup(config, live);
  setup.max_spectra = kSpectra;
  Power power;
  power.from_parts = from_parts;
  power.places = places;
  power.as_parts = as_parts;
  BeamChain chain(std::move(queues), setup, [&](const BeamStream& stream) {
    std::vector<std::unique_ptr<BeamConsumer>> consumers;
    consumers.push_back(std::make_unique<PowerKeeper>(stream, power));
    return consumers;
  });
  std::vector<std::uint8_t> samples(kChannels * kSpectra * 32);
  std::vector<std::uint64_t> present(kChannels * kSpectra / 128, 0xffffffffu);
  for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
    for (std::size_t k = 0; k < samples.size(); ++k)
      samples[k] = static_cast<std::uint8_t>(combine(static_cast<std::uint64_t>(chunk), k));
    for (std::size_t k = 0; k < present.size(); ++k)
      present[k] = chunk == 2 && k % 5 == 1 ? 0xff00ffffu : 0xffffffffu;
    BeamInput input;
    input.samples = samples.data();
    input.channel_stride_bytes = kSpectra * 32;
    input.n_spectra = kSpectra;
    input.first_tick = chunk * kSpectra;
    input.clock = setup.clock;
    input.present = present.data();
    if (blocks != nullptr) {
      blocks->take(samples);
      Queue other = Queue::cuda(0);  // of a node that came before
      blocks->devices.on(other);
      input.blocks = &blocks->devices;
      input.samples = nullptr;
    }
    chain.feed(input);
  }
  if (implementation != nullptr) *implementation = chain.implementation();
  RunSummary summary;
  chain.finish(summary);
  return power;
}

TEST(BeamDevices, AreThoseOfTheRun) {
  RuntimeConfig config;
  config.devices = {2, 0};
  EXPECT_EQ(beam_devices(config), (std::vector<int>{2, 0}));
  config.device = "cuda:0";
  EXPECT_THROW(beam_devices(config), ConfigError);
  config.devices.clear();
  config.device = "cuda:3";
  EXPECT_EQ(beam_devices(config), std::vector<int>{3});
  config.device = "cpu";
  EXPECT_TRUE(beam_devices(config).empty());
  config.device = "gpu";
  EXPECT_THROW(beam_devices(config), ConfigError);
  config.device = "auto";
  EXPECT_EQ(beam_devices(config).empty(), !cuda_unavailable_reason().empty());
}

TEST_F(CudaBeams, ThePowerIsThatOfTheCpuAndOfAnySplit) {
  test::Scratch scratch;
  const ObservationConfig config = observation(scratch);
  const Power host = beams_of(config, {Queue::cpu(1)}, false);
  ASSERT_EQ(host.n_samples, kChunks * kSpectra / 4);
  std::string implementation;
  const Power one = beams_of(config, {Queue::cuda(0)}, false, &implementation);
  EXPECT_EQ(implementation.rfind("beamform/cuda/", 0), 0U) << implementation;
  ASSERT_EQ(one.values.size(), host.values.size());
  double worst = 0;
  for (std::size_t k = 0; k < one.values.size(); ++k)
    worst = std::max(worst, std::abs(static_cast<double>(one.values[k] - host.values[k])) /
                                (std::abs(static_cast<double>(host.values[k])) + 1e-3));
  EXPECT_LT(worst, 1e-5);  // roundings of float
  // Memory of the device, and nothing sent to the host.
  const Power device = beams_of(config, {Queue::cuda(0)}, true);
  EXPECT_EQ(device.n_chunks_with_host_values, 0);
  EXPECT_TRUE(device.values == one.values);
  const Power two = beams_of(config, {Queue::cuda(0), Queue::cuda(0)}, true);
  EXPECT_TRUE(two.values == one.values);
  const Power three = beams_of(config, {Queue::cuda(0), Queue::cuda(0), Queue::cuda(0)}, false);
  EXPECT_TRUE(three.values == one.values);
}

// Blocks that another node brought to the device are not brought again, and become the packets that
// they came from: the same bits.
TEST_F(CudaBeams, BlocksThatAreThereGiveThePowerOfThePackets) {
  test::Scratch scratch;
  const ObservationConfig config = observation(scratch);
  const Power wanted = beams_of(config, {Queue::cuda(0)}, true);
  PacketBlocks blocks;
  const Power found =
      beams_of(config, {Queue::cuda(0), Queue::cuda(0)}, true, nullptr, {}, true, &blocks);
  EXPECT_TRUE(found.values == wanted.values);
  EXPECT_EQ(blocks.devices.copied_bytes(), kChunks * blocks.memory.size());
}

// The consumer's own memory, a part of a chunk at a time: 96, 96 and 64 samples.
TEST(BeamPlaces, PowerIsMadeOnTheHostWhereItIsWanted) {
  test::Scratch scratch;
  const ObservationConfig config = observation(scratch);
  const Queue host = Queue::cpu(1);
  const Power wanted = beams_of(config, {host}, false);
  const Power found = beams_of(config, {host}, false, nullptr, {host}, false);
  EXPECT_GE(found.n_chunks, kChunks * 3);
  EXPECT_EQ(found.n_chunks_made_there, found.n_chunks);
  EXPECT_TRUE(found.values == wanted.values);
  // Parts lie where other devices have them: no place for what is made on the host.
  const Power elsewhere = beams_of(config, {host}, false, nullptr, {host}, true);
  EXPECT_EQ(elsewhere.n_chunks_made_there, 0);
  EXPECT_TRUE(elsewhere.values == wanted.values);
}

TEST_F(CudaBeams, PowerIsMadeWhereItIsWanted) {
  test::Scratch scratch;
  const ObservationConfig config = observation(scratch);
  for (const std::size_t n_shares : {1U, 2U}) {
    const std::vector<Queue> queues(n_shares, Queue::cuda(0));
    const Power wanted = beams_of(config, queues, true);
    const Power found = beams_of(config, queues, true, nullptr, queues);
    EXPECT_GE(found.n_chunks, kChunks * 3) << n_shares;
    EXPECT_EQ(found.n_chunks_made_there, found.n_chunks) << n_shares;
    EXPECT_TRUE(found.values == wanted.values) << n_shares;
  }
}

}  // namespace
}  // namespace ryle::pipeline
