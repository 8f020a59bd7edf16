// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/picture_sky.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/product/picture_canvas.hpp"
#include "ryle/product/picture_png.hpp"
#include "ryle/product/picture_ticks.hpp"
#include "ryle/product/publish.hpp"

namespace ryle {
namespace {

using picture::Align;
using picture::Canvas;
using picture::Line;
using picture::Point;
using picture::Rgb;
using picture::TextStyle;

constexpr Rgb kNight{14, 17, 24};
constexpr Rgb kGround{22, 26, 35};
constexpr Rgb kSkyInk{226, 230, 238};
constexpr Rgb kSoftInk{150, 158, 172};
constexpr Rgb kLine{255, 255, 255};
constexpr Rgb kGalaxy{120, 190, 255};
constexpr Rgb kSunInk{255, 214, 90};

/// The plane a picture shows. @shape [y][x]
std::vector<float> plane_of(const SkyImage& image, const SkyPictureOptions& o) {
  const std::int64_t size = image.plane_size();
  const auto n_stokes = static_cast<std::int64_t>(image.stokes.size());
  if (image.n_pixels < 2 || !(image.cell_direction_cosine > 0) ||
      static_cast<std::int64_t>(image.pixels.size()) != n_stokes * image.n_channels * size) {
    throw ConfigError(fmt::format(
        "picture of the sky: {} values for {} x {} pixels of {}, {} channels, {} planes",
        image.pixels.size(), image.n_pixels, image.n_pixels, image.cell_direction_cosine,
        image.n_channels, n_stokes));
  }
  if (o.plane < 0 || o.plane >= n_stokes || o.channel < -1 || o.channel >= image.n_channels) {
    throw ConfigError(fmt::format(
        "picture of the sky: plane {} and channel {} of an image with {} planes and {} channels",
        o.plane, o.channel, n_stokes, image.n_channels));
  }
  const std::int64_t first = o.channel < 0 ? 0 : o.channel;
  const std::int64_t end = o.channel < 0 ? image.n_channels : o.channel + 1;
  std::vector<double> sum(static_cast<std::size_t>(size), 0.0);
  std::vector<int> count(static_cast<std::size_t>(size), 0);
  for (std::int64_t c = first; c < end; ++c) {
    const float* from = image.pixels.data() + (o.plane * image.n_channels + c) * size;
    for (std::size_t k = 0; k < sum.size(); ++k) {
      if (!std::isfinite(from[k])) continue;
      sum[k] += static_cast<double>(from[k]);
      ++count[k];
    }
  }
  std::vector<float> out(sum.size());
  for (std::size_t k = 0; k < sum.size(); ++k)
    out[k] = count[k] > 0 ? static_cast<float>(sum[k] / count[k]) : kNaN;
  return out;
}

bool is_signed(const SkyImage& image, const SkyPictureOptions& o) {
  const int code = image.stokes[static_cast<std::size_t>(o.plane)];
  return code != 1 && code != -5 && code != -6;
}

ColorScale scale_of(const std::vector<float>& plane, bool signed_values,
                    const SkyPictureOptions& o) {
  std::vector<float> finite;
  for (const float v : plane) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  ColorScale scale;
  if (o.color_max > o.color_min) {
    scale = {o.color_min, o.color_max, 1};
  } else if (!finite.empty()) {
    const auto at = [&](double fraction) {
      const auto k = static_cast<std::ptrdiff_t>(fraction * static_cast<double>(finite.size() - 1));
      std::nth_element(finite.begin(), finite.begin() + k, finite.end());
      return static_cast<double>(finite[static_cast<std::size_t>(k)]);
    };
    scale = {at(0.005), at(1.0), 1};
    if (signed_values) {
      scale.high = std::max(std::abs(at(0.002)), std::abs(at(0.998)));
      scale.low = -scale.high;
    }
    if (!(scale.high > scale.low))
      scale.high = scale.low + (scale.low != 0 ? std::abs(scale.low) : 1);
    // A source that outshines everything would leave the rest black on a linear scale.
    if (!signed_values && scale.high - scale.low > 8 * (at(0.9) - scale.low)) scale.gamma = 0.5;
  }
  if (o.color_gamma > 0) scale.gamma = o.color_gamma;
  return scale;
}

/// Catmull-Rom interpolation; where a neighbour is missing (horizon), a mean of those present.
class Sampler {
 public:
  Sampler(const std::vector<float>& plane, std::int64_t n) : plane_(plane), n_(n) {}
  double operator()(double x, double y) const {
    const auto x0 = static_cast<std::int64_t>(std::floor(x)) - 1,
               y0 = static_cast<std::int64_t>(std::floor(y)) - 1;
    const double fx = x - static_cast<double>(x0) - 1, fy = y - static_cast<double>(y0) - 1;
    if (x0 < 0 || y0 < 0 || x0 + 4 > n_ || y0 + 4 > n_) return nearby(x, y);
    double wx[4], wy[4];
    weights(fx, wx);
    weights(fy, wy);
    double sum = 0;
    for (int j = 0; j < 4; ++j) {
      const float* row = plane_.data() + (y0 + j) * n_ + x0;
      sum += wy[j] * (wx[0] * static_cast<double>(row[0]) + wx[1] * static_cast<double>(row[1]) +
                      wx[2] * static_cast<double>(row[2]) + wx[3] * static_cast<double>(row[3]));
    }
    return std::isfinite(sum) ? sum : nearby(x, y);
  }

