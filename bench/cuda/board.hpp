// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/device/queue.hpp"

namespace ryle::bench {

/// Clock and power of device 0 while something runs: cycles counted on it, and what NVML reports,
/// which is loaded at run time.
class BoardLog {
 public:
  explicit BoardLog(Queue& queue);  ///< begins; what is queued until stop() counts
  ~BoardLog();
  BoardLog(const BoardLog&) = delete;
  BoardLog& operator=(const BoardLog&) = delete;

  struct Means {
    double mhz = 0;        ///< cycles that a multiprocessor counted
    double asked_mhz = 0;  ///< that NVML reports; 0: no NVML
    double power_w = 0;
  };
  /// Ends.
  Means stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ryle::bench
