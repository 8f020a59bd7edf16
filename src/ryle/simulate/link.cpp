// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/link.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/simulate/impair.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::simulate::detail {
namespace {

constexpr std::int64_t kRetry_ns = 50'000'000;
constexpr std::int64_t kGroupBytes = wire::kMwa32tGroupBytes;

std::int64_t in_lap(std::int64_t tick, std::int64_t period) {
  const std::int64_t remainder = tick % period;
  return remainder < 0 ? remainder + period : remainder;
}

}  // namespace

std::int64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

Endpoint parse_target(const std::string& text) {
  const Endpoint endpoint = parse_endpoint(text);
  if (endpoint.port == 0 || endpoint.is_pipe())
    throw ConfigError("endpoint '" + text +
                      "' is not tcp://host:port or udp://host:port with a port above 0");
  return endpoint;
}

Link::Link(Endpoint endpoint, std::vector<std::byte> image, std::int64_t period, Tick start_tick,
           Spans outages, std::int64_t granularity)
    : endpoint_(std::move(endpoint)),
      image_(std::move(image)),
      period_(period),
      start_tick_(start_tick),
      granularity_(granularity),
      outages_(std::move(outages)) {}

/// A connect to a loopback port nobody listens on can meet itself, when the kernel picks that very
/// port for this end.
bool Link::accept_connection(Descriptor& candidate) {
  sockaddr_storage here{}, there{};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  ::getsockname(candidate.get(), reinterpret_cast<sockaddr*>(&here), &here_size);
  ::getpeername(candidate.get(), reinterpret_cast<sockaddr*>(&there), &there_size);
  if (endpoint_.is_tcp() && here_size == there_size && std::memcmp(&here, &there, here_size) == 0) {
    last_error_ = "nobody listens";
    candidate.close();
    return false;
  }
  socket_ = std::move(candidate);
  prepare();
  return true;
}

