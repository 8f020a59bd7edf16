// SPDX-License-Identifier: BSD-3-Clause
// Headers of VDIF frames (ingest.md 2.6) as those of a file of frames.
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_frames.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/vdif.hpp"

namespace ryle::detail {
namespace {

constexpr std::uint32_t kExtensionSync = 0xACABFEED;

// What extended data say beyond the sample rate: EDV 3 the sideband and the tuning of its
// converter, in 2^-24 MHz; EDV 4 which channels, or groups of channels, are valid.
void read_extension(std::span<const std::byte> start, FrameHeader& header) {
  const auto word = [&](std::size_t k) {
    return wire::load_le<std::uint32_t>(start.data() + 4 * k);
  };
  if (word(5) != kExtensionSync) return;
  if (header.extension == 3) {
    header.sideband = (word(7) >> 16 & 1) != 0 ? 'U' : 'L';
    header.tuning_hz = word(6) * (1e6 / 16777216.0);
  }
  if (header.extension == 4) {
    const std::int64_t n_bits = word(4) >> 16 & 0xFF;
    if (n_bits < 1 || n_bits > 64 || header.shape.n_channels % n_bits != 0) return;
    header.n_valid_bits = n_bits;
    header.valid_channels = std::uint64_t{word(7)} << 32 | word(6);
  }
}

wire::Reject parse_vdif(std::span<const std::byte> start, FrameHeader& header) {
  wire::VdifHeader h;
  if (const auto reject = wire::parse_vdif_header(start, h); reject != wire::Reject::none)
    return reject;
  header = FrameHeader{};
  header.shape = {h.frame_bytes,       static_cast<std::int64_t>(h.header_bytes()),
                  h.n_channels,        {h.bits, h.complex, false},
                  h.samples_per_frame, h.legacy};
  header.invalid = h.invalid;
  header.reference_epoch = static_cast<std::int32_t>(h.reference_epoch);
  header.seconds = h.seconds;
  header.frame = h.frame;
  header.rate_hz = {static_cast<std::int64_t>(h.sample_rate_hz), 1};
  header.station = h.station;
  header.thread = h.thread;
  header.extension = h.edv;
  if (!h.legacy) read_extension(start, header);
  return wire::Reject::none;
}

}  // namespace

const FrameFormat kVdifFormat{"vdif", "VDIF", wire::kVdifHeaderBytes, parse_vdif};

std::unique_ptr<Recording> open_vdif(const std::string& path, const RecordingOptions& options) {
  return open_frames(path, kVdifFormat, options);
}

}  // namespace ryle::detail
