// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ryle/device/back_end.hpp"
#include "ryle/device/cuda/runtime.hpp"

namespace ryle {
namespace {

// The tensor and asynchronous-copy instructions of the engines need compute capability 8.0 (A100).
constexpr int kMinMajor = 8;

class CudaEvent final : public Event::Impl {
 public:
  explicit CudaEvent(int device) {
    const cuda::DeviceScope scope(device);
    RYLE_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }
  ~CudaEvent() override { static_cast<void>(cudaEventDestroy(event_)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void record(void* queue) override {
    RYLE_CUDA(cudaEventRecord(event_, static_cast<cudaStream_t>(queue)));
  }
  void wait_event(void* queue) override {
    RYLE_CUDA(cudaStreamWaitEvent(static_cast<cudaStream_t>(queue), event_));
  }
  void synchronize() override {
    cuda::check(cudaEventSynchronize(event_), "waiting for an event", true);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaQueue final : public Queue::Impl {
 public:
  explicit CudaQueue(int device) : device_(device) {
    RYLE_CUDA(cudaSetDevice(device));
    // Non-blocking: a stray call on the default stream elsewhere in the process must not serialise
    // the engines.
    RYLE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~CudaQueue() override {
    // Errors cannot leave a destructor; a fault was already visible to synchronize() and check().
    static_cast<void>(cudaStreamSynchronize(stream_));
    static_cast<void>(cudaStreamDestroy(stream_));
  }
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  BackEnd back_end() const override { return BackEnd::cuda; }
  int device() const override { return device_; }
  void* native_handle() const override { return stream_; }
  void synchronize() override {
    cuda::check(cudaStreamSynchronize(stream_), "synchronizing the queue", true);
  }
  void check() override {
    const cudaError_t status = cudaStreamQuery(stream_);
    if (status != cudaErrorNotReady) cuda::check(status, "work on the queue", true);
  }
  std::shared_ptr<Queue::Impl> make_beside() const override {
    const cuda::DeviceScope scope(device_);
    return std::make_shared<CudaQueue>(device_);
  }
  std::shared_ptr<Event::Impl> make_event() const override {
    return std::make_shared<CudaEvent>(device_);
  }
  void copy(void* destination, const void* source, std::int64_t n_bytes) override {
    const cuda::DeviceScope scope(device_);
    RYLE_CUDA(cudaMemcpyAsync(destination, source, static_cast<std::size_t>(n_bytes),
                              cudaMemcpyDefault, stream_));
  }
  bool copies_directly(const void* host_memory) const override {
    cudaPointerAttributes attributes{};
    RYLE_CUDA(cudaPointerGetAttributes(&attributes, host_memory));
    return attributes.type == cudaMemoryTypeHost;
  }

 private:
  int device_;
  cudaStream_t stream_ = nullptr;
};

std::string find_reason() {
  int n_devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&n_devices);
  cudaGetLastError();
  if (status == cudaErrorInsufficientDriver)
    return "no NVIDIA driver, or one older than this build's CUDA runtime";
  if (status == cudaErrorNoDevice || (status == cudaSuccess && n_devices == 0))
    return "no CUDA device";
  if (status != cudaSuccess)
    return std::string("the CUDA runtime does not start: ") + cudaGetErrorString(status);
  for (int device = 0; device < n_devices; ++device) {
    if (cuda::attribute_of(device, cudaDevAttrComputeCapabilityMajor) >= kMinMajor) return "";
  }
  return "every CUDA device here is older than compute capability 8.0 (A100)";
}

}  // namespace

namespace cuda {

int device_of(const Queue& queue) {
  RYLE_ASSERT(queue.back_end() == BackEnd::cuda);
  return static_cast<const CudaQueue&>(queue.impl()).device();
}

}  // namespace cuda

namespace detail {

std::string cuda_unavailable_reason() {
  static const std::string reason = find_reason();
  return reason;
}

std::shared_ptr<Queue::Impl> make_cuda_queue(int device_index) {
  const std::string reason = cuda_unavailable_reason();
  if (!reason.empty()) throw DeviceError("no CUDA device can be used: " + reason);
  int n_devices = 0;
  RYLE_CUDA(cudaGetDeviceCount(&n_devices));
  if (device_index < 0 || device_index >= n_devices) {
    throw DeviceError("no CUDA device " + std::to_string(device_index) + "; there are " +
                      std::to_string(n_devices) + ", numbered from 0");
  }
  if (cuda::attribute_of(device_index, cudaDevAttrComputeCapabilityMajor) < kMinMajor) {
    throw DeviceError("CUDA device " + std::to_string(device_index) +
                      " is older than compute capability 8.0 (A100)");
  }
  return std::make_shared<CudaQueue>(device_index);
}

std::vector<DeviceInfo> list_cuda_devices() {
  std::vector<DeviceInfo> devices;
  if (!cuda_unavailable_reason().empty()) return devices;
  int n_devices = 0;
  RYLE_CUDA(cudaGetDeviceCount(&n_devices));
  for (int device = 0; device < n_devices; ++device) {
    cudaDeviceProp properties{};
    RYLE_CUDA(cudaGetDeviceProperties(&properties, device));
    const auto gib = properties.totalGlobalMem >> 30;
    devices.push_back({"cuda:" + std::to_string(device),
                       std::string(properties.name) + ", " + std::to_string(gib) + " GiB, sm_" +
                           std::to_string(properties.major) + std::to_string(properties.minor),
                       static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return devices;
}

std::shared_ptr<std::byte> allocate_cuda(MemorySpace space, std::int64_t n_bytes) {
  const std::string reason = cuda_unavailable_reason();
  if (!reason.empty()) throw DeviceError("no device memory: " + reason);
  const std::size_t size = n_bytes > 0 ? static_cast<std::size_t>(n_bytes) : 128;
  void* memory = nullptr;
  if (space == MemorySpace::pinned) {
    const cudaError_t status = cudaMallocHost(&memory, size);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw DeviceError("page-locked host memory: " + std::to_string(size) +
                        " bytes wanted, which the machine does not have to lock; use fewer " +
                        "channels or shorter chunks");
    }
    cuda::check(status, "cudaMallocHost");
    std::memset(memory, 0, size);
    return {static_cast<std::byte*>(memory),
            [](std::byte* p) { static_cast<void>(cudaFreeHost(p)); }};
  }
  const cudaError_t status = cudaMalloc(&memory, size);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    RYLE_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw DeviceError("device memory: " + std::to_string(size) + " bytes wanted, " +
                      std::to_string(free_bytes) + " of " + std::to_string(total_bytes) +
                      " free; use fewer channels or a shorter gulp");
  }
  cuda::check(status, "cudaMalloc");
  std::shared_ptr<std::byte> owner{static_cast<std::byte*>(memory),
                                   [](std::byte* p) { static_cast<void>(cudaFree(p)); }};
  RYLE_CUDA(cudaMemset(memory, 0, size));
  // The engines' streams do not wait for the default stream, so the zeros must be there before
  // anyone gets the pointer.
  RYLE_CUDA(cudaStreamSynchronize(nullptr));
  return owner;
}

}  // namespace detail
}  // namespace ryle
