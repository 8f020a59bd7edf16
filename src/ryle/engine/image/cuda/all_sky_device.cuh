// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/to_device.hpp"
#include "ryle/engine/image/cuda/all_sky_host.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"
#include "ryle/engine/image/image.hpp"
#include "ryle/math/fft.hpp"

/// Host helpers of the CUDA imagers' plans: tables on the device.
namespace ryle::image::detail {

/// The tables of one grid size and the transform that uses them.
class GridTransform {
 public:
  GridTransform(Queue& queue, std::int64_t n) {
    if (n > kMaxGrid) {
      throw UnsupportedError("cuda imager: a grid of " + std::to_string(n) + " cells; at most " +
                             std::to_string(kMaxGrid) + ": use the implementation cpu");
    }
    std::vector<float> roots;
    for (std::int64_t k = 0; k < n; ++k) {
      const cf64 root = math::unit_root(k, n);
      roots.push_back(static_cast<float>(root.real()));
      roots.push_back(static_cast<float>(root.imag()));
    }
    roots_ = to_device(queue, roots);
    fft_.n = static_cast<int>(n);
    fft_.roots = reinterpret_cast<const float2*>(roots_.data());
    split(n);
    prepare_transforms();
  }
  const GridFft& fft() const { return fft_; }

 private:
  void split(std::int64_t n) {
    std::int64_t rest = n, stride = 1;
    for (const int radix : {8, 4, 2, 5, 3}) {
      while (rest % radix == 0) {
        RYLE_ASSERT(fft_.n_stages < kFftStages);
        const int stage = fft_.n_stages++;
        fft_.radix[stage] = radix;
        fft_.inverse_butterflies[stage] = cuda::inverse_of(n / radix);
        fft_.inverse_stride[stage] = cuda::inverse_of(stride);
        stride *= radix;
        rest /= radix;
      }
    }
    RYLE_ASSERT(rest == 1);
  }

  GridFft fft_;
  Buffer<float> roots_;
};

inline FinishArgs finish_args(const AllSkyConfig& config, float* pixels) {
  FinishArgs args;
  args.n_channels = static_cast<int>(config.channels.n_channels);
  args.n_channels_per_bin =
      static_cast<int>(std::min(config.n_channels_per_bin, config.channels.n_channels));
  args.n_planes = static_cast<int>(n_planes(config));
  args.n_pols = n_pols(config);
  args.stokes = config.products != Products::linear;
  args.n_tapers = n_tapers(config);
  args.pixels = pixels;
  return args;
}

inline void check_gains(const AllSkyConfig& config, std::span<const cf32> gains) {
  const auto wanted = static_cast<std::size_t>(config.channels.n_channels) * config.inputs.size();
  if (gains.size() != wanted) {
    throw ConfigError("imager gains: " + std::to_string(gains.size()) + " values for " +
                      std::to_string(wanted) + " (channels x inputs)");
  }
}

/// A launch numbers channels along an axis of at most 65 535.
inline void check_channels(const AllSkyConfig& config) {
  if (config.channels.n_channels > 65535) {
    throw UnsupportedError("cuda imager: " + std::to_string(config.channels.n_channels) +
                           " channels; at most 65535 at a time");
  }
}

}  // namespace ryle::image::detail
