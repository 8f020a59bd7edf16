// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cuda_runtime_api.h>

#include <string>

#include "ryle/core/error.hpp"
#include "ryle/device/queue.hpp"

/// Helpers for .cu files only: no header outside device/cuda and the engines' CUDA sources includes
/// this.
namespace ryle::cuda {

/// Throws DeviceError "CALL failed: REASON (cudaErrorName)" when `status` is an error. `in_flight`
/// marks faults of work that was already running: they are sticky, and the process must start anew
/// to use the device again.
void check(cudaError_t status, const char* call, bool in_flight = false);

/// Makes `device` current in this thread and restores the previous one at the end of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int previous_ = 0;
};

/// Device index and stream of a CUDA queue. @pre queue.back_end() == BackEnd::cuda
int device_of(const Queue& queue);
inline cudaStream_t stream_of(const Queue& queue) {
  return static_cast<cudaStream_t>(queue.native_handle());
}

/// For instance the number of multiprocessors.
int attribute_of(int device, cudaDeviceAttr attribute);

/// The device a pointer's memory belongs to must be reachable by kernels; throws ConfigError naming
/// `what` otherwise.
void require_device_memory(const void* pointer, const char* what);

}  // namespace ryle::cuda

#define RYLE_CUDA(call) ::ryle::cuda::check((call), #call)
/// After a kernel launch: its configuration was accepted.
#define RYLE_CUDA_LAUNCHED(kernel) ::ryle::cuda::check(cudaGetLastError(), "launch of " kernel)
