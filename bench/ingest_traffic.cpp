// SPDX-License-Identifier: BSD-3-Clause
#include "bench/ingest_traffic.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <span>
#include <stdexcept>
#include <thread>

#include "ryle/core/random.hpp"
#include "ryle/ingest/described_source.hpp"
#include "ryle/ingest/fengine_source.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/wire/chips.hpp"

namespace ryle::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUdpSegment = 103;  // UDP_SEGMENT of linux/udp.h

class Mwa32tTraffic : public Traffic {
 public:
  std::string name() const override { return "mwa32t"; }
  std::size_t payload_bytes() const override { return kPayload; }
  std::size_t packet_bytes() const override { return kHeader + kPayload; }
  std::size_t pool_packets() const override { return kPool; }
  double goal_packets_per_s() const override { return 250'000; }
  std::uint64_t counter(std::uint64_t n) const override { return n * kInstants; }

  void write_packet(std::size_t k, std::byte* out) const override {
    std::vector<std::byte> payload(kPayload);
    for (std::size_t w = 0; w < kPayload / 8; ++w) {
      const std::uint64_t word = pattern(static_cast<std::int64_t>(k * kInstants + w / 4), w % 4);
      std::memcpy(payload.data() + 8 * w, &word, 8);
    }
    wire::Packet packet;
    packet.n_ticks = kInstants;
    wire::encode(geometry(), packet, payload, std::span(out, packet_bytes()));
  }

  BoundSource open() const override {
    Mwa32tSourceConfig config;
    config.endpoints = {socket_endpoint()};
    config.geometry = geometry();
    config.chunk_ticks = 32768;
    config.n_chunks = 48;
    config.memory = MemorySpace::host;
    config.allow_small_rcvbuf = true;
    config.rate_factor = 25;  // 250 kpkt/s instead of the array's 10
    auto source = std::make_unique<Mwa32tSource>(config);
    const std::string endpoint = source->endpoints().front();
    return {std::move(source), endpoint};
  }

  bool right(const ChunkSource&, const Chunk& chunk) const override {
    for (std::int64_t t = 0; t < chunk.n_ticks; ++t) {
      for (std::size_t w = 0; w < 4; ++w) {
        std::uint64_t word;
        std::memcpy(&word, chunk.payload.data() + t * 32 + 8 * w, 8);
        if (word != pattern(chunk.first_tick + t, w)) return false;
      }
    }
    return chunk.absent.empty();
  }

 protected:
  static constexpr std::uint32_t kInstants = 128;
  static constexpr std::size_t kHeader = wire::kMwa32tUdpHeaderBytes;
  static constexpr std::size_t kPayload = kInstants * wire::kMwa32tPayloadBytesPerInstant;
  static constexpr std::size_t kPool = 240;  // 1 MB, beyond the first-level cache

  // Word of the pattern: a function of the tick, repeating after the pool.
  static std::uint64_t pattern(std::int64_t tick, std::size_t eight_bytes) {
    return combine(static_cast<std::uint64_t>(tick) % (kPool * kInstants), eight_bytes);
  }
  static wire::Mwa32tGeometry geometry() {
    wire::Mwa32tGeometry g;
    g.n_receivers = 1;
    g.n_instants = kInstants;
    return g;
  }
};

class ChipsTraffic : public Traffic {
 public:
  std::string name() const override { return "chips"; }
  std::size_t payload_bytes() const override { return kPayload; }
  std::size_t packet_bytes() const override { return wire::kChipsHeaderBytes + kPayload; }
  std::size_t pool_packets() const override { return kPoolSpectra * kBoards; }
  std::size_t packets_per_time() const override { return kBoards; }
  // One band of LWA-SV: 25 000 spectra a second of 16 boards, 13.5 Gb/s.
  double goal_packets_per_s() const override { return 400'000; }
  std::uint64_t counter(std::uint64_t n) const override { return n / kBoards + 1; }

  void write_packet(std::size_t k, std::byte* out) const override {
    std::vector<std::byte> payload(kPayload);
    for (std::size_t w = 0; w < kPayload / 8; ++w) {
      const std::uint64_t word = pattern(k / kBoards, k % kBoards, w);
      std::memcpy(payload.data() + 8 * w, &word, 8);
    }
    wire::Packet packet;
    packet.stream = static_cast<std::uint32_t>(k % kBoards);
    packet.channel = kFirstChannel;
    packet.n_channels = kChannels;
    wire::encode(wire::ChipsGeometry{kBoards, kChannels}, packet, payload,
                 std::span(out, packet_bytes()));
  }

  BoundSource open() const override {
    FengineSourceConfig config;
    config.endpoints = {socket_endpoint()};
    config.first_channel = kFirstChannel;
    config.n_channels = kChannels;
    config.n_chunks = 24;
    config.memory = MemorySpace::host;
    config.allow_small_rcvbuf = true;
    auto source = std::make_unique<FengineSource>(config);
    const std::string endpoint = source->endpoints().front();
    return {std::move(source), endpoint};
  }

  // Unpacked: the planar blocks must hold the bytes that were sent.
  bool right(const ChunkSource& source, const Chunk& chunk) const override {
    const auto& from = dynamic_cast<const SpectraSource&>(source);
    SpectraBlocks spectra(from.shape());
    from.unpack(chunk, spectra);
    const BlockView blocks = spectra.blocks();
    for (std::int64_t t = 0; t < chunk.n_ticks; ++t) {
      for (std::int64_t board = 0; board < kBoards; ++board) {
        for (std::int64_t w = 0; w < static_cast<std::int64_t>(kPayload) / 8; ++w) {
          const std::uint64_t word =
              pattern(static_cast<std::uint64_t>(chunk.first_tick + t), board, w);
          for (std::int64_t b = 0; b < 8; ++b) {
            const std::byte got =
                blocks.cell((8 * w + b) / 32, t / 128, 32 * board + (8 * w + b) % 32)[t % 128];
            if (got != std::byte(word >> (8 * b) & 255)) return false;
          }
        }
      }
    }
    return spectra.complete;
  }

 protected:
  static constexpr std::uint32_t kBoards = 16, kChannels = 132, kFirstChannel = 1600;
  static constexpr std::size_t kPayload = kChannels * wire::kChipsInputsPerBoard;
  static constexpr std::size_t kPoolSpectra = 15;  // 240 packets: 1 MB

  static std::uint64_t pattern(std::uint64_t spectrum, std::uint64_t board, std::uint64_t word) {
    return combine(spectrum % kPoolSpectra, board, word);
  }
};

wire::HeaderField header_field(wire::FieldMeaning meaning, std::uint32_t offset, int bytes) {
  wire::HeaderField f;
  f.meaning = meaning;
  f.offset = offset;
  f.bytes = bytes;
  f.n_bits = 8 * bytes;
  return f;
}

template <class Source>
BoundSource open_described(DescribedSourceConfig config, const std::string& endpoint) {
  config.endpoints = {endpoint};
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  auto source = std::make_unique<Source>(config);
  const std::string bound = source->endpoints().front();
  return {std::move(source), bound};
}

/// The same packets by their description instead of the codec written for them.
class DescribedMwa32tTraffic final : public Mwa32tTraffic {
 public:
  std::string name() const override { return "mwa32t-described"; }
  BoundSource open() const override {
    DescribedSourceConfig config;
    auto& d = config.packet;
    d.length = static_cast<std::uint32_t>(packet_bytes());
    d.header = {header_field(wire::FieldMeaning::constant, 0, 4),
                header_field(wire::FieldMeaning::board, 5, 1),
                header_field(wire::FieldMeaning::sequence, 8, 8)};
    d.header[0].values = {wire::kMwa32tUdpMagic};
    d.payload_offset = kHeader;
    d.order = {{wire::Axis::time, kInstants}, {wire::Axis::input, 16}};
    d.sample = {.complex = true, .bits = 5, .word_bytes = 2, .im_shift = 5};
    config.n_inputs = 16;
    config.clock.rate_hz = {wire::kMwa32tSampleRateHz, 1};
    config.chunk_ticks = 32768;
    config.n_chunks = 48;
    config.window_chunks = 4;
    config.rate_factor = 25;
    return open_described<DescribedSampleSource>(config, socket_endpoint());
  }
};

class DescribedChipsTraffic final : public ChipsTraffic {
 public:
  std::string name() const override { return "chips-described"; }
  static wire::PacketDescription packet() {
    wire::PacketDescription d;
    d.length = wire::kChipsHeaderBytes + kPayload;
    d.header = {header_field(wire::FieldMeaning::board, 0, 1),
                header_field(wire::FieldMeaning::constant, 2, 1),
                header_field(wire::FieldMeaning::first_channel, 6, 2),
                header_field(wire::FieldMeaning::sequence, 8, 8)};
    d.header[0].base = d.header[3].base = 1;
    d.header[1].values = {kChannels};
    d.payload_offset = wire::kChipsHeaderBytes;
    d.order = {{wire::Axis::channel, kChannels}, {wire::Axis::input, wire::kChipsInputsPerBoard}};
    d.sample.bits = 4;
    return d;
  }
  BoundSource open() const override {
    DescribedSourceConfig config;
    config.packet = packet();
    config.n_inputs = kBoards * wire::kChipsInputsPerBoard;
    config.first_channel = kFirstChannel;
    config.n_channels = kChannels;
    config.channels = {40e6, 25e3, kChannels};
    config.clock.rate_hz = {25'000, 1};
    config.chunk_ticks = 256;
    config.n_chunks = 24;
    config.window_chunks = 4;
    return open_described<DescribedSpectraSource>(config, socket_endpoint());
  }
};

}  // namespace

std::unique_ptr<Traffic> described_mwa32t_traffic() {
  return std::make_unique<DescribedMwa32tTraffic>();
}
std::unique_ptr<Traffic> described_chips_traffic() {
  return std::make_unique<DescribedChipsTraffic>();
}
wire::PacketDescription described_chips_packet() { return DescribedChipsTraffic::packet(); }
std::unique_ptr<Traffic> mwa32t_traffic() { return std::make_unique<Mwa32tTraffic>(); }
std::unique_ptr<Traffic> chips_traffic() { return std::make_unique<ChipsTraffic>(); }

PacketSender::PacketSender(const Traffic& traffic, const std::string& endpoint_text, SendMode mode)
    : traffic_(traffic),
      per_message_(mode == SendMode::gso ? traffic.gso_packets() : 1),
      batch_(mode == SendMode::gso ? 4 : 60),
      bytes_(traffic.pool_packets() * traffic.packet_bytes()) {
  while (batch_ * per_message_ % traffic.packets_per_time() != 0) ++batch_;
  const Endpoint endpoint = parse_endpoint(endpoint_text);
  descriptor_ = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(endpoint.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int buffer = 8 << 20;
  setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  if (mode == SendMode::gso) {
    const int segment = static_cast<int>(traffic.packet_bytes());
    setsockopt(descriptor_, IPPROTO_UDP, kUdpSegment, &segment, sizeof segment);
  }
  if (connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error("bench ingest: cannot connect over loopback");
  }
  for (std::size_t k = 0; k < traffic.pool_packets(); ++k) {
    traffic.write_packet(k, bytes_.data() + k * traffic.packet_bytes());
  }
}

PacketSender::~PacketSender() { close(descriptor_); }

std::uint64_t PacketSender::run(double seconds, double rate) {
  const auto start = Clock::now();
  const auto end =
      start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::uint64_t sent = 0;
  for (auto now = start; now < end; now = Clock::now()) {
    const double due_s = rate > 0 ? static_cast<double>(sent) / rate : 0;
    const double ahead_s = due_s - std::chrono::duration<double>(now - start).count();
    if (ahead_s > 100e-6) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (ahead_s > 0) continue;
    sent += send_batch();
  }
  return sent;
}

std::size_t PacketSender::send_batch() {
  mmsghdr headers[64] = {};
  iovec vectors[64];
  for (std::size_t m = 0; m < batch_; ++m) {
    // The pool holds whole messages, so none wraps.
    std::byte* first = bytes_.data() + next_ % traffic_.pool_packets() * traffic_.packet_bytes();
    for (std::size_t p = 0; p < per_message_; ++p, ++next_) {
      const std::uint64_t counter = __builtin_bswap64(traffic_.counter(next_));
      std::memcpy(first + p * traffic_.packet_bytes() + 8, &counter, 8);
    }
    vectors[m] = {first, per_message_ * traffic_.packet_bytes()};
    headers[m].msg_hdr.msg_iov = &vectors[m];
    headers[m].msg_hdr.msg_iovlen = 1;
  }
  for (std::size_t done = 0; done < batch_;) {
    const int n = sendmmsg(descriptor_, headers + done, static_cast<unsigned>(batch_ - done), 0);
    if (n <= 0) throw std::runtime_error("bench ingest: sendmmsg failed");
    done += static_cast<std::size_t>(n);
  }
  return batch_ * per_message_;
}

}  // namespace ryle::bench
