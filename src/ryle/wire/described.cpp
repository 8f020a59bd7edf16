// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/described.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/wire/bytes.hpp"

namespace ryle::wire {
namespace {

// 544 years: the products with counts below stay in 64 bits.
constexpr std::uint64_t kMaxSeconds = std::uint64_t{1} << 34;

std::uint64_t low_mask(int bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

std::uint64_t load_word(const std::byte* from, int bytes, bool big_endian) noexcept {
  if (bytes == 8) return big_endian ? load_be<std::uint64_t>(from) : load_le<std::uint64_t>(from);
  std::uint64_t word = 0;
  for (int k = 0; k < bytes; ++k) {
    const int place = big_endian ? bytes - 1 - k : k;
    word |= std::to_integer<std::uint64_t>(from[k]) << (8 * place);
  }
  return word;
}

void store_word(std::byte* to, int bytes, bool big_endian, std::uint64_t word) noexcept {
  for (int k = 0; k < bytes; ++k) {
    const int place = big_endian ? bytes - 1 - k : k;
    to[k] = std::byte((word >> (8 * place)) & 255);
  }
}

/// Puts a value into the bits of its field and leaves the others.
void store_field(const HeaderField& f, std::byte* datagram, std::uint64_t value) noexcept {
  const std::uint64_t mask = low_mask(f.n_bits) << f.low_bit;
  const std::uint64_t word = load_word(datagram + f.offset, f.bytes, f.big_endian);
  store_word(datagram + f.offset, f.bytes, f.big_endian,
             (word & ~mask) | ((value << f.low_bit) & mask));
}

}  // namespace

std::string_view name(Axis axis) {
  constexpr std::array<std::string_view, 4> kNames{"channel", "time", "input", "complex"};
  return kNames[static_cast<std::size_t>(axis)];
}

std::int64_t PacketDescription::extent(Axis axis) const {
  std::int64_t product = 1;
  for (const auto& a : order) product *= a.axis == axis ? a.extent : 1;
  return product;
}

bool PacketDescription::has(Axis axis) const {
  return std::ranges::any_of(order, [axis](const PayloadAxis& a) { return a.axis == axis; });
}

const HeaderField* PacketDescription::field(FieldMeaning meaning) const {
  const auto found = std::ranges::find_if(
      header, [meaning](const HeaderField& f) { return f.meaning == meaning; });
  return found == header.end() ? nullptr : &*found;
}

std::int64_t PacketDescription::counts_per_packet() const {
  return extent(Axis::time) * counts_per_tick / ticks_per_count;
}

std::uint64_t field_value(const HeaderField& f, const std::byte* datagram) noexcept {
  return load_word(datagram + f.offset, f.bytes, f.big_endian) >> f.low_bit & low_mask(f.n_bits);
}

DescribedCodec::Numbering DescribedCodec::numbering(const HeaderField& field) {
  Numbering n;
  n.field = field;
  if (!field.map.empty()) {
    n.number = field.map;
  } else if (field.interleave > 1) {
    const auto k = static_cast<std::uint64_t>(field.interleave);
    const auto count = static_cast<std::uint64_t>(field.count);
    for (std::uint64_t v = 0; v < count; ++v) n.number.push_back(v % k * (count / k) + v / k);
  }
  if (field.meaning == FieldMeaning::second) return n;  // not dense: there is no table back
  for (std::uint64_t v = 0; v < n.number.size(); ++v) {
    const std::uint64_t number = n.number[v];
    if (number == kNoNumber) continue;
    if (number >= n.value.size()) n.value.resize(number + 1, kNoNumber);
    n.value[number] = v;
  }
  return n;
}

DescribedCodec::DescribedCodec(const PacketDescription& description,
                               const DescribedGeometry& geometry)
    : description_(description), geometry_(geometry) {
  validate(description_);
  channels_ = static_cast<std::uint32_t>(description_.extent(Axis::channel));
  inputs_ = static_cast<std::uint32_t>(description_.extent(Axis::input));
  n_boards_ = std::max(1u, geometry.n_boards);
  if (geometry.n_channels > 0) n_blocks_ = geometry.n_channels / channels_;
  std::uint64_t below = 1;
  for (const auto& f : description_.header) {
    switch (f.meaning) {
      case FieldMeaning::sequence:
        counter_ = f;
        break;
      case FieldMeaning::constant:
        constants_.push_back(f);
        break;
      case FieldMeaning::second:
        seconds_.insert(f.map.empty() ? seconds_.end() : seconds_.begin(), numbering(f));
        break;
      case FieldMeaning::invalid:
        invalid_.push_back(f);
        break;
      case FieldMeaning::first_channel:
        channel_.push_back(numbering(f));
        break;
      case FieldMeaning::board:
      case FieldMeaning::first_input:
        boards_.push_back(numbering(f));
        below *= boards_.size() > 1 ? static_cast<std::uint64_t>(f.count) : 1;
        boards_.back().radix = static_cast<std::uint64_t>(f.count);
        break;
      case FieldMeaning::ignored:
        break;
    }
  }
  // The first digit is not told: it is what the others leave of the boards that are taken.
  if (!boards_.empty() && geometry.n_boards > 0)
    boards_.front().radix = std::max<std::uint64_t>(1, geometry.n_boards / below);
}

bool DescribedCodec::number_of(const Numbering& n, const std::byte* datagram,
                               std::uint64_t& number) noexcept {
  const std::uint64_t sent = field_value(n.field, datagram);
  if (sent < n.field.base) return false;
  number = sent - n.field.base;
  if (n.number.empty()) return true;
  if (number >= n.number.size()) return false;
  number = n.number[number];
  return true;
}

bool DescribedCodec::value_of(const Numbering& n, std::uint64_t number,
                              std::uint64_t& value) noexcept {
  value = number;
  if (!n.number.empty()) {
    if (number >= n.value.size() || n.value[number] == kNoNumber) return false;
    value = n.value[number];
  }
  value += n.field.base;
  return value <= low_mask(n.field.n_bits);
}

Reject DescribedCodec::find_stream(const std::byte* datagram, Packet& packet) const noexcept {
  std::uint64_t block = 0, board = 0, number = 0;
  packet.channel = geometry_.first_channel;
  if (!channel_.empty()) {
    const Numbering& n = channel_.front();
    if (!number_of(n, datagram, number)) return Reject::field;
    const auto step = static_cast<std::uint64_t>(n.field.step);
    // Not number * step first: it may wrap.
    if (number > std::numeric_limits<std::uint32_t>::max() / step) return Reject::foreign_stream;
    packet.channel = static_cast<std::uint32_t>(number * step);
    if (geometry_.n_channels > 0) {
      if (packet.channel < geometry_.first_channel) return Reject::foreign_stream;
      const std::uint32_t distance = packet.channel - geometry_.first_channel;
      block = distance / channels_;
      if (distance % channels_ != 0 || block >= n_blocks_) return Reject::foreign_stream;
    }
  }
  for (const auto& n : boards_) {
    if (!number_of(n, datagram, number)) return Reject::field;
    if (number == kNoNumber) return Reject::foreign_stream;
    if (n.field.meaning == FieldMeaning::first_input) {
      if (number % inputs_ != 0) return Reject::foreign_stream;
      number /= inputs_;
    }
    if (n.radix > 0 && number >= n.radix) return Reject::foreign_stream;
    board = board * std::max<std::uint64_t>(1, n.radix) + number;
  }
  if (geometry_.n_boards == 0) board = 0;
  packet.stream = static_cast<std::uint32_t>(block * n_boards_ + board);
  packet.input = static_cast<std::uint32_t>(board * inputs_);
  return Reject::none;
}

Reject DescribedCodec::find_count(const std::byte* datagram, Packet& packet) const noexcept {
  const std::uint64_t counter = field_value(counter_, datagram);
  if (counter < counter_.base) return Reject::field;
  packet.tick_raw = counter - counter_.base;
  packet.tick_bits = static_cast<std::uint8_t>(counter_.n_bits);
  if (seconds_.empty()) return Reject::none;
  const auto per_period = static_cast<std::uint64_t>(description_.counts_per_period);
  if (packet.tick_raw >= per_period) return Reject::field;
  std::uint64_t seconds = 0, number = 0;
  for (const auto& n : seconds_) {
    if (!number_of(n, datagram, number) || number == kNoNumber || number > kMaxSeconds)
      return Reject::field;
    seconds += number;
  }
  const auto period_s = static_cast<std::uint64_t>(description_.period_s);
  packet.tick_raw += seconds / period_s * per_period;
  packet.flags = static_cast<std::uint32_t>(seconds % period_s);
  packet.tick_bits = 64;
  return Reject::none;
}

Reject DescribedCodec::decode(std::span<const std::byte> datagram, Packet& packet) const noexcept {
  if (datagram.size() < description_.length) return Reject::too_short;
  if (datagram.size() > description_.length) return Reject::too_long;
  const std::byte* p = datagram.data();
  for (const auto& c : constants_) {
    const std::uint64_t value = field_value(c, p);
    if (std::find(c.values.begin(), c.values.end(), value) == c.values.end()) return c.reject;
  }
  Packet found;
  if (const Reject r = find_count(p, found); r != Reject::none) return r;
  if (const Reject r = find_stream(p, found); r != Reject::none) return r;
  for (const auto& f : invalid_) {
    if (field_value(f, p) != 0) return Reject::sender_invalid;
  }
  found.n_ticks = static_cast<std::uint32_t>(description_.extent(Axis::time));
  found.n_channels = channels_;
  found.n_inputs = inputs_;
  found.payload_offset = description_.payload_offset;
  found.payload_bytes = static_cast<std::uint32_t>(description_.payload_bytes());
  packet = found;
  return Reject::none;
}

void DescribedCodec::set_counter(std::uint64_t tick_raw,
                                 std::span<std::byte> datagram) const noexcept {
  if (seconds_.empty()) return store_field(counter_, datagram.data(), tick_raw + counter_.base);
  const auto per_period = static_cast<std::uint64_t>(description_.counts_per_period);
  store_field(counter_, datagram.data(), tick_raw % per_period + counter_.base);
  std::uint64_t seconds = tick_raw / per_period * static_cast<std::uint64_t>(description_.period_s);
  for (const auto& n : seconds_) {
    std::uint64_t value = seconds;
    if (!n.number.empty()) {
      // As many of the seconds as one of its values stands for.
      value = 0;
      for (std::uint64_t v = 0; v < n.number.size(); ++v) {
        if (n.number[v] <= seconds && n.number[v] >= n.number[value]) value = v;
      }
      seconds -= std::min(seconds, n.number[value]);
    } else {
      seconds = 0;
    }
    store_field(n.field, datagram.data(), value + n.field.base);
  }
}

std::size_t DescribedCodec::encode(const Packet& packet, std::span<const std::byte> payload,
                                   std::span<std::byte> out) const noexcept {
  if (packet.stream >= n_streams() || out.size() < description_.length) return 0;
  if (payload.size() != static_cast<std::size_t>(description_.payload_bytes())) return 0;
  std::byte* p = out.data();
  std::memset(p, 0, description_.payload_offset);
  std::memcpy(p + description_.payload_offset, payload.data(), payload.size());
  std::memset(p + description_.length - description_.trailer, 0, description_.trailer);
  for (const auto& c : constants_) store_field(c, p, c.values.front());
  std::uint64_t value = 0;
  if (!channel_.empty()) {
    const std::uint64_t channel =
        geometry_.first_channel + std::uint64_t{packet.stream / n_boards_} * channels_;
    const Numbering& n = channel_.front();
    const auto step = static_cast<std::uint64_t>(n.field.step);
    if (channel % step != 0 || !value_of(n, channel / step, value)) return 0;
    store_field(n.field, p, value);
  }
  std::uint64_t board = packet.stream % n_boards_;
  for (auto n = boards_.rbegin(); n != boards_.rend(); ++n) {
    const std::uint64_t radix = std::max<std::uint64_t>(1, n->radix);
    std::uint64_t number = board % radix;
    board /= radix;
    if (n->field.meaning == FieldMeaning::first_input) number *= inputs_;
    if (!value_of(*n, number, value)) return 0;
    store_field(n->field, p, value);
  }
  set_counter(packet.tick_raw, out);
  return description_.length;
}

PayloadMap::PayloadMap(const PacketDescription& d) : sample_(d.sample) {
  const bool apart = d.has(Axis::complex);  // parts are an axis of their own
  std::int64_t stride = apart ? sample_.bits : sample_.stride_bits();
  for (auto& o : offsets_) o.assign(1, 0);
  for (auto a = d.order.rbegin(); a != d.order.rend(); ++a) {
    auto& o = offsets_[static_cast<std::size_t>(a->axis)];
    // A digit further out: the table so far, once for each of its values.
    const std::vector<std::int64_t> inner = o;
    o.clear();
    for (std::int64_t k = 0; k < a->extent; ++k) {
      for (const auto bit : inner) o.push_back(bit + k * stride);
    }
    stride = stride * a->extent + a->pad_bits;
  }
  auto& parts = offsets_[static_cast<std::size_t>(Axis::complex)];
  if (!apart && sample_.complex) parts = {0, sample_.word_bytes > 0 ? 0 : sample_.bits};
  if (!sample_.re_first) std::reverse(parts.begin(), parts.end());
}

std::int64_t PayloadMap::address(std::int64_t channel, std::int64_t time, std::int64_t input,
                                 int part) const noexcept {
  return offsets_[0][channel] + offsets_[1][time] + offsets_[2][input] + offsets_[3][part];
}

std::uint32_t PayloadMap::code(const std::byte* payload, std::int64_t bit,
                               int part) const noexcept {
  const auto mask = static_cast<std::uint32_t>(low_mask(sample_.bits));
  const std::byte* at = payload + bit / 8;
  if (sample_.word_bytes > 0) {
    const std::uint64_t word = load_word(at, sample_.word_bytes, sample_.word_big_endian);
    return static_cast<std::uint32_t>(word >> (part == 0 ? sample_.re_shift : sample_.im_shift)) &
           mask;
  }
  const int within = static_cast<int>(bit % 8);
  const int n_bytes = (within + sample_.bits + 7) / 8;
  const auto word = static_cast<std::uint32_t>(load_word(at, n_bytes, sample_.msb_first));
  const int shift = sample_.msb_first ? 8 * n_bytes - within - sample_.bits : within;
  return word >> shift & mask;
}

void PayloadMap::set_code(std::byte* payload, std::int64_t bit, int part,
                          std::uint32_t code) const noexcept {
  const std::uint64_t mask = low_mask(sample_.bits);
  std::byte* at = payload + bit / 8;
  int n_bytes = sample_.word_bytes, shift = part == 0 ? sample_.re_shift : sample_.im_shift;
  bool big_endian = sample_.word_big_endian;
  if (n_bytes == 0) {
    const int within = static_cast<int>(bit % 8);
    n_bytes = (within + sample_.bits + 7) / 8;
    big_endian = sample_.msb_first;
    shift = big_endian ? 8 * n_bytes - within - sample_.bits : within;
  }
  const std::uint64_t word = load_word(at, n_bytes, big_endian);
  store_word(at, n_bytes, big_endian, (word & ~(mask << shift)) | (code & mask) << shift);
}

int PayloadMap::part(const std::byte* payload, std::int64_t channel, std::int64_t time,
                     std::int64_t input, int part) const noexcept {
  const int value = plain_part(payload, channel, time, input, part);
  if (!sample_.conjugate || part == 0) return value;
  // Minus the lowest value does not exist.
  return sample_.encoding == Encoding::levels ? -value
                                              : std::min((1 << (sample_.bits - 1)) - 1, -value);
}

int PayloadMap::plain_part(const std::byte* payload, std::int64_t channel, std::int64_t time,
                           std::int64_t input, int part) const noexcept {
  const std::uint32_t c = code(payload, address(channel, time, input, part), part);
  const int half = 1 << (sample_.bits - 1);
  switch (sample_.encoding) {
    case Encoding::levels:
      if (sample_.bits == 1) return c != 0 ? 1 : -1;
      return std::array{-10, -3, 3, 10}[c & 3];
    case Encoding::offset_binary:
      return static_cast<int>(c) - half;
    case Encoding::twos_complement:
      break;
  }
  return (static_cast<int>(c) ^ half) - half;
}

void PayloadMap::set_part(std::byte* payload, std::int64_t channel, std::int64_t time,
                          std::int64_t input, int part, int value) const noexcept {
  const int half = 1 << (sample_.bits - 1);
  if (sample_.conjugate && part == 1) value = -value;
  const int clipped = std::clamp(value, -half, half - 1);
  auto code = static_cast<std::uint32_t>(clipped);
  if (sample_.encoding == Encoding::offset_binary)
    code = static_cast<std::uint32_t>(clipped + half);
  if (sample_.encoding == Encoding::levels) {
    code = sample_.bits == 1 ? (value >= 0 ? 1u : 0u)
                             : (value < -6   ? 0u
                                : value < 0  ? 1u
                                : value <= 6 ? 2u
                                             : 3u);
  }
  set_code(payload, address(channel, time, input, part), part, code);
}

}  // namespace ryle::wire
