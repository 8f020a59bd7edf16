// SPDX-License-Identifier: BSD-3-Clause
#pragma once
// clang-format off
// codes_kernel is the last pass over the power, equal to Normalizer (normalize.cpp) bit for bit. It makes 6-bit codes,
// the mask's cells, what became of every sample, and the sums over groups of channels that bursts are looked for in:
//   code = rne(kCodeMean + (x - mean) code_scale [- gain common]), clipped to 0 .. kMaxCode
// A sample that does not count gets kCodeMean.
//
//   array            axes                             type        content
//   w.in.values      [beam][channel][time]            float       power
//   w.scales         [beam][channel][cell]            CellScale   mean, scale, or why the cell is masked
//   w.out.codes      [beam][channel][time]            uint8       codes
//   w.out.cells      [beam][channel][cell of 64]      uint8       share of samples that count, kFullCell = all
//   w.counters       [beam][reason]                   uint64      samples by what became of them
//   b.sums, counts   [beam][group][ring of time]      float       sums of normalised samples over a group of channels
//
// Who does what: a thread block of 256 threads takes 1,024 samples of a cell and one group of channels; a
// thread takes four successive samples and walks through the channels, four loads ahead. What the group needs
// of its channels lies in shared memory. Compiled without fused multiply-adds.
//
// What binds (docs/decisions/0013, H200): waits for loads. Memory is 59 % busy (2.8 TB/s), issue slots 51 %, with 24
// warps a multiprocessor.
// clang-format on
#include <type_traits>

#include "ryle/device/cuda/kernel.cuh"
#include "ryle/engine/search/cuda/normalize_cells.cuh"

namespace ryle::search::detail {

inline constexpr int kWriteThreads = 256;
inline constexpr int kSamplesOfThread = 4;
inline constexpr int kSamplesOfBlock = kSamplesOfThread * kWriteThreads;
inline constexpr int kChannelsAhead = 4;  // loads on their way
inline constexpr int kMaxGroupChannels = kMaxFlagChannels / 16 + 1;

/// Groups of channels that thread blocks share the band in: those of the bursts.
struct CodeGroups {
  int n;
  int parts_of_cell;  ///< thread blocks along the time of a cell
};
inline CodeGroups code_groups(const NormalizeWork& w, const BurstWork& b) {
  const int n = b.n_groups > 0 ? b.n_groups : w.n_channels < 16 ? w.n_channels : 16;
  return {n, (w.cell_samples + kSamplesOfBlock - 1) / kSamplesOfBlock};
}
/// Whether four samples, and four codes, lie in whole words, and strides in 32 bits.
inline bool whole_words(const NormalizeWork& w) {
  const auto at = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const auto fits = [](std::int64_t stride) { return stride >= 0 && stride < 1 << 29; };
  return at(w.in.values) % 16 == 0 && w.in.beam_stride % 4 == 0 && w.in.channel_stride % 4 == 0 &&
         at(w.out.codes) % 4 == 0 && w.out.beam_stride % 4 == 0 && w.out.channel_stride % 4 == 0 &&
         fits(w.in.channel_stride) && fits(w.out.channel_stride) && fits(w.out.cell_channel_stride);
}

/// 1.5 x 2^23: floats about it are whole numbers, the low bits of which say how far off they are.
inline constexpr float kWhole = 12582912.0f;
inline constexpr unsigned kWholeBits = 0x4b400000u;

/// Rows of a plane. kShort: strides of 32 bits, an address is one instruction.
template <bool kShort, class T>
struct PlaneRows {
  T* base;
  std::int64_t stride;
  unsigned stride_bytes;
  __device__ PlaneRows(T* first, std::int64_t row_stride)
      : base(first),
        stride(row_stride),
        stride_bytes(static_cast<unsigned>(row_stride) * static_cast<unsigned>(sizeof(T))) {}
  __device__ __forceinline__ T* at(int row) const {
    if (!kShort) return base + row * stride;
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(static_cast<unsigned>(row)) * stride_bytes;
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return reinterpret_cast<T*>(reinterpret_cast<Byte*>(base) + bytes);
  }
};

/// Four successive samples of a channel; those from `n` on are not read.
template <bool kVectors>
__device__ __forceinline__ float4 four_samples(const float* x, int n) {
  if (kVectors && n == kSamplesOfThread) return *reinterpret_cast<const float4*>(x);
  float4 v{0, 0, 0, 0};
  if (n > 0) v.x = x[0];
  if (n > 1) v.y = x[1];
  if (n > 2) v.z = x[2];
  if (n > 3) v.w = x[3];
  return v;
}

/// What a thread has counted.
struct CodeCounts {
  int good, low, high;
};

/// One thread's samples of all channels of a group.
/// kTimes: the user masks times.
template <bool kVectors, bool kFilter, bool kTimes>
class CodeWriter {
 public:
  __device__ CodeWriter(const NormalizeWork& w, std::int64_t beam, std::int64_t first,
                        std::int64_t end)
      : first_(first),
        n_(static_cast<int>(max(std::int64_t{0}, min(end - first, std::int64_t{4})))) {
#pragma unroll
    for (int k = 0; k < kSamplesOfThread; ++k) {
      if (k >= n_) break;
      if (w.absent[beam * w.absent_stride + first + k] != 0) absent_ |= 1u << k;
      if (w.masked[beam * w.absent_stride + first + k] != 0) masked_ |= 1u << k;
      if (kFilter) common_[k] = w.common[beam * w.absent_stride + first + k];
    }
    whole_ = n_ == kSamplesOfThread && absent_ == 0 && masked_ == 0;
  }
  __device__ int n() const { return n_; }

