// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/beamform/cuda_few.cuh"

/// Private to the CUDA beamformer: runs of 128 spectra x 32 antennas, one behind the other in
/// memory, on their way through a warp's ring in shared memory.
namespace ryle::beamform::detail {

constexpr int kStreamWarps = 12;  // of a multiprocessor: 168 registers
constexpr int kRunGroups = 2;     // a run: 128 spectra of 32 antennas, 16 rows of 256 bytes
constexpr int kRunRowBytes = 256;
constexpr int kRunBytes = 16 * kRunRowBytes;
constexpr int kMostStages = 8;
constexpr int kStreamShared = 226 << 10;  // of a block, what is static aside

/// Place of a run.
struct Turn {
  int local = 0;  // channel of the launch
  int run = 0;
  /// n runs on.
  __device__ void advance(int n, int per_channel) {
    run += n;
    while (run >= per_channel) {
      run -= per_channel;
      ++local;
    }
  }
};

/// A warp's ring. What it fetches lies `stages` turns ahead of what it reads.
struct RunRing {
  unsigned memory, barriers;  // [stage]
  int stages;
  int fetch_stage = 0, read_stage = 0;
  unsigned parity = 0;
  unsigned taken = 0;

  __device__ RunRing(unsigned memory_, unsigned barriers_, int stages_, int lane)
      : memory(memory_), barriers(barriers_), stages(stages_) {
    if (lane == 0) {
      for (int s = 0; s < stages; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(barriers + 8 * s) : "memory");
      cuda::barriers_begun();
    }
    __syncwarp();
  }
  /// One lane.
  __device__ void fetch(const std::uint8_t* from) {
    const unsigned barrier = barriers + 8 * fetch_stage;
    // What was loaded is there when this number is; stages are few.
    cuda::arrive_and_expect(barrier, kRunBytes + (taken & static_cast<unsigned>(stages >> 30)));
    cuda::copy_bulk(memory + fetch_stage * kRunBytes, from, kRunBytes, barrier);
    fetch_stage = fetch_stage + 1 == stages ? 0 : fetch_stage + 1;
  }
  /// Where the next run lies, when it is there.
  __device__ unsigned arrived() const {
    cuda::await(barriers + 8 * read_stage, parity);
    return memory + read_stage * kRunBytes;
  }
  /// All lanes have read the run. @param loaded of what this lane loaded: the next copy into its
  /// place waits for it, else it could overtake the load
  __device__ void release(unsigned loaded) {
    taken = __ballot_sync(0xffffffffu, loaded != 0);
    __syncwarp();
    if (++read_stage == stages) {
      read_stage = 0;
      parity ^= 1;
    }
  }
};

__device__ inline void read_piece(uint4& v, unsigned address) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
}
__device__ inline void read_piece(uint2& v, unsigned address) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];\n"
               : "=r"(v.x), "=r"(v.y)
               : "r"(address)
               : "memory");
}

}  // namespace ryle::beamform::detail
