// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/wire/packet.hpp"

// Datagrams of one fixed length that an observation file describes ([source.packet]): header
// fields, one counter that is linear in time, and a payload whose axes lie one inside the other.

namespace ryle::wire {

/// What a header field tells.
enum class FieldMeaning : std::uint8_t {
  sequence,       ///< the counter
  first_channel,  ///< number of the packet's first channel
  board,          ///< which of the senders of different inputs
  first_input,    ///< number of the packet's first input: board = number / inputs of a packet
  constant,       ///< the same in every packet: others are refused (HeaderField::reject)
  second,         ///< seconds before those that the counter counts in; several are added
  invalid,        ///< not 0: the sender says that the samples are none (Reject::sender_invalid)
  ignored,        ///< known, not looked at; written as 0
};

/// Bits [low_bit, low_bit + n_bits) of a word in the header.
struct HeaderField {
  FieldMeaning meaning = FieldMeaning::ignored;
  std::uint32_t offset = 0;  ///< of the word in the datagram
  int bytes = 8;             ///< of the word, 1 to 8
  bool big_endian = true;
  int low_bit = 0;
  int n_bits = 64;
  std::uint64_t base = 0;  ///< what the first is called: number = value - base
  std::int64_t step = 1;   ///< first_channel: channels a count, for fields that count blocks
  std::int64_t count = 0;  ///< how many numbers there are; 0: not told
  /// first_channel, board: numbers are dealt out k at a time: number v of n becomes
  /// (v mod k) n / k + v / k. 1 = as they are.
  std::int64_t interleave = 1;
  /// first_channel, board, second: what each value - base stands for; kNoNumber: nothing
  std::vector<std::uint64_t> map;
  std::vector<std::uint64_t> values;  ///< constant: those accepted; the first is written
  Reject reject = Reject::magic;      ///< constant: of packets with another value
};
/// In HeaderField::map: packets with this value are of a foreign stream, or of no time.
inline constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};

enum class Axis : std::uint8_t { channel, time, input, complex };
std::string_view name(Axis axis);

/// One axis of the payload. An axis may come several times: its index then has several digits, the
/// most significant first.
struct PayloadAxis {
  Axis axis = Axis::time;
  std::int64_t extent = 1;
  std::int64_t pad_bits = 0;  ///< that hold no sample, behind the last index
};

/// How a sample is written. Without a word its parts lie end to end in a stream of bits; the first
/// bit of a byte is its highest (msb_first: parts of 16 bits are big endian) or its lowest (little
/// endian). With one, a sample is a word and its parts are at re_shift and im_shift of it.
struct SampleCode {
  bool complex = true;
  int bits = 8;  ///< of a part, 1 to 16
  bool msb_first = true;
  bool re_first = true;
  Encoding encoding = Encoding::twos_complement;
  int word_bytes = 0;  ///< 0, 1, 2, 4, 8
  bool word_big_endian = false;
  int re_shift = 0, im_shift = 0;
  bool conjugate = false;  ///< imaginary parts are read, and written, with the other sign

  int n_parts() const { return complex ? 2 : 1; }
  /// From one sample to the next where nothing lies between.
  std::int64_t stride_bits() const { return word_bytes > 0 ? 8 * word_bytes : n_parts() * bits; }
};

/// A layout of datagrams. tick of a packet = count * ticks_per_count / counts_per_tick; a tick is
/// an instant of time samples, or a spectrum. count = counter - base, and with fields of seconds
///     count = seconds / period_s * counts_per_period + counter - base,
/// where a counter of counts_per_period or more is refused (Reject::field).
struct PacketDescription {
  std::uint32_t length = 0;  ///< of the datagram
  /// A block of a stream of bytes: longer than a datagram; its counter is not in the stream.
  bool is_block = false;
  std::vector<HeaderField> header;
  std::int64_t ticks_per_count = 1;
  std::int64_t counts_per_tick = 1;
  /// The counter counts from 1970-01-01 UTC (POSIX: leap seconds are not counted).
  bool counts_from_1970 = false;
  /// Instant of count 0 where the layout tells it, TAI; SI seconds are counted from there.
  std::optional<std::int64_t> zero_tai_ns;
  std::int64_t counts_per_period = 0;  ///< with fields of seconds: after so many the counter is 0
  std::int64_t period_s = 1;           ///< of the counter, whole seconds
  std::uint32_t payload_offset = 0;
  std::uint32_t trailer = 0;  ///< bytes behind the payload
  std::vector<PayloadAxis>
      order;  ///< outermost first; complex is left out where parts lie together
  SampleCode sample;

  /// Product of the extents of an axis; 1 where it does not come.
  std::int64_t extent(Axis axis) const;
  bool has(Axis axis) const;
  const HeaderField* field(FieldMeaning meaning) const;  ///< the first of its kind, or nullptr
  std::int64_t payload_bytes() const { return length - payload_offset - trailer; }
  /// Whether the payload holds channels of an F-engine; time samples otherwise.
  bool has_channels() const { return has(Axis::channel) || field(FieldMeaning::first_channel); }
  /// Packets tell their time: nothing of the configuration does.
  bool is_dated() const { return counts_from_1970 || zero_tai_ns.has_value(); }
  /// Counts from one packet of a stream to the next.
  std::int64_t counts_per_packet() const;
};

