// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/math/fft.hpp"
#include "ryle/pipeline/visibility/delay_model.hpp"
#include "ryle/simulate/fengine_packets.hpp"
#include "ryle/simulate/fengine_sender.hpp"
#include "ryle/simulate/voltages.hpp"
#include "ryle/wire/mwa32t.hpp"

// A simulated sky that turns: what the array receives follows the delay model of the correlator,
// and nothing comes twice.

namespace ryle::pipeline {
namespace {

constexpr SkyDirection kCygA{299.86815 * kDegree_rad, 40.73392 * kDegree_rad};
constexpr std::int64_t kStart_tai_ns = 772'000'000'000'000'000;  // since 2000

/// Four antennas on a kilometer, each with a cable of its own.
ArrayLayout kilometer_array() {
  ArrayLayout array;
  array.latitude_rad = 34.0 * kDegree_rad;
  array.longitude_rad = -107.0 * kDegree_rad;
  array.height_m = 1500;
  const Vector3 places[] = {{0, 0, 0}, {700, -300, 4}, {-420, 510, -3}, {15, 980, 1}};
  for (int a = 0; a < 4; ++a) {
    array.antennas.push_back({"a" + std::to_string(a), places[a]});
    ArrayInput input;
    input.antenna = a;
    input.cable_delay_s = 40e-9 * a;
    array.inputs.push_back(input);
  }
  return array;
}

/// An instant at which the source is high for the whole of the test.
std::int64_t high_instant(const ArrayLayout& array) {
  for (std::int64_t hour = 0; hour < 24; ++hour) {
    const std::int64_t tai_ns = kStart_tai_ns + hour * 3'600'000'000'000;
    if (enu_of_direction(array, kCygA, tai_ns)[2] > 0.8) return tai_ns;
  }
  return kStart_tai_ns;
}

simulate::Scene one_source(double flux_jy, double sefd_jy) {
  simulate::Scene scene;
  simulate::Source source;
  source.name = "Cyg A";
  source.icrs = kCygA;
  source.flux_jy = flux_jy;
  scene.sources = {source};
  scene.sefd_jy = sefd_jy;
  return scene;
}

double turned(double phase_rad) { return std::remainder(phase_rad, 2 * kPi); }

cf64 spectra_sample(const simulate::SpectraRecord& r, std::int64_t t, std::int64_t channel,
                    std::int64_t input) {
  const std::uint8_t byte = r.spectrum(t)[channel * r.n_inputs + input];
  const auto part = [](int nibble) { return nibble < 8 ? nibble : nibble - 16; };
  return {static_cast<double>(part(byte >> 4)), static_cast<double>(part(byte & 15))};
}

// Over ten minutes the longest baseline turns by hundreds of degrees; each look agrees with the
// delays that the correlator takes out, to what its noise allows.
TEST(MovingSky, PhasesOfSpectraFollowTheDelayModelOverMinutes) {
  const ArrayLayout array = kilometer_array();
  simulate::SpectraConfig config;
  config.n_spectra = 500;
  config.channels = {60e6, 25e3, 8};
  config.start_tai_ns = high_instant(array);
  const simulate::SpectraStream stream(array, one_source(900, 100), config);
  const DelayModel model(array, {}, kCygA, config.channels.band_center_hz());
  simulate::SpectraRecord record = stream.make_record();
  double first_turns = 0, last_turns = 0;
  for (int minute = 0; minute <= 10; ++minute) {
    const Tick first = minute * 60 * 25'000;
    stream.draw(first, record);
    const SampleClock clock{config.start_tai_ns, config.spectrum_rate_hz};
    const auto delays_s = model.delays_s(clock.tai_ns(first + 250));
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = i + 1; j < 4; ++j) {
        for (std::int64_t c = 0; c < 8; ++c) {
          cf64 sum = 0;
          for (std::int64_t t = 0; t < 500; ++t)
            sum += spectra_sample(record, t, c, i) * std::conj(spectra_sample(record, t, c, j));
          const double turns = config.channels.center_hz(c) * (delays_s[i] - delays_s[j]);
          // A correlation of 0.9 in 500 samples: 0.015 rad rms; five sigma.
          EXPECT_NEAR(turned(std::arg(sum) - 2 * kPi * turns), 0, 0.08)
              << minute << " min, " << i << "-" << j << ", channel " << c;
          if (i == 0 && j == 1 && c == 0) (minute == 0 ? first_turns : last_turns) = turns;
        }
      }
    }
  }
  EXPECT_GT(std::abs(last_turns - first_turns), 1);
}

