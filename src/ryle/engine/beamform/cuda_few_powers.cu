// SPDX-License-Identifier: BSD-3-Clause
// Integrated powers of 16 beams or fewer on Hopper: products of warpgroups with the samples as the
// left operand, straight from registers, and the weights of a channel as the right one, real and
// imaginary sums of a beam in neighbouring columns. A lane so gets whole beams of its own spectra,
// and the tensor cores work while it unpacks. Memory goes by as in cuda_few.cu.
#include <algorithm>

#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/beamform/cuda_few_ring.cuh"
#include "ryle/engine/beamform/cuda_rows.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kQuarterBytes = kRunBytes / 4;

/// Weights of a channel on their way: word `member` of each lane's operands.
struct TeamFetched {
  unsigned w[3];
  RowParts row;
  __device__ void load(const FusedArgs& a, int channel, int member, int lane) {
    const std::int64_t cell = static_cast<std::int64_t>(a.pol) * a.n_channels + channel;
    const auto* from = reinterpret_cast<const unsigned*>(a.fragments + cell * 96 + lane) + member;
#pragma unroll
    for (int p = 0; p < 3; ++p) w[p] = __ldg(from + 128 * p);
    row = row_parts(a, lane & 15, channel);
  }
};

/// Order of antennas of a lane's words: lane q = lane % 4 has four successive pairs of heaps.
template <class Loader>
__device__ inline int place_of_antennas(int q, int high, int half) {
  if constexpr (Loader::kPieces == 4) return 16 * (q / 2) + 4 * (2 * high + half) + 2 * (q % 2);
  return 16 * high + 4 * q + 2 * half;
}

template <int kTiles>
struct TeamWeights {
  std::byte planes[2][kTiles * 256];  // of real and imaginary samples
  float2 rows[kSlabRows];
};

template <class Loader, int kTiles>
__device__ void put(const FusedArgs& a, TeamWeights<kTiles>& to, const TeamFetched& from,
                    int member, int lane) {
  const int beam = (lane >> 2) + 8 * (member & 1), q = lane & 3;
  if (member == 0 && lane < kSlabRows) to.rows[lane] = row_entry(a, from.row, Loader::kUnit);
  if (beam >= 4 * kTiles) return;
  const int column = column_of(beam);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int k = place_of_antennas<Loader>(q, member >> 1, half);
    const auto store = [&](int plane, int part, unsigned word) {
      *reinterpret_cast<std::uint16_t*>(to.planes[plane] + place_in_plane(column + part, k)) =
          static_cast<std::uint16_t>(word >> (16 * half));
    };
    store(0, 0, from.w[0]);
    store(1, 1, from.w[0]);
    store(1, 0, from.w[1]);
    store(0, 1, from.w[2]);
  }
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Pieces `row` and `row` + 8 of 8 spectra of a run: what a lane multiplies.
__device__ inline int row_in_run(const Pairs4&, int lane, int pad) {
  return (lane & 3) * (kQuarterBytes + pad) + (lane >> 2) * 16;
}
__device__ inline int row_in_run(const Spectra4&, int lane, int) {
  return (lane >> 2) * kRunRowBytes + (lane & 3) * 8;
}
__device__ inline int lower_rows(const Pairs4&) { return 8 * 16; }
__device__ inline int lower_rows(const Spectra4&) { return 8 * kRunRowBytes; }
__device__ inline int next_piece(const Pairs4&) { return kRunRowBytes; }
__device__ inline int next_piece(const Spectra4&) { return 32; }

__device__ inline void load_piece(uint4& v, const std::uint8_t* from) {
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
}
__device__ inline void load_piece(uint2& v, const std::uint8_t* from) {
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];\n"
               : "=r"(v.x), "=r"(v.y)
               : "l"(from));
}

