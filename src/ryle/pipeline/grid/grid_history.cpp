// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_history.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ryle/core/version.hpp"

namespace ryle::pipeline {

std::vector<std::string> grid_history(const GridSummary& s, const std::vector<std::string>& files) {
  constexpr std::size_t kMaxFiles = 8;
  std::string names;
  for (std::size_t k = 0; k < files.size() && k < kMaxFiles; ++k)
    names += (k > 0 ? ", " : "") + std::filesystem::path(files[k]).filename().string();
  if (files.size() > kMaxFiles) names += fmt::format(" and {} others", files.size() - kMaxFiles);
  std::vector<std::string> lines{
      fmt::format("gridded from {} ({} samples) by Ryle {} grid/{}", names, s.n_samples, version(),
                  s.implementation),
      "convolution function " + s.kernel,
      fmt::format("samples without a place {}, out of reach {}", s.bad_positions, s.out_of_reach),
      fmt::format("values NaN {}, infinite {}, without a weight {}, flagged {}", s.absent.nan_value,
                  s.absent.inf_value, s.absent.bad_weight, s.absent.flagged)};
  for (const std::string& what : s.missing) lines.push_back("missing: " + what);
  if (!s.beam.empty()) lines.push_back(s.beam);
  lines.insert(lines.end(), s.choices.begin(), s.choices.end());
  if (s.area_factor != 1)
    lines.push_back(
        fmt::format("values multiplied by {:.6g}: the solid angle of the map's beam "
                    "over the telescope's",
                    s.area_factor));
  return lines;
}

}  // namespace ryle::pipeline
