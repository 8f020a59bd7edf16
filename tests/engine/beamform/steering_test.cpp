// SPDX-License-Identifier: BSD-3-Clause
// T-BF-15: delays of a control system change while data flow; nothing is lost, nobody waits.
// T-BF-06, 19: tracks against weights of every instant.
#include "ryle/engine/beamform/steering.hpp"

#include <ctime>
#include <numbers>
#include <thread>

#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/pattern.hpp"
#include "ryle/telescope/dut1.hpp"
#include "ryle/telescope/pointing.hpp"
#include "tests/engine/beamform/harness.hpp"
#include "tests/telescope/dut1_rows.hpp"

namespace ryle::beamform::test {
namespace {

constexpr std::int64_t kInputs = 4;
constexpr double kFrequency_hz = 400e6;

WeightMaker maker_of(std::int64_t n_inputs, const ChannelAxis& channels) {
  WeightConfig c;
  c.n_antennas = n_inputs;
  c.channels = channels;
  c.normalization = Normalization::sum;
  return {c, {}, {}};
}

SteeringTable table(Tick apply_at, double delay_s, double rate) {
  SteeringTable t;
  t.apply_at = t.reference = apply_at;
  for (std::int64_t i = 0; i < kInputs; ++i)
    t.models.push_back({delay_s * static_cast<double>(i), rate * static_cast<double>(i), 0});
  return t;
}

// 60 s at 1 kHz; a table every 3 s, requested 0.1 s ahead from another thread's point of view.
TEST(SteeringSchedule, DelaysChangeWithoutAGap) {
  constexpr Tick kRate = 1000, kSeconds = 60, kUpdate = 50;
  const WeightMaker maker = maker_of(kInputs, {kFrequency_hz, 0, 1});
  SteeringSchedule schedule(table(0, 0, 0), {kRate, 1}, kUpdate);
  Config c;
  c.n_antennas = kInputs;
  c.n_beams = 1;
  c.n_channels = 1;
  c.max_spectra = 700;
  c.format = SampleFormat::cf32;
  c.weights = WeightFormat::f32;
  c.output = OutputKind::voltage;
  c.output_format = OutputFormat::cf32;
  Queue queue = Queue::cpu(1);
  auto beams = make_beamformer(queue, c);
  std::vector<cf32> weights(kInputs), samples(700 * kInputs, cf32(1)), out(700);
  const View<cf32, 3> view(weights.data(), {1, 1, kInputs});
  std::int64_t n_out = 0;
  double slowest_s = 0;
  Tick next_request = 2900;
  for (Tick first = 0; first < kRate * kSeconds; first += 700) {
    const Tick gulp_end = std::min<Tick>(first + 700, kRate * kSeconds);
    for (; next_request < gulp_end; next_request += 3000) {
      const std::clock_t start = std::clock();  // work, not waiting for a core
      const Tick at = next_request + 100;
      EXPECT_EQ(schedule.request(table(at, 1e-10 * static_cast<double>(at / 3000), 1e-12)),
                std::max(at, first));
      slowest_s = std::max(slowest_s, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    for (Tick tick = first; tick < gulp_end;) {
      const Tick end = std::min(gulp_end, schedule.end_of_run(tick));
      if (schedule.weights_at(tick, maker, {}, view)) beams->set_weights(queue, view);
      Input in;
      in.samples = samples.data();
      in.n_spectra = end - tick;
      in.first_tick = tick;
      const Output output = dense_output(c, out.data(), end - tick);
      n_out += beams->execute(queue, in, output);
      // What the equation says for the middle of the update interval.
      const Tick applied = tick / 3000 * 3000;
      const double dt_s = (static_cast<double>(tick / kUpdate * kUpdate + kUpdate / 2) -
                           static_cast<double>(applied)) /
                          kRate;
      cf64 want = 0;
      for (std::int64_t i = 0; i < kInputs; ++i) {
        const double delay_s =
            static_cast<double>(i) *
            (1e-10 * static_cast<double>(applied / 3000) + (applied > 0 ? 1e-12 * dt_s : 0));
        want += std::polar(1.0, -2 * std::numbers::pi * kFrequency_hz * delay_s);
      }
      for (Tick t = tick; t < end; ++t) {
        const cf32 got = out[static_cast<std::size_t>(t - tick)];
        ASSERT_NEAR(got.real(), want.real(), 1e-5) << t;
        ASSERT_NEAR(got.imag(), want.imag(), 1e-5) << t;
      }
      tick = end;
    }
  }
  EXPECT_EQ(n_out, kRate * kSeconds);
  EXPECT_LT(slowest_s, 0.1);
  const auto applied = schedule.applied();
  ASSERT_EQ(applied.size(), 20u);
  for (std::size_t k = 0; k < applied.size(); ++k)
    EXPECT_EQ(applied[k], 3000 * static_cast<Tick>(k));
}

// A request for the past applies from where the data are; wrong ones change nothing.
TEST(SteeringSchedule, LateAndWrongRequests) {
  SteeringSchedule schedule(table(0, 0, 0), {1000, 1}, 100);
  EXPECT_EQ(schedule.end_of_run(0), 100);
  EXPECT_EQ(schedule.request(table(50, 1e-9, 0)), 100);
  EXPECT_EQ(schedule.request(table(130, 2e-9, 0)), 130);
  EXPECT_EQ(schedule.end_of_run(100), 130);
  EXPECT_EQ(schedule.end_of_run(130), 200);
  SteeringTable wrong = table(300, 0, 0);
  wrong.models.pop_back();
  EXPECT_THROW(schedule.request(wrong), ConfigError);
  wrong = table(300, NAN, 0);
  EXPECT_THROW(schedule.request(wrong), ConfigError);
  EXPECT_EQ(schedule.end_of_run(299), 300);
}

// Requests race with the data: each takes effect at the tick that was promised.
TEST(SteeringSchedule, ThreadsAgreeOnTheTick) {
  SteeringSchedule schedule(table(0, 0, 0), {1000, 1}, 10);
  const WeightMaker maker = maker_of(kInputs, {kFrequency_hz, 0, 1});
  std::vector<cf32> weights(kInputs);
  std::vector<Tick> promised;
  std::thread control([&] {
    for (Tick t = 0; t < 200; ++t) {
      const Tick at = schedule.request(table(t * 37, 1e-12 * static_cast<double>(t), 0));
      if (promised.empty() || promised.back() != at) promised.push_back(at);
    }
  });
  Tick tick = 0;
  while (tick < 10'000) {
    const Tick end = schedule.end_of_run(tick);
    schedule.weights_at(tick, maker, {}, {weights.data(), {1, 1, kInputs}});
    tick = end;
  }
  control.join();
  const auto applied = schedule.applied();
  EXPECT_TRUE(std::is_sorted(applied.begin(), applied.end()));
  for (const Tick t : applied)
    EXPECT_TRUE(t == 0 || std::find(promised.begin(), promised.end(), t) != promised.end()) << t;
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
