// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// field_dft makes direct Fourier sums of every spectrum (path efield-dft): mma.sync m16n8k16, fp16 operands, fp32 sums.
//   B_p(s) = sum_a s_a E_ap,   s_a = exp(-2 pi i (nu/c) r_a . (l, m, n-1)),
//   sums += |B_x|^2, |B_y|^2, Re and Im B_x conj(B_y)
//
//   array       axes                                              type       content
//   a.blocks    [channel][block][input][128 bytes]                ci4, ci8   LSB
//   a.operands  [channel][batch][high, low][column][pitch]        fp16       calibrated voltages; scratch
//   steering    [tile][step of 16 antennas][high, low][lane]      fp16 x 8   shared memory
//   operand     [batch % 2][high, low][column][pitch]             fp16       shared memory
//   a.sums      [channel][slice][4][direction], added to          float      LSB^2 times gains
//
// Who does what: field_operands turns voltages into operands once, for the thread blocks of all directions. A
// thread block of field_dft has 16 warps and some directions of one channel; rows of a tile are eight
// directions, cosines above and sines below, the inner index antennas, columns four spectra of one
// polarization. Steering factors are made once and stay in shared memory. While a batch is multiplied, the next
// is on its way by cp.async; one barrier a batch. No counters of this kernel are on record.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_field_dft.cuh"
#include "ryle/engine/image/cuda/all_sky_operands.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = 8;  // of one half of the columns; the other warps take the other half
constexpr int kOperandThreads = 256;

__host__ __device__ inline int steps_of(int n_antennas) { return (n_antennas + 15) / 16; }

// Scaled gains of the samples at hand.
__device__ inline float scale_of(const FieldDftArgs& a, int channel) {
  return a.scale[channel] * (a.blocks.nibbles ? 1.0f : 1.0f / 16);
}

/// Voltages to operands: a thread block makes one batch of one channel. What lies beyond the
/// antennas was zeroed when the plan was made.
template <int Spectra, bool Split>
__global__ void __launch_bounds__(kOperandThreads) field_operands(FieldDftArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int channel = blockIdx.y, batch = blockIdx.x, n = a.dft.n_antennas;
  const int n_slots = (n + 1) / 2 * 2;
  OperandSlots slots;
  slots.factor = reinterpret_cast<float4*>(memory);
  slots.input = reinterpret_cast<int2*>(slots.factor + n_slots);
  const float scale = scale_of(a, channel);
  for (int k = threadIdx.x; k < n_slots; k += kOperandThreads) {
    const float4 f = k < n ? a.factor[static_cast<std::int64_t>(channel) * n + k] : float4{};
    slots.input[k] = k < n ? a.input[k] : int2{-1, -1};
    slots.factor[k] = {scale * f.x, scale * f.y, scale * f.z, scale * f.w};
  }
  __syncthreads();
  const int size = 4 * Spectra * a.pitch;
  __half* to = a.operands +
               (static_cast<std::int64_t>(channel) * a.n_batches + batch) * (Split ? 2 : 1) * size;
  for (int k = threadIdx.x; k < OperandWork::count(n, Spectra); k += kOperandThreads) {
    OperandWork work;
    work.fetch(a.blocks, slots, n, k, channel, a.first_spectrum + batch * Spectra);
    work.store<Split>(a.blocks.nibbles, slots, n, k, a.pitch, to, to + size);
  }
}

template <int Tiles, int Spectra, bool Split>
struct Block {
  static constexpr int kDirections = 8 * Tiles * kWarps;
  static constexpr int kColumnTiles = Spectra / 4;  // of a warp
  static constexpr int kWords = Split ? 2 : 1;      // uint4 of a lane

  const FieldDftArgs& a;
  const int channel, first, steps, warp, half, lane;
  uint4* steering;   // [tile][step][high, low][lane]
  __half* operand;   // [batch % 2][high, low][column][pitch]
  int operand_size;  // halves of one of them

