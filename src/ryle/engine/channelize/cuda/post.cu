// SPDX-License-Identifier: BSD-3-Clause
// Kernels before and after the transform of cuda/spectra.cu: make_ramps computes the phase of every
// spectrum, finish_blocks applies phase, gain, dither and rounding and writes planar blocks.
#include <cuda_fp16.h>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/channelize/cuda/fft.cuh"
#include "ryle/engine/channelize/cuda/kernels.cuh"
#include "ryle/engine/channelize/dither.hpp"

namespace ryle::channelize::detail {
namespace {

// Every operation is rounded by itself (no fused multiply-add), as the CPU's baseline code does:
// delay.cpp and this give the same bits.
__device__ double cubic(const double (&c)[4], double t) {
  const double inner = __dadd_rn(c[2], __dmul_rn(t, c[3]));
  return __dadd_rn(c[0], __dmul_rn(t, __dadd_rn(c[1], __dmul_rn(t, inner))));
}
__device__ std::uint64_t to_fixed(double turns) {
  const double fraction = __dsub_rn(turns, floor(turns));
  return static_cast<std::uint64_t>(__dmul_rn(fraction, 0x1p63)) * 2;
}

// clang-format off
/// Computes the first sample and the phase of every (input, spectrum) from the delay polynomials, at the
/// centre of the window of each spectrum:  phi / 2 pi = phase - nu_0 d - s nu_bb,k (d - D/f_s),  D = round(d f_s).
///
///   a.delays   [input]                      DelayPolynomial   s, turns
///   a.valid    [input][word]                64 spectra a word
///   a.ramps    [input][max_spectra]         CudaRamp          base, slope in 2^-64 turns
///
/// One thread makes one ramp. The work is small beside that of the other kernels.
// clang-format on
__global__ void make_ramps(const __grid_constant__ RampArguments a) {
  const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= static_cast<long long>(a.n_inputs) * a.n_spectra) return;
  const long long input = index / a.n_spectra;
  const long long spectrum = a.first_spectrum + index % a.n_spectra;
  const DelayPolynomial& polynomial = a.delays[input];
  bool zero = true;
  for (int i = 0; i < 4; ++i)
    zero = zero && polynomial.delay_s[i] == 0 && polynomial.phase_turns[i] == 0;
  double delay_s = 0;
  double phase_turns = 0;
  double residual = 0;
  long long shift = 0;
  if (!zero) {
    const auto offset = static_cast<double>(spectrum * a.step - polynomial.reference_tick);
    const double t = __ddiv_rn(
        __dadd_rn(offset, __dmul_rn(0.5, static_cast<double>(a.n_filter - 1))), a.sample_rate_hz);
    delay_s = cubic(polynomial.delay_s, t);
    phase_turns = cubic(polynomial.phase_turns, t);
    const double samples = __dmul_rn(delay_s, a.sample_rate_hz);
    shift = fabs(samples) < 0x1p60 ? llround(samples) : 1LL << 60;
    residual = __dsub_rn(samples, static_cast<double>(shift));
  }
  const auto start = static_cast<double>(spectrum * a.step % a.n_points);
  const double slope = __ddiv_rn(-__dadd_rn(residual, start), static_cast<double>(a.n_points));
  CudaRamp ramp;
  ramp.slope = to_fixed(slope);
  const double base = __dsub_rn(phase_turns, __dmul_rn(a.reference_hz, delay_s));
  ramp.base = to_fixed(base) - static_cast<std::uint64_t>(a.zero_channel) * ramp.slope;
  ramp.begin = spectrum * a.step - shift;
  ramp.dither_key = dither_spectrum_key(spectrum);
  const long long i = index % a.n_spectra;
  ramp.valid = a.valid[input * a.valid_words + (i >> 6)] >> (i & 63) & 1u;
  a.ramps[input * a.max_spectra + i] = ramp;
}

constexpr int kChannels = 32;  // channels of a thread block: one a lane
constexpr int kWarps = kThreads / 32;
constexpr int kRowBytes =
    128 + 4;  // a block of 128 bytes; the pad puts the lanes' rows in different banks

/// Codes of one sample and what it adds to the statistics.
struct Tally {
  unsigned low = 0;
  unsigned high = 0;
  unsigned integer = 0;
  double real = 0;
};

template <int Limit>
__device__ inline int quantize(float value, bool truncate, Tally& tally) {
  const int code = truncate ? __float2int_rz(value) : __float2int_rn(value);
  if (code > Limit) {
    ++tally.high;
    return Limit;
  }
  if (code < -Limit) {
    ++tally.low;
    return -Limit;
  }
  return code;
}

// Collects the spectra of a lane's channel, four to a word where codes are bytes, and stores them
// in the channel's 128-byte row (core/blocks.hpp has the layouts). Spectra come in ascending order,
// the first a multiple of four.
template <SampleFormat Format>
struct Packer {
  unsigned char* row;
  unsigned re = 0;
  unsigned im = 0;

