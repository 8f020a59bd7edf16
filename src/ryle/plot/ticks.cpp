// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ryle::plot {
namespace {

struct Step {
  double value = 1;
  int n_minor = 1;  // parts between labelled ticks
};

Step step_for(double span, int maximum, bool degrees) {
  if (degrees && span > 60) {
    for (const Step step :
         {Step{15, 3}, Step{30, 3}, Step{45, 3}, Step{60, 4}, Step{90, 3}, Step{180, 4}}) {
      if (span / step.value <= maximum) return step;
    }
  }
  const double raw = span / maximum;
  const double decade = std::pow(10.0, std::floor(std::log10(raw) + 1e-9));
  for (const Step step : {Step{1, 5}, Step{2, 4}, Step{5, 5}}) {
    if (step.value * decade >= raw * (1 - 1e-9)) return {step.value * decade, step.n_minor};
  }
  return {10 * decade, 5};
}

std::string label_of(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  std::string label = text;
  if (label.find_first_not_of("-0.") == std::string::npos && label[0] == '-') label.erase(0, 1);
  if (label[0] == '-') label.replace(0, 1, "\u2212");
  return label;
}

}  // namespace

Ticks ticks_between(double from, double to, int maximum, bool degrees) {
  Ticks ticks;
  const double low = std::min(from, to), high = std::max(from, to);
  if (!std::isfinite(low) || !std::isfinite(high) || !(high > low) || maximum < 1) return ticks;
  const Step step = step_for(high - low, maximum, degrees);
  const double largest = std::max(std::abs(low), std::abs(high));
  const int magnitude = static_cast<int>(std::floor(std::log10(largest)));
  if (magnitude >= 5 || magnitude <= -4) ticks.exponent = magnitude;
  const double unit = std::pow(10.0, ticks.exponent);
  const int decimals =
      std::clamp(static_cast<int>(-std::floor(std::log10(step.value / unit) + 1e-9)), 0, 12);

  const double slack = 1e-6 * step.value;
  const double fine = step.value / step.n_minor;
  const double first = std::ceil((low - slack) / fine);
  for (double k = first; k * fine <= high + slack && k - first < 1000; ++k) {
    if (std::fmod(std::abs(k), step.n_minor) == 0) {
      ticks.values.push_back(k * fine);
      ticks.labels.push_back(label_of(k * fine / unit, decimals));
    } else {
      ticks.minor.push_back(k * fine);
    }
  }
  return ticks;
}

}  // namespace ryle::plot
