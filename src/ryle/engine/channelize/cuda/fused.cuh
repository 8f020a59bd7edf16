// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/blocks.hpp"
#include "ryle/core/time.hpp"
#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/channelize/cuda/fourier.cuh"
#include "ryle/engine/channelize/cuda/ramp.hpp"
#include "ryle/engine/channelize/dither.hpp"

// clang-format off
/// fused_channelize is the whole F-engine in one kernel: 8-bit complex samples, critically sampled,
/// K = R1 R2 points, to ci8 or ci4 blocks. It computes the equation of the README,
///   X[k,m] = g_k exp(i phi_k,m) sum_n h[n] x[mK - D + n] exp(-2 pi i k (mK + n) / K),  L = P K taps,
/// adds the dither, rounds and clips.
///
///   array           axes                                    type      unit
///   samples         [input][sample], strides in bytes       ci8       LSB of the receiver
///   filter          [tap][K]                                float     sum h^2 = 1
///   twiddles        fused_twiddle_at(k1, n2)                float2    exp(-2 pi i k1 n2 / K)
///   gains           [input][channel]                        float2    LSB out per LSB in
///   ramps           [input][max_spectra]                    CudaRamp  first sample; phase base and slope in 2^-64 turns
///   regions         [spectrum of the batch][kRegion]        float2    filtered points, then the exchange; shared memory
///   staging         [place][spectrum of the stage]          ci8       codes of a stage; shared memory
///   blocks          [channel][block][input][128 bytes]      ci8, ci4  planar blocks
///   statistics      [channel][input]                        sums      parts clipped low and high, squares of codes
///
/// Who does what: a thread block makes consecutive output blocks of one input. For each batch of 16 (K = 128:
/// 32) spectra it goes through three phases with a barrier after the first and after the third:
///   filter      A thread owns one sample position modulo K and walks down 16 spectra. Each sample is read
///               and converted once; its products go to the sums of the P spectra that it belongs to.
///   transform   A warp transforms its own spectra: R1 points a thread in registers, one exchange through
///               shared memory, then R2 points a thread.
///   finish      Phase, gain, dither, clipping and rounding follow in the registers of the transform. Codes
///               go to the staging array, and from there in runs of 16 spectra to the blocks, while the
///               next batch is filtered.
/// While a batch is transformed, lines of the samples that the next batch reads first are prefetched.
///
/// What binds (docs/decisions/0010, H200, 1,024 channels, gains alone): latency. 76 instructions a sample
/// are issued in 45 % of the cycles; 17 % of the time of all warps is spent at the two barriers of a batch.
///
/// A place is a channel in the order c' = (bin + K/2) mod K. Channel c is c', or K-1-c' of an inverted band.
// clang-format on
namespace ryle::channelize::detail {

struct FusedArguments {
  const void* samples = nullptr;
  Tick first_tick = 0;
  std::int64_t input_stride_bytes = 0;
  std::int64_t sample_stride_bytes = 0;
  bool odd = false;                  ///< samples do not lie at even addresses
  const float* filter = nullptr;     ///< [tap][K]
  const float4* twiddles = nullptr;  ///< fused_twiddle_at()
  const float2* gains = nullptr;     ///< [input][channel]
  const std::uint32_t* channel_keys = nullptr;
  const CudaRamp* ramps = nullptr;  ///< [input][max_spectra]
  std::int64_t max_spectra = 0;
  int n_inputs = 0;
  int n_spectra = 0;
  int blocks_per_group = 1;  ///< consecutive output blocks that a thread block makes
  bool inverted = false;
  bool dither = false;
  bool truncate = false;
  BlockView blocks;
  CudaStatistics* statistics = nullptr;  ///< [channel][input] or null
};

/// Sizes of the kernel for K points.
template <int K>
struct FusedShape;
template <int K, int R1, int R2, int Warps, int Batch, int Stage, int MinBlocks>
struct FusedSizes {
  static_assert(R1 * R2 == K && R1 >= R2);
  static constexpr int kPoints = K;
  static constexpr int kR1 = R1;  ///< points of a thread in the first pass
  static constexpr int kR2 = R2;  ///< ... in the second; also the threads of one spectrum
  static constexpr int kWarps = Warps;
  static constexpr int kThreads = 32 * Warps;
  static constexpr int kPerWarp = 32 / R2;  ///< spectra a warp transforms at a time
  static constexpr int kBatch = Batch;      ///< spectra between two barriers
  static constexpr int kStage = Stage;      ///< spectra between two flushes
  static constexpr int kMinBlocks = MinBlocks;
  static constexpr int kSegment = Batch < 16 ? Batch : 16;  ///< spectra a thread filters in a row
  static constexpr int kPiece = Stage < 16 ? Stage : 16;    ///< spectra a thread flushes in a row
  static_assert(Batch % (Warps * kPerWarp) == 0 && Batch % kSegment == 0 && Stage % Batch == 0);
  // Rows of the exchange are padded against bank conflicts; spectra of 8
  // threads also among each other.
  static constexpr int kRegion = R1 * (R2 + 1) + (R2 == 8 ? 8 : 0);
  static constexpr int kPitch = 2 * Stage + 4;  ///< bytes of a staging row: an odd number of words
  static constexpr int kPage = 64;  ///< spectra whose ramps are read at a time; two pages are kept
  static_assert(kPage % Stage == 0);

