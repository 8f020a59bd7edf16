// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/field_layout.hpp"

#include <algorithm>

#include "ryle/math/fft.hpp"

namespace ryle::image::detail {
namespace {

std::int64_t modulo(std::int64_t a, std::int64_t n) { return ((a % n) + n) % n; }

// Lowest cell and number of cells along one axis; beyond the grid everything wraps.
struct Span {
  std::int64_t first = 0, box = 0, grid = 0;
};
Span span_of(const std::vector<std::int64_t>& firsts, std::int64_t k, std::int64_t g) {
  const auto [low, high] = std::minmax_element(firsts.begin(), firsts.end());
  const std::int64_t extent = *high + k - *low;
  if (extent <= g) return {*low, extent, extent};
  return {0, g, g + k - 1};
}

}  // namespace

SkyColumns make_sky_columns(const AllSkyConfig& config, const CpuOutput& output, int lanes) {
  const std::int64_t g = config.n_pixels;
  SkyColumns sky;
  sky.padded_rows = (g + lanes - 1) / lanes * lanes;
  // [frequency index x][block of rows]
  const std::int64_t n_blocks = sky.padded_rows / lanes;
  std::vector<std::uint8_t> wanted(g * n_blocks);
  const auto frequency = [g](std::int64_t pixel) { return modulo(pixel - g / 2, g); };
  for (const std::int32_t p : output.pixels()) {
    wanted[frequency(p % g) * n_blocks + frequency(p / g) / lanes] = 1;
  }
  sky.block_begin.push_back(0);
  for (std::int64_t f = 0; f < g; ++f) {
    const std::size_t before = sky.blocks.size();
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      if (wanted[f * n_blocks + b]) {
        sky.blocks.push_back(static_cast<std::int32_t>(b));
      }
    }
    const bool any = sky.blocks.size() > before;
    sky.column_of.push_back(any ? static_cast<std::int32_t>(sky.n_columns++) : -1);
    if (any) sky.block_begin.push_back(static_cast<std::int32_t>(sky.blocks.size()));
  }
  for (const std::int32_t p : output.pixels()) {
    const std::int64_t column = sky.column_of[frequency(p % g)];
    sky.position.push_back(static_cast<std::int32_t>(column * sky.padded_rows + frequency(p / g)));
  }
  return sky;
}

void make_field_channel(const AllSkyConfig& config, const CpuRoles& roles, const CpuOutput& output,
                        std::int64_t channel, FieldChannelData& data) {
  const std::int64_t k = config.function.support, g = config.n_pixels;
  const auto cells = antenna_cells(config, channel);
  const bool apertures = !config.function.apertures.empty();
  const auto aperture =
      apertures ? aperture_weights(config, channel) : std::vector<std::vector<cf64>>();
  std::vector<std::int64_t> xs, ys;
  for (const std::int32_t a : roles.antennas) {
    xs.push_back(cells[a].first_x);
    ys.push_back(cells[a].first_y);
  }
  const Span x = span_of(xs, k, g), y = span_of(ys, k, g);
  // A common shift of the grid is a phase that no product sees.
  data.view.grid_x = x.grid;
  data.view.grid_y = y.grid;
  data.view.box_x = x.box;
  data.view.box_y = y.box;
  const double nu_hz = config.channels.center_hz(channel);
  for (std::size_t s = 0; s < roles.inputs.size(); ++s) {
    const auto place = static_cast<std::size_t>(roles.place_of_slot[s]);
    const int pol = roles.pol_of_slot[s];
    const auto a = static_cast<std::size_t>(roles.antennas[place]);
    data.height.push_back(cf32(height_phase(nu_hz, config.antenna_enu_m[a][2])));
    data.slot[pol].push_back(static_cast<std::int32_t>(s));
    data.cell[pol].push_back(static_cast<std::int32_t>(modulo(ys[place] - y.first, g) * x.grid +
                                                       modulo(xs[place] - x.first, g)));
    for (std::int64_t i = 0; i < kWeightStride; ++i) {
      const auto n = static_cast<std::size_t>(i);
      data.weight_x[pol].push_back(i < k ? static_cast<float>(cells[a].weight_x[n]) : 0);
      data.weight_y[pol].push_back(i < k ? static_cast<float>(cells[a].weight_y[n]) : 0);
    }
    if (!apertures) continue;
    for (const cf64& w : aperture[a * static_cast<std::size_t>(roles.pols) + std::size_t(pol)]) {
      data.aperture[pol].push_back(static_cast<float>(w.real()));
      data.aperture[pol].push_back(static_cast<float>(w.imag()));
    }
  }
  const auto taper = correlated_taper(config, channel);
  const std::size_t n_tapers = taper.size() / static_cast<std::size_t>(g * g);
  for (std::size_t t = 0; t < n_tapers; ++t) {
    for (const std::int32_t p : output.pixels()) {
      data.inverse_taper.push_back(
          static_cast<float>(1 / taper[t * static_cast<std::size_t>(g * g) + std::size_t(p)]));
    }
  }
  data.gains.resize(2 * roles.inputs.size());
  data.view.n_inputs = static_cast<std::int64_t>(roles.inputs.size());
  data.view.inputs = roles.inputs.data();
  data.view.gains = data.gains.data();
  data.view.n_pairs = static_cast<std::int64_t>(roles.antennas.size());
  data.view.pairs = roles.slots.data();
  for (int pol = 0; pol < 2; ++pol) {
    data.view.terms[pol] = {static_cast<std::int64_t>(data.slot[pol].size()),
                            data.slot[pol].data(),
                            data.cell[pol].data(),
                            data.weight_x[pol].data(),
                            data.weight_y[pol].data(),
                            apertures ? data.aperture[pol].data() : nullptr};
  }
}

