// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/datagram_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ryle {
namespace {

using wire::Axis;
using wire::FieldMeaning;

std::string_view meaning_name(FieldMeaning meaning) {
  constexpr std::array<std::string_view, 6> kNames{"sequence",    "first_channel", "board",
                                                   "first_input", "constant",      "ignored"};
  return kNames[static_cast<std::size_t>(meaning)];
}

}  // namespace

std::string hex_bytes(std::span<const std::byte> bytes, std::size_t limit) {
  std::string text;
  for (std::size_t k = 0; k < std::min(bytes.size(), limit); ++k)
    text += fmt::format("{}{:02x}", k == 0 ? "" : " ", std::to_integer<int>(bytes[k]));
  return text + (bytes.size() > limit ? " ..." : "");
}

DatagramReport::DatagramReport(wire::DescribedCodec codec)
    : codec_(std::move(codec)), map_(codec_.description()) {}

std::string DatagramReport::reason(std::span<const std::byte> datagram, wire::Reject reject) const {
  const auto& d = codec_.description();
  if (reject == wire::Reject::too_short || reject == wire::Reject::too_long)
    return fmt::format("{} bytes, the description has length = {}", datagram.size(), d.length);
  for (const auto& f : d.header) {
    const std::uint64_t value = wire::field_value(f, datagram.data());
    const std::string what = fmt::format("{} at offset {}", meaning_name(f.meaning), f.offset);
    if (f.meaning == FieldMeaning::constant &&
        std::find(f.values.begin(), f.values.end(), value) == f.values.end())
      return fmt::format("{} is {} ({:#x}), the description has value = {} ({:#x})", what, value,
                         value, f.values.front(), f.values.front());
    if (f.meaning != FieldMeaning::constant && f.meaning != FieldMeaning::ignored && value < f.base)
      return fmt::format("{} is {}, below base = {}", what, value, f.base);
  }
  std::string text = "the observation does not take this stream:";
  for (const auto& f : d.header) {
    if (f.meaning == FieldMeaning::constant || f.meaning == FieldMeaning::ignored ||
        f.meaning == FieldMeaning::sequence)
      continue;
    text += fmt::format(" {} at offset {} is {};", meaning_name(f.meaning), f.offset,
                        wire::field_value(f, datagram.data()));
  }
  return text;
}

// Level and range over the parts of the payload: noise of an array has a few units of rms and no
// constant part; a wrong order of bytes, bits or signs shows.
std::string DatagramReport::samples(std::span<const std::byte> payload) const {
  const auto& d = codec_.description();
  double sum = 0, sum2 = 0, n = 0;
  int lowest = 1 << 16, highest = -(1 << 16);
  for (std::int64_t c = 0; c < d.extent(Axis::channel); ++c) {
    for (std::int64_t t = 0; t < d.extent(Axis::time); ++t) {
      for (std::int64_t i = 0; i < d.extent(Axis::input); ++i) {
        for (int part = 0; part < d.sample.n_parts(); ++part) {
          const int value = map_.part(payload.data(), c, t, i, part);
          sum += value;
          sum2 += static_cast<double>(value) * value;
          lowest = std::min(lowest, value);
          highest = std::max(highest, value);
          ++n;
        }
      }
    }
  }
  std::string first;
  for (std::int64_t t = 0; t < std::min<std::int64_t>(4, d.extent(Axis::time)); ++t) {
    first += fmt::format(" {}", map_.part(payload.data(), 0, t, 0, 0));
    if (d.sample.complex) first += fmt::format("{:+d}i", map_.part(payload.data(), 0, t, 0, 1));
  }
  return fmt::format("samples: mean {:.2f}, rms {:.2f}, {} to {}; input 0 begins{}", sum / n,
                     std::sqrt(sum2 / n), lowest, highest, first);
}

