// SPDX-License-Identifier: BSD-3-Clause
// T-BF-06, 19: tracks against weights of every instant.
#include <cmath>
#include <numbers>

#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/pattern.hpp"
#include "ryle/engine/beamform/weights.hpp"
#include "ryle/telescope/dut1.hpp"
#include "ryle/telescope/pointing.hpp"
#include "tests/engine/beamform/harness.hpp"
#include "tests/telescope/dut1_rows.hpp"

namespace ryle::beamform::test {
namespace {

WeightMaker maker_of(std::int64_t n_inputs, const ChannelAxis& channels) {
  WeightConfig c;
  c.n_antennas = n_inputs;
  c.channels = channels;
  c.normalization = Normalization::sum;
  return {c, {}, {}};
}

// BEST-2: 8 rows of 10 m, 4 columns of 5.878 m.
ArrayLayout best2_like() {
  ArrayLayout array;
  array.latitude_rad = 44.5239 * kDegree_rad;
  array.longitude_rad = 11.6456 * kDegree_rad;
  for (int k = 0; k < 32; ++k) {
    Antenna a;
    a.enu_m = {5.878 * (k % 4), 10.0 * (k / 4), 0.0};
    array.antennas.push_back(a);
    ArrayInput input;
    input.antenna = k;
    array.inputs.push_back(input);
  }
  return array;
}

// An hour in update intervals of 0.41 s (1 deg of phase at most), looked at anywhere inside them:
// 8-bit weights of the middle against ideal ones of the instant.
TEST(Track, AnHourLosesLessThanOneInAThousand) {
  const ArrayLayout array = best2_like();
  EarthOrientation eo;
  eo.table = std::make_shared<const Dut1Table>(Dut1Table::parse(ryle::test::kDut1Of2016, "t"));
  // RA 0 h, 23:59:59, the pole, and two that are up; half an hour each side of the leap second.
  const std::vector<SkyDirection> sources{{0, 0.6},
                                          {(24 - 1 / 3600.0) * 15 * kDegree_rad, 0.6},
                                          {1.0, 90 * kDegree_rad},
                                          {1.9, 0.3},
                                          {1.2, 0.9}};
  std::vector<BeamPointing> pointings;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    BeamPointing b;
    b.name = std::to_string(k);
    b.longitude_rad = sources[k].ra_rad;
    b.latitude_rad = sources[k].dec_rad;
    pointings.push_back(b);
  }
  const BeamSky sky(array, pointings, eo);
  const SampleClock clock{tai_ns_from_utc_iso("2016-12-31T23:30:00"), {78'125, 4}};
  constexpr Tick kUpdate = 8000;  // 0.41 s
  const WeightMaker maker = maker_of(32, {408e6, 0, 1});
  std::vector<cf32> used(5 * 32), ideal(5 * 32);
  double worst = 0, worst_step_turns = 0;
  std::vector<Steering> before;
  for (std::int64_t k = 0; k < 300; ++k) {
    // Everywhere in the hour, densely about the leap second; early and late in the interval.
    const Tick tick = k < 200 ? k * 351'000 : 35'156'250 + (k - 150) * 2000;
    const std::int64_t interval = tick / kUpdate;
    const auto steering =
        steer(array, sky.directions_enu(middle_tai_ns(clock, interval * kUpdate, kUpdate)), 408e6);
    maker.make(steering, 0, {}, {used.data(), {5, 1, 32}});
    std::vector<Vector3> now;
    for (const auto& source : sources)
      now.push_back(enu_of_direction(array, source, clock.tai_ns(tick), eo));
    maker.make(steer(array, now, 408e6), 0, {}, {ideal.data(), {5, 1, 32}});
    const auto next = steer(
        array, sky.directions_enu(middle_tai_ns(clock, (interval + 1) * kUpdate, kUpdate)), 408e6);
    for (std::size_t b = 0; b < 5; ++b) {
      const auto codes = quantized_weights(std::span(used).subspan(32 * b, 32));
      cf64 sum = 0;
      double power = 0;
      for (std::size_t i = 0; i < 32; ++i) {
        sum += cf64(codes[i]) * std::conj(cf64(ideal[32 * b + i]));
        power += std::norm(cf64(codes[i]));
        // To the reference of the array: its first antenna.
        worst_step_turns =
            std::max(worst_step_turns,
                     408e6 * std::fabs(next[32 * b + i].delay_s - steering[32 * b + i].delay_s));
      }
      worst = std::max(worst, 1 - std::norm(sum) / (power * 32));
    }
  }
  EXPECT_LT(worst, 1e-3);
  EXPECT_GT(worst, 0);
  EXPECT_LT(worst_step_turns, 1.0 / 360);
}

}  // namespace
}  // namespace ryle::beamform::test
