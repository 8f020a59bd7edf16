// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/healpix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"

namespace ryle::healpix {
namespace {

using Vec = std::array<double, 3>;

/// Rings are counted from 1 at the north pole to 4 nside - 1. The southern corner of base pixel f
/// is in ring row(f) nside, its longitude column(f) pi / 4.
constexpr int row(int face) { return face / 4 + 2; }
constexpr int column(int face) { return 2 * (face % 4) + (face / 4 == 1 ? 0 : 1); }

// Bits of the low half, spread to the even places, and back.
std::uint64_t spread(std::uint64_t v) {
  v &= 0xffffffffU;
  v = (v | v << 16) & 0x0000ffff0000ffffU;
  v = (v | v << 8) & 0x00ff00ff00ff00ffU;
  v = (v | v << 4) & 0x0f0f0f0f0f0f0f0fU;
  v = (v | v << 2) & 0x3333333333333333U;
  return (v | v << 1) & 0x5555555555555555U;
}
std::uint64_t gather(std::uint64_t v) {
  v &= 0x5555555555555555U;
  v = (v | v >> 1) & 0x3333333333333333U;
  v = (v | v >> 2) & 0x0f0f0f0f0f0f0f0fU;
  v = (v | v >> 4) & 0x00ff00ff00ff00ffU;
  v = (v | v >> 8) & 0x0000ffff0000ffffU;
  return (v | v >> 16) & 0x00000000ffffffffU;
}

/// A ring: how many pixels a quarter of it has, how many lie before it, and whether its first one
/// is centered on longitude 0 (shift 1) or half a pixel beyond.
struct Ring {
  std::int64_t quarter = 0, before = 0, shift = 0;
};
Ring ring_at(int order, std::int64_t ring) {
  const std::int64_t nside = std::int64_t{1} << order;
  if (ring < nside) return {ring, 2 * ring * (ring - 1), 0};
  if (ring > 3 * nside) {
    const std::int64_t left = 4 * nside - ring;
    return {left, n_pixels(order) - 2 * left * (left + 1), 0};
  }
  return {nside, 2 * nside * (nside - 1) + (ring - nside) * 4 * nside,
          (ring - nside) % 2 == 0 ? 0 : 1};
}

std::int64_t ring_number(int order, const FacePixel& at) {
  return (std::int64_t{row(at.face)} << order) - at.x - at.y - 1;
}

double squared_chord(const Vec& c, double x, double y, double z) {
  const double dx = x - c[0], dy = y - c[1], dz = z - c[2];
  return dx * dx + dy * dy + dz * dz;
}
/// Squared chord of an angle; more than any when the angle is half a turn or wider.
double squared_chord(double angle_rad) {
  if (angle_rad <= 0) return -1;
  if (angle_rad >= kPi) return 5;
  const double chord = 2 * std::sin(0.5 * angle_rad);
  return chord * chord;
}

/// Samples that lie together: in one pixel of a coarse order.
struct Bin {
  Vec center{};
  std::vector<std::int64_t>::const_iterator first, last;  ///< of their numbers
};

/// Walks down the tree of pixels. A node no bin can reach is dropped, one wholly within reach of
/// any sample of a bin is taken whole; between them its quarters are looked at with the bins near
/// it. Single pixels at the border are decided by the samples themselves.
class CoverSearch {
 public:
  CoverSearch(int order, double reach_rad, std::int64_t n, const double* x, const double* y,
              const double* z)
      : order_(order), x_(x), y_(y), z_(z) {
    // A few bins across the reach: samples on it are looked at one by one.
    int bin_order = 0;
    while (bin_order < kMaxOrder && largest_radius_rad(bin_order) > 0.6 * reach_rad) ++bin_order;
    collect(bin_order, n);
    const double bin = largest_radius_rad(bin_order);
    for (int k = 0; k <= order; ++k) {
      // Of a single pixel the center counts.
      const double around = bin + (k == order ? 0 : largest_radius_rad(k));
      // The margins make both decisions safe against rounding; samples decide in the end.
      far_.push_back(squared_chord((reach_rad + around) * (1 + 1e-9)));
      whole_.push_back(squared_chord(reach_rad - around * (1 + 1e-9)));
    }
    reach_ = squared_chord(reach_rad);
  }

  std::vector<Range> search() {
    std::vector<const Bin*> all;
    for (const Bin& b : bins_) all.push_back(&b);
    for (int face = 0; face < 12; ++face) node(0, face, all);
    return std::move(ranges_);
  }

