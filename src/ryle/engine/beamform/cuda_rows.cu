// SPDX-License-Identifier: BSD-3-Clause
// Values of single spectra of many beams, 32 antennas or fewer, on Hopper: products of warpgroups
// with the samples as the left operand, from registers, so that a lane ends with four successive
// spectra of a beam, which it stores as they are: nothing is staged in shared memory, which holds
// the weights only. Warpgroups work on their own, each through an equal share of all units.
#include <algorithm>

#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/beamform/cuda_rows.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kRowsTeams = 3;          // warpgroups of a block: 168 registers
constexpr int kQuadSpectra = 4;        // what a lane stores at a time
constexpr int kSlabPlaneBytes = 1024;  // weights of 16 beams with real or imaginary samples
constexpr int kSlabBytes = 2 * kSlabPlaneBytes + kSlabRows * static_cast<int>(sizeof(float));

/// What a lane has of a group of 64 spectra: spectra 4 p .. 4 p + 3 for p = lane / 4 and that + 8.
template <class Loader>
struct Quads;
template <>
struct Quads<Pairs4> {
  uint2 raw[2][4];
  __device__ void load(const FusedArgs& a, const std::uint8_t* channel, int group, int lane) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::uint8_t* from =
          Pairs4::address(a, channel, group, 0, lane & 3, k) + (lane >> 2) * 2 * kQuadSpectra;
#pragma unroll
      for (int h = 0; h < 2; ++h)
        raw[h][k] = __ldg(reinterpret_cast<const uint2*>(from + h * 16 * kQuadSpectra));
    }
  }
  __device__ Columns tile(int h, int j) const {
    const auto word = [&](int k) { return j < 2 ? raw[h][k].x : raw[h][k].y; };
    const bool high = j % 2 != 0;
    return sixteenfold({pick(word(0), word(1), high), pick(word(2), word(3), high)});
  }
};
template <>
struct Quads<Spectra4> {
  uint2 raw[2][4];
  __device__ void load(const FusedArgs& a, const std::uint8_t* channel, int group, int lane) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = kQuadSpectra * ((lane >> 2) + 8 * h) + j;
        raw[h][j] = __ldg(
            reinterpret_cast<const uint2*>(Spectra4::address(a, channel, group, 0, lane & 3, at)));
      }
    }
  }
  __device__ Columns tile(int h, int j) const { return sixteenfold(raw[h][j]); }
};

/// Four successive values of a beam from their sums.
struct QuadCf16 {
  using Stored = uint4;
  static constexpr int kBytes = 4;
  static __device__ uint4 values(const float (&x)[4], const float (&y)[4], float mul) {
    __half2 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = __floats2half2_rn(x[k] * mul, y[k] * mul);
    return *reinterpret_cast<const uint4*>(v);
  }
};
struct QuadCi8 {
  using Stored = uint2;
  static constexpr int kBytes = 2;
  // 127 + code lies in 0..254, where the saturating multiply-add ends; see VoltageI8.
  static __device__ float code(float value, float mul) {
    return fmaf(__saturatef(fmaf(value, mul * (1.0f / 254), 0.5f)), 254.0f, kBias - 127.0f);
  }
  static __device__ uint2 values(const float (&x)[4], const float (&y)[4], float mul) {
    unsigned words[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float v[4] = {code(x[2 * k], mul), code(y[2 * k], mul), code(x[2 * k + 1], mul),
                          code(y[2 * k + 1], mul)};
      words[k] = low_bytes(v);
    }
    return {words[0], words[1]};
  }
};
struct QuadPower {
  using Stored = uint4;
  static constexpr int kBytes = 4;
  static __device__ uint4 values(const float (&x)[4], const float (&y)[4], float mul) {
    float v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = fmaf(x[k], x[k], y[k] * y[k]) * mul;
    return *reinterpret_cast<const uint4*>(v);
  }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Weights of up to slabs_per_block slabs, [plane][slab], and the factor of each beam.
struct RowsMemory {
  std::byte* planes;
  float* factors;
  int plane_bytes;
};

/// By the four warps of a team.
template <class Loader>
__device__ void put_slabs(const FusedArgs& a, const RowsMemory& m, int first_slab, int n,
                          int channel, int member, int lane) {
  const std::int64_t cell =
      (static_cast<std::int64_t>(a.pol) * a.n_channels + channel) * a.n_slabs + first_slab;
  for (int r = 32 * member + lane; r < n * kSlabRows; r += 128)
    m.factors[r] = row_entry(a, first_slab * kSlabRows + r, channel, Loader::kUnit).x;
#pragma unroll 4
  for (int slab = member; slab < n; slab += 4) {
    const uint4* from = a.fragments + (cell + slab) * 96 + lane;
    const uint4 w[3] = {__ldg(from), __ldg(from + 32), __ldg(from + 64)};
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const int column = column_of((lane >> 2) + 8 * (part & 1));
      const int k = 16 * (part >> 1) + 4 * (lane & 3);
      const auto word = [&](const uint4& v) { return Pairs4::word(v, part); };
      const auto store = [&](int plane, int imaginary, unsigned value) {
        *reinterpret_cast<unsigned*>(m.planes + plane * m.plane_bytes + slab * kSlabPlaneBytes +
                                     place_in_plane(column + imaginary, k)) = value;
      };
      store(0, 0, word(w[0]));
      store(1, 1, word(w[0]));
      store(1, 0, word(w[1]));
      store(0, 1, word(w[2]));
    }
  }
}

