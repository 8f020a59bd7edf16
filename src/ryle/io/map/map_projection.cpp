// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/map_projection.hpp"

#include <erfa.h>
#include <wcslib/wcs.h>
#include <wcslib/wcsfix.h>
#include <wcslib/wcshdr.h>
#include <wcslib/wcsmath.h>
#include <wcslib/wcsutil.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/map/projection_formulas.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kMaxMapPixels = std::int64_t{1} << 31;

void copy_text(char (&to)[72], const std::string& from) {
  std::snprintf(to, sizeof to, "%s", from.c_str());
}

/// What FITS does not allow in a header, and wcslib does not expect: it copies a string that does
/// not end in its card beyond its buffers.
void check_cards(std::string& header, const std::string& path) {
  for (char& c : header)
    if (c < ' ' || c > '~') c = ' ';  // comments of some programs have other letters
  for (std::size_t at = 0; at < header.size(); at += 80) {
    const std::string card = header.substr(at, 80);
    const std::size_t quote =
        card.size() > 9 && card[8] == '=' ? card.find_first_not_of(' ', 9) : std::string::npos;
    if (quote == std::string::npos || card[quote] != '\'') continue;
    std::size_t end = quote + 1;
    while (end < card.size() && (card[end] != '\'' || card.compare(end, 2, "''") == 0))
      end += card[end] == '\'' ? 2 : 1;
    if (end >= card.size())
      throw FormatError(path + ": the text of " + card.substr(0, 8) +
                        " in the header does not end");
  }
}

std::array<double, 9> identity() { return {1, 0, 0, 0, 1, 0, 0, 0, 1}; }

// Rotation from ICRS to a frame.
std::array<double, 9> from_icrs(SkyFrame frame) {
  std::array<double, 9> r = identity();
  const auto column = [&](int k, double x, double y, double z) {
    r[k] = x;
    r[3 + k] = y;
    r[6 + k] = z;
  };
  if (frame == SkyFrame::galactic) {
    // The axes of ICRS seen in the galaxy.
    const double axes[3][2] = {{0, 0}, {0.5 * kPi, 0}, {0, 0.5 * kPi}};
    for (int k = 0; k < 3; ++k) {
      double l = 0, b = 0;
      eraIcrs2g(axes[k][0], axes[k][1], &l, &b);
      column(k, std::cos(b) * std::cos(l), std::cos(b) * std::sin(l), std::sin(b));
    }
  } else if (frame == SkyFrame::fk5) {
    double r5h[3][3], s5h[3];
    eraFk5hip(r5h, s5h);  // FK5 to Hipparcos, which is ICRS
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) r[3 * i + j] = r5h[j][i];
  }
  return r;
}

/// wcslib notes errors in its structure: a copy for each call makes any number of threads safe.
class WcsCopy {
 public:
  explicit WcsCopy(const wcsprm& from) {
    wcs_->flag = -1;
    if (wcssub(1, &from, nullptr, nullptr, wcs_.get()) != 0 || wcsset(wcs_.get()) != 0)
      throw IoError(ExitCode::io, "wcslib has no memory for a projection");
  }
  ~WcsCopy() { wcsfree(wcs_.get()); }
  WcsCopy(const WcsCopy&) = delete;
  WcsCopy& operator=(const WcsCopy&) = delete;
  wcsprm& get() const { return *wcs_; }

 private:
  std::unique_ptr<wcsprm> wcs_ = std::make_unique<wcsprm>();
};

}  // namespace

const char* to_string(SkyFrame frame) {
  switch (frame) {
    case SkyFrame::icrs:
      return "icrs";
    case SkyFrame::fk5:
      return "fk5";
    case SkyFrame::galactic:
      return "galactic";
  }
  return "";
}

SkyFrame parse_sky_frame(const std::string& name) {
  for (const SkyFrame f : {SkyFrame::icrs, SkyFrame::fk5, SkyFrame::galactic})
    if (name == to_string(f)) return f;
  throw ConfigError("no celestial frame \"" + name + "\"; icrs, fk5 and galactic work");
}

