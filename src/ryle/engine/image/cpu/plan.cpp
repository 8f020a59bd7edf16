// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/engine/image/weights.hpp"
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

template <class Real>
TransformTablesOf<Real>::TransformTablesOf(std::int64_t n) {
  const auto radices = radices_of(n);
  std::int64_t product = 1;
  for (const int r : radices) product *= r;
  if (product != n || radices.size() < 2) {
    throw ConfigError("imager: no transform of " + std::to_string(n) +
                      " points; sizes are 2^a 3^b 5^c from 4");
  }
  passes_ = math::FftPasses<Real>(radices, +1);
  plan_ = {n, static_cast<int>(passes_.list().size()), passes_.list().data()};
}
template class TransformTablesOf<float>;
template class TransformTablesOf<double>;

std::int64_t transform_size(std::int64_t n) {
  for (std::int64_t size = std::max<std::int64_t>(n, 16);; ++size) {
    std::int64_t rest = size;
    for (const int p : {2, 3, 5}) {
      while (rest % p == 0) rest /= p;
    }
    if (rest == 1) return size;
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
    const std::int32_t at = place[input.antenna];
    roles.slots[2 * at + input.pol] = static_cast<std::int32_t>(roles.inputs.size());
    roles.inputs.push_back(static_cast<std::int32_t>(i));
    roles.place_of_slot.push_back(at);
    roles.pol_of_slot.push_back(input.pol);
  }
  return roles;
}

CpuImager::CpuImager(Queue& queue, const AllSkyConfig& config, Path path, std::string_view isa)
    : config_(config),
      kernels_(cpu_kernels(isa)),
      name_("cpu:" + std::string(isa)),
      roles_(make_roles(config)),
      output_(config),
      n_channels_(config.channels.n_channels),
      n_bins_(image::n_bins(config)),
      n_slots_(queue.n_workers()) {
  config_.path = path;
}

std::vector<cf32> CpuImager::ones() const {
  return std::vector<cf32>(static_cast<std::size_t>(n_channels_) * config_.inputs.size(), cf32(1));
}

void CpuImager::take_gains(std::span<const cf32> gains,
                           const std::function<void(std::int64_t, std::span<const cf32>)>& body) {
  const std::size_t n_inputs = config_.inputs.size();
  const std::size_t wanted = static_cast<std::size_t>(n_channels_) * n_inputs;
  if (gains.size() != wanted) {
    throw ConfigError("imager gains: " + std::to_string(gains.size()) + " values for " +
                      std::to_string(wanted) + " (channels x inputs)");
  }
  std::vector<cf32> used(roles_.inputs.size());
  for (std::int64_t c = 0; c < n_channels_; ++c) {
    const auto of_channel = gains.subspan(static_cast<std::size_t>(c) * n_inputs, n_inputs);
    for (std::size_t s = 0; s < used.size(); ++s) {
      const cf32 g = of_channel[roles_.inputs[s]];
      used[s] = std::isfinite(g.real()) && std::isfinite(g.imag()) ? g : cf32(0);
    }
    body(c, used);
  }
  input_gains_.assign(gains.begin(), gains.end());
}

CpuFieldImager::CpuFieldImager(Queue& queue, const AllSkyConfig& config, Path path,
                               std::string_view isa)
    : CpuImager(queue, config, path, isa) {
  clear_counts();
}

void CpuFieldImager::count(const FieldInput& input) {
  const auto format = input.blocks.format;
  if (format != SampleFormat::ci4 && format != SampleFormat::ci8) {
    throw UnsupportedError("imager: voltages as " + std::string(name(format)) +
                           "; ci4 and ci8 work");
  }
  add_field_weights(config_, input_gains_, input, weights_);
  n_spectra_ += input.n_spectra;
}

void CpuFieldImager::clear_counts() {
  weights_.assign(3 * n_bins_, 0.0);
  n_spectra_ = 0;
}

FieldSamples CpuFieldImager::samples_of(const FieldInput& input, std::int64_t channel) {
  return {input.blocks.data + channel * input.blocks.channel_stride_bytes,
          input.blocks.block_stride_bytes, input.blocks.input_stride_bytes,
          input.blocks.format == SampleFormat::ci4};
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
  find_pixels(config);
  for (std::size_t s = 0; s < pixels_.size(); ++s) {
    const std::int32_t p = pixels_[s];
    const bool follows = s > 0 && p == pixels_[s - 1] + 1 && p % config.n_pixels != 0;
    if (!follows) runs_.push_back({p, static_cast<std::int32_t>(s), 0});
    ++runs_.back().n;
  }
}

void CpuOutput::find_pixels(const AllSkyConfig& config) {
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
  images.pixels.resize(n_bins_ * n_planes_ * plane_size_);
  images.weights.resize(3 * n_bins_);
}

namespace {

// a factor[0] + b factor[1], NaN where there is no sky.
void write_plane(const std::vector<CpuOutput::Run>& runs, std::int64_t plane_size, const double* a,
                 double factor_a, const double* b, double factor_b, float* to) {
  std::int64_t done = 0;
  for (const auto& run : runs) {
    std::fill(to + done, to + run.pixel, std::numeric_limits<float>::quiet_NaN());
    const double *from_a = a + run.sky, *from_b = b + run.sky;
    float* out = to + run.pixel;
    for (std::int32_t i = 0; i < run.n; ++i) {
      out[i] = static_cast<float>(from_a[i] * factor_a + from_b[i] * factor_b);
    }
    done = run.pixel + run.n;
  }
  std::fill(to + done, to + plane_size, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

void CpuOutput::write(std::int64_t bin, const double* sums, const double* weights,
                      Images& images) const {
  double scale[3];
  for (int p = 0; p < 3; ++p) {
    scale[p] = weights[p] > 0 ? 1 / weights[p] : std::numeric_limits<double>::quiet_NaN();
    images.weights[3 * bin + p] = weights[p];
  }
  const std::int64_t n = size();
  float* to = images.pixels.data() + bin * n_planes_ * plane_size_;
  const auto plane = [&](int p, const double* a, double factor_a, const double* b,
                         double factor_b) {
    write_plane(runs_, plane_size_, a, factor_a, b, factor_b, to + p * plane_size_);
  };
  const double *xx = sums, *yy = sums + (n_sums_ > 1 ? n : 0);
  if (pols_ == 1 || !stokes_) {
    plane(0, xx, scale[0], xx, 0);
  } else {
    plane(0, xx, 0.5 * scale[0], yy, 0.5 * scale[1]);
  }
  if (n_planes_ == 1) return;
  if (stokes_) {
    plane(1, xx, 0.5 * scale[0], yy, -0.5 * scale[1]);
  } else {
    plane(1, yy, scale[1], yy, 0);
  }
  plane(2, sums + 2 * n, scale[2], sums + 2 * n, 0);
  plane(3, sums + 3 * n, scale[2], sums + 3 * n, 0);
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
