// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <deque>
#include <string>

/// How a live run is: what the operator reads at the end of every line.
namespace ryle::pipeline {

/// What the state follows from.
struct Condition {
  std::string receiver;       ///< of the source: "NO_DATA", "PRELOCK", "OK", "DEGRADED(...)"
  double data_s = 0;          ///< worked on so far
  double margin = 0;          ///< data time over engine time of late; 0 = not known yet
  double needed = 1;          ///< margin that the sender asks for: 1, or the speed of a simulator
  bool sender_waits = false;  ///< nothing is lost when the engines are slow
  double lost_fraction = 0;   ///< of the samples of late
  bool ended = false;         ///< nothing more will come: what there was is judged
};

/// The rules, the first that holds:
/// 1. Without usable data the receiver has the word: NO_DATA, PRELOCK.
/// 2. In the first second of data engines are being made: STARTING, unless they keep up already.
/// 3. Engines that need longer than the data last, or than a sender faster than real time gives
///    them: "slow" among the reasons of DEGRADED; SLOW where nothing is lost by it: the sender
///    waits, or is slower still, or it all took less than a second.
/// 4. What the receiver says of its streams: DEGRADED(missing_streams) and so on.
/// 5. More than one sample in a thousand lost: DEGRADED(loss).
/// 6. OK.
std::string run_state(const Condition& condition);

/// Data time over engine time, and loss, of the last ten seconds of data: a run that was fast for
/// hours and is slow now is slow.
class RecentRates {
 public:
  /// Totals so far, about once a second.
  void add(double data_s, double busy_s, std::uint64_t present_slots, std::uint64_t missing_slots);
  /// 0 before there are any data.
  double margin() const;
  double lost_fraction() const;

 private:
  struct Totals {
    double data_s = 0, busy_s = 0;
    std::uint64_t present = 0, missing = 0;
  };
  std::deque<Totals> totals_{Totals{}};
};

}  // namespace ryle::pipeline
