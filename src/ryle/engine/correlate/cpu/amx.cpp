// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// The correlator on AMX: tdpbssd multiplies tiles of 16 rows x 64 bytes with panels of 16 columns.
//   Re_ij = sum [re_j im_j] . [re_i; im_i]        = rows . b
//   Im_ij = sum [re_j im_j] . [im_i; -re_i - 1]   = rows . c, corrected by the sums of the rows
//
//   array    axes                                          type    unit
//   rows     [cell][input][re 32, im 32, re 32, im 32]     s8      LSB; loaded as tiles, in place
//   panel    [cell][run of 2][re; im; ~re: 24 x 64 bytes]  s8      LSB; b is its first 16 rows, c its last 16
//   acc      [row][re 16, im 16]                           int32   LSB^2
//
// A call takes up to 32 rows: four tiles hold sums, two hold rows, two hold b and c. Four loads feed
// four products. Below about 64 inputs memory, not arithmetic, limits AMX (README, Cost and limits).
// clang-format on
#include "ryle/engine/correlate/cpu/tile.hpp"

#if defined(__AMX_INT8__) && defined(__AVX512VNNI__)
#include "ryle/engine/correlate/cpu/pack512.hpp"

namespace ryle::correlate::detail {
namespace {

constexpr std::int64_t kRunPanelBytes = 24 * 64;

// Tiles: 0-3 sums (re, im of rows 0-15; re, im of rows 16-31), 4 and 5 rows, 6 and 7 columns b and
// c.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {};
};

inline void load_shapes(std::int64_t rows0, std::int64_t rows1) {
  TileShapes shapes;
  const auto first = static_cast<std::uint8_t>(rows0);
  const auto second = static_cast<std::uint8_t>(rows1);
  const std::uint8_t rows[8] = {first, first, second, second, first, second, 16, 16};
  for (int k = 0; k < 8; ++k) shapes.rows[k] = rows[k];
  _tile_loadconfig(&shapes);
}

// 17..32 rows: four sums, four loads and four products per 32 spectra.
inline void multiply_two(const std::uint8_t* a, const Cells& rows, const std::uint8_t* panel,
                         std::int64_t n_cells, std::int32_t* acc, Ahead& ahead) {
  const std::int64_t stride = rows.input_stride_bytes;
  std::int32_t* acc1 = acc + 16 * 32;
  _tile_loadd(0, acc, 128);
  _tile_loadd(1, acc + 16, 128);
  _tile_loadd(2, acc1, 128);
  _tile_loadd(3, acc1 + 16, 128);
  for (std::int64_t cell = 0; cell < n_cells; ++cell, a += rows.cell_stride_bytes) {
    for (int run = 0; run < 2; ++run, panel += kRunPanelBytes) {
      fetch_ahead(ahead);
      _tile_loadd(4, a + 64 * run, stride);
      _tile_loadd(6, panel, 64);
      _tile_loadd(7, panel + 8 * 64, 64);
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      _tile_loadd(5, a + 16 * stride + 64 * run, stride);
      _tile_dpbssd(2, 5, 6);
      _tile_dpbssd(3, 5, 7);
    }
  }
  _tile_stored(0, acc, 128);
  _tile_stored(1, acc + 16, 128);
  _tile_stored(2, acc1, 128);
  _tile_stored(3, acc1 + 16, 128);
}

// 1..16 rows: two sums alone would wait for the latency of the products, so even and odd runs have
// their own.
inline void multiply_one(const std::uint8_t* a, const Cells& rows, std::int64_t n_rows,
                         const std::uint8_t* panel, std::int64_t n_cells, std::int32_t* acc,
                         Ahead& ahead) {
  const std::int64_t stride = rows.input_stride_bytes;
  _tile_loadd(0, acc, 128);
  _tile_loadd(1, acc + 16, 128);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t cell = 0; cell < n_cells;
       ++cell, a += rows.cell_stride_bytes, panel += 2 * kRunPanelBytes) {
    fetch_ahead(ahead);
    fetch_ahead(ahead);
    _tile_loadd(4, a, stride);
    _tile_loadd(6, panel, 64);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, panel + 8 * 64, 64);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, a + 64, stride);
    _tile_loadd(6, panel + kRunPanelBytes, 64);
    _tile_dpbssd(2, 5, 6);
    _tile_loadd(7, panel + kRunPanelBytes + 8 * 64, 64);
    _tile_dpbssd(3, 5, 7);
  }
  alignas(64) std::int32_t odd[16 * 32];
  _tile_stored(0, acc, 128);
  _tile_stored(1, acc + 16, 128);
  _tile_stored(2, odd, 128);
  _tile_stored(3, odd + 16, 128);
  for (std::int64_t k = 0; k < 2 * n_rows; ++k) {
    const __m512i sum =
        _mm512_add_epi32(_mm512_load_si512(acc + 16 * k), _mm512_load_si512(odd + 16 * k));
    _mm512_store_si512(acc + 16 * k, sum);
  }
}

void multiply(const Cells& rows, std::int64_t n_rows, const std::uint8_t* panel,
              std::int64_t n_cells, void* acc, Ahead& ahead) {
  auto* to = static_cast<std::int32_t*>(acc);
  const std::uint8_t* a = rows.data;
  std::int64_t left = n_rows;
  for (; left >= 32; left -= 32, a += 32 * rows.input_stride_bytes, to += 32 * 32) {
    multiply_two(a, rows, panel, n_cells, to, ahead);
  }
  if (left == 0) return;
  if (left != 16) load_shapes(left > 16 ? 16 : left, left > 16 ? left - 16 : left);
  if (left > 16) {
    multiply_two(a, rows, panel, n_cells, to, ahead);
  } else {
    multiply_one(a, rows, left, panel, n_cells, to, ahead);
  }
  if (left != 16) load_shapes(16, 16);
}

// Loading and releasing the configuration costs as much as a tile of a small array: once per task,
// not per panel.
void enter() { load_shapes(16, 16); }
void leave() { _tile_release(); }

void pack(const Cells& cells, std::int64_t n_inputs, std::int64_t n_cells, std::uint8_t* panel,
          std::int32_t* sums_re, std::int32_t* sums_im) {
  pack_bytes(cells, n_inputs, n_cells, panel, sums_re, sums_im, _mm512_setzero_si512(),
             _mm512_set1_epi8(-1));
}

// c holds ~re = -re - 1: Im lacks sum im(v_j).
constexpr CpuKernel kBytes{"amx", false, 16, 128, 64, 2 * kRunPanelBytes, 8,    512,
                           32,    0,     0,  0,   1,  expand_to_bytes,    pack, multiply,
                           enter, leave};

}  // namespace

const CpuKernel* cpu_kernel_amx() { return &kBytes; }

}  // namespace ryle::correlate::detail
#else
namespace ryle::correlate::detail {
const CpuKernel* cpu_kernel_amx() { return nullptr; }
}  // namespace ryle::correlate::detail
#endif
