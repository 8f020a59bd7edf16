// SPDX-License-Identifier: BSD-3-Clause
// AVX2: as cpu_avx512.cpp with 32 bytes a register; within 32 samples 16 even, then 16 odd ones.
#include "ryle/engine/search/cpu_kernel.hpp"
#include "ryle/engine/search/cpu_series.inc.hpp"

#if defined(__AVX2__)
#include <immintrin.h>

#include <algorithm>

namespace ryle::search::detail {
namespace {

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void save(void* to, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(to), value); }

void sum_rows(const std::uint8_t* const* rows, int n_rows, std::uint8_t* to, std::int64_t n) {
  const std::uint8_t *a = rows[0], *b = rows[1];
  if (n_rows == 2) {
    for (std::int64_t t = 0; t < n; t += 32)
      save(to + t, _mm256_add_epi8(load(a + t), load(b + t)));
    return;
  }
  const std::uint8_t *c = rows[2], *d = rows[3];
  for (std::int64_t t = 0; t < n; t += 32) {
    save(to + t, _mm256_add_epi8(_mm256_add_epi8(load(a + t), load(b + t)),
                                 _mm256_add_epi8(load(c + t), load(d + t))));
  }
}

/// kN trials x 64 samples in registers.
template <int kN>
void tile(const Accumulation& w, std::int64_t trial, std::int64_t t) {
  __m256i total[kN][2], odd[kN][2];
  for (int u = 0; u < kN; ++u)
    for (int v = 0; v < 2; ++v) total[u][v] = odd[u][v] = _mm256_setzero_si256();
  for (std::int64_t g = 0; g < w.n_groups; ++g) {
    const std::uint32_t* starts = w.starts + g * w.n_trials + trial;
    for (int u = 0; u < kN; ++u) {
      const std::uint8_t* row = w.base + starts[u] + t;
      for (int v = 0; v < 2; ++v) {
        const __m256i x = load(row + 32 * v);
        total[u][v] = _mm256_add_epi16(total[u][v], x);
        odd[u][v] = _mm256_add_epi16(odd[u][v], _mm256_srli_epi16(x, 8));
      }
    }
  }
  for (int u = 0; u < kN; ++u) {
    for (int v = 0; v < 2; ++v) {
      std::uint16_t* sums = w.sums + (trial + u) * w.sum_stride + t + 32 * v;
      __m256i e = _mm256_sub_epi16(total[u][v], _mm256_slli_epi16(odd[u][v], 8));
      __m256i o = odd[u][v];
      if (!w.first) {
        e = _mm256_add_epi16(e, load(sums));
        o = _mm256_add_epi16(o, load(sums + 16));
      }
      save(sums, e);
      save(sums + 16, o);
    }
  }
}

void accumulate(const Accumulation& w) {
  std::int64_t i = 0;
  for (; i + 2 <= w.n_trials; i += 2)
    for (std::int64_t t = 0; t < w.n; t += 64) tile<2>(w, i, t);
  for (; i < w.n_trials; ++i)
    for (std::int64_t t = 0; t < w.n; t += 64) tile<1>(w, i, t);
}

void store_u16(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n) {
  for (std::int64_t t = 0; t < n; t += 32) {
    const __m256i e = load(sums + t), o = load(sums + t + 16);
    const __m256i low = _mm256_unpacklo_epi16(e, o), high = _mm256_unpackhi_epi16(e, o);
    std::uint16_t values[32];
    std::uint16_t* out = n - t >= 32 ? to + t : values;
    save(out, _mm256_permute2x128_si256(low, high, 0x20));
    save(out + 16, _mm256_permute2x128_si256(low, high, 0x31));
    if (out == values) std::copy_n(values, n - t, to + t);
  }
}

void store_u32(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first) {
  for (std::int64_t t = 0; t < n; t += 32) {
    std::uint16_t values[32];
    const std::int64_t part = std::min<std::int64_t>(32, n - t);
    store_u16(sums + t, values, 32);
    for (std::int64_t k = 0; k < part; ++k) to[t + k] = first ? values[k] : to[t + k] + values[k];
  }
}

void block_maxima(const std::int32_t* prefix, std::int64_t width, std::int64_t n_blocks,
                  std::int32_t* to) {
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const std::int32_t* p = prefix + 64 * b;
    __m256i best = _mm256_sub_epi32(load(p + width), load(p));
    for (int k = 8; k < 64; k += 8)
      best = _mm256_max_epi32(best, _mm256_sub_epi32(load(p + width + k), load(p + k)));
    alignas(32) std::int32_t lanes[8];
    save(lanes, best);
    to[b] = *std::max_element(lanes, lanes + 8);
  }
}

constexpr CpuKernel kKernel{"search/cpu/avx2",
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

const CpuKernel* cpu_kernel_avx2() { return &kKernel; }

}  // namespace ryle::search::detail
#else
namespace ryle::search::detail {
const CpuKernel* cpu_kernel_avx2() { return nullptr; }
}  // namespace ryle::search::detail
#endif