 private:
  void collect(int bin_order, std::int64_t n) {
    std::vector<std::int64_t> pixel;
    for (std::int64_t k = 0; k < n; ++k) {
      if (std::isnan(x_[k])) continue;
      samples_.push_back(k);
      pixel.push_back(nest_of(bin_order, x_[k], y_[k], z_[k]));
    }
    // Runs of a scan in one bin are sorted as one.
    struct Run {
      std::int64_t pixel = 0;
      std::size_t first = 0, last = 0;
    };
    std::vector<Run> runs;
    for (std::size_t i = 0; i < pixel.size(); ++i) {
      if (runs.empty() || runs.back().pixel != pixel[i]) runs.push_back({pixel[i], i, i});
      runs.back().last = i + 1;
    }
    std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return a.pixel != b.pixel ? a.pixel < b.pixel : a.first < b.first;
    });
    std::vector<std::int64_t> sorted;
    sorted.reserve(samples_.size());
    std::vector<std::size_t> starts;
    std::vector<std::int64_t> pixels;
    for (const Run& r : runs) {
      if (pixels.empty() || pixels.back() != r.pixel) {
        pixels.push_back(r.pixel);
        starts.push_back(sorted.size());
      }
      for (std::size_t i = r.first; i < r.last; ++i) sorted.push_back(samples_[i]);
    }
    starts.push_back(sorted.size());
    samples_ = std::move(sorted);
    for (std::size_t b = 0; b < pixels.size(); ++b)
      bins_.push_back({center_of_nest(bin_order, pixels[b]),
                       samples_.cbegin() + static_cast<std::ptrdiff_t>(starts[b]),
                       samples_.cbegin() + static_cast<std::ptrdiff_t>(starts[b + 1])});
  }

  void node(int order, std::int64_t pixel, const std::vector<const Bin*>& bins) {
    const Vec center = center_of_nest(order, pixel);
    const auto k = static_cast<std::size_t>(order);
    std::vector<const Bin*> near;
    for (const Bin* b : bins) {
      const double d = squared_chord(center, b->center[0], b->center[1], b->center[2]);
      if (d < whole_[k]) return take(order, pixel);
      if (d < far_[k]) near.push_back(b);
    }
    if (near.empty()) return;
    if (order < order_) {
      for (int q = 0; q < 4; ++q) node(order + 1, 4 * pixel + q, near);
    } else if (within_reach(center, near)) {
      take(order, pixel);
    }
  }
  bool within_reach(const Vec& center, const std::vector<const Bin*>& bins) const {
    for (const Bin* b : bins)
      for (auto s = b->first; s != b->last; ++s)
        if (squared_chord(center, x_[*s], y_[*s], z_[*s]) < reach_) return true;
    return false;
  }

  void take(int order, std::int64_t pixel) {
    const int down = 2 * (order_ - order);
    const Range r{pixel << down, (pixel + 1) << down};
    if (!ranges_.empty() && ranges_.back().last == r.first)
      ranges_.back().last = r.last;
    else
      ranges_.push_back(r);
  }

  int order_;
  const double *x_, *y_, *z_;
  std::vector<std::int64_t> samples_;
  std::vector<Bin> bins_;
  std::vector<double> far_, whole_;  ///< squared chords, by order
  double reach_ = 0;
  std::vector<Range> ranges_;
};

}  // namespace

int order_of(std::int64_t nside) {
  if (nside < 1 || nside > std::int64_t{1} << kMaxOrder ||
      !std::has_single_bit(static_cast<std::uint64_t>(nside)))
    throw ConfigError("HEALPix nside " + std::to_string(nside) +
                      " is no power of two from 1 to 536870912");
  return std::countr_zero(static_cast<std::uint64_t>(nside));
}

FacePixel face_of_nest(int order, std::int64_t pixel) {
  const auto p = static_cast<std::uint64_t>(pixel) & ((std::uint64_t{1} << (2 * order)) - 1);
  return {static_cast<std::int64_t>(gather(p)), static_cast<std::int64_t>(gather(p >> 1)),
          static_cast<int>(pixel >> (2 * order))};
}

std::int64_t nest_of_face(int order, const FacePixel& at) {
  return (std::int64_t{at.face} << (2 * order)) +
         static_cast<std::int64_t>(spread(static_cast<std::uint64_t>(at.x)) |
                                   spread(static_cast<std::uint64_t>(at.y)) << 1);
}

