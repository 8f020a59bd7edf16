// SPDX-License-Identifier: BSD-3-Clause
// AVX-512: bytes are added as 16-bit words, sums and odd bytes apart: even = total - 256 odd.
#include "ryle/engine/search/cpu_kernel.hpp"
#include "ryle/engine/search/cpu_series.inc.hpp"

#if defined(__AVX512BW__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace ryle::search::detail {
namespace {

__m512i load(const void* from) { return _mm512_loadu_si512(from); }

void sum_rows(const std::uint8_t* const* rows, int n_rows, std::uint8_t* to, std::int64_t n) {
  const std::uint8_t *a = rows[0], *b = rows[1];
  if (n_rows == 2) {
    for (std::int64_t t = 0; t < n; t += 64)
      _mm512_storeu_si512(to + t, _mm512_add_epi8(load(a + t), load(b + t)));
    return;
  }
  const std::uint8_t *c = rows[2], *d = rows[3];
  for (std::int64_t t = 0; t < n; t += 64) {
    _mm512_storeu_si512(to + t, _mm512_add_epi8(_mm512_add_epi8(load(a + t), load(b + t)),
                                                _mm512_add_epi8(load(c + t), load(d + t))));
  }
}

/// kN trials x 128 samples in registers.
template <int kN>
void tile(const Accumulation& w, std::int64_t trial, std::int64_t t) {
  __m512i total[kN][2], odd[kN][2];
  for (int u = 0; u < kN; ++u)
    for (int v = 0; v < 2; ++v) total[u][v] = odd[u][v] = _mm512_setzero_si512();
  for (std::int64_t g = 0; g < w.n_groups; ++g) {
    const std::uint32_t* starts = w.starts + g * w.n_trials + trial;
    for (int u = 0; u < kN; ++u) {
      const std::uint8_t* row = w.base + starts[u] + t;
      for (int v = 0; v < 2; ++v) {
        const __m512i x = load(row + 64 * v);
        total[u][v] = _mm512_add_epi16(total[u][v], x);
        odd[u][v] = _mm512_add_epi16(odd[u][v], _mm512_srli_epi16(x, 8));
      }
    }
  }
  for (int u = 0; u < kN; ++u) {
    for (int v = 0; v < 2; ++v) {
      std::uint16_t* sums = w.sums + (trial + u) * w.sum_stride + t + 64 * v;
      __m512i e = _mm512_sub_epi16(total[u][v], _mm512_slli_epi16(odd[u][v], 8));
      __m512i o = odd[u][v];
      if (!w.first) {
        e = _mm512_add_epi16(e, load(sums));
        o = _mm512_add_epi16(o, load(sums + 32));
      }
      _mm512_storeu_si512(sums, e);
      _mm512_storeu_si512(sums + 32, o);
    }
  }
}

void accumulate(const Accumulation& w) {
  std::int64_t i = 0;
  for (; i + 4 <= w.n_trials; i += 4)
    for (std::int64_t t = 0; t < w.n; t += kChunk) tile<4>(w, i, t);
  for (; i < w.n_trials; ++i)
    for (std::int64_t t = 0; t < w.n; t += kChunk) tile<1>(w, i, t);
}

/// 32 even and 32 odd samples back in order.
void in_order(const std::uint16_t* sums, __m512i& low, __m512i& high) {
  const __m512i pick = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40,
                                        8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i e = load(sums), o = load(sums + 32);
  low = _mm512_permutex2var_epi16(e, pick, o);
  high = _mm512_permutex2var_epi16(e, _mm512_add_epi16(pick, _mm512_set1_epi16(16)), o);
}

void store_u16(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n) {
  std::int64_t t = 0;
  __m512i low, high;
  for (; t + 64 <= n; t += 64) {
    in_order(sums + t, low, high);
    _mm512_storeu_si512(to + t, low);
    _mm512_storeu_si512(to + t + 32, high);
  }
  if (t == n) return;
  std::uint16_t rest[64];
  in_order(sums + t, low, high);
  _mm512_storeu_si512(rest, low);
  _mm512_storeu_si512(rest + 32, high);
  std::copy_n(rest, n - t, to + t);
}

void store_u32(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first) {
  for (std::int64_t t = 0; t < n; t += 64) {
    std::uint16_t values[64];
    const std::int64_t part = std::min<std::int64_t>(64, n - t);
    store_u16(sums + t, values, 64);
    for (std::int64_t k = 0; k < part; ++k) to[t + k] = first ? values[k] : to[t + k] + values[k];
  }
}

void block_maxima(const std::int32_t* prefix, std::int64_t width, std::int64_t n_blocks,
                  std::int32_t* to) {
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const std::int32_t* p = prefix + 64 * b;
    __m512i best = _mm512_sub_epi32(load(p + width), load(p));
    for (int k = 16; k < 64; k += 16)
      best = _mm512_max_epi32(best, _mm512_sub_epi32(load(p + width + k), load(p + k)));
    to[b] = _mm512_reduce_max_epi32(best);
  }
}

constexpr CpuKernel kKernel{"search/cpu/avx512",
                            sum_rows,
                            accumulate,
                            store_u16,
                            store_u32,
                            block_maxima,
                            moments_of<std::uint16_t>,
                            moments_of<std::uint32_t>,
                            prefix_of<std::uint16_t>,
                            prefix_of<std::uint32_t>};

}  // namespace

const CpuKernel* cpu_kernel_avx512() { return &kKernel; }

}  // namespace ryle::search::detail
#else
namespace ryle::search::detail {
const CpuKernel* cpu_kernel_avx512() { return nullptr; }
}  // namespace ryle::search::detail
#endif