void set_field_gains(const CpuRoles& roles, std::span<const cf32> gains, FieldChannelData& data) {
  for (std::size_t s = 0; s < roles.inputs.size(); ++s) {
    const cf64 g = cf64(gains[s]) * cf64(data.height[s]);
    data.gains[2 * s] = static_cast<float>(g.real());
    data.gains[2 * s + 1] = static_cast<float>(g.imag());
  }
}

namespace {

// Sum over antennas of P_a c_a(e) c_a(d), c = 1-D autocorrelations of the weights: even and real.
struct EvenLags {
  double lags[4][kMaxSupport][kMaxSupport] = {};  // [plane][y][x]
};
EvenLags separable_lags(const CpuRoles& roles, const FieldChannelData& data, std::int64_t k,
                        const std::vector<double>& powers) {
  EvenLags sum;
  std::vector<std::uint8_t> done(roles.antennas.size(), 0);
  for (int pol = 0; pol < 2; ++pol) {
    for (std::size_t n = 0; n < data.slot[pol].size(); ++n) {
      const auto place = static_cast<std::size_t>(roles.place_of_slot[data.slot[pol][n]]);
      if (done[place]) continue;
      done[place] = 1;
      const float* wx = data.weight_x[pol].data() + n * kWeightStride;
      const float* wy = data.weight_y[pol].data() + n * kWeightStride;
      double cx[kMaxSupport] = {}, cy[kMaxSupport] = {};
      for (std::int64_t d = 0; d < k; ++d) {
        const double times = d == 0 ? 1 : 2;  // +d and -d
        for (std::int64_t r = 0; r + d < k; ++r) {
          cx[d] += times * static_cast<double>(wx[r]) * static_cast<double>(wx[r + d]);
          cy[d] += times * static_cast<double>(wy[r]) * static_cast<double>(wy[r + d]);
        }
      }
      for (int p = 0; p < 4; ++p) {
        const double power = powers[4 * place + static_cast<std::size_t>(p)];
        for (std::int64_t e = 0; e < k; ++e) {
          for (std::int64_t d = 0; d < k; ++d) sum.lags[p][e][d] += power * cy[e] * cx[d];
        }
      }
    }
  }
  return sum;
}

void separable_image(const AllSkyConfig& config, const CpuOutput& output, const EvenLags& sum,
                     std::vector<double>& out) {
  const std::int64_t g = config.n_pixels, k = config.function.support;
  std::vector<double> cosine(k * g);
  for (std::int64_t d = 0; d < k; ++d) {
    for (std::int64_t p = 0; p < g; ++p) {
      cosine[d * g + p] = math::unit_root(d * (p - g / 2), g).real();
    }
  }
  std::vector<double> rows(k * g), line(static_cast<std::size_t>(g));
  for (int p = 0; p < output.n_sums(); ++p) {
    for (std::int64_t e = 0; e < k; ++e) {
      double* row = rows.data() + e * g;
      std::fill(row, row + g, 0.0);
      for (std::int64_t d = 0; d < k; ++d) {
        for (std::int64_t x = 0; x < g; ++x)
          row[x] += sum.lags[p][e][d] * cosine[std::size_t(d * g + x)];
      }
    }
    std::int64_t line_y = -1;
    double* to = out.data() + p * output.size();
    for (const std::int32_t pixel : output.pixels()) {
      const std::int64_t y = pixel / g;
      if (y != line_y) {
        line_y = y;
        std::fill(line.begin(), line.end(), 0.0);
        for (std::int64_t e = 0; e < k; ++e) {
          const double c = cosine[e * g + y];
          for (std::int64_t x = 0; x < g; ++x)
            line[std::size_t(x)] += c * rows[std::size_t(e * g + x)];
        }
      }
      *to++ = line[pixel % g];
    }
  }
}

using Lags = std::vector<cf64>;  // [2k-1][2k-1]

void add_lags(const float* a, const float* b, std::int64_t k, cf64 power, Lags& lags) {
  const std::int64_t n = 2 * k - 1;
  for (std::int64_t r = 0; r < k * k; ++r) {
    for (std::int64_t s = 0; s < k * k; ++s) {
      const cf64 wa(static_cast<double>(a[2 * r]), static_cast<double>(a[2 * r + 1]));
      const cf64 wb(static_cast<double>(b[2 * s]), static_cast<double>(b[2 * s + 1]));
      lags[(r / k - s / k + k - 1) * n + r % k - s % k + k - 1] += power * wa * std::conj(wb);
    }
  }
}

// The same for complex apertures, XX, YY and XY apart.
void aperture_image(const AllSkyConfig& config, const CpuRoles& roles, const CpuOutput& output,
                    const FieldChannelData& data, const std::vector<double>& powers,
                    std::vector<double>& out) {
  const std::int64_t g = config.n_pixels, k = config.function.support, n = 2 * k - 1;
  std::vector<Lags> lags(3, Lags(static_cast<std::size_t>(n * n)));
  std::vector<std::int64_t> term(roles.inputs.size());
  for (const auto& slots : data.slot) {
    for (std::size_t i = 0; i < slots.size(); ++i) term[std::size_t(slots[i])] = std::int64_t(i);
  }
  for (std::size_t place = 0; place < roles.antennas.size(); ++place) {
    const std::int32_t sx = roles.slots[2 * place], sy = roles.slots[2 * place + 1];
    const auto of = [&](std::int32_t s, int pol) {
      return data.aperture[pol].data() + term[std::size_t(s)] * k * k * 2;
    };
    const double* power = powers.data() + 4 * place;
    if (sx >= 0) add_lags(of(sx, 0), of(sx, 0), k, power[0], lags[0]);
    if (sy >= 0) add_lags(of(sy, 1), of(sy, 1), k, power[1], lags[1]);
    if (sx >= 0 && sy >= 0) add_lags(of(sx, 0), of(sy, 1), k, {power[2], power[3]}, lags[2]);
  }
  std::vector<cf64> rows(n * g);
  for (int q = 0; q < 3 && q < output.n_sums(); ++q) {
    for (std::int64_t e = 0; e < n; ++e) {
      for (std::int64_t x = 0; x < g; ++x) {
        cf64 sum = 0;
        for (std::int64_t d = 0; d < n; ++d) {
          sum += lags[std::size_t(q)][std::size_t(e * n + d)] *
                 math::unit_root((d - k + 1) * (x - g / 2), g);
        }
        rows[e * g + x] = sum;
      }
    }
    std::int64_t s = 0;
    for (const std::int32_t pixel : output.pixels()) {
      cf64 sum = 0;
      for (std::int64_t e = 0; e < n; ++e) {
        sum += rows[e * g + pixel % g] * math::unit_root((e - k + 1) * (pixel / g - g / 2), g);
      }
      out[q * output.size() + s] = sum.real();
      if (q == 2) out[3 * output.size() + s] = sum.imag();
      ++s;
    }
  }
}

}  // namespace

void autos_image(const AllSkyConfig& config, const CpuRoles& roles, const CpuOutput& output,
                 const FieldChannelData& data, const std::vector<double>& powers,
                 std::vector<double>& out) {
  if (!config.function.apertures.empty()) {
    aperture_image(config, roles, output, data, powers, out);
  } else {
    separable_image(config, output, separable_lags(roles, data, config.function.support, powers),
                    out);
  }
}

}  // namespace ryle::image::detail
