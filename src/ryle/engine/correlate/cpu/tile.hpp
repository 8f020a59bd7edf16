// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <cstring>

#include "ryle/engine/correlate/cpu/expand.hpp"
#include "ryle/engine/correlate/cpu/kernel.hpp"

// clang-format off
/// Shared source of the per-instruction-set files: the register tile that all of them run. It computes
/// V_ij = sum_t v_i conj(v_j) for some rows j and one panel of columns i:
///   Re_ij = sum re_i re_j + im_i im_j;   Im_ij = sum im_i re_j - re_i im_j
///
///   array    axes                                                  type               unit
///   rows     [cell][input][cell_bytes], read in place              s8, s16 or float   LSB
///   panel    [cell][run][plane re, im, -re][step of 8][column]     32-bit words       LSB, or its u8 stand-in
///   acc      [row][re, im][column]                                 int32 or double    LSB^2
///
/// A word holds 4 spectra of 8 bits, 2 of 16 bits or one float. A lane is a column. A step broadcasts one
/// word of a row and multiplies it with one word of every column. Sums of up to kMaxRows rows stay in
/// registers through a pass; the panel stays in the level-1 cache, and rows come from the level-2 cache
/// with software prefetch, because they lie in pieces too short for the hardware's. The instructions
/// that multiply bind; for less than about 64 inputs memory binds under AMX (README, Cost and limits).
///
/// Everything is in an anonymous namespace and uses no inline library code, because each includer is
/// compiled for another instruction set and the linker must never merge two copies.
// clang-format on
///
/// An Ops class says what one vector step is:
///   Vec, Acc            vector register; element type of the accumulators (int32_t or double)
///   kColumns            inputs per panel = 32-bit lanes of Vec
///   kRuns, kRunBytes    runs of 8 steps (32-bit words) per cell; bytes from run to run
///   kRunSteps, kImBytes 8; bytes from the re to the im part of a run
///   kMaxRows            rows whose accumulators fit the register file
///   load, zero, broadcast, dot(acc, b, a), add(acc memory, re, im)
///   re_plane, im_plane, negative_plane   32-bit word of a cell -> word of the panel
///   sum(word)           sum of the samples in a word
///   kCellSpectra, kSuperrows, kStandIn, expand   as in CpuKernel; the last two for make_kernel()
namespace ryle::correlate::detail {
namespace {

// One run's share of the lines the next task will read.
inline void fetch_ahead(Ahead& ahead) {
  for (std::int64_t k = 0; k < ahead.lines_per_run; ++k) {
    if (ahead.lines[0] == 0) {
      ahead.at[0] = ahead.at[1];
      ahead.lines[0] = ahead.lines[1];
      ahead.lines[1] = 0;
      if (ahead.lines[0] == 0) return;
    }
    __builtin_prefetch(ahead.at[0], 0, 2);
    ahead.at[0] += 64;
    --ahead.lines[0];
  }
}

// Sums are named one by one, not in arrays: gcc 12 leaves arrays of more than a few vectors in
// memory, at half the speed.
#define RYLE_EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)

// @eq Re_ij = re_i re_j + im_i im_j;  Im_ij = im_i re_j - re_i im_j   (column i, row j)
template <class Ops, int Rows>
void multiply_tile(const std::uint8_t* a, std::int64_t input_stride, std::int64_t cell_stride,
                   const std::uint8_t* b, std::int64_t n_cells, typename Ops::Acc* acc,
                   Ahead& ahead) {
  static_assert(Rows >= 1 && Rows <= 12);
  using Vec = typename Ops::Vec;
  constexpr std::int64_t kPlane = Ops::kRunSteps * sizeof(Vec);
#define RYLE_ZERO(r) [[maybe_unused]] Vec re##r = Ops::zero(), im##r = Ops::zero();
  RYLE_EACH_ROW(RYLE_ZERO)
#undef RYLE_ZERO
  // One flat loop with eight unrolled steps: in nested loops gcc 12 spills the sums.
  const std::int64_t n_runs = n_cells * Ops::kRuns;
  int run = 0;
  for (std::int64_t k = 0; k < n_runs; ++k, b += 3 * kPlane) {
    fetch_ahead(ahead);
    // Three rows per base pointer: base, base + stride, base + 2 stride are one addressing mode
    // each.
    const std::uint8_t* base0 = a;
    [[maybe_unused]] const std::uint8_t* base1 = a + 3 * input_stride;
    [[maybe_unused]] const std::uint8_t* base2 = a + 6 * input_stride;
    [[maybe_unused]] const std::uint8_t* base3 = a + 9 * input_stride;
#define RYLE_BASE(r) \
  ((r / 3 == 0 ? base0 : r / 3 == 1 ? base1 : r / 3 == 2 ? base2 : base3) + r % 3 * input_stride)
    // Rows lie in short pieces that no hardware prefetcher follows.
#define RYLE_PREFETCH(r) \
  if constexpr (r < Rows) __builtin_prefetch(RYLE_BASE(r) + cell_stride);
    RYLE_EACH_ROW(RYLE_PREFETCH)
#undef RYLE_PREFETCH
#pragma GCC unroll 8
    for (int step = 0; step < Ops::kRunSteps; ++step) {
      const std::uint8_t* panel = b + step * static_cast<std::int64_t>(sizeof(Vec));
      const Vec b_re = Ops::load(panel);
      const Vec b_im = Ops::load(panel + kPlane);
      const Vec b_minus_re = Ops::load(panel + 2 * kPlane);
#define RYLE_ROW(r)                                                           \
  if constexpr (r < Rows) {                                                   \
    const Vec a_re = Ops::broadcast(RYLE_BASE(r) + 4 * step);                 \
    re##r = Ops::dot(re##r, b_re, a_re);                                      \
    im##r = Ops::dot(im##r, b_im, a_re);                                      \
    const Vec a_im = Ops::broadcast(RYLE_BASE(r) + 4 * step + Ops::kImBytes); \
    re##r = Ops::dot(re##r, b_im, a_im);                                      \
    im##r = Ops::dot(im##r, b_minus_re, a_im);                                \
  }
      RYLE_EACH_ROW(RYLE_ROW)
#undef RYLE_ROW
    }
#undef RYLE_BASE
    a += Ops::kRunBytes;
    if (++run == Ops::kRuns) {
      run = 0;
      a += cell_stride - Ops::kRuns * Ops::kRunBytes;
    }
  }
#define RYLE_ADD(r) \
  if constexpr (r < Rows) Ops::add(acc + r * (2 * Ops::kColumns), re##r, im##r);
  RYLE_EACH_ROW(RYLE_ADD)
#undef RYLE_ADD
#undef RYLE_EACH_ROW
}

template <class Ops, int Rows>
void multiply_rows(int n, const Cells& rows, const std::uint8_t* panel, std::int64_t n_cells,
                   typename Ops::Acc* acc, Ahead& ahead) {
  if constexpr (Rows > 0) {
    if (n == Rows) {
      multiply_tile<Ops, Rows>(rows.data, rows.input_stride_bytes, rows.cell_stride_bytes, panel,
                               n_cells, acc, ahead);
    } else {
      multiply_rows<Ops, Rows - 1>(n, rows, panel, n_cells, acc, ahead);
    }
  }
}

// Rows are split into groups as even as possible: 13 rows as 7 + 6, not 12 + 1, which would starve
// the pipelines.
template <class Ops>
void multiply_panel(const Cells& rows, std::int64_t n_rows, const std::uint8_t* panel,
                    std::int64_t n_cells, void* acc, Ahead& ahead) {
  auto* to = static_cast<typename Ops::Acc*>(acc);
  const std::int64_t n_groups = (n_rows + Ops::kMaxRows - 1) / Ops::kMaxRows;
  for (std::int64_t group = 0; group < n_groups; ++group) {
    const std::int64_t begin = group * n_rows / n_groups;
    const std::int64_t end = (group + 1) * n_rows / n_groups;
    const Cells part{rows.data + begin * rows.input_stride_bytes, rows.cell_stride_bytes,
                     rows.input_stride_bytes};
    multiply_rows<Ops, Ops::kMaxRows>(static_cast<int>(end - begin), part, panel, n_cells,
                                      to + begin * 2 * Ops::kColumns, ahead);
  }
}

// Packing word by word: for the instruction sets where it is not the bottleneck, and the oracle of
// the shuffled ones.
template <class Ops>
void pack_words(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells,
                std::uint8_t* panel, std::int32_t* sums_re, std::int32_t* sums_im) {
  constexpr std::int64_t kPlaneWords = Ops::kRunSteps * Ops::kColumns;
  for (std::int64_t cell = 0; cell < n_cells; ++cell) {
    for (int run = 0; run < Ops::kRuns; ++run) {
      auto* to =
          reinterpret_cast<std::uint32_t*>(panel + (cell * Ops::kRuns + run) * 3 * kPlaneWords * 4);
      for (std::int64_t column = 0; column < Ops::kColumns; ++column) {
        const std::uint8_t* from = cells.data + cell * cells.cell_stride_bytes +
                                   column * cells.input_stride_bytes + run * Ops::kRunBytes;
        for (int step = 0; step < Ops::kRunSteps; ++step) {
          std::uint32_t re = 0;
          std::uint32_t im = 0;
          if (column < n_inputs) {
            std::memcpy(&re, from + 4 * step, 4);
            std::memcpy(&im, from + Ops::kImBytes + 4 * step, 4);
            sums_re[column] += Ops::sum(re);
            sums_im[column] += Ops::sum(im);
          }
          std::uint32_t* word = to + step * Ops::kColumns + column;
          word[0] = Ops::re_plane(re);
          word[kPlaneWords] = Ops::im_plane(im);
          word[2 * kPlaneWords] = Ops::negative_plane(re);
        }
      }
    }
  }
}

inline std::int32_t sum_of_bytes(std::uint32_t word) {
  return static_cast<std::int8_t>(word) + static_cast<std::int8_t>(word >> 8) +
         static_cast<std::int8_t>(word >> 16) + static_cast<std::int8_t>(word >> 24);
}

// Places of 8-bit cells, shared by all kernels that multiply bytes.
struct ByteCell {
  using Acc = std::int32_t;
  static constexpr std::int64_t kCellSpectra = 64, kSuperrows = 512;
  static constexpr auto expand = expand_to_bytes;
  static constexpr int kRuns = 2;
  static constexpr std::int64_t kRunBytes = 64;
  static constexpr int kRunSteps = 8;
  static constexpr std::int64_t kImBytes = 32;
  static std::int32_t sum(std::uint32_t word) { return sum_of_bytes(word); }
};

// u8 x s8 instructions: B is stored as u8, x + 128 (and 127 - x for the negative plane).
struct OffsetByteCell : ByteCell {
  static constexpr std::int32_t kStandIn[4] = {-128, -128, -128, -127};
  static std::uint32_t re_plane(std::uint32_t word) { return word ^ 0x80808080u; }
  static std::uint32_t im_plane(std::uint32_t word) { return word ^ 0x80808080u; }
  static std::uint32_t negative_plane(std::uint32_t word) { return word ^ 0x7f7f7f7fu; }
};

// 16-bit cells: 64 re, then 64 im; -128..127 each, so a negation is exact.
struct ShortCell {
  using Acc = std::int32_t;
  static constexpr std::int64_t kCellSpectra = 64, kSuperrows = 256;
  static constexpr std::int32_t kStandIn[4] = {};
  static constexpr auto expand = expand_to_shorts;
  static constexpr int kRuns = 4;
  static constexpr std::int64_t kRunBytes = 32;
  static constexpr int kRunSteps = 8;
  static constexpr std::int64_t kImBytes = 128;
  static std::uint32_t re_plane(std::uint32_t word) { return word; }
  static std::uint32_t im_plane(std::uint32_t word) { return word; }
  static std::uint32_t negative_plane(std::uint32_t word) {
    return ((0u - (word >> 16)) << 16) | ((0u - word) & 0xffffu);
  }
  static std::int32_t sum(std::uint32_t word) {
    return static_cast<std::int16_t>(word) + static_cast<std::int16_t>(word >> 16);
  }
};

struct FloatCell {
  using Acc = double;
  static constexpr std::int64_t kCellSpectra = 16, kSuperrows = 512;
  static constexpr std::int32_t kStandIn[4] = {};
  static constexpr auto expand = expand_to_floats;
  static constexpr int kRuns = 2;
  static constexpr std::int64_t kRunBytes = 32;
  static constexpr int kRunSteps = 8;
  static constexpr std::int64_t kImBytes = 64;
  static std::uint32_t re_plane(std::uint32_t word) { return word; }
  static std::uint32_t im_plane(std::uint32_t word) { return word; }
  static std::uint32_t negative_plane(std::uint32_t word) { return word ^ 0x80000000u; }
  static std::int32_t sum(std::uint32_t) { return 0; }
};

template <class Ops>
constexpr CpuKernel make_kernel(const char* instruction_set, std::int64_t cells_per_pass,
                                decltype(CpuKernel::pack) pack) {
  constexpr std::int64_t kWords = Ops::kRuns * Ops::kRunSteps;  // of a cell and part
  CpuKernel k{};
  k.instruction_set = instruction_set;
  k.floating = sizeof(typename Ops::Acc) == 8;
  k.columns = Ops::kColumns;
  k.cell_bytes = 2 * 4 * kWords;
  k.spectra_per_cell = Ops::kCellSpectra;
  k.panel_cell_bytes = 3 * 4 * kWords * Ops::kColumns;
  k.cells_per_pass = cells_per_pass;
  k.superrows = Ops::kSuperrows;
  k.rows_per_tile = Ops::kMaxRows;
  k.re_from_re = Ops::kStandIn[0];
  k.re_from_im = Ops::kStandIn[1];
  k.im_from_re = Ops::kStandIn[2];
  k.im_from_im = Ops::kStandIn[3];
  k.expand = Ops::expand;
  k.pack = pack;
  k.multiply = multiply_panel<Ops>;
  return k;
}

}  // namespace
}  // namespace ryle::correlate::detail