#endif

__device__ inline uint4 chosen(bool first, const uint4& a, const uint4& b) {
  return {first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w};
}
__device__ inline uint2 chosen(bool first, const uint2& a, const uint2& b) {
  return {first ? a.x : b.x, first ? a.y : b.y};
}
__device__ inline uint4 exchange(const uint4& v) {
  return {__shfl_xor_sync(~0u, v.x, 1), __shfl_xor_sync(~0u, v.y, 1), __shfl_xor_sync(~0u, v.z, 1),
          __shfl_xor_sync(~0u, v.w, 1)};
}
__device__ inline uint2 exchange(const uint2& v) {
  return {__shfl_xor_sync(~0u, v.x, 1), __shfl_xor_sync(~0u, v.y, 1)};
}

/// Units: [channel][block of beams][four groups], one group a warp.
template <class Loader, class Quad>
__global__ void __launch_bounds__(128 * kRowsTeams, 1)
    each_spectrum(const __grid_constant__ FusedArgs a, int beam_blocks, int units_of_block,
                  int n_teams) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) uint4 shared[];
  const int lane = threadIdx.x & 31, warp = __shfl_sync(~0u, threadIdx.x >> 5, 0);
  const int team = warp / 4, member = warp % 4;
  RowsMemory m;
  m.planes = reinterpret_cast<std::byte*>(shared) + team * a.slabs_per_block * kSlabBytes;
  m.plane_bytes = a.slabs_per_block * kSlabPlaneBytes;
  m.factors = reinterpret_cast<float*>(m.planes + 2 * m.plane_bytes);
  const unsigned planes = cuda::shared_address(m.planes);

  const std::int64_t all = std::int64_t{units_of_block} * beam_blocks * a.launch_channels;
  const bool by_turns = (a.variant & 2) != 0, exchanged = (a.variant & 4) != 0,
             plain_stores = (a.variant & 8) != 0;
  const int n_blocks = static_cast<int>(gridDim.x) * (by_turns ? 1 : n_teams);
  const int mine = by_turns ? blockIdx.x : static_cast<int>(blockIdx.x) * n_teams + team;
  const int step = by_turns ? n_teams : 1;
  std::int64_t unit = all * mine / n_blocks + (by_turns ? team : 0);
  const std::int64_t end = all * (mine + 1) / n_blocks;
  if (unit >= end) return;
  int cell = static_cast<int>(unit / units_of_block);
  int in_cell = static_cast<int>(unit - std::int64_t{cell} * units_of_block);
  const auto advance = [&](int& c, int& u) {
    u += step;
    while (u >= units_of_block) {
      u -= units_of_block;
      ++c;
    }
  };

  Quads<Loader> next;
  const auto fetch = [&](int of_cell, int of_unit) {
    const int group = min(4 * of_unit + member, a.groups_end - 1);
    const int channel = a.first_channel + of_cell / beam_blocks;
    next.load(a, a.samples + channel * a.channel_stride_bytes, group, lane);
  };
  fetch(cell, in_cell);
  while (unit < end) {
    const int local = cell / beam_blocks, channel = a.first_channel + local;
    const int first_slab = (cell - local * beam_blocks) * a.slabs_per_block;
    const int n_slabs = min(a.slabs_per_block, a.slabs_end - first_slab);
    team_barrier(team);  // products with the weights before are done
    put_slabs<Loader>(a, m, first_slab, n_slabs, channel, member, lane);
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    team_barrier(team);
    const int here = cell;
    for (; unit < end && cell == here; unit += step, advance(cell, in_cell)) {
      unsigned re[4][4], im[4][4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        Columns upper = next.tile(0, j), lower = next.tile(1, j);
        keep(upper);
        keep(lower);
        re[j][0] = upper.re[0], re[j][1] = lower.re[0];
        re[j][2] = upper.re[1], re[j][3] = lower.re[1];
        im[j][0] = upper.im[0], im[j][1] = lower.im[0];
        im[j][2] = upper.im[1], im[j][3] = lower.im[1];
      }
      if (unit + step < end) {
        int of_cell = cell, of_unit = in_cell;
        advance(of_cell, of_unit);
        fetch(of_cell, of_unit);
      }
      const int group = 4 * in_cell + member;
      const bool exists = group < a.groups_end;
      std::byte* to =
          a.values + (std::int64_t{first_slab} * kSlabRows + (lane & 3)) * a.row_stride_bytes +
          local * a.channel_stride_out_bytes +
          (std::int64_t{group} * kGroupSpectra + (lane >> 2) * kQuadSpectra) * Quad::kBytes;
      const std::int64_t stride = 4 * a.row_stride_bytes;
      const float* factors = m.factors + (lane & 3);
#pragma unroll 1
      for (int slab = 0; slab < n_slabs; ++slab) {
        const unsigned plane = planes + slab * kSlabPlaneBytes;
        const std::uint64_t real = right_operand(plane);
        const std::uint64_t imaginary = right_operand(plane + m.plane_bytes);
        int sums[4][4][4];
        cuda::begin_products();
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_rows<false>(sums[j], re[j], real);
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_rows<true>(sums[j], im[j], imaginary);
        cuda::end_products();
        cuda::wait_products<0>();
#pragma unroll
        for (int j = 0; j < 4; ++j) settle_rows(sums[j]);
        if (exists) {
#pragma unroll
          for (int b = 0; b < 4; ++b) {
            const float factor = factors[slab * kSlabRows + 4 * b];
            typename Quad::Stored v[2];
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              float x[4], y[4];
#pragma unroll
              for (int j = 0; j < 4; ++j) {
                x[j] = static_cast<float>(sums[j][b][2 * h]);
                y[j] = static_cast<float>(sums[j][b][2 * h + 1]);
              }
              v[h] = Quad::values(x, y, factor);
            }
            std::byte* at[2] = {to, to + 8 * kQuadSpectra * Quad::kBytes};
            if (exchanged) {
              // Neighbours' rows: both halves of the even one first, then of the odd one.
              const bool odd = lane % 2 != 0;
              const auto other = exchange(chosen(odd, v[0], v[1]));
              v[0] = chosen(odd, other, v[0]);
              v[1] = chosen(odd, v[1], other);
              at[0] = odd ? at[1] - a.row_stride_bytes : at[0];
              at[1] = odd ? at[1] : to + a.row_stride_bytes;
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
              if (plain_stores)
                *reinterpret_cast<typename Quad::Stored*>(at[h]) = v[h];
              else
                __stcs(reinterpret_cast<typename Quad::Stored*>(at[h]), v[h]);
            }
            to += stride;
          }
        }
      }
    }
  }