void Link::begin_attempt() {
  addrinfo hints{};
  hints.ai_socktype = endpoint_.is_tcp() ? SOCK_STREAM : SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int status =
      getaddrinfo(endpoint_.host.c_str(), std::to_string(endpoint_.port).c_str(), &hints, &found);
  if (status != 0) {
    last_error_ = gai_strerror(status);
    return;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, &freeaddrinfo);
  Descriptor candidate(
      ::socket(found->ai_family, found->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!candidate) {
    last_error_ = std::strerror(errno);
    return;
  }
  if (endpoint_.is_tcp()) {
    const int on = 1;
    ::setsockopt(candidate.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (!endpoint_.is_tcp()) prepare_multicast_sender(candidate.get(), endpoint_);
  if (::connect(candidate.get(), found->ai_addr, found->ai_addrlen) == 0) {
    accept_connection(candidate);
  } else if (errno == EINPROGRESS) {
    pending_ = std::move(candidate);
  } else {
    last_error_ = std::strerror(errno);
  }
}

bool Link::connect() {
  if (socket_) return true;
  if (pending_) {
    pollfd ready{pending_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    int reason = 0;
    socklen_t size = sizeof reason;
    ::getsockopt(pending_.get(), SOL_SOCKET, SO_ERROR, &reason, &size);
    if (reason == 0) return accept_connection(pending_);
    last_error_ = std::strerror(reason);
    pending_.close();
    return false;
  }
  if (monotonic_ns() < next_attempt_ns_) return false;
  next_attempt_ns_ = monotonic_ns() + kRetry_ns;
  begin_attempt();
  return static_cast<bool>(socket_);
}

std::string Link::last_error() const { return last_error_.empty() ? "no answer" : last_error_; }

void Link::skip_to(std::int64_t position) {
  samples_skipped_.fetch_add(position - position_, std::memory_order_relaxed);
  position_ = position;
}

void Link::count_sent(std::int64_t samples, std::int64_t packets, std::int64_t bytes) {
  samples_sent_.fetch_add(samples, std::memory_order_relaxed);
  packets_sent_.fetch_add(packets, std::memory_order_relaxed);
  bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
}

bool Link::advance(std::int64_t due, std::int64_t maximum) {
  while (next_outage_ < outages_.size() && position_ >= outages_[next_outage_].first) {
    // The node dies here: its connection goes (after what is under way), its samples are never
    // made. A board that sends datagrams comes back from the same port: it keeps its socket.
    if (endpoint_.is_tcp()) socket_.close();
    pending_.close();
    reset_stream();
    skip_to(std::max(position_, outages_[next_outage_].second));
    ++next_outage_;
  }
  if (position_ >= due) return false;
  if (!connect()) return false;
  if (was_broken_) {
    // A real node has no memory of what it could not deliver: it goes on with what is sampled now.
    was_broken_ = false;
    skip_to(std::max(position_, (due - 1) / granularity_ * granularity_));
  }
  std::int64_t until = std::min(due, position_ + maximum);
  if (next_outage_ < outages_.size()) until = std::min(until, outages_[next_outage_].first);
  if (until <= position_) return false;
  switch (send_until(until)) {
    case Sent::all:
      return false;
    case Sent::full:
      return true;
    case Sent::broken:
      disconnects_.fetch_add(1, std::memory_order_relaxed);
      socket_.close();
      reset_stream();
      was_broken_ = true;
      next_attempt_ns_ = monotonic_ns() + kRetry_ns;
      return false;
  }
  return false;
}

void Link::finish(std::int64_t due) {
  if (down() && due > position_) skip_to(due);
  if (socket_ && endpoint_.is_tcp()) ::shutdown(socket_.get(), SHUT_WR);
  socket_.close();
  pending_.close();
}

SenderCounters Link::counters() const {
  SenderCounters c;
  c.samples_sent = samples_sent_.load(std::memory_order_relaxed);
  c.packets_sent = packets_sent_.load(std::memory_order_relaxed);
  c.bytes_sent = bytes_sent_.load(std::memory_order_relaxed);
  c.samples_skipped = samples_skipped_.load(std::memory_order_relaxed);
  c.disconnects = disconnects_.load(std::memory_order_relaxed);
  c.rejected = rejected_.load(std::memory_order_relaxed);
  return c;
}

namespace {

/// Groups on a byte stream. A write may end inside a group; the rest goes first next time.
class TcpLink final : public Link {
 public:
  using Link::Link;

 private:
  Sent send_until(std::int64_t until) override {
    while (position_ < until) {
      const std::int64_t first = in_lap(start_tick_ + position_, period_);
      const std::int64_t n = until - position_;
      const std::int64_t n_here = std::min(n, period_ - first);
      iovec parts[2] = {
          {image_.data() + first * kGroupBytes + bytes_into_group_,
           static_cast<std::size_t>(n_here * kGroupBytes - bytes_into_group_)},
          {image_.data(), static_cast<std::size_t>(std::min(n - n_here, period_) * kGroupBytes)}};
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = parts[1].iov_len > 0 ? 2 : 1;
      const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return Sent::full;
        return Sent::broken;
      }
      const std::int64_t into = bytes_into_group_ + sent;
      bytes_into_group_ = into % kGroupBytes;
      position_ += into / kGroupBytes;
      count_sent(into / kGroupBytes, into / kGroupBytes, sent);
    }
    return Sent::all;
  }

  void reset_stream() override { bytes_into_group_ = 0; }

  std::int64_t bytes_into_group_ = 0;
};

constexpr int kUdpSegment = 103;  // UDP_SEGMENT of linux/udp.h

/// Datagrams, up to 64 messages a call, or the same packets on a byte stream; only the counter
/// changes from lap to lap.
class UdpLink final : public Link {
 public:
  UdpLink(Endpoint endpoint, std::vector<std::byte> image, std::int64_t period, Tick start_tick,
          Spans outages, const UdpPacketFormat& format)
      : Link(std::move(endpoint), std::move(image), period, start_tick, std::move(outages),
             format.packet_samples),
        format_(format) {
    if (!format_.impairments.any_packet()) return;
    const SendImpairments& from = format_.impairments;
    ImpairConfig config;
    config.seed = from.seed;
    config.loss = from.loss;
    config.burst_begin = from.bursts;
    config.burst_end = 1 / std::max(1.0, from.burst_packets);
    config.duplicate = from.duplicate;
    config.reorder = from.reorder;
    config.reorder_depth = static_cast<int>(from.reorder_packets);
    config.corrupt_header = from.corrupt;
    config.format.header_bytes = static_cast<std::size_t>(format_.header_bytes);
    config.format.counter_offset = static_cast<std::size_t>(format_.counter_offset);
    impairer_ = std::make_unique<Impairer>(
        config,
        [this](std::span<const std::byte> packet, const LedgerRecord&) { put_out(packet); });
    impairer_->keep_ledger(false);
  }
  void finish(std::int64_t due) override {
    if (impairer_) impairer_->flush();  // what is held back
    Link::finish(due);
  }

 private:
  static constexpr std::size_t kBatch = 64;

  // One packet, to whoever takes them; a full socket is waited for: what an impairment decided is
  // not decided twice.
  void put_out(std::span<const std::byte> packet) {
    count_sent(0, 1, static_cast<std::int64_t>(packet.size()));
    if (format_.sink) return format_.sink(start_tick_ + position_, packet);
    while (socket_ && ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL) < 0) {
      if (errno == ECONNREFUSED) count_rejected();
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS && errno != EINTR &&
          errno != ECONNREFUSED)
        return;
      pollfd ready{socket_.get(), POLLOUT, 0};
      ::poll(&ready, 1, 1);
    }
  }

  // Packets one by one, through the impairments or to the sink.
  Sent send_single(std::size_t n_messages) {
    for (std::size_t k = 0; k < n_messages; ++k) {
      const std::span packet(static_cast<const std::byte*>(parts_[k].iov_base), parts_[k].iov_len);
      if (impairer_) {
        impairer_->offer(packet);
      } else {
        put_out(packet);
      }
      position_ += format_.packet_samples;
      count_sent(format_.packet_samples, 0, 0);
    }
    return Sent::all;
  }

  // Packets on a byte stream. A write may end inside one; the rest goes first next time.
  Sent send_stream(std::size_t n_packets) {
    parts_[0].iov_base = static_cast<std::byte*>(parts_[0].iov_base) + bytes_into_packet_;
    parts_[0].iov_len -= static_cast<std::size_t>(bytes_into_packet_);
    msghdr message{};
    message.msg_iov = parts_.data();
    message.msg_iovlen = n_packets;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) return Sent::all;
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? Sent::full
                                                                         : Sent::broken;
    }
    const std::int64_t into = bytes_into_packet_ + sent;
    const std::int64_t packets = into / format_.packet_bytes;
    bytes_into_packet_ = into % format_.packet_bytes;
    position_ += packets * format_.packet_samples;
    count_sent(packets * format_.packet_samples, packets, sent);
    return Sent::all;
  }
  void reset_stream() override { bytes_into_packet_ = 0; }

  // The kernel cuts messages from here on, or the link goes back to one packet a message.
  void prepare() override {
    if (format_.packets_per_message <= 1 || endpoint_.is_tcp()) return;
    const int size = static_cast<int>(format_.packet_bytes);
    if (::setsockopt(socket_.get(), IPPROTO_UDP, kUdpSegment, &size, sizeof size) != 0) {
      format_.packets_per_message = 1;
    }
  }

  // The tick that a board whose clock has stepped believes it is.
  Tick counted(Tick tick) const {
    const SendImpairments& i = format_.impairments;
    return i.step_ticks != 0 && tick - start_tick_ >= i.step_at_tick ? tick + i.step_ticks : tick;
  }

  std::uint64_t word_of(Tick tick) const {
    tick = counted(tick);
    if (format_.word) return format_.word(tick);
    return format_.counter_bias + format_.counter_scale * static_cast<std::uint64_t>(tick);
  }

  void stamp(Tick tick, std::byte* packet) const {
    if (format_.stamp) {
      format_.stamp(counted(tick), {packet, static_cast<std::size_t>(format_.packet_bytes)});
    } else {
      wire::store_be(packet + format_.counter_offset, word_of(tick));
    }
  }

  // The n packets of a message from the k-th of this call on, in memory of their own.
  std::byte* edited_copy(std::size_t message, const std::byte* packets, std::int64_t k,
                         std::int64_t n) {
    const std::int64_t room = format_.packets_per_message * format_.packet_bytes;
    edited_.resize(kBatch * static_cast<std::size_t>(room));
    std::byte* copy = edited_.data() + static_cast<std::int64_t>(message) * room;
    std::memcpy(copy, packets, static_cast<std::size_t>(n * format_.packet_bytes));
    for (std::int64_t i = 0; i < n; ++i) {
      const Tick tick = start_tick_ + position_ + (k + i) * format_.packet_samples;
      if (format_.edits(tick)) format_.edit(tick, copy + i * format_.packet_bytes);
    }
    return copy;
  }

  // Fills messages with packets from position_ on, as far as `until` and the end of the lap.
  std::size_t fill_messages(std::int64_t until) {
    const std::int64_t first = in_lap(start_tick_ + position_, period_) / format_.packet_samples;
    std::int64_t n_packets = std::min((until - position_) / format_.packet_samples,
                                      period_ / format_.packet_samples - first);
    std::int64_t lap = 0;
    for (const auto& epoch : format_.epochs) {
      const Tick ahead = epoch.first - start_tick_ - position_;
      if (ahead <= 0) {
        lap = epoch.lap;
        continue;
      }
      const std::int64_t packets = (ahead + format_.packet_samples - 1) / format_.packet_samples;
      n_packets = std::min(n_packets, packets);
      break;
    }
    const std::int64_t lap_packets = period_ / format_.packet_samples;
    std::size_t n_messages = 0;
    for (std::int64_t k = 0; k < n_packets && n_messages < kBatch;) {
      const std::int64_t n = std::min(format_.packets_per_message, n_packets - k);
      std::byte* packets = image_.data() + (lap * lap_packets + first + k) * format_.packet_bytes;
      bool edited = false;
      for (std::int64_t i = 0; i < n; ++i, ++k) {
        const Tick tick = start_tick_ + position_ + k * format_.packet_samples;
        stamp(tick, packets + i * format_.packet_bytes);
        edited = edited || (format_.edits && format_.edits(tick));
      }
      if (edited) packets = edited_copy(n_messages, packets, k - n, n);
      parts_[n_messages] = {packets, static_cast<std::size_t>(n * format_.packet_bytes)};
      messages_[n_messages] = {};
      messages_[n_messages].msg_hdr.msg_iov = &parts_[n_messages];
      messages_[n_messages].msg_hdr.msg_iovlen = 1;
      ++n_messages;
    }
    return n_messages;
  }

  Sent send_until(std::int64_t until) override {
    while (position_ + format_.packet_samples <= until) {
      const std::size_t n = fill_messages(until);
      if (endpoint_.is_tcp()) {
        const Sent sent = send_stream(n);
        if (sent != Sent::all) return sent;
        continue;
      }
      if (impairer_ || format_.sink) {
        send_single(n);
        continue;
      }
      const int sent = ::sendmmsg(socket_.get(), messages_.data(), static_cast<unsigned>(n),
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return Sent::full;
        if (errno ==
            ECONNREFUSED) {  // reports an earlier datagram; this one was not sent: send it again
          count_rejected();
          continue;
        }
        return Sent::broken;
      }
      std::int64_t bytes = 0;
      for (int k = 0; k < sent; ++k) bytes += static_cast<std::int64_t>(parts_[k].iov_len);
      const std::int64_t packets = bytes / format_.packet_bytes;
      position_ += packets * format_.packet_samples;
      count_sent(packets * format_.packet_samples, packets, bytes);
    }
    return Sent::all;
  }

  UdpPacketFormat format_;
  std::unique_ptr<Impairer> impairer_;
  std::int64_t bytes_into_packet_ = 0;  // of a byte stream
  std::vector<std::byte> edited_;
  std::array<iovec, kBatch> parts_{};
  std::array<mmsghdr, kBatch> messages_{};
};

}  // namespace

std::int64_t packets_per_message(std::int64_t packet_bytes) {
  constexpr std::int64_t kMessageBytes = 65'000, kMessagePackets = 60;
  return std::clamp<std::int64_t>(kMessageBytes / packet_bytes, 1, kMessagePackets);
}

std::unique_ptr<Link> make_tcp_link(Endpoint endpoint, std::vector<std::byte> groups,
                                    std::int64_t period, Tick start_tick, Link::Spans outages) {
  return std::make_unique<TcpLink>(std::move(endpoint), std::move(groups), period, start_tick,
                                   std::move(outages), 1);
}

std::unique_ptr<Link> make_udp_link(Endpoint endpoint, std::vector<std::byte> packets,
                                    std::int64_t period, Tick start_tick, Link::Spans outages,
                                    const UdpPacketFormat& format) {
  return std::make_unique<UdpLink>(std::move(endpoint), std::move(packets), period, start_tick,
                                   std::move(outages), format);
}

}  // namespace ryle::simulate::detail
