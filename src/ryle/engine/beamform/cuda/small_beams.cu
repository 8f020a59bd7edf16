// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// small_beams_stream is the beamformer for 16 beams or fewer of 32 antennas or fewer on Hopper: b = sum_a W v of ci4
// samples with i8 weights, by mma.sync m16n8k32, then power or voltage as cuda/epilogue.cuh stores it.
//
//   array        axes                                           type      unit
//   a.samples    [channel][run][16 rows of 256 bytes]           ci4       LSB; a run is 128 spectra of 32 antennas
//   a.fragments  [pol][channel][Wr, -Wi, Wi][lane]              4 x 4 i8  codes of weights, as operands
//   shared       [warp][stage][4096 bytes], then staging        ci4       runs as they were copied
//   a.values     [row][product][channel][value]                 power or voltage, by a.output
//
// Who does what: one thread block of up to 12 warps runs on each multiprocessor and walks through an equal part of
// all channels and runs, which lie one behind the other in memory. Its warps take turns, one run each, from a
// ring of their own that the copy engine fills ahead (cp.async.bulk, an mbarrier a stage). Weights of a channel stay
// in registers; those of the next channel are on their way. Powers of T = 8 to 64 leave a whole run at a time.
// What a block reads and writes at a time so lies together, and lines of the output are full before they leave
// the cache.
//
// What binds (docs/decisions/0009, H200): with 16 beams the power limit of the device, with 560 of 1,000 issue
// slots used and the path between the halves of the second-level cache busy in 86 % of the cycles. With 8
// beams samples come at 3.7 TB/s.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/beamform/cuda/small_beams.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kStreamWarps = 12;  // of a multiprocessor: 168 registers
constexpr int kRunGroups = 2;     // a run: 128 spectra of 32 antennas, 16 rows of 256 bytes
constexpr int kRunRowBytes = 256;
constexpr int kRunBytes = 16 * kRunRowBytes;
constexpr int kMaxStages = 8;
constexpr int kStreamShared = 226 << 10;  // of a block, what is static aside

/// Where a lane finds the first piece it needs of group `half` of a run, and how far the next is.
__device__ inline int offset_in_run(const Pairs4&, int half, int lane) {
  return (lane & 3) * kRunRowBytes + half * 128 + (lane >> 2) * 16;
}
__device__ inline int offset_in_run(const Spectra4&, int half, int lane) {
  return (8 * half + (lane >> 2)) * kRunRowBytes + (lane & 3) * 8;
}
__device__ inline int piece_stride(const Pairs4&) { return 4 * kRunRowBytes; }
__device__ inline int piece_stride(const Spectra4&) { return 32; }

/// The same where half h of a run is every other pair of pieces of 8 spectra: column n of the
/// products holds piece p = 4 (n / 2) + 2 h + n % 2, so that the pieces 4 q .. 4 q + 3 end in one
/// lane and the powers of a run in whole sectors of memory.
__device__ inline int piece_in_run(int half, int lane) {
  const int n = lane >> 2;
  return 4 * (n >> 1) + 2 * half + (n & 1);
}
__device__ inline int turned_offset_in_run(const Pairs4&, int half, int lane) {
  return (lane & 3) * kRunRowBytes + piece_in_run(half, lane) * 16;
}
__device__ inline int turned_offset_in_run(const Spectra4&, int half, int lane) {
  return piece_in_run(half, lane) * kRunRowBytes + (lane & 3) * 8;
}

/// Powers of a run added over T = 8, 16, 32 or 64 spectra, in the order of `Integrated`. Stored by
/// all four lanes of a row together: 4-byte values of T <= 16 fill sectors of 32 bytes, parts of
/// which cost the second-level cache as much as whole ones.
template <int T>
struct IntegratedRun {
  static constexpr int kValues = kRunGroups * kGroupSpectra / T;
  static constexpr int kOfLane = T <= 32 ? 32 / T : 1;
  float sum[2][4] = {};  // [row][piece of the lane]

