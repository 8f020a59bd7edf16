// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/watch_list.hpp"

#include <algorithm>
#include <utility>

namespace ryle::pipeline {

std::vector<WatchTarget> watch_targets(const std::vector<std::string>& watch) {
  std::string list;
  for (std::string text : watch) {
    // "RA/DEC" survives a list separated by commas; the catalog's own form has a comma.
    std::replace(text.begin(), text.end(), '/', ',');
    list += (list.empty() ? "" : ";") + text;
  }
  return list.empty() ? std::vector<WatchTarget>{} : parse_watch_list(list);
}

VisibilityWatch::VisibilityWatch(const image::AllSkyConfig& sky, const ArrayLayout& array,
                                 const EarthOrientation& eo, std::vector<WatchTarget> targets)
    : sky_(sky), array_(array), earth_orientation_(eo), targets_(std::move(targets)) {
  sky_.path = image::Path::vis_dft;
  // A name of one path ("cpu:avx512") need not exist for the other.
  sky_.implementation = "auto";
  sky_.function = {};
}

void VisibilityWatch::measure(Queue& queue, const image::VisInput& input,
                              std::span<const cf32> gains, std::int64_t tai_ns,
                              image::Images& values, std::vector<std::int64_t>& index) const {
  image::AllSkyConfig now = sky_;
  for (std::size_t k = 0; k < targets_.size(); ++k) {
    const auto enu = enu_of_direction(array_, targets_[k].direction(tai_ns, &array_), tai_ns,
                                      earth_orientation_);
    if (enu[2] <= 0) continue;
    now.directions.push_back(enu);
    index.push_back(static_cast<std::int64_t>(k));
  }
  if (index.empty()) return;
  // Made anew: integrations are far apart in time, and a few directions are little work.
  const auto imager = image::make_vis_imager(queue, now);
  imager->set_gains(queue, gains);
  imager->execute(queue, input, values);
}

}  // namespace ryle::pipeline