  __device__ Block(const FieldDftArgs& args, unsigned char* base)
      : a(args),
        channel(static_cast<int>(blockIdx.y)),
        first(static_cast<int>(blockIdx.x) * kDirections),
        steps(steps_of(args.dft.n_antennas)),
        warp(static_cast<int>(threadIdx.x) / 32 % kWarps),
        half(static_cast<int>(threadIdx.x) / 32 / kWarps),
        lane(static_cast<int>(threadIdx.x) % 32) {
    steering = reinterpret_cast<uint4*>(base);
    base += 512 * kWords * Tiles * kWarps * steps;
    operand = reinterpret_cast<__half*>(base);
    operand_size = 4 * Spectra * a.pitch;
  }

  // Phases in turns, in double; register r of a lane holds row lane / 4 + 8 (r % 2) and columns
  // 2 (lane % 4) + 8 (r / 2), + 1.
  __device__ void steer() {
    const double scale = a.dft.waves_per_m[channel];
    auto* words = reinterpret_cast<unsigned*>(steering);
    const int n = 64 * Tiles * kWarps * steps;  // pairs of registers: cosine, sine
    for (int k = threadIdx.x; k < n; k += kThreads) {
      const int part = k % 2, at_lane = k / 2 % 32, fragment = k / 64;
      const int direction = first + 8 * (fragment / steps) + at_lane / 4;
      float c[2] = {}, s[2] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int antenna = 16 * (fragment % steps) + 2 * (at_lane % 4) + 8 * part + i;
        if (antenna >= a.dft.n_antennas || direction >= a.dft.n_directions) continue;
        const double* l = a.dft.direction + 3 * static_cast<std::int64_t>(direction);
        const double* r = a.dft.enu_m + 3 * antenna;
        const double turns = -scale * (r[0] * l[0] + r[1] * l[1] + r[2] * l[2]);
        sincospif(2.0f * static_cast<float>(turns - rint(turns)), &s[i], &c[i]);
      }
      unsigned* to = words + (fragment * kWords * 32 + at_lane) * 4 + 2 * part;
      to[0] = pack_fp16(c[0], c[1]);
      to[1] = pack_fp16(s[0], s[1]);
      if constexpr (Split) {
        to[128] = pack_fp16(left_behind(c[0]), left_behind(c[1]));
        to[129] = pack_fp16(left_behind(s[0]), left_behind(s[1]));
      }
    }
  }

  // Asynchronous; wait_for_copies() and a barrier before the operands are used.
  __device__ void copy_batch(int batch) const {
    constexpr int kBytes = 16;
    const int n = 2 * kWords * operand_size / kBytes;
    const auto* from = reinterpret_cast<const uint4*>(
        a.operands +
        (static_cast<std::int64_t>(channel) * a.n_batches + batch) * kWords * operand_size);
    auto* to = reinterpret_cast<uint4*>(operand + batch % 2 * kWords * operand_size);
    for (int k = threadIdx.x; k < n; k += kThreads) {
      const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to + k));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(address), "l"(from + k)
                   : "memory");
    }
  }
  __device__ void wait_for_copies() const { asm volatile("cp.async.wait_all;\n" ::: "memory"); }

  __device__ void load_columns(const __half* at, unsigned (&b)[4]) const {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address));
  }

  // sum[tile][product] += products of a batch.
  __device__ __forceinline__ void add_batch(int batch, float (&sum)[Tiles][4]) const {
    float field[Tiles][kColumnTiles][4] = {};
    // Lane of an ldmatrix: columns lane % 8 (+ 8 in its upper half), antennas 8 (lane / 8 % 2).
    const __half* column = operand + batch % 2 * kWords * operand_size +
                           (8 * half * kColumnTiles + lane % 8 + lane / 16 * 8) * a.pitch +
                           lane / 8 % 2 * 8;
    const uint4* rows = steering + warp * Tiles * steps * kWords * 32 + lane;
    for (int step = 0; step < steps; ++step) {
      unsigned high[Tiles][4], low[Tiles][4];
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
        const uint4* row = rows + (i * steps + step) * kWords * 32;
        const uint4 v = row[0];
        high[i][0] = v.x, high[i][1] = v.y, high[i][2] = v.z, high[i][3] = v.w;
        if constexpr (Split) {
          const uint4 w = row[32];
          low[i][0] = w.x, low[i][1] = w.y, low[i][2] = w.z, low[i][3] = w.w;
        }
      }
#pragma unroll
      for (int n = 0; n < kColumnTiles; n += 2) {
        unsigned b[4];
        load_columns(column + 8 * n * a.pitch + 16 * step, b);
#pragma unroll
        for (int i = 0; i < Tiles; ++i) {
          multiply_add(field[i][n], high[i], b[0], b[1]);
          multiply_add(field[i][n + 1], high[i], b[2], b[3]);
          if constexpr (Split) {
            multiply_add(field[i][n], low[i], b[0], b[1]);
            multiply_add(field[i][n + 1], low[i], b[2], b[3]);
          }
        }
        if constexpr (Split) {
          load_columns(column + operand_size + 8 * n * a.pitch + 16 * step, b);
#pragma unroll
          for (int i = 0; i < Tiles; ++i) {
            multiply_add(field[i][n], high[i], b[0], b[1]);
            multiply_add(field[i][n + 1], high[i], b[2], b[3]);
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
#pragma unroll
      for (int n = 0; n < kColumnTiles; n += 2) {
        const auto& c = field[i][n];
        const auto& d = field[i][n + 1];
        add_products(sum[i], float2{c[0] - c[3], c[1] + c[2]}, float2{d[0] - d[3], d[1] + d[2]});
      }
    }
  }

  __device__ __forceinline__ void write(float (&sum)[Tiles][4], float back) const {
    const int n = a.dft.n_directions;
    float* sums = a.sums + (static_cast<std::int64_t>(channel) * gridDim.z + blockIdx.z) * 4 * n;
    // Steering factors are done with: their place takes the sums of the other half.
    auto* other = reinterpret_cast<float*>(steering) + warp * Tiles * 4 * 32 + lane;
    __syncthreads();
    if (half == 1) {
#pragma unroll
      for (int k = 0; k < 4 * Tiles; ++k) other[32 * k] = sum[k / 4][k % 4];
    }
    __syncthreads();
    if (half == 1) return;
#pragma unroll
    for (int k = 0; k < 4 * Tiles; ++k) sum[k / 4][k % 4] += other[32 * k];
#pragma unroll
    for (int i = 0; i < Tiles; ++i) {
      const int direction = first + 8 * (warp * Tiles + i) + lane / 4;
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        sum[i][p] += __shfl_xor_sync(0xffffffffu, sum[i][p], 1);
        sum[i][p] += __shfl_xor_sync(0xffffffffu, sum[i][p], 2);
        if (lane % 4 == p && direction < n) {
          sums[static_cast<std::int64_t>(p) * n + direction] += back * sum[i][p];
        }
      }
    }
  }
};

