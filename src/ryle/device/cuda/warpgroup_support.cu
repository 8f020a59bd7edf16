// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/cuda/warpgroup_support.hpp"

#include "ryle/device/cuda/runtime.hpp"

namespace ryle::cuda {

bool has_warpgroup_products(int device) {
#ifdef RYLE_HAVE_SM90A
  return attribute_of(device, cudaDevAttrComputeCapabilityMajor) == 9 &&
         attribute_of(device, cudaDevAttrComputeCapabilityMinor) == 0;
#else
  static_cast<void>(device);
  return false;
#endif
}

}  // namespace ryle::cuda
