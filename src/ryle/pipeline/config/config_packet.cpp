// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/config/config_packet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/telescope/toml_text.hpp"

namespace ryle::pipeline {
namespace {

using wire::Axis;
using wire::FieldMeaning;
using wire::HeaderField;

constexpr std::array kPacketKeys{
    PacketKey{"length", "1 .. 65507", "bytes of a datagram, without those of UDP"},
    PacketKey{"header", "list of tables", "fields of the header, see below"},
    PacketKey{"payload", "table", "the samples, see below"},
};
constexpr std::array kHeaderKeys{
    PacketKey{
        "field",
        "`sequence`, `second`, `first_channel`, `board`, `first_input`, `invalid`, `constant`, "
        "`ignored`",
        "what the field tells: the counter, the second that it counts in, the number of the "
        "packet's first channel, the board that sent it, the number of its first input, that "
        "the samples are none (not 0), or nothing new"},
    PacketKey{"type", "`u8`, `u16be`, `u16le`, ... `u64le`", "the word the field lies in"},
    PacketKey{"offset", "whole number", "of the word, bytes from the start of the datagram"},
    PacketKey{"bits", "`[high, low]`",
              "where only part of the word is the field; bit 0 is the lowest"},
    PacketKey{"base", "whole number", "value of the first: 1 where boards are 1, 2, 3; default 0"},
    PacketKey{"ticks_per_count", "whole number",
              "sequence: ticks (samples of one input, or spectra) a count stands for; default 1"},
    PacketKey{"counts_per_tick", "whole number", "sequence: counts in a tick; default 1"},
    PacketKey{"since", "`start_utc`, `1970`",
              "sequence: count 0 is at source.start_utc, or at 1970-01-01 UTC (POSIX); default "
              "start_utc"},
    PacketKey{"counts_per_period", "whole number",
              "second: how often the counter counts before it begins again"},
    PacketKey{"period_s", "whole number", "second: after so many seconds; default 1"},
    PacketKey{"step", "whole number",
              "first_channel: channels a count, where blocks of channels are counted; default 1"},
    PacketKey{"count", "whole number",
              "board: how many there are, needed for all but the first of several such fields (the "
              "first is the most significant); with interleave: how many numbers there are"},
    PacketKey{"interleave", "whole number",
              "first_channel, board: number v of count stands for (v mod k) count / k + v / k"},
    PacketKey{"map", "list of whole numbers",
              "first_channel, board, second: what the values from base on stand for"},
    PacketKey{"value", "whole number, or a list of them",
              "constant: what the field holds; packets with another value are rejected (magic)"},
};
constexpr std::array kPayloadKeys{
    PacketKey{"offset", "whole number", "of the first sample"},
    PacketKey{"trailer", "whole number", "bytes behind the last sample; default 0"},
    PacketKey{"order", "list of `channel`, `time`, `input`, `complex`",
              "axes, the outermost first; one may come several times, as digits of one index; "
              "complex is left out where the parts of a sample lie together"},
    PacketKey{"extents", "table of whole numbers",
              "of each axis in order: {time = 128, input = 4}; a list where an axis comes several "
              "times: {input = [16, 2]}"},
    PacketKey{"sample", "`i8`, `ci4`, `ci8`, `i16be`, ...",
              "1 to 16 bits a part; ci is complex; above 8 bits be or le tells the order of bytes"},
    PacketKey{"twos_complement", "`true`, `false`", "false: offset binary; default true"},
    PacketKey{"levels", "`true`, `false`",
              "samples of 1 and 2 bits are levels, -1 1 and -10 -3 3 10"},
    PacketKey{"re_first", "`true`, `false`", "false: the imaginary part comes first; default true"},
    PacketKey{
        "msb_first", "`true`, `false`",
        "the first sample of a byte is in its high bits; default true: the real part of a ci4 "
        "is the high half"},
    PacketKey{
        "word", "`u8`, `u16be`, ... `u64le`",
        "a sample is a word, its parts are at re_shift and im_shift of it; default: parts lie "
        "end to end"},
    PacketKey{"re_shift", "whole number", "lowest bit of the (real) part in its word; default 0"},
    PacketKey{"im_shift", "whole number", "lowest bit of the imaginary part; default: bits"},
};

constexpr std::array<std::pair<std::string_view, FieldMeaning>, 8> kMeanings{{
    {"sequence", FieldMeaning::sequence},
    {"first_channel", FieldMeaning::first_channel},
    {"board", FieldMeaning::board},
    {"first_input", FieldMeaning::first_input},
    {"constant", FieldMeaning::constant},
    {"second", FieldMeaning::second},
    {"invalid", FieldMeaning::invalid},
    {"ignored", FieldMeaning::ignored},
}};
constexpr std::array<std::pair<std::string_view, Axis>, 4> kAxes{{
    {"channel", Axis::channel},
    {"time", Axis::time},
    {"input", Axis::input},
    {"complex", Axis::complex},
}};

/// "u16be" to bytes and order.
struct Word {
  int bytes = 0;
  bool big_endian = true;
};
std::optional<Word> word_of(std::string_view text) {
  int bits = 0;
  if (!text.starts_with('u')) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), bits);
  const std::string_view order(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || bits % 8 != 0 || bits < 8 || bits > 64) return std::nullopt;
  if (order.empty() ? bits != 8 : order != "be" && order != "le") return std::nullopt;
  return Word{bits / 8, order != "le"};
}

