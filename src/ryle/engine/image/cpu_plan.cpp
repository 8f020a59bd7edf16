// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::image::detail {
namespace {

// Radices of n, the widest first (the first pass skips what is empty), two at least.
std::vector<int> radices_of(std::int64_t n) {
  std::vector<int> radices;
  int twos = 0;
  while (n % 2 == 0) {
    n /= 2;
    ++twos;
  }
  // 2^a as 16s and 8s: 7 = 4+3, 10 = 4+3+3, 6 = 3+3, 8 = 4+4.
  while (twos >= 4 && twos != 6 && twos != 5) {
    radices.push_back(16);
    twos -= 4;
  }
  while (twos >= 3) {
    radices.push_back(8);
    twos -= 3;
  }
  if (twos > 0) radices.push_back(1 << twos);
  for (const int p : {5, 3}) {
    while (n % p == 0) {
      radices.push_back(p);
      n /= p;
    }
  }
  if (radices.size() == 1 && radices[0] > 2) radices = {radices[0] / 2, 2};
  std::stable_sort(radices.begin(), radices.end(), std::greater<>());
  return radices;
}

}  // namespace

const CpuKernels& cpu_kernels(std::string_view isa) {
  if (isa == "avx512") return cpu_kernels_avx512();
  if (isa == "avx2") return cpu_kernels_avx2();
  if (isa == "generic") return cpu_kernels_generic();
  throw UnsupportedError("imager: no code for \"" + std::string(isa) +
                         "\"; there is avx512, avx2 and generic");
}

TransformTables::TransformTables(std::int64_t n) {
  const auto radices = radices_of(n);
  std::int64_t product = 1;
  for (const int r : radices) product *= r;
  if (product != n || radices.size() < 2) {
    throw ConfigError("imager: no transform of " + std::to_string(n) +
                      " points; sizes are 2^a 3^b 5^c from 4");
  }
  RYLE_ASSERT(radices.size() <= kMaxPasses);
  plan_.n = n;
  plan_.n_passes = static_cast<int>(radices.size());
  std::int64_t rest = n, stride = 1;
  for (std::size_t i = 0; i < radices.size(); ++i) {
    const int radix = radices[i];
    rest /= radix;
    std::vector<float> twiddles;
    for (std::int64_t p = 0; p < rest; ++p) {
      for (int j = 1; j < radix; ++j) {
        const cf64 w = math::unit_root(p * j, rest * radix);
        twiddles.push_back(static_cast<float>(w.real()));
        twiddles.push_back(static_cast<float>(w.imag()));
      }
    }
    twiddles_.push_back(std::move(twiddles));
    plan_.passes[i] = {radix, rest, stride, twiddles_.back().data()};
    stride *= radix;
  }
}

CpuRoles make_roles(const AllSkyConfig& config) {
  CpuRoles roles;
  roles.pols = n_pols(config);
  std::vector<std::int32_t> place(config.antenna_enu_m.size(), -1);
  const auto used = antennas_used(config);
  for (std::size_t a = 0; a < used.size(); ++a) {
    if (!used[a]) continue;
    place[a] = static_cast<std::int32_t>(roles.antennas.size());
    roles.antennas.push_back(static_cast<std::int32_t>(a));
  }
  roles.slots.assign(2 * roles.antennas.size(), -1);
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const auto& input = config.inputs[i];
    if (input.bad) continue;
    const std::int32_t at = place[static_cast<std::size_t>(input.antenna)];
    roles.slots[static_cast<std::size_t>(2 * at + input.pol)] =
        static_cast<std::int32_t>(roles.inputs.size());
    roles.inputs.push_back(static_cast<std::int32_t>(i));
    roles.place_of_slot.push_back(at);
    roles.pol_of_slot.push_back(input.pol);
  }
  return roles;
}

std::vector<cf32> used_gains(const CpuRoles& roles, std::span<const cf32> gains) {
  std::vector<cf32> used;
  used.reserve(roles.inputs.size());
  for (const std::int32_t input : roles.inputs) {
    const cf32 g = gains[static_cast<std::size_t>(input)];
    used.push_back(std::isfinite(g.real()) && std::isfinite(g.imag()) ? g : cf32(0));
  }
  return used;
}