 private:
  static void weights(double t, double* w) {
    w[0] = 0.5 * t * (t * (2 - t) - 1);
    w[1] = 0.5 * (t * t * (3 * t - 5) + 2);
    w[2] = 0.5 * t * (t * (4 - 3 * t) + 1);
    w[3] = 0.5 * t * t * (t - 1);
  }
  double nearby(double x, double y) const {
    const auto x0 = static_cast<std::int64_t>(std::floor(x)),
               y0 = static_cast<std::int64_t>(std::floor(y));
    double sum = 0, total = 0;
    for (std::int64_t j = std::max<std::int64_t>(0, y0 - 1); j < std::min(n_, y0 + 3); ++j) {
      for (std::int64_t i = std::max<std::int64_t>(0, x0 - 1); i < std::min(n_, x0 + 3); ++i) {
        const float v = plane_[static_cast<std::size_t>(j * n_ + i)];
        if (!std::isfinite(v)) continue;
        const double dx = x - static_cast<double>(i), dy = y - static_cast<double>(j);
        const double w = std::exp(-2 * (dx * dx + dy * dy));
        sum += w * static_cast<double>(v);
        total += w;
      }
    }
    return total > 0 ? sum / total : std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<float>& plane_;
  std::int64_t n_;
};

struct Rect {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Rect& o) const {
    return left < o.right && o.left < right && top < o.bottom && o.top < bottom;
  }
};

class SkyDrawing {
 public:
  SkyDrawing(const SkyImage& image, const Observation& observation, const SkyPictureOptions& o)
      : image_(image),
        observation_(observation),
        options_(o),
        plane_(plane_of(image, o)),
        scale_(scale_of(plane_, is_signed(image, o), o)),
        map_(is_signed(image, o) ? ColorMap::polar : ColorMap::inferno),
        unit_(static_cast<double>(o.disc_px) / 760),
        radius_(static_cast<double>(o.disc_px) / 2),
        center_{radius_ + 58 * unit_, radius_ + 118 * unit_},
        canvas_(even(static_cast<double>(o.disc_px) + 226 * unit_),
                even(static_cast<double>(o.disc_px) + 208 * unit_), kNight) {
    for (std::size_t k = 0; k < colors_.size(); ++k) {
      colors_[k] =
          picture::color_at(map_, static_cast<double>(k) / static_cast<double>(colors_.size() - 1));
    }
  }