void DatagramReport::note_step(std::span<const std::byte> datagram, const wire::Packet& packet) {
  std::vector<std::uint64_t> stream;
  for (const auto& f : codec_.description().header) {
    if (f.meaning == FieldMeaning::first_channel || f.meaning == FieldMeaning::board ||
        f.meaning == FieldMeaning::first_input)
      stream.push_back(wire::field_value(f, datagram.data()));
  }
  const auto last = last_counter_.find(stream);
  if (last != last_counter_.end()) {
    const std::uint64_t mask =
        packet.tick_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << packet.tick_bits) - 1;
    ++steps_[(packet.tick_raw - last->second) & mask];
  }
  last_counter_[stream] = packet.tick_raw;
}

std::string DatagramReport::take(std::span<const std::byte> datagram) {
  const auto& d = codec_.description();
  ++lengths_[datagram.size()];
  wire::Packet packet;
  const wire::Reject reject = codec_.decode(datagram, packet);
  if (reject != wire::Reject::none) {
    const std::string word(wire::name(reject));
    ++rejected_[word];
    return fmt::format("rejected, {}: {}\n    {}", word, reason(datagram, reject),
                       hex_bytes(datagram, 32));
  }
  ++accepted_;
  note_step(datagram, packet);
  std::string text = fmt::format("counter {}", packet.tick_raw);
  const double tick = static_cast<double>(packet.tick_raw) *
                      static_cast<double>(d.ticks_per_count) /
                      static_cast<double>(d.counts_per_tick);
  text += fmt::format(" = tick {:.0f}", tick);
  if (d.has_channels())
    text +=
        fmt::format(", channels {} to {}", packet.channel, packet.channel + packet.n_channels - 1);
  text += fmt::format(", inputs {} to {}", packet.input, packet.input + packet.n_inputs - 1);
  for (const auto& f : d.header) {
    if (f.meaning == FieldMeaning::sequence || f.meaning == FieldMeaning::constant) continue;
    text += fmt::format(", {} {}", meaning_name(f.meaning), wire::field_value(f, datagram.data()));
  }
  return text + "\n    " + samples(datagram.subspan(packet.payload_offset, packet.payload_bytes));
}

std::uint64_t DatagramReport::rejected() const {
  std::uint64_t sum = 0;
  for (const auto& [reason, n] : rejected_) sum += n;
  return sum;
}

std::vector<std::string> DatagramReport::summary() const {
  const auto& d = codec_.description();
  std::vector<std::string> lines;
  std::string head = fmt::format("{} datagrams: {} accepted", accepted_ + rejected(), accepted_);
  for (const auto& [reason, n] : rejected_) head += fmt::format(", {} rejected ({})", n, reason);
  lines.push_back(head);
  if (lengths_.size() > 1 || (!lengths_.empty() && lengths_.begin()->first != d.length)) {
    std::string text = "lengths that came:";
    for (const auto& [bytes, n] : lengths_) text += fmt::format(" {} bytes ({} times)", bytes, n);
    lines.push_back(text + fmt::format("; the description has length = {}", d.length));
  }
  if (accepted_ == 0) return lines;
  lines.push_back(fmt::format("{} streams", last_counter_.size()));
  std::uint64_t usual = 0, times = 0;  // the step that came oftenest
  for (const auto& [step, n] : steps_) {
    if (n > times) usual = step;
    times = std::max(times, n);
  }
  const auto want = static_cast<std::uint64_t>(d.counts_per_packet());
  if (times > 0 && usual != want) {
    lines.push_back(
        fmt::format("the counter of a stream steps by {} from packet to packet, {} of {} times; "
                    "the description "
                    "says {} ({} ticks, ticks_per_count = {}, counts_per_tick = {})",
                    usual, times, accepted_ - last_counter_.size(), want, d.extent(Axis::time),
                    d.ticks_per_count, d.counts_per_tick));
  } else if (times > 0) {
    lines.push_back(fmt::format("the counter steps by {} as described, {} of {} times", want, times,
                                accepted_ - last_counter_.size()));
  }
  return lines;
}

}  // namespace ryle