struct PaddedRing {
  unsigned memory, barriers;  // [stage]
  int stages, pad, slot;
  std::uint64_t policy = 0;
  int fetch_stage = 0, read_stage = 0;
  unsigned parity = 0;
  unsigned taken = 0;

  __device__ PaddedRing(unsigned memory_, unsigned barriers_, int stages_, int pad_, bool first,
                        int lane)
      : memory(memory_),
        barriers(barriers_),
        stages(stages_),
        pad(pad_),
        slot(kRunBytes + 4 * pad_) {
    if (lane == 0) {
      for (int s = 0; s < stages; ++s)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n" ::"r"(barriers + 8 * s) : "memory");
      cuda::barriers_begun();
    }
    if (first)
      asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
    else
      asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;\n" : "=l"(policy));
    __syncwarp();
  }
  __device__ void copy(unsigned to, const std::uint8_t* from, unsigned n, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], "
        "[%1], %2, [%3], %4;\n" ::"r"(to),
        "l"(from), "r"(n), "r"(barrier), "l"(policy)
        : "memory");
  }
  __device__ void fetch(const std::uint8_t* from) {
    const unsigned barrier = barriers + 8 * fetch_stage;
    // What was loaded is there when this number is; stages are few.
    cuda::arrive_and_expect(barrier, kRunBytes + (taken & static_cast<unsigned>(stages >> 30)));
    const unsigned to = memory + fetch_stage * slot;
    if (pad == 0) {
      copy(to, from, kRunBytes, barrier);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        copy(to + k * (kQuarterBytes + pad), from + k * kQuarterBytes, kQuarterBytes, barrier);
    }
    fetch_stage = fetch_stage + 1 == stages ? 0 : fetch_stage + 1;
  }
  __device__ unsigned arrived() const {
    cuda::await(barriers + 8 * read_stage, parity);
    return memory + read_stage * slot;
  }
  __device__ void release(unsigned loaded) {
    taken = __ballot_sync(0xffffffffu, loaded != 0);
    __syncwarp();
    if (++read_stage == stages) {
      read_stage = 0;
      parity ^= 1;
    }
  }
};

/// Powers of a run added over T = 8, 16, 32 or 64 spectra, in the order of `Integrated`. A lane has
/// pieces g = lane / 4 and g + 8 of beams 4 tile + lane % 4.
template <int T, int kTiles, bool kPlain>
struct TeamPowers {
  static constexpr int kValues = kRunGroups * kGroupSpectra / T;
  float sum[kTiles][2] = {};  // [tile][piece]