  RgbPicture draw() {
    draw_disc();
    draw_grid();
    if (options_.galactic_plane) draw_galactic_plane();
    draw_horizon();
    draw_sources();
    draw_color_bar();
    draw_beam();
    draw_words();
    return {canvas_.width(), canvas_.height(), canvas_.rgb()};
  }

 private:
  static std::int64_t even(double v) { return 2 * (std::llround(v) / 2); }

  /// A direction (east, north, up) on the picture: as the image has it, slant included.
  Point at(const Vector3& s) const {
    const double l = s[0] - image_.plane_alpha * (1 - s[2]);
    const double m = s[1] - image_.plane_beta * (1 - s[2]);
#if RYLE_MUTANT == 189
    return {center_.x - s[0] * radius_, center_.y - s[1] * radius_};
#else
    return {center_.x - l * radius_, center_.y - m * radius_};
#endif
  }
  static Vector3 direction(double azimuth_rad, double elevation_rad) {
    return {std::sin(azimuth_rad) * std::cos(elevation_rad),
            std::cos(azimuth_rad) * std::cos(elevation_rad), std::sin(elevation_rad)};
  }
  TextStyle text(double height, Rgb color, Align align, bool bold = false,
                 bool halo = false) const {
    return {height * unit_, color, align, false, halo, bold};
  }
  Rgb color_of(double value) const {
    const double linear = std::clamp((value - scale_.low) / (scale_.high - scale_.low), 0.0, 1.0);
    const double position = scale_.gamma == 0.5 ? std::sqrt(linear)
                            : scale_.gamma == 1 ? linear
                                                : std::pow(linear, scale_.gamma);
    return colors_[static_cast<std::size_t>(position * static_cast<double>(colors_.size() - 1) +
                                            0.5)];
  }

  void draw_disc() {
    const Sampler sample(plane_, image_.n_pixels);
    const double half = static_cast<double>(image_.n_pixels / 2);
    const double per_px = 1 / (radius_ * image_.cell_direction_cosine);
    const double a = image_.plane_alpha, b = image_.plane_beta;
    const auto first = [](double v) { return static_cast<std::int64_t>(std::floor(v)); };
    for (std::int64_t y = first(center_.y - 1.1 * radius_); y < center_.y + 1.1 * radius_; ++y) {
      for (std::int64_t x = first(center_.x - 1.1 * radius_); x < center_.x + 1.1 * radius_; ++x) {
        const double dx = static_cast<double>(x) + 0.5 - center_.x,
                     dy = static_cast<double>(y) + 0.5 - center_.y;
        // The horizon is the circle |l', m'| about (-alpha, -beta).
        const double rx = dx - a * radius_, ry = dy - b * radius_, r2 = rx * rx + ry * ry;
        if (r2 > (radius_ + 1) * (radius_ + 1)) continue;
        const double v = sample(half + dx * per_px, half - dy * per_px);
        const Rgb color = std::isnan(v) ? kGround : color_of(v);
        if (r2 < (radius_ - 1) * (radius_ - 1)) {
          canvas_.set(x, y, color);
        } else {
          canvas_.mix(x, y, color, std::clamp(radius_ - std::sqrt(r2) + 0.5, 0.0, 1.0));
        }
      }
    }
  }

  void ring(double elevation_deg, double thickness, Rgb color, double opacity, int dash) {
    std::vector<Line> lines(1);
    for (int k = 0; k <= 720; ++k) {
      if (dash > 0 && (k / dash) % 2 == 1) {
        if (!lines.back().empty()) lines.emplace_back();
        continue;
      }
      lines.back().push_back(at(direction(k * 0.5 * kDegree_rad, elevation_deg * kDegree_rad)));
    }
    canvas_.stroke(lines, thickness * unit_, color, opacity);
  }

