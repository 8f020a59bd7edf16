// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// dft_kernel makes direct Fourier sums of visibilities (path vis-dft), with the exact n term and any list of
// directions, as a matrix product: mma.sync m16n8k16 with fp16 operands and fp32 sums (compute capability 8.0
// and newer).
//   I(l,m) = 2 Re sum_b conj(s_b) sum_{a<b} V_ab s_a,   s_a = exp(-2 pi i (nu/c) r_a . (l, m, n-1))
//
//   array        axes                                            type      content
//   products     [channel][baseline][4]                          float2    calibrated products
//   operands     [channel][product][tile of 16 x 16][lane]       uint4     V as fp16 fragments; split: and what the
//                                                                          rounding left behind
//   largest      [channel]                                       uint32    bits of the largest product: the scale
//   d.direction  [direction][l, m, n - 1]                        double
//   re, im, low  [direction][antenna, padded]                    fp16      steering factors; shared memory
//   sums         [channel][product][direction]                   float
//   f.pixels     [bin][plane][pixel]                             float     NaN where no direction lies
//
// Who does what: a thread block of 8 warps makes 64 directions of one channel. All threads make the steering
// factors once, with phases in double; then two warps share each of the four products and walk through tiles of
// V, rows antennas b, the inner index antennas a < b. The sums of warps meet in shared memory at the end. The
// tiles of V are read by all thread blocks of a channel. No counters of this kernel are on record.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_dft.cuh"
#include "ryle/engine/image/cuda/all_sky_operands.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kColumns = kDftPixels / 8;  // fragments of eight directions

__host__ __device__ inline int padded(int n_antennas) { return (n_antennas + 15) / 16 * 16; }
// Rows of steering factors eight halves longer than needed: fragments of eight directions then lie
// in different banks.
__host__ __device__ inline int pitch_of(int n_antennas) {
  const int n = padded(n_antennas);
  return n + 8;
}

__device__ inline std::int64_t baseline_of(const DftArgs& d, int a, int b) {
  return (d.autos ? static_cast<std::int64_t>(b) * (b + 1) / 2
                  : static_cast<std::int64_t>(b) * (b - 1) / 2) +
         a;
}

/// The largest part of any product of a channel, by all threads of 16 thread blocks.
__global__ void largest_product(DftArgs d, const float4* products, unsigned* largest) {
  const int channel = blockIdx.y;
  const float4* p = products + static_cast<std::int64_t>(channel) * d.n_baselines * 2;
  float maximum = 0;
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       k < 2 * d.n_baselines; k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const float4 v = p[k];
    maximum = fmaxf(maximum, fmaxf(fmaxf(fabsf(v.x), fabsf(v.y)), fmaxf(fabsf(v.z), fabsf(v.w))));
  }
  // Bits of floats that are not negative order as the floats do.
  const unsigned bits = __reduce_max_sync(0xffffffffu, __float_as_uint(maximum));
  if (threadIdx.x % 32 == 0) atomicMax(largest + channel, bits);
}

// A power of two that brings the largest product between 1 and 2.
__device__ inline float scale_of(unsigned bits) {
  if (bits == 0) return 1;
  const int exponent = static_cast<int>(bits >> 23) - 127;
  return ldexpf(1.0f, -exponent);
}

