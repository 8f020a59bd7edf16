// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// wgmma is the beamformer on Hopper's warpgroup products. It computes b = sum_a W v (Magro 2014) of ci4
// samples with i8 weights, in exact integers, and goes on in registers to what is stored:
//   re b = sum_a Wr vr - Wi vi,   im b = sum_a Wi vr + Wr vi,   a group is 64 spectra, a slab 16 beams
//
//   array        axes                                               type     unit
//   a.samples    [channel][block][pair][spectrum][2] (pairs4), or   ci4      LSB
//                [channel][spectrum][antenna] (spectra4)
//   a.fragments  [pol][channel][slab][step][Wr, -Wi, Wi][lane]      4 x 4 i8 codes of weights, as operands
//   ring         [stage][re, im][64 spectra x 32 antennas]          i8       16 LSB; 4 KiB a stage; shared memory
//   weights      [set][slab][step][Wr, -Wi, Wi][lane]               as fragments; shared memory
//   rows         [set][slab][16 beams]                              float2   factor and offset of what is stored
//   staging      [warp of 16]                                       bytes    rows on their way out; shared memory
//   a.values     [row][product][channel][value]                     power or voltage, by a.output
//
// Who does what: one thread block of 640 threads runs on each multiprocessor and takes partition after partition (some
// slabs and groups of one channel). The last warpgroup is the producer: one thread copies the weights of the next
// share in bulk, and all four warps load samples, a chunk (64 spectra x 32 antennas) ahead, unpack them to
// bytes and write them to the ring. The other four warpgroups multiply 64 beams x 64 spectra each with
// m64n64k32, weights in registers, then detect, integrate, requantise and store (cuda/epilogue.cuh) while the
// tensor cores work for the others. mbarriers say which stages and which sets of weights are full and
// empty; the thread block has no barrier of its own in the loop.
//
// What binds (docs/decisions/0009 and 0017, H200, 32 antennas x 1,024 beams): integrated powers are bound by the
// issue of instructions and the integer pipe, one conversion and one multiply-add a sum first of all; cf16
// voltages by waits for shared memory and for samples. The tensor cores are busy for about a third of the time.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/kernel.cuh"
#include "ryle/device/cuda/warpgroup.cuh"
#include "ryle/engine/beamform/cuda/mma.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kConsumers = 4;  // warpgroups that multiply
constexpr int kConsumerWarps = 4 * kConsumers;
constexpr int kProducerWarps = 4;
constexpr int kThreads = 32 * (kConsumerWarps + kProducerWarps);
constexpr int kUnitGroups = 2;                              // of partitions of the last round
constexpr int kTileSlabs = 4;                               // 64 beams
constexpr int kPlaneBytes = kGroupSpectra * kStepAntennas;  // real or imaginary
constexpr int kChunkBytes = 2 * kPlaneBytes;                // a stage of the ring
constexpr int kWeightBytes = 3 * 512;                       // of a slab and step
constexpr int kRowBytes = kSlabRows * static_cast<int>(sizeof(float2));  // of a slab
constexpr int kSharedLimit = 227 << 10;

/// Stages of the ring, and sets of weights: one step of antennas leaves room for two.
template <bool kOneStep>
constexpr int kStages = kOneStep ? 16 : 8;
template <bool kOneStep>
constexpr int kSets = kOneStep ? 2 : 1;

struct Barriers {
  std::uint64_t full[16], empty[16];
  std::uint64_t set_full[2], set_empty[2];
};

using cuda::arrive;
using cuda::arrive_and_expect;
using cuda::await;
using cuda::begin_barrier;
using cuda::shared_address;

