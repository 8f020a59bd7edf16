// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/search.hpp"

#include <algorithm>
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/cpu/kernel.hpp"
#include "ryle/engine/search/detect_common.hpp"
#include "ryle/engine/search/detect_unclip.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/search/cuda/make.hpp"
#endif

namespace ryle::search {

std::vector<std::int32_t> boxcar_widths(std::int64_t max_width) {
  const std::int64_t maximum = std::clamp<std::int64_t>(max_width, 1, kMaxWidth);
  std::vector<std::int32_t> widths;
  for (const std::int32_t w : {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 23, 27, 32})
    if (w <= maximum) widths.push_back(w);
  for (std::int32_t factor = 2; factor <= 64; factor *= 2) {
    for (const std::int32_t w : {19, 23, 27, 32})
      if (w * factor <= maximum) widths.push_back(w * factor);
  }
  return widths;
}

std::unique_ptr<Detector> make_detector(Queue& queue, const DetectConfig& config) {
  const auto need = [](bool good, const std::string& what) {
    if (!good) throw ConfigError("detection: " + what);
  };
  need(config.n_trials >= 1, "no trials");
  need(config.max_columns >= 64,
       "max_columns is " + std::to_string(config.max_columns) + "; at least 64");
  need(config.max_width >= 1 && config.max_width <= kMaxWidth,
       "max_width is " + std::to_string(config.max_width) + " samples; 1 .. " +
           std::to_string(kMaxWidth));
  need(config.threshold > 1 && config.threshold < 1000,
       "threshold is " + std::to_string(config.threshold) + " sigma; it must lie above 1");
#ifdef RYLE_HAVE_CUDA
  if (queue.back_end() == BackEnd::cuda) return make_cuda_detector(queue, config);
  if (names_cuda(config.implementation) && cuda_unavailable_reason().empty())
    return make_cuda_detector_for_host(config);
#endif
  if (config.implementation == "reference") return detail::make_detector_reference(config);
  return detail::make_detector_cpu(queue, config, detail::cpu_kernel_named(config.implementation));
}

namespace detail {

std::vector<Octave> octaves(const std::vector<std::int32_t>& widths) {
  std::vector<Octave> list;
  int last = -1;
  for (const std::int32_t w : widths) {
    int halvings = 0;
    while (w >> halvings > 32) ++halvings;
    const int octave = static_cast<int>(std::floor(std::log2(static_cast<double>(w) + 0.5)));
    if (octave != last || list.back().halvings != halvings) list.push_back({halvings, {}});
    last = octave;
    list.back().widths.push_back(w >> halvings);
  }
  return list;
}

SeriesStatistics unclipped(const Moments& m) {
  if (m.n < 16) return {};
  const Unclipped u = unclipped_of(static_cast<double>(m.n), static_cast<double>(m.sum),
                                   static_cast<double>(m.squares), static_cast<double>(m.clip));
  return {static_cast<double>(m.center) + u.mean, u.sigma};
}

void robust_start(std::vector<std::int64_t>& values, Moments& m) {
  m = {};
  if (values.size() < 16) return;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  m.center = *middle;
  for (auto& v : values) v = std::abs(v - m.center);
  std::nth_element(values.begin(), middle, values.end());
  m.clip = clip_of(*middle, *std::max_element(values.begin(), values.end()));
}

std::int64_t clip_of(std::int64_t mad, std::int64_t farthest) {
  return mad > 0 ? static_cast<std::int64_t>(std::ceil(3 * 1.4826 * static_cast<double>(mad)))
                 : farthest;
}

}  // namespace detail
}  // namespace ryle::search