std::string word_text(int bytes, bool big_endian) {
  return fmt::format("u{}{}", 8 * bytes, bytes == 1 ? "" : big_endian ? "be" : "le");
}

/// Reads one table; every message has the place and the name of the key.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string name, std::span<const PacketKey> keys,
              const TomlPosition& place)
      : table_(table), name_(std::move(name)), place_(place) {
    std::vector<std::string> known;
    for (const auto& key : keys) known.emplace_back(key.name);
    for (const auto& [key, node] : table_) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      throw ConfigError(fmt::format("{}: unknown key \"{}\" in {}; did you mean \"{}\"?",
                                    place_(key.source()), std::string(key.str()), name_,
                                    nearest_word(key.str(), known)));
    }
  }

  [[noreturn]] void fail(const toml::node& node, std::string_view key,
                         const std::string& what) const {
    throw ConfigError(fmt::format("{}: {}.{}: {}", place_(node.source()), name_, key, what));
  }
  const toml::node* get(std::string_view key) const { return table_.get(key); }
  const toml::node& need(std::string_view key, const std::string& what) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr)
      throw ConfigError(
          fmt::format("{}: {}.{} is missing: {}", place_(table_.source()), name_, key, what));
    return *node;
  }
  std::int64_t integer(const toml::node& node, std::string_view key) const {
    if (!node.is_integer()) fail(node, key, "must be a whole number");
    const std::int64_t value = *node.value<std::int64_t>();
    if (value < 0) fail(node, key, "must not be negative");
    return value;
  }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const {
    const toml::node* node = get(key);
    return node == nullptr ? otherwise : integer(*node, key);
  }
  std::int64_t integer_below(std::string_view key, std::int64_t otherwise,
                             std::int64_t limit) const {
    const std::int64_t value = integer(key, otherwise);
    if (value >= limit) fail(*get(key), key, fmt::format("must lie in 0 .. {}", limit - 1));
    return value;
  }
  /// A whole number, or a list of them.
  std::vector<std::uint64_t> integers(std::string_view key) const {
    std::vector<std::uint64_t> values;
    const toml::node* node = get(key);
    if (node == nullptr) return values;
    if (const toml::array* array = node->as_array()) {
      for (const auto& v : *array) values.push_back(static_cast<std::uint64_t>(integer(v, key)));
    } else {
      values.push_back(static_cast<std::uint64_t>(integer(*node, key)));
    }
    return values;
  }
  bool boolean(std::string_view key, bool otherwise) const {
    const toml::node* node = get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_boolean()) fail(*node, key, "must be true or false");
    return *node->value<bool>();
  }
  std::string text(const toml::node& node, std::string_view key) const {
    const auto value = node.value_exact<std::string>();
    if (!value) fail(node, key, "must be a string");
    return *value;
  }
  Word word(const toml::node& node, std::string_view key) const {
    const std::string name = text(node, key);
    const auto word = word_of(name);
    if (!word)
      fail(node, key,
           "\"" + name + "\" is no word; u8, or u16be, u16le, ... u64be, u64le (order of bytes)");
    return *word;
  }
  /// One of several words.
  template <class Pairs>
  auto choice(const toml::node& node, std::string_view key, const Pairs& pairs) const {
    const std::string name = text(node, key);
    std::vector<std::string> known;
    for (const auto& [word, value] : pairs) {
      if (word == name) return value;
      known.emplace_back(word);
    }
    fail(node, key,
         fmt::format("unknown word \"{}\"; did you mean \"{}\"?", name, nearest_word(name, known)));
  }

 private:
  const toml::table& table_;
  std::string name_;
  const TomlPosition& place_;
};

