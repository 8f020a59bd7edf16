// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/ingest/group_stream.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/ingest/receiver_thread.hpp"

namespace ryle {

/// The thread behind Mwa32tSource: polls all sockets, serves first what lies furthest behind,
/// aligns the group streams and feeds the assembler. Everything below the first section belongs to
/// that thread.
class Mwa32tReceiver : public ReceiverThread, private GroupSink {
 public:
  explicit Mwa32tReceiver(const Mwa32tSourceConfig& config);
  ~Mwa32tReceiver() override;

  const Mwa32tSourceConfig& config() const { return config_; }
  std::int64_t memory_bytes() const override;
  std::vector<std::string> endpoints() const override;

 private:
  struct TcpLink {
    std::uint32_t stream = 0;
    Endpoint endpoint;
    Socket listener, connection;
    bool connecting = false;
    std::unique_ptr<GroupStream> groups;
    bool ever_connected = false;
    bool got_bytes = false;
    std::optional<std::int64_t> reference;  // position of the others when the first bytes came
    SenderAddress peer;
    // Judged by the groups it brings: bytes prove nothing (judge_link()).
    bool delivers = true;
    MonotonicNs judged_at = 0;
    std::vector<std::uint64_t> placed_then;  // slots placed by then, [stream]
    MonotonicNs retry_at = 0, retry_delay = 0;
    bool ready = false;
    MonotonicNs ready_since = 0;
  };

  void open_tcp(const Endpoint& endpoint, std::uint32_t stream);
  void check_receive_buffers();

  bool serve(int timeout_ms) override;
  bool align() override;
  bool align_at_end() override { return align_without_udp(!ports_.empty()); }
  bool finished_by_itself() const override;
  void disconnect_all() override;
  std::string more_reasons() const override { return provisional_ ? "time" : ""; }
  void serve_udp(UdpPort& port);
  Reason take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) override;
  void accept_connections(TcpLink& link);
  void continue_connecting(TcpLink& link);
  void finish_connecting(TcpLink& link);
  void connected(TcpLink& link, Socket connection);
  void judge_link(TcpLink& link);
  void serve_tcp(TcpLink& link);
  void disconnect(TcpLink& link);
  bool align_without_udp(bool provisional);
  void align_link(TcpLink& link);
  void realign_after_new_segment();
  StreamReference others(std::uint32_t stream) const;
  std::int64_t extrapolated() const;
  std::int64_t position_of(std::uint32_t stream) const;

  void on_run(const Run& run) override;
  void on_reject(Reason reason, std::uint64_t n_groups, std::span<const std::byte> bytes) override;

  Mwa32tSourceConfig config_;
  std::vector<std::unique_ptr<TcpLink>> tcp_;
  std::vector<TcpLink*> link_of_stream_;  // nullptr: UDP
  std::int64_t skew_limit_;  ///< ticks a stream may be served ahead of one that has data waiting
  bool provisional_ = false;
  std::int64_t instant_offset_ = 0;
  std::uint64_t segments_seen_ = 0;
  MonotonicNs patient_until_ = 0;
  const TcpLink* serving_ = nullptr;  // whose groups are being taken
};

}  // namespace ryle
