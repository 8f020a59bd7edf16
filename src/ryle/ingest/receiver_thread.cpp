// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/receiver_thread.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/ingest/reading_order.hpp"
#include "ryle/ingest/recording_time.hpp"

namespace ryle {
namespace {

constexpr MonotonicNs kDrainLimit_ns = 2000 * kMillisecond_ns;
// On a busy machine what was sent over loopback may not be readable at once.
constexpr MonotonicNs kDrainQuiet_ns = 50 * kMillisecond_ns;

std::int64_t host_unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

MonotonicNs monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::int64_t tai_minus_unix_ns() {
  const std::int64_t second = host_unix_ns() / 1'000'000'000;
  const auto tai_ns = recording_tai_ns_from_unix(second);
  return tai_ns ? *tai_ns - second * 1'000'000'000 : 0;
}

std::int64_t max_gap_slots(double slots_per_s) { return std::llround(kMaxLiveGap_s * slots_per_s); }

std::int64_t host_tai_ns() { return host_unix_ns() + tai_minus_unix_ns(); }

std::function<bool(std::int64_t slot)> possible_time(const SampleClock& clock,
                                                     std::int64_t ticks_per_slot,
                                                     double max_clock_error_s) {
  // 1961 and 2200: what time scales are defined for. Wider than 64 bits: a forged counter must not
  // wrap to a date that is right.
  constexpr __int128 kSecond_tai_ns = 1'000'000'000;
  constexpr __int128 kEarliest_tai_ns = -283'996'800 * kSecond_tai_ns;
  constexpr __int128 kLatest_tai_ns = 7'258'118'400 * kSecond_tai_ns;
  const auto max_error_ns = static_cast<__int128>(max_clock_error_s * 1e9);
  const std::int64_t leap_ns = tai_minus_unix_ns();
  return [=](std::int64_t slot) {
    const __int128 ticks = static_cast<__int128>(slot) * ticks_per_slot;
    const __int128 rate = clock.rate_hz.num;
    // Seconds first: ticks times 10^9 times a denominator may not fit.
    const __int128 scaled = ticks * clock.rate_hz.den;
    const __int128 tai_ns =
        clock.epoch_tai_ns + scaled / rate * kSecond_tai_ns + scaled % rate * kSecond_tai_ns / rate;
    if (tai_ns < kEarliest_tai_ns || tai_ns > kLatest_tai_ns) return false;
    if (max_error_ns == 0) return true;
    const __int128 error_ns = tai_ns - (host_unix_ns() + leap_ns);
    return error_ns <= max_error_ns && error_ns >= -max_error_ns;
  };
}

ReceiverThread::ReceiverThread(const ReceiverConfig& config)
    : ports_(config.udp_gro, !config.capture.empty()),
      senders_(config.allowed_senders),
      capture_path_(config.capture),
      waits_(config.waits),
      replay_speed_(config.replay_speed) {
  if (config.capture.empty()) return;
  capture_ = std::make_unique<CaptureReader>(config.capture);
}

void ReceiverThread::allocate(const AssemblerConfig& config, std::unique_ptr<Placement> placement,
                              int n_chunks, std::int64_t reserved_spans, MemorySpace memory,
                              std::uint64_t samples_per_slot) {
  AssemblerConfig assembler = config;
  assembler.wait_for_free_chunk |= (replays() && replay_speed_ == 0) || waits_;
  pool_ = std::make_unique<ChunkPool>(n_chunks, placement->chunk_bytes(config.chunk_slots),
                                      reserved_spans, memory);
  assembler_ = std::make_unique<Assembler>(assembler, std::move(placement), *pool_);
  assembler_->set_cancel([this] { return abandon_.load(); });
  assembler_->set_on_segment([this] {
    ports_.rewind(assembler_->origin_slot());
    streams_.rewind(assembler_->origin_slot());
    segment_begun();
  });
  assembler_->set_keeps_grid([this] { return keeps_grid(); });
  samples_per_slot_ = samples_per_slot;
  gap_slots_per_s_ = static_cast<double>(config.max_gap_slots) / kMaxLiveGap_s;
}

void ReceiverThread::end() {
  abandon_ = true;
  stopping_ = true;
  thread_.reset();
}

Reason ReceiverThread::offer(UdpPort& port, const CountedPacket& packet) {
  const Reason reason = assembler_->offer(packet, now_);
  // Of this stream: another one that shares the socket may be dead, its position stands still.
  if (reason == Reason::used || reason == Reason::overrun) {
    port.position = assembler_->position(packet.stream);
  }
  return reason;
}

Reason ReceiverThread::judge(UdpPort& port, const DatagramReader::Datagram& datagram) {
  Reason reason = Reason::used;
  if (!senders_.empty() && !senders_.allows(sender_address(datagram.address))) {
    reason = Reason::foreign_sender;
    assembler_->reject(reason);
  } else if (datagram.truncated) {
    reason = Reason::too_long;
    assembler_->reject(reason);
  } else {
    reason = take_datagram(port, datagram);
  }
  if (reason != Reason::used) {
    note_rejected(reason, sender_address(datagram.address), {datagram.data, datagram.size});
  }
  return reason;
}

void ReceiverThread::note_rejected(Reason reason, const SenderAddress& sender,
                                   std::span<const std::byte> bytes) {
  auto& last = last_rejected_[static_cast<std::size_t>(reason)];
  last.any = true;
  last.sender = sender;
  last.n_bytes = bytes.size();
  last.n_header = std::min(bytes.size(), last.header.size());
  std::copy_n(bytes.begin(), last.n_header, last.header.begin());
}

void ReceiverThread::receive(UdpPort& port, std::size_t limit) {
  ports_.receive(port, limit,
                 [&](const DatagramReader::Datagram& datagram) { return judge(port, datagram); });
}

std::int64_t ReceiverThread::arrival_tai_ns() const {
  if (!replays()) return host_tai_ns();
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  const std::int64_t unix_ns = captured_.unix_ns;
  return recording_tai_ns_from_unix(unix_ns / kSecond_ns, unix_ns % kSecond_ns).value_or(unix_ns);
}

// Reads ahead by one; false at the end.
bool ReceiverThread::next_captured() {
  if (has_captured_) return true;
  if (capture_ended_) return false;
  try {
    has_captured_ = capture_->next(captured_);
  } catch (const FormatError& error) {
    fault_ = error.what();
  }
  capture_ended_ = !has_captured_;
  return has_captured_;
}

// With a speed the host's clock is the time, else that of the capture: what becomes of the packets
// then does not depend on how fast they are read. Waits for the next one, at most `timeout_ms`.
bool ReceiverThread::captured_is_due(int timeout_ms) {
  if (replay_speed_ == 0) {
    now_ = std::max(now_, captured_.unix_ns);
    return true;
  }
  now_ = monotonic_ns();
  if (replay_begin_ == 0) replay_begin_ = now_;
  const double recorded_ns = static_cast<double>(captured_.unix_ns - capture_->first_ns());
  const MonotonicNs due = replay_begin_ + std::llround(recorded_ns / replay_speed_);
  if (due <= now_) return true;
  std::this_thread::sleep_for(
      std::chrono::nanoseconds(std::min(due - now_, timeout_ms * kMillisecond_ns)));
  now_ = monotonic_ns();
  return due <= now_;
}

bool ReceiverThread::serve_capture(int timeout_ms) {
  constexpr int kBatch = 64;
  for (int k = 0; k < kBatch; ++k) {
    if (!next_captured() || !captured_is_due(k == 0 ? timeout_ms : 0)) return k > 0;
    has_captured_ = false;
    UdpPort* port = ports_.find(&captured_.from, &captured_.to);
    if (port == nullptr) {
      ++other_ports_;
      continue;
    }
    ++port->received;
    DatagramReader::Datagram datagram;
    datagram.data = captured_.payload.data();
    datagram.size = captured_.payload.size();
    datagram.sender = sender_identity(&captured_.from);
    datagram.address = &captured_.from;
    if (captured_.cut) {
      assembler_->reject(Reason::too_short);
      note_rejected(Reason::too_short, sender_address(&captured_.from), captured_.payload);
      continue;
    }
    judge(*port, datagram);
  }
  return true;
}

std::string ReceiverThread::capture_note() const {
  const CaptureCounts& counts = capture_->counts();
  std::string text = left_out_text(counts);
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  if (other_ports_ > 0) add(fmt::format("{} datagrams to other ports", other_ports_));
  if (counts.cut > 0)
    add(fmt::format("{} datagrams cut by the capture (tcpdump -s 0 keeps them whole)", counts.cut));
  if (capture_->ends_within_record()) add("a last record that is not whole");
  return text.empty() ? "" : capture_path_ + " also has: " + text;
}

// Segments after the first one, for the operator.
std::string ReceiverThread::jump_note() const {
  const auto& totals = assembler_->totals();
  if (totals.jumps == 0 || gap_slots_per_s_ == 0) return {};
  const double jump_s = static_cast<double>(totals.jump_slots) / gap_slots_per_s_;
  return fmt::format(
      "the time of the packets {} by {:.6g} s{}: a gap of up to {:g} s is absent samples, here a "
      "new segment begins, and nothing between is counted as lost",
      jump_s < 0 ? "went back" : "went ahead", std::abs(jump_s),
      totals.jumps == 1 ? "" : fmt::format(" (the last of {} times)", totals.jumps), kMaxLiveGap_s);
}

bool ReceiverThread::serve_ports(int timeout_ms, std::int64_t skew_slots) {
  if (replays()) return serve_capture(timeout_ms);
  std::vector<pollfd> polled;
  polled.reserve(ports_.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    polled.push_back({ports_[i].socket.get(), POLLIN, 0});
  }
  streams_.add_polled(polled);
  const int n = ::poll(polled.data(), polled.size(), timeout_ms);
  now_ = monotonic_ns();
  if (n <= 0) return false;
  ReadingOrder order(skew_slots);
  const std::span<const pollfd> streams = std::span(polled).subspan(ports_.size());
  const auto readable = streams_.readable(streams);
  for (const auto* input : readable) {
    if (input->port.useful) order.waiting(input->port.position);
  }
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (polled[i].revents != 0 && ports_[i].useful) order.waiting(ports_[i].position);
  }
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (polled[i].revents == 0 || !order.may_read(ports_[i].position)) continue;
    receive(ports_[i], 64);
  }
  for (auto* input : readable) {
    if (order.may_read(input->port.position)) read_stream(*input, skew_slots);
  }
  streams_.accept(streams, assembler_->locked() ? assembler_->origin_slot() : 0,
                  [this](const SenderAddress& peer) { return senders_.empty() || allowed(peer); });
  if (streams_.refused() > 0) {
    rejected_connections_ = streams_.refused();
    last_rejected_connection_ = streams_.last_rejected();
  }
  return true;
}