/// Products to operands: a warp makes one tile of one product. Register r of a lane holds row
/// lane / 4 + 8 (r % 2) and columns 2 (lane % 4) + 8 (r / 2), + 1.
__global__ void dft_operands(DftArgs d, const float4* products, const unsigned* largest,
                             uint4* operands) {
  const int lane = threadIdx.x % 32, product = threadIdx.x / 32, channel = blockIdx.y;
  int row = static_cast<int>((sqrtf(8.0f * blockIdx.x + 1.0f) - 1.0f) * 0.5f);
  while (row * (row + 1) / 2 > static_cast<int>(blockIdx.x)) --row;
  while ((row + 1) * (row + 2) / 2 <= static_cast<int>(blockIdx.x)) ++row;
  const int column = blockIdx.x - row * (row + 1) / 2;
  const float scale = scale_of(largest[channel]);
  const auto* value = reinterpret_cast<const float2*>(
      products + static_cast<std::int64_t>(channel) * d.n_baselines * 2);
  unsigned re[4], im[4], low_re[4], low_im[4];
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int b = 16 * row + lane / 4 + 8 * (r % 2);
    float2 v[2] = {};
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int a = 16 * column + 2 * (lane % 4) + 8 * (r / 2) + k;
      if (b < d.n_antennas && (a < b || (a == b && d.autos))) {
        v[k] = value[4 * baseline_of(d, a, b) + product];
      }
    }
    re[r] = pack_fp16(scale * v[0].x, scale * v[1].x);
    im[r] = pack_fp16(scale * v[0].y, scale * v[1].y);
    low_re[r] = pack_fp16(left_behind(scale * v[0].x), left_behind(scale * v[1].x));
    low_im[r] = pack_fp16(left_behind(scale * v[0].y), left_behind(scale * v[1].y));
  }
  const int words = d.split ? 4 : 2;  // uint4 of a lane
  uint4* to =
      operands +
      (((static_cast<std::int64_t>(channel) * 4 + product) * gridDim.x + blockIdx.x) * 32 + lane) *
          words;
  to[0] = {re[0], re[1], re[2], re[3]};
  to[1] = {im[0], im[1], im[2], im[3]};
  if (!d.split) return;
  to[2] = {low_re[0], low_re[1], low_re[2], low_re[3]};
  to[3] = {low_im[0], low_im[1], low_im[2], low_im[3]};
}

// Phases in turns, in double; the factor itself has eleven bits.
__device__ void steer(const DftArgs& d, int channel, int first, __half* re, __half* im, __half* low,
                      int pitch) {
  const double scale = d.waves_per_m[channel];
  const int n = padded(d.n_antennas);
  for (int k = threadIdx.x; k < kDftPixels * n; k += kThreads) {
    const int direction = k / n, a = k - direction * n;
    float c = 0, s = 0;
    if (a < d.n_antennas && first + direction < d.n_directions) {
      const double* l = d.direction + 3 * static_cast<std::int64_t>(first + direction);
      const double* r = d.enu_m + 3 * a;
      const double turns = -scale * (r[0] * l[0] + r[1] * l[1] + r[2] * l[2]);
      sincospif(2.0f * static_cast<float>(turns - rint(turns)), &s, &c);
    }
    re[direction * pitch + a] = __float2half_rn(c);
    im[direction * pitch + a] = __float2half_rn(s);
    if (low == nullptr) continue;
    low[direction * pitch + a] = __float2half_rn(left_behind(c));
    low[(kDftPixels + direction) * pitch + a] = __float2half_rn(left_behind(s));
  }
}

// Fragments of V: real part, imaginary part and its negative.
struct Rows {
  unsigned re[4], im[4], minus_im[4];
  __device__ explicit Rows(const uint4* tile) {
    const uint4 r = __ldg(tile), i = __ldg(tile + 1);
    re[0] = r.x, re[1] = r.y, re[2] = r.z, re[3] = r.w;
    im[0] = i.x, im[1] = i.y, im[2] = i.z, im[3] = i.w;
#pragma unroll
    for (int k = 0; k < 4; ++k) minus_im[k] = im[k] ^ 0x80008000u;
  }
};

// y += V s for eight directions; `re` and `im` point at this lane's word of the steering factors.
__device__ inline void multiply_complex(float (&y_re)[4], float (&y_im)[4], const Rows& v,
                                        const __half* re, const __half* im) {
  const auto* s_re = reinterpret_cast<const unsigned*>(re);
  const auto* s_im = reinterpret_cast<const unsigned*>(im);
  const unsigned r0 = s_re[0], r1 = s_re[4], i0 = s_im[0], i1 = s_im[4];
  multiply_add(y_re, v.re, r0, r1);
  multiply_add(y_im, v.re, i0, i1);
  multiply_add(y_re, v.minus_im, i0, i1);
  multiply_add(y_im, v.im, r0, r1);
}