  static constexpr int kTwiddlesAt = Batch * kRegion * 8;
  static constexpr int kGainsAt = kTwiddlesAt + K * 8;
  static constexpr int kKeysAt = kGainsAt + K * 8;
  static constexpr int kRampsAt = kKeysAt + K * 4;
  static constexpr int kFactorsAt = kRampsAt + 2 * kPage * 32;
  static constexpr int kSquaresAt = kFactorsAt + Warps * 32 * 8;
  static constexpr int kClipsAt = kSquaresAt + K * 4;
  static constexpr int kSlidesAt = kClipsAt + K * 4;
  static constexpr int kOriginAt = kSlidesAt + 2 * kPage / kSegment * 4;
  static constexpr int kStagingAt = kOriginAt + 16;
  static constexpr int kSharedBytes = kStagingAt + K * kPitch;
};
template <>
struct FusedShape<128> : FusedSizes<128, 16, 8, 8, 32, 32, 3> {};
template <>
struct FusedShape<256> : FusedSizes<256, 16, 16, 8, 16, 32, 3> {};
template <>
struct FusedShape<512> : FusedSizes<512, 32, 16, 8, 16, 16, 2> {};
template <>
struct FusedShape<1024> : FusedSizes<1024, 32, 32, 16, 16, 16, 1> {};

/// Where the root exp(-2 pi i k1 n2 / K) lies in `twiddles`, in float2: pairs
/// of k1 side by side.
constexpr int fused_twiddle_at(int r2, int k1, int n2) { return (k1 / 2 * r2 + n2) * 2 + k1 % 2; }

/// Phase turns of a place in radians for the fast sine: the top 32 bits of
/// 2^-64 turns, -1/2 .. 1/2.
__device__ __forceinline__ float2 fused_phasor(std::uint64_t turns) {
  const auto word = static_cast<float>(static_cast<int>(turns >> 32));
  float2 w;
  __sincosf(word * (6.283185307179586f * 0x1p-32f), &w.y, &w.x);
  return w;
}
__device__ __forceinline__ float2 fused_multiply(float2 a, float2 b) {
  return {fmaf(a.x, b.x, -(a.y * b.y)), fmaf(a.x, b.y, a.y * b.x)};
}

/// The words of shared memory of one thread block.
template <class S>
struct FusedMemory {
  unsigned char* base;
  __device__ float2* region(int spectrum) const {
    return reinterpret_cast<float2*>(base) + spectrum * S::kRegion;
  }
  __device__ float4* twiddles() const { return reinterpret_cast<float4*>(base + S::kTwiddlesAt); }
  __device__ float2* gains() const { return reinterpret_cast<float2*>(base + S::kGainsAt); }
  __device__ unsigned* keys() const { return reinterpret_cast<unsigned*>(base + S::kKeysAt); }
  /// Of a spectrum of the thread block; batches do not straddle pages.
  __device__ CudaRamp* ramps(int spectrum) const {
    return reinterpret_cast<CudaRamp*>(base + S::kRampsAt) + spectrum % (2 * S::kPage);
  }
  __device__ float2* factors(int warp) const {
    return reinterpret_cast<float2*>(base + S::kFactorsAt) + warp * 32;
  }
  __device__ unsigned* squares() const { return reinterpret_cast<unsigned*>(base + S::kSquaresAt); }
  __device__ unsigned* clips() const { return reinterpret_cast<unsigned*>(base + S::kClipsAt); }
  /// Not 0 where the windows of the segment's spectra are all valid and K
  /// samples apart.
  __device__ unsigned& slides(int spectrum) const {
    return reinterpret_cast<unsigned*>(base +
                                       S::kSlidesAt)[spectrum % (2 * S::kPage) / S::kSegment];
  }
  /// Place 0 of this input in the first block of the call.
  __device__ std::byte*& origin() const {
    return *reinterpret_cast<std::byte**>(base + S::kOriginAt);
  }
  __device__ unsigned char* staging() const { return base + S::kStagingAt; }
};

/// The lowest byte of a word, two's complement, in one instruction.
__device__ __forceinline__ float fused_low_byte(unsigned word) {
#ifdef __CUDACC__
  float value;
  asm("cvt.rn.f32.s8 %0, %1;" : "=f"(value) : "r"(word));
  return value;
#else
  return static_cast<float>(static_cast<signed char>(word & 255u));
#endif
}

/// One complex sample; kStride: bytes from sample to sample, 0: as the layout
/// says.
template <int kStride>
struct FusedReader {
  const unsigned char* start;
  std::int64_t stride_bytes;
  bool odd;
  __device__ FusedReader(const FusedArguments& a, int input, std::int64_t sample)
      : stride_bytes(a.sample_stride_bytes), odd(a.odd) {
    const std::int64_t stride = kStride > 0 ? kStride : a.sample_stride_bytes;
    start = static_cast<const unsigned char*>(a.samples) + input * a.input_stride_bytes +
            sample * stride;
  }
  __device__ __forceinline__ float2 at(int offset) const {
    const unsigned char* from =
        kStride > 0 ? start + offset * kStride : start + offset * stride_bytes;
    const unsigned word = kStride == 0 && odd ? from[0] | unsigned{from[1]} << 8
                                              : *reinterpret_cast<const unsigned short*>(from);
    return {fused_low_byte(word), fused_low_byte(word >> 8)};
  }
};

/// Where gains and keys of a place lie: places k1 + R1 r and k1 + R1 (r + 1), r even, side by side,
/// so that a thread reads two at once.
template <class S>
__device__ int fused_pair_at(int place) {
  const int k1 = place % S::kR1;
  const int r = place / S::kR1;
  return (r / 2 * S::kR1 + k1) * 2 + r % 2;
}

/// What is the same for all spectra of the thread block.
template <class S>
__device__ void fused_prepare(const FusedArguments& a, const FusedMemory<S>& memory, int input) {
  const int t = static_cast<int>(threadIdx.x);
  const std::uint32_t input_key = dither_input_key(input);
  if (t == 0) {
    memory.origin() = a.blocks.data + input * a.blocks.input_stride_bytes +
                      (a.inverted ? S::kPoints - 1 : 0) * a.blocks.channel_stride_bytes;
  }
  for (int k = t; k < S::kPoints / 2; k += S::kThreads) memory.twiddles()[k] = a.twiddles[k];
  for (int place = t; place < S::kPoints; place += S::kThreads) {
    const int channel = a.inverted ? S::kPoints - 1 - place : place;
    const std::uint32_t key = a.channel_keys[channel] ^ input_key;
    // The first step of dither_mix(), x ^ x >> 16, is linear: half of it is
    // done here.
    const int at = fused_pair_at<S>(place);
    memory.keys()[at] = key ^ key >> 16;
    memory.gains()[at] = a.gains[static_cast<std::int64_t>(input) * S::kPoints + channel];
    memory.squares()[place] = 0;
    memory.clips()[place] = 0;
  }
}

/// Ramp of spectrum i of the call, of places: all 0 beyond the last one.
template <class S>
__device__ CudaRamp fused_ramp(const FusedArguments& a, int input, int i) {
  CudaRamp ramp{};
  if (i < a.n_spectra) ramp = a.ramps[input * a.max_spectra + i];
  ramp.dither_key ^= ramp.dither_key >> 16;
  if (a.inverted) {  // channel K-1-c'
    ramp.base += static_cast<std::uint64_t>(S::kPoints - 1) * ramp.slope;
    ramp.slope = ~ramp.slope + 1;
  }
  return ramp;
}

/// Ramps of the page of spectra [page, page + kPage) of the thread block; i:
/// the first one's index in the call.
template <class S>
__device__ void fused_read_page(const FusedArguments& a, const FusedMemory<S>& memory, int input,
                                int page, int i) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= S::kPage) return;  // whole warps
  const CudaRamp ramp = fused_ramp<S>(a, input, i + t);
  *memory.ramps(page + t) = ramp;
  const int s = t % S::kSegment;
  const auto first = __shfl_sync(0xffffffffu, static_cast<long long>(ramp.begin), 0, S::kSegment);
  const bool slides =
      ramp.valid != 0 && ramp.begin == first + static_cast<std::int64_t>(s) * S::kPoints;
  const unsigned votes = __ballot_sync(0xffffffffu, slides) >> (t % 32 - s);
  constexpr unsigned kAll = (1u << S::kSegment) - 1u;
  if (s == 0) memory.slides(page + t) = (votes & kAll) == kAll ? 1u : 0u;
}

