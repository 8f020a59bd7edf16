// SPDX-License-Identifier: BSD-3-Clause
// The tables of the CUDA imagers are plain C++: what a kernel would make of them, on this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/cuda/all_sky_fused.hpp"
#include "ryle/engine/image/cuda/all_sky_half.hpp"
#include "ryle/engine/image/cuda/all_sky_lists.hpp"
#include "ryle/engine/image/geometry.hpp"
#include "tests/engine/image/all_sky_cases.hpp"

namespace ryle::image::detail {
namespace {

// Every cell of every footprint appears in exactly one list, with the right tap.
TEST(CudaTables, ListsNameEveryCellOnce) {
  for (const int n_pixels : {16, 20, 64, 90}) {
    for (const int taps : {3, 7, 17}) {
      if (taps > n_pixels) continue;
      std::vector<Footprint> footprints;
      for (int f = 0; f < 40; ++f) {
        footprints.push_back(
            {static_cast<int>(mix64(f) % 400) - 200, static_cast<int>(mix64(f + 99) % 400) - 200});
      }
      const auto lists = tile_lists(footprints, taps, n_pixels, 3);
      std::map<std::array<int, 5>, int> seen;  // footprint, y, x, tap y, tap x
      std::uint32_t before = 0;
      for (const auto& work : lists.work) {
        EXPECT_EQ(work.channel, 3);
        EXPECT_EQ(work.begin, before);
        before = work.end;
        for (std::uint32_t e = work.begin; e < work.end; ++e) {
          const std::uint32_t entry = lists.entries[e];
          const int f = static_cast<int>(entry & ((1u << kIndexBits) - 1));
          const int ox = static_cast<int>(entry >> kIndexBits & 31) - kOffsetBias;
          const int oy = static_cast<int>(entry >> (kIndexBits + kOffsetBits) & 31) - kOffsetBias;
          for (int c = 0; c < 64; ++c) {
            const int x = work.tile_x * 8 + c % 8, y = work.tile_y * 8 + c / 8;
            const int tx = c % 8 - ox, ty = c / 8 - oy;
            if (x >= n_pixels || y >= n_pixels || tx < 0 || ty < 0 || tx >= taps || ty >= taps)
              continue;
            ++seen[{f, y, x, ty, tx}];
          }
        }
      }
      EXPECT_EQ(before, lists.entries.size());
      EXPECT_EQ(seen.size(), footprints.size() * static_cast<std::size_t>(taps * taps));
      const auto wrap = [&](int v) { return ((v % n_pixels) + n_pixels) % n_pixels; };
      for (const auto& [key, n] : seen) {
        const auto& [f, y, x, ty, tx] = key;
        EXPECT_EQ(n, 1);
        EXPECT_EQ(y, wrap(footprints[std::size_t(f)].first_y + ty));
        EXPECT_EQ(x, wrap(footprints[std::size_t(f)].first_x + tx));
      }
    }
  }
}

// Every row of every footprint is in one tile of one pair of rows, wrapped apertures too.
TEST(CudaTables, HalfTablesNameEveryRowOnce) {
  for (const double extent : {3.0, 22.0, 57.0, 102.0}) {
    const auto config = test::random_array(37, 64, 2, extent);
    const auto array = detail::used_array(config);
    const auto tables = detail::half_tables(config, array, detail::positions_cells(config, array),
                                            std::int64_t{227} << 10);
    ASSERT_EQ(tables.why_not, "") << extent;
    for (std::size_t c = 0; c < 2; ++c) {
      const auto* slots = &tables.slots[c * 37];
      std::vector<int> seen(37 * 64);
      for (int k = 0; k < tables.n_pairs; ++k) {
        const auto& pair =
            tables
                .pairs[c * static_cast<std::size_t>(tables.n_pairs) + static_cast<std::size_t>(k)];
        for (int i = pair.begin; i < pair.begin + pair.plus + pair.minus; ++i) {
          const auto& tile = tables.tiles[c * static_cast<std::size_t>(tables.n_tiles) +
                                          static_cast<std::size_t>(i)];
          EXPECT_EQ(tile.start % 2, 0);
          for (int slot = tile.start; slot < std::min(37, tile.start + 16); ++slot) {
            const int tap = (tile.row - slots[slot].y + 64) % 64;
            if (tap < 7) ++seen[static_cast<std::size_t>(slots[slot].antenna * 64 + tile.row)];
          }
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 37 * 7) << extent;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 37 * (64 - 7)) << extent;
    }
  }
}

// Folded rows of one parity, transformed as the kernel does, give the beam of the plain grid.
TEST(CudaTables, FusedTablesMakeTheBeam) {
  for (const double extent : {20.0, 70.0, 110.0, 180.0}) {
    auto config = test::random_array(40, 128, 2, extent);
    config.channels.n_channels = 1;
    config.allow_wrap = true;
    const auto array = used_array(config);
    const auto positions = positions_cells(config, array);
    const auto tables = fused_tables(config, array, positions, 1 << 20);
    ASSERT_TRUE(tables.fits);
    const auto cells = antenna_cells(config, 0);
    std::vector<cf64> field;
    for (std::size_t a = 0; a < 40; ++a) field.emplace_back(gaussian(a), gaussian(a + 1000));
    field.emplace_back(0, 0);  // nobody
    const auto n_rounds = static_cast<std::size_t>(tables.n_rounds);
    for (const int parity : {0, 1}) {
      std::vector<cf64> grid(static_cast<std::size_t>(tables.n_rows * kFusedPitch));
      for (std::size_t q = 0; q < tables.tiles.size() / 4; ++q) {
        const FusedTile* four = &tables.tiles[4 * q];
        const auto& quad = four[0];
        const std::size_t first = q / std::size_t(tables.n_quads) * n_rounds / 4 + quad.group;
        for (std::size_t v = 0; v < 64 * std::size_t(quad.plain + quad.folded); ++v) {
          const std::size_t group = first + v / 64, tile = v / 4 % 4, round = group * 4 + v % 4;
          if (v % 64 >= 16) continue;  // four tiles, four rounds
          const std::size_t at = four[tile].at;
          const double sign = v / 64 >= quad.plain && parity == 1 ? -1 : 1;
          const float* w = &tables.weights[(round * 4 + tile) * 8];
          const cf64 e = field[tables.who[(group * 4 + tile) * 4 + v % 4] / 16];
          if (at == FusedTile::kNone) {
            ASSERT_EQ(e, cf64{});
            continue;
          }
          ASSERT_LT(at % kFusedPitch, std::size_t(tables.n_tile_columns * 8));
          for (std::size_t c = 0; c < 16; ++c) {
            grid.at(at + c / 4 * kFusedPitch + c % 4) +=
                sign * double(w[c % 4]) * double(w[4 + c / 4]) * e;
          }
        }
      }
      for (int trial = 0; trial < 12; ++trial) {
        const auto key = mix64(std::uint64_t(trial));
        const int kernel_y = static_cast<int>(key % 128);
        const int kernel_x = 2 * static_cast<int>(key / 128 % 64) + parity;
        const int py = tables.transposed ? kernel_x : kernel_y;
        const int px = tables.transposed ? kernel_y : kernel_x;
        cf64 found = 0, wanted = 0;
        for (int row = 0; row < tables.n_rows; ++row) {
          for (int j = 0; j < 64; ++j) {
            found += grid[std::size_t(row * kFusedPitch + j)] *
                     std::polar(1.0, 2 * kPi * (j * kernel_x + row * kernel_y) / 128);
          }
        }
        for (std::size_t a = 0; a < 40; ++a) {
          for (int r = 0; r < 49; ++r) {
            const auto x = cells[a].first_x + r % 7, y = cells[a].first_y + r / 7;
            wanted += field[a] * cells[a].weight_x[std::size_t(r % 7)] *
                      cells[a].weight_y[std::size_t(r / 7)] *
                      std::polar(1.0, 2 * kPi * double(x * (px - 64) + y * (py - 64)) / 128);
          }
        }
        // A common shift of the antennas turns the phase of the beam, which no product sees.
        EXPECT_NEAR(std::abs(found), std::abs(wanted), 1e-4) << extent << " " << px << " " << py;
      }
    }
  }
}

}  // namespace
}  // namespace ryle::image::detail
