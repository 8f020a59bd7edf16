// SPDX-License-Identifier: BSD-3-Clause
// What one core can do with 8-bit integers at all: registers only, 2 operations per multiply-add.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "bench/bench.hpp"
#include "ryle/device/queue.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ryle::bench {
namespace {

bool has(const char* set) {
  const auto sets = cpu_instruction_sets();
  return std::find(sets.begin(), sets.end(), set) != sets.end();
}

// Best of many runs of about 0.2 ms, shorter than a time slice: interruptions only ever slow one
// down.
template <class Loop>
double best_rate(const Loop& loop, std::int64_t iterations, double ops_per_iteration) {
  using Clock = std::chrono::steady_clock;
  double best = 0;
  for (int run = 0; run < 150; ++run) {
    const auto start = Clock::now();
    loop(iterations);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, ops_per_iteration * static_cast<double>(iterations) / seconds);
  }
  return best;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512vnni"))) void vpdpbusd_loop(std::int64_t iterations) {
  const __m512i a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(5);
  __m512i c0 = a, c1 = a, c2 = a, c3 = a, c4 = a, c5 = a, c6 = a, c7 = a, c8 = a, c9 = a, c10 = a,
          c11 = a;
  for (std::int64_t k = 0; k < iterations; ++k) {
    asm volatile(
        "vpdpbusd %13, %12, %0\n\tvpdpbusd %13, %12, %1\n\tvpdpbusd %13, %12, %2\n\tvpdpbusd %13, "
        "%12, %3\n\t"
        "vpdpbusd %13, %12, %4\n\tvpdpbusd %13, %12, %5\n\tvpdpbusd %13, %12, %6\n\tvpdpbusd %13, "
        "%12, %7\n\t"
        "vpdpbusd %13, %12, %8\n\tvpdpbusd %13, %12, %9\n\tvpdpbusd %13, %12, %10\n\tvpdpbusd %13, "
        "%12, %11"
        : "+v"(c0), "+v"(c1), "+v"(c2), "+v"(c3), "+v"(c4), "+v"(c5), "+v"(c6), "+v"(c7), "+v"(c8),
          "+v"(c9), "+v"(c10), "+v"(c11)
        : "v"(a), "v"(b));
  }
}

__attribute__((target("amx-tile,amx-int8"))) void tdpbssd_loop(std::int64_t iterations) {
  struct alignas(64) Shapes {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } const shapes;
  alignas(64) std::int8_t operand[1024];
  std::fill(operand, operand + 1024, std::int8_t{3});
  _tile_loadconfig(&shapes);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, operand, 64);
  _tile_loadd(5, operand, 64);
  _tile_loadd(6, operand, 64);
  _tile_loadd(7, operand, 64);
  for (std::int64_t k = 0; k < iterations; ++k) {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
  _tile_release();
}
#endif

}  // namespace

double ceiling_vpdpbusd_ops() {
#if defined(__x86_64__)
  if (has("avx512_vnni")) return best_rate(vpdpbusd_loop, 100'000, 12 * 64 * 2.0);
#endif
  return 0;
}

double ceiling_amx_int8_ops() {
#if defined(__x86_64__)
  if (has("amx")) return best_rate(tdpbssd_loop, 8'000, 4 * 16384 * 2.0);
#endif
  return 0;
}

}  // namespace ryle::bench
