// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/van_vleck.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ryle/core/baseline.hpp"

namespace ryle::correlate::detail {
namespace {

using std::numbers::pi;

constexpr std::int64_t kMaxTerms = 128;  // n up to 255
constexpr double kFarthestThreshold =
    12.5;                              // phi(a) |He_n(a)|/sqrt(n!) <= exp(-a^2/4) < 1.1e-17 beyond
constexpr double kSeriesLimit = 0.95;  // 0.95^257 257^-1.5 / (1 - 0.95^2) < 5e-9 of the 1-bit power
constexpr double kSqrtHalf = 0.70710678118654752440;

bool is_odd(const Quantizer& q) { return q.n_levels % 2 == 1; }
double step(const Quantizer& q) { return is_odd(q) ? 1.0 : 2.0; }
double largest_code(const Quantizer& q) {
  return 0.5 * step(q) * static_cast<double>(q.n_levels - 1);
}

// Thresholds > 0 in code units: odd 1/2, 3/2, ..; even 2, 4, .. (and one at 0).
double positive_threshold(const Quantizer& q, std::int64_t k) {
  return is_odd(q) ? static_cast<double>(k) + 0.5 : 2.0 * static_cast<double>(k + 1);
}
std::int64_t n_positive_thresholds(const Quantizer& q) { return (q.n_levels - 1) / 2; }

// A code more below makes the quantiser asymmetric. Of c(x) = odd + even part the odd one steps by
// half at the last threshold; the even one is -1/2 beyond it, and adds at most P(beyond)^2 / 4 to a
// product of two inputs: below 1e-5 for 2.5 rms of four bits. To the power it adds exactly what
// the steps below do.
double outer_threshold(const Quantizer& q) {
  return positive_threshold(q, n_positive_thresholds(q));
}
constexpr double kOuterWeight = 0.5;

double phi(double a) { return std::exp(-0.5 * a * a) / std::sqrt(2 * pi); }

// Power and its derivative d/ds. Crossing threshold t raises c^2 by step * 2t (odd: k^2 - (k-1)^2 =
// 2k - 1 = 2t).
std::pair<double, double> power_and_slope(const Quantizer& q, double rms) {
  double power = is_odd(q) ? 0.0 : 1.0;
  double slope = 0;
  for (std::int64_t k = 0; k < n_positive_thresholds(q); ++k) {
    const double t = positive_threshold(q, k);
    const double a = t / rms;
    if (a > 39) break;  // erfc underflows
    power += 2 * t * step(q) * std::erfc(a * kSqrtHalf);
    slope += 2 * t * step(q) * 2 * phi(a) * a / rms;
  }
  if (q.twos_complement) {
    const double t = outer_threshold(q);
    const double a = t / rms;
    power += kOuterWeight * 2 * t * step(q) * std::erfc(a * kSqrtHalf);
    slope += kOuterWeight * 2 * t * step(q) * 2 * phi(a) * a / rms;
  }
  return {power, slope};
}

struct Series {
  std::span<const double> k_1;
  std::span<const double> k_2;
  // Value and derivative at r.
  std::pair<double, double> at(double r) const {
    const double square = r * r;
    double value = 0;
    double slope = 0;
    for (std::size_t m = k_1.size(); m-- > 0;) {
      const double d = k_1[m] * k_2[m];
      value = value * square + d;
      slope = slope * square + d * static_cast<double>(2 * m + 1);
    }
    return {value * r, slope};
  }
};

// dE/dr at r = sin(u), times cos(u): Price's double sum over all thresholds, which stays finite as
// r -> 1.
double price_sum(const Quantizer& q, double rms_1, double rms_2, double u) {
  const double x = std::sin(u);
  const double rest = std::cos(u) * std::cos(u);
  double sum = 0;
  const std::int64_t n = q.n_levels - 1;
  const std::int64_t outer = q.twos_complement ? 1 : 0;
  const auto threshold = [&](std::int64_t k) {
    return step(q) * (static_cast<double>(k) - 0.5 * static_cast<double>(n - 1));
  };
  const auto weight = [&](std::int64_t k) { return k < 0 || k >= n ? kOuterWeight : 1.0; };
  for (std::int64_t k = -outer; k < n + outer; ++k) {
    const double a = threshold(k) / rms_1;
    for (std::int64_t m = -outer; m < n + outer; ++m) {
      const double b = threshold(m) / rms_2;
      sum += weight(k) * weight(m) * std::exp(-((a - x * b) * (a - x * b) / rest + b * b) * 0.5);
    }
  }
  return sum * step(q) * step(q) / (2 * pi);
}

// E from the series at kSeriesLimit plus Price's integral from there, 16 panels of 4-point
// Gauss-Legendre in u.
double product_near_one(const Quantizer& q, double rms_1, double rms_2, const Series& series,
                        double r) {
  constexpr double kNode[2] = {0.33998104358485626480, 0.86113631159405257522};
  constexpr double kWeight[2] = {0.65214515486254614263, 0.34785484513745385737};
  const double begin = std::asin(kSeriesLimit);
  const double half = (std::asin(r) - begin) / 32;
  double sum = 0;
  for (int panel = 0; panel < 16; ++panel) {
    const double middle = begin + half * (2 * panel + 1);
    for (int k = 0; k < 2; ++k) {
      sum += kWeight[k] * (price_sum(q, rms_1, rms_2, middle - half * kNode[k]) +
                           price_sum(q, rms_1, rms_2, middle + half * kNode[k]));
    }
  }
  return series.at(kSeriesLimit).first + half * sum;
}

}  // namespace

double quantized_power(const Quantizer& quantizer, double rms) {
  return power_and_slope(quantizer, rms).first;
}

double rms_of_power(const Quantizer& quantizer, double power) {
  if (quantizer.n_levels == 2) return power > 0 ? 1.0 : 0.0;
  const double top = largest_code(quantizer);
  double low = is_odd(quantizer) ? 0.02 : 0.2;
  double high = 20 * top;
  if (!(power > quantized_power(quantizer, low)) || !(power < quantized_power(quantizer, high)))
    return 0;
  double rms = std::clamp(
      std::sqrt(std::max(power - step(quantizer) * step(quantizer) / 12, low * low)), low, high);
  for (int iteration = 0; iteration < 100; ++iteration) {
    const auto [value, slope] = power_and_slope(quantizer, rms);
    (value < power ? low : high) = rms;
    double next = rms - (value - power) / slope;
    if (!(next > low && next < high)) next = std::sqrt(low * high);
    if (std::abs(next - rms) <= 1e-14 * rms) return next;
    rms = next;
  }
  return rms;
}

void hermite_coefficients(const Quantizer& quantizer, double rms, std::span<double> coefficients) {
  std::fill(coefficients.begin(), coefficients.end(), 0.0);
  const auto add = [&](double a, double times) {
    const double weight = times * step(quantizer) * phi(a);
    double previous = 0;
    double now = 1;  // He_m(a)/sqrt(m!), m = 0
    const std::size_t last = 2 * coefficients.size() - 1;
    for (std::size_t n = 1; n <= last; ++n) {  // here now = He_{n-1}/sqrt((n-1)!)
      if (n % 2 == 1) coefficients[n / 2] += weight * now / std::sqrt(static_cast<double>(n));
      const double next = (a * now - std::sqrt(static_cast<double>(n - 1)) * previous) /
                          std::sqrt(static_cast<double>(n));
      previous = now;
      now = next;
    }
  };
  if (!is_odd(quantizer)) add(0.0, 1.0);
  for (std::int64_t k = 0; k < n_positive_thresholds(quantizer); ++k) {
    const double a = positive_threshold(quantizer, k) / rms;
    if (a > kFarthestThreshold) break;
    add(a, 2.0);  // +-a: He of even order is even
  }
  if (quantizer.twos_complement) {
    const double a = outer_threshold(quantizer) / rms;
    if (a <= kFarthestThreshold) add(a, 2 * kOuterWeight);
  }
}

double correlation_of_product(const Quantizer& quantizer, double rms_1, double rms_2,
                              std::span<const double> k_1, std::span<const double> k_2,
                              double product) {
  if (quantizer.n_levels == 2)
    return std::sin(0.5 * pi * std::clamp(product, -1.0, 1.0));  // Van Vleck 1966
  const Series series{k_1, k_2};
  const double target = std::abs(product);
  const bool near_one =
      k_1.size() == kMaxTerms && quantizer.n_levels <= 16 && target > series.at(kSeriesLimit).first;
  double low = near_one ? kSeriesLimit : 0;
  double high = 1;
  double r = near_one ? 0.97 : std::min(target / series.at(0).second, 1.0);
  for (int iteration = 0; iteration < 60; ++iteration) {
    double value;
    double slope;
    if (near_one) {
      value = product_near_one(quantizer, rms_1, rms_2, series, r);
      slope =
          price_sum(quantizer, rms_1, rms_2, std::asin(r)) / std::sqrt(std::max(1 - r * r, 1e-30));
    } else {
      std::tie(value, slope) = series.at(r);
    }
    (value < target ? low : high) = r;
    double next = r - (value - target) / slope;
    if (!(next >= low && next <= high)) next = 0.5 * (low + high);
    if (std::abs(next - r) <= 1e-13) {
      r = next;
      break;
    }
    r = next;
  }
  return std::copysign(r, product);
}

VanVleck::VanVleck(const Quantizer& quantizer, std::int64_t n_inputs)
    : quantizer_(quantizer), n_inputs_(n_inputs), rms_(n_inputs) {
  coefficients_.reserve(n_inputs * kMaxTerms);
}

// Neither clipped (6.2 rms to the last threshold: 6e-10) nor coarse (exp(-2 pi^2 1.2^2) = 5e-13):
// E[c_1 c_2] = s_1 s_2 r.
bool VanVleck::is_linear(double rms) const {
  return is_odd(quantizer_) && rms >= 1.2 && largest_code(quantizer_) - 0.5 >= 6.2 * rms;
}

// The measured ratio may lie below the corrected one by the gain and the quantisation noise of the
// autos: the square root is beyond both.
double VanVleck::largest_correlation(std::span<const cf64> triangle) const {
  double largest = 0.1;
  for (std::int64_t j = 0; j < n_inputs_; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      const cf64 v = triangle[pair_index(i, j)];
      const double power =
          std::sqrt(triangle[pair_index(i, i)].real() * triangle[pair_index(j, j)].real());
      if (power > 0)
        largest = std::max({largest, std::abs(v.real()) / power, std::abs(v.imag()) / power});
    }
  }
  return largest;
}

