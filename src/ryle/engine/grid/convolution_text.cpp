// SPDX-License-Identifier: BSD-3-Clause
// Convolution functions as a user writes them.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "ryle/core/angle.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/grid/convolution.hpp"

namespace ryle::grid {
namespace {

const double kFwhmPerSigma = std::sqrt(8 * std::log(2.0));

[[noreturn]] void reject(const std::string& text, const std::string& why) {
  throw ConfigError(
      "convolution function \"" + text + "\": " + why +
      "; such as gauss, gauss:2.9arcmin (its FWHM), gauss:sigma=74arcsec,radius=5sigma, "
      "jinc, sinc:a=1.5arcmin,b=2.4arcmin, ellipse:major=3arcmin,minor=2arcmin,pa=30deg, "
      "mean:radius=1.5arcmin, table:FILE");
}

struct Words {
  std::string name;
  std::map<std::string, std::string> values;  // "" = without a name
};

Words split(const std::string& text) {
  const auto colon = text.find(':');
  Words words{text.substr(0, colon), {}};
  if (colon == std::string::npos) return words;
  std::size_t at = colon + 1;
  while (at <= text.size()) {
    const auto end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto equals = word.find('=');
    const std::string key = equals == std::string::npos ? "" : word.substr(0, equals);
    const std::string value = equals == std::string::npos ? word : word.substr(equals + 1);
    if (value.empty() || !words.values.emplace(key, value).second)
      reject(text, "\"" + word + "\" is not understood");
    at = end + 1;
  }
  return words;
}

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text), words_(split(text)) {}
  const std::string& name() const { return words_.name; }
  bool has(const std::string& key) const { return words_.values.count(key) != 0; }
  std::string word(const std::string& key) {
    const auto found = words_.values.find(key);
    if (found == words_.values.end()) return "";
    std::string value = found->second;
    words_.values.erase(found);
    return value;
  }
  /// With a unit of angle; `sigma_rad` > 0 allows "5sigma".
  double angle(const std::string& key, double otherwise, double sigma_rad = 0) {
    const std::string value = word(key);
    if (value.empty()) return otherwise;
    if (const auto in_sigma = value.find("sigma"); in_sigma != std::string::npos && sigma_rad > 0)
      return std::strtod(value.c_str(), nullptr) * sigma_rad;
    if (const auto angle_rad = parse_angle_rad(value)) return *angle_rad;
    reject(text_, "\"" + value + "\" needs a unit: deg, arcmin, arcsec or rad");
  }
  void done() const {
    if (!words_.values.empty()) reject(text_, "it has no \"" + words_.values.begin()->first + "\"");
  }

 private:
  std::string text_;
  Words words_;
};

}  // namespace

namespace {

// "table:FILE" or "table:FILE,radius=..": names of files may hold anything, so the radius is last.
Convolution parse_table(const std::string& text) {
  const std::string rest = text.substr(text.find(':') + 1);
  const auto comma = rest.rfind(",radius=");
  Convolution f = read_convolution_table(rest.substr(0, comma));
  if (comma != std::string::npos) {
    Reader in("table:" + rest.substr(comma + 1));
    const double radius_rad = in.angle("radius", 0);
    in.done();
    if (radius_rad > f.support_rad) reject(text, "the table ends before that radius");
    f.support_rad = radius_rad;
  }
  check(f);
  return f;
}

}  // namespace

Convolution parse_convolution(const std::string& text, double beam_fwhm_rad) {
  if (text.rfind("table:", 0) == 0) return parse_table(text);
  Reader in(text);
  Convolution f;
  const auto need = [&](double width, const char* what) {
    if (!(width > 0))
      reject(text, std::string("needs ") + what + ", because the beam is not known (--beam)");
    return width;
  };
  if (in.name() == "gauss") {
    f.function = Function::gauss;
    // Half the beam widens it by an eighth (grid.md 2).
    double fwhm = in.angle("", 0.5 * beam_fwhm_rad);
    fwhm = in.angle("fwhm", fwhm);
    f.sigma_rad = need(in.angle("sigma", fwhm / kFwhmPerSigma), "a width");
    f.support_rad = in.angle("radius", 3 * f.sigma_rad, f.sigma_rad);
  } else if (in.name() == "ellipse") {
    f.function = Function::ellipse;
    f.major_rad = need(in.angle("major", 0.5 * beam_fwhm_rad), "major=") / kFwhmPerSigma;
    f.minor_rad = need(in.angle("minor", 0.5 * beam_fwhm_rad), "minor=") / kFwhmPerSigma;
    f.position_angle_rad = in.angle("pa", 0);
    f.support_rad = in.angle("radius", 3 * f.major_rad, f.major_rad);
  } else if (in.name() == "jinc" || in.name() == "sinc") {
    f.function = in.name() == "jinc" ? Function::jinc : Function::sinc;
    f.a_rad = need(in.angle("a", 1.55 * beam_fwhm_rad / 3), "a=");
    f.b_rad = need(in.angle("b", 2.52 * beam_fwhm_rad / 3), "b=");
    f.support_rad = in.angle("radius", f.function == Function::jinc ? 3 * f.a_rad / 1.55 : f.a_rad);
  } else if (in.name() == "mean") {
    f.function = Function::mean;
    f.support_rad = need(in.angle("radius", 0.5 * beam_fwhm_rad), "radius=");
  } else {
    reject(text, "no such function");
  }
  in.done();
  check(f);
  return f;
}

std::string to_string(const Convolution& f) {
  const auto angle = [](double rad) {
    char text[32];
    const double arcsec = rad / kDegree_rad * 3600;
    std::snprintf(text, sizeof text, arcsec < 600 ? "%.6garcsec" : "%.6garcmin",
                  arcsec < 600 ? arcsec : arcsec / 60);
    return std::string(text);
  };
  const std::string radius = ",radius=" + angle(f.support_rad);
  switch (f.function) {
    case Function::gauss:
      return "gauss:sigma=" + angle(f.sigma_rad) + radius;
    case Function::ellipse:
      return "ellipse:major=" + angle(f.major_rad * kFwhmPerSigma) +
             ",minor=" + angle(f.minor_rad * kFwhmPerSigma) + ",pa=" + angle(f.position_angle_rad) +
             radius;
    case Function::jinc:
      return "jinc:a=" + angle(f.a_rad) + ",b=" + angle(f.b_rad) + radius;
    case Function::sinc:
      return "sinc:a=" + angle(f.a_rad) + ",b=" + angle(f.b_rad) + radius;
    case Function::table:
      return "table:" + f.table_name + radius;
    case Function::mean:
      return "mean:radius=" + angle(f.support_rad);
  }
  return "";
}

}  // namespace ryle::grid