  /// One channel: adds to the sums, writes the codes. @return samples that have codes of their own
  __device__ __forceinline__ int add(float4 v, const CellScale& s, float gain,
                                     const std::uint8_t* times, std::uint8_t* codes,
                                     unsigned* counters) {
    const float x[4] = {v.x, v.y, v.z, v.w};
    if (whole_ && s.cause == kNone && (!kTimes || times == nullptr)) {  // nearly always
      unsigned packed = 0;
      if (add_whole(x, s, gain, packed)) {
        ++n_whole_;
        write(codes, packed);
        return kSamplesOfThread;
      }
    }
    unsigned numbers = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) numbers |= is_number(x[k]) ? 1u << k : 0u;
    const unsigned here = (1u << n_) - 1, timed = timed_by_user(times);
    const unsigned present = here & numbers & ~absent_ & ~timed;
    const unsigned summed = s.cause == kNone ? present : 0u, good = summed & ~masked_;
    write(codes, add_samples(x, s, gain, summed, good));
    if (good != here) count_flag_reasons(here & ~good, present, timed, s.cause, counters);
    good_ += __popc(good);
    return __popc(good);
  }
  __device__ void store_sums(const BurstWork& b, std::int64_t row) const {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= n_) break;
      const std::int64_t at = row * b.ring + (b.first_column + first_ + k) % b.ring;
      b.sums[at] = sums_[k] * (1.0f / kCodeSigma);
      b.counts[at] = static_cast<float>(n_whole_ + n_others_[k]);
    }
  }
  __device__ CodeCounts counts() const {
    return {good_ + kSamplesOfThread * n_whole_, clipped_ & 0xffff, clipped_ >> 16};
  }

 private:
  __device__ __forceinline__ void write(std::uint8_t* codes, unsigned packed) const {
    if (kVectors && n_ == kSamplesOfThread) {
      *reinterpret_cast<unsigned*>(codes) = packed;
      return;
    }
    for (int k = 0; k < n_; ++k) codes[k] = static_cast<std::uint8_t>(packed >> 8 * k & 255);
  }
  /// In units of the codes: code_scale is 8 / rms rounded, 8 times what 1 / rms rounds to, so sums
  /// of these over 8 are those of the host.
  __device__ __forceinline__ float deviation(float x, const CellScale& s) const {
    return s.code_scale * (x - s.mean);
  }
  __device__ __forceinline__ float code_of(float deviation, float gain, int k) const {
    const float code = static_cast<float>(kCodeMean) + deviation;
    return kFilter ? code - gain * common_[k] : code;
  }
  /// Four samples that count. @return false, with nothing changed: not all are near numbers
  __device__ __forceinline__ bool add_whole(const float (&x)[4], const CellScale& s, float gain,
                                            unsigned& packed) {
    float off[4];
    unsigned q[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      off[k] = deviation(x[k], s);
      q[k] = static_cast<unsigned>(__float_as_int(code_of(off[k], gain, k) + kWhole));
    }
    const unsigned odd =
        (q[0] ^ kWholeBits) | (q[1] ^ kWholeBits) | (q[2] ^ kWholeBits) | (q[3] ^ kWholeBits);
    if ((odd & ~static_cast<unsigned>(kMaxCode)) != 0 && !clip_whole(q)) return false;
#pragma unroll
    for (int k = 0; k < 4; ++k) sums_[k] += off[k];
    packed = __byte_perm(__byte_perm(q[0], q[1], 0x0040), __byte_perm(q[2], q[3], 0x0040), 0x5410);
    return true;
  }
  /// Codes beyond the ends, of whole numbers in floats; below -1/2 rounds to -1 or less, from
  /// kMaxCode + 1/2 on to the next even number. @return false, with nothing changed: beyond 2^21,
  /// or no numbers
  __device__ __forceinline__ bool clip_whole(unsigned (&q)[4]) {
    int code[4], clipped = 0;
    unsigned far = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      code[k] = static_cast<int>(q[k] - kWholeBits);
      far |= q[k] - kWholeBits + (1u << 21);  // below 2^22 when near
      clipped += code[k] < 0 ? 1 : code[k] > kMaxCode ? 1 << 16 : 0;
    }
    if (far >= 1u << 22) return false;
    clipped_ += clipped;
