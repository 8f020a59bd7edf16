// SPDX-License-Identifier: BSD-3-Clause
#include "bench/cuda/board.hpp"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <type_traits>

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

}  // namespace

struct BoardLog::State {
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  unsigned long long energy_mj = 0;
  double mhz_sum = 0;
  int n = 0;
  std::atomic<bool> ends = false;
  std::thread thread;
};

BoardLog::BoardLog() : state_(std::make_unique<State>()) {
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
  if (!s.thread.joinable()) return means;
  unsigned long long now_mj = s.energy_mj;
  nvml().energy_mj(nvml().device, &now_mj);
  const double seconds = std::chrono::duration<double>(State::Clock::now() - s.begin).count();
  s.ends = true;
  s.thread.join();
  means.sm_mhz = s.n == 0 ? 0 : s.mhz_sum / s.n;
  means.power_w = 1e-3 * static_cast<double>(now_mj - s.energy_mj) / seconds;
  return means;
}

BoardLog::~BoardLog() { stop(); }

}  // namespace ryle::bench
