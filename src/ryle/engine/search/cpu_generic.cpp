// SPDX-License-Identifier: BSD-3-Clause
// Any CPU: plain loops the compiler vectorises with what the baseline has.
#include <algorithm>
#include <limits>

#include "ryle/engine/search/cpu_kernel.hpp"
#include "ryle/engine/search/cpu_series.inc.hpp"

namespace ryle::search::detail {
namespace {

void sum_rows(const std::uint8_t* const* rows, int n_rows, std::uint8_t* to, std::int64_t n) {
  const std::uint8_t* a = rows[0];
  const std::uint8_t* b = rows[1];
  if (n_rows == 2) {
    for (std::int64_t t = 0; t < n; ++t) to[t] = static_cast<std::uint8_t>(a[t] + b[t]);
    return;
  }
  const std::uint8_t* c = rows[2];
  const std::uint8_t* d = rows[3];
  for (std::int64_t t = 0; t < n; ++t) to[t] = static_cast<std::uint8_t>(a[t] + b[t] + c[t] + d[t]);
}

void accumulate(const Accumulation& w) {
  for (std::int64_t i = 0; i < w.n_trials; ++i) {
    std::uint16_t* sums = w.sums + i * w.sum_stride;
    if (w.first) std::fill_n(sums, w.n, std::uint16_t{0});
    for (std::int64_t t = 0; t < w.n; t += kChunk) {
      std::uint16_t local[kChunk];
      std::copy_n(sums + t, kChunk, local);
      for (std::int64_t g = 0; g < w.n_groups; ++g) {
        const std::uint8_t* row = w.base + w.starts[g * w.n_trials + i] + t;
        for (std::int64_t k = 0; k < kChunk; ++k)
          local[k] = static_cast<std::uint16_t>(local[k] + row[k]);
      }
      std::copy_n(local, kChunk, sums + t);
    }
  }
}

void store_u16(const std::uint16_t* sums, std::uint16_t* to, std::int64_t n) {
  std::copy_n(sums, n, to);
}

void store_u32(const std::uint16_t* sums, std::uint32_t* to, std::int64_t n, bool first) {
  for (std::int64_t t = 0; t < n; ++t) to[t] = first ? sums[t] : to[t] + sums[t];
}

void block_maxima(const std::int32_t* prefix, std::int64_t width, std::int64_t n_blocks,
                  std::int32_t* to) {
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    std::int32_t best = std::numeric_limits<std::int32_t>::min();
    const std::int32_t* p = prefix + 64 * b;
    for (std::int64_t t = 0; t < 64; ++t) best = std::max(best, p[t + width] - p[t]);
    to[b] = best;
  }
}

constexpr CpuKernel kKernel{"search/cpu/generic",
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

const CpuKernel* cpu_kernel_generic() { return &kKernel; }

}  // namespace ryle::search::detail