#pragma unroll
    for (int k = 0; k < 4; ++k) q[k] = static_cast<unsigned>(max(0, min(code[k], kMaxCode)));
    return true;
  }
  /// Codes in the bytes of a word, of samples some of which do not count.
  __device__ __forceinline__ unsigned add_samples(const float (&x)[4], const CellScale& s,
                                                  float gain, unsigned summed, unsigned good) {
    int q[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float off = deviation(x[k], s);
      sums_[k] += (summed >> k & 1) != 0 ? off : 0.0f;
      n_others_[k] += static_cast<int>(summed >> k & 1);
      q[k] = (good >> k & 1) == 0 ? kCodeMean : __float2int_rn(code_of(off, gain, k));
      clipped_ += q[k] < 0 ? 1 : q[k] > kMaxCode ? 1 << 16 : 0;
      q[k] = max(0, min(q[k], kMaxCode));
    }
    return static_cast<unsigned>(q[0] | q[1] << 8 | q[2] << 16 | q[3] << 24);
  }
  /// Bits of the samples that the user masks.
  __device__ __forceinline__ unsigned timed_by_user(const std::uint8_t* times) const {
    unsigned timed = 0;
    if (times == nullptr) return 0;
    for (int k = 0; k < n_; ++k) timed |= times[k] != 0 ? 1u << k : 0u;
    return timed;
  }
  /// The first cause counts.
  __device__ static void count_flag_reasons(unsigned out, unsigned present, unsigned timed,
                                            std::int32_t cause, unsigned* counters) {
    if (cause == kUser) {
      atomicAdd(&counters[kUser], static_cast<unsigned>(__popc(out)));
      return;
    }
    if (timed != 0) atomicAdd(&counters[kTime], static_cast<unsigned>(__popc(timed)));
    const unsigned lost = out & ~present & ~timed, left = out & present;
    if (lost != 0) atomicAdd(&counters[kAbsent], static_cast<unsigned>(__popc(lost)));
    if (left != 0)
      atomicAdd(&counters[cause != kNone ? cause : kSpectrum], static_cast<unsigned>(__popc(left)));
  }

  std::int64_t first_;
  int n_;
  bool whole_;
  unsigned absent_ = 0, masked_ = 0;
  float sums_[4] = {}, common_[4] = {};
  int n_whole_ = 0, good_ = 0;
  int n_others_[4] = {};  ///< summed where not all were
  int clipped_ = 0;       ///< low, and high in the upper half
};

/// What a thread block shares.
struct CodesMemory {
  CellScale scales[kMaxGroupChannels];
  float gains[kMaxGroupChannels];
  unsigned counters[kNormalizeCounters];
};