  void draw_grid() {
    for (const double elevation_deg : {30.0, 60.0}) ring(elevation_deg, 1, kLine, 0.30, 0);
    std::vector<Line> cross;
    for (const double azimuth_deg : {0.0, 90.0}) {
      Line line;
      for (int e = 0; e <= 180; e += 2)
        line.push_back(at(direction(azimuth_deg * kDegree_rad, e * kDegree_rad)));
      cross.push_back(line);
    }
    canvas_.stroke(cross, unit_, kLine, 0.16);
    for (const int elevation_deg : {30, 60}) {
      const Point p = at(direction(157 * kDegree_rad, elevation_deg * kDegree_rad));
      draw_text(canvas_, fmt::format("{}\u00b0", elevation_deg), {p.x + 4 * unit_, p.y - 4 * unit_},
                text(8.5, {215, 220, 228}, Align::left, false, true));
    }
  }

  void draw_galactic_plane() {  // latitude 0
    std::vector<SkyDirection> plane;
    for (int k = 0; k <= 720; ++k) plane.push_back(from_galactic(k * 0.5 * kDegree_rad, 0));
    const auto enu = enu_of_directions(observation_.array, plane, image_.centroid_tai_ns,
                                       observation_.earth_orientation);
    std::vector<Line> lines(1);
    for (std::size_t k = 0; k < enu.size(); ++k) {
      if (enu[k][2] < 0.0 || (k / 4) % 2 == 1) {
        if (!lines.back().empty()) lines.emplace_back();
        continue;
      }
      lines.back().push_back(at(enu[k]));
    }
    canvas_.stroke(lines, 1.3 * unit_, kGalaxy, 0.55);
  }

  Vector3 enu(const SkyDirection& d) const {
    return enu_of_direction(observation_.array, d, image_.centroid_tai_ns,
                            observation_.earth_orientation);
  }

  void draw_horizon() {
    ring(0, 2, {200, 206, 216}, 1, 0);
    std::vector<Line> ticks;
    for (int azimuth_deg = 0; azimuth_deg < 360; azimuth_deg += 10) {
      const Point p = at(direction(azimuth_deg * kDegree_rad, 0));
      const double outward = azimuth_deg % 90 == 0 ? 0 : azimuth_deg % 30 == 0 ? 8 : 5;
      const Point q = outward_from(p, outward * unit_);
      ticks.push_back({p, q});
      if (azimuth_deg % 30 != 0 || azimuth_deg % 90 == 0) continue;
      const Point word = outward_from(p, 22 * unit_);
      draw_text(canvas_, fmt::format("{}\u00b0", azimuth_deg), {word.x, word.y + 4 * unit_},
                text(8, kSoftInk, Align::center));
    }
    canvas_.stroke(ticks, 1.2 * unit_, {200, 206, 216}, 0.9);
    const char* const letters[] = {"N", "E", "S", "W"};
    for (int k = 0; k < 4; ++k) {
      const Point p = outward_from(at(direction(k * kPi / 2, 0)), 20 * unit_);
      draw_text(canvas_, letters[k], {p.x, p.y + 7 * unit_},
                text(14, kSkyInk, Align::center, true));
    }
  }
  Point outward_from(Point p, double distance) const {
    const double dx = p.x - center_.x, dy = p.y - center_.y, r = std::hypot(dx, dy);
    return {p.x + dx / r * distance, p.y + dy / r * distance};
  }

  struct Mark {
    std::string name;
    Point point;
  };

  std::vector<Mark> marks() const {
    std::vector<Mark> out;
    const auto put = [&](const std::string& name, const Vector3& s) {
      for (const Mark& known : out) {
        if (known.name == name) return;
      }
      if (s[2] > 0) out.push_back({name, at(s)});
    };
    for (const WatchTarget& target : options_.watch)
      put(target.name, enu(target.direction(image_.centroid_tai_ns, &observation_.array)));
    if (options_.sources) {
      for (const auto& target : visible_targets(observation_.array, image_.centroid_tai_ns, 0,
                                                observation_.earth_orientation))
        put(target.name, target.enu);
    }
    return out;
  }

