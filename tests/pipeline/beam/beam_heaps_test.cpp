// SPDX-License-Identifier: BSD-3-Clause
// Voltages of beams as heaps: where a value lies does not depend on how the data came, and what a
// slow network costs is counted exactly. tests/peers/test_spead.py reads them with another program.
#include "ryle/pipeline/beam/beam_heaps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/wire/spead.hpp"
#include "tests/support/own_host.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kHeapChannels = 4;

/// Byte of a part: part, spectrum, channel, stream.
std::byte heap_value(std::int64_t stream, std::int64_t channel, Tick tick, std::int64_t part) {
  return static_cast<std::byte>(
      1 + combine(static_cast<std::uint64_t>(100 * stream + 2 * channel + part),
                  static_cast<std::uint64_t>(tick)) %
              255);
}

/// What the beamformer hands on, [beam][channel][spectrum][polarization][re, im].
struct HeapPiece {
  std::vector<std::byte> bytes;
  BeamVoltages voltages;

  HeapPiece(std::int64_t n_beams, std::int64_t n_pols, Tick first, std::int64_t n) {
    for (std::int64_t beam = 0; beam < n_beams; ++beam)
      for (std::int64_t c = 0; c < kHeapChannels; ++c)
        for (std::int64_t t = 0; t < n; ++t)
          for (std::int64_t p = 0; p < n_pols; ++p)
            for (std::int64_t part = 0; part < 2; ++part)
              bytes.push_back(heap_value(beam * n_pols + p, c, first + t, part));
    voltages = {bytes.data(), kHeapChannels * n * n_pols * 2, n * n_pols * 2, first, n, nullptr};
  }
};

TEST(BeamHeaps, AreTheSameHoweverTheDataCame) {
  const std::int64_t n_pols = 2, n_beams = 3, n_streams = n_pols * n_beams;
  for (const std::int64_t piece : {64, 100, 700}) {
    BeamHeapCutter cutter(n_streams, n_pols, kHeapChannels);
    std::map<std::int64_t, std::vector<std::byte>> heaps;
    const auto keep = [&](const BeamHeap& heap) {
      EXPECT_TRUE(heaps.emplace(heap.number, heap.values).second);
    };
    const SampleClock clock{0, {1000, 1}};
    // Spectra 300 to 1000 of which 512 to 799 never came.
    for (Tick at = 300; at < 1000; at += piece) {
      const std::int64_t n = std::min<std::int64_t>(piece, 1000 - at);
      for (const auto& [begin, end] : {std::pair<Tick, Tick>{at, std::min<Tick>(at + n, 512)},
                                       {std::max<Tick>(at, 800), at + n}})
        if (begin < end)
          cutter.take(HeapPiece(n_beams, n_pols, begin, end - begin).voltages, clock, keep);
    }
    cutter.flush(keep);
    ASSERT_EQ(heaps.size(), 2u);  // 256 to 511 and 768 to 1023
    for (const auto& [number, values] : heaps) {
      ASSERT_EQ(values.size(), static_cast<std::size_t>(n_streams * kHeapChannels * 512));
      std::size_t at = 0;
      for (std::int64_t s = 0; s < n_streams; ++s)
        for (std::int64_t c = 0; c < kHeapChannels; ++c)
          for (Tick t = 256 * number; t < 256 * (number + 1); ++t)
            for (std::int64_t part = 0; part < 2; ++part) {
              const bool came = (t >= 300 && t < 512) || (t >= 800 && t < 1000);
              ASSERT_EQ(values[at++], came ? heap_value(s, c, t, part) : std::byte{0})
                  << piece << " " << s << " " << c << " " << t;
            }
    }
  }
}

ObservationConfig heaps_observation(const std::string& endpoint,
                                    std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(),
                   {"source.kind=network", "source.format=best2", "beams.file=beams.toml",
                    "beams.spead=" + endpoint, "beams.queue=2"});
  return parse_observation("schema = 1\n", "obs.toml", overrides);
}

BeamSetup heaps_setup(std::int64_t n_beams) {
  BeamSetup setup;
  setup.frequency = {100e6, 1e3, kHeapChannels};
  for (std::int64_t b = 0; b < n_beams; ++b)
    setup.file.beams.emplace_back().name = "b" + std::to_string(b);
  for (int a = 0; a < 5; ++a) {
    setup.file.array.antennas.push_back({"a" + std::to_string(a), {}});
    ArrayInput input;
    input.antenna = a;
    setup.file.array.inputs.push_back(input);
  }
  return setup;
}