#else
  __trap();  // not offered where has_warpgroup_products() says no
#endif
}

template <class Loader, class Quad>
void launch_each(FusedArgs a, cudaStream_t stream) {
  const int teams = std::clamp(a.stream_warps / 4, 1, kRowsTeams);
  const int most = (kMostShared - 1024) / (teams * kSlabBytes);
  a.slabs_per_block = std::clamp(a.slabs_per_block, 1, std::min(a.slabs_end, most));
  const int beam_blocks = (a.slabs_end + a.slabs_per_block - 1) / a.slabs_per_block;
  const int bytes = teams * a.slabs_per_block * kSlabBytes;
  int device = 0, multiprocessors = 0;
  RYLE_CUDA(cudaGetDevice(&device));
  RYLE_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  auto* kernel = each_spectrum<Loader, Quad>;
  cuda::allow_all_shared(kernel);
  kernel<<<static_cast<unsigned>(multiprocessors), static_cast<unsigned>(128 * teams),
           static_cast<std::size_t>(bytes), stream>>>(a, beam_blocks, (a.groups_end + 3) / 4,
                                                      teams);
  RYLE_CUDA_LAUNCHED("beamform each spectrum");
}

template <class Loader>
void choose_quad(const FusedArgs& a, cudaStream_t stream) {
  if (a.output == FusedOutput::cf16) return launch_each<Loader, QuadCf16>(a, stream);
  if (a.output == FusedOutput::ci8) return launch_each<Loader, QuadCi8>(a, stream);
  launch_each<Loader, QuadPower>(a, stream);
}

}  // namespace

bool has_rows(FusedOutput output) {
  return output == FusedOutput::cf16 || output == FusedOutput::ci8 ||
         output == FusedOutput::power_f32;
}

void launch_rows(const FusedArgs& a, cudaStream_t stream) {
  if (a.slabs_end <= 0 || a.groups_end <= 0) return;
  if (a.layout == FusedLayout::pairs4) return choose_quad<Pairs4>(a, stream);
  choose_quad<Spectra4>(a, stream);
}

}  // namespace ryle::beamform::detail