TEST(MovingSky, PhasesOfSamplesFollowTheDelayModelOverMinutes) {
  const ArrayLayout array = kilometer_array();
  constexpr std::int64_t kChannels = 64, kSamples = 32'768;
  simulate::VoltageConfig config;
  config.n_samples = kSamples;
  config.start_tai_ns = high_instant(array);
  const simulate::VoltageStream stream(array, one_source(900, 100), config);
  const DelayModel model(array, {}, kCygA, config.center_hz);
  const math::Fft fft(kChannels);
  simulate::VoltageRecord record = stream.make_record();
  for (int minute = 0; minute <= 10; minute += 2) {
    const Tick first = minute * 60 * 1'280'000 + 777 * minute;  // anywhere in a block
    stream.draw(first, record);
    const SampleClock clock{config.start_tai_ns, config.sample_rate_hz};
    const auto delays_s = model.delays_s(clock.tai_ns(first + kSamples / 2));
    std::vector<std::vector<cf64>> spectra(4, std::vector<cf64>(kSamples));
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t t = 0; t < kSamples; ++t) {
        const ci8 s = wire::unpack_mwa32t_word(record.samples[t * 4 + i]);
        spectra[i][t] = {static_cast<double>(s.re), static_cast<double>(s.im)};
      }
      for (std::int64_t t = 0; t < kSamples; t += kChannels) fft.forward(&spectra[i][t]);
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t j = i + 1; j < 4; ++j) {
        for (const std::int64_t c : {0, 7, 25, 40, 63}) {
          cf64 sum = 0;
          double power_i = 0, power_j = 0;
          for (std::int64_t t = c; t < kSamples; t += kChannels) {
            sum += spectra[i][t] * std::conj(spectra[j][t]);
            power_i += std::norm(spectra[i][t]);
            power_j += std::norm(spectra[j][t]);
          }
          const double offset_hz = 1.28e6 *
                                   static_cast<double>(2 * c < kChannels ? c : c - kChannels) /
                                   static_cast<double>(kChannels);
          const double turns = (config.center_hz + offset_hz) * (delays_s[i] - delays_s[j]);
          EXPECT_NEAR(turned(std::arg(sum) - 2 * kPi * turns), 0, 0.12)
              << minute << " min, " << i << "-" << j << ", channel " << c;
          // 900 of 1000 Jy are common; windows of 50 us lose up to 7 % of it to delays of 3 us.
          EXPECT_NEAR(std::abs(sum) / std::sqrt(power_i * power_j), 0.87, 0.06);
        }
      }
    }
  }
}

