// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <string>

/// How loops that read a whole file learn that the user wants the program to end.
namespace ryle {

/// `signals` counts the signals the program got, for as long as the program runs; null: none
/// counts.
void set_interrupt_count(const std::atomic<int>* signals) noexcept;

/// Throws Error (75, try again) once a signal was counted: `what` was being read, nothing is
/// written. Costs a load.
void require_not_interrupted(const std::string& what);

/// While one lives, a signal does not end the reading of a file: a run that looks at a stop flag of
/// its own ends after the piece in hand, publishes what is whole and may read files to do so.
class OwnStop {
 public:
  OwnStop() noexcept;
  ~OwnStop();
  OwnStop(const OwnStop&) = delete;
  OwnStop& operator=(const OwnStop&) = delete;
};

}  // namespace ryle
