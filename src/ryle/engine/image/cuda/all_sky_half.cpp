// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cuda/all_sky_half.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::image::detail {
namespace {

struct Channel {
  std::vector<HalfSlot> slots;
  std::vector<HalfTile> tiles;
  std::vector<HalfPair> pairs;
};

// Antennas that touch a row are neighbors when sorted by their first row (two groups where rows
// wrap). A tile may reach into antennas that do not touch the row: their weight is 0.
void tiles_of_row(const std::vector<HalfSlot>& slots, int row, int support, int n_cells,
                  std::vector<HalfTile>& tiles) {
  const auto touches = [&](std::size_t s) {
    return (row - slots[s].y + n_cells) % n_cells < support;
  };
  std::size_t free = 0;  // slots before it are in a tile already
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (s < free || !touches(s)) continue;
    const std::size_t start = std::max(s / 2 * 2, free);
    tiles.push_back({static_cast<std::uint16_t>(start), static_cast<std::uint16_t>(row)});
    free = start + 16;
  }
}

Channel channel_of(std::vector<Footprint> footprints, int support, int n_cells) {
  Channel channel;
  int first_x = footprints[0].first_x, first_y = footprints[0].first_y, last_y = first_y;
  for (const auto& f : footprints) {
    first_x = std::min(first_x, f.first_x);
    first_y = std::min(first_y, f.first_y);
    last_y = std::max(last_y, f.first_y);
  }
  const int n_rows = std::min(n_cells, (last_y - first_y + support + 1) / 2 * 2);
  for (std::size_t a = 0; a < footprints.size(); ++a) {
    channel.slots.push_back(
        {static_cast<std::int32_t>(a),
         static_cast<std::int16_t>((footprints[a].first_x - first_x) % n_cells),
         static_cast<std::int16_t>((footprints[a].first_y - first_y) % n_cells)});
  }
  std::stable_sort(channel.slots.begin(), channel.slots.end(),
                   [](const HalfSlot& p, const HalfSlot& q) { return p.y < q.y; });
  for (int j = 0; j < n_rows / 2; ++j) {
    HalfPair pair;
    pair.pair = static_cast<std::uint16_t>(j);
    pair.begin = static_cast<std::uint16_t>(channel.tiles.size());
    tiles_of_row(channel.slots, n_rows / 2 + j, support, n_cells, channel.tiles);
    pair.plus = static_cast<std::uint16_t>(channel.tiles.size() - pair.begin);
    tiles_of_row(channel.slots, n_rows / 2 - 1 - j, support, n_cells, channel.tiles);
    pair.minus = static_cast<std::uint16_t>(channel.tiles.size() - pair.begin - pair.plus);
    channel.pairs.push_back(pair);
  }
  std::stable_sort(
      channel.pairs.begin(), channel.pairs.end(),
      [](const HalfPair& p, const HalfPair& q) { return p.plus + p.minus > q.plus + q.minus; });
  return channel;
}

std::vector<HalfBlock> blocks_of(const AllSkyConfig& config) {
  const auto above = above_horizon(config);
  const auto g = static_cast<int>(config.n_pixels);
  std::vector<int> highest(g / 2 / kHalfColumns + 1, -1);
  for (int p = 0; p < g * g; ++p) {
    if (std::isnan(above[p])) continue;
    auto& m = highest[std::abs(p % g - g / 2) / kHalfColumns];
    m = std::max(m, std::abs(p / g - g / 2));
  }
  std::vector<HalfBlock> blocks;
  for (std::size_t b = 0; b < highest.size(); ++b) {
    for (int m = 0; m <= highest[b]; m += kHalfRows) {
      const int rows = std::min(kHalfRows, highest[b] + 1 - m);
      blocks.push_back({static_cast<std::uint16_t>(kHalfColumns * static_cast<int>(b)),
                        static_cast<std::uint16_t>(m),
                        static_cast<std::uint32_t>((rows + 15) / 16)});
    }
  }
  return blocks;
}

}  // namespace

