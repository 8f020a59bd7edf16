// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <vector>

#include "ryle/engine/correlate/cuda/wgmma_layout.hpp"
#include "tests/engine/correlate/voltages.hpp"

/// What Hopper's copies and tensor cores do with addresses, as the PTX manual says it: bytes, two
/// of which are a half where samples are halves.
namespace ryle::correlate::test {

using namespace wgmma;

/// Hardware: with 128-byte swizzling, address bits 4 to 6 are crossed with bits 7 to 9.
inline unsigned crossed(unsigned address) { return address ^ (address >> 3 & 0x70u); }

using Slot = std::array<std::int8_t, kSlotBytes>;

/// A tensor copy of `rows` inputs of each of 128 / rows channels.
inline Slot bring(const Voltages& v, int channel, int first_input, int block, int rows) {
  Slot slot{};
  for (int r = 0; r < kTile; ++r) {
    const std::int64_t c = channel + r / rows, i = first_input + r % rows;
    if (c >= v.view.n_channels || i >= v.view.n_inputs) continue;
    for (unsigned b = 0; b < kRowBytes; ++b) {
      slot[crossed(static_cast<unsigned>(r) * kRowBytes + b)] =
          static_cast<std::int8_t>(v.view.cell(c, block, i)[b]);
    }
  }
  return slot;
}

using OperandA = std::array<std::array<std::int8_t, kPartBytes>, kGroupRows>;
using OperandB = std::array<std::array<std::int8_t, kPartBytes>, kTile>;
/// ldmatrix .x4: lane l of matrix m gets 4 bytes of row l / 4 from the address of lane 8 m + l / 4.
/// Operand A of m64k32: register m of lane l is rows l / 4 (+ 8 if m is odd), bytes 4 (l % 4) ..
/// (+ 16 if m > 1) of its warp's 16 rows.
inline OperandA operand_rows(const Slot& slot, int warpgroup, int step, int part) {
  OperandA a;
  for (int warp = 0; warp < 4; ++warp) {
    for (int l = 0; l < 32; ++l) {
      for (int m = 0; m < 4; ++m) {
        const int from = operand_a(warpgroup, warp, 8 * m + l / 4, step, part) + 4 * (l % 4);
        for (int byte = 0; byte < 4; ++byte) {
          a[static_cast<std::size_t>(16 * warp + l / 4 + 8 * (m % 2))]
           [static_cast<std::size_t>(4 * (l % 4) + 16 * (m / 2) + byte)] =
               slot[static_cast<std::size_t>(from + byte)];
        }
      }
    }
  }
  return a;
}

/// Operand B of a descriptor: bits 0-13 start, 32-45 stride of eight rows (both / 16), 62-63
/// swizzle.
inline OperandB operand_columns(const Slot& slot, int first_row, int step, int part) {
  constexpr unsigned kSlotAt = 3 * kSlotBytes;  // anywhere a slot may lie
  const std::uint64_t descriptor = operand_b(kSlotAt, first_row, step, part);
  EXPECT_EQ(descriptor >> 62, 1u);
  const auto start = static_cast<unsigned>(descriptor & 0x3fff) << 4;
  const auto stride = static_cast<unsigned>(descriptor >> 32 & 0x3fff) << 4;
  OperandB b{};
  for (unsigned n = 0; n < kTile; ++n) {
    for (unsigned k = 0; k < kPartBytes; ++k) {
      const unsigned at = crossed(start + n / 8 * stride + n % 8 * kRowBytes + k) - kSlotAt;
      if (at < kSlotBytes) b[n][k] = slot[at];
    }
  }
  return b;
}

/// Sums of a warpgroup's rows.
using ByteProduct = std::array<std::array<std::int32_t, kTile>, kGroupRows>;

inline std::int32_t add_wrapping(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}

inline void multiply_bytes(ByteProduct& sum, const OperandA& a, const OperandB& b,
                           std::size_t n_columns, bool complement = false) {
  for (std::size_t r = 0; r < kGroupRows; ++r) {
    for (std::size_t n = 0; n < n_columns; ++n) {
      std::int32_t s = 0;
      for (std::size_t k = 0; k < kPartBytes; ++k)
        s += (complement ? ~a[r][k] : a[r][k]) * static_cast<std::int32_t>(b[n][k]);
      sum[r][n] = add_wrapping(sum[r][n], s);
    }
  }
}

/// Sums of m64nNk32: register r of lane l of warp w is row 16 w + l / 4 (+ 8 if r % 4 > 1),
/// column 8 (r / 4) + 2 (l % 4) + r % 2. The kernel stores it at sum_at().
inline void keep_bytes(std::vector<std::int32_t>& sums, const Layout& layout, std::int64_t id,
                       int warpgroup, const ByteProduct& re, const ByteProduct& im,
                       bool overwrite) {
  for (int r = 0; r < layout.part_sums() / kThreads; ++r) {
    for (int thread = 0; thread < 128; ++thread) {
      const int l = thread % 32;
      const auto row = static_cast<std::size_t>(thread / 32 * 16 + l / 4 + r % 4 / 2 * 8);
      const auto column = static_cast<std::size_t>(r / 4 * 8 + 2 * (l % 4) + r % 2);
      const auto to = static_cast<std::size_t>(
          id * layout.item_sums() + sum_at(warpgroup * 128 + thread, r, layout.registers()));
      const std::int32_t found[2] = {re[row][column], im[row][column]};
      for (std::size_t part = 0; part < 2; ++part) {
        auto& sum = sums[to + part * static_cast<std::size_t>(layout.part_sums())];
        sum = overwrite ? found[part] : add_wrapping(sum, found[part]);
      }
    }
  }
}

}  // namespace ryle::correlate::test