  template <class E>
  __device__ void add(const E&, int half, const float (&pieces)[2][2]) {
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        if (half == 0)
          sum[h][c] = pieces[h][c];
        else
          sum[h][2 + c] = pieces[h][c];
      }
    }
  }
  /// Value k of a row's kOfLane.
  __device__ float value(int h, int k) const {
    if constexpr (T == 8) return sum[h][k];
    if constexpr (T == 16) return sum[h][2 * k] + sum[h][2 * k + 1];
    return (sum[h][0] + sum[h][1]) + (sum[h][2] + sum[h][3]);
  }
  template <class E>
  __device__ void finish(const E& e, int run) const {
    const int q = e.lane & 3;
    const bool mine = T < 64 || q % 2 == 0;
    const std::int64_t at = std::int64_t{run} * kValues + (T < 64 ? q * kOfLane : q / 2);
#pragma unroll
    for (int h = 0; h < E::kRows; ++h) {
      float v[kOfLane];
#pragma unroll
      for (int k = 0; k < kOfLane; ++k) v[k] = value(h, k);
      if constexpr (T == 64) v[0] += __shfl_xor_sync(~0u, v[0], 1);
      if constexpr (E::kIsPlain) {
        if (mine) store_whole(e, h, at, v);
      } else {
        store_each(e, h, at, mine, v);
      }
    }
  }
  template <class E>
  static __device__ void store_whole(const E& e, int h, std::int64_t at,
                                     const float (&v)[kOfLane]) {
    const float mul = e.table.mul[h], add = e.table.add[h];
    if (!e.a.as_bytes) {
      float* out = reinterpret_cast<float*>(e.at(h)) + at;
      if constexpr (kOfLane == 4)
        *reinterpret_cast<float4*>(out) = {v[0] * mul, v[1] * mul, v[2] * mul, v[3] * mul};
      else if constexpr (kOfLane == 2)
        *reinterpret_cast<float2*>(out) = {v[0] * mul, v[1] * mul};
      else
        *out = v[0] * mul;
      return;
    }
    auto* out = reinterpret_cast<std::uint8_t*>(e.at(h)) + at;
    unsigned codes = 0;
#pragma unroll
    for (int k = 0; k < kOfLane; ++k)
      codes |= Integrated<T>::code(rintf(fmaf(v[k], mul, add))) << (8 * k);
    if constexpr (kOfLane == 4)
      *reinterpret_cast<unsigned*>(out) = codes;
    else if constexpr (kOfLane == 2)
      *reinterpret_cast<std::uint16_t*>(out) = static_cast<std::uint16_t>(codes);
    else
      *out = static_cast<std::uint8_t>(codes);
  }
  template <class E>
  static __device__ void store_each(const E& e, int h, std::int64_t at, bool mine,
                                    const float (&v)[kOfLane]) {
    const FusedArgs& a = e.a;
    unsigned low = 0, high = 0;
#pragma unroll
    for (int k = 0; k < kOfLane; ++k) {
      if (!mine || !e.exists(h) || at + k >= a.n_values) continue;
      float factor = e.table.mul[h];
      if (a.loss.factor != nullptr) Integrated<T>::lose(e, h, at + k, factor);
      if (!a.as_bytes) {
        reinterpret_cast<float*>(e.at(h))[at + k] = v[k] * factor;
        continue;
      }
      const float rounded = rintf(fmaf(v[k], factor, e.table.add[h]));
      reinterpret_cast<std::uint8_t*>(e.at(h))[at + k] =
          static_cast<std::uint8_t>(Integrated<T>::code(rounded));
      low += rounded < 0;
      high += rounded > 255;
    }
    if (a.as_bytes && e.counts()) e.count(h, low, high);
  }
};

/// Powers of pieces of 8 spectra, added as tiles go by.
struct OctetPowers {
  float sum[2][2] = {};
  template <int H, class E>
  __device__ void half(const E&, const int (&re)[4][4], const int (&im)[4][4], std::byte*) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int c = 0; c < 2 * E::kRows; ++c) {
        const float x = E::value(re[k][c]), y = E::value(im[k][c]);
        sum[c / 2][c % 2] = fmaf(y, y, fmaf(x, x, sum[c / 2][c % 2]));
      }
    }
  }
};

template <class Output>
struct RunOf {
  static constexpr bool kExists = false;
};
template <int T>
struct RunOf<Integrated<T>> {
  static constexpr bool kExists = true;
  using Output = IntegratedRun<T>;
};

/// Runs of all channels in order, [channel][run].
struct Runs {
  int per_channel = 0;
  int stages = 0;
};

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

__device__ inline unsigned words_of(const uint4& v) { return v.x ^ v.y ^ v.z ^ v.w; }
__device__ inline unsigned words_of(const uint2& v) { return v.x ^ v.y; }

