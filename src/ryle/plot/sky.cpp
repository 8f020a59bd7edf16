// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/plot/sky.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/plot/canvas.hpp"
#include "ryle/plot/graticule.hpp"
#include "ryle/plot/sampler.hpp"
#include "ryle/plot/sky_parts.hpp"

namespace ryle {
namespace {

using plot::Align;
using plot::Canvas;
using plot::Line;
using plot::Point;
using plot::Rgb;
using plot::SkyMark;
using plot::TextStyle;

using plot::kCaption;
using plot::kFrame;
using plot::kInk;
using plot::kNoData;
using plot::kPaper;

constexpr Rgb kLine{255, 255, 255};
constexpr Rgb kGalaxy{120, 190, 255};
constexpr Rgb kSunInk{255, 214, 90};

struct Rect {
  double left = 0, top = 0, right = 0, bottom = 0;
  bool meets(const Rect& o) const {
    return left < o.right && o.left < right && top < o.bottom && o.top < bottom;
  }
};

class SkyDrawing {
 public:
  SkyDrawing(const SkyImage& image, const Observation& observation, const SkyPictureOptions& o,
             plot::Format format)
      : image_(image),
        observation_(observation),
        options_(o),
        plane_(plot::plane_of(image, o)),
        axes_(image_axes(image, observation)),
        unit_(static_cast<double>(o.disc_px) / 760),
        bar_(plot::color_bar_of(image, o, plane_, unit_)),
        radius_(static_cast<double>(o.disc_px) / 2),
        center_{radius_ + 58 * unit_, radius_ + 118 * unit_},
        canvas_(even(static_cast<double>(o.disc_px) + 226 * unit_),
                even(static_cast<double>(o.disc_px) + 208 * unit_), kPaper, format) {
    for (std::size_t k = 0; k < colors_.size(); ++k) {
      colors_[k] = plot::color_at(bar_.map,
                                  static_cast<double>(k) / static_cast<double>(colors_.size() - 1));
    }
  }

  Canvas draw() {
    marks_ = plot::marks_of(image_, observation_, options_);
    for (const SkyMark& mark : marks_) {
      const double r = (mark.name == "Sun" ? 18 : 12) * unit_;
      const Point p = at(mark.enu);
      taken_.push_back({p.x - r, p.y - r, p.x + r, p.y + r});
    }
    draw_disc();
    draw_graticule();
    if (options_.galactic_plane) draw_galactic_plane();
    draw_horizon();
    draw_sources();
    bar_.draw(canvas_, {center_.x + radius_ + 62 * unit_, center_.y - 0.62 * radius_},
              1.24 * radius_);
    draw_beam();
    draw_words();
    return std::move(canvas_);
  }

 private:
  static std::int64_t even(double v) { return 2 * (std::llround(v) / 2); }
  static double dot(const Vector3& a, const Vector3& b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  }

  /// The horizon is the edge of the picture.
  bool at_zenith() const { return axes_[2][2] > 0.99999; }
  /// The zenith of an image is that of an instant of its data: its horizon is drawn whole.
  bool in_front(const Vector3& enu) const {
    return dot(axes_[2], enu) >= (at_zenith() ? -0.005 : -1e-9);
  }
  /// A direction (east, north, up) on the picture: as the image has it, slant included.
  Point at(const Vector3& enu) const {
    const Vector3 s{dot(axes_[0], enu), dot(axes_[1], enu), dot(axes_[2], enu)};
    const double l = s[0] - image_.plane_alpha * (1 - s[2]);
    const double m = s[1] - image_.plane_beta * (1 - s[2]);
    return {center_.x - l * radius_, center_.y - m * radius_};
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
    const double linear = std::clamp((value - bar_.low) / (bar_.high - bar_.low), 0.0, 1.0);
    const double position = bar_.gamma == 0.5 ? std::sqrt(linear)
                            : bar_.gamma == 1 ? linear
                                              : std::pow(linear, bar_.gamma);
    return colors_[std::lround(position * static_cast<double>(colors_.size() - 1))];
  }

