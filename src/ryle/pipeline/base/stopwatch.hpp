// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>

namespace ryle::pipeline {

inline double seconds_since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

/// Adds the time from its making to its end to a total.
class Stopwatch {
 public:
  explicit Stopwatch(double& total_s) : total_s_(total_s) {}
  ~Stopwatch() { total_s_ += seconds_since(start_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& total_s_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace ryle::pipeline
