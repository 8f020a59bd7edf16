// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <chrono>
#include <thread>

#include "bench/bench.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::bench {

std::pair<double, double> time_runs(double seconds, const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 ||
         std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    const auto start = Clock::now();
    body();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

std::string device_description(int n_workers) {
  const std::string model = list_devices().front().description;
  return model.substr(0, model.rfind(',')) + ", " + std::to_string(n_workers) +
         (n_workers == 1 ? " core" : " cores");
}

}  // namespace ryle::bench