  void draw_symbol(const Mark& mark) {
    const Point p = mark.point;
    const bool is_sun = mark.name == "Sun";
    const Rgb color = is_sun ? kSunInk : Rgb{255, 255, 255};
    const double r = 9.5 * unit_;
    canvas_.circle(p, r, 3.8 * unit_, {8, 8, 12}, 0.55);
    canvas_.circle(p, r, 1.5 * unit_, color);
    if (!is_sun) return;
    std::vector<Line> rays;
    for (int k = 0; k < 8; ++k) {
      const double a = k * kPi / 4;
      rays.push_back({{p.x + 12.5 * unit_ * std::cos(a), p.y + 12.5 * unit_ * std::sin(a)},
                      {p.x + 16.5 * unit_ * std::cos(a), p.y + 16.5 * unit_ * std::sin(a)}});
    }
    canvas_.stroke(rays, 4 * unit_, {8, 8, 12}, 0.5);
    canvas_.stroke(rays, 1.5 * unit_, color);
  }

  /// Names beside their circles, where they meet neither each other nor another circle.
  void draw_sources() {
    const auto all = marks();
    std::vector<Rect> taken;
    for (const Mark& mark : all) {
      const double r = (mark.name == "Sun" ? 18 : 12) * unit_;
      taken.push_back({mark.point.x - r, mark.point.y - r, mark.point.x + r, mark.point.y + r});
      draw_symbol(mark);
    }
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Point p = all[k].point;
      TextStyle style =
          text(10.5, all[k].name == "Sun" ? kSunInk : Rgb{255, 255, 255}, Align::left, false, true);
      const double w = picture::text_width(all[k].name, style), h = style.cap_height;
      const double gap = (all[k].name == "Sun" ? 21 : 15) * unit_;
      const Point places[] = {{p.x + gap, p.y + h / 2},
                              {p.x - gap - w, p.y + h / 2},
                              {p.x - w / 2, p.y - gap},
                              {p.x - w / 2, p.y + gap + h},
                              {p.x + gap * 0.8, p.y - gap * 0.6},
                              {p.x + gap * 0.8, p.y + gap * 0.6 + h},
                              {p.x - gap * 0.8 - w, p.y - gap * 0.6}};
      std::size_t best = 0;
      int fewest = std::numeric_limits<int>::max();
      Rect best_rect;
      for (std::size_t i = 0; i < std::size(places); ++i) {
        const Rect rect{places[i].x - 3, places[i].y - h - 3, places[i].x + w + 3, places[i].y + 4};
        int bad = 0;
        for (std::size_t other = 0; other < taken.size(); ++other) {
          if (other != k) bad += rect.meets(taken[other]) ? 2 : 0;
        }
        // Inside the horizon if it can be.
        for (const double x : {rect.left, rect.right})
          bad += std::hypot(x - center_.x, places[i].y - h / 2 - center_.y) > radius_ ? 1 : 0;
        if (bad < fewest) {
          fewest = bad;
          best = i;
          best_rect = rect;
        }
      }
      draw_text(canvas_, all[k].name, places[best], style);
      taken.push_back(best_rect);
    }
  }

