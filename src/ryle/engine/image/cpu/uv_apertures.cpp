// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/uv_apertures.hpp"

#include <algorithm>

namespace ryle::image::detail {

/// Differences d of cells, -(box-1) .. box-1 on both axes, parts apart.
struct UvApertures::Plane {
  std::int64_t nx = 0, ny = 0;
  std::vector<float> re, im;
  Plane(std::int64_t box_x, std::int64_t box_y)
      : nx(2 * box_x - 1), ny(2 * box_y - 1), re(nx * ny), im(nx * ny) {}
  cf32 at(std::int64_t y, std::int64_t x) const {
    const auto i = static_cast<std::size_t>(y * nx + x);
    return {re[i], im[i]};
  }
};

UvApertures::UvApertures(const AllSkyConfig& config, const CpuRoles& roles) {
  const std::int64_t k = config.function.support;
  for (std::int64_t c = 0; c < config.channels.n_channels; ++c) {
    const auto cells = antenna_cells(config, c);
    const auto weights = aperture_weights(config, c);
    Channel channel;
    for (const std::int32_t a : roles.antennas) {
      const auto n = static_cast<std::size_t>(a);
      channel.x.push_back(cells[n].first_x);
      channel.y.push_back(cells[n].first_y);
      for (int pol = 0; pol < 2; ++pol) {
        const auto& w = weights[n * std::size_t(roles.pols) + std::size_t(pol % roles.pols)];
        for (const cf64& value : w) {
          channel.weights.push_back(static_cast<float>(value.real()));
          channel.weights.push_back(static_cast<float>(value.imag()));
        }
      }
    }
    const auto pack = [k](std::vector<std::int64_t>& firsts) {
      const auto [low, high] = std::minmax_element(firsts.begin(), firsts.end());
      const std::int64_t first = *low, box = *high - *low + k;
      for (auto& f : firsts) f -= first;
      return box;
    };
    channel.box_x = pack(channel.x);
    channel.box_y = pack(channel.y);
    channels_.push_back(std::move(channel));
  }
}

void UvApertures::add_product(const Channel& channel, const CpuRoles& roles, std::int64_t k,
                              const std::vector<cf32>& matrix, int pol_a, int pol_b,
                              Plane& plane) const {
  const auto n = static_cast<std::int64_t>(roles.antennas.size());
  const std::int64_t nx = channel.box_x, ny = channel.box_y;
  std::vector<float> h_re(nx * ny), h_im(h_re.size());
  for (std::int64_t b = 0; b < n; ++b) {
    std::fill(h_re.begin(), h_re.end(), 0.0f);
    std::fill(h_im.begin(), h_im.end(), 0.0f);
    for (std::int64_t a = 0; a < n; ++a) {
      const cf32 v = matrix[b * n + a];
      const float* w = channel.weights.data() + (2 * a + pol_a) * k * k * 2;
      for (std::int64_t r = 0; r < k * k; ++r) {
        const auto at = static_cast<std::size_t>((channel.y[std::size_t(a)] + r / k) * nx +
                                                 channel.x[std::size_t(a)] + r % k);
        h_re[at] += v.real() * w[2 * r] - v.imag() * w[2 * r + 1];
        h_im[at] += v.real() * w[2 * r + 1] + v.imag() * w[2 * r];
      }
    }
    const float* w = channel.weights.data() + (2 * b + pol_b) * k * k * 2;
    for (std::int64_t s = 0; s < k * k; ++s) {
      const float wr = w[2 * s], wi = w[2 * s + 1];
      const std::int64_t dy = ny - 1 - channel.y[std::size_t(b)] - s / k;
      const std::int64_t dx = nx - 1 - channel.x[std::size_t(b)] - s % k;
      for (std::int64_t y = 0; y < ny; ++y) {
        float* re = plane.re.data() + (y + dy) * plane.nx + dx;
        float* im = plane.im.data() + (y + dy) * plane.nx + dx;
        const float* hr = h_re.data() + y * nx;
        const float* hi = h_im.data() + y * nx;
        for (std::int64_t x = 0; x < nx; ++x) {
          re[x] += hr[x] * wr + hi[x] * wi;
          im[x] += hi[x] * wr - hr[x] * wi;
        }
      }
    }
  }
}

void UvApertures::grid(const AllSkyConfig& config, const CpuRoles& roles, std::int64_t channel,
                       const std::vector<PairSource>& pairs, const std::vector<float>& products,
                       float* cells) const {
  const Channel& c = channels_[channel];
  const std::int64_t g = config.n_pixels, k = config.function.support;
  const auto n = roles.antennas.size();
  std::fill_n(cells, (g / 2 + 1) * g * kCellFloats, 0.0f);
  // Planes of the products: XY = U + i V, YX = U - i V, V_ba = conj(V_ab).
  for (int q = 0; q < (roles.pols == 1 ? 1 : 3); ++q) {
    std::vector<cf32> matrix(n * n);  // [b][a]
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const float* h = products.data() + p * kCellFloats;
      const auto a = static_cast<std::size_t>(pairs[p].a), b = static_cast<std::size_t>(pairs[p].b);
      const auto plane = [h](int i) { return cf32(h[i], h[i + 4]); };
      const cf32 i(0, 1);
      const cf32 ab = q < 2 ? plane(q) : plane(2) + i * plane(3);
      const cf32 ba = q < 2 ? plane(q) : plane(2) - i * plane(3);
      matrix[a * n + b] = std::conj(ba);
      matrix[b * n + a] = ab;
    }
    Plane plane(c.box_x, c.box_y);
    add_product(c, roles, k, matrix, q == 1 ? 1 : 0, q == 0 ? 0 : 1, plane);
    for (std::int64_t y = 0; y < plane.ny; ++y) {
      for (std::int64_t x = 0; x < plane.nx; ++x) {
        // U(d) belongs to d and, conjugated, to -d; of the Hermitian planes each cell gets U(d)
        // of XX and YY, half of XY(d) and of conj(XY(-d)) for U, the same over i for V.
        const cf32 value = plane.at(y, x);
        const auto put = [&](std::int64_t dy, std::int64_t dx, int to, cf32 v) {
          const std::int64_t row = ((dy % g) + g) % g, column = ((dx % g) + g) % g;
          if (row > g / 2) return;
          float* cell = cells + (row * g + column) * kCellFloats + to;
          cell[0] += v.real();
          cell[4] += v.imag();
        };
        const std::int64_t dy = y - c.box_y + 1, dx = x - c.box_x + 1;
        if (q < 2) {
          put(dy, dx, q, value);
          continue;
        }
        const cf32 over_2i(0, -0.5f);
        put(dy, dx, 2, 0.5f * value);
        put(-dy, -dx, 2, 0.5f * std::conj(value));
        put(dy, dx, 3, over_2i * value);
        put(-dy, -dx, 3, std::conj(over_2i * value));
      }
    }
  }
}

}  // namespace ryle::image::detail
