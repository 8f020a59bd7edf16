// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/packet_file.hpp"

#include <arpa/inet.h>

#include <array>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/simulate/unix_time.hpp"
#include "ryle/simulate/whole_file.hpp"
#include "ryle/wire/pcap.hpp"

namespace ryle::simulate {
namespace {

constexpr std::uint16_t kSourcePort = 4000;

/// The number of a host; of a name 127.0.0.1.
wire::UdpAddress number_of(const Endpoint& endpoint) {
  wire::UdpAddress address;
  address.port = endpoint.port;
  address.is_v6 = inet_pton(AF_INET6, endpoint.host.c_str(), address.ip.data()) == 1;
  if (!address.is_v6 && inet_pton(AF_INET, endpoint.host.c_str(), address.ip.data()) != 1)
    address.ip = {127, 0, 0, 1};
  return address;
}

}  // namespace

struct PacketFile::File : detail::WholeFile {
  using WholeFile::WholeFile;
};

PacketFile::PacketFile(const std::string& path, std::int64_t start_tai_ns)
    : file_(std::make_unique<File>(path)) {
  const auto start = detail::unix_time(start_tai_ns);
  start_unix_ns_ = start.s * 1'000'000'000 + start.ns;
  std::array<std::byte, wire::kPcapFileHeaderBytes> header;
  wire::put_pcap_file_header(header);
  file_->write(header.data(), header.size());
}
PacketFile::~PacketFile() = default;

void PacketFile::add(double seconds, const Endpoint& to, std::span<const std::byte> packet) {
  if (packet.size() > wire::kPcapMaxDatagramBytes)
    throw FormatError("a datagram of " + std::to_string(packet.size()) +
                      " bytes does not fit into a packet of IP");
  const wire::UdpAddress target = number_of(to);
  wire::UdpAddress source;
  source.is_v6 = target.is_v6;
  source.port = kSourcePort;
  if (source.is_v6) {
    source.ip[15] = 1;
  } else {
    source.ip = {127, 0, 0, 1};
  }
  std::array<std::byte, wire::kPcapRecordHeaderBytes> header;
  const std::size_t bytes = wire::put_pcap_record_header(
      source, target, start_unix_ns_ + std::llround(seconds * 1e9), packet, header);
  file_->write(header.data(), bytes);
  file_->write(packet.data(), packet.size());
  ++n_packets_;
}

void PacketFile::publish() { file_->publish(); }

}  // namespace ryle::simulate
