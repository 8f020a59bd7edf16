// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ryle/core/time.hpp"
#include "ryle/ingest/frame_samples.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/wire/packet.hpp"

// Files of frames that carry the second and their number in it, of any station and thread: VDIF and
// CODIF.

namespace ryle::detail {

/// What all frames of a file have in common.
struct FrameShape {
  std::int64_t frame_bytes = 0, header_bytes = 0;
  std::int64_t n_channels = 1;
  FrameCoding coding;
  std::int64_t n_samples =
      0;  ///< complete samples of a channel; 0 = the payload holds no whole one
  bool legacy = false;
  friend bool operator==(const FrameShape&, const FrameShape&) = default;
};

/// One header.
struct FrameHeader {
  FrameShape shape;
  bool invalid = false;
  std::int32_t reference_epoch = 0;  ///< half-years from 2000-01-01 UTC
  std::int64_t seconds = 0;          ///< SI seconds from it, of the start of the period
  std::int64_t frame = 0;            ///< in the period
  std::int64_t period_s = 1;
  Rational rate_hz{0, 1};  ///< complete samples a second of a channel; 0 = not in the header
  std::uint32_t station = 0, group = 0, thread = 0;
  std::uint32_t extension = 0;           ///< EDV
  std::uint64_t valid_channels = ~0ULL;  ///< bit k: channels [k, k + 1) n_channels / n_valid_bits
  std::int64_t n_valid_bits = 1;
  char sideband = ' ';   ///< U, L; blank = not in the header
  double tuning_hz = 0;  ///< of the converter, not of the sky; 0 = not in the header

  bool channel_valid(std::int64_t channel) const {
    return (valid_channels >> (channel * n_valid_bits / shape.n_channels) & 1) != 0;
  }
};

/// A format of frames.
struct FrameFormat {
  const char* name = "";          ///< as in RecordingInfo::format
  const char* title = "";         ///< as in messages
  std::int64_t header_bytes = 0;  ///< of the longest header
  /// Fields of a header; none of them is judged but what frame lengths need.
  wire::Reject (*parse)(std::span<const std::byte> start, FrameHeader& header) = nullptr;
};

/// Throws FormatError when the file has no usable frame, and ConfigError for options that do not
/// fit.
std::unique_ptr<Recording> open_frames(const std::string& path, const FrameFormat& format,
                                       const RecordingOptions& options);
/// Whether two headers one frame apart agree, or one frame is the whole file.
bool looks_like_frames(const std::string& path, const FrameFormat& format);

extern const FrameFormat kVdifFormat;
extern const FrameFormat kCodifFormat;

}  // namespace ryle::detail
