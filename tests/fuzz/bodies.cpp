// SPDX-License-Identifier: BSD-3-Clause
#include "tests/fuzz/bodies.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/recording_tart.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/best2.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/extend.hpp"
#include "ryle/wire/lwa.hpp"
#include "ryle/wire/mwa32t.hpp"
#include "ryle/wire/spead.hpp"
#include "ryle/wire/text_header.hpp"
#include "ryle/wire/vdif.hpp"
#include "tests/fuzz/scan_body.hpp"

namespace ryle::fuzz {
namespace {

#define INVARIANT(condition)                                                         \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "broken invariant: %s, line %d\n", #condition, __LINE__); \
      std::abort();                                                                  \
    }                                                                                \
  } while (false)

bool same(const wire::Packet& a, const wire::Packet& b) {
  return a.stream == b.stream && a.tick_raw == b.tick_raw && a.tick_bits == b.tick_bits &&
         a.n_ticks == b.n_ticks && a.channel == b.channel && a.n_channels == b.n_channels &&
         a.input == b.input && a.n_inputs == b.n_inputs && a.payload_bytes == b.payload_bytes &&
         a.flags == b.flags;
}

// An accepted packet lies inside the datagram, and what encode() makes of it is the same packet
// with the same payload.
template <class Geometry>
void check_codec(const Geometry& geometry, std::span<const std::byte> data,
                 std::uint32_t max_stream) {
  // An exact copy: libFuzzer's buffer may have slack behind it that hides a read too far.
  const std::vector<std::byte> exact(data.begin(), data.end());
  wire::Packet p;
  p.stream = 0xDEADBEEF;
  if (wire::decode(geometry, exact, p) != wire::Reject::none) {
    INVARIANT(p.stream == 0xDEADBEEF);
    return;
  }
  INVARIANT(p.stream < max_stream);
  INVARIANT(std::uint64_t{p.payload_offset} + p.payload_bytes == exact.size());
  const auto payload = std::span<const std::byte>(exact).subspan(p.payload_offset, p.payload_bytes);
  std::vector<std::byte> out(exact.size() + 128);
  const std::size_t n = wire::encode(geometry, p, payload, out);
  INVARIANT(n > 0 && n <= out.size());
  wire::Packet q;
  out.resize(n);
  INVARIANT(wire::decode(geometry, out, q) == wire::Reject::none);
  INVARIANT(same(p, q));
  INVARIANT(std::memcmp(out.data() + q.payload_offset, payload.data(), payload.size()) == 0);
  std::vector<std::byte> small(n - 1);
  INVARIANT(wire::encode(geometry, p, payload, small) == 0);
}

void mwa32t(std::span<const std::byte> data) {
  wire::Mwa32tGeometry geometry;
  check_codec(geometry, data, 4);
  geometry.n_instants = 0;
  check_codec(geometry, data, 4);
  if (data.size() < 8) return;
  // Marker: what check finds must have that marker, and be nearest.
  std::array<std::uint8_t, 8> b;
  std::memcpy(b.data(), data.data(), 8);
  wire::Mwa32tMarker marker;
  marker.mode = static_cast<wire::MarkerMode>(b[0] % 3);
  marker.bits = 1 + b[1] % 16;
  marker.increment = b[2] | static_cast<std::uint32_t>(b[3]) << 8;
  marker.value = b[4];
  const auto word = static_cast<std::uint16_t>(b[5] | b[6] << 8);
  const std::int64_t expected = std::int64_t{b[7]} * 1'000'003 - 100'000'000;
  const auto check = wire::check_mwa32t_marker(marker, word, expected);
  if (check.valid && marker.mode != wire::MarkerMode::ignore) {
    const auto mask = static_cast<std::uint16_t>((1u << marker.bits) - 1);
    INVARIANT(((wire::mwa32t_marker_word(marker, check.instant) ^ word) & mask) == 0);
    INVARIANT(std::abs(check.instant - expected) <= std::int64_t{1} << (marker.bits - 1));
  }
}

void lwa(std::span<const std::byte> data) {
  check_codec(wire::TbfGeometry{.n_stands = 0}, data, 1);
  check_codec(wire::TbfGeometry{.n_stands = 64, .first_channel = 640, .n_streams = 200}, data, 200);
  check_codec(wire::TbxGeometry{.n_stands = 0, .n_channels = 0}, data, 1);
  check_codec(wire::TbxGeometry{.first_channel = 2176, .n_streams = 26}, data, 26);
  check_codec(wire::TbnGeometry{}, data, 520);
  const auto frame = wire::identify_lwa_frame(data);
  INVARIANT(frame.bytes <= (std::size_t{2} << 20) + 28);
  INVARIANT((frame.kind == wire::LwaKind::none) == (frame.bytes == 0));
}

