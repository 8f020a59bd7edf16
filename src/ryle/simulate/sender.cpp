// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/sender.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>

#include "ryle/core/error.hpp"
#include "ryle/simulate/link.hpp"
#include "ryle/simulate/packets.hpp"

namespace ryle::simulate {
namespace {

constexpr std::int64_t kQuantum_ns =
    1'000'000;  // UDP bursts of 5 packets a receiver at the live rate
constexpr std::int64_t kLead_samples =
    8192;  // speed 0: no receiver runs further ahead of the slowest
constexpr std::int64_t kGone_ns =
    2'000'000'000;  // every connection broken for so long: the receiver has left
constexpr std::int64_t kForever = std::int64_t{1} << 62;

std::int64_t seconds_to_samples(double seconds, const VoltageRecord& record,
                                std::int64_t granularity) {
  const double samples = seconds * record.sample_rate_hz.value();
  return std::llround(samples / static_cast<double>(granularity)) * granularity;
}

double thread_cpu_s() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void sleep_until_ns(std::int64_t when) {
  const timespec at{when / 1'000'000'000, when % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
}

void validate(const VoltageRecord& record, const SenderConfig& config) {
  const auto wanted = static_cast<std::size_t>(n_receivers(record));
  if (config.endpoints.size() != wanted) {
    throw ConfigError("the sender has " + std::to_string(config.endpoints.size()) +
                      " endpoints for " + std::to_string(wanted) + " receivers of 16 inputs");
  }
  if (!(config.speed >= 0) || !(config.duration_s >= 0)) {
    throw ConfigError("speed and duration_s must not be negative (0: unpaced, without end)");
  }
  if (!(config.udp_ceiling_packets_per_s > 0)) {
    throw ConfigError("udp_ceiling_packets_per_s must be positive");
  }
  for (const auto& outage : config.outages) {
    if (outage.receiver < 0 || outage.receiver >= static_cast<std::int64_t>(wanted) ||
        !(outage.from_s >= 0) || !(outage.until_s > outage.from_s)) {
      throw ConfigError("outage of receiver " + std::to_string(outage.receiver) + " from " +
                        std::to_string(outage.from_s) + " s to " + std::to_string(outage.until_s) +
                        " s is impossible; receivers are 0 to " + std::to_string(wanted - 1) +
                        " and it must end after it begins");
    }
  }
}

detail::Link::Spans outages_of(const VoltageRecord& record, const SenderConfig& config,
                               std::int64_t receiver) {
  detail::Link::Spans spans;
  for (const auto& outage : config.outages) {
    if (outage.receiver != receiver) continue;
    spans.emplace_back(seconds_to_samples(outage.from_s, record, config.packet_samples),
                       seconds_to_samples(outage.until_s, record, config.packet_samples));
  }
  std::sort(spans.begin(), spans.end());
  return spans;
}

}  // namespace

std::int64_t SenderReport::samples_sent() const {
  std::int64_t sum = 0;
  for (const auto& receiver : receivers) sum += receiver.samples_sent;
  return sum;
}

struct Mwa32tSender::State {
  SenderConfig config;
  double rate_hz = 0;
  std::int64_t total = kForever;
  std::int64_t last_due = 0;
  bool any_udp = false;
  std::vector<std::unique_ptr<detail::Link>> links;
  std::thread thread;
  std::atomic<bool> stopping{false};
  std::atomic<bool> running{false};
  std::atomic<std::int64_t> started_ns{0}, ended_ns{0}, longest_lag_ns{0};
  std::atomic<double> cpu_s{0};
  std::exception_ptr failure;