  void draw_disc() {
    const plot::Sampler sample(plane_, image_.n_pixels);
    const double half = static_cast<double>(image_.n_pixels / 2);
    const double per_px = 1 / (radius_ * image_.cell_direction_cosine);
    const bool ground = !at_zenith();
    // The edge is the circle |l', m'| about (-alpha, -beta).
    const Point middle{center_.x + image_.plane_alpha * radius_,
                       center_.y + image_.plane_beta * radius_};
    const Point corner{std::floor(middle.x - radius_), std::floor(middle.y - radius_)};
    const auto scale = static_cast<double>(canvas_.image_scale());
    const auto size_px = static_cast<std::int64_t>(std::ceil(2 * radius_ + 1) * scale);
    plot::Image disc{size_px, size_px, {}};
    for (std::int64_t y = 0; y < size_px; ++y) {
      for (std::int64_t x = 0; x < size_px; ++x) {
        const Point p{corner.x + (static_cast<double>(x) + 0.5) / scale,
                      corner.y + (static_cast<double>(y) + 0.5) / scale};
        const double v =
            sample(half + (p.x - center_.x) * per_px, half - (p.y - center_.y) * per_px);
        Rgb color = std::isnan(v) ? kNoData : color_of(v);
        // No sky is there: what an image shows below the horizon is paler.
        if (ground && is_below((middle.x - p.x) / radius_, (middle.y - p.y) / radius_)) {
          const auto paler = [](std::uint8_t c, std::uint8_t paper) {
            return static_cast<std::uint8_t>((c + 2 * paper) / 3);
          };
          color = {paler(color.r, kNoData.r), paler(color.g, kNoData.g), paler(color.b, kNoData.b)};
        }
        disc.rgb.push_back(color);
      }
    }
    Line edge;
    for (int k = 0; k < 720; ++k)
      edge.push_back({middle.x + radius_ * std::cos(k * kPi / 360),
                      middle.y + radius_ * std::sin(k * kPi / 360)});
    const plot::Clip inside(canvas_, {edge});
    const double size = static_cast<double>(size_px) / scale;
    canvas_.image(corner, size, size, disc);
  }
  bool is_below(double l, double m) const {
    const double n = std::sqrt(std::max(0.0, 1 - l * l - m * m));
    return l * axes_[0][2] + m * axes_[1][2] + n * axes_[2][2] < 0;
  }

  /// A curve over the sky, where it is in front and above the horizon; `dash` points are drawn, as
  /// many left out.
  void draw_curve(const std::vector<Vector3>& curve, double thickness, Rgb color, double opacity,
                  std::size_t dash = 0) {
    std::vector<Line> lines(1);
    for (std::size_t k = 0; k < curve.size(); ++k) {
      const bool gap = dash > 0 && (k / dash) % 2 == 1;
      if (gap || curve[k][2] < -1e-9 || !in_front(curve[k])) {
        if (!lines.back().empty()) lines.emplace_back();
        continue;
      }
      lines.back().push_back(at(curve[k]));
    }
    canvas_.stroke(lines, thickness * unit_, color, opacity);
  }
  static std::vector<Vector3> ring(double elevation_rad) {
    std::vector<Vector3> curve;
    for (int k = 0; k <= 720; ++k) curve.push_back(direction(k * 0.5 * kDegree_rad, elevation_rad));
    return curve;
  }

  void draw_label(const std::string& words, Point p) {
    const TextStyle style = text(8.5, {225, 229, 236}, Align::center, false, true);
    const double w = plot::text_width(words, style), h = style.cap_height;
    const Rect rect{p.x - w / 2 - 2, p.y - h - 2, p.x + w / 2 + 2, p.y + 2};
    if (std::any_of(taken_.begin(), taken_.end(), [&](const Rect& r) { return rect.meets(r); }))
      return;
    taken_.push_back(rect);
    draw_text(canvas_, words, p, style);
  }