/// Partitions of a launch, [channel][item of groups_per_item groups][block of beams]: blocks of
/// threads take them in turn. Where they would end in a round of few, those few are cut into units
/// of fewer groups, so that no multiprocessor works alone on a whole one.
struct Cut {
  int beam_blocks, items;
  int whole;  // partitions that stay whole; units of the others follow
  int unit_groups, units;
  int places;
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

using cuda::begin_products;
using cuda::end_products;
using cuda::wait_products;

/// sums (64 beams x 64 spectra) [+]= w (64 x 32, registers) b (32 x 64, shared memory)
template <bool kAdds>
__device__ inline void multiply_group(int (&d)[2][4][4], const uint4& w, std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,"
      "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "{%32,%33,%34,%35}, %36, p;\n}\n"
      : "+r"(d[0][0][0]), "+r"(d[0][0][1]), "+r"(d[0][0][2]), "+r"(d[0][0][3]), "+r"(d[0][1][0]),
        "+r"(d[0][1][1]), "+r"(d[0][1][2]), "+r"(d[0][1][3]), "+r"(d[0][2][0]), "+r"(d[0][2][1]),
        "+r"(d[0][2][2]), "+r"(d[0][2][3]), "+r"(d[0][3][0]), "+r"(d[0][3][1]), "+r"(d[0][3][2]),
        "+r"(d[0][3][3]), "+r"(d[1][0][0]), "+r"(d[1][0][1]), "+r"(d[1][0][2]), "+r"(d[1][0][3]),
        "+r"(d[1][1][0]), "+r"(d[1][1][1]), "+r"(d[1][1][2]), "+r"(d[1][1][3]), "+r"(d[1][2][0]),
        "+r"(d[1][2][1]), "+r"(d[1][2][2]), "+r"(d[1][2][3]), "+r"(d[1][3][0]), "+r"(d[1][3][1]),
        "+r"(d[1][3][2]), "+r"(d[1][3][3])
      : "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w), "l"(b), "n"(kAdds ? 1 : 0));
}

/// The asynchronous products write these registers: nothing is read before `wait`.
__device__ inline void fence_registers(int (&d)[2][4][4]) {
#pragma unroll
  for (int k = 0; k < 8; ++k)
    asm volatile(""
                 : "+r"(d[k / 4][k % 4][0]), "+r"(d[k / 4][k % 4][1]), "+r"(d[k / 4][k % 4][2]),
                   "+r"(d[k / 4][k % 4][3])::"memory");
}
/// Planes in shared memory: core matrices of 8 spectra x 16 antennas, [spectra / 8][antennas / 16].
__device__ inline std::uint64_t operand(unsigned plane) {
  constexpr std::uint64_t kAlongAntennas = 128, kAlongSpectra = 256;
  return plane >> 4 | (kAlongAntennas >> 4) << 16 | (kAlongSpectra >> 4) << 32;
}

template <int kFirst>
__device__ inline void multiply_chunk(int (&re)[2][4][4], int (&im)[2][4][4], const uint4 (&w)[3],
                                      unsigned chunk) {
  const std::uint64_t real = operand(chunk), imaginary = operand(chunk + kPlaneBytes);
  begin_products();
  multiply_group<kFirst == 0>(re, w[0], real);
  multiply_group<kFirst == 0>(im, w[2], real);
  multiply_group<true>(re, w[1], imaginary);
  multiply_group<true>(im, w[0], imaginary);
  end_products();
}

/// sums (64 beams x 32 spectra) [+]= w (64 x 32, registers) b (32 x 32, shared memory)
template <bool kAdds>
__device__ inline void multiply_narrow(int (&d)[4][4], const uint4& w, std::uint64_t b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %21, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}, "
      "{%16,%17,%18,%19}, %20, p;\n}\n"
      : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3]), "+r"(d[1][0]), "+r"(d[1][1]),
        "+r"(d[1][2]), "+r"(d[1][3]), "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3]),
        "+r"(d[3][0]), "+r"(d[3][1]), "+r"(d[3][2]), "+r"(d[3][3])
      : "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w), "l"(b), "n"(kAdds ? 1 : 0));
}
constexpr int kHalfBytes = kPlaneBytes / 2;  // of a plane: 4 tiles
__device__ inline void multiply_half(int (&re)[4][4], int (&im)[4][4], const uint4 (&w)[3],
                                     unsigned chunk) {
  const std::uint64_t real = operand(chunk), imaginary = operand(chunk + kPlaneBytes);
  begin_products();
  multiply_narrow<false>(re, w[0], real);
  multiply_narrow<false>(im, w[2], real);
  multiply_narrow<true>(re, w[1], imaginary);
  multiply_narrow<true>(im, w[0], imaginary);
  end_products();
}
__device__ inline void fence_half(int (&d)[4][4]) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
    asm volatile("" : "+r"(d[k][0]), "+r"(d[k][1]), "+r"(d[k][2]), "+r"(d[k][3])::"memory");
}

