// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/channelize/transform_plan.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/engine/channelize/dither.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::channelize::detail {
namespace {

/// Work that stays in a 48 KiB first-level cache beside coefficients and samples.
constexpr std::int64_t kCacheBytes = 32 << 10;

/// Windows of 16 spectra then fit 32 rows, one vector of words.
constexpr std::int64_t kMaxDigitTaps = 16;

bool is_smooth(std::int64_t n) {
  for (const std::int64_t r : {2, 3, 5, 7}) {
    while (n % r == 0) n /= r;
  }
  return n == 1;
}

void push(std::vector<float>& table, cf64 value) {
  table.push_back(static_cast<float>(value.real()));
  table.push_back(static_cast<float>(value.imag()));
}

/// Radices of a smooth n, largest steps first: fewest passes through the cache.
std::vector<int> radices_of(std::int64_t n, bool wide) {
  std::vector<int> radices;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  while (twos > 0) {
    // In few registers 4; otherwise 8, and 16 where that saves a pass.
    int step = twos >= 2 ? 2 : 1;
    if (wide) step = twos == 4 && !radices.empty() ? 4 : twos == 4 ? 2 : twos >= 3 ? 3 : twos;
    radices.push_back(1 << step);
    twos -= step;
  }
  for (const int r : {3, 5, 7}) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  return radices;
}

/// One part of one branch: the constant term -128 sum h as its upper half and two bytes at the top
/// of words, then balanced digits 2, 1, 0 of four taps a word.
template <class Value>
void push_digits(std::vector<std::int32_t>& table, std::int64_t n_taps, const Value& value) {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < n_taps; ++p) sum += value(p);
  const auto constant = static_cast<std::uint32_t>(-128 * sum);
  table.push_back(static_cast<std::int32_t>(constant) >> 16);
  table.push_back(static_cast<std::int32_t>((constant >> 8 & 255u) << 24));
  table.push_back(static_cast<std::int32_t>((constant & 255u) << 24));
  for (int digit = 2; digit >= 0; --digit) {
    for (std::int64_t p = 0; p < n_taps; p += 4) {
      std::uint32_t word = 0;
      for (std::int64_t i = 0; i < 4; ++i) {
        std::int64_t rest = p + i < n_taps ? value(p + i) : 0;
        std::int64_t d = 0;
        for (int k = 0; k <= digit; ++k) {
          d = ((rest + 128) & 255) - 128;
          rest = (rest - d) / 256;
        }
        word |= static_cast<std::uint32_t>(d & 255) << 8 * i;
      }
      table.push_back(static_cast<std::int32_t>(word));
    }
  }
}

KernelFormat kernel_format(SampleFormat format) {
  switch (format) {
    case SampleFormat::ci8:
      return KernelFormat::ci8;
    case SampleFormat::ci4:
      return KernelFormat::ci4;
    case SampleFormat::cf16:
      return KernelFormat::cf16;
    default:
      return KernelFormat::cf32;
  }
}

}  // namespace

TransformPlan::TransformPlan(const Problem& problem, const KernelTable& kernel, bool float_stream,
                             std::int64_t sample_bytes) {
  const Config& config = problem.config;
  plan_.n_points = config.n_channels;
  plan_.n_taps = config.n_taps;
  plan_.float_stream = float_stream;
  plan_.real_input = !problem.complex_input;
  plan_.tap_bytes = problem.n_points * sample_bytes;
  plan_.direction = problem.sense;
  plan_.format = kernel_format(config.output);
  plan_.truncate = config.rounding == Rounding::truncate;
  plan_.dither = config.dither;
  plan_.fixed_point = plan_.format == KernelFormat::ci8 && plan_.dither && !plan_.truncate;
  make_filter(problem, kernel);
  if (is_smooth(plan_.n_points)) {
    choose_columns(kernel);
    make_passes(plan_.n_rows, kernel.wide_radices);
  } else {
    make_chirp(kernel);
  }
  plan_.unit = 1;
  if (kernel.arrange_rows != nullptr && !float_stream && problem.step == problem.n_points &&
      plan_.n_taps <= kMaxDigitTaps) {
    make_digits(problem, kernel.n_lanes);
    // Whole vectors of points; odd in lines, so that groups do not fight for cache sets.
    plan_.arranged_stride = ((plan_.n_points + 31) / 32 * 8 + 1) * 64;
  }
  for (std::int64_t k = 0; 2 * k <= plan_.n_points; ++k) {
    push(untangle_, math::unit_root(-k, 2 * plan_.n_points));
  }
  plan_.untangle = untangle_.data();
  for (std::int64_t place = 0; place < plan_.n_points; ++place) {
    const std::int64_t bin = place / plan_.n_rows + plan_.n_columns * (place % plan_.n_rows);
    const std::int64_t c = problem.zero_channel + problem.sense * bin;
    channel_of_.push_back(static_cast<std::uint32_t>((c + plan_.n_points) % plan_.n_points));
    const std::uint32_t key = dither_channel_key(config.seed, channel_of_.back());
    channel_keys_.push_back(key ^ key >> 16);
  }
  plan_.channel_of = channel_of_.data();
  plan_.channel_keys = channel_keys_.data();
}

