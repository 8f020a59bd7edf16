// SPDX-License-Identifier: BSD-3-Clause
#define ROUND_SUMS round_sums_avx2
#include "ryle/engine/calibrate/cpu/sums.inc.hpp"