/// Some slabs of beams and groups of spectra of one channel.
struct Partition {
  int first_slab, n_slabs, first_group, n_groups, local, channel;
  __device__ Partition(const FusedArgs& a, const Cut& cut, int place) {
    int item = place, unit = 0, maximum = a.groups_per_item;
    if (place >= cut.whole) {
      item = cut.whole + (place - cut.whole) / cut.units;
      unit = (place - cut.whole) % cut.units;
      maximum = cut.unit_groups;
    }
    first_slab = a.slabs_before + item % cut.beam_blocks * a.slabs_per_block;
    item /= cut.beam_blocks;
    const int begin = a.groups_before + item % cut.items * a.groups_per_item;
    const int end = min(begin + a.groups_per_item, a.groups_end);
    first_group = begin + unit * maximum;
    n_groups = max(0, min(maximum, end - first_group));
    local = item / cut.items;
    channel = a.first_channel + local;
    n_slabs = min(a.slabs_per_block, a.slabs_end - first_slab);
  }
};

/// Order of the chunks of a partition: as many groups side by side as there are warpgroups for one
/// tile of beams (`ways`), each with its steps of antennas. Where the last set has fewer groups
/// than ways, chunks of none take the places: a stage of the ring is always of the same way, which
/// has so seen the phase before the one it waits for. (A barrier tells only the parity of a phase:
/// who waits two ahead goes on at once, with the samples of another.)
struct Order {
  int ways, steps, n_groups;
  __device__ int n_chunks() const { return (n_groups + ways - 1) / ways * ways * steps; }
  __device__ void at(int place, int& group, int& step) const {
    const int set = place / (ways * steps);
    const int rest = place - set * ways * steps;
    step = rest / ways;
    group = set * ways + rest - step * ways;
  }
};

struct Memory {
  std::byte* ring;
  uint4* weights;  // [set][slab][step][Wr, -Wi, Wi][lane]
  float2* rows;    // [set][slab][16]
  std::byte* staging;
  Barriers* barriers;
};

