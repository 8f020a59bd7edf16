// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "ryle/engine/channelize/channelize.hpp"

/// What all implementations of the channelizer share; not part of the public interface.
namespace ryle::channelize::detail {

/// A validated configuration with everything that follows from it.
struct Problem {
  Config config;
  bool complex_input = true;
  std::int64_t n_points = 0;      ///< K
  double reciprocal = 0;          ///< 1 / K
  std::int64_t n_filter = 0;      ///< L = P K
  std::int64_t step = 0;          ///< M
  int sense = 1;                  ///< s: -1 for an inverted band
  std::int64_t zero_channel = 0;  ///< output channel c carries s k' = c - zero_channel
  std::vector<double> filter;     ///< h[L]
};
/// Throws ConfigError or UnsupportedError.
Problem make_problem(const Config& config);
/// Transform bin 0 <= k < K of output channel c.
std::int64_t bin_of_channel(const Problem& problem, std::int64_t channel);

/// True when nothing is to be applied at any time.
bool is_zero(const DelayPolynomial& polynomial);

/// Delay of one input at one spectrum.
struct Shift {
  double delay_s = 0;
  double rate_s_per_s = 0;
  double phase_turns = 0;
  std::int64_t samples = 0;  ///< D = round(d f_s), halves away from zero
};
Shift evaluate(const Problem& problem, const DelayPolynomial& polynomial, std::int64_t spectrum);

/// Phase of output channel c after the whole-sample shift, in 2^-64 turns that wrap by themselves:
/// base + c slope.
/// @eq turns = phase - nu_0 d - (c - c_0) (f_s d - D + (m M mod K)) / K   (correlate.md 3.3; the
/// last term refers
///     oversampled spectra to the absolute sample number)
struct PhaseRamp {
  std::uint64_t base = 0;
  std::uint64_t slope = 0;
};
PhaseRamp phase_ramp(const Problem& problem, const Shift& shift, std::int64_t spectrum);

/// Fastest change of delay that is followed, in seconds per second; a spectrum with a faster one is
/// not valid.
inline constexpr double kMaxDelayRate = 0.01;

/// Fills output.valid for inputs [0, n): spectrum m of input p is valid when [mM-D, mM-D+L) lies in
/// the gulp and touches no absent span. @pre valid rows hold valid_words >=
/// words_for_bits(n_spectra) words
void mark_valid(Queue& queue, const Problem& problem, std::span<const DelayPolynomial> delays,
                const Input& input, std::int64_t first_spectrum, std::int64_t n_spectra,
                std::uint64_t* valid, std::int64_t valid_words);

/// Programmer errors of execute(): shapes that do not fit the plan.
void check_call(const Problem& problem, const Input& input, std::int64_t n_spectra,
                const Output& output);

std::unique_ptr<Channelizer> make_reference(const Problem& problem);
/// instruction_set: "avx512_vbmi", "avx512", "avx2" or "generic", already known to run here.
std::unique_ptr<Channelizer> make_cpu(Queue& queue, const Problem& problem,
                                      std::string_view instruction_set);
/// Instruction sets with an implementation that this CPU runs, best first.
std::vector<std::string> cpu_instruction_sets_here();

}  // namespace ryle::channelize::detail
