// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/mwa32t_receiver.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "ryle/core/error.hpp"
#include "ryle/ingest/reading_order.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kRate_hz = wire::kMwa32tSampleRateHz;
constexpr MonotonicNs kCatchUp_ns = 10'000 * kMillisecond_ns;

AssemblerConfig assembler_config(const Mwa32tSourceConfig& c, int n_udp) {
  AssemblerConfig a;
  a.n_streams = static_cast<int>(c.endpoints.size());
  a.inputs_per_stream = static_cast<int>(wire::kMwa32tInputsPerReceiver);
  a.chunk_slots = c.chunk_ticks;
  a.window_chunks = c.window_chunks;
  a.packet_slots = c.geometry.n_instants != 0 ? c.geometry.n_instants : 256;
  a.voting_streams = n_udp;
  a.wait_for_free_chunk = c.offline;
  a.bind_stream_to_sender = c.bind_stream_to_sender;
  a.held_packets = n_udp > 0 ? 256 : 0;
  a.held_packet_bytes = a.packet_slots * 32;
  if (c.geometry.n_instants == 0) a.held_packet_bytes = 65536;
  a.close_after_ns = c.close_after_ns;
  a.idle_close_ns = c.idle_close_ns;
  a.patience_ns = c.patience_ns;
  a.slots_per_s = static_cast<double>(kRate_hz) * c.rate_factor;
  // Groups on TCP know no time: after a gap they are aligned with the packets anew.
  if (n_udp == a.n_streams) a.max_gap_slots = max_gap_slots(c.clock.rate_hz.value());
  a.possible_time = possible_time(c.clock, 1, c.max_clock_error_s);
  return a;
}

void validate(const Mwa32tSourceConfig& c) {
  if (c.endpoints.empty() || c.endpoints.size() > 255) {
    throw ConfigError(fmt::format(
        "source.endpoints has {} entries; 1 to 255 receivers are possible, one endpoint each",
        c.endpoints.size()));
  }
  if (c.n_chunks <= c.window_chunks) {
    throw ConfigError(fmt::format(
        "ingest.n_chunks = {} must exceed ingest.window_chunks = {}: all of the window's "
        "chunks are open at a time",
        c.n_chunks, c.window_chunks));
  }
  if (c.chunk_ticks < 1 || c.window_chunks < 2) {
    throw ConfigError("ingest.chunk_ticks must be at least 1 and ingest.window_chunks at least 2");
  }
  if (c.geometry.marker.bits < 1 || c.geometry.marker.bits > 16) {
    throw ConfigError(
        fmt::format("source.marker.bits = {} is not in 1..16", c.geometry.marker.bits));
  }
  mwa32t_source_chunk_bytes(c);
}

}  // namespace

Mwa32tReceiver::Mwa32tReceiver(const Mwa32tSourceConfig& config)
    : ReceiverThread(config), config_(config) {
  validate(config_);
  config_.geometry.n_receivers = static_cast<std::uint32_t>(config_.endpoints.size());
  link_of_stream_.resize(config_.endpoints.size(), nullptr);
  int n_udp = 0;
  for (std::uint32_t s = 0; s < config_.endpoints.size(); ++s) {
    const Endpoint endpoint = parse_endpoint(config_.endpoints[s]);
    if (endpoint.is_pipe())
      throw ConfigError(
          fmt::format("source.listen: \"{}\": receivers of mwa32t are tcp:// or udp:// endpoints",
                      config_.endpoints[s]));
    if (endpoint.transport == Endpoint::Transport::udp) {
      ports_.open(endpoint).streams.push_back(s);
      ++n_udp;
    } else if (replays()) {
      throw ConfigError(fmt::format(
          "source.listen: \"{}\": of a capture only datagrams are read, those of udp:// endpoints",
          config_.endpoints[s]));
    } else {
      open_tcp(endpoint, s);
    }
  }
  check_receive_buffers();
  // Streams are read in steps of this size, the furthest behind first: however long the thread
  // slept and whatever waits in the sockets, no stream runs out of the window while another has
  // data to be read.
  skew_limit_ =
      std::clamp<std::int64_t>((config_.window_chunks - 1) * config_.chunk_ticks / 4, 1, 8192);
  const auto a = assembler_config(config_, n_udp);
  auto placement = std::make_unique<InterleavedPlacement>(
      a.n_streams, static_cast<std::int64_t>(wire::kMwa32tPayloadBytesPerInstant), std::byte{0});
  // Losses come by packets; room for one run of them per input in 64 packet times, more is
  // allocated when it happens.
  const std::int64_t spans =
      a.n_streams * a.inputs_per_stream * (config_.chunk_ticks / (64 * a.packet_slots) + 2);
  allocate(a, std::move(placement), config_.n_chunks, spans, config_.memory,
           wire::kMwa32tInputsPerReceiver);
  if (n_udp > 0) {
    ports_.allocate(config_.geometry.n_instants != 0 ? config_.geometry.udp_packet_bytes()
                                                     : std::size_t{65535});
  }
  publish();
}