  void draw_color_bar() {
    const double x = center_.x + radius_ + 62 * unit_, width = 15 * unit_;
    const double top = center_.y - 0.62 * radius_, bottom = center_.y + 0.62 * radius_;
    for (std::int64_t y = std::llround(top); y < std::llround(bottom); ++y) {
      const double position = (bottom - static_cast<double>(y) - 0.5) / (bottom - top);
      canvas_.fill(std::llround(x), y, std::llround(width), 1, picture::color_at(map_, position));
    }
    const double right = std::round(x) + std::round(width);
    canvas_.stroke({{{std::round(x), std::round(top)},
                     {right, std::round(top)},
                     {right, std::round(bottom)},
                     {std::round(x), std::round(bottom)},
                     {std::round(x), std::round(top)}}},
                   unit_, kSoftInk, 0.9);
    const auto ticks = picture::ticks_between(scale_.low, scale_.high, 7);
    double widest = 0, last_y = std::numeric_limits<double>::max();
    for (std::size_t k = 0; k < ticks.values.size(); ++k) {
      const double linear = (ticks.values[k] - scale_.low) / (scale_.high - scale_.low);
      const double y = bottom - std::pow(linear, scale_.gamma) * (bottom - top);
      if (last_y - y < 16 * unit_) continue;  // the square-root scale crowds its lower end
      last_y = y;
      canvas_.stroke({{{right, y}, {right + 5 * unit_, y}}}, unit_, kSoftInk);
      const TextStyle style = text(9, kSkyInk, Align::left);
      draw_text(canvas_, ticks.labels[k], {right + 9 * unit_, y + 4.5 * unit_}, style);
      widest = std::max(widest, picture::text_width(ticks.labels[k], style));
    }
    // Without a unit an image is in powers of one antenna: its inputs were equalized.
    std::string label = image_.unit.empty() ? "fraction of the power of an antenna"
                                            : "intensity (" + image_.unit + ")";
    if (scale_.gamma == 0.5) label += ", square-root scale";
    if (ticks.exponent != 0) label += fmt::format("  \u00d710^{}", ticks.exponent);
    TextStyle style = text(9.5, kSoftInk, Align::center);
    style.vertical = true;
    draw_text(canvas_, label, {right + 20 * unit_ + widest + style.cap_height, (top + bottom) / 2},
              style);
  }

  /// The synthesized beam at zenith, to scale, where the corner is free. For small angles the beam
  /// is |mean_a exp(2 pi i u_a.s)|^2 = exp(-(2 pi)^2 s^T C s), C the covariance of the positions in
  /// wavelengths: half power at 2 pi sqrt(s^T C s) = sqrt(ln 2).
  void draw_beam() {
    const auto [xx, xy, yy] = position_covariance();
    const double middle = (xx + yy) / 2, spread = std::hypot((xx - yy) / 2, xy);
    if (!(middle - spread > 1e-3)) return;  // a line of antennas, or one, has no beam to speak of
    const double small = std::sqrt(std::log(2.0) / (middle + spread)) / (2 * kPi);
    const double large = std::sqrt(std::log(2.0) / (middle - spread)) / (2 * kPi);
    if (large > 0.12) return;  // it would meet the disc
#if RYLE_MUTANT == 865
    const double axis_rad = 0.5 * std::atan2(-2 * xy, xx - yy);
#else
    const double axis_rad = 0.5 * std::atan2(2 * xy, xx - yy);  // of the small axis, from east
#endif
    const Point at{center_.x - 0.97 * radius_ + large * radius_,
                   center_.y + 0.97 * radius_ - large * radius_};
    Line ellipse;
    for (int k = 0; k <= 72; ++k) {
      const double a = k * kPi / 36;
      const double e =
          small * std::cos(a) * std::cos(axis_rad) - large * std::sin(a) * std::sin(axis_rad);
      const double n =
          small * std::cos(a) * std::sin(axis_rad) + large * std::sin(a) * std::cos(axis_rad);
      ellipse.push_back({at.x - e * radius_, at.y - n * radius_});
    }
    canvas_.stroke({ellipse}, 1.3 * unit_, kSkyInk);
    draw_text(canvas_,
              fmt::format("beam {:.2g}\u00b0 \u00d7 {:.2g}\u00b0", 2 * large / kDegree_rad,
                          2 * small / kDegree_rad),
              {at.x + (large * radius_ + 8 * unit_), at.y + 4 * unit_},
              text(8.5, kSoftInk, Align::left));
  }

