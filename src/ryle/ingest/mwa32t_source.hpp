// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/ingest/receiver_source.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle {

/// MWA-32T live: 16 inputs per receiver, one endpoint per receiver, transports mixed as they come.
struct Mwa32tSourceConfig : ReceiverConfig {
  /// Endpoint of receiver 0, 1, ...: "tcp://host:port" (34-byte groups) or "udp://host:port"
  /// (mwa32t-udp). Receivers with the same udp endpoint share a socket. Port 0: see endpoints().
  std::vector<std::string> endpoints;
  bool tcp_connect = false;       ///< Ryle connects to the nodes instead of listening for them
  wire::Mwa32tGeometry geometry;  ///< n_receivers is taken from the endpoints
  SampleClock clock{0, {wire::kMwa32tSampleRateHz, 1}};  ///< tick 0 and rate
  TimeSource time_source = TimeSource::configured;

  std::int64_t chunk_ticks = 32768;
  int n_chunks = 12;  ///< fixed at start: memory = n_chunks * chunk_ticks * 32 bytes * receivers
  int window_chunks = 4;  ///< open at a time; n_chunks must be larger
  MemorySpace memory = MemorySpace::pinned;
  /// The sender may wait: nothing is dropped for want of a chunk, the TCP window closes instead
  /// (UDP cannot wait). Ends by itself when every TCP sender has closed and there is no UDP
  /// endpoint.
  bool offline = false;
  /// TCP: a connection whose groups are not placed for so long gives way to another one.
  MonotonicNs replace_after_ns = 1000 * kMillisecond_ns;
  MonotonicNs reconnect_min_ns = 1000 * kMillisecond_ns;
  MonotonicNs reconnect_max_ns = 30'000 * kMillisecond_ns;
};

/// Samples of the receivers, aligned.
class Mwa32tSource final : public ReceiverSource {
 public:
  /// Opens, binds and listens: senders may connect from now on. Throws ConfigError, IoError (port
  /// in use, ...) or OsLimitError (receive buffer; the message has the sysctl line).
  explicit Mwa32tSource(const Mwa32tSourceConfig& config);

  SourceInfo info() const override;
};

/// @shape chunk payload [tick][input] ci5 in u16 little endian: input_stride_bits 16,
/// sample_stride_bits 16 * n_inputs
std::unique_ptr<ChunkSource> make_mwa32t_source(const Mwa32tSourceConfig& config);

/// Bytes of chunks the source will allocate (for `ryle plan`, without opening anything).
std::int64_t mwa32t_source_chunk_bytes(const Mwa32tSourceConfig& config);

}  // namespace ryle
