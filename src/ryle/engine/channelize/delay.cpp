// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/engine/channelize/problem.hpp"

namespace ryle::channelize::detail {
namespace {

double cubic(const double (&c)[4], double t) { return c[0] + t * (c[1] + t * (c[2] + t * c[3])); }

/// Fraction of a turn in 2^-64 turns.
std::uint64_t to_fixed(double turns) {
  if (!(std::abs(turns) < 0x1p62)) return 0;  // only where the spectrum is absent anyway
  // Truncation instead of floor(), a library call on baseline CPUs.
  const double part = turns - static_cast<double>(static_cast<std::int64_t>(turns));
  const double fraction = part < 0 ? part + 1 : part;
  // 2^63 twice: 2^64 itself does not fit, and fraction may round up to 1.
  return static_cast<std::uint64_t>(fraction * 0x1p63) * 2;
}

/// std::llround without the call: nearest, halves away from zero; the remainder is exact.
std::int64_t nearest(double x) {
  const auto whole = static_cast<std::int64_t>(x);
  const double rest = x - static_cast<double>(whole);
  return whole + (rest >= 0.5) - (rest <= -0.5);
}

}  // namespace

bool is_zero(const DelayPolynomial& polynomial) {
  for (int i = 0; i < 4; ++i) {
    if (polynomial.delay_s[i] != 0 || polynomial.phase_turns[i] != 0) return false;
  }
  return true;
}

Shift evaluate(const Problem& problem, const DelayPolynomial& polynomial, std::int64_t spectrum) {
  if (is_zero(polynomial)) return {};
  const double rate_hz = problem.config.sample_rate_hz;
  const auto offset = static_cast<double>(spectrum * problem.step - polynomial.reference_tick);
  const double t = (offset + 0.5 * static_cast<double>(problem.n_filter - 1)) / rate_hz;
  Shift s;
  s.delay_s = cubic(polynomial.delay_s, t);
  const auto& d = polynomial.delay_s;
  s.rate_s_per_s = d[1] + t * (2 * d[2] + t * 3 * d[3]);
  s.phase_turns = cubic(polynomial.phase_turns, t);
  const double samples = s.delay_s * rate_hz;
  // A delay that no gulp can hold makes the spectrum absent; the conversion must not see what it
  // cannot hold.
  s.samples = std::abs(samples) < 0x1p60 ? nearest(samples) : (std::int64_t{1} << 60);
  if (!(std::abs(samples) < 0x1p60)) s.rate_s_per_s = 2 * kMaxDelayRate;
  return s;
}

PhaseRamp phase_ramp(const Problem& problem, const Shift& shift, std::int64_t spectrum) {
  const std::int64_t k = problem.n_points;
  // Critically sampled spectra start whole transforms apart; the division is slow.
  const std::int64_t start = problem.step == k ? 0 : spectrum * problem.step % k;
  const double residual =
      shift.delay_s * problem.config.sample_rate_hz - static_cast<double>(shift.samples);
  const double turns = -(residual + static_cast<double>(start));
  // The reciprocal of a power of two is exact, and a product is several times faster.
  const bool exact = (k & (k - 1)) == 0;
  const double slope = exact ? turns * problem.reciprocal : turns / static_cast<double>(k);
  PhaseRamp ramp;
  ramp.slope = to_fixed(slope);
  double base = shift.phase_turns - problem.config.reference_hz * shift.delay_s;
  ramp.base = to_fixed(base) - static_cast<std::uint64_t>(problem.zero_channel) * ramp.slope;
  return ramp;
}

namespace {

struct Row {
  std::uint64_t* bits;
  std::int64_t min_shift;
  std::int64_t max_shift;
};

/// Spectra [begin, end) of the call whose windows lie in the gulp whatever the delay does within
/// its bounds.
struct Inside {
  bool bounded = false;  ///< and `row` has bounds of D
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// From bounds alone: |d(t) - d(t_c)| <= max |d'| |t - t_c|.
Inside surely_inside(const Problem& problem, const DelayPolynomial& polynomial, const Input& input,
                     std::int64_t first, std::int64_t n_spectra, Row& row) {
  const std::int64_t last = first + n_spectra - 1;
  const Shift middle = evaluate(problem, polynomial, first + n_spectra / 2);
  const auto& d = polynomial.delay_s;
  const double rate_hz = problem.config.sample_rate_hz;
  const auto seconds_at = [&](std::int64_t m) {
    const auto offset = static_cast<double>(m * problem.step - polynomial.reference_tick);
    return (offset + 0.5 * static_cast<double>(problem.n_filter - 1)) / rate_hz;
  };
  const double t = std::fmax(std::abs(seconds_at(first)), std::abs(seconds_at(last)));
  const double max_rate = std::abs(d[1]) + t * (2 * std::abs(d[2]) + t * 3 * std::abs(d[3]));
  const double spread = max_rate * static_cast<double>(n_spectra * problem.step);  // samples
  if (!(max_rate <= kMaxDelayRate) || !(spread < 0x1p40)) return {};
  const std::int64_t reach = static_cast<std::int64_t>(spread) + 2;
  row.min_shift = middle.samples - reach;
  row.max_shift = middle.samples + reach;
  if (is_zero(polynomial)) row.min_shift = row.max_shift = 0;
  // mM - D >= first tick  and  mM - D + L <= end of the gulp, for every D of the call.
  const Tick end_tick = input.first_tick + input.n_samples;
  const std::int64_t from = -floor_divide(-(input.first_tick + row.max_shift), problem.step);
  const std::int64_t to =
      floor_divide(end_tick - problem.n_filter + row.min_shift, problem.step) + 1;
  Inside inside{true, std::clamp<std::int64_t>(from - first, 0, n_spectra),
                std::clamp<std::int64_t>(to - first, 0, n_spectra)};
  if (inside.begin >= inside.end) inside.begin = inside.end = 0;
  return inside;
}

void set_bits(std::uint64_t* bits, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end;) {
    const std::int64_t n = std::min(end - i, 64 - i % 64);
    bits[i / 64] |= (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << (i % 64);
    i += n;
  }
}

/// Bits of spectra whose window lies in the gulp; also the range of D, which bounds the search for
/// absent spans. Where bounds of D are known, only the spectra at the edges are looked at.
Row mark_inside(const Problem& problem, const DelayPolynomial& polynomial, const Input& input,
                std::int64_t first, std::int64_t n_spectra, std::uint64_t* bits,
                std::int64_t valid_words) {
  Row row{bits, 0, 0};
  for (std::int64_t w = 0; w < valid_words; ++w) bits[w] = 0;
  if (n_spectra == 0) return row;
  const Inside inside = surely_inside(problem, polynomial, input, first, n_spectra, row);
  set_bits(bits, inside.begin, inside.end);
  for (std::int64_t i = 0; i < n_spectra; ++i) {
    if (i == inside.begin) i = inside.end;
    if (i == n_spectra) break;
    const Shift shift = evaluate(problem, polynomial, first + i);
    if (!(std::abs(shift.rate_s_per_s) <= kMaxDelayRate)) continue;
    const Tick begin = (first + i) * problem.step - shift.samples;
    if (!inside.bounded && (i == 0 || shift.samples < row.min_shift)) row.min_shift = shift.samples;
    if (!inside.bounded && (i == 0 || shift.samples > row.max_shift)) row.max_shift = shift.samples;
    const Tick end = begin + problem.n_filter;
    if (begin >= input.first_tick && end <= input.first_tick + input.n_samples) set_bit(bits, i);
  }
  return row;
}

void clear_touched(const Problem& problem, const DelayPolynomial& polynomial,
                   const AbsentSpan& span, const Row& row, std::int64_t first,
                   std::int64_t n_spectra) {
  if (span.begin >= span.end) return;
  // mM - D + L > a  and  mM - D < b, for some D of the call.
  const std::int64_t m = problem.step;
  std::int64_t from = floor_divide(span.begin - problem.n_filter + row.min_shift, m) - first;
  std::int64_t to = floor_divide(span.end + row.max_shift, m) + 1 - first;
  from = from < 0 ? 0 : from;
  to = to > n_spectra ? n_spectra : to;
  for (std::int64_t i = from; i < to; ++i) {
    const Tick begin = (first + i) * m - evaluate(problem, polynomial, first + i).samples;
    if (begin < span.end && begin + problem.n_filter > span.begin) clear_bit(row.bits, i);
  }
}

}  // namespace

void mark_valid(Queue& queue, const Problem& problem, std::span<const DelayPolynomial> delays,
                const Input& input, std::int64_t first_spectrum, std::int64_t n_spectra,
                std::uint64_t* valid, std::int64_t valid_words) {
  queue.parallel_for(problem.config.n_inputs, [&](std::int64_t p) {
    const Row row = mark_inside(problem, delays[p], input, first_spectrum, n_spectra,
                                valid + p * valid_words, valid_words);
    for (const AbsentSpan& span : input.absent) {
      if (span.input == p) clear_touched(problem, delays[p], span, row, first_spectrum, n_spectra);
    }
  });
}

void check_call(const Problem& problem, const Input& input, std::int64_t n_spectra,
                const Output& output) {
  RYLE_ASSERT(n_spectra >= 0 && n_spectra <= problem.config.max_spectra);
  RYLE_ASSERT(input.samples != nullptr || input.n_samples == 0);
  RYLE_ASSERT(output.blocks.data != nullptr && output.blocks.format == problem.config.output);
  RYLE_ASSERT(output.blocks.n_channels == problem.config.n_channels);
  RYLE_ASSERT(output.blocks.n_inputs == problem.config.n_inputs);
  RYLE_ASSERT(output.blocks.n_blocks >= n_blocks(problem.config.output, n_spectra));
  RYLE_ASSERT(output.valid != nullptr && output.valid_words * 64 >= n_spectra);
}

}  // namespace ryle::channelize::detail
