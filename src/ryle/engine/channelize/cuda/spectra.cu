// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// make_spectra turns samples into fp32 spectra: it unpacks, filters and transforms.
// @eq S[k,m] = sum_{n=0}^{L-1} h[n] x[mM - D + n] exp(-2 pi i k n / K)
// The phase of the window's start is applied by finish_blocks (cuda/post.cu). A real transform of K = 2C
// points is a complex one of C points over (even, odd) pairs, untangled at the end.
//
//   array      axes                                       type      unit
//   samples    a.layout: any format, strides in bits      packed    LSB of the receiver
//   filter     [tap][K]                                   float     sum h^2 = 1
//   ramps      [input][max_spectra]                       CudaRamp  first sample of each window
//   one, two   [spectrum of the group][point, padded]     float2    in shared memory, or a.spectra and a.work
//   a.spectra  [unit of the launch][spectrum][bin]        float2    scratch that stays in the second-level cache
//
// Who does what: a thread block of 256 threads takes a group of consecutive spectra of one input (a unit is
// one input x the spectra of one output block). A thread filters every 256th point; where windows slide by K
// samples, up to four spectra share the samples that are read. Then all threads run the stages of the
// Stockham transform (cuda/fft.cuh) between two buffers, with a barrier after each. Buffers lie in shared
// memory where the transform fits, else in device memory. No counters of this kernel are on record; the
// chain of these kernels is the path for everything that cuda/fused.cuh does not take.
// clang-format on
#include <algorithm>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/shared_limit.hpp"
#include "ryle/engine/channelize/cuda/fft.cuh"
#include "ryle/engine/channelize/cuda/kernels.cuh"
#include "ryle/engine/channelize/cuda/samples.cuh"