/// Throws ConfigError that names the field or key and says what would work: words beyond the
/// datagram, fields that overlap, extents that do not fill the payload, no counter, a counter that
/// packets do not step by whole counts.
void validate(const PacketDescription& description);

/// Which streams are taken; 0 = any (stream is then 0 along that axis).
struct DescribedGeometry {
  std::uint32_t first_channel = 0;
  std::uint32_t n_channels = 0;  ///< a multiple of those of a packet
  std::uint32_t n_boards = 0;
};

/// Decodes and encodes headers of a description. As the other codecs: pure, no allocation, no byte
/// read outside the span; only the constructor throws (validate()).
class DescribedCodec {
 public:
  DescribedCodec(const PacketDescription& description, const DescribedGeometry& geometry);

  /// Packet: stream = channel block * n_boards + board, tick_raw = count, tick_bits = width of the
  /// counter (64 with fields of seconds), flags = seconds beyond whole periods, n_ticks = time
  /// extent, channel, input = board * inputs of a packet. Refuses wrong lengths, constants (magic),
  /// counters below their base and channels beyond the map (field), other streams (foreign_stream).
  Reject decode(std::span<const std::byte> datagram, Packet& packet) const noexcept;
  /// Writes the datagram of packet.stream and packet.tick_raw; bytes written, or 0: does not fit.
  std::size_t encode(const Packet& packet, std::span<const std::byte> payload,
                     std::span<std::byte> out) const noexcept;
  /// Header and trailer alone: rewrites the counter of a datagram that encode() made.
  void set_counter(std::uint64_t tick_raw, std::span<std::byte> datagram) const noexcept;

  const PacketDescription& description() const { return description_; }
  std::uint32_t n_streams() const { return n_blocks_ * n_boards_; }
  std::uint32_t n_boards() const { return n_boards_; }
  std::uint32_t n_blocks() const { return n_blocks_; }

 private:
  /// A field that numbers something, and the way back from the number.
  struct Numbering {
    HeaderField field;
    std::vector<std::uint64_t> number;  // [value - base]; empty: as it is
    std::vector<std::uint64_t> value;   // [number], the inverse; kNone where there is none
    std::uint64_t radix = 0;            // boards: of this digit; 0 = any
  };
  static Numbering numbering(const HeaderField& field);
  static bool number_of(const Numbering& numbering, const std::byte* datagram,
                        std::uint64_t& number) noexcept;
  static bool value_of(const Numbering& numbering, std::uint64_t number,
                       std::uint64_t& value) noexcept;
  Reject find_stream(const std::byte* datagram, Packet& packet) const noexcept;
  Reject find_count(const std::byte* datagram, Packet& packet) const noexcept;

  PacketDescription description_;
  DescribedGeometry geometry_;
  std::uint32_t n_blocks_ = 1, n_boards_ = 1, inputs_ = 1, channels_ = 1;
  HeaderField counter_;
  std::vector<Numbering> seconds_;  // with a map first
  std::vector<HeaderField> invalid_;
  std::vector<HeaderField> constants_;
  std::vector<Numbering> channel_;  // none or one
  std::vector<Numbering> boards_;   // most significant first
};

/// The same as functions, as the codecs of other formats have them.
inline Reject decode(const DescribedCodec& codec, std::span<const std::byte> datagram,
                     Packet& packet) noexcept {
  return codec.decode(datagram, packet);
}
inline std::size_t encode(const DescribedCodec& codec, const Packet& packet,
                          std::span<const std::byte> payload, std::span<std::byte> out) noexcept {
  return codec.encode(packet, payload, out);
}

/// Value of a field of a datagram, as sent. @pre the datagram is not shorter than the description's
std::uint64_t field_value(const HeaderField& field, const std::byte* datagram) noexcept;

/// Where samples lie in the payload: the bit address of a part is a sum of what each index adds.
class PayloadMap {
 public:
  explicit PayloadMap(const PacketDescription& description);

  /// Integer value of a part (0 real, 1 imaginary), levels as +-1, +-3, +-10.
  int part(const std::byte* payload, std::int64_t channel, std::int64_t time, std::int64_t input,
           int part) const noexcept;
  /// Writes a part, clipped to its range. Levels: the nearest.
  void set_part(std::byte* payload, std::int64_t channel, std::int64_t time, std::int64_t input,
                int part, int value) const noexcept;

  /// Bits to the sample of an index along each axis, the others 0.
  std::span<const std::int64_t> bits(Axis axis) const {
    return offsets_[static_cast<std::size_t>(axis)];
  }
  const SampleCode& sample() const { return sample_; }

 private:
  int plain_part(const std::byte* payload, std::int64_t channel, std::int64_t time,
                 std::int64_t input, int part) const noexcept;
  std::uint32_t code(const std::byte* payload, std::int64_t bit, int part) const noexcept;
  void set_code(std::byte* payload, std::int64_t bit, int part, std::uint32_t code) const noexcept;
  std::int64_t address(std::int64_t channel, std::int64_t time, std::int64_t input,
                       int part) const noexcept;

  SampleCode sample_;
  std::array<std::vector<std::int64_t>, 4> offsets_;
};

}  // namespace ryle::wire