/// See the head of this file. Split: operands as the sum of two halves each (kDftSplitAntennas).
template <bool Split>
__global__ void __launch_bounds__(kThreads, Split ? 1 : 2)
    dft_kernel(DftArgs d, const uint4* operands, const unsigned* largest, float* sums) {
  extern __shared__ __align__(16) unsigned char memory[];
  const int pitch = pitch_of(d.n_antennas);
  auto* re = reinterpret_cast<__half*>(memory);
  auto* im = re + kDftPixels * pitch;
  auto* low = Split ? im + kDftPixels * pitch : nullptr;  // Re, then Im
  const int channel = blockIdx.y, first = blockIdx.x * kDftPixels;
  steer(d, channel, first, re, im, low, pitch);
  __syncthreads();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int product = warp % 4;
  const int n_rows = padded(d.n_antennas) / 16;
  const int n_tiles = n_rows * (n_rows + 1) / 2;
  constexpr int kWords = Split ? 4 : 2;  // uint4 of a lane
  const uint4* tiles =
      operands +
      ((static_cast<std::int64_t>(channel) * 4 + product) * n_tiles * 32 + lane) * kWords;
  float total[kColumns][2] = {};
  // Two warps share a product: long and short rows of the triangle alternate between them.
  for (int k = 0; k < n_rows; ++k) {
    if ((k + (k / 2)) % 2 != warp / 4) continue;
    const int row = n_rows - 1 - k;
    float y_re[kColumns][4] = {}, y_im[kColumns][4] = {};
    const uint4* tile = tiles + static_cast<std::int64_t>(row) * (row + 1) / 2 * 32 * kWords;
    for (int column = 0; column <= row; ++column, tile += 32 * kWords) {
      const Rows v(tile);
      const int at = lane / 4 * pitch + 16 * column + 2 * (lane % 4);
#pragma unroll
      for (int n = 0; n < kColumns; ++n) {
        const int here = at + 8 * n * pitch;
        multiply_complex(y_re[n], y_im[n], v, re + here, im + here);
        if constexpr (Split) {
          multiply_complex(y_re[n], y_im[n], v, low + here, low + kDftPixels * pitch + here);
        }
      }
      if constexpr (Split) {
        const Rows v_low(tile + 2);
#pragma unroll
        for (int n = 0; n < kColumns; ++n) {
          const int here = at + 8 * n * pitch;
          multiply_complex(y_re[n], y_im[n], v_low, re + here, im + here);
        }
      }
    }
    // Re conj(s_b) Y_b: register r is row lane / 4 + 8 (r / 2), column 2 (lane % 4) + r % 2.
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const int b = 16 * row + lane / 4 + 8 * (r / 2);
        const int at = (8 * n + 2 * (lane % 4) + r % 2) * pitch + b;
        float s_re = __half2float(re[at]), s_im = __half2float(im[at]);
        if constexpr (Split) {
          s_re += __half2float(low[at]);
          s_im += __half2float(low[kDftPixels * pitch + at]);
        }
        total[n][r % 2] += s_re * y_re[n][r] + s_im * y_im[n][r];
      }
    }
  }
  __syncthreads();  // steering factors are done with: their place takes the warps' sums
  auto* partial = reinterpret_cast<float*>(memory);  // [warp][direction]
#pragma unroll
  for (int n = 0; n < kColumns; ++n) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = total[n][r];
#pragma unroll
      for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
      if (lane < 4) partial[warp * kDftPixels + 8 * n + 2 * lane + r] = sum;
    }
  }
  __syncthreads();
  const float back = 2.0f / scale_of(largest[channel]);
  for (int k = threadIdx.x; k < 4 * kDftPixels; k += kThreads) {
    const int p = k / kDftPixels, direction = k % kDftPixels;
    if (first + direction >= d.n_directions) continue;
    sums[(static_cast<std::int64_t>(channel) * 4 + p) * d.n_directions + first + direction] =
        back * (partial[p * kDftPixels + direction] + partial[(p + 4) * kDftPixels + direction]);
  }
}

/// Makes every pixel NaN, before dft_finish() writes those that have a direction.
__global__ void fill_nan(float* pixels, std::int64_t n) {
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    pixels[k] = __int_as_float(0x7fc00000);
}