void read_second(const TableReader& in, const HeaderField& f, wire::PacketDescription& packet) {
  for (const std::string_view key : {"counts_per_period", "period_s"}) {
    const toml::node* node = in.get(key);
    if (node == nullptr) continue;
    if (f.meaning != FieldMeaning::second) in.fail(*node, key, "belongs to field = \"second\"");
    (key == "period_s" ? packet.period_s : packet.counts_per_period) = in.integer(*node, key);
  }
}

void read_counter(const TableReader& in, HeaderField& f, wire::PacketDescription& packet) {
  const auto of_sequence = [&](std::string_view key) {
    const toml::node* node = in.get(key);
    if (node != nullptr && f.meaning != FieldMeaning::sequence)
      in.fail(*node, key, "belongs to field = \"sequence\"");
    return node;
  };
  if (of_sequence("ticks_per_count") != nullptr)
    packet.ticks_per_count = in.integer("ticks_per_count", 1);
  if (of_sequence("counts_per_tick") != nullptr)
    packet.counts_per_tick = in.integer("counts_per_tick", 1);
  if (const toml::node* since = of_sequence("since")) {
    constexpr std::array<std::pair<std::string_view, bool>, 2> kSince{
        {{"start_utc", false}, {"1970", true}}};
    packet.counts_from_1970 = in.choice(*since, "since", kSince);
  }
}

void read_field(const toml::table& table, const TomlPosition& place,
                wire::PacketDescription& packet) {
  const TableReader in(table, "source.packet.header", kHeaderKeys, place);
  HeaderField f;
  f.meaning =
      in.choice(in.need("field", "what it tells, for example \"sequence\""), "field", kMeanings);
  const Word word = in.word(in.need("type", "the word it lies in, for example \"u32be\""), "type");
  f.bytes = word.bytes;
  f.big_endian = word.big_endian;
  in.need("offset", "bytes from the start of the datagram");
  f.offset = static_cast<std::uint32_t>(in.integer_below("offset", 0, 65507));
  f.n_bits = 8 * f.bytes;
  if (const toml::node* bits = in.get("bits")) {
    const auto range = in.integers("bits");
    if (range.size() != 2 || range[0] < range[1] ||
        range[0] >= static_cast<std::uint64_t>(8 * f.bytes))
      in.fail(*bits, "bits", fmt::format("must be [high, low], both of 0 .. {}", 8 * f.bytes - 1));
    f.low_bit = static_cast<int>(range[1]);
    f.n_bits = static_cast<int>(range[0] - range[1] + 1);
  }
  f.base = static_cast<std::uint64_t>(in.integer("base", 0));
  f.step = in.integer("step", 1);
  f.count = in.integer("count", 0);
  f.interleave = in.integer("interleave", 1);
  f.map = in.integers("map");
  f.values = in.integers("value");
  read_counter(in, f, packet);
  read_second(in, f, packet);
  packet.header.push_back(std::move(f));
}

