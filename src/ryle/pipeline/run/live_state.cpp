// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_state.hpp"

#include <algorithm>

namespace ryle::pipeline {

std::string run_state(const Condition& c) {
  constexpr double kJudged_s = 1;
  constexpr double kMuchLoss = 1e-3;
  if (c.receiver == "NO_DATA" || c.receiver == "PRELOCK") return c.receiver;
  const bool judged = c.data_s >= kJudged_s;
  const double wanted = std::max(1.0, c.needed);
  const bool slow = c.margin > 0 && c.margin < wanted;
  if (!judged && !c.ended && c.receiver == "OK" && !(c.margin >= wanted)) return "STARTING";
  if (slow && (judged || c.ended)) {
    const bool harmless = c.sender_waits || !judged || c.margin >= c.needed;
    if (c.receiver == "OK") return harmless ? "SLOW" : "DEGRADED(slow)";
    if (!harmless) {
      std::string state = c.receiver;  // "DEGRADED(...)"
      state.insert(state.size() - 1, ",slow");
      return state;
    }
  }
  if (c.receiver == "OK" && c.lost_fraction > kMuchLoss) return "DEGRADED(loss)";
  return c.receiver;
}

void RecentRates::add(double data_s, double busy_s, std::uint64_t present_slots,
                      std::uint64_t missing_slots) {
  constexpr double kWindow_s = 10;
  totals_.push_back({data_s, busy_s, present_slots, missing_slots});
  // What is dropped was the start of the window; one older than the window stays as its start.
  while (totals_.size() > 2 && data_s - totals_[1].data_s >= kWindow_s) totals_.pop_front();
}

double RecentRates::margin() const {
  const double data_s = totals_.back().data_s - totals_.front().data_s;
  const double busy_s = totals_.back().busy_s - totals_.front().busy_s;
  return data_s > 0 && busy_s > 0 ? data_s / busy_s : 0;
}

double RecentRates::lost_fraction() const {
  const auto present = static_cast<double>(totals_.back().present - totals_.front().present);
  const auto missing = static_cast<double>(totals_.back().missing - totals_.front().missing);
  return present + missing > 0 ? missing / (present + missing) : 0;
}

}  // namespace ryle::pipeline