  __device__ void add(const int (&d)[kTiles][4]) {
#pragma unroll
    for (int j = 0; j < kTiles; ++j) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const auto x = static_cast<float>(d[j][2 * h]), y = static_cast<float>(d[j][2 * h + 1]);
        sum[j][h] = fmaf(y, y, fmaf(x, x, sum[j][h]));
      }
    }
  }
  /// @param row of beam lane % 4; @param stride to the beam four on
  __device__ void finish(const FusedArgs& a, const float2 (&rows)[kTiles], std::byte* row,
                         std::int64_t stride, int channel, int run, int lane) const {
    const int g = lane >> 2;
    const std::int64_t first = std::int64_t{run} * kValues;
#pragma unroll
    for (int j = 0; j < kTiles; ++j, row += stride) {
      const int beam = 4 * j + (lane & 3);
      const auto out = [&](std::int64_t at, bool mine, float v) {
        if constexpr (kPlain) {
          if (mine) store(a, row, at, v, rows[j]);
        } else {
          store_each(a, row, beam, channel, at, mine, v, rows[j], lane);
        }
      };
      if constexpr (T == 8) {
        out(first + g, true, sum[j][0]);
        out(first + 8 + g, true, sum[j][1]);
      } else {
        // Lanes of even pieces end with the first half of the run, those of odd ones with the rest.
        const bool odd = g % 2 != 0;
        const float other = __shfl_xor_sync(~0u, odd ? sum[j][0] : sum[j][1], 4);
        float v = (odd ? sum[j][1] : sum[j][0]) + other;
        int index = g / 2 + (odd ? 4 : 0);
        bool mine = true;
        if constexpr (T >= 32) {
          v += __shfl_xor_sync(~0u, v, 8);
          mine = (g & 2) == 0;
          index /= 2;
        }
        if constexpr (T == 64) {
          v += __shfl_xor_sync(~0u, v, 16);
          mine = g < 2;
          index /= 2;
        }
        out(first + index, mine, v);
      }
    }
  }
  static __device__ void store(const FusedArgs& a, std::byte* row, std::int64_t at, float v,
                               const float2& entry) {
    if (a.as_bytes) {
      reinterpret_cast<std::uint8_t*>(row)[at] =
          static_cast<std::uint8_t>(Integrated<T>::code(rintf(fmaf(v, entry.x, entry.y))));
    } else {
      reinterpret_cast<float*>(row)[at] = v * entry.x;
    }
  }
  static __device__ void store_each(const FusedArgs& a, std::byte* row, int beam, int channel,
                                    std::int64_t at, bool mine, float v, const float2& entry,
                                    int lane) {
    const bool stores = mine && beam < a.n_beams && at < a.n_values;
    unsigned low = 0, high = 0;
    if (stores) {
      float factor = entry.x;
      if (a.loss.factor != nullptr) {
        const CudaFactors& loss = a.loss;
        const float f =
            loss.factor[((a.pol * loss.n_rows + beam) * loss.n_channels + channel) * loss.n_slots +
                        at * T / loss.slot_spectra];
        factor *= f * f;
      }
      if (!a.as_bytes) {
        reinterpret_cast<float*>(row)[at] = v * factor;
      } else {
        const float rounded = rintf(fmaf(v, factor, entry.y));
        reinterpret_cast<std::uint8_t*>(row)[at] =
            static_cast<std::uint8_t>(Integrated<T>::code(rounded));
        low = rounded < 0;
        high = rounded > 255;
      }
    }
    if (a.as_bytes && (a.low != nullptr || a.high != nullptr))
      count(a, beam, channel, low, high, lane);
  }
  static __device__ void count(const FusedArgs& a, int beam, int channel, unsigned low,
                               unsigned high, int lane) {
    for (int k = 4; k < 32; k *= 2) {
      low += __shfl_xor_sync(~0u, low, k);
      high += __shfl_xor_sync(~0u, high, k);
    }
    if (lane >= 4 || beam >= a.n_beams) return;
    const std::int64_t cell =
        (static_cast<std::int64_t>(beam) * a.n_products + a.product) * a.n_channels + channel;
    if (low != 0 && a.low != nullptr) atomicAdd(a.low + cell, low);
    if (high != 0 && a.high != nullptr) atomicAdd(a.high + cell, high);
  }
};

#endif  // __CUDA_ARCH_FEAT_SM90_ALL