  /// Hour circles every 2 h and parallels every 30 degrees, solid; elevations 30 and 60, dotted.
  void draw_graticule() {
    constexpr int kPoints = 121;
    std::vector<SkyDirection> points;
    for (int hour = 0; hour < 24; hour += 2)
      for (int k = 0; k < kPoints; ++k)
        points.push_back({hour * 15 * kDegree_rad, (-90 + 1.5 * k) * kDegree_rad});
    for (int dec_deg = -60; dec_deg <= 60; dec_deg += 30)
      for (int k = 0; k < kPoints; ++k)
        points.push_back({3 * k * kDegree_rad, dec_deg * kDegree_rad});
    const auto enu = enu_of_directions(observation_.array, points, image_.centroid_tai_ns,
                                       observation_.earth_orientation);
    for (std::size_t k = 0; k < enu.size(); k += kPoints)
      draw_curve({enu.begin() + static_cast<std::ptrdiff_t>(k),
                  enu.begin() + static_cast<std::ptrdiff_t>(k + kPoints)},
                 1, kLine, 0.24);
    for (const double elevation_deg : {30.0, 60.0})
      draw_curve(ring(elevation_deg * kDegree_rad), 1, kLine, 0.4, 4);
    label_graticule(points, enu, kPoints);
    for (const int elevation_deg : {30, 60}) {
      const Vector3 s = direction(157 * kDegree_rad, elevation_deg * kDegree_rad);
      if (in_front(s)) draw_label(fmt::format("el {}\u00b0", elevation_deg), at(s));
    }
  }

  // An hour circle near the equator, a parallel where it is highest.
  void label_graticule(const std::vector<SkyDirection>& points, const std::vector<Vector3>& enu,
                       std::size_t n_points) {
    const double lowest = std::sin(20 * kDegree_rad);
    for (std::size_t first = 0; first < enu.size(); first += n_points) {
      const bool hour = first < 12 * n_points;
      std::size_t best = enu.size();
      const auto rank = [&](std::size_t k) {
        return hour ? -std::abs(points[k].dec_rad - 4 * kDegree_rad) : enu[k][2];
      };
      for (std::size_t k = first; k < first + n_points; ++k) {
        if (enu[k][2] < lowest || dot(axes_[2], enu[k]) < lowest) continue;
        if (best == enu.size() || rank(k) > rank(best)) best = k;
      }
      if (best == enu.size()) continue;
      const Point p = at(enu[best]);
      if (hour && std::abs(points[best].dec_rad) < 40 * kDegree_rad)
        draw_label(fmt::format("{:.0f}h", points[best].ra_rad / kDegree_rad / 15), p);
      if (!hour)
        draw_label(plot::degrees_text(std::round(points[best].dec_rad / kDegree_rad), 30, true),
                   {p.x + 16 * unit_, p.y - 3 * unit_});
    }
  }

  void draw_galactic_plane() {  // latitude 0
    std::vector<SkyDirection> plane;
    for (int k = 0; k <= 720; ++k) plane.push_back(from_galactic(k * 0.5 * kDegree_rad, 0));
    draw_curve(enu_of_directions(observation_.array, plane, image_.centroid_tai_ns,
                                 observation_.earth_orientation),
               1.3, kGalaxy, 0.6, 4);
  }

  void draw_horizon() {
    const char* const letters[] = {"N", "E", "S", "W"};
    if (!at_zenith()) {
      // North and east are those of the sky at the center.
      canvas_.circle(center_, radius_, 1.2 * unit_, kFrame);
      draw_curve(ring(0), 2, kInk, 1);
      for (int k = 0; k < 4; ++k) {
        const double angle_rad = k * kPi / 2;
        draw_text(canvas_, letters[k],
                  {center_.x - (radius_ + 20 * unit_) * std::sin(angle_rad),
                   center_.y - (radius_ + 20 * unit_) * std::cos(angle_rad) + 7 * unit_},
                  text(14, kInk, Align::center, true));
      }
      return;
    }
    draw_curve(ring(0), 2, kInk, 1);
    std::vector<Line> ticks;
    for (int azimuth_deg = 0; azimuth_deg < 360; azimuth_deg += 10) {
      const Point p = at(direction(azimuth_deg * kDegree_rad, 0));
      const double outward = azimuth_deg % 90 == 0 ? 0 : azimuth_deg % 30 == 0 ? 8 : 5;
      const Point q = outward_from(p, outward * unit_);
      ticks.push_back({p, q});
      if (azimuth_deg % 30 != 0 || azimuth_deg % 90 == 0) continue;
      const Point word = outward_from(p, 22 * unit_);
      draw_text(canvas_, fmt::format("{}\u00b0", azimuth_deg), {word.x, word.y + 4 * unit_},
                text(8, kCaption, Align::center));
    }
    canvas_.stroke(ticks, 1.2 * unit_, kInk, 0.9);
    for (int k = 0; k < 4; ++k) {
      const Point p = outward_from(at(direction(k * kPi / 2, 0)), 20 * unit_);
      draw_text(canvas_, letters[k], {p.x, p.y + 7 * unit_}, text(14, kInk, Align::center, true));
    }
  }
  Point outward_from(Point p, double distance) const {
    const double dx = p.x - center_.x, dy = p.y - center_.y, r = std::hypot(dx, dy);
    return {p.x + dx / r * distance, p.y + dy / r * distance};
  }

