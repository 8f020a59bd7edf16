// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <poll.h>
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ryle/ingest/stream_cutter.hpp"
#include "ryle/ingest/udp_ports.hpp"

namespace ryle {

/// What comes as a stream of bytes: connections to TCP ports, pipes, descriptors. A port takes
/// several connections, one a sender, unless its streams end the run: then one.
class StreamInputs {
 public:
  /// One stream. `port` tells how far it has been read, as of a socket of datagrams.
  struct Input {
    std::size_t source = 0;  ///< which of the endpoints
    UdpPort port;
    Descriptor descriptor;
    sockaddr_storage peer{};  ///< of family 0 where there is none
    std::unique_ptr<StreamCutter> cutter;
    std::vector<std::byte> buffer;
    std::size_t n_bytes = 0;  ///< in it
  };

  /// Listens, or opens the pipe. Throws IoError naming the endpoint.
  void open(const Endpoint& endpoint);
  /// How the streams of an endpoint are cut. @pre all are open
  void set_cutters(const std::function<std::unique_ptr<StreamCutter>()>& make);
  bool empty() const { return sources_.empty(); }
  std::vector<std::string> endpoints() const;

  /// Appends what is to be waited for. Streams that have ended are gone after it.
  void add_polled(std::vector<pollfd>& polled);
  /// Takes new connections. @param polled what add_polled() appended, after poll()
  /// @param allowed whether an address may send
  void accept(std::span<const pollfd> polled, std::int64_t position,
              const std::function<bool(const SenderAddress&)>& allowed);
  /// Streams with something to read, or at their end.
  std::vector<Input*> readable(std::span<const pollfd> polled);
  /// Reads once and cuts: about so many packets or blocks, so that no stream runs ahead of others.
  /// At the end, or where the sink refuses what comes, the stream is closed.
  void read(Input& input, std::int64_t max_units, StreamSink& sink);
  void close_all();
  /// Every stream there was has ended, and such an end ends the run.
  bool ended() const;
  /// A new segment: all have been read up to its origin.
  void rewind(std::int64_t origin);

  std::uint64_t refused() const { return rejected_; }
  const SenderAddress& last_rejected() const { return last_rejected_; }
  /// "2 connections closed: what came were no packets (the last from 10.1.2.3:4015)", bytes that
  /// were no whole packet; "" where there is nothing to tell.
  std::string note() const;
  std::int64_t memory_bytes() const;
  /// Bytes of the buffer of one stream.
  static std::size_t buffer_bytes(const StreamCutter& cutter);
  /// Connections that a port takes at a time: 1024, fewer where their buffers would be more than
  /// 128 MiB together, but one in any case. Others are closed at once and counted.
  static std::size_t max_connections(const StreamCutter& cutter);

 private:
  struct Source {
    Endpoint endpoint;
    Socket listener;
    bool came = false;  ///< a stream was there
  };
  void add(std::size_t source, Descriptor descriptor, const sockaddr_storage& peer,
           std::int64_t position);
  void set_cutter(Input& input) const;
  std::size_t n_of(std::size_t source) const;
  void close(Input& input);

  std::vector<Source> sources_;
  std::vector<std::unique_ptr<Input>> inputs_;
  std::function<std::unique_ptr<StreamCutter>()> make_;
  std::uint64_t rejected_ = 0, broken_ = 0, rest_bytes_ = 0;
  SenderAddress last_rejected_, last_broken_;
};

}  // namespace ryle