/// See the head of this file. kRows = 1: 8 beams or fewer, real and imaginary sums in one operand.
template <class Loader, class Output, int kRows, bool kPlain>
__global__ void __launch_bounds__(32 * kStreamWarps, 1)
    small_beams_stream(const __grid_constant__ FusedArgs a, int per_channel, int stages) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ std::uint64_t barriers[kStreamWarps][kMaxStages];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int n_warps = static_cast<int>(blockDim.x >> 5);
  const std::int64_t all = std::int64_t{per_channel} * a.launch_channels;
  const std::int64_t begin = all * blockIdx.x / gridDim.x;
  const std::int64_t end = all * (blockIdx.x + 1) / gridDim.x;
  int left = (static_cast<int>(end - begin) - warp + n_warps - 1) / n_warps;  // turns of this warp
  if (left <= 0) return;
  Turn now{static_cast<int>(begin / per_channel), 0};
  now.run = static_cast<int>(begin - std::int64_t{now.local} * per_channel);
  now.advance(warp, per_channel);

  std::byte* staging = reinterpret_cast<std::byte*>(shared) + n_warps * stages * kRunBytes +
                       warp * Output::kStagingBytes;
  RunRing ring(cuda::shared_address(shared) + warp * stages * kRunBytes,
               cuda::shared_address(barriers[warp]), stages, lane);
  const std::uint8_t* samples = a.samples + a.first_channel * a.channel_stride_bytes +
                                std::int64_t{a.first_group} / kRunGroups * kRunBytes;
  Turn ahead = now;
  int to_fetch = left;
  const auto fetch = [&] {
    if (to_fetch == 0) return;
    --to_fetch;
    if (lane == 0)
      ring.fetch(samples + ahead.local * a.channel_stride_bytes +
                 std::int64_t{ahead.run} * kRunBytes);
    ahead.advance(n_warps, per_channel);
  };
  for (int s = 0; s < stages; ++s) fetch();

  SmallBeamsFetched next;  // of the next channel, on its way while this one is worked on
  next.load(a, a.first_channel + now.local, lane);
  while (left > 0) {
    const int channel = a.first_channel + now.local, local = now.local;
    SmallBeamsWeights<kRows> w;
    w.take(a, next, Loader::kUnit);
    if (local + 1 < a.launch_channels) next.load(a, channel + 1, lane);
    const Destination to = destination<Output>(a, 0, local, channel, lane);
    for (; left > 0 && now.local == local; --left, now.advance(n_warps, per_channel)) {
      const unsigned place = ring.arrived();
      constexpr bool kWholeRuns = RunOf<Output>::kExists;
      const auto half_of = [&](Loader& pieces, int half) {
        const unsigned at = place + (kWholeRuns ? turned_offset_in_run(pieces, half, lane)
                                                : offset_in_run(pieces, half, lane));
        const int stride = piece_stride(pieces);
#pragma unroll
        for (int k = 0; k < Loader::kPieces; ++k) read_piece(pieces.raw[k], at + k * stride);
        if (half != kRunGroups - 1) return;
        unsigned loaded = 0;
#pragma unroll
        for (int k = 0; k < Loader::kPieces; ++k) loaded ^= words_of(pieces.raw[k]);
        ring.release(loaded);
        fetch();
      };
      if constexpr (kWholeRuns) {
        const Epilogue<kRows, kPlain, true> e(a, w.table, to, now.run * kRunGroups, lane);
        typename RunOf<Output>::Output run;
#pragma unroll
        for (int half = 0; half < kRunGroups; ++half) {
          Loader pieces;
          half_of(pieces, half);
          OctetPowers powers;
          multiply_small_beams<kRows>(e, w, pieces, powers, staging);
          run.add(e, half, powers.sum);
        }
        run.finish(e, now.run);
      } else {
#pragma unroll 1
        for (int half = 0; half < kRunGroups; ++half) {
          Loader pieces;
          half_of(pieces, half);
          work_on<kRows, kPlain, Loader, Output>(a, w, pieces, to, now.run * kRunGroups + half,
                                                 lane, staging);
        }
      }
    }
    // More warps than runs of a channel: the next turn is further on.
    if (left > 0 && now.local != local + 1) next.load(a, a.first_channel + now.local, lane);
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

template <class Loader>
void choose_stream(const FusedArgs& a, cudaStream_t stream) {
  for_small_beams(a, [&]<class Output, int kRows, bool kPlain>() {
    auto* kernel = small_beams_stream<Loader, Output, kRows, kPlain>;
    const int warps = std::clamp(a.stream_warps, 1, kStreamWarps);
    const auto bytes_of = [&](int stages) {
      return warps * (Output::kStagingBytes + stages * kRunBytes);
    };
    int stages = std::clamp(a.stages, 2, kMaxStages);
    while (stages > 2 && bytes_of(stages) > kStreamShared) --stages;
    const int bytes = bytes_of(stages);
    int device = 0, multiprocessors = 0;
    RYLE_CUDA(cudaGetDevice(&device));
    RYLE_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    cuda::allow_all_shared(kernel);
    kernel<<<static_cast<unsigned>(multiprocessors), static_cast<unsigned>(32 * warps),
             static_cast<std::size_t>(bytes), stream>>>(a, a.n_groups / kRunGroups, stages);
    RYLE_CUDA_LAUNCHED("beamform few beams, streamed");
  });
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

void launch_small_beams(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_stream<Pairs4>(a, stream);
  choose_stream<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