void read_sample(const TableReader& in, wire::SampleCode& sample) {
  const toml::node& node = in.need("sample", "its type, for example \"i8\" or \"ci4\"");
  const std::string name = in.text(node, "sample");
  std::string_view rest = name;
  sample.complex = rest.starts_with('c');
  if (sample.complex) rest.remove_prefix(1);
  const auto bad = [&] {
    in.fail(node, "sample",
            "\"" + name +
                "\" is no sample type: i or ci, 1 to 16 bits a part, be or le above 8 "
                "bits: \"i8\", \"ci4\", \"i16be\"");
  };
  if (!rest.starts_with('i')) bad();
  const auto [end, error] =
      std::from_chars(rest.data() + 1, rest.data() + rest.size(), sample.bits);
  const std::string_view order(end, static_cast<std::size_t>(rest.data() + rest.size() - end));
  if (error != std::errc() || sample.bits < 1 || sample.bits > 16) bad();
  if (!order.empty() && order != "be" && order != "le") bad();
  const toml::node* word = in.get("word");
  if (sample.bits > 8 && order.empty() && word == nullptr && in.get("msb_first") == nullptr)
    in.fail(
        node, "sample",
        fmt::format("\"{}\" has more than 8 bits: \"{}be\" or \"{}le\" tells the order of bytes",
                    name, name, name));
  sample.msb_first = in.boolean("msb_first", order != "le");
  sample.re_first = in.boolean("re_first", true);
  if (!in.boolean("twos_complement", true)) sample.encoding = Encoding::offset_binary;
  if (in.boolean("levels", false)) sample.encoding = Encoding::levels;
  if (word != nullptr) {
    const Word w = in.word(*word, "word");
    sample.word_bytes = w.bytes;
    sample.word_big_endian = w.big_endian;
  }
  for (const std::string_view key : {"re_shift", "im_shift"}) {
    if (word == nullptr && in.get(key) != nullptr) in.fail(*in.get(key), key, "needs word");
  }
  sample.re_shift = static_cast<int>(in.integer_below("re_shift", 0, 64));
  sample.im_shift = static_cast<int>(
      in.integer_below("im_shift", word != nullptr && sample.complex ? sample.bits : 0, 64));
}

void read_axes(const TableReader& in, const TomlPosition& place, wire::PacketDescription& packet) {
  const toml::node& order = in.need(
      "order", "axes from the outermost to the innermost, for example [\"time\", \"input\"]");
  const toml::node& extents = in.need("extents", "how long each axis is, {time = 128, input = 4}");
  if (order.as_array() == nullptr) in.fail(order, "order", "must be a list");
  if (extents.as_table() == nullptr) in.fail(extents, "extents", "must be a table");
  std::array<std::size_t, 4> seen{};
  std::array<std::vector<std::uint64_t>, 4> sizes;
  std::vector<PacketKey> names;
  for (const auto& [name, axis] : kAxes) names.push_back({name, "", ""});
  const TableReader sizes_in(*extents.as_table(), "source.packet.payload.extents", names, place);
  for (const auto& [name, axis] : kAxes)
    sizes[static_cast<std::size_t>(axis)] = sizes_in.integers(name);
  sizes[static_cast<std::size_t>(Axis::complex)] = {2};
  for (const auto& element : *order.as_array()) {
    const Axis axis = in.choice(element, "order", kAxes);
    const auto k = static_cast<std::size_t>(axis);
    if (seen[k] >= sizes[k].size())
      in.fail(element, "order",
              fmt::format("axis \"{}\" comes {} times; payload.extents gives {} of its sizes",
                          name(axis), seen[k] + 1, sizes[k].size()));
    packet.order.push_back({axis, static_cast<std::int64_t>(sizes[k][seen[k]++])});
  }
  for (const auto& [name, axis] : kAxes) {
    const auto k = static_cast<std::size_t>(axis);
    if (axis != Axis::complex && seen[k] < sizes[k].size())
      in.fail(extents, "extents",
              fmt::format("gives {} sizes of \"{}\", which comes {} times in order",
                          sizes[k].size(), name, seen[k]));
  }
}

}  // namespace

std::span<const PacketKey> packet_keys() { return kPacketKeys; }
std::span<const PacketKey> packet_header_keys() { return kHeaderKeys; }
std::span<const PacketKey> packet_payload_keys() { return kPayloadKeys; }

wire::PacketDescription parse_packet(const toml::table& table, const TomlPosition& place) {
  const TableReader in(table, "source.packet", kPacketKeys, place);
  wire::PacketDescription packet;
  in.need("length", "bytes of a datagram");
  packet.length = static_cast<std::uint32_t>(in.integer_below("length", 0, 65508));
  const toml::node& header = in.need("header", "the fields, a list of tables");
  if (header.as_array() == nullptr) in.fail(header, "header", "must be a list of tables");
  for (const auto& element : *header.as_array()) {
    if (element.as_table() == nullptr)
      in.fail(element, "header", "must be a list of tables, {field = \"sequence\", ...}");
    read_field(*element.as_table(), place, packet);
  }
  const toml::node& payload = in.need("payload", "where the samples are");
  if (payload.as_table() == nullptr) in.fail(payload, "payload", "must be a table");
  const TableReader p(*payload.as_table(), "source.packet.payload", kPayloadKeys, place);
  p.need("offset", "bytes from the start of the datagram to the first sample");
  packet.payload_offset = static_cast<std::uint32_t>(p.integer_below("offset", 0, 65508));
  packet.trailer = static_cast<std::uint32_t>(p.integer_below("trailer", 0, 65508));
  read_sample(p, packet.sample);
  read_axes(p, place, packet);
  try {
    wire::validate(packet);
  } catch (const ConfigError& e) {
    throw ConfigError(place(table.source()) + ": source.packet: " + e.what());
  }
  return packet;
}