/// See the head of this file. Tiles: of eight directions a warp; Spectra: of a batch.
template <int Tiles, int Spectra, bool Split>
__global__ void __launch_bounds__(kThreads, 1) field_dft(FieldDftArgs a) {
  extern __shared__ __align__(16) unsigned char memory[];
  Block<Tiles, Spectra, Split> block(a, memory);
  const int slice = static_cast<int>(blockIdx.z), n_slices = static_cast<int>(gridDim.z);
  const int begin = static_cast<int>(static_cast<std::int64_t>(a.n_batches) * slice / n_slices);
  const int end = static_cast<int>(static_cast<std::int64_t>(a.n_batches) * (slice + 1) / n_slices);
  float sum[Tiles][4] = {};
  if (begin < end) block.copy_batch(begin);
  block.steer();
  for (int batch = begin; batch < end; ++batch) {
    block.wait_for_copies();
    __syncthreads();
    if (batch + 1 < end) block.copy_batch(batch + 1);
    block.add_batch(batch, sum);
  }
  const float scale = scale_of(a, block.channel);
  block.write(sum, 1 / (scale * scale));
}

/// Adds the slices of a channel and takes out what antennas add by themselves: a thread makes one
/// direction of one product, the thread block first sums the powers of its channel.
__global__ void join_kernel(DftArgs d, int n_slices, const double* powers, const float* sums,
                            float* joined) {
  const int channel = blockIdx.y / 4, p = blockIdx.y % 4;
  __shared__ double total;
  if (threadIdx.x < 32) {
    double sum = 0;
    for (int a = threadIdx.x; powers != nullptr && a < d.n_antennas; a += 32) {
      sum += powers[(static_cast<std::int64_t>(channel) * d.n_antennas + a) * 4 + p];
    }
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x == 0) total = sum;
  }
  __syncthreads();
  const int direction = blockIdx.x * blockDim.x + threadIdx.x;
  if (direction >= d.n_directions) return;
  double sum = -total;
  for (int slice = 0; slice < n_slices; ++slice) {
    sum += sums[((static_cast<std::int64_t>(channel) * n_slices + slice) * 4 + p) * d.n_directions +
                direction];
  }
  joined[(static_cast<std::int64_t>(channel) * 4 + p) * d.n_directions + direction] =
      static_cast<float>(sum);
}