  void run();
  void connect_all();
  void send_all();
  std::int64_t samples_due(std::int64_t elapsed_ns) const;
  enum class Round { idle, moving, full };
  Round turn(std::int64_t due);
  void wait(std::int64_t now_ns, Round round);
  std::int64_t slowest() const;
};

Mwa32tSender::Mwa32tSender(const VoltageRecord& record, const SenderConfig& config)
    : state_(std::make_unique<State>()) {
  validate(record, config);
  state_->config = config;
  state_->rate_hz = record.sample_rate_hz.value();
  if (config.duration_s > 0) {
    state_->total = std::max(config.packet_samples,
                             seconds_to_samples(config.duration_s, record, config.packet_samples));
  }
  std::vector<detail::Endpoint> endpoints;
  for (const auto& text : config.endpoints) endpoints.push_back(detail::parse_endpoint(text));
  for (std::size_t r = 0; r < endpoints.size(); ++r) {
    const auto receiver = static_cast<std::int64_t>(r);
    auto outages = outages_of(record, config, receiver);
    if (endpoints[r].tcp) {
      state_->links.push_back(detail::make_tcp_link(
          std::move(endpoints[r]), pack_groups(record, receiver, config.marker), record.n_samples,
          config.start_tick, std::move(outages)));
      continue;
    }
    if (config.start_tick % config.packet_samples != 0) {
      throw ConfigError("start_tick = " + std::to_string(config.start_tick) +
                        " is no multiple of the " + std::to_string(config.packet_samples) +
                        " samples of a packet");
    }
    state_->any_udp = true;
    state_->links.push_back(detail::make_udp_link(
        std::move(endpoints[r]), pack_udp(record, receiver, config.packet_samples),
        record.n_samples, config.start_tick, std::move(outages), config.packet_samples));
  }
}

Mwa32tSender::~Mwa32tSender() {
  stop();
  if (state_->thread.joinable()) state_->thread.join();
}

void Mwa32tSender::start() {
  RYLE_ASSERT(!state_->thread.joinable());
  state_->running = true;
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

void Mwa32tSender::stop() { state_->stopping = true; }

bool Mwa32tSender::running() const { return state_->running; }

SenderReport Mwa32tSender::report() const {
  SenderReport report;
  for (const auto& link : state_->links) report.receivers.push_back(link->counters());
  const std::int64_t started = state_->started_ns, ended = state_->ended_ns;
  if (started != 0) {
    report.elapsed_s =
        1e-9 * static_cast<double>((ended != 0 ? ended : detail::monotonic_ns()) - started);
  }
  report.cpu_s = state_->cpu_s;
  report.longest_lag_s = 1e-9 * static_cast<double>(state_->longest_lag_ns);
  return report;
}

SenderReport Mwa32tSender::join() {
  if (state_->thread.joinable()) state_->thread.join();
  if (state_->failure) std::rethrow_exception(std::exchange(state_->failure, nullptr));
  return report();
}

std::int64_t Mwa32tSender::memory_bytes() const {
  std::int64_t sum = 0;
  for (const auto& link : state_->links) sum += link->memory_bytes();
  return sum;
}

void Mwa32tSender::State::run() {
  try {
    connect_all();
    if (!stopping) send_all();
  } catch (...) {
    failure = std::current_exception();
  }
  for (auto& link : links) link->finish(last_due);
  ended_ns = detail::monotonic_ns();
  cpu_s = thread_cpu_s();
  running = false;
}

void Mwa32tSender::State::connect_all() {
  const std::int64_t begin_ns = detail::monotonic_ns();
  while (!stopping) {
    const detail::Link* missing = nullptr;
    for (auto& link : links) {
      if (!link->connect() && missing == nullptr) missing = link.get();
    }
    if (missing == nullptr) return;
    if (static_cast<double>(detail::monotonic_ns() - begin_ns) > config.connect_timeout_s * 1e9) {
      throw IoError(ExitCode::io, "cannot connect to " + missing->endpoint().text + ": " +
                                      missing->last_error() + " for " +
                                      std::to_string(config.connect_timeout_s) +
                                      " s; start the receiver first, or correct the address");
    }
    sleep_until_ns(detail::monotonic_ns() + 5'000'000);
  }
}

/// Position of the slowest link that has a connection (or was never without); kForever when all are
/// down.
std::int64_t Mwa32tSender::State::slowest() const {
  std::int64_t position = kForever;
  for (const auto& link : links) {
    if (!link->down()) position = std::min(position, link->position());
  }
  return position;
}

std::int64_t Mwa32tSender::State::samples_due(std::int64_t elapsed_ns) const {
  double speed = config.speed;
  if (speed == 0 && any_udp) {
    speed = config.udp_ceiling_packets_per_s * static_cast<double>(config.packet_samples) /
            (static_cast<double>(links.size()) * rate_hz);
  }
  std::int64_t due = kForever;
  if (speed > 0)
    due = static_cast<std::int64_t>(static_cast<double>(elapsed_ns) * 1e-9 * rate_hz * speed);
  if (config.speed == 0) {
    const std::int64_t position = slowest();
    due = position == kForever ? last_due : std::min(due, position + kLead_samples);
  }
  return std::min(due, total);
}

/// One round over the links, each with a bounded share. idle: nothing more is due, or nothing could
/// be sent.
Mwa32tSender::State::Round Mwa32tSender::State::turn(std::int64_t due) {
  // What a link may send in one round. After a stall this keeps the catching-up burst small enough
  // for socket buffers: 32 packets a receiver each half quantum, or twice the pace where that is
  // more.
  const auto pace_samples = static_cast<std::int64_t>(2e-9 * static_cast<double>(kQuantum_ns) *
                                                      rate_hz * std::max(1.0, config.speed));
  const std::int64_t most = any_udp ? std::max(32 * config.packet_samples, pace_samples) : 16384;
  bool full = false, behind = false, moved = false;
  for (auto& link : links) {
    const std::int64_t before = link->position();
    full = link->advance(due, most) || full;
    moved = moved || link->position() != before;
    behind = behind || link->position() + (any_udp ? config.packet_samples : 1) <= due;
  }
  if (full) return Round::full;
  return moved && (behind || config.speed == 0) ? Round::moving : Round::idle;
}

void Mwa32tSender::State::wait(std::int64_t now_ns, Round round) {
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
  } else if (any_udp) {
    sleep_until_ns(now_ns + kQuantum_ns / 2);
  }
}

void Mwa32tSender::State::send_all() {
  const std::int64_t begin_ns = detail::monotonic_ns();
  std::int64_t alive_ns = begin_ns;
  started_ns = begin_ns;
  for (std::int64_t count = 0; !stopping; ++count) {
    const std::int64_t now_ns = detail::monotonic_ns();
    last_due = std::max(last_due, samples_due(now_ns - begin_ns));
    const Round round = turn(last_due);
    const std::int64_t position = slowest();
    if (position != kForever) alive_ns = now_ns;
    if (position >= total && last_due >= total) return;
    if (now_ns - alive_ns > kGone_ns) return;
    if (config.speed > 0 && position < last_due) {
      const double lag_s = static_cast<double>(last_due - position) / (rate_hz * config.speed);
      longest_lag_ns =
          std::max<std::int64_t>(longest_lag_ns, static_cast<std::int64_t>(lag_s * 1e9));
    }
    if (count % 256 == 0) cpu_s = thread_cpu_s();
    wait(now_ns, round);
  }
}

}  // namespace ryle::simulate
