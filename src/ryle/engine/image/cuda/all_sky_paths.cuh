// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>

#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/engine/image/cuda/all_sky.hpp"

/// Private to the CUDA imager: what all paths on the device can do.
namespace ryle::image::detail {

class CudaVisImager : public VisImager {
 public:
  virtual DeviceImages run(Queue& queue, const VisInput& input) = 0;
};

std::unique_ptr<VisImager> make_vis_dft_cuda(Queue& queue, const AllSkyConfig& config);

class CudaFieldImager : public FieldImager {
 public:
  virtual DeviceImages images_on_device(Queue& queue) = 0;
};

std::unique_ptr<FieldImager> make_field_dft_cuda(Queue& queue, const AllSkyConfig& config);

}  // namespace ryle::image::detail
