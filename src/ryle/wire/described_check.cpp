// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/wire/described.hpp"

namespace ryle::wire {
namespace {

constexpr std::uint32_t kMaxDatagramBytes = 65507;  // UDP over IPv4
constexpr std::uint32_t kMaxBlockBytes = 1u << 30;  // of a stream of bytes

void require(bool good, const std::string& message) {
  if (!good) throw ConfigError(message);
}

std::string field_text(const HeaderField& f) {
  constexpr std::array<const char*, 8> kNames{"sequence", "first_channel", "board",   "first_input",
                                              "constant", "second",        "invalid", "ignored"};
  return "header field \"" + std::string(kNames[static_cast<std::size_t>(f.meaning)]) +
         "\" at offset " + std::to_string(f.offset);
}

void check_word(const PacketDescription& d, const HeaderField& f) {
  const std::string what = field_text(f);
  require(f.bytes >= 1 && f.bytes <= 8, what + ": a word has 1 to 8 bytes");
  const std::uint64_t end = std::uint64_t{f.offset} + static_cast<std::uint64_t>(f.bytes);
  require(end <= d.length, what + " ends at byte " + std::to_string(end) +
                               ", the datagram has length = " + std::to_string(d.length));
  require(f.low_bit >= 0 && f.n_bits >= 1 && f.low_bit + f.n_bits <= 8 * f.bytes,
          what + ": bits " + std::to_string(f.low_bit + f.n_bits - 1) + " to " +
              std::to_string(f.low_bit) + " are not in a word of " + std::to_string(8 * f.bytes));
  const std::int64_t payload_end = d.length - d.trailer;
  require(end <= d.payload_offset || f.offset >= payload_end,
          what + " lies in the payload, bytes " + std::to_string(d.payload_offset) + " to " +
              std::to_string(payload_end - 1));
}

void check_meaning(const PacketDescription& d, const HeaderField& f) {
  const std::string what = field_text(f);
  if (f.meaning == FieldMeaning::constant) {
    require(!f.values.empty(), what + ": give value, what it always holds");
    for (const auto v : f.values)
      require(f.n_bits == 64 || v >> f.n_bits == 0, what + ": value " + std::to_string(v) +
                                                        " does not fit " +
                                                        std::to_string(f.n_bits) + " bits");
    return;
  }
  require(f.values.empty(), what + ": value belongs to field = \"constant\"");
  const bool numbers = f.meaning == FieldMeaning::first_channel || f.meaning == FieldMeaning::board;
  require(numbers || f.interleave == 1, what + ": interleave belongs to first_channel and board");
  if (f.meaning == FieldMeaning::second) {
    constexpr std::uint64_t kLimit_s = std::uint64_t{1} << 34;
    for (const auto s : f.map)
      require(s == kNoNumber || s < kLimit_s, what + ": seconds of map are below 2^34");
    return;
  }
  require(numbers || f.map.empty(), what + ": map belongs to first_channel, board and second");
  require(f.map.empty() || f.interleave == 1, what + ": give map or interleave, not both");
  require(f.step >= 1 && (f.step == 1 || f.meaning == FieldMeaning::first_channel),
          what + ": step belongs to first_channel and is at least 1");
  constexpr std::int64_t kMaxNumbers = std::int64_t{1} << 32;
  require(f.count >= 0 && f.step <= kMaxNumbers && f.count <= kMaxNumbers / f.step,
          what + ": count = " + std::to_string(f.count) + ", step = " + std::to_string(f.step) +
              ": their product is 0 to 4294967296");
  require(f.interleave == 1 || (f.interleave > 1 && f.count > 0 && f.count % f.interleave == 0 &&
                                f.count <= 1 << 20),
          what + ": interleave = " + std::to_string(f.interleave) +
              " needs count, how many numbers there are: a multiple of it");
  auto sorted = f.map;
  std::erase(sorted, kNoNumber);
  std::sort(sorted.begin(), sorted.end());
  require(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
          what + ": two values of map are the same: each number belongs to one");
  require(sorted.empty() || sorted.back() < 1 << 20, what + ": numbers of map are below 1048576");
  if (f.meaning == FieldMeaning::first_input)
    require(d.has(Axis::input), what + ": the payload has no axis \"input\"");
}

/// Every bit of the datagram belongs to one field.
void check_overlaps(const PacketDescription& d) {
  std::map<std::uint32_t, std::array<const HeaderField*, 8>> owner;
  for (const auto& f : d.header) {
    if (f.meaning == FieldMeaning::ignored) continue;
    for (int bit = f.low_bit; bit < f.low_bit + f.n_bits; ++bit) {
      const int place = f.big_endian ? f.bytes - 1 - bit / 8 : bit / 8;
      auto& cell = owner[f.offset + static_cast<std::uint32_t>(place)][bit % 8];
      if (cell != nullptr)
        throw ConfigError(field_text(f) + " overlaps " + field_text(*cell) + " in byte " +
                          std::to_string(f.offset + static_cast<std::uint32_t>(place)));
      cell = &f;
    }
  }
}

void check_sample(const SampleCode& s) {
  require(s.bits >= 1 && s.bits <= 16, "payload.sample: a part has 1 to 16 bits");
  require(s.encoding != Encoding::levels || s.bits <= 2,
          "payload.levels: levels are of 1 and 2 bits");
  if (s.word_bytes == 0) return;
  const int word = 8 * s.word_bytes;
  const bool fits = s.re_shift >= 0 && s.re_shift + s.bits <= word &&
                    (!s.complex || (s.im_shift >= 0 && s.im_shift + s.bits <= word));
  require(fits, "payload.word: parts of " + std::to_string(s.bits) + " bits at re_shift " +
                    std::to_string(s.re_shift) + " and im_shift " + std::to_string(s.im_shift) +
                    " are not in " + std::to_string(word) + " bits");
  require(!s.complex || s.re_shift + s.bits <= s.im_shift || s.im_shift + s.bits <= s.re_shift,
          "payload.word: real and imaginary part overlap; set re_shift and im_shift");
}

void check_payload(const PacketDescription& d) {
  check_sample(d.sample);
  require(std::uint64_t{d.payload_offset} + d.trailer < d.length,
          "payload.offset = " + std::to_string(d.payload_offset) + " and payload.trailer = " +
              std::to_string(d.trailer) + " leave nothing of length = " + std::to_string(d.length));
  require(d.has(Axis::time) || d.has(Axis::channel) || d.has(Axis::input),
          "payload.order is empty; outermost axis first, for example [\"time\", \"input\"]");
  const bool apart = d.has(Axis::complex);
  std::int64_t samples = 1, bits = apart ? d.sample.bits : d.sample.stride_bits();
  for (auto a = d.order.rbegin(); a != d.order.rend(); ++a) {
    require(a->extent >= 1,
            "payload.extents: " + std::string(name(a->axis)) + " must be at least 1");
    if (a->axis != Axis::complex)
      samples = checked_product({samples, a->extent}, "payload.extents");
    bits = checked_product({bits, a->extent}, "payload.extents") + a->pad_bits;
  }
  require(!apart || d.sample.complex,
          "payload.order has \"complex\", payload.sample is real; a complex one is \"ci8\"");
  require(!apart || d.extent(Axis::complex) == 2, "payload.order has \"complex\" more than once");
  require(!apart || d.sample.word_bytes == 0,
          "payload.word holds both parts of a sample; \"complex\" cannot be an axis then");
  require(bits == 8 * d.payload_bytes(),
          "payload.extents: " + std::to_string(samples) + " samples of " +
              std::to_string(d.sample.stride_bits()) + " bits take " +
              std::to_string((bits + 7) / 8) + " bytes, the payload has " +
              std::to_string(d.payload_bytes()) +
              " (length - offset - trailer = " + std::to_string(d.length) + " - " +
              std::to_string(d.payload_offset) + " - " + std::to_string(d.trailer) + ")");
}

void check_counter(const PacketDescription& d) {
  require(std::ranges::count(d.header, FieldMeaning::sequence, &HeaderField::meaning) == 1,
          "header: one field = \"sequence\" is needed, the counter that tells the time");
  require(d.ticks_per_count >= 1 && d.counts_per_tick >= 1,
          "header: ticks_per_count and counts_per_tick are at least 1");
  const std::int64_t counts = checked_product({d.extent(Axis::time), d.counts_per_tick}, "counts");
  require(counts % d.ticks_per_count == 0,
          "header: packets of " + std::to_string(d.extent(Axis::time)) +
              " ticks do not step a counter of ticks_per_count = " +
              std::to_string(d.ticks_per_count) + " by whole counts");
  const bool has_seconds = d.field(FieldMeaning::second) != nullptr;
  require(!d.counts_from_1970 || has_seconds || d.field(FieldMeaning::sequence)->n_bits >= 32,
          "header: a counter from 1970 has 32 bits or more");
  if (!has_seconds) return;
  require(d.period_s >= 1 && d.period_s <= 86'400,
          "header: period_s = " + std::to_string(d.period_s) + " must lie in 1 .. 86400");
  require(d.counts_per_period >= 1 && d.counts_per_period <= 1 << 28,
          "header: field = \"second\" needs counts_per_period, how often the counter counts before "
          "it begins again: 1 .. 268435456");
  require(d.counts_per_period % d.counts_per_packet() == 0,
          "header: packets step the counter by " + std::to_string(d.counts_per_packet()) +
              ", counts_per_period = " + std::to_string(d.counts_per_period) +
              " is no multiple of it");
}

void check_boards(const PacketDescription& d) {
  std::vector<const HeaderField*> digits;
  for (const auto& f : d.header) {
    if (f.meaning == FieldMeaning::board || f.meaning == FieldMeaning::first_input)
      digits.push_back(&f);
  }
  for (std::size_t k = 1; k < digits.size(); ++k)
    require(digits[k]->count > 0,
            field_text(*digits[k]) +
                ": of several fields that tell the board, all but the first need count");
  require(std::ranges::count(d.header, FieldMeaning::first_channel, &HeaderField::meaning) <= 1,
          "header: there is more than one field = \"first_channel\"");
}

}  // namespace

void validate(const PacketDescription& d) {
  if (d.is_block) {
    require(d.length >= 1 && d.length <= kMaxBlockBytes,
            "a block of " + std::to_string(d.length) + " bytes is not in 1 .. 2^30");
  } else {
    require(d.length >= 1 && d.length <= kMaxDatagramBytes,
            "length = " + std::to_string(d.length) + " must lie in 1 .. 65507, what UDP carries");
  }
  check_payload(d);
  for (const auto& f : d.header) {
    check_word(d, f);
    check_meaning(d, f);
  }
  check_overlaps(d);
  check_counter(d);
  check_boards(d);
}

}  // namespace ryle::wire