std::int64_t ring_of_face(int order, const FacePixel& at) {
  const Ring ring = ring_at(order, ring_number(order, at));
  // Longitude in halves of a pixel: that of pixel j is 2 j + 1 - shift.
  std::int64_t half = column(at.face) * ring.quarter + at.x - at.y;
  if (half < 0) half += 8 * ring.quarter;
  return ring.before + half / 2;
}

std::int64_t ring_of_nest(int order, std::int64_t pixel) {
  return ring_of_face(order, face_of_nest(order, pixel));
}

// Gorski et al. 2005, section 5.2: in the plane of the projection pixels are squares on their tips,
// counted along the two diagonals.
std::int64_t nest_of(int order, double x, double y, double z) {
  const std::int64_t nside = std::int64_t{1} << order;
  const auto n = static_cast<double>(nside);
  const double across = std::hypot(x, y), radius = std::hypot(across, z), height = z / radius;
  double turn = std::atan2(y, x) * (2 / kPi);  // quarters of a turn, [0, 4)
  if (turn < 0) turn += 4;
  if (turn >= 4) turn = 0;
  FacePixel at;
  if (std::abs(height) <= 2.0 / 3) {
    const double along = n * (0.5 + turn), up = n * (0.75 * height);
    const auto falling = static_cast<std::int64_t>(along - up),  // lines from north-west
        rising = static_cast<std::int64_t>(along + up);          // ... from south-west
    const std::int64_t f = falling >> order, r = rising >> order;
    at.face = static_cast<int>(f == r ? 4 + f % 4 : f < r ? f : r + 8);
    at.x = rising & (nside - 1);
    at.y = nside - 1 - (falling & (nside - 1));
  } else {
    const auto quarter = std::min<std::int64_t>(3, static_cast<std::int64_t>(turn));
    const double within = turn - static_cast<double>(quarter);
    // sqrt(3 (1 - |z|)) from the distance to the axis: exact at the poles.
    const double ring = n * (across / radius) * std::sqrt(3 / (1 + std::abs(height)));
    const auto far = std::min(nside - 1, static_cast<std::int64_t>(within * ring));
    const auto near = std::min(nside - 1, static_cast<std::int64_t>((1 - within) * ring));
    at.face = static_cast<int>(z > 0 ? quarter : quarter + 8);
    at.x = z > 0 ? nside - 1 - near : far;
    at.y = z > 0 ? nside - 1 - far : near;
  }
  return nest_of_face(order, at);
}

std::array<double, 3> center_of_nest(int order, std::int64_t pixel) {
  const FacePixel at = face_of_nest(order, pixel);
  const std::int64_t nside = std::int64_t{1} << order, number = ring_number(order, at);
  const Ring ring = ring_at(order, number);
  double height = 0, across = 0;
  if (ring.quarter < nside) {
    const double ratio = static_cast<double>(ring.quarter) / static_cast<double>(nside);
    const double below = ratio * ratio / 3;  // 1 - |z|
    across = std::sqrt(below * (2 - below));
    height = number < nside ? 1 - below : below - 1;
  } else {
    height = static_cast<double>(2 * nside - number) / (1.5 * static_cast<double>(nside));
    across = std::sqrt((1 - height) * (1 + height));
  }
  const double longitude = 0.25 * kPi *
                           static_cast<double>(column(at.face) * ring.quarter + at.x - at.y) /
                           static_cast<double>(ring.quarter);
  return {across * std::cos(longitude), across * std::sin(longitude), height};
}

// The pixel that reaches farthest lies at the border of a polar cap, |z| = 2/3; its tip toward the
// pole is in the ring before (nside 1: the pole).
double largest_radius_rad(int order) {
  const double n = std::ldexp(1.0, order), longitude = 0.25 * kPi / n;
  const double z = 2.0 / 3, r = std::sqrt(1 - z * z);
  const double inner = (1 - 1 / n) * (1 - 1 / n) / 3, tip = 1 - inner;
  const double tip_r = std::sqrt(inner * (2 - inner));
  const Vec center{r * std::cos(longitude), r * std::sin(longitude), z};
  return 2 * std::asin(0.5 * std::sqrt(squared_chord(center, tip_r, 0, tip)));
}

std::vector<Range> covered(int order, double reach_rad, std::int64_t n, const double* x,
                           const double* y, const double* z) {
  return CoverSearch(order, reach_rad, n, x, y, z).search();
}

}  // namespace ryle::healpix
