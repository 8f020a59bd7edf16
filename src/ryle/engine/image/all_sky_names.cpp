// SPDX-License-Identifier: BSD-3-Clause
// Names of the paths and sizes of the images.
#include <array>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/engine/image/image.hpp"

namespace ryle::image {
namespace {

constexpr std::array<std::pair<Path, std::string_view>, 6> kNames{{
    {Path::automatic, "auto"},
    {Path::efield, "efield"},
    {Path::efield_half, "efield-half"},
    {Path::vis_grid, "vis-grid"},
    {Path::vis_dft, "vis-dft"},
    {Path::efield_dft, "efield-dft"},
}};

}  // namespace

std::string_view name(Path path) {
  for (const auto& [each, text] : kNames) {
    if (each == path) return text;
  }
  return "unknown";
}

Path path_named(std::string_view wanted) {
  std::string known;
  for (const auto& [path, text] : kNames) {
    if (text == wanted) return path;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw UnsupportedError("no imaging path \"" + std::string(wanted) + "\"; there are " + known);
}

bool takes_voltages(Path path) {
  return path == Path::efield || path == Path::efield_half || path == Path::efield_dft;
}

int n_pols(const AllSkyConfig& config) {
  for (const auto& input : config.inputs) {
    if (input.pol == 1) return 2;
  }
  return 1;
}

std::int64_t n_bins(const AllSkyConfig& config) {
  return (config.channels.n_channels + config.n_channels_per_bin - 1) / config.n_channels_per_bin;
}

std::int64_t n_planes(const AllSkyConfig& config) {
  return n_pols(config) == 1 || config.products == Products::intensity ? 1 : 4;
}

std::int64_t plane_size(const AllSkyConfig& config) {
  if (!config.directions.empty()) return static_cast<std::int64_t>(config.directions.size());
  return config.n_pixels * config.n_pixels;
}

}  // namespace ryle::image