template <int Tiles, int Spectra, bool Split>
void launch(const FieldDftShape& shape, const FieldDftArgs& args, int n_slices,
            cudaStream_t stream) {
  const auto bytes = field_dft_shared_bytes(shape, args.dft.n_antennas);
  const auto kernel = field_dft<Tiles, Spectra, Split>;
  RYLE_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(bytes)));
  const dim3 grid(static_cast<unsigned>(field_dft_blocks(shape, args.dft.n_directions)),
                  static_cast<unsigned>(args.dft.n_channels), static_cast<unsigned>(n_slices));
  const dim3 batches(static_cast<unsigned>(args.n_batches),
                     static_cast<unsigned>(args.dft.n_channels));
  const int slots_bytes = 24 * (args.dft.n_antennas + 1);
  field_operands<Spectra, Split><<<batches, kOperandThreads, slots_bytes, stream>>>(args);
  RYLE_CUDA_LAUNCHED("field_operands");
  kernel<<<grid, kThreads, static_cast<std::size_t>(bytes), stream>>>(args);
  RYLE_CUDA_LAUNCHED("field_dft");
}

}  // namespace

int field_dft_pitch(int n_antennas) { return 16 * steps_of(n_antennas) + 8; }

std::int64_t field_dft_batch_bytes(const FieldDftShape& shape, int n_antennas) {
  return std::int64_t{8} * (shape.split ? 2 : 1) * shape.n_spectra * field_dft_pitch(n_antennas);
}

std::int64_t field_dft_shared_bytes(const FieldDftShape& shape, int n_antennas) {
  const std::int64_t words = shape.split ? 2 : 1;
  const std::int64_t steering = 512 * words * shape.tiles_per_warp * kWarps * steps_of(n_antennas);
  const std::int64_t operands =
      std::int64_t{16} * words * shape.n_spectra * field_dft_pitch(n_antennas);
  return steering + operands;
}

FieldDftShape field_dft_shape(int n_antennas, std::int64_t max_shared_bytes) {
  const bool split = n_antennas <= kDftSplitAntennas;
  for (const FieldDftShape shape :
       {FieldDftShape{2, 16, false}, FieldDftShape{1, 8, true}, FieldDftShape{1, 8, false}}) {
    if (shape.split != split) continue;
    if (field_dft_shared_bytes(shape, n_antennas) <= max_shared_bytes) return shape;
  }
  return {};
}

int field_dft_blocks(const FieldDftShape& shape, int n_directions) {
  const int each = 8 * shape.tiles_per_warp * kWarps;
  return (n_directions + each - 1) / each;
}

void launch_field_dft(const FieldDftShape& shape, const FieldDftArgs& args, int n_slices,
                      cudaStream_t stream) {
  if (args.dft.n_directions == 0 || args.dft.n_antennas == 0) return;
  if (shape.split) return launch<1, 8, true>(shape, args, n_slices, stream);
  if (shape.tiles_per_warp == 2) return launch<2, 16, false>(shape, args, n_slices, stream);
  launch<1, 8, false>(shape, args, n_slices, stream);
}

void launch_field_dft_join(const DftArgs& dft, int n_slices, const double* powers,
                           const float* sums, float* joined, cudaStream_t stream) {
  if (dft.n_directions == 0) return;
  const dim3 grid(static_cast<unsigned>((dft.n_directions + 255) / 256),
                  static_cast<unsigned>(4 * dft.n_channels));
  join_kernel<<<grid, 256, 0, stream>>>(dft, n_slices, powers, sums, joined);
  RYLE_CUDA_LAUNCHED("join_kernel");
}

}  // namespace ryle::image::detail