/// Brings the line of this byte to the L2 cache.
__device__ __forceinline__ void fused_prefetch(const unsigned char* at) {
#ifdef __CUDACC__
  asm volatile("prefetch.global.L2 [%0];\n" ::"l"(at));
#else
  static_cast<void>(*static_cast<const volatile unsigned char*>(at));  // must be readable
#endif
}

/// Has the samples that the spectra from `next` on read first brought to the L2
/// cache.
template <class S, int kTaps, int kStride>
__device__ void fused_fetch_ahead(const FusedArguments& a, const FusedMemory<S>& memory, int input,
                                  int next) {
  if constexpr (kStride > 0) {
    constexpr int kLine = 128 / kStride;  // samples
    for (int k = static_cast<int>(threadIdx.x); k < S::kBatch * (S::kPoints / kLine);
         k += S::kThreads) {
      const CudaRamp& ramp = *memory.ramps(next + k / (S::kPoints / kLine));
      if (ramp.valid == 0) continue;
      const std::int64_t sample =
          ramp.begin - a.first_tick + (kTaps - 1) * S::kPoints + k % (S::kPoints / kLine) * kLine;
      const auto* at = static_cast<const unsigned char*>(a.samples) + input * a.input_stride_bytes +
                       sample * kStride;
      fused_prefetch(at);
    }
  }
}

