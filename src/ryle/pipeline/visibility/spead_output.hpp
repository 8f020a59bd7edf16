// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/ingest/socket.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/telescope/observation.hpp"
#include "ryle/wire/spead.hpp"

namespace ryle::pipeline {

/// Sends heaps of SPEAD-64-48 to one endpoint, every item pointer in every packet. The destructor
/// sends a stop heap. A network that rejects a datagram costs that datagram: it is counted.
class SpeadHeaps {
 public:
  struct Item {
    std::uint32_t id;
    bool immediate;
    std::uint64_t value;               ///< of an immediate
    std::span<const std::byte> bytes;  ///< of others
  };
  /// Opens the socket. Throws ConfigError, which names `key`, or IoError for an endpoint that
  /// cannot be sent to.
  /// @param mb_per_s datagrams are sent no faster; 0 = as fast as it goes
  SpeadHeaps(const std::string& key, const std::string& endpoint, std::int64_t packet_bytes,
             double mb_per_s);
  ~SpeadHeaps();
  SpeadHeaps(const SpeadHeaps&) = delete;
  SpeadHeaps& operator=(const SpeadHeaps&) = delete;

  using Clock = std::chrono::steady_clock;

  void send(std::span<const Item> items);
  /// The same by datagrams, so that one thread sends several heaps side by side: start() copies the
  /// items of the next heap, then send_next() waits for due() and sends a datagram while more().
  void start(std::span<const Item> items);
  bool more() const { return more_; }
  Clock::time_point due() const { return next_; }
  void send_next();
  bool began() const { return counter_ > 0; }
  std::int64_t rejected() const { return rejected_; }  ///< datagrams
  /// "3 of 100 datagrams could not be sent to udp://...: REASON", or "".
  std::string trouble() const;

 private:
  void send_datagram(std::size_t n_bytes);
  void pace(std::size_t n_bytes);

  std::string endpoint_;
  std::int64_t packet_bytes_;
  double mb_per_s_;
  Socket socket_;
  std::vector<std::byte> heap_, datagram_;
  wire::SpeadPacket packet_;  ///< the next of the heap
  bool more_ = false;
  std::uint64_t counter_ = 0;
  std::int64_t datagrams_ = 0, rejected_ = 0;
  int last_error_ = 0;
  Clock::time_point next_;
};

/// "{'descr': '<f8', 'fortran_order': False, 'shape': (SHAPE)}" of a descriptor.
std::string spead_numpy_header(const char* type, const std::string& shape);

/// Throws as SpeadHeaps does for an output.spead that cannot be sent to, before there are data.
void require_spead_output(const OutputConfig& config);

/// Sends visibilities as heaps of SPEAD-64-48 (output.spead), as an X-engine of MeerKAT does: one
/// heap per integration and range of output.spead_channels channels, every item pointer in every
/// packet. Items, all described by a heap that is sent first and again every ten seconds:
///
///   0x1600 timestamp          u64  first sample, TAI nanoseconds since 1970-01-01
///   0x4103 frequency          u48  number of the first channel of the heap, from 0
///   0x1800 xeng_raw           f32  [channel][product][re, im]: mean V_ij as the files have it
///   0x1801 xeng_counts        u32  [channel][product]: spectra behind each value; 0 = flagged
///   0x1802 integration_s      f64
///   0x1803 first_center_hz    f64  center of channel 0 ...
///   0x1804 channel_width_hz   f64  ... and from one to the next
///   0x1805 xeng_bls_ordering  i32  [product][antenna i, pol i, antenna j, pol j], with the
///   descriptors
///
/// A product is a baseline and a pair of polarizations, as VisibilityDump orders them.
class SpeadOutput {
 public:
  /// Throws as SpeadHeaps does.
  explicit SpeadOutput(const OutputConfig& config);

  /// Sends an integration; waits as output.spead_mb_per_s asks.
  void send(const VisibilityDump& dump, const Observation& observation);

  std::int64_t heaps_sent() const { return heaps_; }
  std::string trouble() const { return out_.trouble(); }

 private:
  using Item = SpeadHeaps::Item;
  void send_descriptors(const VisibilityDump& dump, const Observation& observation,
                        std::int64_t n_channels);

  OutputConfig config_;
  SpeadHeaps out_;
  std::int64_t heaps_ = 0;
  std::chrono::steady_clock::time_point described_;
};

}  // namespace ryle::pipeline