// Counts the heaps of voltages that arrive at a port until the stop.
class HeapCounter {
 public:
  explicit HeapCounter(int port) {
    const int descriptor = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    inet_pton(AF_INET, test::own_host().c_str(), &address.sin_addr);
    const int room = 1 << 22;
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    bound_ = ::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    timeval limit{60, 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    thread_ = std::thread([this, descriptor] {
      std::vector<std::byte> bytes(65536);
      for (;;) {
        const ssize_t n = ::recv(descriptor, bytes.data(), bytes.size(), 0);
        wire::SpeadPacket packet;
        if (n <= 0) break;
        const auto datagram = std::span(bytes).first(static_cast<std::size_t>(n));
        if (wire::parse_spead(datagram, packet) != wire::Reject::none || packet.is_stop()) break;
        if (packet.find(wire::kSpeadBfRaw) == nullptr) continue;
        bytes_ += static_cast<std::int64_t>(packet.payload_bytes);
        timestamps_[packet.find(wire::kSpeadTimestamp)->value] += packet.payload_bytes;
      }
      ::close(descriptor);
    });
  }
  ~HeapCounter() {
    if (thread_.joinable()) thread_.join();
  }
  bool bound() const { return bound_; }
  /// Bytes of each heap by its timestamp, after the stop.
  std::map<std::uint64_t, std::uint64_t> wait() {
    thread_.join();
    return timestamps_;
  }

 private:
  bool bound_ = false;
  std::int64_t bytes_ = 0;
  std::map<std::uint64_t, std::uint64_t> timestamps_;
  std::thread thread_;
};

TEST(BeamHeaps, ASlowNetworkCostsWholeHeapsThatAreCounted) {
  const int port = test::own_port();
  HeapCounter first(port), second(port + 1);
  ASSERT_TRUE(first.bound() && second.bound());
  const std::string endpoint = "udp://" + test::own_host() + ":" + std::to_string(port);
  // Heaps of 2 kB of two streams: a fifth of a second each.
  const auto config = heaps_observation(endpoint, {"beams.spead_mb_per_s=0.02"});
  RunSummary summary;
  summary.beams.emplace();
  constexpr std::int64_t kMade = 30;
  {
    const BeamSetup setup = heaps_setup(2);
    BeamHeaps heaps(config, setup, open_live_beam_streams(config, setup));
    for (std::int64_t k = 0; k < kMade; ++k)
      heaps.take_voltages(HeapPiece(2, 1, 256 * k, 256).voltages, {0, {1000, 1}});
    heaps.finish(summary);
  }  // each stream ends with a stop
  const auto a = first.wait(), b = second.wait();
  EXPECT_EQ(summary.beams->heaps_sent + summary.beams->heaps_dropped, kMade);
  EXPECT_GE(summary.beams->heaps_dropped, kMade / 2);
  EXPECT_EQ(static_cast<std::int64_t>(a.size()), summary.beams->heaps_sent);
  EXPECT_EQ(a, b);
  for (const auto& [timestamp, bytes] : a)
    EXPECT_EQ(bytes, static_cast<std::uint64_t>(kHeapChannels * 512)) << timestamp;
  ASSERT_EQ(summary.warnings.size(), 1u);
  EXPECT_THAT(summary.warnings[0], testing::HasSubstr(std::to_string(summary.beams->heaps_dropped) +
                                                      " of 30 heaps were not sent"));
  EXPECT_EQ(summary.products.size(), 2u);
}

TEST(BeamHeaps, EachStreamHasTheRateToItself) {
  const int port = test::own_port();
  const auto seconds = [&](std::size_t n_streams) {
    BeamHeapStreams::Info info;
    info.frequency = {100e6, 1e3, kHeapChannels};
    info.mb_per_s = 0.02;
    const std::string endpoint = "udp://" + test::own_host() + ":" + std::to_string(port);
    BeamHeapStreams streams("beams.spead", beam_endpoints("beams.spead", endpoint, n_streams),
                            info);
    BeamHeap heap;
    heap.values.resize(n_streams * kHeapChannels * 512);
    heap.clock = {0, {1000, 1}};
    const auto begin = std::chrono::steady_clock::now();
    for (heap.number = 0; heap.number < 5; ++heap.number) streams.send(heap);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // 5 heaps of 2 kB at 20 kB/s; one after another eight streams would take 4 s.
  const double all_s = seconds(8);
  EXPECT_GT(all_s, 0.4);
  EXPECT_LT(all_s, 2);
}

TEST(BeamHeaps, ASenderThatFailsHoldsNothingUp) {
  auto config =
      heaps_observation("udp://" + test::own_host() + ":" + std::to_string(test::own_port()));
  config.source.kind = "pcap";  // a recording waits for its heaps
  config.simulator.speed = 0;
  const BeamSetup setup = heaps_setup(2);
  BeamHeaps heaps(config, setup, open_live_beam_streams(config, setup));
  RunSummary summary;
  summary.beams.emplace();
  constexpr std::int64_t kMade = 12;
  for (std::int64_t k = 0; k < kMade; ++k) {
    HeapPiece piece(2, 1, 256 * k, 256);
    piece.voltages.scale = std::make_shared<const std::vector<float>>(1, 1.0f);  // of other beams
    heaps.take_voltages(piece.voltages, {0, {1000, 1}});
  }
  heaps.finish(summary);
  EXPECT_TRUE(heaps.failed());
  ASSERT_EQ(summary.errors.size(), 1u);
  EXPECT_THAT(summary.errors[0], testing::HasSubstr("beams.spead: a heap of 4096 bytes"));
  EXPECT_EQ(summary.beams->heaps_sent, 0);
}

TEST(BeamHeaps, UnknownHostsAreFoundBeforeData) {
  const auto refused = [](const std::string& endpoint, const std::string& words) {
    try {
      open_live_beam_streams(heaps_observation(endpoint), heaps_setup(2));
      ADD_FAILURE() << words;
    } catch (const IoError& e) {
      EXPECT_EQ(e.exit_code(), ExitCode::unavailable);
      EXPECT_THAT(e.what(), testing::HasSubstr(words));
    }
  };
  refused("udp://nosuch.invalid:7000", "cannot resolve udp://nosuch.invalid:7000");
  refused("udp://239.1.2.3+1:7000?interface=nosuch0", "nosuch0");
}

TEST(BeamHeaps, SaysWhatCannotBeSent) {
  const auto refused = [](const ObservationConfig& config, std::int64_t n_beams,
                          const std::string& words) {
    try {
      live_beam_endpoints(config, heaps_setup(n_beams));
      ADD_FAILURE() << words;
    } catch (const ConfigError& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr(words));
    }
  };
  refused(heaps_observation("tcp://127.0.0.1:7000"), 2, "udp://host:port");
  refused(heaps_observation("udp://127.0.0.1:0"), 2, "a port above 0");
  refused(heaps_observation("udp://239.1.2.3+3:7000"), 2, "need as many groups (+1)");
  refused(heaps_observation("udp://127.0.0.1:65535"), 2, "as many ports");
  refused(heaps_observation("udp://127.0.0.1:7000"), 0, "incoherent beams have no voltages");
  refused(heaps_observation("udp://127.0.0.1:7000", {"output.spead=udp://127.0.0.1:7001"}), 2,
          "asked for twice");
  EXPECT_EQ(live_beam_endpoints(heaps_observation("udp://127.0.0.1:7000"), heaps_setup(2)),
            (std::vector<std::string>{"udp://127.0.0.1:7000", "udp://127.0.0.1:7001"}));
  // Groups share a port.
  EXPECT_EQ(beam_endpoints("-o", "udp://239.1.1.1+3:65534", 4).back(), "udp://239.1.1.4:65534");
  EXPECT_EQ(beam_endpoints("-o", "udp://127.0.0.1:65534", 2).back(), "udp://127.0.0.1:65535");
  // One address has several names.
  refused(heaps_observation("udp://127.1:7000", {"output.spead=udp://127.0.0.1:7001"}), 2,
          "asked for twice");
  refused(heaps_observation("udp://127.0.0.1:7000", {"source.listen=[\"udp://127.1:7001\"]"}), 2,
          "is in source.listen, too");
  refused(heaps_observation("udp://127.0.0.1:7000", {"source.listen=[\"udp://0.0.0.0:7001\"]"}), 2,
          "is in source.listen, too");
  refused(heaps_observation("udp://239.1.1.1+1:7000?interface=lo",
                            {"source.listen=[\"udp://239.1.1.2:7000?interface=lo\"]"}),
          2, "is in source.listen, too");
  live_beam_endpoints(
      heaps_observation("udp://127.0.0.1:7000", {"source.listen=[\"udp://0.0.0.0:7002\"]"}),
      heaps_setup(2));
}

}  // namespace
}  // namespace ryle::pipeline
