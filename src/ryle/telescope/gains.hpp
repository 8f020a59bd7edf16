// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"

namespace ryle {

/// Reads per-input complex gains: columns input,amplitude,phase_deg[,flag] (header line required,
/// '#' comments), any order, every input 0 .. n_inputs-1 exactly once. The gain is 0 of an input
/// with flag = 1: it has none, and calibrated data do without it. v_recorded = g v_sky: the
/// simulator multiplies, calibration divides. Throws FormatError with file:line, IoError when
/// missing. A file that is wrong, or has no end of its last line, is perhaps being written: it is
/// read again while it changes, a few times. `pause` is called between, instead of 50 ms.
std::vector<cf64> read_gains_csv(const std::string& path, std::int64_t n_inputs,
                                 const std::function<void()>& pause = {});

}  // namespace ryle
