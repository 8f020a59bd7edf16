// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/weighting.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::image {
namespace {

/// Cell of a sample, or of its conjugate, in the half plane v > 0 or (v = 0 and u >= 0).
std::pair<std::int64_t, std::int64_t> density_cell(const Sample& s, double cell_waves) {
  const double sign = s.v < 0 || (s.v == 0 && s.u < 0) ? -1 : 1;
  return {static_cast<std::int64_t>(std::floor(sign * s.v / cell_waves)),
          static_cast<std::int64_t>(std::floor(sign * s.u / cell_waves))};
}

bool has_weight(const Sample& s) {
  return s.weight > 0 && std::isfinite(s.weight) && std::isfinite(s.u + s.v + s.w) &&
         std::isfinite(std::abs(s.visibility));
}

}  // namespace

std::optional<Weighting> weighting_named(std::string_view name) {
  if (name == "natural") return Weighting::natural;
  if (name == "uniform") return Weighting::uniform;
  if (name == "briggs") return Weighting::briggs;
  return std::nullopt;
}

void weigh(std::vector<Sample>& samples, Weighting weighting, double robust, double cell_waves) {
  if (weighting == Weighting::natural) return;
  if (!(cell_waves > 0) || !std::isfinite(robust))
    throw ConfigError("weighting: the cell must be above 0 and robust finite");
  // Sorted places instead of a plane in memory: baselines may be of any length.
  using Cell = std::pair<std::int64_t, std::int64_t>;
  std::vector<std::pair<Cell, std::size_t>> places;
  places.reserve(samples.size());
  for (std::size_t k = 0; k < samples.size(); ++k)
    if (has_weight(samples[k])) places.emplace_back(density_cell(samples[k], cell_waves), k);
  std::sort(places.begin(), places.end());
  std::vector<double> density(samples.size(), 0.0);
  double squares = 0, total = 0;
  for (std::size_t from = 0; from < places.size();) {
    std::size_t to = from;
    double sum = 0;
    for (; to < places.size() && places[to].first == places[from].first; ++to)
      sum += samples[places[to].second].weight;
    for (std::size_t k = from; k < to; ++k) density[places[k].second] = sum;
    squares += sum * sum;
    total += sum;
    from = to;
  }
  const double scale = 5 * std::pow(10.0, -robust);
  const double f2 = squares > 0 ? scale * scale * total / squares : 0;
  for (const auto& [cell, k] : places) {
    Sample& s = samples[k];
    s.weight /= weighting == Weighting::uniform ? density[k] : 1 + f2 * density[k];
  }
}

}  // namespace ryle::image
