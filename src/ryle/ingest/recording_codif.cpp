// SPDX-License-Identifier: BSD-3-Clause
// Headers of CODIF frames, version 2 and above: eight little-endian words of 64 bits. The frame
// number counts from the start of a period of whole seconds, in which there is a whole number of
// samples, so that oversampled rates (32/27 MHz) are exact.
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_frames.hpp"
#include "ryle/wire/bytes.hpp"

namespace ryle::detail {
namespace {

constexpr std::int64_t kCodifHeaderBytes = 64;
constexpr std::uint32_t kCodifSync = 0xFEEDCAFE;
constexpr std::int64_t kMaxArrayBytes = std::int64_t{1} << 27;

wire::Reject parse_codif(std::span<const std::byte> start, FrameHeader& header) {
  if (start.size() < static_cast<std::size_t>(kCodifHeaderBytes)) return wire::Reject::too_short;
  const std::byte* p = start.data();
  const auto byte = [&](std::size_t k) { return static_cast<std::uint32_t>(p[k]); };
  const auto word16 = [&](std::size_t k) { return wire::load_le<std::uint16_t>(p + k); };
  const auto word32 = [&](std::size_t k) { return wire::load_le<std::uint32_t>(p + k); };
  if (word32(40) != kCodifSync) return wire::Reject::magic;
  const std::int64_t array_bytes = std::int64_t{word32(28)} * 8;
  if (array_bytes == 0 || array_bytes > kMaxArrayBytes) return wire::Reject::length;
  const std::uint32_t flags = byte(10), code = flags >> 4;
  const bool power = (flags & 1) != 0;
  // Powers are no voltages; codes other than offset binary and two's complement are not known.
  if (power || code > 1 || word16(24) == 0) return wire::Reject::field;
  header = FrameHeader{};
  auto& s = header.shape;
  s.header_bytes = kCodifHeaderBytes;
  s.frame_bytes = kCodifHeaderBytes + array_bytes;
  s.n_channels = word16(24);
  s.coding = {byte(9), (flags & 4) != 0, code == 1};
  const std::int64_t sample_bits =
      s.n_channels * s.coding.bits * (s.coding.complex ? 2 : 1);  // of all channels
  const std::int64_t block_bits = std::int64_t{word16(26)} * 64;
  // A block that is no whole number of samples is padded: no rule says where.
  const bool whole = sample_bits > 0 && array_bytes * 8 % sample_bits == 0 &&
                     (block_bits == 0 || block_bits % sample_bits == 0);
  const bool in_words = s.coding.bits == 1 || s.coding.bits == 2 || s.coding.bits == 4 ||
                        s.coding.bits == 8 || s.coding.bits == 16;
  s.n_samples = whole && in_words ? array_bytes * 8 / sample_bits : 0;
  header.invalid = (flags & 2) != 0;
  header.reference_epoch = static_cast<std::int32_t>(byte(8));
  header.seconds = word32(4);
  header.frame = word32(0);
  const auto n_in_period = wire::load_le<std::uint64_t>(p + 32);
  if (word16(14) != 0 && n_in_period != 0 && n_in_period < std::uint64_t{1} << 56) {
    header.period_s = word16(14);
    header.rate_hz = Rational{static_cast<std::int64_t>(n_in_period), header.period_s}.reduced();
  }
  header.thread = word16(16);
  header.group = word16(18);
  header.station = word16(22);
  header.extension = word16(44);
  return wire::Reject::none;
}

}  // namespace

const FrameFormat kCodifFormat{"codif", "CODIF", kCodifHeaderBytes, parse_codif};

std::unique_ptr<Recording> open_codif(const std::string& path, const RecordingOptions& options) {
  return open_frames(path, kCodifFormat, options);
}

}  // namespace ryle::detail
