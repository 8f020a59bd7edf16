// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cuda/board.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>

#include "ryle/device/buffer.hpp"
#include "ryle/device/cuda/runtime.hpp"

namespace ryle::bench {
namespace {

/// What is used of NVML, as its documentation declares it (results: 0 = success).
struct Nvml {
  using Device = void*;
  int (*get_device)(const char* pci_bus, Device*) = nullptr;
  int (*clock_mhz)(Device, int kind, unsigned*) = nullptr;
  int (*energy_mj)(Device, unsigned long long*) = nullptr;
  Device device = nullptr;

  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);  // stays loaded
    if (library == nullptr) return;
    const auto symbol = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    int (*init)() = nullptr;
    if (!symbol(init, "nvmlInit_v2") || !symbol(get_device, "nvmlDeviceGetHandleByPciBusId_v2") ||
        !symbol(clock_mhz, "nvmlDeviceGetClockInfo") ||
        !symbol(energy_mj, "nvmlDeviceGetTotalEnergyConsumption") || init() != 0)
      return;
    char bus[32] = {};
    Device found = nullptr;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, 0) == cudaSuccess && get_device(bus, &found) == 0)
      device = found;
  }
};

const Nvml& nvml() {
  static const Nvml instance;
  return instance;
}

constexpr int kSmClock = 1;

/// Cycles that multiprocessor 0 has counted, and nanoseconds, at the same time.
__global__ void read_clock(unsigned long long* cycles_and_ns) {
  unsigned sm = 0;
  unsigned long long ns = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  if (sm != 0) return;
  cycles_and_ns[0] = static_cast<unsigned long long>(clock64());
  cycles_and_ns[1] = ns;
}
constexpr int kEnoughBlocks = 1024;  // one of them runs on multiprocessor 0

}  // namespace

struct BoardLog::State {
  Queue& queue;
  Buffer<unsigned long long> clocks{4, MemorySpace::device};  // at the begin, at the end
  explicit State(Queue& of) : queue(of) {}

  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  unsigned long long energy_mj = 0;
  double mhz_sum = 0;
  int n = 0;
  std::atomic<bool> ends = false;
  std::thread thread;
  bool ended = false;
};

BoardLog::BoardLog(Queue& queue) : state_(std::make_unique<State>(queue)) {
  read_clock<<<kEnoughBlocks, 1, 0, cuda::stream_of(queue)>>>(state_->clocks.data());
  RYLE_CUDA_LAUNCHED("read_clock");
  if (nvml().device == nullptr) return;
  nvml().energy_mj(nvml().device, &state_->energy_mj);
  state_->thread = std::thread([s = state_.get()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // until it runs
    do {
      unsigned mhz = 0;
      if (nvml().clock_mhz(nvml().device, kSmClock, &mhz) == 0) {
        s->mhz_sum += mhz;
        ++s->n;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    } while (!s->ends.load());
  });
}

BoardLog::Means BoardLog::stop() {
  State& s = *state_;
  Means means;
  if (s.ended) return means;
  s.ended = true;
  read_clock<<<kEnoughBlocks, 1, 0, cuda::stream_of(s.queue)>>>(s.clocks.data() + 2);
  RYLE_CUDA_LAUNCHED("read_clock");
  unsigned long long clocks[4] = {};
  copy_bytes(s.queue, clocks, s.clocks.data(), sizeof clocks);
  s.queue.synchronize();
  means.mhz = 1e3 * static_cast<double>(clocks[2] - clocks[0]) /
              static_cast<double>(std::max(1ull, clocks[3] - clocks[1]));
  if (!s.thread.joinable()) return means;
  unsigned long long now_mj = s.energy_mj;
  nvml().energy_mj(nvml().device, &now_mj);
  const double seconds = std::chrono::duration<double>(State::Clock::now() - s.begin).count();
  s.ends = true;
  s.thread.join();
  means.asked_mhz = s.n == 0 ? 0 : s.mhz_sum / s.n;
  means.power_w = 1e-3 * static_cast<double>(now_mj - s.energy_mj) / seconds;
  return means;
}

BoardLog::~BoardLog() {
  state_->ends = true;
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace ryle::bench
