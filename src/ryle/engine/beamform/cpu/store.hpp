// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/beamform/cpu/kernel.hpp"

/// Private to the engine: from planes [time][lane] to rows in memory.
namespace ryle::beamform::detail {

/// Powers as halves, n of each row; what is cut at +-65504 is added to the counts [lane].
void store_fp16(const float* plane, std::int64_t n, std::uint32_t* n_low, std::uint32_t* n_high,
                const Rows& to);
/// Codes of powers, u8 or u16: n of each row.
void store_codes(OutputFormat format, const std::int32_t* codes, std::int64_t n, const Rows& to);
/// Voltages of all pols, [time][pol] in each row. planes or codes [2 pol + part][time][lane].
void store_voltages(OutputFormat format, const float* planes, const std::int32_t* codes,
                    std::int64_t n, std::int64_t n_pols, const Rows& to);
/// plane = plane * scale + dither, for one part of one pol.
void add_dither(float* plane, const float* scale, std::int64_t n, Tick first_tick,
                const std::uint64_t* keys, int part, std::int64_t n_lanes);

}  // namespace ryle::beamform::detail
