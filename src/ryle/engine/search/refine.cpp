// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/refine.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ryle/core/units.hpp"

namespace ryle::search {
namespace {

constexpr double kFwhmPerSigma = 2.3548200450309493;
constexpr double kReach = 4;        // sigmas of the template that are summed
constexpr double kNarrowest = 0.3;  // samples, FWHM

/// Integral of the Gaussian distribution function, @eq z Phi(z) + phi(z), between -7 and 7 from a
/// table: cubic Hermite, off by less than h^4 / 384 times the largest fourth derivative (0.55):
/// 1.4e-9. A template asks for it twice per sample edge.
class Ramp {
 public:
  Ramp() {
    for (std::size_t k = 0; k < points_.size(); ++k) {
      const double z = -kEnd + kStep * static_cast<double>(k);
      const double below = 0.5 * std::erfc(-z / std::sqrt(2.0));
      points_[k] = {z * below + std::exp(-0.5 * z * z) / std::sqrt(2 * kPi), kStep * below};
    }
  }
  double operator()(double z) const {
    if (z <= -kEnd) return 0;
    if (z >= kEnd) return z;
    const double at = (z + kEnd) / kStep;
    const auto k = static_cast<std::size_t>(at);
    const double u = at - static_cast<double>(k), v = 1 - u;
    const Point &a = points_[k], &b = points_[k + 1];
    return v * v * ((1 + 2 * u) * a.value + u * a.slope) +
           u * u * ((1 + 2 * v) * b.value - v * b.slope);
  }

 private:
  struct Point {
    double value = 0, slope = 0;  // slope per step
  };
  static constexpr double kEnd = 7, kStep = 1.0 / 32;
  std::array<Point, 14 * 32 + 2> points_{};
};

double ramp(double z) {
  static const Ramp table;
  return table(z);
}

/// Template of one channel: mean over a sample of a Gaussian convolved with a top hat.
class Profile {
 public:
  Profile(double center, double sigma, double smear)
      : center_(center), sigma_(sigma), smear_(std::max(smear, 0.02)) {
    half_ = kReach * sigma + 0.5 * smear_ + 0.5;
    // Wide against sample and smearing: moments add, and one exponential is enough.
    smooth_ = sigma > 2 * std::max(1.0, smear_);
    wide_ = std::sqrt(sigma * sigma + (smear_ * smear_ + 1) / 12);
  }
  std::int64_t first() const { return static_cast<std::int64_t>(std::floor(center_ - half_)); }
  std::int64_t last() const { return static_cast<std::int64_t>(std::ceil(center_ + half_)); }

  /// Calls body(t, p) for the samples of the template; sample t covers [t - 1/2, t + 1/2).
  template <class Body>
  void walk(const Body& body) const {
    if (smooth_) {
      // From a sample to the next a Gaussian changes by a factor, which changes by a constant one:
      // after 4 wide_ of 32 columns and more, two roundings a step make 1e-12.
      const double h = 1 / wide_, z = (static_cast<double>(first()) - center_) * h;
      double p = std::exp(-0.5 * z * z) * h / std::sqrt(2 * kPi);
      double ratio = std::exp(-h * (z + 0.5 * h));
      const double bend = std::exp(-h * h);
      for (std::int64_t t = first(); t <= last(); ++t) {
        body(t, p);
        p *= ratio;
        ratio *= bend;
      }
      return;
    }
    double below = edge(static_cast<double>(first()) - 0.5);
    for (std::int64_t t = first(); t <= last(); ++t) {
      const double above = edge(static_cast<double>(t) + 0.5);
      body(t, above - below);
      below = above;
    }
  }

 private:
  double edge(double x) const {  // part of the pulse before x
    return (ramp((x - center_ + 0.5 * smear_) / sigma_) -
            ramp((x - center_ - 0.5 * smear_) / sigma_)) *
           sigma_ / smear_;
  }
  double center_, sigma_, smear_, half_ = 0, wide_ = 0;
  bool smooth_ = false;
};

/// Codes less their mean, summed over `factor` samples where the pulse is wide: same signal, fewer
/// numbers.
struct Plane {
  Band band;  // with the coarser interval
  std::int64_t factor = 1;
  double first = 0;  // tick of the middle of column 0
  std::int64_t n = 0;
  double sigma = 1;
  std::vector<float> values;  // [used channel][n]
  std::vector<std::int64_t> channels;