/// Sums to pixels: channels of a bin are added and divided by their pairs. A thread makes one
/// direction.
__global__ void dft_finish(DftArgs d, const float* sums, FinishArgs f, std::int64_t n_pixels) {
  const int bin = blockIdx.y;
  const int direction = blockIdx.x * blockDim.x + threadIdx.x;
  if (direction >= d.n_directions) return;
  float value[4] = {};
  double weight[3] = {};
  const int end = min((bin + 1) * f.n_channels_per_bin, f.n_channels);
  for (int channel = bin * f.n_channels_per_bin; channel < end; ++channel) {
    for (int p = 0; p < 4; ++p) {
      value[p] += sums[(static_cast<std::int64_t>(channel) * 4 + p) * d.n_directions + direction];
    }
    for (int p = 0; p < 3; ++p) {
      weight[p] += f.counted != nullptr ? static_cast<double>(f.counted[3 * channel + p])
                                        : f.pairs[3 * channel + p];
    }
  }
  const auto mean = [&](float sum, double w) {
    return w > 0 ? static_cast<float>(sum / (w * f.times)) : __int_as_float(0x7fc00000);
  };
  const float xx = mean(value[0], weight[0]), yy = mean(value[1], weight[1]);
  const bool stokes = f.stokes && f.n_pols == 2;
  float* pixel =
      f.pixels + static_cast<std::int64_t>(bin) * f.n_planes * n_pixels + d.pixel[direction];
  pixel[0] = stokes ? 0.5f * (xx + yy) : xx;
  if (f.n_planes != 4) return;
  pixel[n_pixels] = stokes ? 0.5f * (xx - yy) : yy;
  pixel[2 * n_pixels] = mean(value[2], weight[2]);
  pixel[3 * n_pixels] = mean(value[3], weight[2]);
}

}  // namespace

std::int64_t dft_shared_bytes(std::int64_t n_antennas, bool split) {
  const std::int64_t steering =
      (split ? 4 : 2) * 2 * kDftPixels * pitch_of(static_cast<int>(n_antennas));
  return std::max<std::int64_t>(steering, kWarps * kDftPixels * 4);
}

void prepare_dft(bool split, std::int64_t shared_bytes) {
  RYLE_CUDA(cudaFuncSetAttribute(split ? dft_kernel<true> : dft_kernel<false>,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared_bytes)));
}

void launch_dft_operands(const DftArgs& args, const float4* products, unsigned* largest,
                         uint4* operands, cudaStream_t stream) {
  const auto channels = static_cast<unsigned>(args.n_channels);
  RYLE_CUDA(cudaMemsetAsync(largest, 0, channels * sizeof(unsigned), stream));
  largest_product<<<dim3(16, channels), kThreads, 0, stream>>>(args, products, largest);
  RYLE_CUDA_LAUNCHED("largest_product");
  const dim3 grid(static_cast<unsigned>(dft_tiles(args.n_antennas)), channels);
  dft_operands<<<grid, 128, 0, stream>>>(args, products, largest, operands);
  RYLE_CUDA_LAUNCHED("dft_operands");
}

void launch_dft(const DftArgs& args, const uint4* operands, const unsigned* largest, float* sums,
                cudaStream_t stream) {
  if (args.n_directions == 0) return;
  const dim3 grid(static_cast<unsigned>((args.n_directions + kDftPixels - 1) / kDftPixels),
                  static_cast<unsigned>(args.n_channels));
  const auto kernel = args.split ? dft_kernel<true> : dft_kernel<false>;
  const std::int64_t shared = dft_shared_bytes(args.n_antennas, args.split);
  kernel<<<grid, kThreads, static_cast<std::size_t>(shared), stream>>>(args, operands, largest,
                                                                       sums);
  RYLE_CUDA_LAUNCHED("dft_kernel");
}

void launch_dft_finish(const DftArgs& args, const float* sums, const FinishArgs& finish,
                       std::int64_t n_pixels, cudaStream_t stream) {
  const int n_bins =
      (finish.n_channels + finish.n_channels_per_bin - 1) / finish.n_channels_per_bin;
  fill_nan<<<256, 256, 0, stream>>>(finish.pixels, n_pixels * n_bins * finish.n_planes);
  RYLE_CUDA_LAUNCHED("fill_nan");
  if (args.n_directions == 0) return;
  const dim3 grid(static_cast<unsigned>((args.n_directions + 127) / 128),
                  static_cast<unsigned>(n_bins));
  dft_finish<<<grid, 128, 0, stream>>>(args, sums, finish, n_pixels);
  RYLE_CUDA_LAUNCHED("dft_finish");
}

}  // namespace ryle::image::detail
