// SPDX-License-Identifier: BSD-3-Clause
// 16 beams or fewer, bound by reading samples, on Hopper: blocks stay. Each warp walks through an
// equal share of all channels and spectra, which lie one behind the other in memory, 128 spectra at
// a time, with a ring of its own in shared memory that the copy engine fills ahead of it.
#include <algorithm>

#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/beamform/cuda_few.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kStreamWarps = 4;   // of a block
constexpr int kStreamBlocks = 5;  // that may share a multiprocessor: 102 registers
constexpr int kRunGroups = 2;     // a run: 128 spectra of 32 antennas, 16 rows of 256 bytes
constexpr int kRunRows = 16;
constexpr int kRunRowBytes = 256;
constexpr int kRunBytes = kRunRows * kRunRowBytes;
constexpr int kMostStages = 8;
constexpr int kStreamShared = 227 << 10;  // of a multiprocessor
constexpr int kBlockReserved = 1 << 10;

/// How a run comes to shared memory. Rows apart by 32 bytes more are read without bank conflicts,
/// and take 16 copies instead of one, or 8 copies of 16 bytes of every lane.
enum class RunCopy : std::uint8_t { whole, rows, lanes };

/// Where a lane finds what it needs of group `half` of a run.
__device__ inline int offset_in_run(const Pairs4&, int piece, int half, int lane, int pitch) {
  return ((lane & 3) + 4 * piece) * pitch + half * 128 + (lane >> 2) * 16;
}
__device__ inline int offset_in_run(const Spectra4&, int piece, int half, int lane, int pitch) {
  return (8 * half + (lane >> 2)) * pitch + piece * 32 + (lane & 3) * 8;
}

/// Runs of all channels in order, [channel][run].
struct Runs {
  int per_channel = 0;
  int stages = 0;
};

__device__ inline void arrive_after_copies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];\n" ::"r"(barrier) : "memory");
}

/// A warp's ring. What it fetches lies `stages` runs ahead of what it reads.
template <RunCopy kCopy>
struct RunRing {
  static constexpr int kPitch = kCopy == RunCopy::whole ? kRunRowBytes : kRunRowBytes + 32;
  static constexpr int kStageBytes = kRunRows * kPitch;
  unsigned memory, barriers;  // [stage]
  int stages, lane;
  const std::uint8_t* from;  // of the next run fetched
  std::int64_t to_next_channel;
  int run, per_channel;  // its place in its channel
  int left;              // runs to fetch
  int fetch_stage = 0, read_stage = 0;
  unsigned parity = 0;

