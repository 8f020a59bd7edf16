// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/image/image.hpp"

/// What the CUDA imagers can do beyond the interface: images that stay on the device. Builds with
/// CUDA only.
namespace ryle::image {

/// @shape pixels [bin][plane][y][x], device memory of the imager: valid until its next images
struct DeviceImages {
  const float* pixels = nullptr;
  std::int64_t n_floats = 0;
};

/// As VisImager::execute(), asynchronous on the queue. Throws UnsupportedError for an imager that
/// is not a CUDA one.
DeviceImages execute_on_device(Queue& queue, VisImager& imager, const VisInput& input);
/// As FieldImager::finish(), asynchronous on the queue: weights are forgotten after their use.
DeviceImages finish_on_device(Queue& queue, FieldImager& imager);

}  // namespace ryle::image