void vdif(std::span<const std::byte> data) {
  check_codec(wire::VdifGeometry{}, data, 1024);
  check_codec(wire::VdifGeometry{.frame_bytes = 5032, .n_streams = 8, .frames_per_second = 1600},
              data, 8);
}

void best2(std::span<const std::byte> data) {
  check_codec(wire::DescribedCodec(wire::best2_packet(), {0, 1024, 1}), data, 1024);
  check_codec(wire::DescribedCodec(wire::best2_packet(), {100, 3, 1}), data, 3);
}

void chips(std::span<const std::byte> data) {
  check_codec(wire::ChipsGeometry{}, data, 16);
  check_codec(wire::ChipsGeometry{.n_boards = 255, .n_channels = 132}, data, 255);
}

std::string_view inside(std::string_view piece, std::span<const std::byte> whole) {
  const auto* begin = reinterpret_cast<const char*>(whole.data());
  INVARIANT(piece.empty() ||
            (piece.data() >= begin && piece.data() + piece.size() <= begin + whole.size()));
  return piece;
}

void spead(std::span<const std::byte> data) {
  const std::vector<std::byte> exact(data.begin(), data.end());
  if (const auto descriptor = wire::parse_spead_descriptor(exact)) {
    inside(descriptor->name, exact);
    inside(descriptor->numpy, exact);
  }
  wire::SpeadPacket p;
  if (wire::parse_spead(exact, p) != wire::Reject::none) return;
  INVARIANT(p.payload_offset + p.payload_bytes == exact.size());
  INVARIANT(p.offset + p.payload_bytes <= p.heap_bytes);
  for (std::size_t k = 0; k < p.n_items; ++k) INVARIANT(p.end_of(p.items[k]) <= p.heap_bytes);
  std::vector<std::byte> out(wire::spead_header_bytes(p.n_items));
  INVARIANT(wire::write_spead_header(p, out) == out.size());
  out.insert(out.end(), exact.begin() + static_cast<std::ptrdiff_t>(p.payload_offset), exact.end());
  wire::SpeadPacket q;
  INVARIANT(wire::parse_spead(out, q) == wire::Reject::none || p.address_bits != q.address_bits);
}

void text_header(std::span<const std::byte> data) {
  const std::vector<std::byte> exact(data.begin(), data.end());
  INVARIANT(wire::guppi_header_bytes(exact) <= exact.size());
  for (std::size_t k = 0; k < exact.size() / 80 + 2; ++k) {
    const auto card = wire::guppi_card(exact, k);
    inside(card.key, exact);
    wire::parse_decimal(inside(card.value, exact));
  }
  inside(wire::guppi_value(exact, "BLOCSIZE"), exact);
  std::size_t offset = 0, fields = 0;
  for (auto f = wire::dada_field(exact, offset); !f.key.empty();
       f = wire::dada_field(exact, offset)) {
    inside(f.key, exact);
    const auto number = wire::parse_decimal(inside(f.value, exact));
    if (number) INVARIANT(number->den > 0);
    wire::parse_integer(f.value);
    wire::parse_real(f.value);
    INVARIANT(++fields <= exact.size());
  }
  inside(wire::dada_value(exact, "HDR_SIZE"), exact);
}

void json_and_time(std::span<const std::byte> data) {
  const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  recording_tai_ns_from_text(text);
  try {
    const auto config = detail::parse_tart_config("fuzz", text);
    INVARIANT(config.sampling_frequency_hz >= 1);
  } catch (const FormatError&) {
  }
}

// Reads pieces at the edges and in the middle; garbage-prefilled, checked for writes outside.
void read_some(Recording& recording) {
  const auto& info = recording.info();
  INVARIANT(info.n_inputs > 0 && info.n_ticks > 0);
  INVARIANT(info.clock.rate_hz.num > 0 && info.clock.rate_hz.den > 0);
  for (const Tick first : {Tick{-3}, Tick{0}, info.n_ticks / 2, info.n_ticks - 2}) {
    const std::int64_t n =
        info.n_inputs * std::max<std::int64_t>(1, info.frequency.n_channels) > 4096 ? 2 : 7;
    std::vector<AbsentSpan> absent;
    if (info.channelized) {
      const std::int64_t size = info.frequency.n_channels * info.n_inputs;
      if (size > (1 << 18)) return;  // not to spend the time on filling memory
      std::vector<ci8> values(static_cast<std::size_t>(n * size) + 2, ci8{77, 77});
      std::vector<ChannelGap> gaps;
      recording.read_spectra(first, n, std::span(values).first(values.size() - 2), absent, nullptr,
                             &gaps);
      for (const auto& g : gaps) {
        INVARIANT(g.channel_begin >= 0 && g.channel_begin < g.channel_end &&
                  g.channel_end <= info.frequency.n_channels && g.begin >= first &&
                  g.end <= first + n && g.begin < g.end);
      }
      INVARIANT(values.back() == (ci8{77, 77}));
    } else {
      const auto bytes = static_cast<std::size_t>(recording.samples_bytes(n));
      if (bytes > (1u << 20)) return;
      std::vector<std::byte> values(bytes + 2, std::byte{77});
      recording.read_samples(first, n, std::span(values).first(bytes), absent);
      INVARIANT(values.back() == std::byte{77});
    }
    for (const auto& a : absent) {
      INVARIANT(a.input >= 0 && a.input < info.n_inputs && a.begin >= first && a.end <= first + n &&
                a.begin < a.end);
    }
  }
}