template <class Loader, bool kOneStep>
__device__ void produce(const FusedArgs& a, const Memory& m, const Cut& cut) {
  constexpr int kRing = kStages<kOneStep>;
  const int thread = threadIdx.x - 32 * kConsumerWarps, warp = thread / 32, lane = thread % 32;
  const int steps = kOneStep ? 1 : a.n_steps;
  const int ways = kConsumers * kTileSlabs / a.slabs_per_block;
  int count = 0;  // chunks of partitions before
  int n = 0;
  for (int id = blockIdx.x; id < cut.places; id += gridDim.x, ++n) {
    const Partition partition(a, cut, id);
    const int set = n % kSets<kOneStep>;
    await(&m.barriers->set_empty[set], (n / kSets<kOneStep> & 1) ^ 1);
    float2* rows = m.rows + set * a.slabs_per_block * kSlabRows;
    for (int r = thread; r < partition.n_slabs * kSlabRows; r += 32 * kProducerWarps)
      rows[r] =
          row_entry(a, partition.first_slab * kSlabRows + r, partition.channel, Loader::kUnit);
    if (thread == 0) {
      const unsigned bytes = partition.n_slabs * steps * kWeightBytes;
      const std::int64_t first =
          (static_cast<std::int64_t>(a.pol) * a.n_channels + partition.channel) * a.n_slabs +
          partition.first_slab;
      arrive_and_expect(&m.barriers->set_full[set], bytes);
      cuda::copy_bulk(shared_address(m.weights + set * a.slabs_per_block * steps * 96),
                      a.fragments + first * steps * 96, bytes,
                      shared_address(&m.barriers->set_full[set]));
    } else {
      arrive(&m.barriers->set_full[set]);
    }
    const std::uint8_t* samples = a.samples + partition.channel * a.channel_stride_bytes;
    const Order order{ways, steps, partition.n_groups};
    const int n_chunks = order.n_chunks();
    const auto load = [&](int place, Loader& loader) {
      int group = place, step = 0;
      if constexpr (!kOneStep) order.at(place, group, step);
      if (group < partition.n_groups)
        loader.load(a, samples, partition.first_group + group, step, lane);
      return group < partition.n_groups;
    };
    int place = (warp - count) & (kProducerWarps - 1);
    if (place < n_chunks) {
      Loader next;
      bool filled_next = load(place, next);
      for (; place < n_chunks; place += kProducerWarps) {
        const Loader now = next;
        const bool filled = filled_next;
        if (place + kProducerWarps < n_chunks) filled_next = load(place + kProducerWarps, next);
        const int stage = (count + place) % kRing;
        await(&m.barriers->empty[stage], ((count + place) / kRing & 1) ^ 1);
        if (filled) {
          unsigned* to = reinterpret_cast<unsigned*>(m.ring + stage * kChunkBytes) + lane;
#pragma unroll
          for (int j = 0; j < 8; ++j) {
            const Columns c = now.tile(j);
            to[j * 64] = c.re[0];
            to[j * 64 + 32] = c.re[1];
            to[kPlaneBytes / 4 + j * 64] = c.im[0];
            to[kPlaneBytes / 4 + j * 64 + 32] = c.im[1];
          }
          asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
        }
        __syncwarp();
        if (lane == 0) arrive(&m.barriers->full[stage]);
      }
    }
    count += n_chunks;
  }
}

/// The compiler is not to work these out again for every group: registers are short, not missing.
__device__ inline unsigned once(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ inline float2 shared_pair(unsigned address) {
  float2 v;
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(v.x), "=f"(v.y) : "r"(address));
  return v;
}

