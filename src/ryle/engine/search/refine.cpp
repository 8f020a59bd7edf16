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
constexpr double kScatteringIndex = 4;

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

  /// The same with a tail: p * exp(-t / tau) / tau with p constant within a sample, which keeps the
  /// mean delay tau exactly. It ends before column `end`.
  template <class Body>
  void walk_scattered(double tau, std::int64_t end, const Body& body) const {
    const double fall = -std::expm1(-1 / tau);
    const double here = 1 - tau * fall, next = tau * fall * fall;
    double tail = 0;
    walk([&](std::int64_t t, double p) {
      body(t, here * p + tail);
      tail += next * p - fall * tail;
    });
    const std::int64_t stop = std::min(end, last() + 1 + static_cast<std::int64_t>(6 * tau));
    for (std::int64_t t = last() + 1; t < stop; ++t, tail -= fall * tail) body(t, tail);
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
  std::vector<double> scattering;  // [used channel], of that at the highest

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
    p.scattering.push_back(std::pow(band.center_hz.back() / band.center_hz[c], kScatteringIndex));
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

/// Calls body(t, p) for the columns of the template in used channel k; false: it is not in the
/// data.
template <class Body>
bool walk_channel(const Plane& plane, const Pulse& pulse, std::size_t k, const Body& body) {
  const auto factor = static_cast<double>(plane.factor);
  const std::int64_t c = plane.channels[k];
  const double center = plane.column(pulse.tick) + plane.band.delay_samples(c, pulse.dm_pc_cm3);
  const Profile profile(center, std::max(pulse.fwhm_samples, kNarrowest) / kFwhmPerSigma / factor,
                        plane.band.smearing_samples(c, pulse.dm_pc_cm3));
  if (profile.first() < 0 || profile.last() >= plane.n) return false;
  if (pulse.scattering_samples > 0)
    profile.walk_scattered(pulse.scattering_samples * plane.scattering[k] / factor, plane.n, body);
  else
    profile.walk(body);
  return true;
}

Sums correlate(const Plane& plane, const Pulse& pulse) {
  Sums s;
  for (std::size_t k = 0; k < plane.channels.size(); ++k) {
    const float* x = plane.values.data() + static_cast<std::int64_t>(k) * plane.n;
    walk_channel(plane, pulse, k, [&](std::int64_t t, double p) {
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

/// The surface S^2 / 2 about its maximum, by arrival at the mean delay of the channels instead of
/// the top, which is nearly independent of the DM.
class Surface {
 public:
  Surface(const Plane& plane, const Parameters& top, double best, double turn)
      : plane_(plane), top_(top), turn_(turn), highest_(0.5 * best * best) {}

  /// How much lower it is there.
  double drop(const Parameters& d) const {
    const Parameters p{top_[0] + d[0], top_[1] + d[1] - turn_ * d[0], top_[2] + d[2]};
    const double s = std::max(0.0, snr_of(plane_, pulse_of(p)));
    return highest_ - 0.5 * s * s;
  }
  double drop(std::size_t a, double i, std::size_t b = 0, double j = 0) const {
    Parameters d{};
    d[a] += i;
    d[b] += j;
    return drop(d);
  }
  /// The step along an axis at which it falls by about 4, 2.8 sigma: where the profile has edges,
  /// as that of smearing, its curvature within a part of the error says nothing of the error.
  double step(std::size_t axis, double from, double longest) const {
    constexpr double kWanted = 4;
    double d = from;
    for (int tries = 0; tries < 10; ++tries) {
      const double fall = 0.5 * (drop(axis, d) + drop(axis, -d));
      if (fall > 0.7 * kWanted && fall < 1.4 * kWanted) break;
      const double longer = fall > 0 ? std::clamp(std::sqrt(kWanted / fall), 0.4, 2.5) : 2.5;
      if (d >= longest && longer > 1) break;
      d = std::min(longest, d * longer);
    }
    return d;
  }
  /// What an error along an axis is in those of a parabola with the same fall at `d`. A profile
  /// with sharp edges falls by c |x|: the place of the maximum of noise of variance 2 c |x| less c
  /// |x| has the rms 2.55 / c, a parabola that falls by 2 at d the error d / 2 = 1 / c.
  double sharpness(std::size_t axis, double d) const {
    const double all = drop(axis, d) + drop(axis, -d);
    const double half = drop(axis, 0.5 * d) + drop(axis, -0.5 * d);
    if (!(all > 0)) return 1;
    const double power = half > 0 ? std::clamp(std::log2(all / half), 1.0, 2.0) : 2;
    return std::pow(1.80, 2 - power);
  }
  /// Second derivatives of -S^2 / 2 from differences over these steps.
  std::array<Parameters, 3> curvature(const Parameters& d) const {
    std::array<Parameters, 3> h{};
    for (std::size_t a = 0; a < 3; ++a) {
      h[a][a] = (drop(a, d[a]) + drop(a, -d[a])) / (d[a] * d[a]);
      for (std::size_t b = 0; b < a; ++b)
        h[a][b] = h[b][a] = (drop(a, d[a], b, d[b]) - drop(a, d[a], b, -d[b]) -
                             drop(a, -d[a], b, d[b]) + drop(a, -d[a], b, -d[b])) /
                            (4 * d[a] * d[b]);
    }
    return h;
  }

 private:
  const Plane& plane_;
  Parameters top_;
  double turn_, highest_;
};

/// 1-sigma errors of DM, arrival at the top and ln FWHM from the inverse of `h` (symmetric 3 x 3 of
/// Surface); that of a width that is not told apart is 0. Zeros when nothing is.
Parameters errors_of(std::array<Parameters, 3> h, double turn) {
  const auto determinant_of = [&] {
    return h[0][0] * (h[1][1] * h[2][2] - h[1][2] * h[1][2]) -
           h[0][1] * (h[0][1] * h[2][2] - h[1][2] * h[0][2]) +
           h[0][2] * (h[0][1] * h[1][2] - h[1][1] * h[0][2]);
  };
  const double plane = h[0][0] * h[1][1] - h[0][1] * h[0][1];
  if (!(h[0][0] > 0 && h[1][1] > 0 && plane > 0)) return {0, 0, 0};
  // Half of the plane's: a width that the data do not tell is given, not guessed with the others.
  const bool has_width = h[2][2] > 0 && determinant_of() > 0.05 * plane * h[2][2];
  if (!has_width) h[0][2] = h[2][0] = h[1][2] = h[2][1] = 0, h[2][2] = 1;
  const double determinant = determinant_of();
  const double dm = (h[1][1] * h[2][2] - h[1][2] * h[1][2]) / determinant;
  const double middle = (h[0][0] * h[2][2] - h[0][2] * h[0][2]) / determinant;
  const double both = (h[0][2] * h[1][2] - h[0][1] * h[2][2]) / determinant;
  const double top = middle + turn * turn * dm - 2 * turn * both;
  if (!(dm > 0 && top > 0)) return {0, 0, 0};
  return {std::sqrt(dm), std::sqrt(top), has_width ? std::sqrt(plane / determinant) : 0};
}

struct Delays {
  double mean = 0, rms = 0;  // samples for 1 pc/cm3, of the channels that count
};

Delays delays_of(const Band& band, const Plane& plane) {
  double mean = 0, square = 0;
  for (const std::int64_t c : plane.channels) {
    const double delay_samples = band.delay_samples(c, 1);
    mean += delay_samples;
    square += delay_samples * delay_samples;
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, plane.channels.size()));
  mean /= n;
  return {mean, std::sqrt(std::max(0.0, square / n - mean * mean))};
}

/// The same of a Gaussian of this width, smeared, and S alone, for a maximum that is none in every
/// direction (beside another pulse): S^2 / 2 falls by 1/2 at sqrt(2) sigma / S in time, at sqrt(2)
/// / S in ln FWHM; DM counts by the rms of what it delays the channels by, and moves the arrival at
/// the top.
Parameters errors_alone(const Band& band, const Delays& delays, const Pulse& pulse, double snr) {
  if (!(snr > 0)) return {0, 0, 0};
  // A top hat of this length has the rms of a Gaussian of FWHM 0.68 of it.
  const double smear = 0.68 * band.smearing_samples(band.n_channels() / 2, pulse.dm_pc_cm3);
  const double sigma = std::hypot(std::max(pulse.fwhm_samples, kNarrowest), smear) / kFwhmPerSigma;
  const double tick = std::sqrt(2.0) * sigma / snr;
  const double dm = delays.rms > 0 ? tick / delays.rms : 0;
  return {dm, std::hypot(tick, dm * delays.mean), std::sqrt(2.0) / snr};
}

/// Climbs by steps that are halved `n_rounds` times. move(p, step, direction, sign) makes one of
/// `n_directions` steps. @return the value at the top
template <std::size_t N, class Value, class Move>
double climb(const Value& value, std::array<double, N>& at, std::array<double, N> step,
             std::size_t n_directions, int n_rounds, const Move& move) {
  double best = value(at);
  for (int round = 0; round < n_rounds; ++round) {
    bool moved = true;
    for (int tries = 0; moved && tries < 12; ++tries) {
      moved = false;
      for (std::size_t direction = 0; direction < n_directions; ++direction) {
        for (const double sign : {1.0, -1.0}) {
          auto p = at;
          move(p, step, direction, sign);
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
  return best;
}

/// A pulse with a tail by numbers that hardly depend on each other: the DM that the delays at
/// mid-band alone would give, arrival of the mean there, ln of the rms of pulse and tail there, and
/// the angle that parts it in pulse and tail.
/// @eq sigma = rms cos(angle), tau = rms sin(angle)
class Scattered {
 public:
  using Numbers = std::array<double, 4>;

  explicit Scattered(const Band& band) {
    const double middle_hz = band.center_hz[band.n_channels() / 2];
    delay_ = band.delay_samples(band.n_channels() / 2, 1);
    to_top_ = std::pow(middle_hz / band.center_hz.back(), kScatteringIndex);
    // The tail's mean changes across mid-band as tau nu^-4, delays as DM nu^-2.
    dm_per_tail_ = 0.5 * kScatteringIndex * band.sample_interval_s * middle_hz * middle_hz /
                   (band.k_dm * 1e12);
  }
  Numbers start(const Pulse& p, double angle_rad) const {
    return {p.dm_pc_cm3, p.tick + delay_ * p.dm_pc_cm3,
            std::log(std::max(p.fwhm_samples, kNarrowest) / kFwhmPerSigma), angle_rad};
  }
  Pulse pulse(const Numbers& q) const {
    const double rms = std::exp(q[2]), tau = rms * std::sin(q[3]), dm = q[0] - dm_per_tail_ * tau;
    return {dm, q[1] - delay_ * dm - tau, kFwhmPerSigma * rms * std::cos(q[3]), 0, to_top_ * tau};
  }
  /// Variances of DM, arrival at the top, FWHM and tau there from those of the numbers; for an
  /// index of 4.4 (Kolmogorov) in place of 4 the delays differ by a tenth of what tails do to them.
  Numbers errors(const Numbers& q, const std::array<Numbers, 4>& covariance) const {
    const double sigma = std::exp(q[2]) * std::cos(q[3]), tau = std::exp(q[2]) * std::sin(q[3]);
    const double s = dm_per_tail_;  // d sigma = -tau, d tau = sigma for a step of the angle
    const std::array<Numbers, 4> slopes{
        {{1, 0, -s * tau, -s * sigma},
         {-delay_, 1, (delay_ * s - 1) * tau, (delay_ * s - 1) * sigma},
         {0, 0, kFwhmPerSigma * sigma, -kFwhmPerSigma * tau},
         {0, 0, to_top_ * tau, to_top_ * sigma}}};
    Numbers out{};
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t b = 0; b < 4; ++b)
          out[k] += slopes[k][a] * covariance[a][b] * slopes[k][b];
      out[k] = std::sqrt(std::max(0.0, out[k]));
    }
    out[0] = std::hypot(out[0], 0.1 * s * tau);
    out[1] = std::hypot(out[1], 0.1 * s * tau * delay_);
    return out;
  }

 private:
  double delay_ = 0, to_top_ = 1, dm_per_tail_ = 0;
};

constexpr double kSteepest = 0.5 * kPi - 1e-3;  // angle: a tail without a pulse

/// What the data say of the numbers about `at`.
struct Information {
  std::array<Scattered::Numbers, 4> inverse_covariance{};  ///< the noise's, amplitude free
  Scattered::Numbers gradient{};                           ///< of S^2 / 2
};

/// @eq F_ab = S^2 (<d_a p, d_b p> - <p, d_a p> <p, d_b p> / <p, p>) / <p, p>
/// Steps of the derivatives become twice the errors that it gives without the other numbers: a tail
/// begins with an edge.
Information information(const Plane& plane, const Scattered& scattered,
                        const Scattered::Numbers& at, double snr, Scattered::Numbers& step) {
  step[3] = std::min({step[3], at[3], kSteepest - at[3] + 1e-3});
  std::array<Pulse, 9> pulses;
  for (std::size_t k = 0; k < 9; ++k) {
    auto q = at;
    if (k > 0) q[(k - 1) / 2] += (k % 2 == 1 ? 1 : -1) * step[(k - 1) / 2];
    pulses[k] = scattered.pulse(q);
  }
  std::array<std::array<double, 5>, 5> gram{};
  std::array<double, 5> product{};
  std::vector<std::array<double, 5>> rows(plane.n);
  for (std::size_t k = 0; k < plane.channels.size(); ++k) {
    const float* x = plane.values.data() + static_cast<std::int64_t>(k) * plane.n;
    std::int64_t first = plane.n, end = 0;
    bool whole = true;
    for (std::size_t j = 0; j < 9; ++j) {
      const std::size_t row = (j + 1) / 2;
      const double weight = j == 0 ? 1 : (j % 2 == 1 ? 0.5 : -0.5) / step[row - 1];
      whole &= walk_channel(plane, pulses[j], k, [&](std::int64_t t, double p) {
        rows[t][row] += weight * p;
        first = std::min(first, t);
        end = std::max(end, t + 1);
      });
    }
    for (std::int64_t t = first; t < end; ++t) {
      auto& row = rows[t];
      for (std::size_t a = 0; whole && a < 5; ++a) {
        product[a] += static_cast<double>(x[t]) * row[a];
        for (std::size_t b = 0; b <= a; ++b) gram[a][b] += row[a] * row[b];
      }
      row = {};
    }
  }
  Information out;
  const double square = gram[0][0];
  if (!(square > 0)) return out;
  for (std::size_t a = 0; a < 4; ++a) {
    const double along = gram[a + 1][0] / square;
    out.gradient[a] =
        snr * (product[a + 1] - product[0] * along) / (plane.sigma * std::sqrt(square));
    for (std::size_t b = 0; b <= a; ++b)
      out.inverse_covariance[a][b] = out.inverse_covariance[b][a] =
          snr * snr * (gram[a + 1][b + 1] / square - along * gram[b + 1][0] / square);
    // What the data do not tell of the rms and the angle lies within these.
    if (a > 1) out.inverse_covariance[a][a] += a == 2 ? 0.25 : 2;
    if (out.inverse_covariance[a][a] > 0)
      step[a] = std::min(4 * step[a], 2 / std::sqrt(out.inverse_covariance[a][a]));
  }
  return out;
}

/// Inverse of a symmetric matrix with a diagonal above 0, by Gauss and Jordan.
std::array<Scattered::Numbers, 4> inverse_of(std::array<Scattered::Numbers, 4> h) {
  std::array<Scattered::Numbers, 4> out{};
  for (std::size_t k = 0; k < 4; ++k) out[k][k] = 1;
  for (std::size_t k = 0; k < 4; ++k) {
    const double pivot = h[k][k];
    for (std::size_t j = 0; j < 4; ++j) h[k][j] /= pivot, out[k][j] /= pivot;
    for (std::size_t i = 0; i < 4; ++i) {
      if (i == k) continue;
      const double by = h[i][k];
      for (std::size_t j = 0; j < 4; ++j) h[i][j] -= by * h[k][j], out[i][j] -= by * out[k][j];
    }
  }
  return out;
}

/// Tries a tail on the best Gaussian: a pulse with a tail moves that in time by many of its errors,
/// and in DM. Where it is told from none (S^2 + 9, 3 sigma) `out` becomes it; where it gains less
/// errors hold what it would change.
void add_scattering(const Band& band, const Plane& plane, const Parameters& step,
                    RefinedPulse& out) {
  const Scattered scattered(band);
  const auto value = [&](const Scattered::Numbers& q) {
    if (q[3] < 0 || q[3] > kSteepest) return -1e30;
    const Pulse p = scattered.pulse(q);
    return p.dm_pc_cm3 < 0 ? -1e30 : snr_of(plane, p);
  };
  auto at = scattered.start(out, 0.6);
  const Scattered::Numbers by{step[0], step[1], step[2], 0.25};
  double best = climb(value, at, by, 4, 3,
                      [](Scattered::Numbers& q, const Scattered::Numbers& s, std::size_t axis,
                         double sign) { q[axis] += sign * s[axis]; });
  // Pulse and tail go along a ridge that axes climb badly: steps of Newton.
  Scattered::Numbers reach{0.1 * by[0], 0.1 * by[1], 0.05, 0.05};
  Information known;
  std::array<Scattered::Numbers, 4> covariance{};
  for (int round = 0; round < 8 && best > 0 && at[3] > 0; ++round) {
    if (round == 1 && best * best < out.snr * out.snr - 9) return;  // no tail
    known = information(plane, scattered, at, best, reach);
    for (std::size_t a = 0; a < 4; ++a)
      if (!(known.inverse_covariance[a][a] > 0)) return;
    covariance = inverse_of(known.inverse_covariance);
    double higher = best;
    for (double part = 1; part > 0.1 && !(higher > best); part *= 0.5) {
      auto there = at;
      for (std::size_t a = 0; a < 4; ++a)
        for (std::size_t b = 0; b < 4; ++b) there[a] += part * covariance[a][b] * known.gradient[b];
      there[3] = std::clamp(there[3], 0.0, kSteepest);
      higher = value(there);
      if (higher > best) at = there;
    }
    if (!(higher > best)) break;
    const bool converged = higher * higher - best * best < 0.1;
    best = higher;
    if (converged) break;
  }
  if (!(at[3] > 0)) return;
  const double gain = best > 0 ? best * best - out.snr * out.snr : 0;
  if (!(gain > 0)) return;
  const Pulse pulse = scattered.pulse(at);
  if (gain < 9) {
    out.dm_error = std::hypot(out.dm_error, pulse.dm_pc_cm3 - out.dm_pc_cm3);
    out.tick_error = std::hypot(out.tick_error, pulse.tick - out.tick);
    out.fwhm_error = std::hypot(out.fwhm_error, pulse.fwhm_samples - out.fwhm_samples);
    return;
  }
  const auto errors = scattered.errors(at, covariance);
  static_cast<Pulse&>(out) = pulse;
  out.snr = best;
  out.dm_error = errors[0];
  out.tick_error = errors[1];
  out.fwhm_error = errors[2];
  out.scattering_error = errors[3];
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
  const Parameters step{0.5 * width / sweep, 0.25 * width, 0.35};
  const auto value = [&](const Parameters& p) {
    if (p[0] < 0 || p[2] < std::log(kNarrowest)) return -1e30;
    return snr_of(plane, pulse_of(p));
  };
  // DM and arrival time are correlated: the last direction turns about the middle of the band.
  const std::int64_t middle = band.n_channels() / 2;
  const double turn = band.delay_samples(middle, 1);
  const double best =
      climb(value, at, step, 4, 7,
            [&](Parameters& p, const Parameters& by, std::size_t axis, double sign) {
              if (axis < 3) {
                p[axis] += sign * by[axis];
              } else {
                p[0] += sign * by[0];
                p[1] -= sign * by[0] * turn;
              }
            });
  RefinedPulse out;
  static_cast<Pulse&>(out) = pulse_of(at);
  out.snr = best;
  const Delays delays = delays_of(band, plane);
  const Surface surface(plane, at, best, delays.mean);
  const double rise = std::clamp(3 / std::max(best, 1.0), 0.05, 0.5);
  constexpr double kLongest = 1.2;  // in ln FWHM
  const Parameters d{surface.step(0, step[0] * rise, 64 * step[0]),
                     surface.step(1, step[1] * rise, 64 * step[1]),
                     surface.step(2, step[2] * rise, kLongest)};
  auto curvature = surface.curvature(d);
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const double sharper = surface.sharpness(axis, d[axis]);
    for (std::size_t k = 0; k < 3; ++k) {
      curvature[axis][k] /= sharper;
      curvature[k][axis] /= sharper;
    }
  }
  Parameters errors = errors_of(curvature, delays.mean);
  const bool is_top = errors[0] > 0;
  if (!is_top) errors = errors_alone(band, delays, out, best);
  out.dm_error = errors[0];
  out.tick_error = errors[1];
  out.fwhm_error = errors[2] * out.fwhm_samples;
  out.gaussian_fwhm_samples = out.fwhm_samples;
  // Beside another pulse a tail would be that.
  if (is_top) add_scattering(band, plane, step, out);
  const Sums s = correlate(plane, out);
  // Least squares amplitude of a template of unit area (samples of the file), in rms of the mean of
  // all channels.
  if (s.square > 0)
    out.amplitude =
        s.product / s.square / input.sigma * std::sqrt(static_cast<double>(plane.channels.size()));
  return out;
}

}  // namespace ryle::search
