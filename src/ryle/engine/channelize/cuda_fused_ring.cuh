// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/channelize/cuda_fused.cuh"

/// The fused kernel for many channels, with its filter and its transform on warps of their own: one
/// thread block fills a multiprocessor, so no other would work while all of it waits for samples.
///
///   filter warps     a thread owns kOwn positions modulo K; partial sums of the P spectra under
///                    way stay in its registers from spectrum to spectrum, each sample is read and
///                    converted once
///   ring             filtered spectra in shared memory; a slot belongs to one transform warp
///   transform warps  a spectrum each, as in cuda_fused.cuh, and the flush of staged codes
namespace ryle::channelize::detail {

template <int K>
struct RingShape;
/// Unit: spectra that a warp transforms from one slot of the ring. Ahead: units whose newest
/// samples are under way.
template <int K, int R1, int R2, int TransformWarps, int FilterWarps, int Unit, int Slots,
          int Ahead, int Stage, int Page, int MinBlocks = 1>
struct RingSizes {
  static_assert(R1 * R2 == K && R1 >= R2);
  static constexpr int kPoints = K;
  static constexpr int kR1 = R1;
  static constexpr int kR2 = R2;
  static constexpr int kPerWarp = 32 / R2;
  static constexpr int kWarps = TransformWarps;
  static constexpr int kThreads = 32 * TransformWarps;
  static constexpr int kFilterThreads = 32 * FilterWarps;
  static constexpr int kFilterWarps = FilterWarps;
  static constexpr int kAllThreads = kThreads + kFilterThreads;
  static constexpr int kOwn = K / kFilterThreads;  ///< positions of a filter thread
  static constexpr int kUnit = Unit;
  static constexpr int kSegment = Unit;
  static constexpr int kSlots = Slots;
  static constexpr int kAhead = Ahead;
  static constexpr int kStage = Stage;
  static constexpr int kPiece = Stage < 16 ? Stage : 16;
  static constexpr int kPage = Page;
  static constexpr int kMinBlocks = MinBlocks;
  static constexpr int kFar = 16;  ///< spectra whose newest samples are asked for
  static_assert(kOwn * kFilterThreads == K && Unit % kPerWarp == 0);
  static_assert(Slots % kWarps == 0, "who waits for a slot must see each of its phases");
  static_assert(Stage % (Unit * kWarps) == 0 && 64 % Stage == 0 && 64 % (Unit * Ahead) == 0);
  // A page is replaced half a page after its last spectrum was filtered, and read half a page after
  // it was written: the ring, which is shorter, has made both seen.
  static_assert((Slots + kWarps) * Unit <= Page / 2 && Slots * Unit + kFar <= Page / 2 &&
                Ahead * Unit <= kFar && Page <= kFilterThreads);
  static constexpr int kRegion = R1 * (R2 + 1) + (R2 == 8 ? 8 : 0);
  static constexpr int kPitch = 2 * Stage + 4;

