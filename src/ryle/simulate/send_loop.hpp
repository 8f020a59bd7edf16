// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ryle/simulate/link.hpp"

namespace ryle::simulate::detail {

/// What a schedule needs to know; "samples" are whatever the links count.
struct SendSchedule {
  double rate_hz = 0;
  double speed = 1;       ///< times real time; 0 = as fast as the receiver takes it
  double duration_s = 0;  ///< of data; 0 = until stop()
  std::int64_t packet_samples = 1;
  double connect_timeout_s = 30;
  double udp_ceiling_packets_per_s = 60'000;
  bool any_udp = false;
  /// No link runs more than one round ahead of the slowest, also when all catch up: one that comes
  /// back from an outage would be ahead by its length. For links that never wait for a receiver.
  bool in_step = false;
  /// A file takes the packets as fast as they come: one of each link in turn, so that a replay of
  /// it needs no wider window than the array. At speed 0.
  bool in_turn = false;
  /// Asked by the thread of the sender before every round: while it is true nothing is sent, and
  /// the schedule stands still. Empty: never.
  std::function<bool()> hold;
  /// Samples that are drawn and may be sent; the schedule stands still at their end. Empty: all.
  std::function<std::int64_t()> drawn;
  /// Told after every round what every link has sent.
  std::function<void(std::int64_t samples)> sent;
};

/// Seconds to a whole number of packets.
std::int64_t seconds_to_samples(double seconds, double rate_hz, std::int64_t packet_samples);

/// Throws ConfigError for impossible schedules and outages (of `n_receivers`).
void validate(const SendSchedule& schedule, const std::vector<Outage>& outages,
              std::int64_t n_receivers);
/// The outages of one receiver, in samples.
Link::Spans outages_of(const std::vector<Outage>& outages, std::int64_t receiver,
                       const SendSchedule& schedule);

/// One thread that drives all links of a sender, paced on CLOCK_MONOTONIC.
class SendLoop {
 public:
  SendLoop() = default;
  ~SendLoop();  ///< stops and joins; an error not fetched by join() is dropped
  SendLoop(const SendLoop&) = delete;
  SendLoop& operator=(const SendLoop&) = delete;

  SendSchedule schedule;
  std::vector<std::unique_ptr<Link>> links;

  void start();
  void stop() { stopping_ = true; }
  bool running() const { return running_; }
  SenderReport report() const;
  SenderReport join();
  std::int64_t memory_bytes() const;

 private:
  void run();
  void connect_all();
  void send_all();
  std::int64_t samples_due(std::int64_t elapsed_ns) const;
  enum class Round { idle, moving, full };
  Round turn(std::int64_t due);
  void wait(std::int64_t now_ns, Round round);
  std::int64_t slowest() const;

  std::int64_t total_ = 0;
  std::int64_t last_due_ = 0;
  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> running_{false};
  std::atomic<std::int64_t> started_ns_{0}, ended_ns_{0}, longest_lag_ns_{0};
  std::atomic<double> cpu_s_{0};
  std::exception_ptr failure_;
};

}  // namespace ryle::simulate::detail
