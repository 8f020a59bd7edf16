// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/random.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/ingest/receiver_thread.hpp"
#include "ryle/wire/best2.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"

// Receivers of every format, driven datagram by datagram without sockets, with the senders and the
// time that a test gives them.

namespace ryle::test {

/// The protected parts of a receiver that was not started.
struct OpenReceiver : ReceiverThread {
  using ReceiverThread::align;
  using ReceiverThread::assembler_;
  using ReceiverThread::judge;
  using ReceiverThread::now_;
  using ReceiverThread::ports_;
  using ReceiverThread::publish;
  using ReceiverThread::serve;
};
struct OpenSource : ReceiverSource {
  using ReceiverSource::receiver;
};

/// One format: its source, and how its packets are made and laid out.
struct HostileFormat {
  std::string name;
  std::unique_ptr<ReceiverSource> source;
  int n_streams = 0;
  bool port_of_each = false;  ///< streams have ports of their own
  std::int64_t slots_per_packet = 1;
  std::int64_t ticks_per_slot = 1;
  std::int64_t inputs_per_stream = 1;  ///< of Chunk::absent
  std::int64_t first_slot = 0;
  double slots_per_s = 0;
  std::size_t header_bytes = 0, payload_bytes = 0;
  bool interleaved = false;  ///< chunk payload [slot][stream], else [stream][slot]
  std::int64_t chunk_slots = 0;
  std::function<std::size_t(int stream, std::int64_t slot, std::span<const std::byte> payload,
                            std::span<std::byte> out)>
      encode;