  static constexpr int kTwiddlesAt = Slots * Unit * kRegion * 8;
  static constexpr int kGainsAt = kTwiddlesAt + K * 8;
  static constexpr int kKeysAt = kGainsAt + K * 8;
  static constexpr int kRampsAt = kKeysAt + K * 4;
  static constexpr int kFactorsAt = kRampsAt + 2 * kPage * 32;
  static constexpr int kSquaresAt = kFactorsAt + kWarps * 32 * 8;
  static constexpr int kClipsAt = kSquaresAt + K * 4;
  static constexpr int kBarriersAt = kClipsAt + K * 4;
  static constexpr int kSlidesAt = kBarriersAt + (2 * Slots + 2) * 8;
  static constexpr int kOriginAt = kSlidesAt + (2 * kPage / kSegment * 4 + 15) / 16 * 16;
  static constexpr int kStagingAt = kOriginAt + 16;
  static constexpr int kSharedBytes = kStagingAt + K * kPitch;
};
template <>
struct RingShape<256> : RingSizes<256, 16, 16, 16, 8, 2, 32, 4, 32, 256> {};
template <>
struct RingShape<512> : RingSizes<512, 32, 16, 8, 8, 2, 16, 2, 32, 128> {};
template <>
struct RingShape<1024> : RingSizes<1024, 32, 32, 8, 8, 1, 16, 2, 16, 64> {};

/// Barriers of the ring.
template <class S>
struct RingBarriers {
  std::uint64_t* first;
  __device__ explicit RingBarriers(const FusedMemory<S>& memory)
      : first(reinterpret_cast<std::uint64_t*>(memory.base + S::kBarriersAt)) {}
  __device__ std::uint64_t* full(int slot) const { return first + slot; }
  __device__ std::uint64_t* empty(int slot) const { return first + S::kSlots + slot; }
  __device__ std::uint64_t* staged() const { return first + 2 * S::kSlots; }
  __device__ std::uint64_t* flushed() const { return first + 2 * S::kSlots + 1; }
  __device__ void begin() const {
    for (int slot = 0; slot < S::kSlots; ++slot) {
      cuda::begin_barrier(full(slot), S::kFilterWarps);
      cuda::begin_barrier(empty(slot), 1);
    }
    cuda::begin_barrier(staged(), S::kWarps);
    cuda::begin_barrier(flushed(), S::kWarps);
    cuda::barriers_begun();
  }
};
/// What the warp wrote and read is done with, for who waits.
__device__ __forceinline__ void ring_arrive(std::uint64_t* barrier) {
  __syncwarp();
  if (threadIdx.x % 32 == 0) cuda::arrive(barrier);
}

/// Ramps of the spectra [page, page + kPage) by the threads t = 0 .. kPage - 1, and which units of
/// them slide on from the spectrum before; i: the first one's index in the call.
template <class S>
__device__ void ring_read_page(const FusedArguments& a, const FusedMemory<S>& memory, int input,
                               int t, int page, int i) {
  if (t >= S::kPage) return;  // whole warps
  const CudaRamp ramp = fused_ramp<S>(a, input, i + t);
  *memory.ramps(page + t) = ramp;
  bool slides = ramp.valid != 0 && page + t > 0;
  if (slides) {
    const CudaRamp& before = a.ramps[input * a.max_spectra + i + t - 1];
#if RYLE_MUTANT == 1636
    slides = before.valid != 0;
#else
    slides = before.valid != 0 && before.begin + S::kPoints == ramp.begin;
#endif
  }
  const unsigned votes = __ballot_sync(0xffffffffu, slides) >> (t % 32 / S::kUnit * S::kUnit);
  constexpr unsigned kAll = (1u << S::kUnit) - 1u;
  if (t % S::kUnit == 0) memory.slides(page + t) = (votes & kAll) == kAll ? 1u : 0u;
}

/// Partial sums of the spectra under way at one position: part[p] is that of taps 0 .. p.
template <int kTaps>
struct RingSums {
  float2 part[kTaps - 1];
  /// Takes the next sample; returns the sum it completes. Taps are added in ascending order.
  __device__ __forceinline__ float2 take(const float (&h)[kTaps], float2 x) {
    const float2 whole = {fmaf(h[kTaps - 1], x.x, part[kTaps - 2].x),
                          fmaf(h[kTaps - 1], x.y, part[kTaps - 2].y)};
#pragma unroll
    for (int p = kTaps - 2; p > 0; --p)
      part[p] = {fmaf(h[p], x.x, part[p - 1].x), fmaf(h[p], x.y, part[p - 1].y)};
    part[0] = {h[0] * x.x, h[0] * x.y};
    return whole;
  }
};

/// What a filter thread keeps: positions t + kFilterThreads j.
template <class S, int kTaps, int kStride>
struct RingFilter {
  static constexpr int kOwn = S::kOwn;
  const FusedArguments& a;
  const FusedMemory<S>& memory;
  int input, t;
  float h[kOwn][kTaps];
  RingSums<kTaps> sums[kOwn];

