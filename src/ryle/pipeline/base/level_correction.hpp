// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/finish.hpp"

/// Van Vleck correction from recorded levels, to first order in the correlation: what the coarse
/// samples of the receivers did before the channelizer, and what few-bit spectra do to images.
/// Bussgang: a quantised Gaussian voltage is a factor times the voltage plus noise that no other
/// input shares.
/// @eq E[c_1 c_2] = k_1 k_2 r + O(r^3),  k = sum over steps of height phi(threshold / rms)
/// Left out: r^2 / 6 of a correlation r with one bit, less with more (correlate.md 8).
namespace ryle::pipeline {

/// Samples of up to 5 bits a part have few enough codes for the correction to matter.
bool is_coarse(const SampleLayout& layout);

/// Of coarse samples with these codes. 1 and 2 bits have no scale of their own: the power stays
/// what it is; codes of more bits are steps of 1, and their own noise leaves the power.
correlate::SamplerGain sampler_gain(const channelize::LevelStatistics& levels,
                                    const SampleLayout& layout);
/// Of all inputs; 1 for those with too few samples to tell. Empty when `layout` is not coarse.
std::vector<correlate::SamplerGain> sampler_gains(
    std::span<const channelize::LevelStatistics> levels, const SampleLayout& layout);

/// Four-bit codes -8 .. 7 of an F-engine.
correlate::Quantizer four_bit_codes();

/// Whether spectra of a format have four bits a part.
bool has_four_bits(const std::string& format);

}  // namespace ryle::pipeline