  /// xx, xy, yy of the antennas in use, east and north, in wavelengths of the band's centre.
  std::array<double, 3> position_covariance() const {
    const auto& array = observation_.array;
    const double per_m = image_.frequency.band_center_hz() / kSpeedOfLight_m_per_s;
    std::vector<bool> used(array.antennas.size(), array.inputs.empty());
    for (const auto& input : array.inputs) {
      if (!input.bad) used[static_cast<std::size_t>(input.antenna)] = true;
    }
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (std::size_t a = 0; a < used.size(); ++a) {
      if (!used[a]) continue;
      const double e = array.antennas[a].enu_m[0] * per_m, m = array.antennas[a].enu_m[1] * per_m;
      n += 1;
      x += e;
      y += m;
      xx += e * e;
      xy += e * m;
      yy += m * m;
    }
    if (n < 3) return {0, 0, 0};
    x /= n;
    y /= n;
    return {xx / n - x * x, xy / n - x * y, yy / n - y * y};
  }

  /// Brightest pixel in units of the scatter, robust: 1.4826 x the median of the distances from it.
  std::string noise_line() const {
    std::vector<float> values;
    for (const float v : plane_) {
      if (std::isfinite(v)) values.push_back(v);
    }
    if (values.size() < 16) return "";
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    const double top = static_cast<double>(*std::max_element(values.begin(), values.end()));
    std::nth_element(values.begin(), middle, values.end());
    const float median = *middle;
    for (float& v : values) v = std::abs(v - median);
    std::nth_element(values.begin(), middle, values.end());
    const double sigma = 1.4826 * static_cast<double>(*middle);
    if (!(sigma > 0)) return "";
    std::string line = fmt::format("scatter \u03c3 = {:.2g}", sigma);
    if (!is_signed(image_, options_))
      line =
          fmt::format("brightest {:.3g} \u03c3,  ", (top - static_cast<double>(median)) / sigma) +
          line;
    return line;
  }

  std::string stokes_name() const {
    switch (image_.stokes[static_cast<std::size_t>(options_.plane)]) {
      case 1:
        return "Stokes I";
      case 2:
        return "Stokes Q";
      case 3:
        return "Stokes U";
      case 4:
        return "Stokes V";
      case -5:
        return "XX";
      case -6:
        return "YY";
      case kPlaneReXY:
        return "Re XY";
      case kPlaneImXY:
        return "Im XY";
      default:
        return "";
    }
  }

  static std::string seconds_text(double s) {
    if (s < 1e-3) return fmt::format("{:.4g} \u00b5s", s * 1e6);
    if (s < 1) return fmt::format("{:.4g} ms", s * 1e3);
    return fmt::format("{:.4g} s", s);
  }

  std::string facts_line() const {
    std::string when = utc_iso(image_.centroid_tai_ns, image_.exposure_s < 0.5 ? 3 : 1);
    if (const auto t = when.find('T'); t != std::string::npos) when[t] = ' ';
    std::string line = when + " UTC";
    const bool one = options_.channel >= 0;
    const FrequencyBin bin = frequency_bin(image_, std::max<std::int64_t>(options_.channel, 0));
    const FrequencyAxis& f = image_.frequency;
    const double center_hz = one ? bin.center_hz : f.band_center_hz();
    const double width_hz =
        one ? bin.width_hz : f.channel_width_hz * static_cast<double>(f.n_channels);
    line += fmt::format("  \u00b7  {:.6g} MHz", center_hz / 1e6);
    if (width_hz > 0)
      line += width_hz < 1e6 ? fmt::format(", {:.4g} kHz wide", width_hz / 1e3)
                             : fmt::format(", {:.4g} MHz wide", width_hz / 1e6);
    if (image_.exposure_s > 0) line += "  \u00b7  " + seconds_text(image_.exposure_s);
    const double loss = image_.facts.loss_ppm;
    if (loss == 0) line += "  \u00b7  nothing lost";
    if (loss > 0)
      line += loss < 1e3 ? fmt::format("  \u00b7  {:.3g} ppm lost", loss)
                         : fmt::format("  \u00b7  {:.3g} % lost", loss / 1e4);
    return line;
  }

