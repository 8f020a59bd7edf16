// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/queue.hpp"

namespace ryle {

/// Makes the device of a CUDA queue the one on which this thread allocates (Buffer, engines), until
/// the end of the scope; does nothing for a CPU queue.
class OnDevice {
 public:
  explicit OnDevice(const Queue& queue);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int previous_ = -1;
};

/// Whether both read the same memory: queues of one device, or both of the CPU.
bool same_memory(const Queue& a, const Queue& b);

}  // namespace ryle
