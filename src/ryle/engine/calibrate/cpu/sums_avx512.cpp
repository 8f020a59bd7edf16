// SPDX-License-Identifier: BSD-3-Clause
#define ROUND_SUMS round_sums_avx512
#include "ryle/engine/calibrate/cpu/sums.inc.hpp"