/// Filtered points of one position of the 16 spectra of a segment. Sums run
/// over the taps in ascending order whether windows slide or not: same bits.
template <class S, int kTaps, int kStride>
__device__ void fused_filter(const FusedArguments& a, const FusedMemory<S>& memory, int input,
                             int batch) {
  constexpr int kSegment = S::kSegment;
  for (int task = static_cast<int>(threadIdx.x); task < S::kPoints * (S::kBatch / kSegment);
       task += S::kThreads) {
    const int n = task % S::kPoints;
    const int first = task / S::kPoints * kSegment;  // of the batch
    const CudaRamp* ramps = memory.ramps(batch + first);
    float2* out = memory.region(first) + n;
    float h[kTaps];
#pragma unroll
    for (int p = 0; p < kTaps; ++p) h[p] = a.filter[p * S::kPoints + n];
    if (memory.slides(batch + first) != 0) {
      const FusedReader<kStride> samples(a, input, ramps[0].begin - a.first_tick + n);
      float2 sum[kSegment];
#pragma unroll
      for (int row = 0; row < kSegment + kTaps - 1; ++row) {
        const float2 x = samples.at(row * S::kPoints);
#pragma unroll
        for (int p = 0; p < kTaps; ++p) {
          const int s = row - p;
          if (s < 0 || s >= kSegment) continue;
          sum[s].x = p == 0 ? h[0] * x.x : fmaf(h[p], x.x, sum[s].x);
          sum[s].y = p == 0 ? h[0] * x.y : fmaf(h[p], x.y, sum[s].y);
        }
        if (row >= kTaps - 1) out[(row - kTaps + 1) * S::kRegion] = sum[row - kTaps + 1];
      }
    } else {
      for (int s = 0; s < kSegment; ++s) {
        float2 sum = {0, 0};
        if (ramps[s].valid != 0) {
          const FusedReader<kStride> samples(a, input, ramps[s].begin - a.first_tick + n);
#pragma unroll
          for (int p = 0; p < kTaps; ++p) {
            const float2 x = samples.at(p * S::kPoints);
            sum.x = p == 0 ? h[0] * x.x : fmaf(h[p], x.x, sum.x);
            sum.y = p == 0 ? h[0] * x.y : fmaf(h[p], x.y, sum.y);
          }
        }
        out[s * S::kRegion] = sum;
      }
    }
  }
}