  std::int64_t slot_bytes() const {
    return static_cast<std::int64_t>(payload_bytes) / slots_per_packet;
  }
};

/// All bytes of a slot, never 0.
inline std::byte hostile_value(int stream, std::int64_t slot) {
  return static_cast<std::byte>(
      1 + combine(static_cast<std::uint64_t>(stream), static_cast<std::uint64_t>(slot)) % 255);
}

template <class Config>
Config hostile_config(int n_endpoints = 1) {
  Config config;
  config.endpoints.assign(static_cast<std::size_t>(n_endpoints), "udp://127.0.0.1:0");
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.n_chunks = 12;
  config.window_chunks = 4;
  config.udp_gro = false;
  return config;
}

inline HostileFormat mwa32t_format() {
  auto config = hostile_config<Mwa32tSourceConfig>(3);
  config.geometry.n_instants = 16;
  config.chunk_ticks = 4096;
  HostileFormat f;
  f.name = "mwa32t-udp";
  f.n_streams = 3;
  f.port_of_each = true;
  f.slots_per_packet = 16;
  f.inputs_per_stream = 16;
  f.first_slot = 1'000'000;
  f.slots_per_s = 1.28e6;
  f.header_bytes = wire::kMwa32tUdpHeaderBytes;
  f.payload_bytes = 16 * 32;
  f.interleaved = true;
  f.chunk_slots = 4096;
  f.source = std::make_unique<Mwa32tSource>(config);
  auto geometry = config.geometry;
  geometry.n_receivers = 3;
  f.encode = [geometry](int stream, std::int64_t slot, std::span<const std::byte> payload,
                        std::span<std::byte> out) {
    wire::Packet p;
    p.stream = static_cast<std::uint32_t>(stream);
    p.tick_raw = static_cast<std::uint64_t>(slot);
    p.n_ticks = geometry.n_instants;
    return wire::encode(geometry, p, payload, out);
  };
  return f;
}

inline HostileFormat fengine_format_of(FengineFormat format) {
  auto config = hostile_config<FengineSourceConfig>();
  config.format = format;
  config.first_channel = 1200;
  config.chunk_spectra = 128;
  HostileFormat f;
  f.name = std::string(name(format));
  f.slots_per_s = 25'000;
  f.chunk_slots = 128;
  if (format == FengineFormat::chips) {
    config.n_boards = 3;
    config.n_channels = 4;
    f.n_streams = 3;
    f.first_slot = 1'000'000;
    f.header_bytes = wire::kChipsHeaderBytes;
    f.payload_bytes = 4 * 32;
    f.encode = [](int stream, std::int64_t slot, std::span<const std::byte> payload,
                  std::span<std::byte> out) {
      wire::Packet p;
      p.stream = static_cast<std::uint32_t>(stream);
      p.tick_raw = static_cast<std::uint64_t>(slot);
      p.channel = 1200;
      p.n_channels = 4;
      return wire::encode(wire::ChipsGeometry{3, 4}, p, payload, out);
    };
  } else {
    const bool tbf = format == FengineFormat::tbf;
    const std::int64_t ticks = tbf ? 7840 : 8192;
    const std::uint32_t n_channels = tbf ? 12 : 4;
    config.n_stands = 8;
    config.n_channels = 3 * n_channels;
    config.channels_per_packet = n_channels;
    if (!tbf) config.clock.rate_hz = {765'625, 32};
    f.n_streams = 3;
    f.slots_per_s = tbf ? 25'000 : 23'926;
    f.first_slot = 1'700'000'000LL * wire::kLwaTicksPerSecond / ticks;
    f.header_bytes = tbf ? wire::kTbfHeaderBytes : wire::kTbxHeaderBytes;
    f.payload_bytes = n_channels * 16;
    f.encode = [tbf, ticks, n_channels](int stream, std::int64_t slot,
                                        std::span<const std::byte> payload,
                                        std::span<std::byte> out) {
      wire::Packet p;
      p.channel = 1200 + n_channels * static_cast<std::uint32_t>(stream);
      p.n_channels = n_channels;
      p.n_inputs = 16;
      p.flags = (tbf ? 1U : 8U) << 24;
      p.tick_raw = static_cast<std::uint64_t>(slot * ticks);
      return tbf ? wire::encode(wire::TbfGeometry{8, 0, 0, false}, p, payload, out)
                 : wire::encode(wire::TbxGeometry{8, n_channels, 0, 0}, p, payload, out);
    };
  }
  f.source = std::make_unique<FengineSource>(config);
  return f;
}

inline HostileFormat best2_format() {
  auto config = hostile_config<DescribedSourceConfig>();
  config.packet = wire::best2_packet();
  config.n_inputs = 32;
  config.n_channels = 4;
  config.clock.rate_hz = {78'125, 4};
  config.chunk_ticks = 512;
  HostileFormat f;
  f.name = "best2";
  f.n_streams = 4;
  f.ticks_per_slot = 128;
  f.first_slot = 50'000;
  f.slots_per_s = 78125.0 / 4 / 128;
  f.header_bytes = 8;
  f.payload_bytes = 4096;
  f.chunk_slots = 4;
  f.source = std::make_unique<DescribedSpectraSource>(config);
  f.encode = [codec = wire::DescribedCodec(config.packet, {0, 4, 1})](
                 int stream, std::int64_t slot, std::span<const std::byte> payload,
                 std::span<std::byte> out) {
    wire::Packet p;
    p.tick_raw = static_cast<std::uint64_t>(slot);
    p.stream = static_cast<std::uint32_t>(stream);
    return codec.encode(p, payload, out);
  };
  return f;
}

inline std::vector<HostileFormat> hostile_formats() {
  std::vector<HostileFormat> formats;
  formats.push_back(mwa32t_format());
  formats.push_back(fengine_format_of(FengineFormat::chips));
  formats.push_back(fengine_format_of(FengineFormat::tbf));
  formats.push_back(fengine_format_of(FengineFormat::tbx));
  formats.push_back(best2_format());
  return formats;
}

/// A receiver under attack: gives it datagrams, takes its chunks at once and checks every slot that
/// is said to be present.
class Battlefield {
 public:
  explicit Battlefield(HostileFormat&& format)
      : f(std::move(format)),
        receiver_(const_cast<ReceiverThread&>((*f.source.*&OpenSource::receiver)())) {
    receiver_.pool().poison(std::byte{0xA5});
    set_now(now);
  }

  /// A packet as the array sends it: f.slots_per_packet slots from `slot`.
  std::vector<std::byte> packet(int stream, std::int64_t slot) const {
    std::vector<std::byte> payload(f.payload_bytes), bytes(f.header_bytes + f.payload_bytes);
    for (std::int64_t k = 0; k < f.slots_per_packet; ++k) {
      std::fill_n(payload.begin() + k * f.slot_bytes(), f.slot_bytes(),
                  hostile_value(stream, slot + k));
    }
    EXPECT_EQ(f.encode(stream, slot, payload, bytes), bytes.size());
    return bytes;
  }

  /// Of sender number `sender`: 0 is the array.
  Reason give(int sender, int stream, std::span<const std::byte> bytes, bool truncated = false) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(4000 + sender));
    address.sin_addr.s_addr = htonl(0x0A000001);
    DatagramReader::Datagram d;
    d.data = bytes.data();
    d.size = bytes.size();
    d.sender = sender_identity(&address);
    d.address = &address;
    d.truncated = truncated;
    auto& ports = receiver_.*&OpenReceiver::ports_;
    ++given;
    return (receiver_.*&OpenReceiver::judge)(
        ports[f.port_of_each ? static_cast<std::size_t>(stream) : 0], d);
  }
  Reason give_good(int stream, std::int64_t slot) {
    const Reason reason = give(0, stream, packet(stream, slot));
    n_good += 1;
    n_good_used += reason == Reason::used ? 1 : 0;
    return reason;
  }

  /// Lets time pass, runs the timers and consumes.
  void pass(MonotonicNs ns) {
    set_now(now + ns);
    (receiver_.*&OpenReceiver::assembler_)->poll(now);
    consume();
  }
  MonotonicNs packet_ns() const {
    return static_cast<MonotonicNs>(1e9 * static_cast<double>(f.slots_per_packet) / f.slots_per_s);
  }
  void finish() {
    (receiver_.*&OpenReceiver::assembler_)->finish(now);
    consume();
  }
  std::string state() {
    (receiver_.*&OpenReceiver::publish)();
    return receiver_.state();
  }
  IngestCounters counters() {
    (receiver_.*&OpenReceiver::publish)();
    return receiver_.counters();
  }
  /// Every datagram in one counter, every slot in one chunk, nothing wrong in any.
  void expect_balanced() {
    const auto c = counters();
    EXPECT_EQ(c.received, given);
    EXPECT_EQ(c.balance(), 0);
    const auto& t = (receiver_.*&OpenReceiver::assembler_)->totals();
    EXPECT_EQ(t.placed_slots,
              t.present_slots + (receiver_.*&OpenReceiver::assembler_)->open_slots());
    EXPECT_EQ(t.present_slots, n_present);
  }

  HostileFormat f;
  MonotonicNs now = 1'000'000'000;
  std::uint64_t given = 0, n_good = 0, n_good_used = 0;
  std::uint64_t n_present = 0, n_wrong = 0;  ///< slots in chunks

 private:
  void set_now(MonotonicNs at) { receiver_.*& OpenReceiver::now_ = now = at; }

  void consume() {
    while (Chunk* chunk = receiver_.pool().next(std::chrono::milliseconds(0))) {
      check(*chunk);
      std::memset(chunk->payload.data(), 0xA5, static_cast<std::size_t>(chunk->payload.bytes()));
      receiver_.pool().release(chunk);
    }
  }

  void check(const Chunk& chunk) {
    const std::int64_t first = chunk.first_tick / f.ticks_per_slot;
    const std::int64_t n = chunk.n_ticks / f.ticks_per_slot;
    std::vector<std::uint8_t> present(static_cast<std::size_t>(n * f.n_streams), 1);
    for (const auto& span : chunk.absent) {
      if (span.input % f.inputs_per_stream != 0) continue;
      for (Tick t = span.begin; t < span.end; t += f.ticks_per_slot) {
        const std::int64_t slot = (t - chunk.first_tick) / f.ticks_per_slot;
        present[static_cast<std::size_t>(span.input / f.inputs_per_stream * n + slot)] = 0;
      }
    }
    const std::int64_t bytes = f.slot_bytes();
    for (int s = 0; s < f.n_streams; ++s) {
      for (std::int64_t k = 0; k < n; ++k) {
        const std::byte* slot =
            chunk.payload.data() +
            (f.interleaved ? k * f.n_streams + s : s * f.chunk_slots + k) * bytes;
        const bool here = present[static_cast<std::size_t>(s * n + k)] != 0;
        n_present += here ? 1 : 0;
        const std::byte expected = here ? hostile_value(s, first + k) : std::byte{0};
        n_wrong +=
            slot[0] != expected || slot[bytes / 2] != expected || slot[bytes - 1] != expected;
      }
    }
  }

  ReceiverThread& receiver_;
};

}  // namespace ryle::test