// Odd terms until r^n < 1e-13 for the largest correlation of this channel.
std::int64_t VanVleck::terms_for(double largest) const {
  const double r = std::sqrt(std::min(largest, 1.0));
  if (r > 0.9) return kMaxTerms;
  return std::min<std::int64_t>(
      kMaxTerms, static_cast<std::int64_t>(std::ceil(0.5 * std::log(1e-13) / std::log(r))) + 1);
}

// sum over n of k_n^2 is the power of the codes, so what no coefficient shows is known too.
void VanVleck::note_shares(std::int64_t terms) {
  cubic_ = fifth_ = rest_ = 0;
  for (std::int64_t i = 0; i < n_inputs_; ++i) {
    if (!(rms_[i] > 0)) continue;
    const double* k = coefficients_.data() + i * terms;
    const double linear = k[0] * k[0];
    const double others = quantized_power(quantizer_, rms_[i]) - linear - k[1] * k[1] - k[2] * k[2];
    cubic_ = std::max(cubic_, k[1] * k[1] / linear);
    fifth_ = std::max(fifth_, k[2] * k[2] / linear);
    rest_ = std::max(rest_, others / linear);
  }
}

// Nearly all pairs of a sky are weak: one division where the higher orders, |k_n(i) k_n(j)| r^n at
// most the largest of both inputs', stay below 1e-5 of the first.
double VanVleck::correlation(std::int64_t i, std::int64_t j, std::int64_t terms,
                             double product) const {
  constexpr double kSmallShare = 1e-5;
  if (quantizer_.n_levels == 2)
    return correlation_of_product(quantizer_, rms_[i], rms_[j], {}, {}, product);
  const std::span<const double> k_i(coefficients_.data() + i * terms, terms);
  const std::span<const double> k_j(coefficients_.data() + j * terms, terms);
  const double r = product / (k_i[0] * k_j[0]);
  const double square = r * r;
  if (square * (cubic_ + square * (fifth_ + square * rest_)) < kSmallShare) return r;
  return correlation_of_product(quantizer_, rms_[i], rms_[j], k_i, k_j, product);
}

