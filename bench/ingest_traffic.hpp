// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/ingest/source.hpp"
#include "ryle/wire/described.hpp"

namespace ryle::bench {

/// A source that bound a port of this machine.
struct BoundSource {
  std::unique_ptr<ChunkSource> source;
  std::string endpoint;
};

/// Packets of one format, and the source that takes them. Packets repeat after a pool; only their
/// counter changes.
class Traffic {
 public:
  virtual ~Traffic() = default;
  virtual std::string name() const = 0;  ///< "mwa32t", "chips"
  virtual std::size_t payload_bytes() const = 0;
  virtual std::size_t packet_bytes() const = 0;
  /// A multiple of gso_packets().
  virtual std::size_t pool_packets() const = 0;
  /// Packets of one super-packet: below 65 507 bytes.
  std::size_t gso_packets() const { return 65'000 / packet_bytes(); }
  /// Packets of all streams at one time: a run ends with a whole number of them.
  virtual std::size_t packets_per_time() const { return 1; }
  /// Packet k of the pool; payload a function of (its time mod the pool, place).
  virtual void write_packet(std::size_t k, std::byte* out) const = 0;
  /// Counter field (big endian, at byte 8) of the n-th packet sent.
  virtual std::uint64_t counter(std::uint64_t n) const = 0;
  virtual BoundSource open() const = 0;
  /// Every sample of the chunk is the pattern, and none is absent.
  virtual bool right(const ChunkSource& source, const Chunk& chunk) const = 0;
  /// The goal of reliability.md 7, packets a second.
  virtual double goal_packets_per_s() const = 0;
  virtual std::string socket_endpoint() const { return "udp://127.0.0.1:0"; }
};

/// mwa32t-udp packets of one receiver with 4 KB of payload.
std::unique_ptr<Traffic> mwa32t_traffic();
/// CHIPS packets of 16 boards, 132 channels: 4240 bytes each, a spectrum of LWA-SV in 16 of them.
std::unique_ptr<Traffic> chips_traffic();
/// The same packets, taken by a description of them (wire/described.hpp).
std::unique_ptr<Traffic> described_mwa32t_traffic();
std::unique_ptr<Traffic> described_chips_traffic();
wire::PacketDescription described_chips_packet();

enum class SendMode { plain, gso };

/// Sends a traffic as fast as asked, from one thread and socket.
class PacketSender {
 public:
  PacketSender(const Traffic& traffic, const std::string& endpoint, SendMode mode);
  ~PacketSender();
  PacketSender(const PacketSender&) = delete;
  PacketSender& operator=(const PacketSender&) = delete;
  /// Sends `rate` packets a second (0 = as fast as it goes) for `seconds`; returns how many.
  std::uint64_t run(double seconds, double rate);

 private:
  std::size_t send_batch();

  const Traffic& traffic_;
  std::size_t per_message_, batch_;
  std::vector<std::byte> bytes_;
  std::uint64_t next_ = 0;
  int descriptor_ = -1;
};

}  // namespace ryle::bench