/// Phase (if any), gain and dither of the R2 channels of a thread.
/// @eq y = S g exp(2 pi i (base + c' slope)) + u,  c' = k1 + R1 r; factors[r] =
/// exp(2 pi i R1 r slope)
template <class S, bool kPhases, bool kDither>
__device__ __forceinline__ void fused_scale(const float4* gains, const int2* keys,
                                            const float4* factors, float2 phasor,
                                            unsigned spectrum_key, float2 (&v)[S::kR2]) {
#pragma unroll
  for (int pair = 0; pair < S::kR2 / 2; ++pair) {
    const float4 two_gains = gains[pair * S::kR1];
    const float4 two_factors = kPhases ? factors[pair] : float4{};
    const int2 two_keys = kDither ? keys[pair * S::kR1] : int2{};
#pragma unroll
    for (int one = 0; one < 2; ++one) {
      float2& y = v[(2 * pair + one + S::kR2 / 2) % S::kR2];
      float2 g = one == 0 ? float2{two_gains.x, two_gains.y} : float2{two_gains.z, two_gains.w};
      if constexpr (kPhases) {
        const float2 factor =
            one == 0 ? float2{two_factors.x, two_factors.y} : float2{two_factors.z, two_factors.w};
        g = fused_multiply(fused_multiply(phasor, factor), g);
      }
      y = fused_multiply(y, g);
      if constexpr (kDither) {
        unsigned x = static_cast<unsigned>(one == 0 ? two_keys.x : two_keys.y) ^ spectrum_key;
        x *= 0x7feb352du;  // dither_mix() without its first step
        x ^= x >> 15;
        x *= 0x846ca68bu;
        const int re = static_cast<int>((x & 0xffff0000u) | 0x8000u);
        const int im = static_cast<int>((((x << 16) ^ x) & 0xffff0000u) | 0x8000u);
        y = {fmaf(static_cast<float>(re), 0x1p-32f, y.x),
             fmaf(static_cast<float>(im), 0x1p-32f, y.y)};
      }
    }
  }
}