  void draw_symbol(const SkyMark& mark) {
    const Point p = at(mark.enu);
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

  /// Names beside their circles, where they meet neither each other nor another circle nor the
  /// labels of the graticule.
  void draw_sources() {
    const auto& all = marks_;
    for (const SkyMark& mark : all) draw_symbol(mark);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const Point p = at(all[k].enu);
      TextStyle style =
          text(10.5, all[k].name == "Sun" ? kSunInk : Rgb{255, 255, 255}, Align::left, false, true);
      const double w = plot::text_width(all[k].name, style), h = style.cap_height;
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
        for (std::size_t other = 0; other < taken_.size(); ++other) {
          if (other != k) bad += rect.meets(taken_[other]) ? 2 : 0;
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
      taken_.push_back(best_rect);
    }
  }

  /// The synthesized beam at the center, to scale, where the corner is free.
  void draw_beam() {
    const auto lobe = plot::lobe_of(image_, observation_);
    if (!lobe || lobe->major > 0.24) return;  // it would meet the disc
    const double half = 0.5 * lobe->major * radius_;
    const Point middle{center_.x - 0.97 * radius_ + half, center_.y + 0.97 * radius_ - half};
    Line ellipse;
    for (int k = 0; k <= 72; ++k) {
      const double t = k * kPi / 36;
      const double along = half * std::cos(t), across = 0.5 * lobe->minor * radius_ * std::sin(t);
      // From m through l, which is to the left.
      const double l = along * std::sin(lobe->angle_rad) + across * std::cos(lobe->angle_rad);
      const double m = along * std::cos(lobe->angle_rad) - across * std::sin(lobe->angle_rad);
      ellipse.push_back({middle.x - l, middle.y - m});
    }
    canvas_.stroke({ellipse}, 1.3 * unit_, kInk);
    draw_text(canvas_, plot::lobe_text(*lobe), {26 * unit_, middle.y + half + 22 * unit_},
              text(8.5, kCaption, Align::left));
  }

  void draw_words() {
    const double left = 26 * unit_;
    const std::string title = plot::title_text(observation_, options_);
    const TextStyle big = text(17, kInk, Align::left, true);
    draw_text(canvas_, title, {left, 40 * unit_}, big);
    draw_text(canvas_, plot::stokes_text(image_, options_),
              {left + plot::text_width(title, big) + 16 * unit_, 40 * unit_},
              text(13, kCaption, Align::left));
    draw_text(canvas_, plot::data_text(image_, options_), {left, 66 * unit_},
              text(10.5, kCaption, Align::left));
    const double right = static_cast<double>(canvas_.width()) - left;
    draw_text(canvas_, plot::noise_text(plane_, plot::is_signed(image_, options_)),
              {right, 40 * unit_}, text(10.5, kCaption, Align::right));
    const double bottom = static_cast<double>(canvas_.height()) - 18 * unit_;
    draw_text(canvas_, plot::making_text(image_), {left, bottom}, text(8.5, kCaption, Align::left));
    draw_text(canvas_, fmt::format("Ryle {}", version()), {right, bottom},
              text(8.5, kCaption, Align::right));
  }

  const SkyImage& image_;
  const Observation& observation_;
  const SkyPictureOptions& options_;
  std::vector<float> plane_;
  std::array<Vector3, 3> axes_;  ///< of the image, in east, north, up
  double unit_;                  ///< size of a "pixel" of the 760-pixel layout
  plot::ColorBar bar_;
  double radius_;
  Point center_;
  Canvas canvas_;
  std::array<Rgb, 1024> colors_;
  std::vector<SkyMark> marks_;
  std::vector<Rect> taken_;  ///< by the circles of the marks, in their order, then by words
};

/// A field narrower than the sky is a map with coordinates of its own.
Panel field_panel(const SkyImage& image, const Observation& observation,
                  const SkyPictureOptions& options) {
  const double cell_deg = image.cell_direction_cosine / kDegree_rad;
  const auto card = [](const char* name, double value) {
    return fmt::format("{:<8}= {:.12g}", name, value);
  };
  const double middle = static_cast<double>(image.n_pixels / 2 + 1);
  const MapProjection map = MapProjection::from_cards(
      {"CTYPE1  = 'RA---SIN'", "CTYPE2  = 'DEC--SIN'", "RADESYS = 'ICRS'",
       card("CRVAL1", image.center.ra_rad / kDegree_rad),
       card("CRVAL2", image.center.dec_rad / kDegree_rad), card("CRPIX1", middle),
       card("CRPIX2", middle), card("CDELT1", -cell_deg), card("CDELT2", cell_deg),
       card("CROTA2", image.north_angle_rad / kDegree_rad)},
      image.n_pixels, image.n_pixels);
  MapMetadata beam;
  if (const auto lobe = plot::lobe_of(image, observation)) {
    beam.beam_fwhm_deg = lobe->major / kDegree_rad;
    beam.beam_minor_deg = lobe->minor / kDegree_rad;
    beam.beam_position_angle_deg = (lobe->angle_rad + image.north_angle_rad) / kDegree_rad;
  }
  const auto plane = plot::plane_of(image, options);
  Panel panel = plot::map_panel(map, plane, beam);
  const auto bar = plot::color_bar_of(image, options, plane, 1);
  panel.title = plot::title_text(observation, options) + "  " + plot::stokes_text(image, options);
  panel.color_map = bar.map;
  panel.color_min = bar.low;
  panel.color_max = bar.high;
  panel.color_gamma = bar.gamma;
  panel.color_label = bar.label;
  const auto axes = image_axes(image, observation);
  const double half = static_cast<double>(image.n_pixels / 2);
  for (const auto& mark : plot::marks_of(image, observation, options)) {
    const auto along = [&](std::size_t k) {
      return axes[k][0] * mark.enu[0] + axes[k][1] * mark.enu[1] + axes[k][2] * mark.enu[2];
    };
    panel.marks.push_back({half - along(0) / image.cell_direction_cosine,
                           half + along(1) / image.cell_direction_cosine, mark.name});
  }
  return panel;
}

bool spans_the_sky(const SkyImage& image) {
  return (static_cast<double>(image.n_pixels) / 2 - 0.5) * image.cell_direction_cosine >= 0.9;
}

Canvas drawn(const SkyImage& image, const Observation& observation,
             const SkyPictureOptions& options, plot::Format format) {
  if (options.disc_px < 200 || options.disc_px > 4000)
    throw ConfigError(
        fmt::format("picture of the sky: {} pixels across; 200 to 4000 would do", options.disc_px));
  return SkyDrawing(image, observation, options, format).draw();
}

}  // namespace

RgbPicture draw_sky(const SkyImage& image, const Observation& observation,
                    const SkyPictureOptions& options) {
  const Canvas canvas = drawn(image, observation, options, plot::Format::png);
  return {canvas.width(), canvas.height(), canvas.rgb()};
}

ColorScale color_scale(const SkyImage& image, const SkyPictureOptions& options) {
  return plot::scale_of(plot::plane_of(image, options), plot::is_signed(image, options), options);
}

void write_sky_picture(const std::string& path, const SkyImage& image,
                       const Observation& observation, const SkyPictureOptions& options,
                       bool overwrite) {
  if (image.n_pixels > 0 && !spans_the_sky(image)) {
    const auto lobe = plot::lobe_of(image, observation);
    std::string caption = plot::data_text(image, options);
    if (lobe) caption += "  \u00b7  " + plot::lobe_text(*lobe);
    for (const auto& words :
         {plot::noise_text(plot::plane_of(image, options), plot::is_signed(image, options)),
          plot::making_text(image)})
      if (!words.empty()) caption += "  \u00b7  " + words;
    write_picture(path, {field_panel(image, observation, options)},
                  fmt::format("{}  \u00b7  Ryle {}", caption, version()), overwrite);
    return;
  }
  publish_bytes(path, drawn(image, observation, options, plot::format_of(path)).file(), overwrite);
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
