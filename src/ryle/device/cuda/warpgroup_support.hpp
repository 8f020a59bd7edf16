// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace ryle::cuda {

/// Whether kernels with products of warpgroups (wgmma) run on the device: it has compute capability
/// 9.0, and this build has code for sm_90a, which no other architecture's code stands in for.
bool has_warpgroup_products(int device);

}  // namespace ryle::cuda
