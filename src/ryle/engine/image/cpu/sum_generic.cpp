// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/sum_kernel.hpp"

#define RYLE_SUM_FUNCTION sum_generic
#define RYLE_SUM_LANES 4
#define RYLE_SUM_GROUP 3
#include "ryle/engine/image/cpu/sum_kernel.inc"
