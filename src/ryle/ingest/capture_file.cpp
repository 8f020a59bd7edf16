// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/capture_file.hpp"

#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <list>
#include <optional>
#include <vector>

#ifdef RYLE_HAVE_PCAP
#include <pcap/pcap.h>
#endif

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/wire/bytes.hpp"

namespace ryle {

#ifdef RYLE_HAVE_PCAP
namespace {

using ByteSpan = std::span<const std::byte>;

std::uint16_t u16(ByteSpan bytes, std::size_t at) {
  return wire::load_be<std::uint16_t>(&bytes[at]);
}
std::uint8_t u8(ByteSpan bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

constexpr std::uint16_t kIpv4 = 0x0800, kIpv6 = 0x86DD;
constexpr std::uint8_t kUdp = 17;

/// What a record holds behind its link header.
struct NetworkLayer {
  std::uint16_t type = 0;  // of Ethernet; 0: the first nibble tells
  ByteSpan bytes;
};

bool is_vlan(std::uint16_t type) { return type == 0x8100 || type == 0x88A8 || type == 0x9100; }

// The header of the link, or nothing where the record is shorter than it.
std::optional<NetworkLayer> behind_link(int link, ByteSpan record) {
  std::size_t at = 0;
  NetworkLayer layer;
  const auto need = [&](std::size_t n) { return record.size() >= n; };
  switch (link) {
    case DLT_EN10MB:
      if (!need(14)) return std::nullopt;
      layer.type = u16(record, 12);
      at = 14;
      break;
    case DLT_LINUX_SLL:
      if (!need(16)) return std::nullopt;
      layer.type = u16(record, 14);
      at = 16;
      break;
    case DLT_LINUX_SLL2:
      if (!need(20)) return std::nullopt;
      layer.type = u16(record, 0);
      at = 20;
      break;
    case DLT_NULL:
    case DLT_LOOP:
      if (!need(4)) return std::nullopt;
      at = 4;
      break;
    default:  // raw IP
      break;
  }
  while (is_vlan(layer.type)) {
    if (!need(at + 4)) return std::nullopt;
    layer.type = u16(record, at + 2);
    at += 4;
  }
  layer.bytes = record.subspan(at);
  return layer;
}

bool knows_link(int link) {
  return link == DLT_EN10MB || link == DLT_LINUX_SLL || link == DLT_LINUX_SLL2 ||
         link == DLT_NULL || link == DLT_LOOP || link == DLT_RAW || link == DLT_IPV4 ||
         link == DLT_IPV6;
}

/// What IP carries.
struct Transport {
  std::uint8_t protocol = 0;
  ByteSpan bytes;
  std::size_t size = 0;  // as its header says; more than `bytes` where the record is cut
  std::size_t fragment_at = 0;
  bool more_fragments = false;
  std::uint32_t id = 0;
  sockaddr_storage from{}, to{};

  bool is_fragment() const { return more_fragments || fragment_at > 0; }
};

void set_v4(sockaddr_storage& address, ByteSpan ip, std::size_t at) {
  auto& v4 = reinterpret_cast<sockaddr_in&>(address);
  v4.sin_family = AF_INET;
  std::memcpy(&v4.sin_addr, &ip[at], 4);
}
void set_v6(sockaddr_storage& address, ByteSpan ip, std::size_t at) {
  auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
  v6.sin6_family = AF_INET6;
  std::memcpy(&v6.sin6_addr, &ip[at], 16);
}

std::optional<Transport> behind_ipv4(ByteSpan ip) {
  if (ip.size() < 20) return std::nullopt;
  const std::size_t header = 4 * (u8(ip, 0) & 0xFu);
  std::size_t total = u16(ip, 2);
  if (total == 0) total = ip.size();  // left to the network card
  if (header < 20 || total < header || ip.size() < header) return std::nullopt;
  Transport t;
  t.protocol = u8(ip, 9);
  t.size = total - header;
  t.bytes = ip.subspan(header, std::min(ip.size() - header, t.size));
  t.id = u16(ip, 4);
  const std::uint16_t fragment = u16(ip, 6);
  t.fragment_at = 8 * std::size_t{fragment & 0x1FFFu};
  t.more_fragments = (fragment & 0x2000u) != 0;
  set_v4(t.from, ip, 12);
  set_v4(t.to, ip, 16);
  return t;
}

std::optional<Transport> behind_ipv6(ByteSpan ip) {
  constexpr std::uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51,
                         kOptions = 60;
  if (ip.size() < 40) return std::nullopt;
  Transport t;
  t.size = u16(ip, 4);
  if (t.size == 0) t.size = ip.size() - 40;
  t.bytes = ip.subspan(40, std::min(ip.size() - 40, t.size));
  t.protocol = u8(ip, 6);
  set_v6(t.from, ip, 8);
  set_v6(t.to, ip, 24);
  for (;;) {
    const std::uint8_t p = t.protocol;
    if (p != kHopByHop && p != kRouting && p != kFragment && p != kAuthentication && p != kOptions)
      return t;
    if (t.bytes.size() < 8) return std::nullopt;
    std::size_t length = 8 * (std::size_t{u8(t.bytes, 1)} + 1);
    if (p == kAuthentication) length = 4 * (std::size_t{u8(t.bytes, 1)} + 2);
    if (p == kFragment) {
      length = 8;
      t.fragment_at = u16(t.bytes, 2) & 0xFFF8u;
      t.more_fragments = (u16(t.bytes, 2) & 1u) != 0;
      t.id = wire::load_be<std::uint32_t>(&t.bytes[4]);
    }
    if (t.bytes.size() < length || t.size < length) return std::nullopt;
    t.protocol = u8(t.bytes, 0);
    t.bytes = t.bytes.subspan(length);
    t.size -= length;
  }
}

/// A datagram of which some fragments have come.
struct Partial {
  sockaddr_storage from{}, to{};
  std::uint32_t id = 0;
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::size_t, std::size_t>> have;  // [begin, end), disjoint
  std::size_t size = 0;                                   // 0: the last has not come

  bool is_whole() const {
    std::size_t n = 0;
    for (const auto& [begin, end] : have) n += end - begin;
    return size > 0 && n == size;
  }
};

}  // namespace

struct CaptureReader::State {
  std::string path;
  pcap_t* file = nullptr;
  int link = 0;
  bool ended = false, within_record = false;
  std::int64_t first_ns = 0, last_ns = 0;
  CaptureCounts counts;
  std::list<Partial> partials;  // the oldest first
  Partial whole;                // what the datagram points to