  __device__ void add(int t, float2 y, bool truncate, Tally& tally) {
    if constexpr (Format == SampleFormat::ci8) {
      add_codes(t, quantize<127>(y.x, truncate, tally), quantize<127>(y.y, truncate, tally), tally);
    } else if constexpr (Format == SampleFormat::ci4) {
      add_codes(t, quantize<7>(y.x, truncate, tally), quantize<7>(y.y, truncate, tally), tally);
    } else if constexpr (Format == SampleFormat::cf16) {
      auto* half = reinterpret_cast<__half*>(row) + t / 16 * 32 + t % 16;
      half[0] = __float2half_rn(y.x);
      half[16] = __float2half_rn(y.y);
      const double a = __half2float(half[0]);
      const double b = __half2float(half[16]);
      tally.real += a * a + b * b;
    } else {
      auto* value = reinterpret_cast<float*>(row) + t;
      value[0] = y.x;
      value[16] = y.y;
      tally.real += static_cast<double>(y.x) * y.x + static_cast<double>(y.y) * y.y;
    }
  }

  __device__ void add_codes(int t, int a, int b, Tally& tally) {
    tally.integer += static_cast<unsigned>(a * a + b * b);
    const int shift = 8 * (t % 4);
    if (shift == 0) re = im = 0;
    if constexpr (Format == SampleFormat::ci8) {
      re |= static_cast<unsigned>(a & 255) << shift;
      im |= static_cast<unsigned>(b & 255) << shift;
    } else {
      re |= static_cast<unsigned>((a & 15) << 4 | (b & 15)) << shift;
    }
    if (shift != 24) return;
    auto* words = reinterpret_cast<unsigned*>(row);
    if constexpr (Format == SampleFormat::ci8) {
      const int at = t / 32 * 16 + t % 32 / 4;
      words[at] = re;
      words[at + 8] = im;
    } else {
      words[t / 4] = re;
    }
  }
};

template <SampleFormat Format>
struct Spectra;
template <>
struct Spectra<SampleFormat::ci8> {
  static constexpr int kPerBlock = 64;
};
template <>
struct Spectra<SampleFormat::ci4> {
  static constexpr int kPerBlock = 128;
};
template <>
struct Spectra<SampleFormat::cf16> {
  static constexpr int kPerBlock = 32;
};
template <>
struct Spectra<SampleFormat::cf32> {
  static constexpr int kPerBlock = 16;
};

// @eq y = conj_s(S) g exp(2 pi i (base + c slope)); the top 32 of the 64 fixed-point bits of the
// phase are enough for fp32
// (as the phase is reduced exactly). Integer codes take the hardware's sine and cosine, 4e-7 off at
// most: 6e-6 LSB at the usual level of 16 LSB, below the fp32 error of the transform.
template <bool Precise>
__device__ inline float2 rotate(float2 s, std::uint64_t turns, float2 gain) {
  const auto word = static_cast<float>(static_cast<int>(turns >> 32));  // 2^-32 turns, -1/2 .. 1/2
  float sine;
  float cosine;
  if constexpr (Precise) {
    sincospif(word * 0x1p-31f, &sine, &cosine);
  } else {
    __sincosf(word * (6.283185307179586f * 0x1p-32f), &sine, &cosine);
  }
  return times(s, times({cosine, sine}, gain));
}

template <bool Float>
__device__ void add_statistics(const Tally& tally, CudaStatistics* to) {
  __shared__ Tally tallies[kWarps][kChannels];
  tallies[threadIdx.x / 32][threadIdx.x % 32] = tally;
  __syncthreads();
  if (threadIdx.x >= kChannels || to == nullptr) return;
  Tally sum;
  for (int w = 0; w < kWarps; ++w) {
    const Tally& part = tallies[w][threadIdx.x];
    sum.low += part.low;
    sum.high += part.high;
    sum.integer += part.integer;
    sum.real += part.real;
  }
  if (sum.low != 0) atomicAdd(&to->saturated_low, sum.low);
  if (sum.high != 0) atomicAdd(&to->saturated_high, sum.high);
  if constexpr (Float) {
    atomicAdd(&to->squares.real, sum.real);
  } else {
    atomicAdd(&to->squares.integer, static_cast<unsigned long long>(sum.integer));
  }
}

// clang-format off
/// Turns spectra into planar blocks:  X[k,m] = g_k exp(i phi_k,m) S[k,m] + dither, rounded and clipped.
///
///   a.spectra      [unit][spectrum][bin]                float2           from make_spectra
///   a.units.ramps  [input][max_spectra]                 CudaRamp         phase base and slope in 2^-64 turns
///   a.gains        [input][channel]                     float2           LSB out per LSB in
///   rows           [32 channels][132 bytes]             one block each   in shared memory
///   a.blocks       [channel][block][input][128 bytes]   ci8 ci4 cf16 cf32
///   a.statistics   [channel][input]                     sums of parts clipped, squares of codes
///
/// A thread block of 256 threads makes one output block of one input for 32 channels. A lane is a channel,
/// so that a warp reads 32 neighbouring bins; each of the 8 warps takes an eighth of the spectra. Codes are
/// collected in rows, and after the barrier a warp writes whole blocks of 128 bytes.
// clang-format on
template <SampleFormat Format>
__global__ void __launch_bounds__(kThreads) finish_blocks(const __grid_constant__ PostArguments a) {
  constexpr int kPerBlock = Spectra<Format>::kPerBlock;
  constexpr bool kFloat = Format == SampleFormat::cf16 || Format == SampleFormat::cf32;
  __shared__ __align__(16) unsigned char rows[kChannels * kRowBytes];
  const int n_groups = (a.n_channels + kChannels - 1) / kChannels;
  const int unit = static_cast<int>(blockIdx.x) / n_groups;
  const int first_channel = (static_cast<int>(blockIdx.x) - unit * n_groups) * kChannels;
  const int block = (a.units.first_unit + unit) / a.units.n_inputs;
  const int input = a.units.first_unit + unit - block * a.units.n_inputs;
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int channel = first_channel + lane;
  const bool exists = channel < a.n_channels;

  const CudaRamp* ramps = a.units.ramps + input * a.units.max_spectra;
  const float2* spectra =
      a.spectra + static_cast<long long>(unit) * kPerBlock * static_cast<long long>(a.n_bins);
  int bin = a.sense * (channel - a.zero_channel);  // -K < bin < K
  if (bin < 0) bin += a.n_points;
  const float2 gain =
      exists ? a.gains[static_cast<long long>(input) * a.n_channels + channel] : float2{0, 0};
  const std::uint32_t key =
      exists && a.dither ? a.channel_keys[channel] ^ dither_input_key(input) : 0;

  Tally tally;
  Packer<Format> packer{rows + lane * kRowBytes};
  constexpr int kPerWarp = kPerBlock / kWarps;
#pragma unroll
  for (int k = 0; k < kPerWarp; ++k) {
    const int t = warp * kPerWarp + k;
    const int i = block * kPerBlock + t;
    const CudaRamp* ramp = ramps + i;
    if (i >= a.units.n_spectra || ramp->valid == 0 || !exists) {
      Tally none;
      packer.add(t, {0, 0}, false, none);
      continue;
    }
    float2 s = spectra[static_cast<long long>(t) * a.n_bins + bin];
    if (a.sense < 0) s.y = -s.y;
    const std::uint64_t base = ramp->base;
    const std::uint64_t slope = ramp->slope;
    float2 y = (base | slope) == 0
                   ? times(s, gain)
                   : rotate<kFloat>(s, base + static_cast<std::uint64_t>(channel) * slope, gain);
    if (!kFloat && a.dither) {
      const std::uint32_t bits = dither_bits(key, 0, ramp->dither_key);
      y.x += dither_re(bits);
      y.y += dither_im(bits);
    }
    packer.add(t, y, a.truncate, tally);
  }
  CudaStatistics* statistics =
      a.statistics == nullptr || !exists
          ? nullptr
          : a.statistics + static_cast<long long>(channel) * a.units.n_inputs + input;
  add_statistics<kFloat>(tally, statistics);  // its barrier also completes the rows
  for (int c = warp; c < kChannels && first_channel + c < a.n_channels; c += kWarps) {
    std::byte* cell = a.blocks.data + (first_channel + c) * a.blocks.channel_stride_bytes +
                      block * a.blocks.block_stride_bytes + input * a.blocks.input_stride_bytes;
    reinterpret_cast<unsigned*>(cell)[lane] =
        reinterpret_cast<const unsigned*>(rows + c * kRowBytes)[lane];
  }
}

template <SampleFormat Format>
void launch(const PostArguments& a, cudaStream_t stream) {
  const unsigned n = static_cast<unsigned>(a.units.n_units) *
                     static_cast<unsigned>((a.n_channels + kChannels - 1) / kChannels);
  finish_blocks<Format><<<n, kThreads, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("finish_blocks");
}

}  // namespace

void launch_ramps(const RampArguments& a, cudaStream_t stream) {
  const std::int64_t n = static_cast<std::int64_t>(a.n_inputs) * a.n_spectra;
  make_ramps<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("make_ramps");
}

void launch_post(const PostArguments& a, cudaStream_t stream) {
  switch (a.blocks.format) {
    case SampleFormat::ci4:
      return launch<SampleFormat::ci4>(a, stream);
    case SampleFormat::ci8:
      return launch<SampleFormat::ci8>(a, stream);
    case SampleFormat::cf16:
      return launch<SampleFormat::cf16>(a, stream);
    default:
      return launch<SampleFormat::cf32>(a, stream);
  }
}

}  // namespace ryle::channelize::detail
