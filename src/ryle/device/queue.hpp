// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/device/buffer.hpp"

namespace ryle {

/// Back-ends are roles, not chips.
enum class BackEnd : std::uint8_t { cpu, cuda };

/// In-order work queue. On the CPU execute() has returned when the work is done; parallel loops run
/// in the queue's oneTBB arena. On CUDA it wraps a stream and work is asynchronous until
/// synchronize().
class Queue {
 public:
  /// CPU queue with n_workers threads (0 = all cores this process may use).
  static Queue cpu(int n_workers = 0);
  /// CUDA queue on a device; throws DeviceError when there is none (message says what was found).
  static Queue cuda(int device_index = 0);
  /// Another queue on the device of this one; itself on the CPU.
  static Queue beside(const Queue& queue);

  BackEnd back_end() const;
  int n_workers() const;
  /// cudaStream_t as void*, nullptr on the CPU.
  void* native_handle() const;
  /// Waits for all work; throws DeviceError if any of it failed.
  void synchronize();
  /// Non-blocking look for an asynchronous fault; throws one DeviceError.
  void check();
  /// CPU only: runs body(i) for i in [0, n) on the arena, grain-size 1; returns when all are done.
  void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body);

  struct Impl;
  explicit Queue(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

/// Copies n_bytes between any two spaces, ordered on the queue (asynchronous where the queue is).
void copy_bytes(Queue& queue, void* destination, const void* source, std::int64_t n_bytes);

/// A compute device Ryle can use, for `ryle doctor` and `ryle info`.
struct DeviceInfo {
  std::string name;         ///< "cpu" or "cuda:0"
  std::string description;  ///< "AMD EPYC ..., 2 cores" / "NVIDIA H200, 139 GiB, sm_90"
  std::int64_t memory_bytes = 0;
};
std::vector<DeviceInfo> list_devices();
/// "" when CUDA works here, else the reason ("built without CUDA", "no driver", "no device").
std::string cuda_unavailable_reason();

/// Instruction sets of this CPU that Ryle has code for, best first, e.g.
/// {"amx","avx512_vnni","avx512_vbmi","avx2","generic"}.
std::vector<std::string> cpu_instruction_sets();

}  // namespace ryle
