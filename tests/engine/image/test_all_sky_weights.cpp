// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/weights.hpp"

#include "tests/engine/image/all_sky_case_list.hpp"

namespace ryle::image {
namespace {

using namespace test;

// Bit-sliced counters against the reference, which counts one spectrum after the other (T-EP-09).
TEST(AllSkyWeights, CountersEqualTheReference) {
  Queue queue = Queue::cpu(1);
  for (auto c : common_cases()) {
    if (c.n_spectra < 2) continue;
    c.config.n_pixels = 10;
    c.config.allow_wrap = true;
    const auto expected = field_images(queue, "reference", Path::efield, c).weights;
    CaseData data(c);
    std::vector<double> weights(expected.size(), 0.0);
    add_field_weights(c.config, data.gains(), data.input(0, c.n_spectra), weights);
    EXPECT_EQ(weights, expected) << c.label;
    std::vector<ci64> sums;
    std::vector<std::uint32_t> counts;
    data.correlate(sums, counts);
    std::vector<double> by_pairs(expected.size(), 0.0);
    add_vis_weights(c.config, data.gains(), counts.data(), c.n_spectra, by_pairs);
    EXPECT_EQ(by_pairs, expected) << c.label;
    if (c.lost > 0) continue;
    std::vector<double> full(expected.size(), 0.0);
    add_vis_weights(c.config, data.gains(), nullptr, c.n_spectra, full);
    EXPECT_EQ(full, expected) << c.label;
  }
}

}  // namespace
}  // namespace ryle::image