void TransformPlan::make_filter(const Problem& problem, const KernelTable& kernel) {
  const std::int64_t lanes = kernel.n_lanes;
  const int parts = plan_.real_input ? 2 : 1;
  for (std::int64_t n = 0; n < plan_.n_points; n += lanes) {
    for (std::int64_t p = 0; p < plan_.n_taps; ++p) {
      for (int part = 0; part < parts; ++part) {
        for (std::int64_t l = 0; l < lanes; ++l) {
          const bool inside = n + l < plan_.n_points;
          const std::int64_t at = p * problem.n_points + parts * (n + l) + part;
          filter_.push_back(inside ? static_cast<float>(problem.filter[at]) : 0.0f);
        }
      }
    }
  }
  plan_.filter = filter_.data();
}

/// @eq h = round(2^S filter), S the largest for which three digits hold h and
/// 128 sum_p |h[p]| < 2^31 for every branch
void TransformPlan::make_digits(const Problem& problem, std::int64_t n_lanes) {
  constexpr double kLargestThreeDigits = 127 * 65536 + 127 * 256 + 127;
  const std::int64_t taps = plan_.n_taps;
  double largest = 0;
  double largest_sum = 0;
  for (std::int64_t n = 0; n < problem.n_points; ++n) {
    double sum = 0;
    for (std::int64_t p = 0; p < taps; ++p) {
      const double h = std::abs(problem.filter[p * problem.n_points + n]);
      largest = std::max(largest, h);
      sum += h;
    }
    largest_sum = std::max(largest_sum, sum);
  }
  // Half a unit a tap for rounding.
  const double room = std::min((kLargestThreeDigits - 1) / largest,
                               (0x1p24 - static_cast<double>(taps)) / largest_sum);
  const int exponent = std::ilogb(room);
  plan_.unit = static_cast<float>(std::ldexp(1.0, -exponent));
  const int parts = plan_.real_input ? 2 : 1;
  const auto value = [&](std::int64_t n, std::int64_t p, int part) {
    if (n >= plan_.n_points || p >= taps) return std::int64_t{0};
    const std::int64_t at = p * problem.n_points + parts * n + part;
    return static_cast<std::int64_t>(std::llrint(std::ldexp(problem.filter[at], exponent)));
  };
  for (std::int64_t at = 0; at < plan_.n_points; ++at) {
    const std::int64_t n = at % plan_.n_columns * plan_.n_rows + at / plan_.n_columns;
    for (int part = 0; part < parts; ++part)
      push_digits(digits_, taps, [&](std::int64_t p) { return value(n, p, part); });
  }
  for (std::int64_t n = 0; n < plan_.n_points; n += n_lanes) {
    for (std::int64_t p = 0; p < taps; ++p) {
      for (int part = 0; part < parts; ++part) {
        for (std::int64_t l = 0; l < n_lanes; ++l)
          whole_.push_back(static_cast<std::int32_t>(value(n + l, p, part)));
      }
    }
  }
  plan_.digits = digits_.data();
  plan_.whole = whole_.data();
}

void TransformPlan::choose_columns(const KernelTable& kernel) {
  const std::int64_t n = plan_.n_points;
  const std::int64_t point_bytes = 8 * kernel.n_lanes;
  plan_.n_columns = 1;
  plan_.n_rows = n;
  plan_.row_stride = n;
  // Untangling pairs rows k1 and N1 - k1; a real transform stays in one piece.
  if (plan_.real_input || 2 * n * point_bytes <= kCacheBytes) return;
  for (const std::int64_t columns : {4, 8, 16}) {
    const std::int64_t rows = n / columns;
    if (n % columns != 0 || rows % kernel.n_lanes != 0) continue;
    plan_.n_columns = columns;
    plan_.n_rows = rows;
    // Half of the cache: there is room for the next row.
    if (4 * rows * point_bytes <= kCacheBytes) break;
  }
  if (plan_.n_columns == 1) return;
  plan_.row_stride =
      plan_.n_rows + 2;  // rows a power of two apart would fight for the same cache sets
  for (std::int64_t n2 = 0; n2 < plan_.n_rows; ++n2) {
    for (std::int64_t k1 = 1; k1 < plan_.n_columns; ++k1)
      push(column_twiddles_, math::unit_root(-k1 * n2, n));
  }
  plan_.column_twiddles = column_twiddles_.data();
}

void TransformPlan::make_passes(std::int64_t n, bool wide_radices) {
  passes_ = math::FftPasses<float>(radices_of(n, wide_radices), -1);
  plan_.n_passes = static_cast<int>(passes_.list().size());
  plan_.passes = passes_.list().data();
}

void TransformPlan::make_chirp(const KernelTable& kernel) {
  const std::int64_t n = plan_.n_points;
  std::int64_t padded = 1;
  while (padded < 2 * n - 1) padded *= 2;
  plan_.n_columns = 1;
  plan_.n_rows = plan_.row_stride = n;
  plan_.n_padded = padded;
  make_passes(padded, kernel.wide_radices);
  std::vector<cf64> filter(padded);
  for (std::int64_t k = 0; k < n; ++k) {
    const cf64 w = math::unit_root(-(k * k % (2 * n)), 2 * n);
    push(chirp_, w);
    filter[k] = filter[(padded - k) % padded] = std::conj(w) / static_cast<double>(padded);
  }
  math::Fft(padded).forward(filter.data());
  for (const cf64 value : filter) push(chirp_filter_, value);
  plan_.chirp = chirp_.data();
  plan_.chirp_filter = chirp_filter_.data();
}

}  // namespace ryle::channelize::detail