/// A thread block takes 1024 samples of a cell and one group of channels. kFilter: less what all
/// channels do at once.
template <bool kVectors, bool kFilter, bool kTimes>
__global__ void __launch_bounds__(kWriteThreads, 3)
    codes_kernel(const NormalizeWork w, const BurstWork b, const CodeGroups groups,
                 int first_beam) {
  auto& shared = cuda::shared<CodesMemory>();
  CellScale* scales = shared.scales;
  unsigned* counters = shared.counters;
  const std::int64_t beam = first_beam + static_cast<int>(blockIdx.z);
  const int group = static_cast<int>(blockIdx.y);
  const int cell = static_cast<int>(blockIdx.x) / groups.parts_of_cell;
  const int part = static_cast<int>(blockIdx.x) % groups.parts_of_cell;
  const auto first_channel =
      static_cast<int>((static_cast<std::int64_t>(group) * w.n_channels + groups.n - 1) / groups.n);
  const auto end_channel = static_cast<int>(
      (static_cast<std::int64_t>(group + 1) * w.n_channels + groups.n - 1) / groups.n);
  const int n_channels = end_channel - first_channel;
  const int tid = static_cast<int>(threadIdx.x);
  if (tid < kNormalizeCounters) counters[tid] = 0;
  for (int c = tid; c < n_channels; c += kWriteThreads) {
    scales[c] = w.scales[(beam * w.n_channels + first_channel + c) * w.n_cells + cell];
    if (w.user[first_channel + c] != 0) scales[c].cause = kUser;
    if (kFilter) shared.gains[c] = w.gains[beam * w.n_channels + first_channel + c];
  }
  __syncthreads();
  const std::int64_t cell_first = static_cast<std::int64_t>(cell) * w.cell_samples;
  const std::int64_t end = min(w.in.n, cell_first + w.cell_samples);
  const std::int64_t first =
      cell_first + static_cast<std::int64_t>(part) * kSamplesOfBlock + kSamplesOfThread * tid;
  CodeWriter<kVectors, kFilter, kTimes> mine(w, beam, first, end);
  const PlaneRows<kVectors, const float> power(
      w.in.values + beam * w.in.beam_stride + first_channel * w.in.channel_stride + first,
      w.in.channel_stride);
  const PlaneRows<kVectors, std::uint8_t> codes(
      w.out.codes + beam * w.out.beam_stride + first_channel * w.out.channel_stride + first,
      w.out.channel_stride);
  const PlaneRows<kVectors, std::uint8_t> cells(w.out.cells + beam * w.out.cell_beam_stride +
                                                    first_channel * w.out.cell_channel_stride +
                                                    first / kCell,
                                                w.out.cell_channel_stride);
  const bool first_of_cell = tid % 16 == 0 && mine.n() > 0;  // 16 threads a cell of the mask
  float4 next[kChannelsAhead];
#pragma unroll
  for (int k = 0; k < kChannelsAhead; ++k)
    next[k] = four_samples<kVectors>(power.at(k), k < n_channels ? mine.n() : 0);
#pragma unroll 1
  for (int base = 0; base < n_channels; base += kChannelsAhead) {
#pragma unroll
    for (int k = 0; k < kChannelsAhead; ++k) {
      const int c = base + k;
      if (c >= n_channels) break;
      const float4 v = next[k];
      const int ahead = c + kChannelsAhead;
      next[k] = four_samples<kVectors>(power.at(ahead), ahead < n_channels ? mine.n() : 0);
      const std::uint8_t* times = !kTimes || w.times == nullptr
                                      ? nullptr
                                      : w.times + (first_channel + c) * w.times_stride + first;
      int good =
          mine.add(v, scales[c], kFilter ? shared.gains[c] : 0.0f, times, codes.at(c), counters);
      if (__all_sync(0xffffffffu, good == kSamplesOfThread)) {  // nearly always
        good = kFullCell;
      } else {
        for (int step = 8; step > 0; step /= 2) good += __shfl_xor_sync(0xffffffffu, good, step);
        good = (good * kFullCell + static_cast<int>(kCell) / 2) / static_cast<int>(kCell);
      }
      if (first_of_cell) *cells.at(c) = static_cast<std::uint8_t>(good);
    }
  }
  if (b.sums != nullptr) mine.store_sums(b, beam * b.n_groups + group);
  const CodeCounts counts = mine.counts();
  if (counts.good > 0) atomicAdd(&counters[kNone], static_cast<unsigned>(counts.good));
  if (counts.low > 0) atomicAdd(&counters[kClippedLow], static_cast<unsigned>(counts.low));
  if (counts.high > 0) atomicAdd(&counters[kClippedHigh], static_cast<unsigned>(counts.high));
  __syncthreads();
  if (tid < kNormalizeCounters && counters[tid] > 0)
    atomicAdd(&w.counters[beam * kNormalizeCounters + tid],
              static_cast<unsigned long long>(counters[tid]));
}

}  // namespace ryle::search::detail
