// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ryle/ingest/assembler.hpp"
#include "ryle/ingest/group_stream.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/ingest/socket.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle {

/// The thread behind Mwa32tSource: polls all sockets, serves first what lies furthest behind,
/// aligns the group streams and feeds the assembler. Everything below the first section belongs to
/// that thread.
class Mwa32tReceiver : private GroupSink {
 public:
  explicit Mwa32tReceiver(const Mwa32tSourceConfig& config);
  ~Mwa32tReceiver() override;

  const Mwa32tSourceConfig& config() const { return config_; }
  ChunkPool& pool() { return *pool_; }
  const ChunkPool& pool() const { return *pool_; }
  void start();
  void stop();
  IngestCounters counters() const;
  std::string state() const;
  std::int64_t memory_bytes() const;
  std::vector<std::string> endpoints() const;
  bool receive_buffer_ok() const { return receive_buffer_ok_; }

 private:
  struct UdpPort {
    Endpoint endpoint;
    Socket socket;
    std::vector<std::uint32_t> streams;
    std::uint64_t drops = 0;
  };
  struct TcpLink {
    std::uint32_t stream = 0;
    Endpoint endpoint;
    Socket listener, connection;
    bool connecting = false;
    std::unique_ptr<GroupStream> groups;
    bool ever_connected = false;
    bool got_bytes = false;
    std::optional<std::int64_t> reference;  // position of the others when the first bytes came
    MonotonicNs last_bytes = 0;
    MonotonicNs retry_at = 0, retry_delay = 0;
    bool ready = false;
    MonotonicNs ready_since = 0;
  };

  void open_udp(const Endpoint& endpoint, std::uint32_t stream);
  void open_tcp(const Endpoint& endpoint, std::uint32_t stream);
  void check_receive_buffers();

  void run(const std::stop_token& stop);
  bool serve(int timeout_ms);
  void serve_udp(UdpPort& port);
  void take_datagram(const UdpPort& port, const DatagramReader::Datagram& datagram);
  void accept_connections(TcpLink& link);
  void continue_connecting(TcpLink& link);
  void finish_connecting(TcpLink& link);
  void connected(TcpLink& link, Socket connection);
  void serve_tcp(TcpLink& link);
  void disconnect(TcpLink& link);
  bool align_links();
  bool align_without_udp(bool provisional);
  void align_link(TcpLink& link);
  void realign_after_new_segment();
  StreamReference others(std::uint32_t stream) const;
  std::int64_t extrapolated() const;
  std::int64_t position_of(std::uint32_t stream) const;
  std::int64_t position_of(const UdpPort& port) const;
  bool finished_by_itself() const;
  void housekeeping(bool force);
  void publish();

  void on_run(const Run& run) override;
  void on_reject(Reason reason, std::uint64_t n_groups) override;

  Mwa32tSourceConfig config_;
  std::unique_ptr<ChunkPool> pool_;
  std::unique_ptr<Assembler> assembler_;
  std::unique_ptr<DatagramReader> reader_;
  std::vector<std::unique_ptr<UdpPort>> udp_;
  std::vector<std::unique_ptr<TcpLink>> tcp_;
  std::vector<TcpLink*> link_of_stream_;  // nullptr: UDP
  std::set<std::uint64_t> allowed_;
  bool receive_buffer_ok_ = true;
  std::int64_t skew_limit_;  ///< ticks a stream may be served ahead of one that has data waiting
  bool provisional_ = false;
  std::int64_t instant_offset_ = 0;
  std::uint64_t segments_seen_ = 0;
  MonotonicNs now_ = 0, last_poll_ = 0, last_drops_ = 0, last_publish_ = 0;

  mutable std::mutex mutex_;  // the snapshot
  IngestCounters snapshot_;
  std::string state_ = "NO_DATA";
  std::atomic<bool> stopping_{false}, abandon_{false};
  std::mutex start_mutex_;
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle
