// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_beam.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "ryle/core/units.hpp"

namespace ryle::pipeline {
namespace {

/// A beam sampled at its critical spacing is this many spacings wide.
constexpr double kSpacingsPerBeam = 2.4;

struct Dish {
  const char* name;  ///< letters and digits of TELESCOP, upper case
  double illuminated_m;
};
constexpr std::array kDishes{Dish{"FAST", 300},     Dish{"GBT", 100},        Dish{"NRAOGBT", 100},
                             Dish{"PARKES", 64},    Dish{"ATPKSMB", 64},     Dish{"ATPARKES", 64},
                             Dish{"MURRIYANG", 64}, Dish{"EFFELSBERG", 100}, Dish{"EFLSBERG", 100},
                             Dish{"ARECIBO", 250},  Dish{"LOVELL", 76},      Dish{"SRT", 64},
                             Dish{"MEDICINA", 32},  Dish{"MED", 32},         Dish{"NOTO", 32},
                             Dish{"TMRT", 65},      Dish{"TIANMA", 65}};

/// Samples by longitude and latitude about the middle of their field, which poles are far from.
class SampledField {
 public:
  explicit SampledField(const grid::Positions& samples) {
    turn(samples);
    const double middle = std::cos(std::clamp(0.5 * (low_[1] + high_[1]), -1.5, 1.5));
    width_rad_ = (high_[0] - low_[0]) * middle;
    height_rad_ = high_[1] - low_[1];
  }
  std::int64_t size() const { return std::ssize(latitude_rad_); }
  double min_extent_rad() const { return std::min(width_rad_, height_rad_); }

  /// Solid angle of the cells hit, of some thousand over the extent.
  double area() {
    constexpr double kAcross = 64;
    const double side = std::max(width_rad_, height_rad_) / kAcross;
    mark(side);
    return side * side * static_cast<double>(std::count(hit_.begin(), hit_.end(), true));
  }

  /// Cells of the field at this side, hit or not.
  double n_cells(double side_rad) const {
    return (width_rad_ / side_rad + 2) * (height_rad_ / side_rad + 2);
  }

  /// Neighbours of hit cells are hit, but for few gaps between hit ones, in both directions.
  bool is_filled(double side_rad) {
    constexpr double kMaxGapShare = 0.05;
    // A line of cells has one neighbour for each, a plane two.
    constexpr double kMinNeighbours = 1.25;
    mark(side_rad);
    const Neighbours along = along_rows(), across = across_rows();
    const double pairs = along.pairs + across.pairs;
    return pairs > kMinNeighbours * hits_ &&
           along.gaps <= kMaxGapShare * (along.gaps + along.pairs) &&
           across.gaps <= kMaxGapShare * (across.gaps + across.pairs);
  }

 private:
  struct Neighbours {
    double pairs = 0, gaps = 0;
  };
  /// Of rows or columns: what is further away is another field.
  static constexpr std::int64_t kWidestGap = 64;

  void turn(const grid::Positions& p) {
    std::array<double, 3> sum{};
    std::int64_t n = 0;
    for (std::size_t i = 0; i < p.x.size(); ++i) {
      if (std::isnan(p.x[i])) continue;
      sum = {sum[0] + p.x[i], sum[1] + p.y[i], sum[2] + p.z[i]};
      ++n;
    }
    const double length = std::hypot(sum[0], sum[1], sum[2]);
    const bool has_middle = length > 0.05 * static_cast<double>(n);  // not the whole sky
    const double lon = has_middle ? std::atan2(sum[1], sum[0]) : 0,
                 lat = has_middle ? std::asin(sum[2] / length) : 0;
    longitude_rad_.reserve(n);
    latitude_rad_.reserve(n);
    for (std::size_t i = 0; i < p.x.size(); ++i) {
      if (std::isnan(p.x[i])) continue;
      const double level = std::cos(lon) * p.x[i] + std::sin(lon) * p.y[i];
      const std::array<double, 2> at{
          std::atan2(std::cos(lon) * p.y[i] - std::sin(lon) * p.x[i],
                     std::cos(lat) * level + std::sin(lat) * p.z[i]),
          std::asin(std::clamp(std::cos(lat) * p.z[i] - std::sin(lat) * level, -1.0, 1.0))};
      longitude_rad_.push_back(at[0]);
      latitude_rad_.push_back(at[1]);
      for (std::size_t a = 0; a < 2; ++a) {
        low_[a] = std::min(low_[a], at[a]);
        high_[a] = std::max(high_[a], at[a]);
      }
    }
  }

  // Rows of one height; in each, cells as wide as they are high.
  void mark(double side_rad) {
    const auto n_rows = static_cast<std::size_t>((high_[1] - low_[1]) / side_rad) + 1;
    per_rad_.assign(n_rows, 0);
    begin_.assign(n_rows + 1, 0);
    for (std::size_t r = 0; r < n_rows; ++r) {
      const double lat = low_[1] + (static_cast<double>(r) + 0.5) * side_rad;
      per_rad_[r] = std::max(std::cos(lat), 1e-9) / side_rad;
      begin_[r + 1] = begin_[r] + static_cast<std::int64_t>((high_[0] - low_[0]) * per_rad_[r]) + 1;
    }
    hit_.assign(begin_[n_rows], false);
    for (std::size_t k = 0; k < latitude_rad_.size(); ++k) {
      const auto r =
          std::min(static_cast<std::size_t>((latitude_rad_[k] - low_[1]) / side_rad), n_rows - 1);
      hit_[cell(r, longitude_rad_[k])] = true;
    }
  }
  std::int64_t cell(std::size_t row, double longitude_rad) const {
    return begin_[row] +
           std::min(static_cast<std::int64_t>((longitude_rad - low_[0]) * per_rad_[row]),
                    begin_[row + 1] - begin_[row] - 1);
  }

  Neighbours along_rows() {
    Neighbours n;
    hits_ = 0;
    for (std::size_t r = 0; r + 1 < begin_.size(); ++r) {
      std::int64_t last = -1;
      for (std::int64_t c = begin_[r]; c < begin_[r + 1]; ++c) {
        if (!hit_[c]) continue;
        ++hits_;
        if (last >= 0 && c == last + 1)
          ++n.pairs;
        else if (last >= 0 && c - last <= kWidestGap)
          ++n.gaps;
        last = c;
      }
    }
    return n;
  }

  Neighbours across_rows() const {
    Neighbours n;
    const auto n_rows = static_cast<std::int64_t>(per_rad_.size());
    for (std::int64_t r = 0; r + 1 < n_rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      for (std::int64_t c = begin_[row]; c < begin_[row + 1]; ++c) {
        if (!hit_[c]) continue;
        const double lon = low_[0] + (static_cast<double>(c - begin_[row]) + 0.5) / per_rad_[row];
        std::int64_t next = r + 1;
        const std::int64_t end = std::min(n_rows, r + kWidestGap + 1);
        while (next < end && !hit_[cell(static_cast<std::size_t>(next), lon)]) ++next;
        if (next == r + 1)
          ++n.pairs;
        else if (next < end)
          ++n.gaps;
      }
    }
    return n;
  }

  std::vector<double> longitude_rad_, latitude_rad_;
  std::array<double, 2> low_{1e9, 1e9}, high_{-1e9, -1e9};
  double width_rad_ = 0, height_rad_ = 0, hits_ = 0;
  std::vector<double> per_rad_;      ///< cells of each row
  std::vector<std::int64_t> begin_;  ///< of each row in hit_
  std::vector<bool> hit_;
};

}  // namespace

BeamFound beam_of_telescope(const std::string& telescope, const FrequencyAxis& frequency) {
  std::string name;
  for (const char c : telescope)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      name += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  const double middle_hz = frequency.channel_width_hz > 0 ? frequency.band_center_hz() : 0;
  for (const Dish& dish : kDishes)
    if (name == dish.name && middle_hz > 0)
      return {1.22 * kSpeedOfLight_m_per_s / middle_hz / dish.illuminated_m,
              fmt::format("1.22 wavelengths at {:.1f} MHz over the {:.0f} m of {}",
                          middle_hz * 1e-6, dish.illuminated_m, telescope)};
  return {};
}

BeamFound beam_of_spacing(const grid::Positions& samples) {
  const double side_rad = sampling_interval(samples);
  return {kSpacingsPerBeam * side_rad,
          fmt::format("{} times the spacing of the samples, {:.3g} arcmin", kSpacingsPerBeam,
                      side_rad / kDegree_rad * 60)};
}

double sampling_interval(const grid::Positions& samples) {
  constexpr double kStep = 1.25, kFineStep = 1.05;
  constexpr std::int64_t kFewest = 9;
  SampledField field(samples);
  const double maximum = field.min_extent_rad();
  if (field.size() < kFewest || !(maximum > 0)) return 0;
  const auto n = static_cast<double>(field.size());
  double side = 0.5 * std::sqrt(field.area() / n);
  const double max_cells = std::max(64 * n, 4e6);  // bits: 8 bytes a sample
  while (field.n_cells(side) > max_cells) side *= kStep;
  while (side < maximum && !field.is_filled(side)) side *= kStep;
  if (!(side < kStep * maximum)) return 0;
  for (double fine = side / kStep * kFineStep; fine < side; fine *= kFineStep)
    if (field.is_filled(fine)) return fine;
  return field.is_filled(std::min(side, maximum)) ? std::min(side, maximum) : 0;
}

}  // namespace ryle::pipeline
