// SPDX-License-Identifier: BSD-3-Clause
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "ryle/ingest/socket.hpp"

namespace ryle {
namespace {

// linux/udp.h; not in the C library's headers of Debian 12.
constexpr int kUdpGro = 104;
constexpr std::size_t kGroBytes = 65535;

// Size of the segments the kernel joined, or 0 for a single datagram.
std::size_t segment_size(const msghdr& header) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr;
       c = CMSG_NXTHDR(const_cast<msghdr*>(&header), c)) {
    if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != kUdpGro) continue;
    int size = 0;
    std::memcpy(&size, CMSG_DATA(c), sizeof size);
    return size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  return 0;
}

}  // namespace

struct DatagramReader::Buffers {
  std::size_t bytes_each;
  std::vector<std::byte> bytes;
  std::vector<mmsghdr> headers;
  std::vector<iovec> vectors;
  std::vector<sockaddr_storage> addresses;
  struct alignas(8) Control {
    std::array<char, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(64)> bytes;
  };
  std::vector<Control> controls;
  std::vector<Datagram> datagrams;
};

DatagramReader::DatagramReader(std::size_t max_bytes, bool gro, std::size_t batch)
    : buffers_(new Buffers) {
  auto& b = *buffers_;
  // One byte more than the longest good datagram, so that a longer one is seen as such.
  b.bytes_each = gro ? kGroBytes + 1 : (max_bytes + 1 + 63) / 64 * 64;
  b.bytes.resize(b.bytes_each * batch);
  b.headers.resize(batch);
  b.vectors.resize(batch);
  b.addresses.resize(batch);
  b.controls.resize(batch);
  b.datagrams.reserve(batch * (gro ? 64 : 1));
  for (std::size_t i = 0; i < batch; ++i) {
    b.vectors[i] = {b.bytes.data() + i * b.bytes_each, b.bytes_each};
  }
}

DatagramReader::~DatagramReader() { delete buffers_; }
DatagramReader::DatagramReader(DatagramReader&& other) noexcept
    : buffers_(std::exchange(other.buffers_, nullptr)) {}

bool DatagramReader::enable_gro(const Socket& socket) {
  const int on = 1;
  return setsockopt(socket.get(), IPPROTO_UDP, kUdpGro, &on, sizeof on) == 0;
}

const std::vector<DatagramReader::Datagram>& DatagramReader::receive(const Socket& socket,
                                                                     std::size_t limit) {
  auto& b = *buffers_;
  b.datagrams.clear();
  const std::size_t count = std::min(limit, b.headers.size());
  for (std::size_t i = 0; i < count; ++i) {
    msghdr& h = b.headers[i].msg_hdr;
    h = {};
    h.msg_name = &b.addresses[i];
    h.msg_namelen = sizeof b.addresses[i];
    h.msg_iov = &b.vectors[i];
    h.msg_iovlen = 1;
    h.msg_control = b.controls[i].bytes.data();
    h.msg_controllen = b.controls[i].bytes.size();
  }
  const int n =
      recvmmsg(socket.get(), b.headers.data(), static_cast<unsigned>(count), MSG_DONTWAIT, nullptr);
  for (int i = 0; i < n; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const msghdr& h = b.headers[index].msg_hdr;
    const std::size_t length = b.headers[index].msg_len;
    const std::byte* data = b.bytes.data() + index * b.bytes_each;
    Datagram d;
    d.sender = sender_identity(&b.addresses[index]);
    d.address = &b.addresses[index];
    d.truncated = (h.msg_flags & MSG_TRUNC) != 0;
    const std::size_t segment = segment_size(h);
    const std::size_t step = segment == 0 || segment > length ? length : segment;
    // Every segment is a datagram of its own; the last may be shorter. One of no bytes is a
    // datagram too.
    std::size_t at = 0;
    do {
      d.data = data + at;
      d.size = std::min(step, length - at);
      b.datagrams.push_back(d);
      at += step;
    } while (at < length);
  }
  return b.datagrams;
}

std::int64_t DatagramReader::memory_bytes() const {
  return static_cast<std::int64_t>(buffers_->bytes.size());
}

}  // namespace ryle