/// Units of work: four runs of a channel, one each of a team's warps.
template <class Loader, int T, int kTiles, bool kPlain, int kWarps, bool kDirect>
__global__ void __launch_bounds__(32 * kWarps, 1)
    few_powers(const __grid_constant__ FusedArgs a, int per_channel, int stages, int pad,
               int variant) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint4 shared[];
  __shared__ std::uint64_t barriers[kWarps][kMostStages];
  __shared__ __align__(128) TeamWeights<kTiles> weights[kWarps / 4];
  const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, threadIdx.x >> 5, 0);
  const int team = warp / 4, member = warp % 4, n_teams = static_cast<int>(blockDim.x >> 7);
  const int units = (per_channel + 3) / 4;  // of a channel
  const std::int64_t all = std::int64_t{units} * a.launch_channels;
  const std::int64_t begin = all * blockIdx.x / gridDim.x;
  const std::int64_t end = all * (blockIdx.x + 1) / gridDim.x;
  int left = (static_cast<int>(end - begin) - team + n_teams - 1) / n_teams;
  if (left <= 0) return;
  Turn now{static_cast<int>(begin / units), 0};
  now.run = static_cast<int>(begin - std::int64_t{now.local} * units);
  now.advance(team, units);

  PaddedRing ring(cuda::shared_address(shared) + warp * stages * (kRunBytes + 4 * pad),
                  cuda::shared_address(barriers[warp]), stages, pad, (variant & 4) != 0, lane);
  const std::uint8_t* samples = a.samples + a.first_channel * a.channel_stride_bytes +
                                std::int64_t{a.first_group} / kRunGroups * kRunBytes;
  Turn ahead = now;
  int to_fetch = left;
  const auto fetch = [&] {
    if (to_fetch == 0) return;
    --to_fetch;
    const int run = 4 * ahead.run + member;
    if (lane == 0 && run < per_channel)
      ring.fetch(samples + ahead.local * a.channel_stride_bytes + std::int64_t{run} * kRunBytes);
    ahead.advance(n_teams, units);
  };
  Loader ready[2];
  const auto fetch_pieces = [&] {
    if (to_fetch == 0) return;
    --to_fetch;
    const int run = min(4 * ahead.run + member, per_channel - 1);
    const std::uint8_t* from = samples + ahead.local * a.channel_stride_bytes +
                               std::int64_t{run} * kRunBytes + row_in_run(ready[0], lane, 0);
#pragma unroll
    for (int k = 0; k < Loader::kPieces; ++k) {
#pragma unroll
      for (int h = 0; h < 2; ++h)
        load_piece(ready[h].raw[k], from + h * lower_rows(ready[h]) + k * next_piece(ready[h]));
    }
    ahead.advance(n_teams, units);
  };
  if constexpr (kDirect) {
    fetch_pieces();
  } else {
    for (int s = 0; s < stages; ++s) fetch();
  }

  TeamFetched next;  // of the next channel, on its way while this one is worked on
  next.load(a, a.first_channel + now.local, member, lane);
  TeamWeights<kTiles>& w = weights[team];
  const std::uint64_t real = right_operand(cuda::shared_address(w.planes[0]));
  const std::uint64_t imaginary = right_operand(cuda::shared_address(w.planes[1]));
  const std::int64_t stride = 4 * a.row_stride_bytes;
  while (left > 0) {
    const int local = now.local, channel = a.first_channel + local;
    team_barrier(team);  // products with the weights before are done
    put<Loader, kTiles>(a, w, next, member, lane);
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    team_barrier(team);
    std::byte* row =
        a.values + (lane & 3) * a.row_stride_bytes + local * a.channel_stride_out_bytes;
    float2 rows[kTiles];
#pragma unroll
    for (int j = 0; j < kTiles; ++j) rows[j] = w.rows[4 * j + (lane & 3)];
    if (local + 1 < a.launch_channels) next.load(a, channel + 1, member, lane);
    for (; left > 0 && now.local == local; --left, now.advance(n_teams, units)) {
      const int run = 4 * now.run + member;
      Loader pieces[2];
      if constexpr (kDirect) {
        pieces[0] = ready[0];
        pieces[1] = ready[1];
        fetch_pieces();
      } else if (run < per_channel) {
        const unsigned at = ring.arrived() + row_in_run(pieces[0], lane, pad);
        unsigned loaded = 0;
#pragma unroll
        for (int k = 0; k < Loader::kPieces; ++k) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            read_piece(pieces[h].raw[k],
                       at + h * lower_rows(pieces[h]) + k * next_piece(pieces[h]));
            loaded ^= pieces[h].raw[k].x;  // words of a load come together
          }
        }
        ring.release(loaded);
      } else {
#pragma unroll
        for (int k = 0; k < Loader::kPieces; ++k) pieces[0].raw[k] = pieces[1].raw[k] = {};
      }
      if constexpr (!kDirect) fetch();
      TeamPowers<T, kTiles, kPlain> powers;
      int sums[2][kTiles][4];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const Columns upper = pieces[0].tile(j), lower = pieces[1].tile(j);
        const unsigned re[4] = {upper.re[0], lower.re[0], upper.re[1], lower.re[1]};
        const unsigned im[4] = {upper.im[0], lower.im[0], upper.im[1], lower.im[1]};
        cuda::begin_products();
        multiply_rows<false>(sums[j % 2], re, real);
        multiply_rows<true>(sums[j % 2], im, imaginary);
        cuda::end_products();
        if (j == 0) continue;
        cuda::wait_products<1>();
        settle_rows(sums[(j + 1) % 2]);
        powers.add(sums[(j + 1) % 2]);
      }
      cuda::wait_products<0>();
      settle_rows(sums[1]);
      powers.add(sums[1]);
      if (run < per_channel) powers.finish(a, rows, row, stride, channel, run, lane);
    }
    // More teams than units of a channel: the next turn is further on.
    if (left > 0 && now.local != local + 1) next.load(a, a.first_channel + now.local, member, lane);
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

