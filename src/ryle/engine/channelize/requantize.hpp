// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>

#include "ryle/engine/channelize/problem.hpp"

/// The slow, exact way from a double to a code in its block, and what every implementation does
/// around execute().
namespace ryle::channelize::detail {

/// IEEE half nearest to a float, ties to even, overflow to infinity.
std::uint16_t to_half(float value);
/// Zeroes the cells of all channels and inputs that hold n_spectra spectra.
void zero_blocks(const BlockView& blocks, std::int64_t n_spectra);
/// Dithers, rounds, saturates, stores and counts one sample: spectrum m of the stream is spectrum i
/// of the call.
void store(const Problem& problem, cf64 value, std::int64_t input, std::int64_t channel,
           std::int64_t m, std::int64_t i, const Output& output);
/// Throws ConfigError when there is not one finite polynomial per input.
void check_delays(const Problem& problem, std::span<const DelayPolynomial> delays);
/// To dense [input][channel]; throws ConfigError on a wrong shape or a value that is not finite.
void copy_gains(const Problem& problem, View<const cf32, 2> gains, cf32* destination);

}  // namespace ryle::channelize::detail
