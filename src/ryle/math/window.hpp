// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

namespace ryle::math {

enum class WindowShape : std::uint8_t { rectangular, hann, hamming, blackman, kaiser };

/// Window w(x) on 0 <= x <= 1, 1 at x = 1/2, 0 outside.
/// @eq hann: sin^2(pi x); hamming: 0.54 - 0.46 cos(2 pi x); blackman: 0.42 - 0.5 cos(2 pi x) + 0.08
/// cos(4 pi x);
///     kaiser: I0(beta sqrt(1 - (2x-1)^2)) / I0(beta)
double window(WindowShape shape, double x, double kaiser_beta);

/// sin(pi x) / (pi x).
double sinc(double x);
/// Modified Bessel function of the first kind, order 0 (power series, |x| <= 700).
double bessel_i0(double x);

/// Prototype low-pass of a polyphase filter bank of n_points channels, L = n_taps n_points
/// coefficients.
/// @eq h[n] = w((n+1/2)/L) sinc((n-(L-1)/2)/K), scaled to sum h^2 = 1; n_taps = 1: h = 1/sqrt(K)
/// (conventions.md 3)
std::vector<double> prototype_filter(WindowShape shape, double kaiser_beta, std::int64_t n_points,
                                     std::int64_t n_taps);

/// Response of a filter at an offset of `offset` channels, normalised to 1 at offset 0.
/// @eq H(d) = |sum_n h[n] exp(-2 pi i d n / K)| / |sum_n h[n]|
double filter_response(const std::vector<double>& filter, std::int64_t n_points, double offset);

}  // namespace ryle::math