void recordings(std::span<const std::byte> data) {
  const std::string path = memory_file(data);
  RecordingOptions with_options;
  with_options.axis_order = "TFP";
  with_options.sample_rate_hz = 1.28e6;
  // By content, and as one named format: the last byte says which, so that the fuzzer can choose.
  constexpr std::array kNames{"tbf",   "tbx",  "tbn",    "vdif",
                              "guppi", "dada", "mwa32t", "mwa32t-interleaved",
                              "codif", "tbw",  "drx"};
  const std::size_t last = data.empty() ? 0 : static_cast<std::size_t>(data.back());
  const auto try_format = [&](const char* format) {
    accepts([&] {
      read_some(
          *open_recording(path, format, last / 8 % 2 == 0 ? RecordingOptions{} : with_options));
    });
  };
  try_format("auto");
  try_format(kNames[last % kNames.size()]);
}

}  // namespace

void assembler(std::span<const std::byte> data);
std::vector<Bytes> assembler_seeds();

std::vector<Body> packet_bodies() {
  return {{"mwa32t", mwa32t},
          {"lwa", lwa},
          {"vdif", vdif},
          {"best2", best2},
          {"chips", chips},
          {"spead", spead},
          {"text_header", text_header},
          {"json_and_time", json_and_time},
          {"recordings", recordings},
          {"scans", scans, scan_seeds, kAllWhole, scan_values},
          {"assembler", assembler, assembler_seeds, 0}};
}

std::vector<Body> bodies() {
  std::vector<Body> all = packet_bodies();
  for (const auto& some : {file_bodies(), table_bodies()})
    all.insert(all.end(), some.begin(), some.end());
#ifndef RYLE_FUZZ_WITHOUT_STAGE
  for (const Body& body : stage_bodies()) all.push_back(body);
#endif
  return all;
}

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken invariant: %s\n", what);
  std::abort();
}

namespace {

/// HDF5 wants a name that stays one, which a memfd has not.
struct MemoryFiles {
  std::array<std::string, 8> names;
  ~MemoryFiles() {
    for (const std::string& name : names)
      if (!name.empty()) ::unlink(name.c_str());
  }
};

}  // namespace

std::string memory_file(std::span<const std::byte> data, int slot) {
  static MemoryFiles files;
  static std::array<int, 8> descriptors{};
  int& descriptor = descriptors.at(static_cast<std::size_t>(slot));
  std::string& name = files.names.at(static_cast<std::size_t>(slot));
  if (name.empty()) {
    name = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/ryle-fuzz-XXXXXX" : "/tmp/ryle-fuzz-XXXXXX";
    descriptor = ::mkstemp(name.data());
  }
  require(
      descriptor >= 0 && ::ftruncate(descriptor, 0) == 0 &&
          ::pwrite(descriptor, data.data(), data.size(), 0) == static_cast<ssize_t>(data.size()),
      "a file in memory");
  return name;
}

std::int64_t accepted = 0;
std::int64_t n_accepted() { return accepted; }
std::string rejection;
const std::string& last_rejection() { return rejection; }

bool accepts(const std::function<void()>& read) {
  try {
    read();
    ++accepted;
    return true;
  } catch (const Error& error) {
    rejection = error.what();
    const ExitCode code = error.exit_code();
    if (code != ExitCode::bad_data && code != ExitCode::no_input && code != ExitCode::unavailable &&
        code != ExitCode::config)
      std::fprintf(stderr, "%d: %s\n", static_cast<int>(code), error.what());
    require(code == ExitCode::bad_data || code == ExitCode::no_input ||
                code == ExitCode::unavailable || code == ExitCode::config,
            "a refusal says that the file is at fault");
    require(error.what()[0] != '\0', "a refusal says why");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    require(false, "every refusal is an Error");
  }
  return false;
}

std::optional<std::string> values_if_accepted(const std::function<std::string()>& read) {
  std::string values;
  if (!accepts([&] { values = read(); })) return std::nullopt;
  return values;
}

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
std::string text_of(std::span<const std::byte> data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

}  // namespace ryle::fuzz
