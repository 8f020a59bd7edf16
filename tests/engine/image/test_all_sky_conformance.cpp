// SPDX-License-Identifier: BSD-3-Clause
// Every implementation that runs here against the reference, over all cases.
#include <algorithm>

#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

struct Named {
  Path path;
  std::string implementation;
};

// The fast cpu implementations of this machine.
std::vector<Named> fast_ones() {
  std::vector<Named> fast;
  for (const auto& each : available_all_sky_implementations()) {
    const auto slash = each.find('/');
    const std::string implementation = each.substr(slash + 1);
    if (implementation.rfind("cpu", 0) != 0) continue;
    fast.push_back({path_named(each.substr(0, slash)), implementation});
  }
  return fast;
}

TEST(AllSkyConformance, VoltagesOnEveryCpu) {
  Queue queue = Queue::cpu(2);
  int n = 0;
  for (const auto& [path, implementation] : fast_ones()) {
    if (!takes_voltages(path)) continue;
    for (const auto& each : cases_for(path)) {
      check_field_imager(queue, implementation, path, each);
      ++n;
    }
  }
  if (n == 0) GTEST_SKIP() << "skipped: no fast E-field imager in this build";
}

TEST(AllSkyConformance, VisibilitiesOnEveryCpu) {
  Queue queue = Queue::cpu(2);
  int n = 0;
  for (const auto& [path, implementation] : fast_ones()) {
    if (takes_voltages(path)) continue;
    for (const auto& each : cases_for(path)) {
      check_vis_imager(queue, implementation, path, each);
      ++n;
    }
    if (path != Path::vis_grid) continue;
    for (const auto& each : cases_for(path, true)) {
      check_vis_imager(queue, implementation, path, each);
    }
  }
  if (n == 0) GTEST_SKIP() << "skipped: no fast visibility imager in this build";
}

}  // namespace
}  // namespace ryle::image