  void draw_words() {
    const double left = 26 * unit_;
    std::string title = options_.title;
    if (title.empty()) title = observation_.array.name.empty() ? "Sky" : observation_.array.name;
    const TextStyle big = text(17, kSkyInk, Align::left, true);
    draw_text(canvas_, title, {left, 40 * unit_}, big);
    draw_text(canvas_, stokes_name(),
              {left + picture::text_width(title, big) + 16 * unit_, 40 * unit_},
              text(13, kSoftInk, Align::left));
    draw_text(canvas_, facts_line(), {left, 66 * unit_}, text(10.5, kSoftInk, Align::left));
    draw_text(canvas_, noise_line(), {static_cast<double>(canvas_.width()) - left, 40 * unit_},
              text(10.5, kSoftInk, Align::right));
    std::string foot = image_.facts.path;
    if (!image_.facts.implementation.empty()) foot = image_.facts.implementation;
    if (!image_.facts.function.empty()) foot += (foot.empty() ? "" : ", ") + image_.facts.function;
    const double bottom = static_cast<double>(canvas_.height()) - 18 * unit_;
    draw_text(canvas_, foot, {left, bottom}, text(8.5, kSoftInk, Align::left));
    draw_text(canvas_, fmt::format("Ryle {}", version()),
              {static_cast<double>(canvas_.width()) - left, bottom},
              text(8.5, kSoftInk, Align::right));
  }

  const SkyImage& image_;
  const Observation& observation_;
  const SkyPictureOptions& options_;
  std::vector<float> plane_;
  ColorScale scale_;
  ColorMap map_;
  double unit_;  ///< size of a "pixel" of the 760-pixel layout
  double radius_;
  Point center_;
  Canvas canvas_;
  std::array<Rgb, 1024> colors_;
};

}  // namespace

RgbPicture draw_sky(const SkyImage& image, const Observation& observation,
                    const SkyPictureOptions& options) {
  if (options.disc_px < 200 || options.disc_px > 4000)
    throw ConfigError(
        fmt::format("picture of the sky: {} pixels across; 200 to 4000 would do", options.disc_px));
  return SkyDrawing(image, observation, options).draw();
}

ColorScale color_scale(const SkyImage& image, const SkyPictureOptions& options) {
  return scale_of(plane_of(image, options), is_signed(image, options), options);
}

void write_sky_picture(const std::string& path, const SkyImage& image,
                       const Observation& observation, const SkyPictureOptions& options,
                       bool overwrite) {
  const RgbPicture drawn = draw_sky(image, observation, options);
  publish_bytes(path, picture::png_of(drawn.width, drawn.height, drawn.rgb), overwrite);
}

SkyPictureSequence::SkyPictureSequence(std::string stem, Observation observation,
                                       SkyPictureOptions options, bool hold_scale, bool overwrite)
    : stem_(std::move(stem)),
      observation_(std::move(observation)),
      options_(std::move(options)),
      hold_scale_(hold_scale),
      overwrite_(overwrite) {}

std::string SkyPictureSequence::append(const SkyImage& image) {
  if (hold_scale_ && n_frames_ == 0) {
    const ColorScale scale = color_scale(image, options_);
    options_.color_min = scale.low;
    options_.color_max = scale.high;
    options_.color_gamma = scale.gamma;
  }
  const std::string name = fmt::format("{}_{:06}.png", stem_, n_frames_ + 1);
  write_sky_picture(name, image, observation_, options_, overwrite_);
  ++n_frames_;
  return name;
}

}  // namespace ryle
