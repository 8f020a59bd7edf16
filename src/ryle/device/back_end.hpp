// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/core/error.hpp"
#include "ryle/device/event.hpp"
#include "ryle/device/queue.hpp"

namespace ryle {

/// What a back-end implements (device/cpu, device/cuda); users see only Queue and Event.
struct Event::Impl {
  virtual ~Impl() = default;
  virtual void record(void* native_queue) = 0;
  virtual void wait_event(void* native_queue) = 0;
  virtual void synchronize() = 0;
};

struct Queue::Impl {
  virtual ~Impl() = default;
  virtual BackEnd back_end() const = 0;
  virtual int n_workers() const { return 1; }
  virtual void* native_handle() const { return nullptr; }
  virtual int device() const { return -1; }  ///< index of a CUDA device
  virtual void synchronize() {}
  virtual void check() {}
  virtual void parallel_for(std::int64_t, const std::function<void(std::int64_t)>&) {
    throw UnsupportedError("parallel_for runs on CPU queues only");
  }
  virtual void copy(void* destination, const void* source, std::int64_t n_bytes) = 0;
  virtual bool copies_directly(const void*) const { return true; }
  /// nullptr: no other queue would do things at another time.
  virtual std::shared_ptr<Impl> make_beside() const { return nullptr; }
  /// nullptr: work is done when the call that gave it returns.
  virtual std::shared_ptr<Event::Impl> make_event() const { return nullptr; }
};

namespace detail {
// Implemented in device/cuda/, present only in builds with CUDA.
std::shared_ptr<Queue::Impl> make_cuda_queue(int device_index);
std::vector<DeviceInfo> list_cuda_devices();
std::string cuda_unavailable_reason();
std::shared_ptr<std::byte> allocate_cuda(MemorySpace space, std::int64_t n_bytes);
/// Returns the device that was current.
int enter_device_of(const Queue& queue);
void return_to_device(int device) noexcept;
}  // namespace detail
}  // namespace ryle
