// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/runs.hpp"

#include <algorithm>
#include <cmath>

namespace ryle::image::detail {
namespace {

// Two positions this close in wavelengths are one: the phase moves by at most 3e-9 turns = 2e-8
// rad.
constexpr double kSame_wavelengths = 1e-9;

// A sample with the direction of its (u, v, w) as integers, so that the channels of one baseline
// sort together. The rounding may split a baseline in two now and then, which costs a little time
// and nothing else.
struct RunSample {
  std::int64_t direction[3];
  double length;
  const Sample* sample;
};

bool is_usable(const Sample& s) {
  return s.weight > 0 && std::isfinite(s.weight) && std::isfinite(s.visibility.real()) &&
         std::isfinite(s.visibility.imag()) && std::isfinite(s.u) && std::isfinite(s.v) &&
         std::isfinite(s.w);
}

RunSample entry_of(const Sample& s) {
  const double length = std::sqrt(s.u * s.u + s.v * s.v + s.w * s.w);
  const double unit = length > 0 ? 1e9 / length : 0;
  return {
      {std::llround(s.u * unit), std::llround(s.v * unit), std::llround(s.w * unit)}, length, &s};
}

bool before(const RunSample& a, const RunSample& b) {
  for (int k = 0; k < 3; ++k) {
    if (a.direction[k] != b.direction[k]) return a.direction[k] < b.direction[k];
  }
  return a.length < b.length;
}

struct Point {
  double u, v, w;
  cf64 value;  // sum of weight * visibility
};

bool is_near(double u, double v, double w, const Point& p) {
  return std::abs(u - p.u) <= kSame_wavelengths && std::abs(v - p.v) <= kSame_wavelengths &&
         std::abs(w - p.w) <= kSame_wavelengths;
}

std::vector<Point> merged_points(const std::vector<RunSample>& entries) {
  std::vector<Point> points;
  points.reserve(entries.size());
  for (const auto& entry : entries) {
    const Sample& s = *entry.sample;
    const cf64 value = s.weight * s.visibility;
    if (!points.empty() && is_near(s.u, s.v, s.w, points.back())) {
      points.back().value += value;
    } else {
      points.push_back({s.u, s.v, s.w, value});
    }
  }
  return points;
}

// Length of the progression that starts at points[begin].
std::int64_t run_length(const std::vector<Point>& points, std::int64_t begin) {
  const auto n = static_cast<std::int64_t>(points.size());
  if (begin + 2 >= n) return 1;
  const Point& a = points[begin];
  const Point& b = points[begin + 1];
  const double du = b.u - a.u, dv = b.v - a.v, dw = b.w - a.w;
  std::int64_t k = 2;
  while (k < kMaxRunLength && begin + k < n) {
    const auto step = static_cast<double>(k);
    if (!is_near(a.u + step * du, a.v + step * dv, a.w + step * dw, points[begin + k])) break;
    ++k;
  }
  return k >= 3
             ? k
             : 1;  // any two points are a progression; only from three on does the recurrence pay
}

}  // namespace

Plan plan_runs(const std::vector<Sample>& samples) {
  std::vector<RunSample> entries;
  entries.reserve(samples.size());
  double sum_of_weights = 0;
  for (const auto& s : samples) {
    if (!is_usable(s)) continue;
    entries.push_back(entry_of(s));
    sum_of_weights += s.weight;
  }
  Plan plan;
  if (entries.empty()) return plan;
  std::stable_sort(entries.begin(), entries.end(), before);
  const auto points = merged_points(entries);

  double largest = 0;
  for (const auto& p : points) {
    largest = std::max({largest, std::abs(p.value.real()), std::abs(p.value.imag())});
  }
  plan.scale = (largest > 0 ? largest : 1) / sum_of_weights;
  const double unit = largest > 0 ? 1 / largest : 0;
  plan.coefficients.reserve(2 * points.size());
  const auto n = static_cast<std::int64_t>(points.size());
  for (std::int64_t begin = 0; begin < n;) {
    const std::int64_t length = run_length(points, begin);
    const Point& a = points[begin];
    const Point& z = points[begin + length - 1];
    const double per_step = length > 1 ? 1 / static_cast<double>(length - 1) : 0;
    plan.runs.push_back({a.u, a.v, a.w, (z.u - a.u) * per_step, (z.v - a.v) * per_step,
                         (z.w - a.w) * per_step, begin, length});
    for (std::int64_t k = length - 1; k >= 0; --k) {
      plan.coefficients.push_back(static_cast<float>(points[begin + k].value.real() * unit));
      plan.coefficients.push_back(static_cast<float>(points[begin + k].value.imag() * unit));
    }
    begin += length;
  }
  return plan;
}

}  // namespace ryle::image::detail
