// SPDX-License-Identifier: BSD-3-Clause
#pragma once
/// Private to the CUDA engines of this folder: values by rank, found by a whole thread block.
namespace ryle::search::detail {

inline constexpr int kSelectThreads = 256;

struct SelectMemory {
  unsigned counts[256];
  unsigned rank, digit, in_digit;
  double value;
};

/// Order of the bits is that of the numbers.
__device__ __forceinline__ unsigned long long order_of(double v) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(v));
  return bits >> 63 != 0 ? ~bits : bits | 1ull << 63;
}
__device__ __forceinline__ double number_of(unsigned long long order) {
  return __longlong_as_double(
      static_cast<long long>(order >> 63 != 0 ? order & ~(1ull << 63) : ~order));
}

/// The value of rank `rank` (from 0) among those of get(i, value), i in [0, n), that return true;
/// digits of 8 bits from the top. Called by all threads of a block of kSelectThreads; all get it.
/// @pre more than `rank` values
template <class Get>
__device__ double select_rank(int n, int rank, const Get& get, SelectMemory& m) {
  unsigned long long prefix = 0, mask = 0;
  if (threadIdx.x == 0) m.rank = static_cast<unsigned>(rank);
  for (int shift = 56; shift >= 0; shift -= 8) {
    m.counts[threadIdx.x] = 0;
    __syncthreads();
    for (int base = 0; base < n; base += kSelectThreads) {
      const int i = base + static_cast<int>(threadIdx.x);
      double v = 0;
      const bool valid = i < n && get(i, v);
      const unsigned long long key = order_of(v);
      const bool mine = valid && (key & mask) == prefix;
      const auto digit = static_cast<unsigned>(key >> shift & 255);
      const unsigned all = __ballot_sync(0xffffffffu, mine);
      if (all == 0) continue;
      // Most lanes have the same exponent: one addition for all.
      const unsigned leader = __shfl_sync(0xffffffffu, digit, __ffs(static_cast<int>(all)) - 1);
      const unsigned same = __ballot_sync(0xffffffffu, mine && digit == leader);
      if (threadIdx.x % 32 == 0) atomicAdd(&m.counts[leader], static_cast<unsigned>(__popc(same)));
      if (mine && digit != leader) atomicAdd(&m.counts[digit], 1u);
    }
    __syncthreads();
    if (threadIdx.x < 32) {  // a lane eight digits
      unsigned own = 0;
      for (int k = 0; k < 8; ++k) own += m.counts[8 * threadIdx.x + k];
      unsigned up_to = own;
      for (int step = 1; step < 32; step *= 2) {
        const unsigned before = __shfl_up_sync(0xffffffffu, up_to, step);
        if (threadIdx.x >= static_cast<unsigned>(step)) up_to += before;
      }
      const unsigned wanted = m.rank;
      __syncwarp();
      if (wanted < up_to && wanted >= up_to - own) {
        unsigned left = wanted - (up_to - own);
        unsigned digit = 8 * threadIdx.x;
        while (left >= m.counts[digit]) left -= m.counts[digit++];
        m.digit = digit;
        m.rank = left;
        m.in_digit = m.counts[digit];
      }
    }
    __syncthreads();
    prefix |= static_cast<unsigned long long>(m.digit) << shift;
    mask |= 255ull << shift;
    if (m.in_digit == 1) {  // the one that is left
      __syncthreads();
      for (int i = static_cast<int>(threadIdx.x); i < n; i += kSelectThreads) {
        double v = 0;
        if (get(i, v) && (order_of(v) & mask) == prefix) m.value = v;
      }
      __syncthreads();
      return m.value;
    }
  }
  __syncthreads();
  return number_of(prefix);
}

/// How many get(i, value) return true. Called by all threads; all get it.
template <class Get>
__device__ int count_values(int n, const Get& get, SelectMemory& m) {
  unsigned own = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kSelectThreads) {
    double v = 0;
    own += get(i, v) ? 1u : 0u;
  }
  for (int step = 16; step > 0; step /= 2) own += __shfl_xor_sync(0xffffffffu, own, step);
  if (threadIdx.x % 32 == 0) m.counts[threadIdx.x / 32] = own;
  __syncthreads();
  unsigned all = 0;
  for (int k = 0; k < kSelectThreads / 32; ++k) all += m.counts[k];
  __syncthreads();
  return static_cast<int>(all);
}

/// As median_of(): the upper middle, 0 of none.
template <class Get>
__device__ double median_of_block(int n, const Get& get, SelectMemory& m) {
  const int there = count_values(n, get, m);
  return there == 0 ? 0.0 : select_rank(n, there / 2, get, m);
}

/// As scatter_of().
template <class Get>
__device__ double scatter_of_block(int n, double center, const Get& get, SelectMemory& m) {
  const auto off = [&](int i, double& v) {
    if (!get(i, v)) return false;
    v = fabs(v - center);
    return true;
  };
  return 1.4826 * median_of_block(n, off, m);
}

}  // namespace ryle::search::detail
