// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/queue.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "ryle/core/error.hpp"
#include "ryle/device/back_end.hpp"
#include "ryle/device/copies_directly.hpp"

namespace ryle {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

class CpuQueue final : public Queue::Impl {
 public:
  explicit CpuQueue(int n_workers)
      : workers_(n_workers > 0 ? n_workers : usable_cores()), arena_(workers_) {}
  BackEnd back_end() const override { return BackEnd::cpu; }
  int n_workers() const override { return workers_; }
  void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body) override {
    if (n <= 0) return;
    if (workers_ == 1 || n == 1) {
      for (std::int64_t i = 0; i < n; ++i) body(i);
      return;
    }
    arena_.execute([&] {
      tbb::parallel_for(
          tbb::blocked_range<std::int64_t>(0, n, 1),
          [&](const auto& range) {
            for (auto i = range.begin(); i != range.end(); ++i) body(i);
          },
          tbb::simple_partitioner());
    });
  }
  void copy(void* destination, const void* source, std::int64_t n_bytes) override {
    std::memcpy(destination, source, static_cast<std::size_t>(n_bytes));
  }

 private:
  int workers_;
  tbb::task_arena arena_;
};

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "CPU";
}

}  // namespace

Event::Event(const Queue& queue) : impl_(queue.impl().make_event()) {}
void Event::record(Queue& queue) {
  if (impl_ != nullptr) impl_->record(queue.native_handle());
}
void Event::wait_event(Queue& queue) const {
  if (impl_ != nullptr) impl_->wait_event(queue.native_handle());
}
void Event::synchronize() const {
  if (impl_ != nullptr) impl_->synchronize();
}

Queue Queue::cpu(int n_workers) { return Queue(std::make_shared<CpuQueue>(n_workers)); }

Queue Queue::cuda(int device_index) {
#ifdef RYLE_HAVE_CUDA
  return Queue(detail::make_cuda_queue(device_index));
#else
  static_cast<void>(device_index);
  throw DeviceError(
      "no CUDA device: this build has no CUDA back-end (nvcc was not found when it was built)");
#endif
}

Queue Queue::beside(const Queue& queue) {
  auto other = queue.impl().make_beside();
  return other == nullptr ? queue : Queue(std::move(other));
}

BackEnd Queue::back_end() const { return impl_->back_end(); }
int Queue::n_workers() const { return impl_->n_workers(); }
void* Queue::native_handle() const { return impl_->native_handle(); }
void Queue::synchronize() { impl_->synchronize(); }
void Queue::check() { impl_->check(); }
void Queue::parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body) {
  impl_->parallel_for(n, body);
}

void copy_bytes(Queue& queue, void* destination, const void* source, std::int64_t n_bytes) {
  queue.impl().copy(destination, source, n_bytes);
}

bool copies_directly(const Queue& queue, const void* host_memory) {
  return queue.impl().copies_directly(host_memory);
}

std::vector<DeviceInfo> list_devices() {
  const std::int64_t memory =
      static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  std::vector<DeviceInfo> devices{
      {"cpu", cpu_model() + ", " + std::to_string(usable_cores()) + " cores", memory}};
#ifdef RYLE_HAVE_CUDA
  for (auto& d : detail::list_cuda_devices()) devices.push_back(std::move(d));
#endif
  return devices;
}

std::string cuda_unavailable_reason() {
#ifdef RYLE_HAVE_CUDA
  return detail::cuda_unavailable_reason();
#else
  return "built without CUDA (nvcc was not found)";
#endif
}

namespace detail {

std::shared_ptr<std::byte> allocate(MemorySpace space, std::int64_t n_bytes) {
#ifdef RYLE_HAVE_CUDA
  if (space == MemorySpace::device ||
      (space == MemorySpace::pinned && cuda_unavailable_reason().empty())) {
    return allocate_cuda(space, n_bytes);
  }
#endif
  if (space == MemorySpace::device)
    throw DeviceError("no device memory: " + ryle::cuda_unavailable_reason());
  // Blocks are scattered: neighbouring channels lie kilobytes apart, and with small pages nearly
  // every cell would cost a walk through the page tables.
  const auto bytes = static_cast<std::size_t>(n_bytes);
  // Only whole huge pages: padding to them would take up to twice what plans count.
  const std::size_t huge = bytes / kHugePageBytes * kHugePageBytes;
  const std::size_t padded = std::max<std::size_t>(bytes + 127, 128) / 128 * 128;
  void* memory = nullptr;
  if (posix_memalign(&memory, huge > 0 ? kHugePageBytes : 128, padded) != 0) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (huge > 0) madvise(memory, huge, MADV_HUGEPAGE);  // advice only
#endif
  std::memset(memory, 0, padded);
  return {static_cast<std::byte*>(memory), [](std::byte* p) { std::free(p); }};
}

}  // namespace detail
}  // namespace ryle