// A record that repeats is the same after a period. A stream is not, and its total power has no
// line there.
TEST(MovingSky, NoiseOfSuccessiveStretchesIsUncorrelated) {
  const ArrayLayout array = kilometer_array();
  simulate::VoltageConfig voltages;
  voltages.n_samples = 16'384;
  voltages.start_tai_ns = high_instant(array);
  const simulate::VoltageStream samples(array, one_source(10, 1000), voltages);
  simulate::SpectraConfig config;
  config.n_spectra = 512;
  config.channels = {60e6, 25e3, 32};
  config.start_tai_ns = voltages.start_tai_ns;
  const simulate::SpectraStream spectra(array, one_source(10, 1000), config);
  auto a = samples.make_record(), b = a;
  auto c = spectra.make_record(), d = c;
  for (int k = 0; k < 4; ++k) {
    samples.draw(k * 16'384, a);
    samples.draw((k + 1) * 16'384, b);
    double sum = 0, power = 0;
    for (std::size_t t = 0; t < a.samples.size(); ++t) {
      const ci8 x = wire::unpack_mwa32t_word(a.samples[t]),
                y = wire::unpack_mwa32t_word(b.samples[t]);
      sum += x.re * y.re + x.im * y.im;
      power += x.re * x.re + x.im * x.im;
    }
    EXPECT_LT(std::abs(sum) / power, 5 / std::sqrt(static_cast<double>(a.samples.size())));
    spectra.draw(k * 512, c);
    spectra.draw((k + 1) * 512, d);
    sum = power = 0;
    for (std::int64_t t = 0; t < 512; ++t) {
      for (std::int64_t channel = 0; channel < 32; ++channel) {
        const cf64 x = spectra_sample(c, t, channel, 1), y = spectra_sample(d, t, channel, 1);
        sum += (x * std::conj(y)).real();
        power += std::norm(x);
      }
    }
    EXPECT_LT(std::abs(sum) / power, 5 / std::sqrt(512.0 * 32));
  }
}

// Stretches are pieces of one stream, however long they are and wherever they begin.
TEST(MovingSky, AnyStretchIsPartOfTheSameStream) {
  const ArrayLayout array = kilometer_array();
  simulate::VoltageConfig config;
  config.n_samples = 50'000;
  config.start_tai_ns = high_instant(array);
  const simulate::VoltageStream whole(array, one_source(100, 1000), config);
  auto all = whole.make_record();
  whole.draw(1'000'000, all);
  config.n_samples = 7'000;
  const simulate::VoltageStream part(array, one_source(100, 1000), config);
  auto some = part.make_record();
  part.draw(1'030'001, some);
  for (std::size_t k = 0; k < some.samples.size(); ++k)
    ASSERT_EQ(some.samples[k], all.samples[30'001 * 4 + k]) << k;
}

TEST(MovingSky, ASourceSetsAndTheBeamOfAnAntennaWeakensIt) {
  const ArrayLayout array = kilometer_array();
  simulate::SpectraConfig config;
  config.n_spectra = 256;
  config.channels = {60e6, 25e3, 16};
  config.start_tai_ns = high_instant(array);
  simulate::Scene scene = one_source(1000, 1000);
  const auto coherence = [&](double after_s) {
    const simulate::SpectraStream stream(array, scene, config);
    auto record = stream.make_record();
    const auto first = static_cast<Tick>(after_s * 25'000);
    stream.draw(first, record);
    double sum = 0;
    for (std::int64_t channel = 0; channel < 16; ++channel) {
      cf64 product = 0;
      double power = 0;
      for (std::int64_t t = 0; t < 256; ++t) {
        product += spectra_sample(record, t, channel, 0) *
                   std::conj(spectra_sample(record, t, channel, 3));
        power += std::norm(spectra_sample(record, t, channel, 0));
      }
      sum += std::abs(product) / power / 16;
    }
    return sum;
  };
  EXPECT_NEAR(coherence(0), 0.5, 0.05);
  const SampleClock clock{config.start_tai_ns, config.spectrum_rate_hz};
  double set_s = 0;
  while (enu_of_direction(array, kCygA, clock.tai_ns(std::llround(set_s * 25'000)))[2] > -0.05)
    set_s += 600;
  EXPECT_LT(coherence(set_s), 0.12);  // of noise alone: about 1 / 16
  scene.element_power = 4;
  const double up = enu_of_direction(array, kCygA, config.start_tai_ns)[2];
  const double response = std::pow(up, 4);
  EXPECT_NEAR(coherence(0), response / (1 + response), 0.05);
}

// Period, dispersion and duty cycle of a pulsar, in channels that it reaches at other times.
TEST(MovingSky, APulsarComesWhenItIsDueInEveryChannel) {
  const ArrayLayout array = kilometer_array();
  simulate::SpectraConfig config;
  config.n_spectra = 1000;
  config.channels = {60e6, 25e3, 40};
  config.start_tai_ns = high_instant(array);
  simulate::Scene scene = one_source(20'000, 1000);
  auto& pulsar = scene.sources[0];
  pulsar.start_s = 0.003;
  pulsar.period_s = 0.0213;
  pulsar.duration_s = 0.1 * pulsar.period_s;
  pulsar.dm_pc_cm3 = 12;
  const simulate::SpectraStream stream(array, scene, config);
  auto record = stream.make_record();
  const double top_hz = config.channels.center_hz(39);
  std::int64_t n_on = 0, n_wrong = 0;
  for (Tick first = 40'000; first < 44'000; first += 1000) {
    stream.draw(first, record);
    for (const std::int64_t channel : {0, 13, 39}) {
      const double nu = config.channels.center_hz(channel) * 1e-6, top = top_hz * 1e-6;
      const double delay_s = 4148.8064 * 12 * (1 / (nu * nu) - 1 / (top * top));
      for (std::int64_t t = 0; t < 1000; ++t) {
        double power = 0;
        for (std::int64_t i = 0; i < 4; ++i)
          power += std::norm(spectra_sample(record, t, channel, i)) / 4;
        const double phase_s =
            std::fmod(static_cast<double>(first + t) / 25'000 - 0.003 - delay_s, 0.0213);
        const bool on = phase_s < 0.00213;
        n_on += on ? 1 : 0;
        // Off: twice 2.5^2; on: cut at 7. What is between is rare noise.
        n_wrong += on != (power > 35) ? 1 : 0;
      }
    }
  }
  EXPECT_NEAR(static_cast<double>(n_on), 0.1 * 12'000, 130);
  EXPECT_LT(n_wrong, 250);
}

// The same in time samples: dispersion is a filter there.
TEST(MovingSky, APulsarIsDispersedInSamples) {
  const ArrayLayout array = kilometer_array();
  constexpr std::int64_t kChannels = 64, kSamples = 64 * 1024;
  simulate::VoltageConfig config;
  config.n_samples = kSamples;
  config.start_tai_ns = high_instant(array);
  simulate::Scene scene = one_source(20'000, 1000);
  auto& pulsar = scene.sources[0];
  pulsar.start_s = 0.003;
  pulsar.period_s = 0.025;
  pulsar.duration_s = 0.0025;
  pulsar.dm_pc_cm3 = 4;
  const simulate::VoltageStream stream(array, scene, config);
  auto record = stream.make_record();
  const Tick first = 2 * kSamples;
  stream.draw(first, record);
  const math::Fft fft(kChannels);
  std::vector<std::vector<double>> power(kChannels);
  std::vector<cf64> window(kChannels);
  for (std::int64_t t = 0; t < kSamples; t += kChannels) {
    std::vector<double> sum(kChannels);
    for (std::int64_t i = 0; i < 4; ++i) {
      for (std::int64_t k = 0; k < kChannels; ++k) {
        const ci8 s = wire::unpack_mwa32t_word(record.samples[(t + k) * 4 + i]);
        window[k] = {static_cast<double>(s.re), static_cast<double>(s.im)};
      }
      fft.forward(window.data());
      for (std::int64_t k = 0; k < kChannels; ++k) sum[k] += std::norm(window[k]) / (4 * kChannels);
    }
    for (std::int64_t k = 0; k < kChannels; ++k) power[k].push_back(sum[k]);
  }
  const double top_mhz = 150.64;
  for (const std::int64_t c : {0, 12, 30, 33, 50}) {
    const double mhz = 150 + 1.28 * static_cast<double>(2 * c < kChannels ? c : c - kChannels) / 64;
    const double delay_s = 4148.8064 * 4 * (1 / (mhz * mhz) - 1 / (top_mhz * top_mhz));
    double sum[2] = {}, n[2] = {};
    for (std::size_t t = 0; t < power[c].size(); ++t) {
      const double at_s = (static_cast<double>(first) + 64 * static_cast<double>(t) + 32) / 1.28e6;
      const double phase_s = std::fmod(at_s - 0.003 - delay_s + 0.1, 0.025);
      // A channel of 20 kHz is dispersed by 0.2 ms itself.
      if (phase_s > 0.0003 && phase_s < 0.0022) sum[1] += power[c][t], n[1] += 1;
      if (phase_s > 0.0028 && phase_s < 0.0247) sum[0] += power[c][t], n[0] += 1;
    }
    EXPECT_NEAR(sum[0] / n[0], 32, 4) << "channel " << c;  // 4 steps rms a part
    EXPECT_GT(sum[1] / n[1], 160) << "channel " << c;
  }
}

// What is sent is the stream, lap after lap, whoever is faster.
TEST(MovingSky, SendersSendTheStream) {
  ArrayLayout array = kilometer_array();
  simulate::SpectraConfig config;
  config.n_spectra = 128;
  config.channels = {60e6, 25e3, 24};
  config.start_tai_ns = high_instant(array);
  const auto stream =
      std::make_shared<simulate::SpectraStream>(array, one_source(100, 1000), config);
  simulate::FengineSenderConfig to;
  to.format = "tbf";
  to.endpoints = {"udp://127.0.0.1:9"};
  to.first_channel = 2400;
  to.speed = 0;
  to.duration_s = 1000 / 25e3;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::byte>> sent;
  std::map<std::int64_t, std::int64_t> n_of_tick;
  to.sink = [&](double seconds, const Endpoint&, std::span<const std::byte> packet) {
    const std::int64_t tick = std::llround(seconds * 25e3);
    sent[{tick, n_of_tick[tick]++}].assign(packet.begin(), packet.end());
  };
  simulate::FengineSender sender(stream, to);
  sender.start();
  sender.join();
  ASSERT_EQ(sent.size(), 2000u);  // 24 channels in frames of 12
  auto record = stream->make_record();
  const auto packets = simulate::detail::fengine_packets(record, "tbf", 2400, 0, -1);
  std::vector<std::byte> payload, frame(packets.packet_bytes);
  for (Tick t = 0; t < 1000; ++t) {
    if (t % 128 == 0) stream->draw(t, record);
    for (std::int64_t block = 0; block < 2; ++block) {
      simulate::detail::pack_one(record, packets, block, 0, t, payload, frame.data());
      ASSERT_EQ((sent[{t, block}]), frame) << t << " block " << block;
    }
  }
}

TEST(MovingSky, ImpairmentsHappenAsOftenAsTheyAreAskedFor) {
  ArrayLayout array = kilometer_array();
  simulate::SpectraConfig config;
  config.n_spectra = 1000;
  config.channels = {60e6, 25e3, 12};
  const auto record = simulate::simulate_spectra(array, {}, config);
  simulate::FengineSenderConfig to;
  to.format = "tbf";
  to.endpoints = {"udp://127.0.0.1:9"};
  to.first_channel = 2400;
  to.first_time_tag = 0;
  to.speed = 0;
  to.duration_s = 20'000 / 25e3;
  std::vector<std::int64_t> spectra;
  to.sink = [&](double, const Endpoint&, std::span<const std::byte> packet) {
    std::int64_t tag = 0;
    for (int k = 16; k < 24; ++k) tag = tag << 8 | std::to_integer<std::int64_t>(packet[k]);
    spectra.push_back(tag / 7840);
  };
  const auto run = [&] {
    spectra.clear();
    simulate::FengineSender sender(record, to);
    sender.start();
    const auto report = sender.join();
    EXPECT_EQ(report.receivers[0].packets_sent, static_cast<std::int64_t>(spectra.size()));
    EXPECT_EQ(report.receivers[0].samples_sent, 20'000);
  };
  run();
  ASSERT_EQ(spectra.size(), 20'000u);
  to.impairments.loss = 0.1;
  run();
  EXPECT_NEAR(static_cast<double>(spectra.size()), 18'000, 220);
  to.impairments = {};
  to.impairments.duplicate = 0.05;
  run();
  EXPECT_NEAR(static_cast<double>(spectra.size()), 21'000, 160);
  to.impairments = {};
  to.impairments.reorder = 0.1;
  run();
  EXPECT_EQ(spectra.size(), 20'000u);
  std::int64_t backwards = 0;
  for (std::size_t k = 1; k < spectra.size(); ++k) backwards += spectra[k] < spectra[k - 1] ? 1 : 0;
  EXPECT_GT(backwards, 1000);
  to.impairments = {};
  to.impairments.clock_step_s = 0.02;
  to.impairments.clock_step_at_s = 0.4;
  run();
  EXPECT_EQ(spectra[9999], 9999);
  EXPECT_EQ(spectra[10'000], 10'500);
}

}  // namespace
}  // namespace ryle::pipeline