Mwa32tReceiver::~Mwa32tReceiver() { end(); }

void Mwa32tReceiver::open_tcp(const Endpoint& endpoint, std::uint32_t stream) {
  auto link = std::make_unique<TcpLink>();
  link->stream = stream;
  link->endpoint = endpoint;
  link->retry_delay = config_.reconnect_min_ns;
  link->groups = std::make_unique<GroupStream>(config_.geometry.marker, stream);
  if (!config_.tcp_connect) {
    link->listener = tcp_listen(endpoint);
    link->endpoint.port = link->listener.local_port();
  }
  link_of_stream_[stream] = link.get();
  tcp_.push_back(std::move(link));
}

void Mwa32tReceiver::check_receive_buffers() {
  const double packet_bytes = config_.geometry.n_instants != 0
                                  ? static_cast<double>(config_.geometry.udp_packet_bytes())
                                  : 8208.0;
  const double instants = config_.geometry.n_instants != 0 ? config_.geometry.n_instants : 256.0;
  const double packets_per_s = static_cast<double>(kRate_hz) * config_.rate_factor / instants;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports_.reserve(ports_[i], packets_per_s * static_cast<double>(ports_[i].streams.size()),
                   packet_bytes, config_.stall_budget_s, config_.allow_small_rcvbuf);
  }
}

void Mwa32tReceiver::disconnect_all() {
  for (auto& link : tcp_) disconnect(*link);
}

bool Mwa32tReceiver::finished_by_itself() const {
  return config_.offline && ports_.empty() && std::ranges::all_of(tcp_, [](const auto& link) {
           return link->ever_connected && !link->connection;
         });
}

// One round: whatever is readable, the furthest behind first. Returns whether anything was.
bool Mwa32tReceiver::serve(int timeout_ms) {
  if (replays()) return serve_capture(timeout_ms);
  std::vector<pollfd> polled;
  polled.reserve(ports_.size() + 2 * tcp_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    polled.push_back({ports_[i].socket.get(), POLLIN, 0});
  }
  bool waiting = false;
  for (const auto& link : tcp_) {
    const short events = link->connecting ? POLLOUT : POLLIN;
    // A stream that waits for its position is left in the kernel's buffer: the sender waits.
    const bool held = link->ready && !link->groups->aligned();
    waiting |= held;
    polled.push_back({held || !link->connection ? -1 : link->connection.get(), events, 0});
    polled.push_back({link->listener ? link->listener.get() : -1, POLLIN, 0});
  }
  const int n =
      ::poll(polled.data(), polled.size(), waiting ? std::min(timeout_ms, 1) : timeout_ms);
  now_ = monotonic_ns();
  if (patient_until_ != 0 && now_ >= patient_until_) {
    patient_until_ = 0;
    assembler_->set_patient(false);
  }
  bool any = false;
  const std::size_t first_tcp = ports_.size();
  for (std::size_t i = 0; i < tcp_.size(); ++i) {
    auto& link = *tcp_[i];
    if (n > 0 && polled[first_tcp + 2 * i + 1].revents != 0) accept_connections(link);
    if (link.connection && !link.connecting) judge_link(link);
    if (config_.tcp_connect) continue_connecting(link);
    if (link.connecting && n > 0 && polled[first_tcp + 2 * i].revents != 0) finish_connecting(link);
    // The first bytes of a connection are read before anything else moves: they tell where it
    // joins.
    if (link.connection && !link.connecting && !link.groups->aligned() && !link.ready) {
      any |= n > 0 && polled[first_tcp + 2 * i].revents != 0;
      serve_tcp(link);
    }
  }
  if (n <= 0) return any;
  ReadingOrder order(skew_limit_);
  const auto readable = [&](std::size_t i) {
    const auto& link = *tcp_[i];
    return link.connection && !link.connecting && link.groups->aligned() &&
           polled[first_tcp + 2 * i].revents != 0;
  };
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (polled[i].revents != 0 && ports_[i].useful) order.waiting(ports_[i].position);
  }
  for (std::size_t i = 0; i < tcp_.size(); ++i) {
    if (readable(i)) order.waiting(tcp_[i]->groups->position());
  }
  for (std::size_t i = 0; i < tcp_.size(); ++i) {
    if (!readable(i)) continue;
    any = true;
    if (order.may_read(tcp_[i]->groups->position())) serve_tcp(*tcp_[i]);
  }
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (polled[i].revents == 0) continue;
    any = true;
    if (order.may_read(ports_[i].position)) serve_udp(ports_[i]);
  }
  return any;
}

