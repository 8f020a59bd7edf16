// SPDX-License-Identifier: BSD-3-Clause
// Single-precision multiply-add ceiling of one core: independent chains in registers, widest
// vectors of this CPU.
#include <algorithm>
#include <chrono>

#include "bench/bench.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ryle::bench {
namespace {

constexpr int kChains = 12;  // two units with a latency of four or five clocks need 8 to 10
constexpr int kLoops = 1 << 18;

/// Best of several runs: the ceiling is what the core can do, not what it did while it was
/// interrupted.
template <class Body>
double best_rate(double operations, const Body& body) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int run = 0; run < 20; ++run) {
    const auto start = Clock::now();
    body();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, operations / seconds);
  }
  return best;
}

#if defined(__x86_64__)
__attribute__((target("avx512f"), noinline)) void chains_avx512(float* out) {
  __m512 sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm512_set1_ps(static_cast<float>(i));
  const __m512 a = _mm512_set1_ps(0.999f);
  for (int loop = 0; loop < kLoops; ++loop) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm512_fmadd_ps(sum[i], a, a);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm512_add_ps(sum[0], sum[i]);
  _mm512_storeu_ps(out, sum[0]);
}

__attribute__((target("avx2,fma"), noinline)) void chains_avx2(float* out) {
  __m256 sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = _mm256_set1_ps(static_cast<float>(i));
  const __m256 a = _mm256_set1_ps(0.999f);
  for (int loop = 0; loop < kLoops; ++loop) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sum[i] = _mm256_fmadd_ps(sum[i], a, a);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = _mm256_add_ps(sum[0], sum[i]);
  _mm256_storeu_ps(out, sum[0]);
}
#endif

}  // namespace

double ceiling_fma_f32_ops() {
#if defined(__x86_64__)
  alignas(64) static volatile float sink;
  float out[16] = {};
  const double per_lane = 2.0 * kChains * kLoops;
  double rate = 0;
  if (__builtin_cpu_supports("avx512f")) {
    rate = best_rate(16 * per_lane, [&] { chains_avx512(out); });
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    rate = best_rate(8 * per_lane, [&] { chains_avx2(out); });
  }
  sink = out[0];
  static_cast<void>(sink);
  return rate;
#else
  return 0;
#endif
}

}  // namespace ryle::bench