template <class Output, bool kOneStep, bool kPlain>
__device__ void consume(const FusedArgs& a, const Memory& m, const Cut& cut) {
  constexpr int kRing = kStages<kOneStep>;
  constexpr unsigned kEmpty = sizeof(Barriers::full);
  const int thread = static_cast<int>(once(threadIdx.x));
  const int warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
  const int steps = kOneStep ? 1 : a.n_steps;
  const int tiles = a.slabs_per_block / kTileSlabs, ways = kConsumers / tiles;
  const int slab = warpgroup % tiles * kTileSlabs + warp, way = warpgroup / tiles;
  std::byte* staging = m.staging + (thread / 32) * Output::kStagingBytes;
  const unsigned full = once(shared_address(m.barriers->full)), ring = once(shared_address(m.ring));
  int count = 0;
  int n = 0;
  for (int id = blockIdx.x; id < cut.places; id += gridDim.x, ++n) {
    const Partition partition(a, cut, id);
    const int set = n % kSets<kOneStep>;
    await(&m.barriers->set_full[set], n / kSets<kOneStep> & 1);
    const int place_of_slab = set * a.slabs_per_block + slab;
    const unsigned rows = once(shared_address(m.rows + place_of_slab * kSlabRows + (lane >> 2)));
    const unsigned weights = once(shared_address(m.weights + place_of_slab * steps * 96 + lane));
    const bool exists = slab < partition.n_slabs;
    const Destination to = destination<Output>(a, (partition.first_slab + slab) * kSlabRows,
                                               partition.local, partition.channel, lane);
    uint4 w[2][3];
    const auto fetch = [&](uint4(&into)[3], int step) {
#pragma unroll
      for (int p = 0; p < 3; ++p)
        into[p] = cuda::load_shared_16(weights + step * kWeightBytes + p * 512);
    };
    const int end = partition.first_group + partition.n_groups;
    int place = count + way;
    for (int group = partition.first_group + way; group < end; group += ways) {
      const float2 upper = shared_pair(rows), lower = shared_pair(rows + 8 * sizeof(float2));
      const Epilogue<2, kPlain> e(a, {{upper.x, lower.x}, {upper.y, lower.y}}, to, group, lane);
      int re[2][4][4], im[2][4][4];
      unsigned stage = 0;
      const auto chunk = [&] {
        stage = place % kRing;
        await(full + stage * 8, place / kRing & 1);
        return ring + stage * kChunkBytes;
      };
      fetch(w[0], 0);
      multiply_chunk<1>(re, im, w[0], chunk());
      if constexpr (!kOneStep) {
        const auto next = [&](uint4(&with)[3], int step) {
          const unsigned before = stage;
          fetch(with, step);
          place += ways;
          multiply_chunk<0>(re, im, with, chunk());
          wait_products<1>();
          if (lane == 0) arrive(full + kEmpty + before * 8);
        };
#pragma unroll 1
        for (int step = 1; step < steps; step += 2) {
          next(w[1], step);
          if (step + 1 < steps) next(w[0], step + 1);
        }
      }
      wait_products<0>();
      fence_registers(re);
      fence_registers(im);
      if (lane == 0) arrive(full + kEmpty + stage * 8);
      place += ways;  // this way's first chunk of the next set of groups
      if (!exists) continue;
      Output out;
      out.template half<0>(e, re[0], im[0], staging);
      out.template half<1>(e, re[1], im[1], staging);
      out.finish(e, staging);
    }
    count += Order{ways, steps, partition.n_groups}.n_chunks();
    for (; place < count; place += ways) {  // chunks of no group
      await(full + place % kRing * 8, place / kRing & 1);
      if (lane == 0) arrive(full + kEmpty + place % kRing * 8);
    }
    // Every thread that has read weights and rows, which tools that look for races understand.
    arrive(&m.barriers->set_empty[set]);
  }
}