__device__ __forceinline__ float fused_clip(float y, float limit, bool truncate, unsigned* clips) {
  float code = truncate ? truncf(y) : rintf(y);
  if (code > limit) {
    atomicAdd(clips, 0x10000u);
    code = limit;
  } else if (code < -limit) {
    atomicAdd(clips, 1u);
    code = -limit;
  }
  return code;
}

/// Codes of the R2 channels of a thread, k1 + R1 r, to the staging column of
/// their spectrum.
template <class S>
__device__ void fused_finish(const FusedArguments& a, const FusedMemory<S>& memory, int k1,
                             const CudaRamp& ramp, const float4* factors, int column,
                             float2 (&v)[S::kR2]) {
  constexpr int kR1 = S::kR1;
  constexpr int kR2 = S::kR2;
  unsigned char* out = memory.staging() + k1 * S::kPitch + 2 * column;
  if (ramp.valid == 0) {
#pragma unroll
    for (int r = 0; r < kR2; ++r) *reinterpret_cast<unsigned short*>(out + r * kR1 * S::kPitch) = 0;
    return;
  }
  if (a.inverted) {
#pragma unroll
    for (int r = 0; r < kR2; ++r) v[r].y = -v[r].y;
  }
  const auto* gains = reinterpret_cast<const float4*>(memory.gains()) + k1;
  const auto* keys = reinterpret_cast<const int2*>(memory.keys()) + k1;
  if ((ramp.base | ramp.slope) == 0) {
    if (a.dither) {
      fused_scale<S, false, true>(gains, keys, factors, {1, 0}, ramp.dither_key, v);
    } else {
      fused_scale<S, false, false>(gains, keys, factors, {1, 0}, 0, v);
    }
  } else {
    const float2 phasor = fused_phasor(ramp.base + static_cast<std::uint64_t>(k1) * ramp.slope);
    if (a.dither) {
      fused_scale<S, true, true>(gains, keys, factors, phasor, ramp.dither_key, v);
    } else {
      fused_scale<S, true, false>(gains, keys, factors, phasor, 0, v);
    }
  }
  float maximum = 0;
#pragma unroll
  for (int r = 0; r < kR2; ++r) maximum = fmaxf(maximum, fmaxf(fabsf(v[r].x), fabsf(v[r].y)));
  const float limit = a.blocks.format == SampleFormat::ci8 ? 127.0f : 7.0f;
  if (maximum >= limit + 0.5f || a.truncate) {
    unsigned* clips = memory.clips() + k1;
#pragma unroll
    for (int r = 0; r < kR2; ++r) {
      const int k2 = (r + kR2 / 2) % kR2;
      v[k2].x = fused_clip(v[k2].x, limit, a.truncate, clips + r * kR1);
      v[k2].y = fused_clip(v[k2].y, limit, a.truncate, clips + r * kR1);
    }
  }
#pragma unroll
  for (int r = 0; r < kR2; ++r) {
    const int k2 = (r + kR2 / 2) % kR2;
    // Adding 1.5 2^23 rounds to an integer, ties to even, in the low bits.
    const auto re = static_cast<unsigned>(__float_as_int(v[k2].x + 12582912.0f));
    const auto im = static_cast<unsigned>(__float_as_int(v[k2].y + 12582912.0f));
    *reinterpret_cast<unsigned short*>(out + r * kR1 * S::kPitch) =
        static_cast<unsigned short>(__byte_perm(re, im, 0x0040));
  }
}