void ReceiverThread::open_port(const Endpoint& endpoint) {
  if (endpoint.is_udp()) {
    ports_.open(endpoint);
    return;
  }
  if (replays())
    throw ConfigError(fmt::format(
        "source.listen: \"{}\": of a capture only datagrams are read, those of udp:// endpoints",
        to_string(endpoint)));
  streams_.open(endpoint);
}

void ReceiverThread::allocate_ports(std::size_t max_bytes) {
  ports_.allocate(max_bytes);
  streams_.set_cutters([max_bytes] { return make_packet_cutter(max_bytes); });
}

void ReceiverThread::read_stream(StreamInputs::Input& input, std::int64_t max_units) {
  reading_ = &input;
  input.port.useful = false;
  try {
    streams_.read(input, max_units, *this);
  } catch (const FormatError& error) {
    fault_ = to_string(input.port.endpoint) + ": " + error.what();
    streams_.close_all();
  }
  reading_ = nullptr;
}

// A stream cannot be damaged on its way: a packet that is none means that packets do not begin
// where this side thinks.
bool ReceiverThread::on_packet(std::span<const std::byte> packet) {
  DatagramReader::Datagram datagram;
  datagram.data = packet.data();
  datagram.size = packet.size();
  datagram.address =
      &reading_->peer;  // its identity stays 0: a stream changes its sender by a new one
  ++reading_->port.received;
  const Reason reason = judge(reading_->port, datagram);
  reading_->port.useful |= tells_position(reason);
  return reason != Reason::magic && reason != Reason::version && reason != Reason::length &&
         reason != Reason::field && reason != Reason::too_short && reason != Reason::too_long;
}