/// The same for one step of antennas, half a group at a time: its sums are half the registers, so
/// that nothing is kept in local memory, which at the rate of these stores is far away.
template <class Output, bool kPlain>
__device__ void consume_halves(const FusedArgs& a, const Memory& m, const Cut& cut) {
  constexpr int kRing = kStages<true>;
  constexpr unsigned kEmpty = sizeof(Barriers::full);
  const int thread = static_cast<int>(threadIdx.x);
  const int warpgroup = thread / 128, warp = thread / 32 % 4, lane = thread % 32;
  const int tiles = a.slabs_per_block / kTileSlabs, ways = kConsumers / tiles;
  const int slab = warpgroup % tiles * kTileSlabs + warp, way = warpgroup / tiles;
  std::byte* staging = m.staging + (thread / 32) * Output::kStagingBytes;
  const unsigned full = shared_address(m.barriers->full), ring = shared_address(m.ring);
  int count = 0;
  int n = 0;
  for (int id = blockIdx.x; id < cut.places; id += gridDim.x, ++n) {
    const Partition partition(a, cut, id);
    const int set = n % kSets<true>;
    await(&m.barriers->set_full[set], n / kSets<true> & 1);
    const int place_of_slab = set * a.slabs_per_block + slab;
    const unsigned rows = shared_address(m.rows + place_of_slab * kSlabRows + (lane >> 2));
    const unsigned weights = shared_address(m.weights + place_of_slab * 96 + lane);
    const bool exists = slab < partition.n_slabs;
    const Destination to = destination<Output>(a, (partition.first_slab + slab) * kSlabRows,
                                               partition.local, partition.channel, lane);
    uint4 w[3];
#pragma unroll
    for (int p = 0; p < 3; ++p) w[p] = cuda::load_shared_16(weights + p * 512);
    const float2 upper = shared_pair(rows), lower = shared_pair(rows + 8 * sizeof(float2));
    const RowTable table{{upper.x, lower.x}, {upper.y, lower.y}};
    const int end = partition.first_group + partition.n_groups;
    int place = count + way;
    for (int group = partition.first_group + way; group < end; group += ways, place += ways) {
      const unsigned stage = place % kRing, chunk = ring + stage * kChunkBytes;
      const Epilogue<2, kPlain> e(a, table, to, group, lane);
      Output out;
      await(full + stage * 8, place / kRing & 1);
      const auto half = [&]<int H>() {
        int re[4][4], im[4][4];
        multiply_half(re, im, w, chunk + H * kHalfBytes);
        wait_products<0>();
        fence_half(re);
        fence_half(im);
        if (H == 1 && lane == 0) arrive(full + kEmpty + stage * 8);
        if (exists) out.template half<H>(e, re, im, staging);
      };
      half.template operator()<0>();
      half.template operator()<1>();
      if (exists) out.finish(e, staging);
    }
    count += Order{ways, 1, partition.n_groups}.n_chunks();
    for (; place < count; place += ways) {  // chunks of no group
      await(full + place % kRing * 8, place / kRing & 1);
      if (lane == 0) arrive(full + kEmpty + place % kRing * 8);
    }
    arrive(&m.barriers->set_empty[set]);
  }
}

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// See the head of this file. kOneStep: 32 antennas or fewer. kPlain: whole slabs and groups,
/// without tests. kHalves: sums of half a group at a time, for voltages of 2 and 4 bytes.
template <class Loader, class Output, bool kOneStep, bool kPlain, bool kHalves>
__global__ void __launch_bounds__(kThreads, 1)
    wgmma(const __grid_constant__ FusedArgs a, const __grid_constant__ Cut cut) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ uint4 shared[];
  const int steps = kOneStep ? 1 : a.n_steps;
  const int room = kSets<kOneStep> * a.slabs_per_block;
  Memory m;
  m.ring = reinterpret_cast<std::byte*>(shared);
  m.weights = reinterpret_cast<uint4*>(m.ring + kStages<kOneStep> * kChunkBytes);
  m.rows = reinterpret_cast<float2*>(m.weights + room * steps * 96);
  m.staging = reinterpret_cast<std::byte*>(m.rows + room * kSlabRows);
  m.barriers = reinterpret_cast<Barriers*>(m.staging + kConsumerWarps * Output::kStagingBytes);
  if (threadIdx.x == 0) {
    for (int k = 0; k < kStages<kOneStep>; ++k) {
      begin_barrier(&m.barriers->full[k], 1);
      begin_barrier(&m.barriers->empty[k], a.slabs_per_block);  // warps of one way
    }
    for (int k = 0; k < kSets<kOneStep>; ++k) {
      begin_barrier(&m.barriers->set_full[k], 32 * kProducerWarps);
      begin_barrier(&m.barriers->set_empty[k], 32 * kConsumerWarps);
    }
    cuda::barriers_begun();
  }
  __syncthreads();
  if (threadIdx.x >= 32 * kConsumerWarps) {
    // 640 threads begin with 96 registers each: 128 (96 - 64) = 512 (104 - 96).
    asm volatile("setmaxnreg.dec.sync.aligned.u32 64;\n");
    produce<Loader, kOneStep>(a, m, cut);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 104;\n");
    if constexpr (kHalves)
      consume_halves<Output, kPlain>(a, m, cut);
    else
      consume<Output, kOneStep, kPlain>(a, m, cut);
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

template <class Output, bool kOneStep>
std::int64_t shared_bytes(int tiles, int steps) {
  const std::int64_t sets = kSets<kOneStep>, stages = kStages<kOneStep>;
  return stages * kChunkBytes +
         sets * tiles * kTileSlabs * (std::int64_t{steps} * kWeightBytes + kRowBytes) +
         std::int64_t{kConsumerWarps} * Output::kStagingBytes +
         static_cast<std::int64_t>(sizeof(Barriers));
}

/// @param divides the last round; weights of many antennas are too much to fetch for few groups
Cut cut_of(const FusedArgs& a, int slabs, int groups, bool divides, int blocks) {
  Cut cut{};
  const int maximum = std::min(a.groups_per_item, groups);
  cut.beam_blocks = (slabs + a.slabs_per_block - 1) / a.slabs_per_block;
  cut.items = (groups + a.groups_per_item - 1) / a.groups_per_item;
  const int partitions = cut.beam_blocks * cut.items * a.launch_channels,
            left = partitions % blocks;
  const int ways = divides && left > 0 ? blocks / left : 1;  // units of a partition: one round
  cut.unit_groups =
      std::clamp((maximum + ways - 1) / ways, std::min(kUnitGroups, maximum), maximum);
  cut.units = (maximum + cut.unit_groups - 1) / cut.unit_groups;
  cut.whole = cut.units > 1 ? partitions - left : partitions;
  cut.places = cut.whole + (partitions - cut.whole) * cut.units;
  return cut;
}

/// Slabs [slabs_before, slabs_end) and groups [groups_before, groups_end).
template <class Loader, class Output, bool kOneStep, bool kPlain, bool kHalves = false>
void launch(FusedArgs a, cudaStream_t stream) {
  const int slabs = a.slabs_end - a.slabs_before, groups = a.groups_end - a.groups_before;
  if (slabs <= 0 || groups <= 0) return;
  const auto bytes = [&](int tiles) { return shared_bytes<Output, kOneStep>(tiles, a.n_steps); };
  const int wanted = std::min(a.slabs_per_block, slabs);
  int tiles = wanted > 2 * kTileSlabs ? 4 : wanted > kTileSlabs ? 2 : 1;
  while (tiles > 1 && bytes(tiles) > kSharedLimit) tiles /= 2;
  a.slabs_per_block = tiles * kTileSlabs;
  int device = 0, multiprocessors = 0;
  RYLE_CUDA(cudaGetDevice(&device));
  RYLE_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const Cut cut = cut_of(a, slabs, groups, kOneStep, multiprocessors);
  auto* kernel = wgmma<Loader, Output, kOneStep, kPlain, kHalves>;
  cuda::allow_all_shared(kernel);
  kernel<<<std::min(cut.places, multiprocessors), kThreads, static_cast<std::size_t>(bytes(tiles)),
           stream>>>(a, cut);
  RYLE_CUDA_LAUNCHED("beamform on warpgroups");
}

/// Whole slabs and groups without tests, what is left of either with them.
template <class Loader>
void choose_wgmma(FusedArgs a, cudaStream_t stream) {
  const auto rest = [&] {
    for_output(a, [&]<class Output>() { launch<Loader, Output, false, false>(a, stream); });
  };
  a.slabs_end = a.n_slabs;
  a.groups_end = a.n_groups;
  if (!is_plain(a)) return rest();
  const int slabs = a.n_beams / kSlabRows;
  const int groups =
      static_cast<int>(std::min<std::int64_t>(a.n_groups, a.n_values / values_of_group(a)));
  a.slabs_end = slabs;
  a.groups_end = groups;
  for_output<true>(a, [&]<class Output>() {
    if (a.n_steps == 1 && a.halves) return launch<Loader, Output, true, true, true>(a, stream);
    if (a.n_steps == 1) return launch<Loader, Output, true, true>(a, stream);
    launch<Loader, Output, false, true>(a, stream);
  });
  a.slabs_before = slabs;  // a slab with beams missing
  a.slabs_end = a.n_slabs;
  rest();
  a.slabs_before = 0;  // a group with spectra missing
  a.groups_before = groups;
  a.groups_end = a.n_groups;
  rest();
}

}  // namespace

void launch_wgmma(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_wgmma<Pairs4>(a, stream);
  choose_wgmma<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