  __device__ void begin(unsigned memory_, unsigned barriers_, int stages_, int lane_) {
    memory = memory_;
    barriers = barriers_;
    stages = stages_;
    lane = lane_;
    if (lane == 0) {
      for (int s = 0; s < stages; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barriers + 8 * s),
                     "r"(kCopy == RunCopy::lanes ? 32 : 1)
                     : "memory");
      cuda::barriers_begun();
    }
    __syncwarp();
  }
  __device__ void fetch() {
    if (left == 0) return;
    --left;
    const unsigned barrier = barriers + 8 * fetch_stage;
    const unsigned to = memory + fetch_stage * kStageBytes;
    if constexpr (kCopy == RunCopy::lanes) {
      const std::uint8_t* mine = from + lane * 16;
      const unsigned at = to + (lane >> 4) * kPitch + (lane & 15) * 16;
#pragma unroll
      for (int k = 0; k < kRunBytes / 512; ++k)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(at + 2 * k * kPitch),
                     "l"(mine + k * 512)
                     : "memory");
      arrive_after_copies(barrier);
    } else {
      if (lane == 0) cuda::arrive_and_expect(barrier, kRunBytes);
      if constexpr (kCopy == RunCopy::whole) {
        if (lane == 0) cuda::copy_bulk(to, from, kRunBytes, barrier);
      } else {
        if (lane < kRunRows)
          cuda::copy_bulk(to + lane * kPitch, from + lane * kRunRowBytes, kRunRowBytes, barrier);
      }
    }
    fetch_stage = fetch_stage + 1 == stages ? 0 : fetch_stage + 1;
    from += kRunBytes;
    if (++run == per_channel) {
      run = 0;
      from += to_next_channel;
    }
  }
  /// Where the next run lies, when it is there.
  __device__ unsigned arrived() {
    cuda::await(barriers + 8 * read_stage, parity);
    return memory + read_stage * kStageBytes;
  }
  /// All lanes have read the run.
  __device__ void release() {
    __syncwarp();
    if (++read_stage == stages) {
      read_stage = 0;
      parity ^= 1;
    }
    fetch();
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

template <class Loader, class Output, int kRows, bool kPlain, RunCopy kCopy>
__global__ void __launch_bounds__(32 * kStreamWarps, kStreamBlocks)
    few_stream(const __grid_constant__ FusedArgs a, Runs runs) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint4 shared[];
  __shared__ std::uint64_t barriers[kStreamWarps][kMostStages];
  using Ring = RunRing<kCopy>;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const std::int64_t all = std::int64_t{runs.per_channel} * a.launch_channels;
  const std::int64_t n_warps = std::int64_t{gridDim.x} * kStreamWarps;
  const std::int64_t mine = std::int64_t{blockIdx.x} * kStreamWarps + warp;
  const std::int64_t begin = all * mine / n_warps;
  int left = static_cast<int>(all * (mine + 1) / n_warps - begin);
  if (left == 0) return;
  int local = static_cast<int>(begin / runs.per_channel);
  int run = static_cast<int>(begin - std::int64_t{local} * runs.per_channel);

  std::byte* staging = reinterpret_cast<std::byte*>(shared) + warp * Output::kStagingBytes;
  const unsigned rings = cuda::shared_address(shared) + kStreamWarps * Output::kStagingBytes;
  Ring ring;
  ring.begin(rings + warp * runs.stages * Ring::kStageBytes, cuda::shared_address(barriers[warp]),
             runs.stages, lane);
  ring.to_next_channel = a.channel_stride_bytes - std::int64_t{runs.per_channel} * kRunBytes;
  ring.from = a.samples + (a.first_channel + local) * a.channel_stride_bytes +
              (std::int64_t{a.first_group} / kRunGroups + run) * kRunBytes;
  ring.run = run;
  ring.per_channel = runs.per_channel;
  ring.left = left;
  for (int s = 0; s < runs.stages; ++s) ring.fetch();

  while (left > 0) {
    const int channel = a.first_channel + local;
    FewWeights<kRows> w;
    w.load(a, channel, lane, Loader::kUnit);
    const Destination to = destination<Output>(a, 0, local, channel, lane);
    const int end = min(run + left, runs.per_channel);
    left -= end - run;
    for (; run < end; ++run) {
      const unsigned place = ring.arrived();
#pragma unroll 1
      for (int half = 0; half < kRunGroups; ++half) {
        Loader now;
#pragma unroll
        for (int k = 0; k < Loader::kPieces; ++k)
          read_piece(now.raw[k], place + offset_in_run(now, k, half, lane, Ring::kPitch));
        if (half == kRunGroups - 1) ring.release();
        work_on<kRows, kPlain, Loader, Output>(a, w, now, to, run * kRunGroups + half, lane,
                                               staging);
      }
    }
    run = 0;
    ++local;
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

template <class Loader, RunCopy kCopy>
void launch_stream(const FusedArgs& a, cudaStream_t stream) {
  for_few(a, [&]<class Output, int kRows, bool kPlain>() {
    auto* kernel = few_stream<Loader, Output, kRows, kPlain, kCopy>;
    Runs runs;
    runs.per_channel = a.n_groups / kRunGroups;
    runs.stages = std::clamp(a.stages, 2, kMostStages);
    const auto bytes_of = [&](int stages) {
      return kStreamWarps * (Output::kStagingBytes + stages * RunRing<kCopy>::kStageBytes);
    };
    int blocks = std::clamp(a.blocks_together, 1, kStreamBlocks);
    while (blocks > 1 && blocks * (bytes_of(runs.stages) + kBlockReserved) > kStreamShared)
      --blocks;
    while (runs.stages > 2 && bytes_of(runs.stages) + kBlockReserved > kStreamShared) --runs.stages;
    const int bytes = bytes_of(runs.stages);
    int device = 0, multiprocessors = 0;
    RYLE_CUDA(cudaGetDevice(&device));
    RYLE_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<static_cast<unsigned>(multiprocessors * blocks), 32 * kStreamWarps,
             static_cast<std::size_t>(bytes), stream>>>(a, runs);
    RYLE_CUDA_LAUNCHED("beamform few beams, streamed");
  });
}

template <class Loader>
void choose_copy(const FusedArgs& a, cudaStream_t stream) {
  if (a.run_copy == 1) return launch_stream<Loader, RunCopy::rows>(a, stream);
  if (a.run_copy == 2) return launch_stream<Loader, RunCopy::lanes>(a, stream);
  launch_stream<Loader, RunCopy::whole>(a, stream);
}

}  // namespace

bool is_streamable(const FusedArgs& a) {
  if (a.n_groups % kRunGroups != 0 || a.first_group % kRunGroups != 0) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(a.samples);
  if ((address | static_cast<std::uintptr_t>(a.channel_stride_bytes)) % 16 != 0) return false;
  if (a.layout == FusedLayout::pairs4)
    return a.groups_per_block == kRunGroups && a.block_stride_bytes == kRunBytes;
  return a.layout == FusedLayout::spectra4 && a.step_stride_bytes == kStepAntennas &&
         a.n_spectra >= std::int64_t{a.first_group + a.n_groups} * kGroupSpectra;
}

void launch_few(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_copy<Pairs4>(a, stream);
  choose_copy<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
