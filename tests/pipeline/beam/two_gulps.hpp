// SPDX-License-Identifier: BSD-3-Clause
// Two gulps through a beamformer whose samples and results are in host memory.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/random.hpp"
#include "ryle/engine/beamform/beamform.hpp"

namespace ryle::test {

inline constexpr std::int64_t kGulp = 96,
                              kPart = 41;  // spectra: a gulp, and what of it goes in first

inline beamform::Config small_beams(beamform::OutputKind kind, beamform::OutputFormat format) {
  using beamform::OutputKind;
  beamform::Config c;
  c.n_antennas = 5;
  c.n_pols = 2;
  c.n_beams = 3;
  c.n_channels = 4;
  c.max_spectra = kGulp;
  c.format = SampleFormat::ci8;
  c.output = kind;
  c.output_format = format;
  c.integration = kind == OutputKind::voltage ? 1 : 8;
  if (kind == OutputKind::power) c.incoherent = {{1, 1, 0, 1, 1}};
  c.implementation = "cpu";
  return c;
}

/// Everything two gulps give, each in two pieces of the same memory, the way `ryle beamform` cuts
/// them: values with the strides of a gulp, counts, and a mask in the second piece.
struct Results {
  std::vector<std::byte> values;
  std::vector<std::uint32_t> low, high, used;
  std::vector<float> power;
  friend bool operator==(const Results&, const Results&) = default;
};

inline Results form_beams(beamform::Beamformer& engine, Queue& queue) {
  const auto& c = engine.config();
  const std::int64_t n_inputs = c.n_inputs();
  std::vector<cf32> weights(static_cast<std::size_t>(c.n_beams * c.n_channels * n_inputs));
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const auto key = combine(5, k);
    weights[k] = {static_cast<float>(gaussian(key)), static_cast<float>(gaussian(key ^ 1u))};
  }
  engine.set_weights(queue, {weights.data(), {c.n_beams, c.n_channels, n_inputs}});
  std::vector<float> scale(static_cast<std::size_t>(c.n_rows() * c.n_products() * c.n_channels));
  std::vector<float> offset(scale.size());
  for (std::size_t k = 0; k < scale.size(); ++k) {
    scale[k] = 0.001F * static_cast<float>(1 + k % 7);
    offset[k] = c.output == beamform::OutputKind::voltage ? 0 : 10;
  }
  const std::array<std::int64_t, 3> shape{c.n_rows(), c.n_products(), c.n_channels};
  engine.set_requantization(queue, {scale.data(), shape}, {offset.data(), shape});

  std::vector<ci8> samples(static_cast<std::size_t>(c.n_channels * kGulp * n_inputs));
  Results all;
  for (std::int64_t gulp = 0; gulp < 2; ++gulp) {
    for (std::size_t k = 0; k < samples.size(); ++k) {
      const auto key = combine(7, static_cast<std::uint64_t>(gulp), k);
      samples[k] = {static_cast<std::int8_t>(key % 200), static_cast<std::int8_t>(key >> 8 & 127)};
    }
    const std::int64_t windows = c.n_windows(gulp * kGulp, kGulp);
    std::vector<std::byte> memory(
        static_cast<std::size_t>(beamform::dense_output_bytes(c, windows)), std::byte{0xCD});
    beamform::Output out = beamform::dense_output(c, memory.data(), windows);
    std::vector<std::uint32_t> low(scale.size(), 99), high(scale.size(), 99);
    std::vector<std::uint32_t> used(static_cast<std::size_t>(c.n_beams * c.n_channels), 99);
    std::vector<float> power(used.size(), -1);
    out.saturated_low = low.data();
    out.saturated_high = high.data();
    out.n_used = used.data();
    out.weight_power = power.data();
    std::vector<std::uint64_t> present(
        static_cast<std::size_t>(c.n_channels * words_for_bits(n_inputs)), 0x3EF);
    for (std::int64_t t = 0; t < kGulp;) {
      const std::int64_t n = t == 0 ? kPart : kGulp - kPart;
      beamform::Input in;
      in.samples = samples.data() + t * n_inputs;
      in.n_spectra = n;
      in.first_tick = gulp * kGulp + t;
      in.step_stride_bytes = 2 * n_inputs;
      in.channel_stride_bytes = 2 * n_inputs * kGulp;
      if (t > 0) {
        in.present = present.data();
        in.slot_spectra = n;
      }
      const std::int64_t made = engine.execute(queue, in, out);
      EXPECT_EQ(made, c.n_windows(in.first_tick, n));
      out.values = static_cast<std::byte*>(out.values) + made * c.bytes_per_value();
      t += n;
      for (const auto& [to, from] :
           {std::pair{&all.low, &low}, std::pair{&all.high, &high}, std::pair{&all.used, &used}})
        to->insert(to->end(), from->begin(), from->end());
      all.power.insert(all.power.end(), power.begin(), power.end());
    }
    all.values.insert(all.values.end(), memory.begin(), memory.end());
  }
  return all;
}

}  // namespace ryle::test