/// The spectra of the batch, each by R2 threads of one warp.
template <class S>
__device__ void fused_transform(const FusedArguments& a, const FusedMemory<S>& memory, int batch) {
  constexpr int kR1 = S::kR1;
  constexpr int kR2 = S::kR2;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int l = lane % kR2;
  float2* factors = memory.factors(warp) + lane / kR2 * kR2;
  for (int first = 0; first < S::kBatch; first += S::kWarps * S::kPerWarp) {
    const int spectrum = first + warp * S::kPerWarp + lane / kR2;
    float2* region = memory.region(spectrum);
    const CudaRamp& ramp = *memory.ramps(batch + spectrum);  // read late: registers are few
    {
      float2 v[kR1];
#pragma unroll
      for (int n1 = 0; n1 < kR1; ++n1) v[n1] = region[l + kR2 * n1];
      Fourier<kR1>::run(v);
#pragma unroll
      for (int pair = 0; pair < kR1 / 2; ++pair) {
        const float4 w = memory.twiddles()[pair * kR2 + l];
        if (pair > 0) v[2 * pair] = fused_multiply(v[2 * pair], {w.x, w.y});
        v[2 * pair + 1] = fused_multiply(v[2 * pair + 1], {w.z, w.w});
      }
      factors[l] = fused_phasor(static_cast<std::uint64_t>(kR1 * l) * ramp.slope);
      __syncwarp();
#pragma unroll
      for (int pair = 0; pair < kR1 / 2; ++pair) {
        reinterpret_cast<float4*>(region)[pair * (kR2 + 1) + l] = {
            v[2 * pair].x, v[2 * pair].y, v[2 * pair + 1].x, v[2 * pair + 1].y};
      }
    }
    __syncwarp();
#pragma unroll
    for (int b = 0; b < kR1 / kR2; ++b) {
      const int k1 = l + b * kR2;
      float2 v[kR2];
#pragma unroll
      for (int n2 = 0; n2 < kR2; ++n2) v[n2] = region[(k1 / 2 * (kR2 + 1) + n2) * 2 + k1 % 2];
      Fourier<kR2>::run(v);
      fused_finish<S>(a, memory, k1, ramp, reinterpret_cast<const float4*>(factors),
                      (batch + spectrum) % S::kStage, v);
    }
    __syncwarp();  // the factors are done with
  }
}

__device__ __forceinline__ void fused_store(std::byte* to, const unsigned (&word)[4]) {
  *reinterpret_cast<uint4*>(to) = {word[0], word[1], word[2], word[3]};
}
__device__ __forceinline__ void fused_store(std::byte* to, const unsigned (&word)[2]) {
  *reinterpret_cast<int2*>(to) = {static_cast<int>(word[0]), static_cast<int>(word[1])};
}

/// Staged codes of kPiece spectra of a channel at a time to the blocks, and
/// their squares to the sums. spectrum: of the call, in column 0.
template <class S>
__device__ void fused_flush(const FusedArguments& a, const FusedMemory<S>& memory, int spectrum) {
  constexpr int kWords = S::kPiece / 2;  // of two samples
  constexpr int kPieces = S::kStage / S::kPiece;
  constexpr int kStep = S::kThreads / kPieces;  // places
  const int first = static_cast<int>(threadIdx.x) / kPieces;
  const int piece = static_cast<int>(threadIdx.x) % kPieces;
  const bool bytes = a.blocks.format == SampleFormat::ci8;
  const int block = bytes ? spectrum / 64 : spectrum / 128;
  const int t = (bytes ? spectrum % 64 : spectrum % 128) + piece * S::kPiece;
  const std::int64_t stride =
      a.inverted ? -a.blocks.channel_stride_bytes : a.blocks.channel_stride_bytes;
  std::byte* cell = memory.origin() + block * a.blocks.block_stride_bytes + first * stride +
                    (bytes ? t / 32 * 64 + t % 32 : t);
  const unsigned char* row = memory.staging() + first * S::kPitch + piece * 2 * S::kPiece;
#pragma unroll
  for (int place = 0; place < S::kPoints; place += kStep) {
    if (S::kPoints % kStep != 0 && first + place >= S::kPoints) break;
    const auto* from = reinterpret_cast<const unsigned*>(row + place * S::kPitch);
    unsigned word[kWords];
    int squares = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      word[k] = from[k];
      squares = __dp4a(static_cast<int>(word[k]), static_cast<int>(word[k]), squares);
    }
    atomicAdd(&memory.squares()[first + place], static_cast<unsigned>(squares));
    unsigned re[kWords / 2];
    unsigned im[kWords / 2];
#pragma unroll
    for (int k = 0; k < kWords / 2; ++k) {
      re[k] = __byte_perm(word[2 * k], word[2 * k + 1], 0x6420);
      im[k] = __byte_perm(word[2 * k], word[2 * k + 1], 0x7531);
    }
    if (bytes) {
      fused_store(cell, re);
      fused_store(cell + 32, im);
    } else {
#pragma unroll
      for (int k = 0; k < kWords / 2; ++k)
        re[k] = (re[k] << 4 & 0xf0f0f0f0u) | (im[k] & 0x0f0f0f0fu);
      fused_store(cell, re);
    }
    cell += kStep * stride;
  }
}

