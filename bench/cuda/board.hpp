// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

namespace ryle::bench {

/// Clock and power of device 0 while something runs, from NVML, which is loaded at run time.
class BoardLog {
 public:
  BoardLog();  ///< begins
  ~BoardLog();
  BoardLog(const BoardLog&) = delete;
  BoardLog& operator=(const BoardLog&) = delete;

  struct Means {
    double sm_mhz = 0;  ///< 0: no NVML
    double power_w = 0;
  };
  /// Ends.
  Means stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ryle::bench