  double column(double tick) const { return (tick - first) / static_cast<double>(factor); }
};

Plane plane_of(const Band& band, const RefineInput& in, double fwhm_samples) {
  Plane p;
  while (static_cast<double>(16 * p.factor) < fwhm_samples) p.factor *= 2;
  p.band = band;
  p.band.sample_interval_s *= static_cast<double>(p.factor);
  p.first = static_cast<double>(in.first_tick) + 0.5 * static_cast<double>(p.factor - 1);
  p.n = in.n_samples / p.factor;
  p.sigma = in.sigma * std::sqrt(static_cast<double>(p.factor));
  for (std::int64_t c = 0; c < band.n_channels(); ++c) {
    if (in.masked != nullptr && in.masked[c] != 0) continue;
    p.channels.push_back(c);
    const std::uint8_t* x = in.codes + c * in.stride;
    for (std::int64_t j = 0; j < p.n; ++j) {
      int sum = 0;
      for (std::int64_t k = 0; k < p.factor; ++k) sum += x[j * p.factor + k];
      p.values.push_back(static_cast<float>(sum - in.mean * static_cast<double>(p.factor)));
    }
  }
  return p;
}

struct Sums {
  double product = 0, square = 0;
};

Sums correlate(const Plane& plane, const Pulse& pulse) {
  Sums s;
  const double sigma =
      std::max(pulse.fwhm_samples, kNarrowest) / kFwhmPerSigma / static_cast<double>(plane.factor);
  for (std::size_t k = 0; k < plane.channels.size(); ++k) {
    const std::int64_t c = plane.channels[k];
    const double center = plane.column(pulse.tick) + plane.band.delay_samples(c, pulse.dm_pc_cm3);
    const Profile profile(center, sigma, plane.band.smearing_samples(c, pulse.dm_pc_cm3));
    if (profile.first() < 0 || profile.last() >= plane.n) continue;  // not in the data
    const float* x = plane.values.data() + static_cast<std::int64_t>(k) * plane.n;
    profile.walk([&](std::int64_t t, double p) {
      s.product += static_cast<double>(x[t]) * p;
      s.square += p * p;
    });
  }
  return s;
}

double snr_of(const Plane& plane, const Pulse& pulse) {
  const Sums s = correlate(plane, pulse);
  return s.square > 0 ? s.product / (plane.sigma * std::sqrt(s.square)) : 0;
}

using Parameters = std::array<double, 3>;  // DM, tick, ln FWHM

Pulse pulse_of(const Parameters& p) { return {p[0], p[1], std::exp(p[2]), 0}; }

/// 1-sigma errors = square roots of the diagonal of the inverse of `h` (symmetric 3 x 3); zeros
/// when it is not positive definite.
Parameters errors_of(const std::array<Parameters, 3>& h) {
  const double a = h[1][1] * h[2][2] - h[1][2] * h[1][2];
  const double b = h[0][0] * h[2][2] - h[0][2] * h[0][2];
  const double c = h[0][0] * h[1][1] - h[0][1] * h[0][1];
  const double determinant = h[0][0] * a - h[0][1] * (h[0][1] * h[2][2] - h[1][2] * h[0][2]) +
                             h[0][2] * (h[0][1] * h[1][2] - h[1][1] * h[0][2]);
  if (!(determinant > 0 && h[0][0] > 0 && c > 0)) return {0, 0, 0};
  const auto root = [&](double minor) { return minor > 0 ? std::sqrt(minor / determinant) : 0.0; };
  return {root(a), root(b), root(c)};
}

/// The same of a Gaussian of this width and S alone, for a maximum that is none in every direction
/// (beside another pulse): S^2 / 2 falls by 1/2 at sqrt(2) sigma / S in time, at sqrt(2) / S in ln
/// FWHM; DM counts by the rms of what it delays the channels by, and moves the arrival at the top.
Parameters errors_alone(const Band& band, const Plane& plane, const Pulse& pulse, double snr) {
  if (!(snr > 0)) return {0, 0, 0};
  double mean = 0, square = 0;
  for (const std::int64_t c : plane.channels) {
    const double delay_samples = band.delay_samples(c, 1);
    mean += delay_samples;
    square += delay_samples * delay_samples;
  }
  const auto n = static_cast<double>(plane.channels.size());
  mean /= n;
  const double rms = std::sqrt(std::max(0.0, square / n - mean * mean));
  const double sigma = std::max(pulse.fwhm_samples, kNarrowest) / kFwhmPerSigma;
  const double tick = std::sqrt(2.0) * sigma / snr;
  const double dm = rms > 0 ? tick / rms : 0;
  return {dm, std::hypot(tick, dm * mean), std::sqrt(2.0) / snr};
}

}  // namespace

double matched_snr(const Band& band, const RefineInput& input, const Pulse& pulse) {
  return snr_of(plane_of(band, input, 1), pulse);
}

RefinedPulse refine(const Band& band, const RefineInput& input, const Pulse& start) {
  const double width = std::max(start.fwhm_samples, 1.0);
  const Plane plane = plane_of(band, input, width);
  const double sweep = std::max(band.sweep_samples_per_dm(), 1e-9);
  Parameters at{start.dm_pc_cm3, start.tick, std::log(width)};
  Parameters step{0.5 * width / sweep, 0.25 * width, 0.35};
  const Parameters scale = step;
  const auto value = [&](const Parameters& p) {
    if (p[0] < 0 || p[2] < std::log(kNarrowest)) return -1e30;
    return snr_of(plane, pulse_of(p));
  };
  double best = value(at);
  // DM and arrival time are correlated: the second direction turns about the middle of the band.
  const std::int64_t middle = band.n_channels() / 2;
  const double turn = band.delay_samples(middle, 1);
  for (int round = 0; round < 7; ++round) {
    bool moved = true;
    for (int tries = 0; moved && tries < 12; ++tries) {
      moved = false;
      for (int axis = 0; axis < 4; ++axis) {
        for (const double sign : {1.0, -1.0}) {
          Parameters p = at;
          if (axis < 3)
            p[static_cast<std::size_t>(axis)] += sign * step[static_cast<std::size_t>(axis)];
          if (axis == 3) {
            p[0] += sign * step[0];
            p[1] -= sign * step[0] * turn;
          }
          const double there = value(p);
          if (there <= best) continue;
          best = there;
          at = p;
          moved = true;
          break;
        }
      }
    }
    for (auto& s : step) s *= 0.5;
  }
  RefinedPulse out;
  static_cast<Pulse&>(out) = pulse_of(at);
  out.snr = best;
  // Second differences of S^2 / 2 over steps that change S visibly.
  std::array<Parameters, 3> h{};
  Parameters d;
  for (std::size_t k = 0; k < 3; ++k)
    d[k] = scale[k] * std::clamp(3 / std::max(best, 1.0), 0.05, 0.5);
  const auto half_square = [&](double i, std::size_t a, double j, std::size_t b) {
    Parameters p = at;
    p[a] += i * d[a];
    p[b] += j * d[b];
    const double s = std::max(0.0, snr_of(plane, pulse_of(p)));
    return 0.5 * s * s;
  };
  for (std::size_t a = 0; a < 3; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      const double second =
          a == b
              ? (half_square(1, a, 0, a) + half_square(-1, a, 0, a) - best * best) / (d[a] * d[a])
              : (half_square(1, a, 1, b) - half_square(1, a, -1, b) - half_square(-1, a, 1, b) +
                 half_square(-1, a, -1, b)) /
                    (4 * d[a] * d[b]);
      h[a][b] = h[b][a] = -second;
    }
  }
  Parameters errors = errors_of(h);
#if RYLE_MUTANT != 1672
  if (errors[0] == 0) errors = errors_alone(band, plane, out, best);
#endif
  out.dm_error = errors[0];
  out.tick_error = errors[1];
  out.fwhm_error = errors[2] * out.fwhm_samples;
  const Sums s = correlate(plane, out);
  // Least squares amplitude of a template of unit area (samples of the file), in rms of the mean of
  // all channels.
  if (s.square > 0)
    out.amplitude =
        s.product / s.square / input.sigma * std::sqrt(static_cast<double>(plane.channels.size()));
  return out;
}

}  // namespace ryle::search