void check_gains(const AllSkyConfig& config, std::span<const cf32> gains) {
  const auto wanted = static_cast<std::size_t>(config.channels.n_channels) * config.inputs.size();
  if (gains.size() == wanted) return;
  throw ConfigError("imager gains: " + std::to_string(gains.size()) + " values for " +
                    std::to_string(wanted) + " (channels x inputs)");
}

CpuOutput::CpuOutput(const AllSkyConfig& config)
    : pols_(n_pols(config)),
      n_sums_(pols_ == 1              ? 1
              : n_planes(config) == 1 ? 2
                                      : 4),
      stokes_(config.products != Products::linear),
      n_bins_(image::n_bins(config)),
      n_planes_(image::n_planes(config)),
      plane_size_(image::plane_size(config)) {
  if (!config.directions.empty()) {
    for (std::size_t i = 0; i < config.directions.size(); ++i) {
      if (config.directions[i][2] > 0) pixels_.push_back(static_cast<std::int32_t>(i));
    }
    return;
  }
  const ArrayPlane plane = fit_plane(config);
  for (std::int64_t y = 0; y < config.n_pixels; ++y) {
    for (std::int64_t x = 0; x < config.n_pixels; ++x) {
      const auto s =
          direction_of_pixel(config, plane, static_cast<double>(x), static_cast<double>(y));
      if (s[2] > 0) pixels_.push_back(static_cast<std::int32_t>(y * config.n_pixels + x));
    }
  }
}

void CpuOutput::prepare(Images& images) const {
  images.pixels.assign(static_cast<std::size_t>(n_bins_ * n_planes_ * plane_size_),
                       std::numeric_limits<float>::quiet_NaN());
  images.weights.assign(static_cast<std::size_t>(3 * n_bins_), 0);
}

void CpuOutput::write(std::int64_t bin, const double* sums, const double* weights,
                      Images& images) const {
  double scale[4];
  for (int p = 0; p < 4; ++p) {
    const double w = weights[p < 2 ? p : 2];
    scale[p] = w > 0 ? 1 / w : std::numeric_limits<double>::quiet_NaN();
  }
  for (int p = 0; p < 3; ++p) images.weights[static_cast<std::size_t>(3 * bin + p)] = weights[p];
  const std::int64_t n = size();
  const double* xx = sums;
  const double* yy = sums + (n_sums_ > 1 ? n : 0);
  const double* re = sums + 2 * n;
  const double* im = sums + 3 * n;
  float* out = images.pixels.data() + bin * n_planes_ * plane_size_;
  for (std::int64_t s = 0; s < n; ++s) {
    float* to = out + pixels_[static_cast<std::size_t>(s)];
    const double x = xx[s] * scale[0];
    if (pols_ == 1) {
      to[0] = static_cast<float>(x);
      continue;
    }
    const double y = yy[s] * scale[1];
    to[0] = static_cast<float>(stokes_ ? 0.5 * (x + y) : x);
    if (n_planes_ == 1) continue;
    to[plane_size_] = static_cast<float>(stokes_ ? 0.5 * (x - y) : y);
    to[2 * plane_size_] = static_cast<float>(re[s] * scale[2]);
    to[3 * plane_size_] = static_cast<float>(im[s] * scale[3]);
  }
}

void run_tasks(Queue& queue, std::int64_t n_slots, std::int64_t n_tasks,
               const std::function<void(std::int64_t, std::int64_t)>& body) {
  std::atomic<std::int64_t> next{0};
  queue.parallel_for(std::min(n_slots, n_tasks), [&](std::int64_t slot) {
    for (std::int64_t task = next++; task < n_tasks; task = next++) body(slot, task);
  });
}

std::int64_t parts_for(std::int64_t n_units) {
  return n_units >= kTasksWanted ? 1 : (kTasksWanted + n_units - 1) / n_units;
}

}  // namespace ryle::image::detail
