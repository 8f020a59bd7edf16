// SPDX-License-Identifier: BSD-3-Clause
// The tables of the CUDA imagers are plain C++: what a kernel would make of them, on this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/image/cuda_all_sky_fused.hpp"
#include "ryle/engine/image/cuda_all_sky_half.hpp"
#include "ryle/engine/image/cuda_all_sky_lists.hpp"
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
    const auto n_visits = static_cast<std::size_t>(tables.n_visits);
    std::vector<cf64> at_visit(2 * n_visits);
    for (std::size_t k = 0; k < tables.slots.size(); ++k) {
      if (tables.slots[k] == 0xffff) continue;
      at_visit[k / 160 * n_visits + tables.slots[k]] = field[k % 160 / 4];
    }
    for (const int parity : {0, 1}) {
      std::vector<cf64> grid(static_cast<std::size_t>(tables.n_rows * 64));
      for (std::size_t t = 0; t < tables.tiles.size(); ++t) {
        const auto& tile = tables.tiles[t];
        if (tile.tile_y == FusedTile::kNone) continue;
        ASSERT_LT(tile.tile_x, tables.n_tile_columns);
        const std::size_t first = t / std::size_t(tables.n_tiles) * n_visits + tile.begin;
        for (std::size_t v = 0; v < tile.count; ++v) {
          const float* w = &tables.weights[(first + v) * 16];
          const bool folded = int(v) >= tile.count - tile.n_folded;
          const double sign = folded && parity == 1 ? -1 : 1;
          for (int c = 0; c < 64; ++c) {
            grid[std::size_t((tile.tile_y * 8 + c / 8) * 64 + tile.tile_x * 8 + c % 8)] +=
                sign * double(w[c % 8]) * double(w[8 + c / 8]) * at_visit[first + v];
          }
        }
      }
      for (int trial = 0; trial < 12; ++trial) {
        const auto key = mix64(std::uint64_t(trial));
        const int py = static_cast<int>(key % 128);
        const int px = 2 * static_cast<int>(key / 128 % 64) + parity;
        cf64 found = 0, wanted = 0;
        for (int row = 0; row < tables.n_rows; ++row) {
          for (int j = 0; j < 64; ++j) {
            found += grid[std::size_t(row * 64 + j)] *
                     std::polar(1.0, 2 * kPi * (j * px + row * py) / 128);
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
