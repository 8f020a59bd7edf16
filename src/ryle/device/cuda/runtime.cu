// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/cuda/runtime.hpp"

#include <string>

namespace ryle::cuda {

void check(cudaError_t status, const char* call, bool in_flight) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // a non-sticky error must not surface again at an unrelated call
  std::string message = std::string("CUDA: ") + call + " failed: " + cudaGetErrorString(status) +
                        " (" + cudaGetErrorName(status) + ")";
  if (in_flight) message += "; work in flight is lost, start the process again";
  throw DeviceError(message, in_flight);
}

DeviceScope::DeviceScope(int device) {
  RYLE_CUDA(cudaGetDevice(&previous_));
  if (device != previous_) RYLE_CUDA(cudaSetDevice(device));
}

DeviceScope::~DeviceScope() { static_cast<void>(cudaSetDevice(previous_)); }

int attribute_of(int device, cudaDeviceAttr attribute) {
  int value = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&value, attribute, device));
  return value;
}

void require_device_memory(const void* pointer, const char* what) {
  cudaPointerAttributes attributes{};
  RYLE_CUDA(cudaPointerGetAttributes(&attributes, pointer));
  if (attributes.type != cudaMemoryTypeUnregistered) return;
  throw ConfigError(std::string(what) +
                    " of a CUDA queue must be in device memory, not in pageable host memory; " +
                    "use Buffer<T>(size, MemorySpace::device) and copy_bytes()");
}

}  // namespace ryle::cuda