void Mwa32tReceiver::serve_udp(UdpPort& port) {
  std::size_t limit = 64;
  if (ports_.size() + tcp_.size() > 1 && config_.geometry.n_instants != 0) {
    limit = std::max<std::size_t>(1, static_cast<std::size_t>(skew_limit_) * port.streams.size() /
                                         config_.geometry.n_instants);
  }
  receive(port, limit);
  if (assembler_->totals().segments != segments_seen_) realign_after_new_segment();
}

Reason Mwa32tReceiver::take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) {
  wire::Packet packet;
  const auto bytes = std::span(datagram.data, datagram.size);
  const wire::Reject reject = wire::decode(config_.geometry, bytes, packet);
  const bool ours = std::ranges::find(port.streams, packet.stream) != port.streams.end();
  if (reject != wire::Reject::none || !ours) {
    const Reason reason = reject != wire::Reject::none ? reason_of(reject) : Reason::foreign_stream;
    assembler_->reject(reason);
    return reason;
  }
  CountedPacket counted;
  counted.stream = packet.stream;
  counted.sender = datagram.sender;
  counted.slot_raw = packet.tick_raw;
  counted.slot_bits = packet.tick_bits;
  counted.n_slots = packet.n_ticks;
  counted.payload = bytes.subspan(packet.payload_offset, packet.payload_bytes);
  counted.stride_bytes = static_cast<std::int64_t>(wire::kMwa32tPayloadBytesPerInstant);
  return offer(port, counted);
}

void Mwa32tReceiver::accept_connections(TcpLink& link) {
  SenderAddress peer;
  for (Socket connection = tcp_accept(link.listener, &peer); connection;
       connection = tcp_accept(link.listener, &peer)) {
    // One sender per receiver. A second one replaces a connection that does not deliver (a node
    // that lost power never said good-bye, a stranger brings nothing) and is refused otherwise.
    // What the first left behind is read before it is judged.
    if (link.connection && allowed(peer)) {
      serve_tcp(link);
      judge_link(link);
      if (link.connection && !link.delivers) disconnect(link);
    }
    if (!allowed(peer) || link.connection) {
      ++rejected_connections_;
      last_rejected_connection_ = peer;
      continue;  // closed at once
    }
    link.peer = peer;
    connected(link, std::move(connection));
  }
}

// Once in replace_after_ns: the link delivers when slots of its stream were placed, and no fewer
// than a sixteenth of the median of the other streams that had any: so a trickle holds no place.
// One that waits for its position delivers when more than a trickle waits to be read.
void Mwa32tReceiver::judge_link(TcpLink& link) {
  constexpr std::int64_t kTrickle_bytes = 4096;
  if (now_ - link.judged_at < config_.replace_after_ns) return;
  std::vector<std::uint64_t> others;
  std::uint64_t own = 0;
  for (std::uint32_t s = 0; s < link_of_stream_.size(); ++s) {
    const std::uint64_t placed = assembler_->n_placed(s) - link.placed_then[s];
    if (s == link.stream) {
      own = placed;
    } else if (placed > 0) {
      others.push_back(placed);
    }
    link.placed_then[s] += placed;
  }
  link.judged_at = now_;
  if (link.ready && !link.groups->aligned()) {
    link.delivers = unread_bytes(link.connection) > kTrickle_bytes;
    return;
  }
  link.delivers = own > 0;
  if (others.empty()) return;
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  link.delivers = 16 * own >= *middle && own > 0;
}

void Mwa32tReceiver::continue_connecting(TcpLink& link) {
  if (link.connection || now_ < link.retry_at) return;
  link.connection = tcp_connect(link.endpoint);
  link.connecting = static_cast<bool>(link.connection);
  link.retry_at = now_ + link.retry_delay;
  link.retry_delay = std::min(2 * link.retry_delay, config_.reconnect_max_ns);
}

void Mwa32tReceiver::finish_connecting(TcpLink& link) {
  link.connecting = false;
  if (connect_error(link.connection) != 0) {
    link.connection.close();
    return;
  }
  link.retry_delay = config_.reconnect_min_ns;
  connected(link, std::move(link.connection));
}

