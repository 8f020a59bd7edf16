// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// Private to the engine: the plain-C interface between the driver (cpu/make.cpp) and one
/// translation unit per instruction set. Nothing here may contain inline code: it is included by
/// files compiled for different instruction sets.
namespace ryle::correlate::detail {

/// Cells of one gulp and channel: [cell][input], each cell_bytes long, base and strides in bytes.
struct Cells {
  const std::uint8_t* data;
  std::int64_t cell_stride_bytes;
  std::int64_t input_stride_bytes;
};

/// Memory the next task will read, fetched into the level-2 cache while this one computes: two
/// ranges of whole lines, a few lines per run. The kernels advance it.
struct Ahead {
  const std::uint8_t* at[2];
  std::int64_t lines[2];
  std::int64_t lines_per_run;
};

/// How a sample format becomes the cells a kernel multiplies.
enum class Expansion : std::uint8_t {
  none,        ///< the planar blocks are the cells
  ci4_to_s8,   ///< 1 block -> 2 cells in time
  ci16_to_s8,  ///< 1 pair of blocks -> 1 cell of two virtual inputs: floor(x/256) and (x & 255) -
               ///< 128
  ci8_to_s16,  ///< as ci8, widened
  ci4_to_s16,
  ci16_to_s16,
  cf16_to_f32,  ///< 1 block -> 2 cells in time
};

/// One instruction set. A tile is `columns` inputs i (operand B, packed into panels, one vector)
/// times any number of rows j (operand A, read from the cells); re and im of sum v_i conj(v_j) are
/// added to acc[row][re, im][columns].
struct CpuKernel {
  const char* instruction_set;
  bool floating;  ///< acc is double (else int32, wrap-around harmless)
  std::int64_t columns;
  std::int64_t cell_bytes;
  std::int64_t spectra_per_cell;
  std::int64_t panel_cell_bytes;  ///< one cell of `columns` inputs, packed: planes re, im, -re (or
                                  ///< its 8-bit stand-in)
  std::int64_t cells_per_pass;    ///< a panel of so many cells stays in the level-1 cache
  std::int64_t superrows;         ///< so many rows are reused from the level-2 cache by all panels
  std::int64_t rows_per_tile;
  /// The 8-bit stand-ins cost a known multiple of the row sums R = sum re(v_j), S = sum im(v_j):
  /// true re = acc_re + re_from_re R + re_from_im S, and so on, modulo 2^32.
  std::int32_t re_from_re, re_from_im, im_from_re, im_from_im;
  /// One view cell to kernel cells; `time_stride` between cells of one input, `input_stride`
  /// between virtual inputs.
  void (*expand)(Expansion expansion, const std::uint8_t* from, std::uint8_t* to,
                 std::int64_t time_stride_bytes, std::int64_t input_stride_bytes);
  /// Packs n_inputs (<= columns) inputs x n_cells and adds their sums to sums_re, sums_im (integers
  /// only).
  void (*pack)(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells, std::uint8_t* panel,
               std::int32_t* sums_re, std::int32_t* sums_im);
  void (*multiply)(const Cells& rows, std::int64_t n_rows, const std::uint8_t* panel,
                   std::int64_t n_cells, void* acc, Ahead& ahead);
  /// Called by a worker around its calls of multiply (tile configuration); nullptr = nothing to do.
  void (*enter)();
  void (*leave)();
};

/// nullptr when the compiler or architecture of this build has no such code.
const CpuKernel* cpu_kernel_amx();
const CpuKernel* cpu_kernel_avx512_vnni();
const CpuKernel* cpu_kernel_avx_vnni();
const CpuKernel* cpu_kernel_avx2();
const CpuKernel* cpu_kernel_generic();
const CpuKernel* cpu_kernel_avx512_f32();
const CpuKernel* cpu_kernel_avx2_f32();
const CpuKernel* cpu_kernel_generic_f32();

}  // namespace ryle::correlate::detail
