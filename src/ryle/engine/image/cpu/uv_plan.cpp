// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/uv_plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace ryle::image::detail {
namespace {

constexpr std::int64_t kMaxTaps = 2 * kMaxSupport - 1;

/// A function on the half plane.
struct UvPatch {
  std::int64_t first_x = 0, first_y = 0;
  std::array<double, kMaxTaps> weight_x{}, weight_y{};
  bool flip = false;
};

double nearest_zero(double x, double g) { return x - g * std::round(x / g); }
std::int64_t nearest_zero(std::int64_t x, std::int64_t g) {
  const std::int64_t m = ((x % g) + g) % g;
  return m >= (g + 1) / 2 ? m - g : m;
}

// w on the baseline.
UvPatch direct(const AllSkyConfig& config, const std::array<double, 2>& a,
               const std::array<double, 2>& b) {
  const auto g = static_cast<double>(config.n_pixels);
  double x = nearest_zero(a[0] - b[0], g), y = nearest_zero(a[1] - b[1], g);
  UvPatch f;
  f.flip = y < 0 || (y == 0 && x < 0);
  if (f.flip) {
    x = -x;
    y = -y;
  }
  const AntennaCells cells = cells_around(config.function, x, y);
  f.first_x = cells.first_x;
  f.first_y = cells.first_y;
  std::copy(cells.weight_x.begin(), cells.weight_x.end(), f.weight_x.begin());
  std::copy(cells.weight_y.begin(), cells.weight_y.end(), f.weight_y.begin());
  return f;
}

// @eq c(d) = sum_r a(r + d) b(r), d = -(k-1) .. k-1
void correlate(const std::array<double, kMaxSupport>& a, const std::array<double, kMaxSupport>& b,
               std::int64_t k, std::array<double, kMaxTaps>& out) {
  for (std::int64_t i = 0; i < k; ++i) {
    for (std::int64_t j = 0; j < k; ++j) {
      out[i - j + k - 1] += a[i] * b[j];
    }
  }
}

// K_ab = w_a correlated with w_b.
UvPatch correlated(const AllSkyConfig& config, const AntennaCells& a, const AntennaCells& b) {
  const std::int64_t g = config.n_pixels, k = config.function.support;
  std::int64_t x = nearest_zero(a.first_x - b.first_x, g);
  std::int64_t y = nearest_zero(a.first_y - b.first_y, g);
  UvPatch f;
  f.flip = y < 0 || (y == 0 && x < 0);
  if (f.flip) {
    x = -x;
    y = -y;
  }
  const AntennaCells &first = f.flip ? b : a, &second = f.flip ? a : b;
  correlate(first.weight_x, second.weight_x, k, f.weight_x);
  correlate(first.weight_y, second.weight_y, k, f.weight_y);
  f.first_x = x - (k - 1);
  f.first_y = y - (k - 1);
  return f;
}

struct UvEntry {
  UvPatch footprint;
  std::int32_t source = 0;
  std::int64_t cell = 0;  // first, down to a unit
  std::int64_t shift = 0;
};

void fill_part(const std::vector<UvEntry>& entries, const UvGeometry& geometry,
               UvChannel::Part& part) {
  // Places are sorted, not the entries: those are hundreds of bytes.
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  order.reserve(entries.size());
  for (std::size_t n = 0; n < entries.size(); ++n) order.emplace_back(entries[n].cell, n);
  std::sort(order.begin(), order.end());
  const std::int64_t padded = geometry.units() * geometry.cells_per_unit;
  part.records =
      Buffer<float>(static_cast<std::int64_t>(entries.size()) * geometry.record_floats());
  std::int32_t at = 0;
  for (const auto& [cell, n] : order) {
    const UvEntry& e = entries[n];
    const auto offset = static_cast<std::int32_t>(e.cell * kCellFloats);
    if (part.groups.empty() || part.groups.back().offset != offset) {
      part.groups.push_back({offset, at, at});
    }
    float* record = part.records.data() + at * geometry.record_floats();
    part.groups.back().end = ++at;
    for (std::int64_t i = 0; i < geometry.taps; ++i) {
      const auto tap = static_cast<std::size_t>(i);
      record[i + e.shift] = static_cast<float>(e.footprint.weight_x[tap]);
      record[padded + i] = static_cast<float>(e.footprint.weight_y[tap]);
    }
    std::memcpy(record + padded + geometry.taps, &e.source, sizeof e.source);
  }
}

}  // namespace

UvGeometry make_uv_geometry(const AllSkyConfig& config, const CpuKernels& kernels) {
  UvGeometry geometry;
  geometry.g = config.n_pixels;
  geometry.taps =
      config.function.correlated ? 2 * config.function.support - 1 : config.function.support;
  geometry.cells_per_unit = kernels.cells_per_unit;
  geometry.margin = geometry.taps / 2 + 1;
  geometry.columns = (config.n_pixels + 2 * geometry.margin + 2 + 3) / 4 * 4;
  geometry.rows = config.n_pixels / 2 + 1 + 2 * geometry.margin;
  return geometry;
}