  __device__ RingFilter(const FusedArguments& arguments, const FusedMemory<S>& shared, int of_input,
                        int thread)
      : a(arguments), memory(shared), input(of_input), t(thread) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
#pragma unroll
      for (int p = 0; p < kTaps; ++p)
        h[j][p] = a.filter[p * S::kPoints + j * S::kFilterThreads + t];
#pragma unroll
      for (int p = 0; p < kTaps - 1; ++p) sums[j].part[p] = {0, 0};
    }
  }
  __device__ __forceinline__ FusedReader<kStride> reader(int spectrum) const {
    return {a, input, memory.ramps(spectrum)->begin - a.first_tick + t};
  }
  /// The newest samples of the unit that begins with this spectrum, if its windows slide.
  __device__ __forceinline__ void fetch(int spectrum, unsigned (&to)[S::kUnit][kOwn]) const {
    if (memory.slides(spectrum) == 0) return;
    const auto samples = reader(spectrum);
#pragma unroll
    for (int u = 0; u < S::kUnit; ++u) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j)
        to[u][j] = samples.word((kTaps - 1 + u) * S::kPoints + j * S::kFilterThreads);
    }
  }
  /// Has the newest samples of the unit brought to the L2 cache.
  __device__ __forceinline__ void fetch_far(int spectrum) const {
    if constexpr (kStride > 0) {
      constexpr int kLine = 128 / kStride;  // samples
      constexpr int kLines = S::kPoints / kLine;
      static_assert(S::kUnit * kLines <= S::kFilterThreads);
      if (t >= S::kUnit * kLines) return;
      const CudaRamp& ramp = *memory.ramps(spectrum + t / kLines);
      if (ramp.valid == 0) return;
      const std::int64_t sample =
          ramp.begin - a.first_tick + (kTaps - 1) * S::kPoints + t % kLines * kLine;
      fused_prefetch(static_cast<const unsigned char*>(a.samples) + input * a.input_stride_bytes +
                     sample * kStride);
    }
  }
  __device__ __forceinline__ void slide(int slot, const unsigned (&words)[S::kUnit][kOwn]) {
#pragma unroll
    for (int u = 0; u < S::kUnit; ++u) {
      float2* out = memory.region(slot * S::kUnit + u) + t;
#pragma unroll
      for (int j = 0; j < kOwn; ++j)
        out[j * S::kFilterThreads] =
            sums[j].take(h[j], {fused_low_byte(words[u][j]), fused_low_byte(words[u][j] >> 8)});
    }
  }
  /// Windows one by one; the last one's sums are ready to slide on.
  __device__ void start(int slot, int spectrum) {
#pragma unroll 1
    for (int u = 0; u < S::kUnit; ++u) {
      if (memory.ramps(spectrum + u)->valid == 0) continue;
      const auto samples = reader(spectrum + u);
      float2* out = memory.region(slot * S::kUnit + u) + t;
#pragma unroll 1
      for (int p = 0; p < kTaps; ++p) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) {
          const float2 sum = sums[j].take(h[j], samples.at(p * S::kPoints + j * S::kFilterThreads));
          if (p == kTaps - 1) out[j * S::kFilterThreads] = sum;
        }
      }
    }
  }
};

/// All spectra of the thread block by filter thread t.
template <class S, int kTaps, int kStride>
__device__ void ring_filter(const FusedArguments& a, const FusedMemory<S>& memory, int input, int t,
                            int first, int n_spectra) {
  const RingBarriers<S> barriers(memory);
  RingFilter<S, kTaps, kStride> filter(a, memory, input, t);
  constexpr int kStep = S::kAhead * S::kUnit;
  unsigned next[S::kAhead][S::kUnit][S::kOwn] = {};
  for (int spectrum = 0; spectrum < S::kFar; spectrum += S::kUnit) filter.fetch_far(spectrum);
#pragma unroll
  for (int k = 0; k < S::kAhead; ++k) filter.fetch(k * S::kUnit, next[k]);
  for (int base = 0; base < n_spectra; base += kStep) {
    if (base % S::kPage == S::kPage / 2 && base + S::kPage / 2 < n_spectra)
      ring_read_page<S>(a, memory, input, t, base + S::kPage / 2, first + base + S::kPage / 2);
#pragma unroll
    for (int k = 0; k < S::kAhead; ++k) {
      const int spectrum = base + k * S::kUnit;
      const int unit = spectrum / S::kUnit;
      const int slot = unit % S::kSlots;
      if (spectrum + S::kFar < n_spectra) filter.fetch_far(spectrum + S::kFar);
#if RYLE_MUTANT != 1637
      cuda::await(barriers.empty(slot), ((unit / S::kSlots) & 1) ^ 1);
#endif
      if (memory.slides(spectrum) != 0) {
        filter.slide(slot, next[k]);
      } else {
        filter.start(slot, spectrum);
      }
      ring_arrive(barriers.full(slot));
      if (spectrum + kStep < n_spectra) filter.fetch(spectrum + kStep, next[k]);
    }
  }
}

/// First pass of a spectrum by R2 threads, in place: R1 points a thread.
template <class S>
__device__ __forceinline__ void ring_first_pass(const FusedMemory<S>& memory, float2* region,
                                                int l) {
  constexpr int kR1 = S::kR1;
  constexpr int kR2 = S::kR2;
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
  __syncwarp();
#pragma unroll
  for (int pair = 0; pair < kR1 / 2; ++pair) {
    reinterpret_cast<float4*>(region)[pair * (kR2 + 1) + l] = {
        v[2 * pair].x, v[2 * pair].y, v[2 * pair + 1].x, v[2 * pair + 1].y};
  }
}