/// Of the thread block's spectra, to those of the call.
template <class S>
__device__ void fused_add_statistics(const FusedArguments& a, const FusedMemory<S>& memory,
                                     int input) {
  for (int place = static_cast<int>(threadIdx.x); place < S::kPoints; place += S::kThreads) {
    const int channel = a.inverted ? S::kPoints - 1 - place : place;
    CudaStatistics* to = a.statistics + static_cast<std::int64_t>(channel) * a.n_inputs + input;
    const unsigned clips = memory.clips()[place];
    if ((clips & 0xffffu) != 0) atomicAdd(&to->saturated_low, clips & 0xffffu);
    if (clips >> 16 != 0) atomicAdd(&to->saturated_high, clips >> 16);
    atomicAdd(&to->squares.integer, static_cast<unsigned long long>(memory.squares()[place]));
  }
}

/// See the head of this file. Grid: groups of blocks_per_group output blocks x inputs, inputs
/// fastest. kStride: bytes from sample to sample, 0 where they are not dense.
template <int K, int kTaps, int kStride>
__global__ void __launch_bounds__(FusedShape<K>::kThreads, FusedShape<K>::kMinBlocks)
    fused_channelize(const __grid_constant__ FusedArguments a) {
  using S = FusedShape<K>;
  const FusedMemory<S> memory{static_cast<unsigned char*>(cuda::dynamic_shared())};
  const int per_block = a.blocks.format == SampleFormat::ci8 ? 64 : 128;
  const int group = static_cast<int>(blockIdx.x) / a.n_inputs;
  const int input = static_cast<int>(blockIdx.x) - group * a.n_inputs;
  const int first_block = group * a.blocks_per_group;
  const int first = first_block * per_block;  // spectrum of the call
  const int n_blocks =
      min(a.blocks_per_group, (a.n_spectra + per_block - 1) / per_block - first_block);
  const int n_spectra = n_blocks * per_block;
  fused_prepare<S>(a, memory, input);
  fused_read_page<S>(a, memory, input, 0, first);
  __syncthreads();
  for (int batch = 0; batch < n_spectra; batch += S::kBatch) {
    if (batch % S::kPage == 0 && batch + S::kPage < n_spectra)
      fused_read_page<S>(a, memory, input, batch + S::kPage, first + batch + S::kPage);
    fused_filter<S, kTaps, kStride>(a, memory, input, batch);
    if (batch > 0 && batch % S::kStage == 0) fused_flush<S>(a, memory, first + batch - S::kStage);
    __syncthreads();
    if (batch + S::kBatch < n_spectra)
      fused_fetch_ahead<S, kTaps, kStride>(a, memory, input, batch + S::kBatch);
    fused_transform<S>(a, memory, batch);
    __syncthreads();
  }
  fused_flush<S>(a, memory, first + n_spectra - S::kStage);
  if (a.statistics == nullptr) return;
  __syncthreads();
  fused_add_statistics<S>(a, memory, input);
}

}  // namespace ryle::channelize::detail