void VanVleck::correct(std::span<cf64> triangle) {
  if (quantizer_
          .dithered) {  // the dither made the products linear and added 1/6 per part to the powers
    for (std::int64_t i = 0; i < n_inputs_; ++i) {
      cf64& power = triangle[pair_index(i, i)];
      if (power.real() > 0) power -= step(quantizer_) * step(quantizer_) / 3;
    }
    return;
  }
  bool linear = true;
  for (std::int64_t i = 0; i < n_inputs_; ++i) {
    const double power = 0.5 * triangle[pair_index(i, i)].real();
    const double plain = std::sqrt(std::max(power - 1.0 / 12, 0.0));
    rms_[i] = is_linear(plain) ? plain : rms_of_power(quantizer_, power);
    linear = linear && is_linear(rms_[i]);
  }
  const std::int64_t terms = linear ? 0 : terms_for(largest_correlation(triangle));
  if (!linear && quantizer_.n_levels > 2) {
    coefficients_.resize(n_inputs_ * terms);
    for (std::int64_t i = 0; i < n_inputs_; ++i) {
      const std::span<double> k(coefficients_.data() + i * terms, terms);
      if (rms_[i] > 0) hermite_coefficients(quantizer_, rms_[i], k);
    }
    note_shares(terms);
  }
  for (std::int64_t j = 0; j < n_inputs_; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      cf64& v = triangle[pair_index(i, j)];
      const double scale = rms_[i] * rms_[j];
      if (scale == 0) continue;  // no power to correct by: left as it is
      if (i == j) {
        v = 2 * scale;
        continue;
      }
      if (linear || (is_linear(rms_[i]) && is_linear(rms_[j]))) continue;
      v = 2 * scale *
          cf64{correlation(i, j, terms, 0.5 * v.real()), correlation(i, j, terms, 0.5 * v.imag())};
    }
  }
}

}  // namespace ryle::correlate::detail