std::int64_t half_shared_bytes(int n_antennas, int n_pairs, int n_tiles, int n_spectra) {
  const std::int64_t rows = std::int64_t{2} * half_plane(n_pairs) * 2 * n_spectra;
  const std::int64_t weights = std::int64_t{64} * n_antennas;  // X_a(l), before the first spectrum
  const std::int64_t operand = std::int64_t{8} * operand_pitch(n_antennas) * n_spectra + 64;
  return std::max({rows, weights, std::int64_t{32768}}) + operand + std::int64_t{512} * n_tiles +
         std::int64_t{24} * (n_antennas + 1) + std::int64_t{4} * n_tiles +
         std::int64_t{8} * n_pairs;
}

HalfTables half_tables(const AllSkyConfig& config, const ArrayOfUsed& array,
                       const std::vector<double>& positions, std::int64_t max_shared_bytes) {
  HalfTables tables;
  const std::size_t n = array.antenna.size();
  const auto channels = static_cast<std::size_t>(config.channels.n_channels);
  const auto support = static_cast<int>(config.function.support);
  tables.n_antennas = static_cast<int>(n);
  std::vector<Channel> all;
  std::size_t n_pairs = 0, n_tiles = 0;
  for (std::size_t c = 0; c < channels && n > 0; ++c) {
    all.push_back(channel_of(antenna_footprints(array, &positions[2 * c * n], support), support,
                             static_cast<int>(config.n_pixels)));
    n_pairs = std::max(n_pairs, all.back().pairs.size());
    n_tiles = std::max(n_tiles, all.back().tiles.size());
  }
  if (n_pairs > kHalfMaxPairs) {
    tables.why_not = "an aperture of " + std::to_string(2 * n_pairs) + " rows of cells; at most " +
                     std::to_string(2 * kHalfMaxPairs);
    return tables;
  }
  tables.n_pairs = static_cast<int>(std::max<std::size_t>(1, (n_pairs + 15) / 16)) * 16;
  tables.n_tiles = static_cast<int>(n_tiles);
  for (const int n_spectra : {8, 4}) {
    if (tables.n_spectra == 0 && half_shared_bytes(tables.n_antennas, tables.n_pairs,
                                                   tables.n_tiles, n_spectra) <= max_shared_bytes) {
      tables.n_spectra = n_spectra;
    }
  }
  if (tables.n_spectra == 0) {
    tables.why_not = std::to_string(n) + " antennas on " + std::to_string(2 * n_pairs) +
                     " rows of cells need more shared memory than a thread block has";
    return tables;
  }
  tables.blocks = blocks_of(config);
  for (auto& channel : all) {
    channel.tiles.resize(n_tiles);
    channel.pairs.resize(tables.n_pairs);
    tables.slots.insert(tables.slots.end(), channel.slots.begin(), channel.slots.end());
    tables.tiles.insert(tables.tiles.end(), channel.tiles.begin(), channel.tiles.end());
    tables.pairs.insert(tables.pairs.end(), channel.pairs.begin(), channel.pairs.end());
  }
  return tables;
}

std::vector<float> half_scales(const std::vector<float>& factors, std::size_t n_channels,
                               int support) {
  std::vector<float> scales;
  const std::size_t each = factors.size() / std::max<std::size_t>(1, n_channels);
  for (std::size_t c = 0; c < n_channels; ++c) {
    double sum[2] = {0, 0};
    for (std::size_t k = 0; k + 1 < each; k += 2) {
      sum[k / 2 % 2] += std::hypot(factors[c * each + k], factors[c * each + k + 1]);
    }
    // |sample| <= 8 sqrt 2; weights of an axis add to less than the support; two rows together.
    const double bound = 2 * support * 8 * std::sqrt(2.0) * std::max(sum[0], sum[1]);
    const int exponent = bound > 0 ? static_cast<int>(std::floor(std::log2(60000 / bound))) : 0;
    scales.push_back(static_cast<float>(std::ldexp(1.0, std::clamp(exponent, -60, 60))));
  }
  return scales;
}

}  // namespace ryle::image::detail
