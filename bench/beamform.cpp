// SPDX-License-Identifier: BSD-3-Clause
// B-engine: 4+4-bit heaps in memory -> bytes of power (or floats) with time unit-stride. The first
// cases are gate G5: 32 and 256 beams of BEST-2 (5.12 GOP/s a beam), not integrated.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bench.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/beamform/beamform.hpp"

namespace ryle::bench {
namespace {

struct BeamformCase {
  std::int64_t antennas, beams, integration;
  beamform::OutputFormat format;
};

std::vector<BeamformCase> cases(bool quick) {
  if (quick) return {{32, 32, 1, beamform::OutputFormat::u8}};
  return {{32, 32, 1, beamform::OutputFormat::u8},    {32, 256, 1, beamform::OutputFormat::u8},
          {32, 32, 16, beamform::OutputFormat::u8},   {32, 256, 16, beamform::OutputFormat::u8},
          {32, 256, 16, beamform::OutputFormat::f32}, {32, 256, 1, beamform::OutputFormat::f32},
          {32, 1024, 1, beamform::OutputFormat::u8},  {256, 256, 16, beamform::OutputFormat::u8}};
}

beamform::Config config_of(const BeamformCase& k, const Options& options) {
  beamform::Config c;
  c.n_antennas = k.antennas;
  c.n_beams = k.beams;
  c.max_spectra = 2048;
  // Some milliseconds a run, shorter than a time slice; channels for every worker.
  const double ops = 8.0 * static_cast<double>(k.antennas * k.beams * c.max_spectra);
  c.n_channels = std::max<std::int64_t>(options.n_workers, static_cast<std::int64_t>(1e9 / ops));
  if (options.quick) c.n_channels = 2;
  c.order = beamform::InputOrder::pairs;
  c.integration = k.integration;
  c.output_format = k.format;
  return c;
}

std::vector<cf32> weights_of(const beamform::Config& c) {
  std::vector<cf32> w(c.n_beams * c.n_channels * c.n_antennas);
  for (std::size_t k = 0; k < w.size(); ++k) w[k] = cf32(std::polar(1.0, 6.283 * uniform(k)));
  return w;
}

void set_scale(beamform::Beamformer& beams, Queue& queue, float scale, float offset) {
  const beamform::Config& c = beams.config();
  const std::array extent{c.n_rows(), c.n_products(), c.n_channels};
  const auto cells = static_cast<std::size_t>(c.n_rows() * c.n_products() * c.n_channels);
  const std::vector<float> scales(cells, scale), offsets(cells, offset);
  beams.set_requantization(queue, {scales.data(), extent}, {offsets.data(), extent});
}

double value_at(const beamform::Config& c, const std::byte* p) {
  if (c.output_format == beamform::OutputFormat::u8) return static_cast<double>(*p);
  float value;
  std::memcpy(&value, p, 4);
  return value;
}

// The last channel of the timed engine's own output against the double reference: 256 spectra of
// every beam.
bool verify(const beamform::Config& c, const std::vector<cf32>& weights,
            const beamform::Input& input, const beamform::Output& output, float scale,
            float offset) {
  beamform::Config one = c;
  one.n_channels = 1;
  one.max_spectra = 256;
  one.implementation = "reference";
  Queue queue = Queue::cpu(1);
  auto reference = beamform::make_beamformer(queue, one);
  std::vector<cf32> last;
  for (std::int64_t beam = 0; beam < c.n_beams; ++beam) {
    const cf32* from = weights.data() + ((beam + 1) * c.n_channels - 1) * c.n_antennas;
    last.insert(last.end(), from, from + c.n_antennas);
  }
  reference->set_weights(queue, {last.data(), {c.n_beams, 1, c.n_antennas}});
  set_scale(*reference, queue, scale, offset);
  beamform::Input part = input;
  part.samples = static_cast<const std::byte*>(input.samples) +
                 (c.n_channels - 1) * c.max_spectra * c.n_antennas;
  part.n_spectra = 256;
  part.step_stride_bytes = c.block_spectra * c.n_antennas;
  part.channel_stride_bytes = part.step_stride_bytes;
  const std::int64_t n = one.n_windows(0, 256);
  std::vector<std::byte> want(dense_output_bytes(one, n));
  reference->execute(queue, part, dense_output(one, want.data(), n));
  const auto* got = static_cast<const std::byte*>(output.values) +
                    (c.n_channels - 1) * output.channel_stride_bytes;
  std::int64_t differ = 0;
  for (std::int64_t beam = 0; beam < c.n_beams; ++beam) {
    for (std::int64_t k = 0; k < n; ++k) {
      const double a = value_at(c, got + beam * output.row_stride_bytes + k * c.bytes_per_value());
      const double b = value_at(c, want.data() + (beam * n + k) * c.bytes_per_value());
      const bool bytes = c.output_format == beamform::OutputFormat::u8;
      if (std::fabs(a - b) > (bytes ? 1 : 1e-5 * b)) return false;
      differ += bytes && a != b;  // a tie, rounded after another order of operations
    }
  }
  return differ * 1000 <= c.n_beams * n;
}

void fill(Buffer<std::byte>& memory) {
  for (std::int64_t at = 0; at + 8 <= memory.bytes(); at += 8) {
    const std::uint64_t bits = mix64(static_cast<std::uint64_t>(at));
    std::memcpy(memory.data() + at, &bits, 8);
  }
}

void measure(const Options& options, const BeamformCase& k, const std::string& implementation,
             const Emit& emit) {
  beamform::Config config = config_of(k, options);
  config.implementation = implementation;
  Queue queue = Queue::cpu(options.n_workers);
  auto beams = beamform::make_beamformer(queue, config);
  const auto weights = weights_of(config);
  beams->set_weights(queue, {weights.data(), {config.n_beams, config.n_channels, k.antennas}});
  // Mean power of random codes: 43 LSB^2 an antenna; to code 64.
  const float scale = 64.0f / (43.0f * static_cast<float>(k.antennas)), offset = 0;
  set_scale(*beams, queue, scale, offset);

  const std::int64_t gulp_bytes = config.n_channels * config.max_spectra * k.antennas;
  const std::int64_t windows = config.max_spectra / config.integration;
  const std::int64_t out_bytes = dense_output_bytes(config, windows);
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::int64_t beyond = options.quick ? 0 : std::max<std::int64_t>(cache, 32 << 20) * 5 / 4;
  const std::int64_t n_gulps = 2 + beyond / (gulp_bytes + out_bytes);
  Buffer<std::byte> memory(n_gulps * gulp_bytes), out(n_gulps * out_bytes);
  fill(memory);
  beamform::Input input;
  input.n_spectra = config.max_spectra;
  const auto run = [&](std::int64_t gulp) {
    input.samples = memory.data() + gulp * gulp_bytes;
    const auto output = dense_output(config, out.data() + gulp * out_bytes, windows);
    beams->execute(queue, input, output);
    return output;
  };
  const auto output = run(0);

  Result result;
  result.engine = "beamform";
  result.implementation = std::string(beams->implementation());
  result.device = device_description(options.n_workers);
  result.sizes = {{"n_antennas", static_cast<double>(k.antennas)},
                  {"n_beams", static_cast<double>(k.beams)},
                  {"n_channels", static_cast<double>(config.n_channels)},
                  {"n_spectra", static_cast<double>(config.max_spectra)},
                  {"integration", static_cast<double>(k.integration)},
                  {"bytes_per_value", static_cast<double>(config.bytes_per_value())}};
  result.verified = verify(config, weights, input, output, scale, offset);
  result.rate_unit = "GOPS";
  result.useful_ops =
      cost(config).useful_ops_per_spectrum * static_cast<double>(config.max_spectra);
  result.bytes = static_cast<double>(gulp_bytes + out_bytes);
  if (result.verified) {
    const double before = ceiling_vpdpbusd_ops();
    std::tie(result.median_s, result.min_s) =
        time_runs(options.seconds_per_case, [&, gulp = std::int64_t{0}]() mutable {
          gulp = (gulp + 1) % n_gulps;
          run(gulp);
        });
    const double ceiling = std::max(before, ceiling_vpdpbusd_ops());
    result.rate = result.useful_ops / result.median_s * 1e-9;
    if (ceiling > 0) {
      result.roofline_fraction =
          result.useful_ops / result.median_s / (ceiling * options.n_workers);
      char text[64];
      std::snprintf(text, sizeof text, "vpdpbusd %d x 1 core %.1f GOPS", options.n_workers,
                    ceiling * 1e-9);
      result.roofline = text;
    }
  }
  emit(result);
}

}  // namespace

void bench_beamform(const Options& options, const Emit& emit) {
  std::vector<std::string> names{options.implementation};
  if (options.implementation == "all") {
    names.clear();
    for (const auto& name : beamform::available_implementations()) {
      if (name.rfind("cpu:", 0) == 0) names.push_back(name);
    }
  }
  for (const auto& k : cases(options.quick)) {
    for (const auto& name : names) measure(options, k, name, emit);
  }
}

}  // namespace ryle::bench
