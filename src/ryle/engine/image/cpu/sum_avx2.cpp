// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/sum_kernel.hpp"

#define RYLE_SUM_FUNCTION sum_avx2
#define RYLE_SUM_LANES 8
#define RYLE_SUM_GROUP 3
#include "ryle/engine/image/cpu/sum_kernel.inc"
