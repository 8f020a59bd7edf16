// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/device/queue.hpp"

namespace ryle {

/// A place in the work of a queue for which other queues of the device and the host can wait. On
/// the CPU everything before it has been done already. Errors: DeviceError, as of the queue's work.
class Event {
 public:
  /// Of the device of this queue; nothing to wait for yet.
  explicit Event(const Queue& queue);

  /// The event is now the end of what the queue has been given so far.
  void record(Queue& queue);
  /// What `queue` is given from now on waits for the last record().
  void wait_event(Queue& queue) const;
  /// The host waits for the last record().
  void synchronize() const;

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;  // nullptr on the CPU
};

}  // namespace ryle