template <class Loader, int T>
void choose_powers(const FusedArgs& a, cudaStream_t stream) {
  const bool plain = is_plain(a) && a.n_values == std::int64_t{a.n_groups} * values_of_group(a);
  const auto run_on = [&]<int kTiles, bool kPlain, int kWarps, bool kDirect>() {
    auto* kernel = few_powers<Loader, T, kTiles, kPlain, kWarps, kDirect>;
    const int warps = std::clamp(a.stream_warps / 4, 1, kWarps / 4) * 4;
    const int pad = (a.variant & 2) != 0 && Loader::kPieces == 4 ? 32 : 0;
    const auto bytes_of = [&](int stages) { return warps * stages * (kRunBytes + 4 * pad); };
    int stages = std::clamp(a.stages, 1, kMostStages);
    while (stages > 2 && bytes_of(stages) > kStreamShared - (16 << 10)) --stages;
    int device = 0, multiprocessors = 0;
    RYLE_CUDA(cudaGetDevice(&device));
    RYLE_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
    cuda::allow_all_shared(kernel);
    kernel<<<static_cast<unsigned>(multiprocessors), static_cast<unsigned>(32 * warps),
             static_cast<std::size_t>(bytes_of(stages)), stream>>>(a, a.n_groups / kRunGroups,
                                                                   stages, pad, a.variant);
    RYLE_CUDA_LAUNCHED("beamform powers of few beams");
  };
  const auto run = [&]<int kTiles, bool kPlain>() {
    if constexpr (T == 16 && kPlain) {
      if ((a.variant & 16) != 0) return run_on.template operator()<kTiles, kPlain, 12, true>();
      if (a.stream_warps == 16) return run_on.template operator()<kTiles, kPlain, 16, false>();
    }
    run_on.template operator()<kTiles, kPlain, kStreamWarps, false>();
  };
  if (a.n_beams > 8) {
    if (plain && a.n_beams == 16) return run.template operator()<4, true>();
    return run.template operator()<4, false>();
  }
  if (plain && a.n_beams == 8) return run.template operator()<2, true>();
  run.template operator()<2, false>();
}

template <class Loader>
void choose_integration(const FusedArgs& a, cudaStream_t stream) {
  if (a.integration == 8) return choose_powers<Loader, 8>(a, stream);
  if (a.integration == 16) return choose_powers<Loader, 16>(a, stream);
  if (a.integration == 32) return choose_powers<Loader, 32>(a, stream);
  choose_powers<Loader, 64>(a, stream);
}

}  // namespace

void launch_few_powers(const FusedArgs& a, cudaStream_t stream) {
  if (a.n_groups == 0 || a.n_slabs == 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_integration<Pairs4>(a, stream);
  choose_integration<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
