// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/wire/described.hpp"

// Standard formats as descriptions (described.hpp): whatever reads described packets reads them.

namespace ryle::wire {

/// What an observation says of frames of VDIF or CODIF, or of a stream of DADA or GUPPI RAW.
struct FrameLayout {
  bool complex = false;
  int bits = 8;  ///< of a part, 1 to 16
  Encoding encoding = Encoding::offset_binary;
  std::int64_t n_channels = 1;  ///< of a frame; of real samples they are inputs
  bool conjugate = false;       ///< the spectrum of each channel runs downwards

  /// VDIF: of a frame with its header. CODIF: the same. GUPPI RAW: of a block (BLOCSIZE).
  std::int64_t frame_bytes = 0;
  std::int64_t prefix_bytes = 0;       ///< VDIF, CODIF: of each packet, before the frame
  bool legacy = false;                 ///< VDIF: headers of 16 bytes
  std::vector<std::int64_t> threads;   ///< VDIF, CODIF: their inputs follow in this order
  std::vector<std::int64_t> stations;  ///< all threads of the first, of the second, ...; empty: any
  std::int64_t samples_per_period = 0;  ///< VDIF, CODIF: of an input (spectra, of channels)
  std::int64_t period_s = 1;            ///< CODIF
  /// Seconds from epoch 0 (2000-01-01 UTC) to each of the reference epochs, and its TAI.
  std::vector<std::uint64_t> epoch_seconds;
  std::int64_t epoch_zero_tai_ns = 0;

  std::int64_t n_inputs = 1;         ///< DADA, GUPPI RAW: of a stream
  std::string axis_order;            ///< "TFP", "PFT256", ...; "" = that of the format
  std::int64_t overlap_samples = 0;  ///< GUPPI RAW: at the end of a block, sent again in the next
};

/// Little-endian frames with a header of 8 (legacy 4) words; samples begin in the lowest bits, none
/// crosses a word of 32 bits. Several channels are inputs where samples are real, spectra where
/// they are complex. Refused: other lengths (too_short, too_long, length), other bits, channels,
/// kinds (field), threads and stations that are not listed (foreign_stream), frames marked invalid
/// (sender_invalid). Throws ConfigError for what does not fill a frame, and for frames that a
/// second has no whole number of.
PacketDescription vdif_packet(const FrameLayout& layout);
/// As VDIF with a header of 64 bytes and a counter that begins again every period_s; another group
/// than 0 is a foreign stream. Representation 0 is offset binary, 1 two's complement.
PacketDescription codif_packet(const FrameLayout& layout);

/// A stream of DADA cut into blocks, [time][channel][input] unless axis_order says otherwise. The
/// counter, of ticks, is given by whoever cuts.
PacketDescription dada_block(const FrameLayout& layout);
/// A block of GUPPI RAW, [antenna][channel][time][polarization] or, as "TFP",
/// [antenna][time][channel][polarization].
PacketDescription guppi_block(const FrameLayout& layout);

/// Number of a VDIF station: two characters are an identifier ("Ef", the first in the high byte),
/// else it is a number ("17", "0x11"). Throws ConfigError.
std::int64_t vdif_station(const std::string& text);

}  // namespace ryle::wire