bool ReceiverThread::on_block(Tick tick, std::span<const std::byte> block) {
  ++reading_->port.received;
  const Reason reason = take_block(reading_->port, tick, block);
  reading_->port.useful |= tells_position(reason);
  if (reason != Reason::used)
    note_rejected(reason, sender_address(&reading_->peer),
                  block.first(std::min<std::size_t>(block.size(), 16)));
  return true;
}

Reason ReceiverThread::take_block(UdpPort&, Tick, std::span<const std::byte>) {
  assembler_->reject(Reason::field);
  return Reason::field;
}

void ReceiverThread::start() {
  const std::lock_guard lock(start_mutex_);
  if (thread_) return;
  thread_ = std::make_unique<StageThread>(
      "ryle-ingest", [this](const std::stop_token&) { run(); }, [this] { stopping_ = true; });
}

void ReceiverThread::stop() {
  const std::lock_guard lock(start_mutex_);
  stopping_ = true;
  if (!thread_) pool_->finish();  // never started: nothing will come
}

// Two ways out: asked to stop and the sockets are drained, or offline and every sender has closed.
void ReceiverThread::run() {
  MonotonicNs stop_since = 0, quiet_since = 0;
  // Whatever happens the consumer must not wait for ever.
  struct Finisher {
    ChunkPool& pool;
    ~Finisher() { pool.finish(); }
  } finisher{*pool_};
  for (;;) {
    const bool stopping = stopping_;
    bool any = serve(5);
    any |= align();
    housekeeping(false);
    ended_by_itself_ = finished_by_itself();
    if (abandon_ || capture_ended_ || ended_by_itself_ || !fault_.empty()) break;
    if (!stopping) continue;
    if (replays()) break;  // nothing is on its way
    if (stop_since == 0) stop_since = quiet_since = now_;
    if (any) quiet_since = now_;
    const bool quiet = now_ - quiet_since > kDrainQuiet_ns;
    if (quiet && !assembler_->locked() && align_at_end()) continue;
    if (quiet || now_ - stop_since > kDrainLimit_ns) break;
  }
  disconnect_all();
  streams_.close_all();
  assembler_->finish(now_);
  housekeeping(true);
}