std::array<double, 9> frame_rotation(SkyFrame from, SkyFrame to) {
  if (from == to) return identity();
  const auto a = from_icrs(from), b = from_icrs(to);
  std::array<double, 9> r{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) r[3 * i + j] += b[3 * i + k] * a[3 * j + k];  // b a^T
  return r;
}

struct MapProjection::Impl {
  wcsprm wcs{};
  std::int64_t width = 0, height = 0;
  std::string path;  // of the file it is from, for messages

  Impl() {
    wcs.flag = -1;
    if (wcsini(1, 2, &wcs) != 0)
      throw IoError(ExitCode::io, "wcslib has no memory for a projection");
  }
  ~Impl() { wcsfree(&wcs); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// The celestial axes of a header. @param size of an axis, counted from 0
  template <class Size>
  void parse(std::string header, const std::string& from, const Size& size) {
    path = from;
    check_cards(header, path);
    int rejected = 0, n_wcs = 0;
    wcsprm* all = nullptr;
    const int status = header.empty() ? 1
                                      : wcspih(header.data(), static_cast<int>(header.size() / 80),
                                               WCSHDR_all, 0, &rejected, &n_wcs, &all);
    const std::unique_ptr<wcsprm, std::function<void(wcsprm*)>> owner(
        all, [&](wcsprm* w) { wcsvfree(&n_wcs, &w); });
    if (status != 0 || n_wcs == 0 || wcsset(all) != 0 || all->lng < 0 || all->lat < 0)
      throw FormatError(path +
                        ": no image with celestial coordinates (CTYPE such as RA---SIN, DEC--SIN)");
    int axes[2] = {all->lng + 1, all->lat + 1}, n_kept = 2;
    width = size(all->lng);
    height = size(all->lat);
    // More pixels than 2^31 are not one map: it would be a damaged header.
    if (width < 1 || height < 1 || width > kMaxMapPixels / height)
      throw FormatError(path + ": an image of " + std::to_string(width) + " x " +
                        std::to_string(height) +
                        " pixels; a map has a width and a height of 1 or more and at most 2^31 "
                        "pixels");
    wcsfree(&wcs);
    wcs.flag = -1;
    if (wcssub(1, all, &n_kept, axes, &wcs) != 0)
      throw FormatError(path + ": its celestial axes cannot be told from the others");
    set();
    require_known_frame();
  }

  /// Maps are made in ICRS, FK5 (J2000) and galactic coordinates: nothing else is taken for one.
  void require_known_frame() const {
    const std::string type(wcs.ctype[wcs.lng], 4), system = wcs.radesys;
    const bool dated = !undefined(wcs.equinox);
    const bool good =
        type == "GLON" ||
        (type == "RA--" && (system.empty() || system == "ICRS" || system.rfind("FK5", 0) == 0));
    const bool other_equinox =
        good && type == "RA--" && system != "ICRS" && dated && wcs.equinox != 2000;
    if (good && !other_equinox) return;
    throw UnsupportedError(path + ": coordinates " + type + " " + system +
                           (dated ? " of equinox " + std::to_string(wcs.equinox) : "") +
                           " are not made; ICRS, FK5 (equinox 2000) and galactic ones work");
  }

  /// Length of a step along a pixel axis. A matrix (CD, PC) may hold what CDELT leaves at 1.
  double step_deg(int axis) const {
    return std::hypot(wcs.cdelt[0] * wcs.pc[axis], wcs.cdelt[1] * wcs.pc[2 + axis]);
  }

  void set() {
    const int status = wcsset(&wcs);
    const std::string where = path.empty() ? "map" : path;
    if (status != 0)
      throw ConfigError(where + ": wcslib cannot use its coordinates: " + wcs_errmsg[status]);
    if (wcs.lng < 0 || wcs.lat < 0)
      throw ConfigError(where +
                        ": no pair of celestial axes (CTYPE such as RA---SIN and DEC--SIN)");
  }
};

MapProjection MapProjection::make(const MapRequest& request) {
  if (request.width < 1 || request.height < 1 || !(request.cell_deg > 0))
    throw ConfigError("a map needs a width, a height and a cell above 0, got " +
                      std::to_string(request.width) + " x " + std::to_string(request.height) +
                      " of " + std::to_string(request.cell_deg) + " deg");
  auto content = std::make_shared<Impl>();
  content->width = request.width;
  content->height = request.height;
  wcsprm& w = content->wcs;
  const bool galactic = request.frame == SkyFrame::galactic;
  copy_text(w.ctype[0], (galactic ? "GLON-" : "RA---") + request.projection);
  copy_text(w.ctype[1], (galactic ? "GLAT-" : "DEC--") + request.projection);
  copy_text(w.cunit[0], "deg");
  copy_text(w.cunit[1], "deg");
  w.crpix[0] = static_cast<double>(request.width / 2 + 1);
  w.crpix[1] = static_cast<double>(request.height / 2 + 1);
  w.cdelt[0] = -request.cell_deg;
  w.cdelt[1] = request.cell_deg;
  w.crval[0] = request.center_longitude_deg;
  w.crval[1] = request.center_latitude_deg;
  if (!galactic) copy_text(w.radesys, request.frame == SkyFrame::fk5 ? "FK5" : "ICRS");
  if (request.frame == SkyFrame::fk5) w.equinox = 2000;
  content->set();
  return MapProjection(content);
}

MapProjection MapProjection::read(const std::string& path) {
  io::FitsFile file = io::FitsFile::open(path);
  // The first HDU with an image of two axes or more.
  int status = 0, n_hdus = 0, n_axes = 0;
  fits_get_num_hdus(file.get(), &n_hdus, &status);
  LONGLONG sizes[9] = {};
  for (int hdu = 1; hdu <= n_hdus && status == 0; ++hdu) {
    int type = 0;
    fits_movabs_hdu(file.get(), hdu, &type, &status);
    if (type != IMAGE_HDU) continue;
    fits_get_img_dim(file.get(), &n_axes, &status);
    if (n_axes >= 2) break;
  }
  if (n_axes >= 2) fits_get_img_sizell(file.get(), std::min(n_axes, 9), sizes, &status);
  char* text = nullptr;
  int n_keys = 0;
  if (status == 0) fits_hdr2str(file.get(), 1, nullptr, 0, &text, &n_keys, &status);
  file.check(status, "read the header of");
  std::string header;
  if (n_axes >= 2) header = text;
  std::free(text);
  auto content = std::make_shared<Impl>();
  content->parse(header, path, [&](int axis) { return sizes[axis]; });
  return MapProjection(content);
}

MapProjection MapProjection::from_cards(const std::vector<std::string>& cards, std::int64_t width,
                                        std::int64_t height) {
  std::string header;
  for (const std::string& card : cards) header += card + std::string(80 - card.size() % 80, ' ');
  auto content = std::make_shared<Impl>();
  content->parse(header, "map", [&](int axis) { return axis == 0 ? width : height; });
  return MapProjection(content);
}

std::int64_t MapProjection::width() const { return impl_->width; }
std::int64_t MapProjection::height() const { return impl_->height; }
SkyFrame MapProjection::frame() const {
  const wcsprm& w = impl_->wcs;
  if (std::strncmp(w.ctype[w.lng], "GLON", 4) == 0) return SkyFrame::galactic;
  // wcsset() has filled in what a header left out: an equinox alone means FK5 (or FK4).
  return std::strncmp(w.radesys, "FK5", 3) == 0 ? SkyFrame::fk5 : SkyFrame::icrs;
}
std::string MapProjection::projection() const { return std::string(impl_->wcs.cel.prj.code, 3); }
double MapProjection::cell_deg() const { return impl_->step_deg(impl_->wcs.lat); }
double MapProjection::cell_aspect() const { return cell_deg() / impl_->step_deg(impl_->wcs.lng); }

void MapProjection::directions(std::int64_t first_row, std::int64_t n_rows, double* longitude_deg,
                               double* latitude_deg) const {
  if (const auto formula = formula_of(impl_->wcs)) {
    formula_directions(*formula, impl_->width, first_row, n_rows, longitude_deg, latitude_deg);
    return;
  }
  const WcsCopy copy(impl_->wcs);
  wcsprm& w = copy.get();
  const auto n = static_cast<std::size_t>(impl_->width);
  std::vector<double> pixel(2 * n), image(2 * n), phi(n), theta(n), world(2 * n);
  std::vector<int> status(n);
  for (std::int64_t row = 0; row < n_rows; ++row) {
    for (std::size_t i = 0; i < n; ++i) {
      pixel[2 * i + static_cast<std::size_t>(w.lng)] = static_cast<double>(i) + 1;
      pixel[2 * i + static_cast<std::size_t>(w.lat)] = static_cast<double>(first_row + row) + 1;
    }
    const int code = wcsp2s(&w, static_cast<int>(n), 2, pixel.data(), image.data(), phi.data(),
                            theta.data(), world.data(), status.data());
    for (std::size_t i = 0; i < n; ++i) {
      const bool on = code == 0 || (code == 8 && status[i] == 0);
      const std::size_t to = static_cast<std::size_t>(row) * n + i;
      longitude_deg[to] = on ? world[2 * i + static_cast<std::size_t>(w.lng)] : kNaN;
      latitude_deg[to] = on ? world[2 * i + static_cast<std::size_t>(w.lat)] : kNaN;
    }
  }
}

std::array<double, 2> MapProjection::pixel_of(double longitude_deg, double latitude_deg) const {
  const WcsCopy copy(impl_->wcs);
  wcsprm& w = copy.get();
  double world[2], image[2], pixel[2] = {kNaN, kNaN}, phi = 0, theta = 0;
  world[w.lng] = longitude_deg;
  world[w.lat] = latitude_deg;
  int status = 0;
  const int code = wcss2p(&w, 1, 2, world, &phi, &theta, image, pixel, &status);
  const std::array<double, 2> result =
      code == 0 ? std::array<double, 2>{pixel[w.lng] - 1, pixel[w.lat] - 1}
                : std::array<double, 2>{kNaN, kNaN};
  return result;
}

std::vector<std::string> MapProjection::cards() const {
  const WcsCopy copy(impl_->wcs);
  wcsprm& w = copy.get();
  char* text = nullptr;
  int n = 0;
  const int status = wcshdo(WCSHDO_none, &w, &n, &text);
  std::vector<std::string> cards;
  for (int k = 0; status == 0 && k < n; ++k) {
    std::string card(text + 80 * k, 80);
    // A map made like another is of another time, line and place.
    static const std::set<std::string> kOthers = {
        "WCSAXES",  "RESTFRQ",  "RESTWAV",  "SPECSYS",  "SSYSOBS", "SSYSSRC",  "VELOSYS",
        "ZSOURCE",  "VELANGL",  "TIMESYS",  "TREFPOS",  "TREFDIR", "TIMEUNIT", "DATE",
        "DATE-OBS", "DATE-BEG", "DATE-AVG", "DATE-END", "DATEREF", "MJDREF",   "MJDREFI",
        "MJDREFF",  "MJD-OBS",  "MJD-BEG",  "MJD-AVG",  "MJD-END", "JEPOCH",   "BEPOCH",
        "TSTART",   "TSTOP",    "XPOSURE",  "TELAPSE",  "WCSNAME", "OBSGEO-X", "OBSGEO-Y",
        "OBSGEO-Z", "OBSGEO-L", "OBSGEO-B", "OBSGEO-H", ""};
    const std::string name = card.substr(0, std::min<std::size_t>(card.find(' '), 8));
    if (kOthers.count(name) == 0) cards.push_back(std::move(card));
  }
  wcsdealloc(text);
  if (status != 0) throw IoError(ExitCode::io, "wcslib cannot write the cards of a map");
  return cards;
}

}  // namespace ryle
