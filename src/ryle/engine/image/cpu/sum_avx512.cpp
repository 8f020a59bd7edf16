// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/sum_kernel.hpp"

#define RYLE_SUM_FUNCTION sum_avx512
#define RYLE_SUM_LANES 16
#define RYLE_SUM_GROUP 6
#include "ryle/engine/image/cpu/sum_kernel.inc"
