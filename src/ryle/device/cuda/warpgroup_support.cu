// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/cuda/warpgroup_support.hpp"

#include "ryle/device/cuda/runtime.hpp"

namespace ryle::cuda {

bool has_warpgroup_products(int device) {
#ifdef RYLE_HAVE_SM90A
  int major = 0;
  int minor = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  RYLE_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  return major == 9 && minor == 0;
#else
  static_cast<void>(device);
  return false;
#endif
}

}  // namespace ryle::cuda