  ~State() {
    if (file != nullptr) pcap_close(file);
  }

  bool take_fragment(const Transport& t);
  bool take_udp(ByteSpan udp, std::size_t size, const sockaddr_storage& from,
                const sockaddr_storage& to, CapturedDatagram& datagram);
  bool take_record(ByteSpan record, CapturedDatagram& datagram);
  bool at_end(int status);
};

CaptureReader::CaptureReader(const std::string& path) : state_(new State) {
  state_->path = path;
  require_regular_file(path);
  std::FILE* stream = std::fopen(path.c_str(), "rb");
  if (stream == nullptr) throw IoError::from_errno("open", path, errno);
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  state_->file =
      pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, error.data());
  if (state_->file == nullptr) {
    std::fclose(stream);
    throw FormatError(path + " is no PCAP or PCAPNG file: " + error.data());
  }
  state_->link = pcap_datalink(state_->file);
  if (!knows_link(state_->link)) {
    throw FormatError(fmt::format(
        "{}: captured on a link of type {} ({}); known are Ethernet, Linux cooked, raw IP and "
        "loopback",
        path, state_->link, link()));
  }
}

CaptureReader::~CaptureReader() = default;

bool CaptureReader::ends_within_record() const { return state_->within_record; }
const CaptureCounts& CaptureReader::counts() const { return state_->counts; }
std::int64_t CaptureReader::first_ns() const { return state_->first_ns; }
std::int64_t CaptureReader::last_ns() const { return state_->last_ns; }
std::string CaptureReader::link() const {
  const char* text = pcap_datalink_val_to_description(state_->link);
  return text != nullptr ? text : "unknown";
}

// Keeps a fragment; true when its datagram is whole, in `whole`.
bool CaptureReader::State::take_fragment(const Transport& t) {
  constexpr std::size_t kMaxPartials = 64, kMaxBytes = 65535;
  const std::size_t end = t.fragment_at + t.size;
  if (t.bytes.size() < t.size || end > kMaxBytes || t.size == 0) {
    ++counts.damaged;  // cut fragments too: what is missing cannot be told
    return false;
  }
  auto it = std::ranges::find_if(partials, [&](const Partial& p) {
    return p.id == t.id && std::memcmp(&p.from, &t.from, sizeof t.from) == 0 &&
           std::memcmp(&p.to, &t.to, sizeof t.to) == 0;
  });
  const auto overlaps = [&](const Partial& p) {
    return std::ranges::any_of(
        p.have, [&](const auto& span) { return t.fragment_at < span.second && span.first < end; });
  };
  if (it != partials.end() && overlaps(*it)) {  // the number is used again, or it came twice
    counts.fragments += it->have.size();
    partials.erase(it);
    it = partials.end();
  }
  if (it == partials.end()) {
    if (partials.size() == kMaxPartials) {
      counts.fragments += partials.front().have.size();
      partials.pop_front();
    }
    partials.emplace_back();
    it = std::prev(partials.end());
    it->from = t.from;
    it->to = t.to;
    it->id = t.id;
  }
  if (it->bytes.size() < end) it->bytes.resize(end);
  std::memcpy(it->bytes.data() + t.fragment_at, t.bytes.data(), t.size);
  it->have.emplace_back(t.fragment_at, end);
  if (!t.more_fragments) it->size = end;
  if (!it->is_whole()) return false;
  counts.joined += it->have.size() - 1;
  whole = std::move(*it);
  partials.erase(it);
  return true;
}

bool CaptureReader::State::take_udp(ByteSpan udp, std::size_t size, const sockaddr_storage& from,
                                    const sockaddr_storage& to, CapturedDatagram& datagram) {
  if (udp.size() < 8 || size < 8) {
    ++counts.damaged;
    return false;
  }
  std::size_t length = u16(udp, 4);
  if (length == 0) length = size;  // more than 64 KiB, or left to the network card
  if (length < 8 || length > size) {
    ++counts.damaged;
    return false;
  }
  ++counts.datagrams;
  datagram.from = from;
  datagram.to = to;
  // At the same place for both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  reinterpret_cast<sockaddr_in&>(datagram.from).sin_port = htons(u16(udp, 0));
  reinterpret_cast<sockaddr_in&>(datagram.to).sin_port = htons(u16(udp, 2));
  datagram.cut = udp.size() < length;
  counts.cut += datagram.cut ? 1 : 0;
  datagram.payload = udp.subspan(8, std::min(udp.size(), length) - 8);
  return true;
}

bool CaptureReader::State::take_record(ByteSpan record, CapturedDatagram& datagram) {
  ++counts.records;
  const auto layer = behind_link(link, record);
  if (!layer || layer->bytes.empty()) {
    ++counts.damaged;
    return false;
  }
  const int version = u8(layer->bytes, 0) >> 4;
  const bool v4 = layer->type == kIpv4 || (layer->type == 0 && version == 4);
  const bool v6 = layer->type == kIpv6 || (layer->type == 0 && version == 6);
  if (!v4 && !v6) {
    ++counts.not_ip;
    return false;
  }
  const auto t = v4 ? behind_ipv4(layer->bytes) : behind_ipv6(layer->bytes);
  if (!t) {
    ++counts.damaged;
    return false;
  }
  if (t->protocol != kUdp) {
    ++counts.not_udp;
    return false;
  }
  if (!t->is_fragment()) return take_udp(t->bytes, t->size, t->from, t->to, datagram);
  return take_fragment(*t) &&
         take_udp(whole.bytes, whole.bytes.size(), whole.from, whole.to, datagram);
}

// After pcap_next_ex() has given no record.
bool CaptureReader::State::at_end(int status) {
  ended = true;
  for (const auto& partial : partials) counts.fragments += partial.have.size();
  partials.clear();
  if (status == PCAP_ERROR_BREAK) return false;
  const std::string error = pcap_geterr(file);
  within_record = error.find("truncated") != std::string::npos;
  if (within_record) return false;
  throw FormatError(fmt::format("{}: damaged behind {} records: {}", path, counts.records, error));
}

bool CaptureReader::next(CapturedDatagram& datagram) {
  State& s = *state_;
  while (!s.ended) {
    pcap_pkthdr* header = nullptr;
    const u_char* data = nullptr;
    const int status = pcap_next_ex(s.file, &header, &data);
    if (status != 1) return s.at_end(status);
    // Nanoseconds stand in the place of microseconds, as asked for.
    s.last_ns = std::int64_t{header->ts.tv_sec} * 1'000'000'000 + header->ts.tv_usec;
    if (s.first_ns == 0) s.first_ns = s.last_ns;
    const ByteSpan record(reinterpret_cast<const std::byte*>(data), header->caplen);
    if (!s.take_record(record, datagram)) continue;
    datagram.unix_ns = s.last_ns;
    return true;
  }
  return false;
}

#else

struct CaptureReader::State {};
CaptureReader::CaptureReader(const std::string& path) {
  throw UnsupportedError(
      path + ": this ryle was built without libpcap; build it again with Debian's libpcap-dev");
}
CaptureReader::~CaptureReader() = default;
bool CaptureReader::next(CapturedDatagram& /*datagram*/) { return false; }
bool CaptureReader::ends_within_record() const { return false; }
const CaptureCounts& CaptureReader::counts() const {
  static const CaptureCounts none;
  return none;
}
std::string CaptureReader::link() const { return ""; }
std::int64_t CaptureReader::first_ns() const { return 0; }
std::int64_t CaptureReader::last_ns() const { return 0; }

#endif

std::string left_out_text(const CaptureCounts& counts) {
  std::string text;
  const auto add = [&text](std::uint64_t n, const char* what) {
    if (n > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, what);
  };
  add(counts.not_ip, "records that are not IP");
  add(counts.not_udp, "records that are not UDP");
  add(counts.fragments, "fragments of datagrams that are not whole");
  add(counts.damaged, "records with headers that cannot be");
  return text;
}

std::int64_t capture_start_unix_ns(const std::string& path) {
  CaptureReader reader(path);
  CapturedDatagram datagram;
  if (!reader.next(datagram)) throw FormatError(path + " holds no UDP datagram");
  return datagram.unix_ns;
}

bool captures_supported() {
#ifdef RYLE_HAVE_PCAP
  return true;
#else
  return false;
#endif
}

bool is_capture_file(const std::string& path) {
  // A pipe that nobody writes to would hold open() up for ever.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  std::uint32_t magic = 0;
  const bool read = std::fread(&magic, sizeof magic, 1, file) == 1;
  std::fclose(file);
  constexpr std::array<std::uint32_t, 5> kMagics{0xA1B2C3D4, 0xD4C3B2A1, 0xA1B23C4D, 0x4D3CB2A1,
                                                 0x0A0D0D0A};
  return read && std::ranges::find(kMagics, magic) != kMagics.end();
}

}  // namespace ryle