wire::PacketDescription load_packet(const std::string& path) {
  const std::string text = read_text_file(path);
  detail::check_toml_depth(text, path);
  const TomlPosition place = [&](const toml::source_region& where) {
    return fmt::format("{}:{}:{}", path, where.begin.line, where.begin.column);
  };
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    throw ConfigError(place(e.source()) + ": " + std::string(e.description()));
  }
  const toml::table* source = root["source"].as_table();
  if (source == nullptr) return parse_packet(root, place);
  const toml::table* packet = (*source)["packet"].as_table();
  if (packet == nullptr) throw ConfigError(path + ": has a [source] without [source.packet]");
  return parse_packet(*packet, place);
}

namespace {

std::string list_text(const std::vector<std::uint64_t>& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string field_toml(const HeaderField& f, const wire::PacketDescription& packet) {
  const auto meaning = std::find_if(kMeanings.begin(), kMeanings.end(),
                                    [&](const auto& m) { return m.second == f.meaning; });
  std::string text = fmt::format("  {{field = \"{}\", type = \"{}\", offset = {}", meaning->first,
                                 word_text(f.bytes, f.big_endian), f.offset);
  if (f.n_bits != 8 * f.bytes)
    text += fmt::format(", bits = [{}, {}]", f.low_bit + f.n_bits - 1, f.low_bit);
  const auto add = [&](std::string_view key, std::int64_t value, std::int64_t otherwise) {
    if (value != otherwise) text += fmt::format(", {} = {}", key, value);
  };
  add("base", static_cast<std::int64_t>(f.base), 0);
  add("step", f.step, 1);
  add("count", f.count, 0);
  add("interleave", f.interleave, 1);
  if (!f.map.empty()) text += ", map = " + list_text(f.map);
  if (!f.values.empty()) text += ", value = " + list_text(f.values);
  if (f.meaning == FieldMeaning::second) {
    add("counts_per_period", packet.counts_per_period, 0);
    add("period_s", packet.period_s, 1);
  }
  if (f.meaning == FieldMeaning::sequence) {
    add("ticks_per_count", packet.ticks_per_count, 1);
    add("counts_per_tick", packet.counts_per_tick, 1);
    if (packet.counts_from_1970) text += ", since = \"1970\"";
  }
  return text + "},\n";
}

}  // namespace

std::string packet_toml(const wire::PacketDescription& packet) {
  std::string text = fmt::format("\n[source.packet]\nlength = {}\nheader = [\n", packet.length);
  for (const auto& f : packet.header) text += field_toml(f, packet);
  text += "]\n";
  std::string order, extents;
  for (const auto& a : packet.order)
    order += fmt::format("{}\"{}\"", order.empty() ? "" : ", ", name(a.axis));
  for (const auto& [word, axis] : kAxes) {
    std::vector<std::uint64_t> sizes;
    for (const auto& a : packet.order) {
      if (a.axis == axis) sizes.push_back(static_cast<std::uint64_t>(a.extent));
    }
    if (sizes.empty() || axis == Axis::complex) continue;
    extents += fmt::format("{}{} = {}", extents.empty() ? "" : ", ", word, list_text(sizes));
  }
  const wire::SampleCode& s = packet.sample;
  text += fmt::format(
      "payload = {{offset = {}, trailer = {}, order = [{}], extents = {{{}}}, sample = \"{}i{}\", "
      "twos_complement = {}, levels = {}, re_first = {}, msb_first = {}",
      packet.payload_offset, packet.trailer, order, extents, s.complex ? "c" : "", s.bits,
      s.encoding != Encoding::offset_binary, s.encoding == Encoding::levels, s.re_first,
      s.msb_first);
  if (s.word_bytes > 0)
    text += fmt::format(", word = \"{}\", re_shift = {}, im_shift = {}",
                        word_text(s.word_bytes, s.word_big_endian), s.re_shift, s.im_shift);
  return text + "}\n";
}

}  // namespace ryle::pipeline