UvTable UvChannel::table(const UvGeometry& geometry, std::int64_t part) const {
  const Part& p = parts[part];
  return {p.groups.data(),      static_cast<std::int64_t>(p.groups.size()),
          p.records.data(),     geometry.record_floats(),
          geometry.units(),     geometry.taps,
          geometry.row_stride()};
}

UvChannel make_uv_channel(const AllSkyConfig& config, const CpuRoles& roles,
                          const std::vector<PairSource>& pairs, const UvGeometry& geometry,
                          std::int64_t channel, std::int64_t n_parts) {
  const auto positions = antenna_positions_cells(config, channel);
  const auto cells = antenna_cells(config, channel);
  const auto n_pairs = static_cast<std::int64_t>(pairs.size());
  UvChannel result;
  result.parts.resize(n_parts);
  result.flip.resize(pairs.size());
  const double nu_hz = config.channels.center_hz(channel);
  for (const std::int32_t a : roles.antennas) {
    result.heights.push_back(height_phase(nu_hz, config.antenna_enu_m[a][2]));
  }
  std::int64_t highest = 0;
  for (std::int64_t part = 0; part < n_parts; ++part) {
    const std::int64_t begin = n_pairs * part / n_parts, end = n_pairs * (part + 1) / n_parts;
    std::vector<UvEntry> entries;
    entries.reserve(end - begin);
    for (std::int64_t n = begin; n < end; ++n) {
      const PairSource& pair = pairs[n];
      const auto a = static_cast<std::size_t>(roles.antennas[pair.a]);
      const auto b = static_cast<std::size_t>(roles.antennas[pair.b]);
      UvEntry e;
      e.footprint = config.function.correlated ? correlated(config, cells[a], cells[b])
                                               : direct(config, positions[a], positions[b]);
      e.source = static_cast<std::int32_t>(n - begin);
      // An autocorrelation is its own mirror image: half of it here, half from the other half
      // plane.
      if (pair.a == pair.b) {
        for (auto& w : e.footprint.weight_x) w *= 0.5;
      }
      result.flip[n] = e.footprint.flip;
      const std::int64_t row = e.footprint.first_y + geometry.margin;
      const std::int64_t column = e.footprint.first_x + geometry.g / 2 + geometry.margin;
      e.shift = column % geometry.cells_per_unit;
      e.cell = row * geometry.columns + column - e.shift;
      highest = std::max(highest, e.footprint.first_y + geometry.taps - 1);
      highest = std::max(highest, -e.footprint.first_y);
      entries.push_back(e);
    }
    fill_part(entries, geometry, result.parts[part]);
  }
  result.n_rows = std::min(highest, geometry.g / 2) + 1;
  return result;
}

namespace {

void add(const float* from, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

// Row of the grid, columns u = -G/2 - margin ...: -G/2 .. G/2 - 1 are the cells in DFT order but
// for the half that is first; the margins on both sides wrap. `begin` overwrites the cells.
void add_plain(const UvGeometry& geometry, const float* row, bool begin, float* cells) {
  const std::int64_t g = geometry.g, half = g / 2;
  const float* origin = row + (half + geometry.margin) * kCellFloats;
  const auto piece = [&](std::int64_t u, std::int64_t n, std::int64_t cell, bool copy) {
    const float* from = origin + u * kCellFloats;
    float* to = cells + cell * kCellFloats;
    if (copy) {
      std::copy_n(from, n * kCellFloats, to);
    } else {
      add(from, n * kCellFloats, to);
    }
  };
  piece(0, half, 0, begin);
  piece(-half, half, half, begin);
  // Margins: a small grid may be narrower than they are.
  for (std::int64_t u = -half - geometry.margin; u < -half; ++u)
    piece(u, 1, ((u % g) + g) % g, false);
  for (std::int64_t u = half; u < geometry.columns - geometry.margin - half; ++u) {
    piece(u, 1, u % g, false);
  }
}

void add_mirrored(const UvGeometry& geometry, const float* row, float* cells) {
  for (std::int64_t c = 0; c < geometry.columns; ++c, row += kCellFloats) {
    const std::int64_t u = geometry.g / 2 + geometry.margin - c;  // minus the column's u
    float* to = cells + (u < 0             ? u + geometry.g * (u < -geometry.g ? 2 : 1)
                         : u >= geometry.g ? u - geometry.g
                                           : u) *
                            kCellFloats;
    for (std::int64_t i = 0; i < 4; ++i) to[i] += row[i];
    for (std::int64_t i = 4; i < 8; ++i) to[i] -= row[i];
  }
}

}  // namespace

void fold_row(const UvGeometry& geometry, const float* const* grids, std::int64_t n, std::int64_t v,
              float* cells) {
  const std::int64_t half = geometry.g / 2, m = geometry.margin;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto row = [&](std::int64_t w) { return grids[i] + (w + m) * geometry.row_stride(); };
    add_plain(geometry, row(v), i == 0, cells);
    if (v <= m) add_mirrored(geometry, row(-v), cells);
    if (geometry.g - v <= half + m) add_mirrored(geometry, row(geometry.g - v), cells);
  }
}

}  // namespace ryle::image::detail