namespace ryle::channelize::detail {
namespace {

template <bool Real>
__device__ inline float2 coefficient(const float* filter, int n) {
  if constexpr (Real) return {filter[2 * n], filter[2 * n + 1]};
  return {filter[n], filter[n]};
}

// Filtered points of Group consecutive spectra of a critically sampled bank: each sample is read
// once and meets the Group coefficients that slide past it. Sums run over the taps in ascending
// order, as in fir_one: same bits.
template <class Read, int Group, class Layout>
__device__ void fir_sliding(const SpectraArguments& a, const Read& window, int first_slot,
                            float2* to) {
  const int points = a.transform.n_points;
  const int row = Read::kReal ? 2 * points : points;
  const int n_taps = a.n_taps;
  for (int n = threadIdx.x; n < points; n += kThreads) {
    float2 sum[Group] = {};
    float2 h[Group] = {};
    const float* filter = a.filter;
    int offset = Read::kReal ? 2 * n : n;
    // Row r meets tap r - s of spectrum s. h is a ring: the inner loop has its length, so every
    // index is constant.
    for (int first = 0; first < n_taps + Group - 1; first += Group) {
#pragma unroll
      for (int u = 0; u < Group; ++u) {
        h[u] = first + u < n_taps ? coefficient<Read::kReal>(filter, n) : float2{0, 0};
        const float2 x =
            first + u < n_taps + Group - 1 ? window.at(a.layout, offset) : float2{0, 0};
        filter += row;
        offset += row;
#pragma unroll
        for (int s = 0; s < Group; ++s) {
          const float2 tap = h[(u - s + Group) % Group];
          sum[s].x = fmaf(tap.x, x.x, sum[s].x);
          sum[s].y = fmaf(tap.y, x.y, sum[s].y);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < Group; ++s) to[Layout::at(first_slot + s, n, points)] = sum[s];
  }
}

// One spectrum by itself: any step, any delay, and float samples, whose neighbours outside the
// window may be NaN.
template <class Read, class Layout>
__device__ void fir_one(const SpectraArguments& a, const Read& window, int slot, float2* to) {
  const int points = a.transform.n_points;
  const int row = Read::kReal ? 2 * points : points;
  for (int n = threadIdx.x; n < points; n += kThreads) {
    float2 sum = {0, 0};
    const float* filter = a.filter;
    int offset = Read::kReal ? 2 * n : n;
    for (int p = 0; p < a.n_taps; ++p) {
      const float2 h = coefficient<Read::kReal>(filter, n);
      const float2 x = window.at(a.layout, offset);
      filter += row;
      offset += row;
      sum.x = fmaf(h.x, x.x, sum.x);
      sum.y = fmaf(h.y, x.y, sum.y);
    }
    to[Layout::at(slot, n, points)] = sum;
  }
}

/// What the threads of a block need to know of the spectra of their group.
struct Group {
  const CudaRamp* ramps;
  int first;    // spectrum of the call
  int n_slots;  // spectra of the call in the group
  __device__ bool is_valid(int slot) const {
    return slot < n_slots && ramps[first + slot].valid != 0;
  }
};

/// Can `count` spectra from `slot` share their samples? Same answer in every thread.
__device__ inline bool slides(const Group& group, int slot, int count, int n_slots, int row) {
  if (slot + count > n_slots) return false;
  const CudaRamp* ramps = group.ramps + group.first + slot;
  bool same = true;
  for (int s = 0; s < count; ++s) {
    same = same && group.is_valid(slot + s) &&
           ramps[s].begin == ramps[0].begin + static_cast<long long>(s) * row;
  }
  return same;
}

template <class Read, class Layout>
__device__ void filter_group(const SpectraArguments& a, const Group& group, int input, float2* to) {
  const auto* samples = static_cast<const unsigned char*>(a.samples);
  const int points = a.transform.n_points;
  const int row = Read::kReal ? 2 * points : points;
  const bool may_slide = Read::kFinite && a.step == row;
  for (int slot = 0; slot < a.group;) {
    if (!group.is_valid(slot)) {  // transformed like the others and never looked at; it must only
                                  // not read samples
      for (int n = threadIdx.x; n < points; n += kThreads) to[Layout::at(slot, n, points)] = {0, 0};
      ++slot;
      continue;
    }
    const Read window(a.layout, samples, input,
                      group.ramps[group.first + slot].begin - a.first_tick);
    if (may_slide && slides(group, slot, 4, group.n_slots, row)) {
      fir_sliding<Read, 4, Layout>(a, window, slot, to);
      slot += 4;
    } else if (may_slide && slides(group, slot, 2, group.n_slots, row)) {
      fir_sliding<Read, 2, Layout>(a, window, slot, to);
      slot += 2;
    } else {
      fir_one<Read, Layout>(a, window, slot, to);
      ++slot;
    }
  }
}

// @eq X[k] = (Z[k] + conj Z[C-k])/2 - i/2 exp(-2 pi i k/2C) (Z[k] - conj Z[C-k]),  Z of x[2n] + i
// x[2n+1]
template <class From>
__device__ void untangle(const SpectraArguments& a, const float2* from, float2* to) {
  const int n = a.transform.n_points;
  for (int slot = 0; slot < a.group; ++slot) {
    for (int k = threadIdx.x; k < n; k += kThreads) {
      const float2 z = from[From::at(slot, k, n)];
      const float2 m = from[From::at(slot, k == 0 ? 0 : n - k, n)];
      const float2 even = {0.5f * (z.x + m.x), 0.5f * (z.y - m.y)};
      const float2 odd = cuda::quarter_turned<-1>({0.5f * (z.x - m.x), 0.5f * (z.y + m.y)});
      to[GlobalLayout::at(slot, k, n)] = even + times(a.untangle[k], odd);
    }
  }
}

/// See the head of this file. Layout: buffers in shared memory, or in device memory.
template <class Read, class Layout>
__global__ void __launch_bounds__(kThreads, 2)
    make_spectra(const __grid_constant__ SpectraArguments a) {
  extern __shared__ float2 shared[];
  const int groups_per_unit = a.units.spectra_per_unit / a.group;
  const int unit = static_cast<int>(blockIdx.x) / groups_per_unit;
  const int group_in_unit = static_cast<int>(blockIdx.x) - unit * groups_per_unit;
  const int block = (a.units.first_unit + unit) / a.units.n_inputs;
  const int input = a.units.first_unit + unit - block * a.units.n_inputs;
  const int first = block * a.units.spectra_per_unit + group_in_unit * a.group;
  const Group group{a.units.ramps + input * a.units.max_spectra, first,
                    min(a.group, a.units.n_spectra - first)};
  bool any = false;
  for (int slot = 0; slot < group.n_slots; ++slot) any = any || group.is_valid(slot);
  if (!any) return;

  const int n = a.transform.n_points;
  const long long at =
      (static_cast<long long>(unit) * a.units.spectra_per_unit + group_in_unit * a.group) * n;
  float2* const out = a.spectra + at;
  float2* one = shared;
  float2* two = shared + a.group * (n + n / 16 + 1);
  if constexpr (!Layout::kShared) {
    // The last stage must end in `out` (complex) or in the other buffer (real, which is untangled
    // into `out`).
    const bool start_in_out = (a.transform.n_stages % 2 == 0) != Read::kReal;
    one = start_in_out ? out : a.work + at;
    two = start_in_out ? a.work + at : out;
  }
  filter_group<Read, Layout>(a, group, input, one);
  __syncthreads();
  unsigned stride = 1;
  for (int stage = 0; stage < a.transform.n_stages; ++stage) {
    if (!Read::kReal && stage + 1 == a.transform.n_stages) {
      run_stage<Layout, GlobalLayout>(a.transform, stage, stride, a.group, one, out);
    } else {
      run_stage<Layout, Layout>(a.transform, stage, stride, a.group, one, two);
    }
    __syncthreads();
    stride *= a.transform.radix[stage];
    float2* const swap = one;
    one = two;
    two = swap;
  }
  if constexpr (Read::kReal) untangle<Layout>(a, one, out);
}

template <class Read>
void launch(const SpectraArguments& a, std::int64_t shared_bytes, cudaStream_t stream) {
  const unsigned n = static_cast<unsigned>(a.units.n_units) *
                     static_cast<unsigned>(a.units.spectra_per_unit / a.group);
  if (a.work == nullptr) {
    make_spectra<Read, SharedLayout>
        <<<n, kThreads, static_cast<std::size_t>(shared_bytes), stream>>>(a);
  } else {
    make_spectra<Read, GlobalLayout><<<n, kThreads, 0, stream>>>(a);
  }
  RYLE_CUDA_LAUNCHED("make_spectra");
}

bool is_float(SampleFormat format) {
  return format == SampleFormat::f32 || format == SampleFormat::cf16 ||
         format == SampleFormat::cf32;
}

bool is_plain_ci8(const SpectraArguments& a) {
  return a.layout.format == SampleFormat::ci8 && a.layout.encoding == Encoding::twos_complement &&
         a.layout.input_stride_bits % 16 == 0 && a.layout.sample_stride_bits % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(a.samples) % 2 == 0;
}

}  // namespace

std::int64_t spectra_shared_bytes(std::int64_t n_points, std::int64_t group) {
  return 2 * group * (n_points + n_points / 16 + 1) * static_cast<std::int64_t>(sizeof(float2));
}

void prepare_spectra() {
  cuda::allow_all_shared(make_spectra<ReadCi8, SharedLayout>);
  cuda::allow_all_shared(make_spectra<ReadAny<false, true>, SharedLayout>);
  cuda::allow_all_shared(make_spectra<ReadAny<false, false>, SharedLayout>);
  cuda::allow_all_shared(make_spectra<ReadAny<true, true>, SharedLayout>);
  cuda::allow_all_shared(make_spectra<ReadAny<true, false>, SharedLayout>);
}

std::int64_t concurrent_groups(std::int64_t shared_bytes, int device) {
  int per_sm = 0;
  RYLE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &per_sm, make_spectra<ReadCi8, SharedLayout>, kThreads,
      static_cast<std::size_t>(shared_bytes)));
  return std::int64_t{std::max(per_sm, 1)} *
         cuda::attribute_of(device, cudaDevAttrMultiProcessorCount);
}

void launch_spectra(const SpectraArguments& a, std::int64_t shared_bytes, cudaStream_t stream) {
  const bool floating = is_float(a.layout.format);
  if (a.untangle != nullptr) {
    return floating ? launch<ReadAny<true, false>>(a, shared_bytes, stream)
                    : launch<ReadAny<true, true>>(a, shared_bytes, stream);
  }
  if (is_plain_ci8(a)) return launch<ReadCi8>(a, shared_bytes, stream);
  return floating ? launch<ReadAny<false, false>>(a, shared_bytes, stream)
                  : launch<ReadAny<false, true>>(a, shared_bytes, stream);
}

}  // namespace ryle::channelize::detail