void ReceiverThread::housekeeping(bool force) {
  if (force || now_ - last_poll_ >= kMillisecond_ns) {
    last_poll_ = now_;
    assembler_->poll(now_);
  }
  if (force || now_ - last_drops_ >= 100 * kMillisecond_ns) {
    last_drops_ = now_;
    ports_.update_drops();
    update_notes();
  }
  if (force || now_ - last_publish_ >= 2 * kMillisecond_ns) {
    last_publish_ = now_;
    publish();
  }
}

void ReceiverThread::update_notes() {
  std::vector<std::string> notes;
  for (const std::string& note : {ports_.silent_groups(), streams_.note(), format_note(),
                                  jump_note(), replays() ? capture_note() : std::string()})
    if (!note.empty()) notes.push_back(note);
  const std::lock_guard lock(mutex_);
  snapshot_.notes = std::move(notes);
}

void ReceiverThread::publish() {
  const auto& totals = assembler_->totals();
  // A stream that has ended is judged by its last data, however long its end was waited for.
  const std::string condition =
      assembler_->condition(ended_by_itself_ ? assembler_->last_placed() : now_);
  const std::lock_guard lock(mutex_);
  auto& s = snapshot_;
  s.received = totals.received;
  s.used = totals.reasons[0];
  for (std::size_t r = 1; r < kReasons; ++r) {
    s.rejected[std::string(name(static_cast<Reason>(r)))] = totals.reasons[r];
  }
  s.kernel_drops = ports_.drops();
  s.present_slots = totals.present_slots;
  s.missing_slots = totals.missing_slots;
  s.lost_samples = totals.missing_slots * samples_per_slot_;
  s.undelivered_slots = totals.undelivered_slots;
  s.undelivered_samples = totals.undelivered_slots * samples_per_slot_;
  s.rejected_connections = rejected_connections_;
  s.rebound = totals.rebound;
  s.fault = fault_;
  rejected_snapshot_ = last_rejected_;
  rejected_connection_snapshot_ = last_rejected_connection_;
  s.chunks = totals.chunks;
  s.dropped_chunks = totals.dropped_chunks;
  s.segments = totals.segments;
  if (condition == "NO_DATA" || condition == "PRELOCK") {
    state_ = condition;
    return;
  }
  std::string reasons = condition == "OK" ? "" : condition;
  const auto add = [&reasons](const std::string& r) {
    if (!r.empty()) reasons += (reasons.empty() ? "" : ",") + r;
  };
  if (!receive_buffer_ok()) add("rcvbuf");
  add(more_reasons());
  state_ = reasons.empty() ? "OK" : "DEGRADED(" + reasons + ")";
}

IngestCounters ReceiverThread::counters() const {
  const std::lock_guard lock(mutex_);
  IngestCounters counters = snapshot_;
  for (std::size_t r = 0; r < kReasons; ++r) {
    const LastRejected& last = rejected_snapshot_[r];
    if (!last.any) continue;
    const std::string reason(name(static_cast<Reason>(r)));
    if (counters.rejected[reason] == 0) continue;
    std::string header;
    for (std::size_t k = 0; k < last.n_header; ++k) {
      header += fmt::format("{}{:02x}", k > 0 ? " " : "", static_cast<unsigned>(last.header[k]));
    }
    counters.last_rejected[reason] = {to_string(last.sender),
                                      static_cast<std::int64_t>(last.n_bytes), header};
  }
  if (counters.rejected_connections > 0) {
    counters.last_rejected_connection = to_string(rejected_connection_snapshot_);
  }
  return counters;
}

std::string ReceiverThread::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::vector<std::string> ReceiverThread::endpoints() const {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < ports_.size(); ++i) result.push_back(to_string(ports_[i].endpoint));
  for (const auto& text : streams_.endpoints()) result.push_back(text);
  return result;
}

std::int64_t ReceiverThread::memory_bytes() const {
  return pool_->memory_bytes() + assembler_->memory_bytes() + ports_.memory_bytes() +
         streams_.memory_bytes();
}

}  // namespace ryle