void Mwa32tReceiver::connected(TcpLink& link, Socket connection) {
  set_keepalive(connection);
  link.connection = std::move(connection);
  link.ever_connected = true;
  link.got_bytes = link.ready = false;
  link.reference.reset();
  link.delivers = true;
  link.judged_at = now_;
  link.placed_then.clear();
  for (std::uint32_t s = 0; s < link_of_stream_.size(); ++s) {
    link.placed_then.push_back(assembler_->n_placed(s));
  }
  link.groups->reset();
}

void Mwa32tReceiver::serve_tcp(TcpLink& link) {
  auto space = link.groups->space();
  if (space.empty()) return;
  space = space.first(
      std::min(space.size(), static_cast<std::size_t>(skew_limit_ + 4) * wire::kMwa32tGroupBytes));
  const ssize_t n = recv(link.connection.get(), space.data(), space.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (n <= 0) return disconnect(link);
  if (!link.got_bytes) {
    link.got_bytes = true;
    if (!assembler_->locked()) {
      if (assembler_->candidate().count > 0) link.reference = assembler_->candidate().latest_slot;
    } else {
      const auto reference = others(link.stream);
      link.reference = reference.known ? reference.position : extrapolated();
    }
  }
  link.groups->commit(static_cast<std::size_t>(n));
  serving_ = &link;
  if (!link.groups->aligned()) {
    if (!link.ready && link.groups->ready(*this)) {
      link.ready = true;
      link.ready_since = now_;
    }
    return;
  }
  const bool drained = static_cast<std::size_t>(n) < space.size();
  link.groups->parse(others(link.stream), drained, now_, *this);
}

void Mwa32tReceiver::disconnect(TcpLink& link) {
  if (!link.connection) return;
  serving_ = &link;
  if (!link.connecting) {
    if (link.ready && !link.groups->aligned() && assembler_->locked()) align_link(link);
    link.groups->finish(*this);
  }
  link.groups->reset();
  link.connection.close();
  link.connecting = link.ready = false;
  link.retry_at = now_ + link.retry_delay;
}

// Gives streams that have shown their first groups a position (ingest.md 2.1).
// Returns whether one was given.
bool Mwa32tReceiver::align() {
  if (assembler_->totals().segments != segments_seen_) realign_after_new_segment();
  bool any_ready = false, all_ready = true;
  MonotonicNs first_ready = now_;
  for (const auto& link : tcp_) {
    if (link->ready && !link->groups->aligned()) {
      any_ready = true;
      first_ready = std::min(first_ready, link->ready_since);
    } else {
      all_ready = false;
    }
  }
  if (!any_ready) return false;
  if (!assembler_->locked()) {
    // With UDP among the receivers the 64-bit counters tell the time; without, the first common
    // group is instant 0.
    // Twice the patience: a lone UDP stream, which becomes enough after it, still comes first.
    const MonotonicNs patience_ns = (ports_.empty() ? 1 : 2) * config_.patience_ns;
    const bool waited = now_ - first_ready >= patience_ns;
    if (!waited && !(all_ready && ports_.empty())) return false;
    align_without_udp(!ports_.empty());
    return true;
  }
  for (auto& link : tcp_) {
    if (link->ready && !link->groups->aligned()) align_link(*link);
  }
  return true;
}

// Returns whether there was a stream to align.
bool Mwa32tReceiver::align_without_udp(bool provisional) {
  const auto& marker = config_.geometry.marker;
  std::optional<std::int64_t> first, last;
  std::vector<std::pair<TcpLink*, std::int64_t>> instants;
  for (auto& link : tcp_) {
    if (!link->ready) continue;
    const auto check =
        wire::check_mwa32t_marker(marker, link->groups->first_marker(), first.value_or(0));
    if (!first) first = check.instant;
    last = std::max(last.value_or(check.instant), check.instant);
    instants.emplace_back(link.get(), check.instant);
  }
  if (!last) return false;
  instant_offset_ = marker.mode == wire::MarkerMode::counter ? *last : 0;
  provisional_ = provisional && !ports_.empty();
  assembler_->lock(0, now_);
  assembler_->set_provisional(provisional_);
  segments_seen_ = assembler_->totals().segments;
  // While they waited for each other their senders did, too, and what those have kept comes at
  // once. Where only such senders are, nothing of it need be lost.
  if (ports_.empty()) {
    patient_until_ = now_ + kCatchUp_ns;
    assembler_->set_patient(true);
  }
  for (const auto& [link, instant] : instants) {
    serving_ = link;
    link->groups->align(instant - *last, instant_offset_);
    link->groups->parse(others(link->stream), false, now_, *this);
  }
  return true;
}

void Mwa32tReceiver::align_link(TcpLink& link) {
  serving_ = &link;
  const auto& marker = config_.geometry.marker;
  const std::int64_t reference = link.reference.value_or(assembler_->first_vote_slot());
  const auto check =
      wire::check_mwa32t_marker(marker, link.groups->first_marker(), reference + instant_offset_);
  link.groups->align(check.instant - instant_offset_, instant_offset_);
  link.groups->parse(others(link.stream), false, now_, *this);
}

// The voters moved the time: streams without a time of their own go to the new one, congruent to
// their counters.
void Mwa32tReceiver::realign_after_new_segment() {
  const bool first = segments_seen_ == 0;
  segments_seen_ = assembler_->totals().segments;
  if (first) return;
  const std::int64_t old_offset = instant_offset_;
  if (provisional_) instant_offset_ = 0;
  provisional_ = false;
  for (auto& link : tcp_) {
    if (!link->groups->aligned()) continue;
    const std::int64_t instant = link->groups->position() + old_offset;
    const auto word = wire::mwa32t_marker_word(config_.geometry.marker, instant);
    const auto check = wire::check_mwa32t_marker(config_.geometry.marker, word,
                                                 assembler_->origin_slot() + instant_offset_);
    link->groups->align(check.instant - instant_offset_, instant_offset_);
  }
}

std::int64_t Mwa32tReceiver::position_of(std::uint32_t stream) const {
  const TcpLink* link = link_of_stream_[stream];
  return link != nullptr && link->groups->aligned() ? link->groups->position()
                                                    : assembler_->position(stream);
}

StreamReference Mwa32tReceiver::others(std::uint32_t stream) const {
  std::vector<std::int64_t> positions;
  positions.reserve(link_of_stream_.size());
  for (std::uint32_t s = 0; s < link_of_stream_.size(); ++s) {
    if (s != stream && assembler_->live(s, now_, 1000 * kMillisecond_ns)) {
      positions.push_back(position_of(s));
    }
  }
  if (positions.empty()) return {};
  const auto middle = positions.begin() + static_cast<std::ptrdiff_t>((positions.size() - 1) / 2);
  std::nth_element(positions.begin(), middle, positions.end());
  return {true, *middle};
}

// Where the stream of samples should be now when nobody delivers: the last position plus the time
// since.
std::int64_t Mwa32tReceiver::extrapolated() const {
  std::int64_t position = assembler_->origin_slot();
  for (std::uint32_t s = 0; s < link_of_stream_.size(); ++s) {
    position = std::max(position, assembler_->position(s));
  }
  const __int128 elapsed = now_ - assembler_->last_placed();
  return position + static_cast<std::int64_t>(elapsed * kRate_hz / 1'000'000'000);
}

void Mwa32tReceiver::on_run(const Run& run) {
  Run rest = run;
  const auto counted = assembler_->totals().reasons;
  const std::int64_t before =
      std::clamp<std::int64_t>(assembler_->origin_slot() - run.slot, 0, run.n_slots);
  if (before > 0) {
    // Older than the first common group.
    assembler_->reject(Reason::prelock, static_cast<std::uint64_t>(before));
    rest.slot += before;
    rest.n_slots -= before;
    rest.data += before * run.stride_bytes;
  }
  if (rest.n_slots > 0) assembler_->offer_run(rest, now_);
  if (serving_ == nullptr) return;
  for (std::size_t r = 1; r < kReasons; ++r) {
    if (assembler_->totals().reasons[r] == counted[r]) continue;
    note_rejected(static_cast<Reason>(r), serving_->peer,
                  {run.data, static_cast<std::size_t>(wire::kMwa32tInputsPerReceiver * 2)});
  }
}

void Mwa32tReceiver::on_reject(Reason reason, std::uint64_t n_groups,
                               std::span<const std::byte> bytes) {
  assembler_->reject(reason, n_groups);
  if (serving_ != nullptr) note_rejected(reason, serving_->peer, bytes);
}

std::int64_t Mwa32tReceiver::memory_bytes() const {
  std::int64_t bytes = ReceiverThread::memory_bytes();
  for (const auto& link : tcp_) bytes += static_cast<std::int64_t>(link->groups->memory_bytes());
  return bytes;
}

std::vector<std::string> Mwa32tReceiver::endpoints() const {
  std::vector<std::string> result;
  for (std::uint32_t s = 0; s < link_of_stream_.size(); ++s) {
    if (link_of_stream_[s] != nullptr) {
      result.push_back(to_string(link_of_stream_[s]->endpoint));
      continue;
    }
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      if (std::ranges::find(ports_[i].streams, s) != ports_[i].streams.end()) {
        result.push_back(to_string(ports_[i].endpoint));
      }
    }
  }
  return result;
}

}  // namespace ryle
