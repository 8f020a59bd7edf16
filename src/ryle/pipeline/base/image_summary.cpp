// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/image_summary.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace ryle::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

std::string to_json(const ImageSummary& s) {
  Json watched = Json::array();
  for (const auto& w : s.watched) {
    watched.push_back({{"name", w.name},
                       {"elevation_deg", w.elevation_deg},
                       {"flux", number(w.flux)},
                       {"mean_flux", number(w.mean_flux)},
                       {"n_images", w.n_images}});
  }
  Json json{{"images", s.images},
            {"dropped", s.dropped},
            {"path", s.path},
            {"reason", s.reason},
            {"implementation", s.implementation},
            {"image_s", s.image_s},
            {"predicted_s", s.predicted_s},
            {"measured_s", s.measured_s},
            {"coherence", s.coherence},
            {"n_pixels", s.n_pixels},
            {"cell_wavelengths", s.cell_wavelengths},
            {"n_bins", s.n_bins},
            {"n_inputs", s.n_inputs},
            {"n_bad_inputs", s.n_bad_inputs},
            {"n_dead_inputs", s.n_dead_inputs},
            {"equalized_inputs", s.equalized},
            {"weight_fraction", s.weight_fraction},
            {"events", s.events},
            {"images_not_searched", s.images_not_searched},
            {"events_in_one_bin", s.events_in_one_bin},
            {"watched", watched}};
  if (s.peak) {
    json["peak"] = {{"l", s.peak->l},
                    {"m", s.peak->m},
                    {"value", s.peak->value},
                    {"sigma", number(s.peak->sigma)},
                    {"x", s.peak->x},
                    {"y", s.peak->y},
                    {"ra_deg", number(s.peak->ra_deg)},
                    {"dec_deg", number(s.peak->dec_deg)},
                    {"azimuth_deg", number(s.peak->azimuth_deg)},
                    {"elevation_deg", number(s.peak->elevation_deg)}};
  }
  return json.dump();
}

std::string to_text(const ImageSummary& s) {
  std::string text = fmt::format(
      "{} image{} of {} x {} pixels, {} bin{}, {:.6g} s each{}\n", s.images,
      s.images == 1 ? "" : "s", s.n_pixels, s.n_pixels, s.n_bins, s.n_bins == 1 ? "" : "s",
      s.image_s,
      s.dropped > 0 ? fmt::format("; {} dropped: the disk did not keep up", s.dropped) : "");
  text += fmt::format("path {} ({}): {:.3g} ms an image, predicted {:.3g} ms, {:.1f}x real time\n",
                      s.path, s.reason, 1e3 * s.measured_s, 1e3 * s.predicted_s,
                      s.measured_s > 0 ? s.image_s / s.measured_s : 0);
  text += fmt::format("inputs: {} used of {} ({} bad, {} dead){}; weight {:.4f} of full\n",
                      s.n_inputs - s.n_bad_inputs - s.n_dead_inputs, s.n_inputs, s.n_bad_inputs,
                      s.n_dead_inputs, s.equalized ? ", equalized" : "", s.weight_fraction);
  if (s.peak) {
    text += fmt::format(
        "brightest point {:.1f} sigma, {:.5g}, at l = {:.4f}, m = {:.4f} (RA {:.3f} deg, Dec "
        "{:.3f} "
        "deg, azimuth {:.2f} deg, elevation {:.2f} deg)\n",
        s.peak->sigma, s.peak->value, s.peak->l, s.peak->m, s.peak->ra_deg, s.peak->dec_deg,
        s.peak->azimuth_deg, s.peak->elevation_deg);
  } else {
    text += "no pixel with a value: nothing arrived\n";
  }
  if (s.events + s.events_in_one_bin + s.images_not_searched > 0) {
    text += fmt::format(
        "trigger: {} events, {} sightings in one bin only rejected, {} images not searched\n",
        s.events, s.events_in_one_bin, s.images_not_searched);
  }
  for (const auto& w : s.watched) {
    text += w.n_images == 0
                ? fmt::format("  {}: below the horizon ({:.1f} deg)\n", w.name, w.elevation_deg)
                : fmt::format("  {}: {:.5g} at {:.1f} deg, mean of {} images {:.5g}\n", w.name,
                              w.flux, w.elevation_deg, w.n_images, w.mean_flux);
  }
  return text;
}

}  // namespace ryle::pipeline
