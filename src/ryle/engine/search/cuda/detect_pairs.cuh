// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/device/cuda/kernel.cuh"

/// Private to the CUDA detector: two 16-bit sums in a word at a time. Without headers of CUDA, so
/// that tests run it on the host.
namespace ryle::search::detail {

/// Sums of a thread over packed pairs of values, as u = value - (center - clip - 1) between 0 and
/// 2 clip + 2: values beyond the clip are one of the two ends, counted and taken off at the end.
struct PairSums {
  static constexpr int kWords = 4;  ///< between two flushes
  struct Moments {
    long long n, sum, squares;  ///< of value - center where |value - center| <= clip
  };

  int center, clip;
  unsigned below2, minus2, end2, minus_last2;  // packed
  unsigned above_first2 = 0, at_end2 = 0;      // counts
  long long sum = 0, squares = 0;

  __device__ static bool fits(int center, int clip) {
    return clip >= 0 && center <= 65535 && center - clip >= 1 && (2 * clip + 2) * kWords <= 65535;
  }
  __device__ PairSums(int center_of, int clip_of)
      : center(center_of),
        clip(clip_of),
        below2(0x10001u * static_cast<unsigned>(center - clip - 1)),
        minus2(0x10001u * ((0x10000u - static_cast<unsigned>(center - clip - 1)) & 0xffffu)),
        end2(0x10001u * static_cast<unsigned>(2 * clip + 2)),
        minus_last2(0x10001u * (0x10000u - static_cast<unsigned>(2 * clip + 1))) {}

  __device__ void add(const unsigned (&words)[kWords]) {
    unsigned u[kWords];
#pragma unroll
    for (int k = 0; k < kWords; ++k)
      u[k] = __viaddmin_u16x2(__vmaxu2(words[k], below2), minus2, end2);
    add_clamped(u);
  }
  __device__ void add_clamped(const unsigned (&words)[kWords]) {
    unsigned sum2 = 0, low = 0, high = 0;
#pragma unroll
    for (int k = 0; k < kWords; ++k) {
      const unsigned u = words[k];
      sum2 += u;
      above_first2 += __vminu2(u, 0x10001u);
      at_end2 += __viaddmax_s16x2_relu(u, minus_last2, 0u);
      // u^2 = u (its low byte + 256 of its high byte)
      const unsigned bytes = __byte_perm(u, 0, 0x3120);
      low = __dp2a_lo(u, bytes, low);
      high = __dp2a_hi(u, bytes, high);
    }
    sum += (sum2 & 0xffffu) + (sum2 >> 16);
    squares += static_cast<long long>(low + (static_cast<unsigned long long>(high) << 8));
  }
  /// Of the n values that were added.
  __device__ Moments moments(int n) const {
    const long long end = 2ll * clip + 2, middle = clip + 1ll;
    const long long n_end = (at_end2 & 0xffffu) + (at_end2 >> 16);
    const long long n_first =
        n - static_cast<long long>((above_first2 & 0xffffu) + (above_first2 >> 16));
    const long long inside = n - n_end - n_first;
    const long long s = sum - n_end * end, q = squares - n_end * end * end;
    return {inside, s - inside * middle, q - 2 * middle * s + inside * middle * middle};
  }
};

/// Values to units of 2^shift above `low`, between 1 and kTop.
struct Units {
  static constexpr int kTop = 2047;

  unsigned low2, high2, add2, mask2;  // packed
  unsigned one2, end2;                // the same of units of 1, for halves added one by one
  int shift;
  bool whole;  ///< pair<true>() serves: units of 1, and no value above `low` leaves 16 bits
  long long low, high;

  /// packed: for pair(), of shifts up to 5 (kTop << 5 and the rounding fit 16 bits).
  __device__ Units(int low_of, int shift_of, bool packed)
      : low2(0),
        high2(0),
        add2(0),
        mask2(0),
        one2(0),
        end2(0),
        shift(shift_of),
        whole(packed && shift == 0 && low_of >= 1),
        low(low_of),
        high(low + (static_cast<long long>(kTop - 1) << shift)) {
    if (!packed) return;
    const unsigned round = (1u << shift) - 1;
    low2 = 0x10001u * static_cast<unsigned>(low_of < 0 ? 0 : low_of);
    high2 = 0x10001u * static_cast<unsigned>(high < 65535 ? high : 65535);
    add2 = 0x10001u * (round + (1u << shift) - static_cast<unsigned>(low_of));
    mask2 = 0x10001u * (0xffffu >> shift);
    one2 = 0x10001u * ((1u - static_cast<unsigned>(low_of)) & 0xffffu);
    end2 = high2 - low2 + 0x10001u;
  }
  /// Two 16-bit values; no half borrows or carries.
  template <bool kWhole>
  __device__ unsigned pair(unsigned x) const {
    if (kWhole) return __viaddmin_u16x2(__vmaxu2(x, low2), one2, end2);
    return ((__vminu2(__vmaxu2(x, low2), high2) + add2) >> shift) & mask2;
  }
  __device__ unsigned one(long long x) const {
    const long long above = (x < low ? low : x > high ? high : x) - low;
    return static_cast<unsigned>((above + ((1ll << shift) - 1)) >> shift) + 1;
  }
};

}  // namespace ryle::search::detail
