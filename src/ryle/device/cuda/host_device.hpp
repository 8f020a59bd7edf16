// SPDX-License-Identifier: BSD-3-Clause
#pragma once

/// Marks what kernels and the host both call, in headers that plain C++ reads, too.
#ifdef __CUDACC__
#define RYLE_HOST_DEVICE __host__ __device__
#else
#define RYLE_HOST_DEVICE
#endif
