// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"

namespace ryle {

/// What is found in a stream of bytes.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  /// A packet as a datagram would have it. False: what follows are no packets any more.
  virtual bool on_packet(std::span<const std::byte> packet) = 0;
  /// A header of DADA or GUPPI RAW: the instant of tick 0, TAI.
  virtual void on_header(std::int64_t zero_tai_ns) = 0;
  /// The samples of a block whose first tick, counted from there, is `tick`.
  virtual bool on_block(Tick tick, std::span<const std::byte> block) = 0;
};

/// Cuts a stream of bytes into packets or blocks.
class StreamCutter {
 public:
  virtual ~StreamCutter() = default;
  struct Cut {
    std::size_t bytes = 0;  ///< that were handed on, or are of no use
    bool good = true;       ///< the sink wants more
  };
  /// Hands on what is whole at the front of `bytes`. Throws FormatError for a header that is none,
  /// or that does not fit the observation.
  virtual Cut cut(std::span<const std::byte> bytes, StreamSink& sink) = 0;
  /// cut() may need so many bytes at once.
  virtual std::size_t max_bytes() const = 0;
  /// Of a packet or block.
  virtual std::size_t unit_bytes() const = 0;
  /// A stream of recorded samples, which ends the run when it ends.
  virtual bool ends_run() const { return false; }
};

/// Packets of one length, one behind the other.
std::unique_ptr<StreamCutter> make_packet_cutter(std::size_t packet_bytes);

/// What the header of a stream must say.
struct StreamShape {
  bool guppi = false;  ///< or DADA
  std::int64_t n_channels = 1, n_inputs = 1;
  int bits = 8;  ///< of a part
  bool complex = true;
  Encoding encoding = Encoding::twos_complement;
  double sample_rate_hz = 0;     ///< of an input; spectra, of channels
  double center_hz = 0;          ///< of the band, of complex and real samples alike
  double bandwidth_hz = 0;       ///< negative: the spectrum runs downwards
  std::int64_t block_bytes = 0;  ///< of samples; GUPPI RAW: BLOCSIZE
  std::int64_t block_ticks = 0;  ///< without the overlap
  std::int64_t overlap_ticks = 0;
};
/// A header of HDR_SIZE bytes, then samples without end; or headers of cards with a block of
/// samples each. A header that says another shape than the observation is refused with the keys
/// that would fit it.
std::unique_ptr<StreamCutter> make_stream_cutter(const StreamShape& shape);

}  // namespace ryle