/// Units w, w + kWarps, ... of the thread block by transform warp w, and its part of the flush.
template <class S>
__device__ void ring_transform(const FusedArguments& a, const FusedMemory<S>& memory, int first,
                               int n_spectra) {
  constexpr int kR1 = S::kR1;
  constexpr int kR2 = S::kR2;
  constexpr int kUnitsOfStage = S::kStage / S::kUnit;
  const RingBarriers<S> barriers(memory);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int l = lane % kR2;
  float2* factors = memory.factors(warp) + lane / kR2 * kR2;
  for (int unit = warp; unit < n_spectra / S::kUnit; unit += S::kWarps) {
    const int slot = unit % S::kSlots;
    const int stage = unit / kUnitsOfStage;
#if RYLE_MUTANT != 1638
    cuda::await(barriers.full(slot), (unit / S::kSlots) & 1);
#endif
#pragma unroll 1
    for (int u = 0; u < S::kUnit; u += S::kPerWarp) {
      const int in_unit = u + lane / kR2;
      const int spectrum = unit * S::kUnit + in_unit;
      float2* region = memory.region(slot * S::kUnit + in_unit);
      const CudaRamp& ramp = *memory.ramps(spectrum);  // read late, registers are few
      factors[l] = fused_phasor(static_cast<std::uint64_t>(kR1 * l) * ramp.slope);
      ring_first_pass<S>(memory, region, l);
      __syncwarp();
#pragma unroll
      for (int b = 0; b < kR1 / kR2; ++b) {
        const int k1 = l + b * kR2;
        float2 v[kR2];
#pragma unroll
        for (int n2 = 0; n2 < kR2; ++n2) v[n2] = region[(k1 / 2 * (kR2 + 1) + n2) * 2 + k1 % 2];
        if (u + S::kPerWarp == S::kUnit && b == kR1 / kR2 - 1) ring_arrive(barriers.empty(slot));
        Fourier<kR2>::run(v);
#if RYLE_MUTANT != 1639
        if (u == 0 && b == 0 && unit % kUnitsOfStage < S::kWarps)
          cuda::await(barriers.flushed(), (stage & 1) ^ 1);
#endif
        fused_finish<S>(a, memory, k1, ramp, reinterpret_cast<const float4*>(factors),
                        spectrum % S::kStage, v);
      }
      __syncwarp();  // the factors are done with
    }
    if (unit % kUnitsOfStage >= kUnitsOfStage - S::kWarps) {
      ring_arrive(barriers.staged());
#if RYLE_MUTANT != 1640
      cuda::await(barriers.staged(), stage & 1);
#endif
      fused_flush<S>(a, memory, first + stage * S::kStage);
      ring_arrive(barriers.flushed());
    }
  }
}

template <class S, int kTaps, int kStride>
__global__ void __launch_bounds__(S::kAllThreads, S::kMinBlocks)
    fused_channelize_ring(const __grid_constant__ FusedArguments a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // has barriers that threads sleep at
  const FusedMemory<S> memory{static_cast<unsigned char*>(cuda::dynamic_shared())};
  const int per_block = a.blocks.format == SampleFormat::ci8 ? 64 : 128;
  const int group = static_cast<int>(blockIdx.x) / a.n_inputs;
  const int input = static_cast<int>(blockIdx.x) - group * a.n_inputs;
  const int first_block = group * a.blocks_per_group;
  const int first = first_block * per_block;  // spectrum of the call
  const int n_blocks =
      min(a.blocks_per_group, (a.n_spectra + per_block - 1) / per_block - first_block);
  const int n_spectra = n_blocks * per_block;
  const int t = static_cast<int>(threadIdx.x);
  const bool filters = t >= S::kThreads;
  if (filters) {
    ring_read_page<S>(a, memory, input, t - S::kThreads, 0, first);
  } else {
    fused_prepare<S>(a, memory, input);
    if (t == 0) RingBarriers<S>(memory).begin();
  }
  __syncthreads();
  if (filters) {
    ring_filter<S, kTaps, kStride>(a, memory, input, t - S::kThreads, first, n_spectra);
  } else {
    ring_transform<S>(a, memory, first, n_spectra);
  }
  if (a.statistics == nullptr) return;
  __syncthreads();
  if (!filters) fused_add_statistics<S>(a, memory, input);
#endif
}

}  // namespace ryle::channelize::detail
