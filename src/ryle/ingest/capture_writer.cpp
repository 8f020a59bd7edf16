// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/capture_writer.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/wire/pcap.hpp"

namespace ryle {
namespace {

wire::UdpAddress udp_address(const void* address) {
  wire::UdpAddress found;
  sockaddr any{};
  std::memcpy(&any, address, sizeof any);
  found.is_v6 = any.sa_family == AF_INET6;
  if (found.is_v6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof v6);
    std::memcpy(found.ip.data(), &v6.sin6_addr, 16);
    found.port = ntohs(v6.sin6_port);
  } else {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    std::memcpy(found.ip.data(), &v4.sin_addr, 4);
    found.port = ntohs(v4.sin_port);
  }
  return found;
}

}  // namespace

CaptureWriter::CaptureWriter(std::string path) : path_(std::move(path)), partial_(path_ + ".part") {
  file_ = std::fopen(partial_.c_str(), "wb");
  if (file_ == nullptr) throw IoError::from_errno("create", partial_, errno, true);
  std::array<std::byte, wire::kPcapFileHeaderBytes> header;
  wire::put_pcap_file_header(header);
  put(header.data(), header.size());
}

CaptureWriter::~CaptureWriter() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  ::unlink(partial_.c_str());
}

void CaptureWriter::put(const void* data, std::size_t bytes) {
  if (std::fwrite(data, 1, bytes, file_) != bytes)
    throw IoError::from_errno("write", partial_, errno, true);
  bytes_ += bytes;
}

void CaptureWriter::write(std::span<const std::byte> datagram, const void* from, const void* to,
                          std::int64_t unix_ns) {
  std::array<std::byte, wire::kPcapRecordHeaderBytes> header;
  const std::size_t bytes =
      wire::put_pcap_record_header(udp_address(from), udp_address(to), unix_ns, datagram, header);
  put(header.data(), bytes);
  put(datagram.data(), datagram.size());
  ++datagrams_;
}

void CaptureWriter::finish() {
  std::FILE* file = file_;
  file_ = nullptr;
  const bool flushed = std::fflush(file) == 0 && ::fsync(::fileno(file)) == 0;
  const int reason = errno;
  std::fclose(file);
  if (!flushed) {
    ::unlink(partial_.c_str());
    throw IoError::from_errno("write", partial_, reason, true);
  }
  if (std::rename(partial_.c_str(), path_.c_str()) != 0)
    throw IoError::from_errno("rename to", path_, errno, true);
}

}  // namespace ryle
