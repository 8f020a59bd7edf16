// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/send_loop.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::simulate::detail {
namespace {

constexpr std::int64_t kQuantum_ns =
    1'000'000;  // UDP bursts of 5 packets a receiver at the live rate
constexpr std::int64_t kLead_samples =
    8192;  // speed 0: no receiver runs further ahead of the slowest
constexpr std::int64_t kGone_ns =
    2'000'000'000;  // every connection broken for so long: the receiver has left
constexpr std::int64_t kForever = std::int64_t{1} << 62;

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void sleep_until_ns(std::int64_t when) {
  const timespec at{when / 1'000'000'000, when % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

}  // namespace

std::int64_t seconds_to_samples(double seconds, double rate_hz, std::int64_t packet_samples) {
  const double samples = seconds * rate_hz;
  return std::llround(samples / static_cast<double>(packet_samples)) * packet_samples;
}

void validate(const SendSchedule& schedule, const std::vector<Outage>& outages,
              std::int64_t n_receivers) {
  if (!(schedule.speed >= 0) || !(schedule.duration_s >= 0)) {
    throw ConfigError("speed and duration_s must not be negative (0: unpaced, without end)");
  }
  if (!(schedule.udp_ceiling_packets_per_s > 0)) {
    throw ConfigError("udp_ceiling_packets_per_s must be positive");
  }
  for (const auto& outage : outages) {
    if (outage.receiver < 0 || outage.receiver >= n_receivers || !(outage.from_s >= 0) ||
        !(outage.until_s > outage.from_s)) {
      throw ConfigError("outage of receiver " + std::to_string(outage.receiver) + " from " +
                        std::to_string(outage.from_s) + " s to " + std::to_string(outage.until_s) +
                        " s is impossible; receivers are 0 to " + std::to_string(n_receivers - 1) +
                        " and it must end after it begins");
    }
  }
}

Link::Spans outages_of(const std::vector<Outage>& outages, std::int64_t receiver,
                       const SendSchedule& schedule) {
  Link::Spans spans;
  for (const auto& outage : outages) {
    if (outage.receiver != receiver) continue;
    spans.emplace_back(
        seconds_to_samples(outage.from_s, schedule.rate_hz, schedule.packet_samples),
        seconds_to_samples(outage.until_s, schedule.rate_hz, schedule.packet_samples));
  }
  std::sort(spans.begin(), spans.end());
  return spans;
}

SendLoop::~SendLoop() {
  stop();
  if (thread_.joinable()) thread_.join();
  schedule.drawn = {};  // who draws into the links' packets goes before the links
  schedule.sent = {};
}

void SendLoop::start() {
  RYLE_ASSERT(!thread_.joinable());
  total_ = kForever;
  if (schedule.duration_s > 0) {
    total_ = std::max(
        schedule.packet_samples,
        seconds_to_samples(schedule.duration_s, schedule.rate_hz, schedule.packet_samples));
  }
  running_ = true;
  thread_ = std::thread([this] { run(); });
}

SenderReport SendLoop::report() const {
  SenderReport report;
  for (const auto& link : links) report.receivers.push_back(link->counters());
  const std::int64_t started = started_ns_, ended = ended_ns_;
  if (started != 0) {
    report.elapsed_s = 1e-9 * static_cast<double>((ended != 0 ? ended : monotonic_ns()) - started);
  }
  report.cpu_s = cpu_s_;
  report.longest_lag_s = 1e-9 * static_cast<double>(longest_lag_ns_);
  return report;
}

SenderReport SendLoop::join() {
  if (thread_.joinable()) thread_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  return report();
}

std::int64_t SendLoop::memory_bytes() const {
  std::int64_t sum = 0;
  for (const auto& link : links) sum += link->memory_bytes();
  return sum;
}

void SendLoop::run() {
  try {
    connect_all();
    if (!stopping_) send_all();
  } catch (...) {
    failure_ = std::current_exception();
  }
  for (auto& link : links) link->finish(last_due_);
  ended_ns_ = monotonic_ns();
  cpu_s_ = thread_cpu_s();
  running_ = false;
}

void SendLoop::connect_all() {
  const std::int64_t begin_ns = monotonic_ns();
  while (!stopping_) {
    const Link* missing = nullptr;
    for (auto& link : links) {
      if (!link->connect() && missing == nullptr) missing = link.get();
    }
    if (missing == nullptr) return;
    if (static_cast<double>(monotonic_ns() - begin_ns) > schedule.connect_timeout_s * 1e9) {
      throw IoError(ExitCode::io, "cannot connect to " + to_string(missing->endpoint()) + ": " +
                                      missing->last_error() + " for " +
                                      std::to_string(schedule.connect_timeout_s) +
                                      " s; start the receiver first, or correct the address");
    }
    sleep_until_ns(monotonic_ns() + 5'000'000);
  }
}

/// Position of the slowest link that has a connection (or was never without); kForever when all are
/// down.
std::int64_t SendLoop::slowest() const {
  std::int64_t position = kForever;
  for (const auto& link : links) {
    if (!link->down()) position = std::min(position, link->position());
  }
  return position;
}

std::int64_t SendLoop::samples_due(std::int64_t elapsed_ns) const {
  double speed = schedule.speed;
  if (speed == 0 && schedule.any_udp && !schedule.in_turn) {
    speed = schedule.udp_ceiling_packets_per_s * static_cast<double>(schedule.packet_samples) /
            (static_cast<double>(links.size()) * schedule.rate_hz);
  }
  std::int64_t due = kForever;
  if (speed > 0)
    due = static_cast<std::int64_t>(static_cast<double>(elapsed_ns) * 1e-9 * schedule.rate_hz *
                                    speed);
  if (schedule.speed == 0) {
    const std::int64_t position = slowest();
    due = position == kForever ? last_due_ : std::min(due, position + kLead_samples);
  }
  return std::min(due, total_);
}

/// One round over the links, each with a bounded share. idle: nothing more is due, or nothing could
/// be sent.
SendLoop::Round SendLoop::turn(std::int64_t due) {
  // What a link may send in one round. After a stall this keeps the catching-up burst small enough
  // for socket buffers: 32 packets a receiver each half quantum, or twice the pace where that is
  // more.
  const auto pace_samples = static_cast<std::int64_t>(
      2e-9 * static_cast<double>(kQuantum_ns) * schedule.rate_hz * std::max(1.0, schedule.speed));
  const std::int64_t maximum = schedule.in_turn ? schedule.packet_samples
                               : schedule.any_udp
                                   ? std::max(32 * schedule.packet_samples, pace_samples)
                                   : 16384;
  if (schedule.in_step) due = std::min(due, slowest() + maximum);
  bool full = false, behind = false, moved = false;
  for (auto& link : links) {
    const std::int64_t before = link->position();
    full = link->advance(due, maximum) || full;
    moved = moved || link->position() != before;
    behind = behind || link->position() + (schedule.any_udp ? schedule.packet_samples : 1) <= due;
  }
  if (full) return Round::full;
  return moved && (behind || schedule.speed == 0) ? Round::moving : Round::idle;
}

void SendLoop::wait(std::int64_t now_ns, Round round) {
  if (schedule.in_turn && round == Round::moving) return;
  if (round == Round::full) {
    std::vector<pollfd> ready;
    for (const auto& link : links) {
      if (link->fd() >= 0) ready.push_back({link->fd(), POLLOUT, 0});
    }
    // Some of them are writable and merely not due: so never return at once, and look again soon.
    sleep_until_ns(now_ns + kQuantum_ns / 4);
    ::poll(ready.data(), ready.size(), 1);
  } else if (round == Round::idle) {
    sleep_until_ns(now_ns + kQuantum_ns);
  } else if (schedule.any_udp) {
    sleep_until_ns(now_ns + kQuantum_ns / 2);
  }
}

void SendLoop::send_all() {
  std::int64_t begin_ns = monotonic_ns();
  std::int64_t alive_ns = begin_ns, last_ns = begin_ns;
  started_ns_ = begin_ns;
  for (std::int64_t count = 0; !stopping_; ++count) {
    const std::int64_t now_ns = monotonic_ns();
    if (schedule.hold && schedule.hold()) {
      sleep_until_ns(now_ns + kQuantum_ns);
      const std::int64_t held_ns = monotonic_ns() - now_ns;
      begin_ns += held_ns;
      alive_ns += held_ns;
      continue;
    }
    std::int64_t due = samples_due(now_ns - begin_ns);
    if (schedule.drawn) {
      const std::int64_t drawn = std::min(total_, schedule.drawn());
      if (due > drawn) {
        due = drawn;
        begin_ns += now_ns - last_ns;
        alive_ns = now_ns;
      }
    }
    last_ns = now_ns;
    last_due_ = std::max(last_due_, due);
    const Round round = turn(last_due_);
    const std::int64_t position = slowest();
    if (schedule.sent) schedule.sent(position == kForever ? last_due_ : position);
    if (position != kForever) alive_ns = now_ns;
    if (position >= total_ && last_due_ >= total_) return;
    if (now_ns - alive_ns > kGone_ns) return;
    if (schedule.speed > 0 && position < last_due_) {
      const double lag_s =
          static_cast<double>(last_due_ - position) / (schedule.rate_hz * schedule.speed);
      longest_lag_ns_ =
          std::max<std::int64_t>(longest_lag_ns_, static_cast<std::int64_t>(lag_s * 1e9));
    }
    if (count % 256 == 0) cpu_s_ = thread_cpu_s();
    wait(now_ns, round);
  }
}

}  // namespace ryle::simulate::detail
