// SPDX-License-Identifier: BSD-3-Clause
// The CUDA channelizer: input 0 verified against the double reference, then timed by events, host
// work included only as far as it delays the device.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "bench/bench_cuda.hpp"
#include "bench/cuda/channelize_chain.cuh"
#include "ryle/core/random.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/channelize/channelize.hpp"

namespace ryle::bench {
namespace {

using namespace channelize;

struct Case {
  SampleFormat input;
  std::int64_t n_inputs;
  std::int64_t n_channels;
  std::int64_t n_taps;
  std::int64_t n_spectra;
  std::string implementation = "auto";
  bool phases = true;  // delays that change, so that every sample is turned
  bool dither = true;
  bool statistics = true;  // handed to the host after each gulp
};

std::string label(const Case& c) {
  return c.implementation + " " + std::to_string(c.n_channels) + (c.phases ? " 1" : " 0") +
         (c.dither ? " 1" : " 0") + (c.statistics ? " 1" : " 0");
}

std::int64_t n_samples(const Config& config, std::int64_t n_spectra) {
  return (n_spectra - 1) * step_length(config) + filter_length(config);
}

Config make_config(const Case& c) {
  Config config;
  config.n_inputs = c.n_inputs;
  config.n_channels = c.n_channels;
  config.n_taps = c.n_taps;
  config.layout.format = c.input;
  config.sample_rate_hz = 1.28e6;
  config.reference_hz = 150e6;
  config.max_spectra = c.n_spectra;
  config.implementation = c.implementation;
  config.dither = c.dither;
  const std::int64_t bits = bits_per_sample(c.input);
  config.layout.sample_stride_bits = bits;
  config.layout.input_stride_bits = (n_samples(config, c.n_spectra) * bits + 127) / 128 * 128;
  return config;
}

/// Phases but no whole-sample step: the usual case of an array that tracks.
std::vector<DelayPolynomial> make_delays(const Config& config) {
  std::vector<DelayPolynomial> delays(static_cast<std::size_t>(config.n_inputs));
  for (std::size_t p = 0; p < delays.size(); ++p) {
    delays[p].delay_s[0] = 1e-9 * static_cast<double>(p % 50);
    delays[p].delay_s[1] = 1e-13;
    delays[p].phase_turns[0] = 0.1 * static_cast<double>(p);
  }
  return delays;
}

bool verify(Queue& queue, const Config& config, const std::vector<DelayPolynomial>& delays,
            const cf32 gain, const Buffer<std::byte>& samples, const BlockView& blocks) {
  constexpr std::int64_t kSpectra = 64;
  const std::int64_t needed = n_samples(config, kSpectra);
  const std::int64_t n_bytes = (needed * config.layout.sample_stride_bits + 7) / 8;
  std::vector<std::byte> raw(static_cast<std::size_t>(n_bytes));
  copy_bytes(queue, raw.data(), samples.data(), n_bytes);
  std::vector<std::byte> found(static_cast<std::size_t>(config.n_channels * kBlockBytes));
  for (std::int64_t channel = 0; channel < config.n_channels; ++channel) {
    copy_bytes(queue, found.data() + channel * kBlockBytes, blocks.cell(channel, 0, 0),
               kBlockBytes);
  }
  queue.synchronize();
  Config one = config;
  one.n_inputs = 1;
  one.max_spectra = kSpectra;
  one.implementation = "reference";
  auto host = Queue::cpu(1);
  auto reference = make_channelizer(host, one);
  reference->set_delays(std::span(delays).first(1));
  std::vector<cf32> gains(static_cast<std::size_t>(config.n_channels), gain);
  reference->set_gains(View<const cf32, 2>(gains.data(), {1, config.n_channels}));
  std::vector<std::byte> wanted(found.size(), std::byte{0xCD});
  std::uint64_t valid = 0;
  const BlockView view = dense_blocks(wanted.data(), one.output, one.n_channels, kSpectra, 1);
  reference->execute(host, {raw.data(), 0, needed, {}}, 0, kSpectra,
                     {.blocks = view, .valid = &valid, .valid_words = 1});
  std::int64_t different = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const int by = std::abs(static_cast<int>(static_cast<signed char>(found[k])) -
                            static_cast<signed char>(wanted[k]));
    if (by > 1) return false;
    different += by;
  }
  return valid == ~std::uint64_t{0} &&
         different <= 1 + static_cast<std::int64_t>(wanted.size()) / 10'000;
}

/// Device memory of one case: sets of samples and blocks in turn, so that no run finds the last
/// one's data in the cache.
struct Data {
  static constexpr std::int64_t kSets = 3;
  std::vector<Buffer<std::byte>> samples;
  std::vector<Buffer<std::byte>> blocks;
  std::int64_t in_bytes;
  std::int64_t out_bytes;

  Data(Queue& queue, const Case& c, const Config& config)
      : in_bytes(config.layout.input_stride_bits / 8 * c.n_inputs),
        out_bytes(dense_blocks_bytes(config.output, c.n_channels, c.n_spectra, c.n_inputs)) {
    for (std::int64_t s = 0; s < kSets; ++s) {
      samples.emplace_back(in_bytes, MemorySpace::device);
      blocks.emplace_back(out_bytes, MemorySpace::device);
      detail::fill_random(samples.back().data(), in_bytes, c.input != SampleFormat::ci5,
                          static_cast<std::uint64_t>(s), queue);
      RYLE_CUDA(cudaMemset(blocks.back().data(), 0xCD, static_cast<std::size_t>(out_bytes)));
    }
  }
};

/// One gulp from samples to blocks on the queue.
using Run = std::function<void(const std::byte* samples, const BlockView& blocks)>;

Result time_runs(Queue& queue, const Case& c, const Config& config, const Options& options,
                 const Run& execute, const std::vector<DelayPolynomial>& delays, cf32 gain,
                 double fma_ops, double bytes_per_s) {
  Data data(queue, c, config);
  const auto run = [&](std::int64_t set) {
    const auto s = static_cast<std::size_t>(set);
    const BlockView blocks =
        dense_blocks(data.blocks[s].data(), config.output, c.n_channels, c.n_spectra, c.n_inputs);
    execute(data.samples[s].data(), blocks);
    return blocks;
  };
  Result r;
  r.engine = "channelize";
  r.device = list_devices().at(1).description;
  r.sizes = {{"n_inputs", c.n_inputs},
             {"n_channels", c.n_channels},
             {"n_taps", c.n_taps},
             {"n_spectra", c.n_spectra},
             {"input_bits", bits_per_sample(c.input)},
             {"complex_input", is_complex(c.input) ? 1 : 0},
             {"phases", c.phases ? 1 : 0},
             {"dither", c.dither ? 1 : 0},
             {"statistics", c.statistics ? 1 : 0}};
  const BlockView first = run(0);
  queue.synchronize();
  r.verified = verify(queue, config, delays, gain, data.samples[0], first);
  if (!r.verified) return r;
  std::int64_t next = 0;
  const auto [median_s, min_s] =
      detail::time_queue(queue, options.seconds_per_case, [&] { run(next++ % Data::kSets); });
  r.median_s = median_s;
  r.min_s = min_s;
  const auto out_samples = static_cast<double>(c.n_inputs * c.n_channels * c.n_spectra);
  r.useful_ops = cost(config).useful_ops_per_sample * out_samples;
  r.bytes = static_cast<double>(data.in_bytes + data.out_bytes);
  r.rate = out_samples / median_s / 1e9;
  r.rate_unit = "Gsamples/s";
  const double arithmetic_s = r.useful_ops / fma_ops;
  const double memory_s = r.bytes / bytes_per_s;
  r.roofline_fraction = std::max(arithmetic_s, memory_s) / median_s;
  r.roofline = memory_s > arithmetic_s
                   ? "copy " + std::to_string(static_cast<long>(bytes_per_s / 1e9)) + " GB/s"
                   : "fma f32 " + std::to_string(static_cast<long>(fma_ops / 1e9)) + " GFLOPS";
  return r;
}

std::vector<DelayPolynomial> delays_of(const Case& c, const Config& config) {
  if (c.phases) return make_delays(config);
  return std::vector<DelayPolynomial>(static_cast<std::size_t>(config.n_inputs));
}

Result measure(const Case& c, const Options& options, double fma_ops, double bytes_per_s) {
  Queue queue = Queue::cuda();
  const Config config = make_config(c);
  auto channelizer = make_channelizer(queue, config);
  const auto delays = delays_of(c, config);
  const cf32 gain(c.input == SampleFormat::ci5 ? 1.2f : 0.5f, 0);
  std::vector<cf32> gains(static_cast<std::size_t>(c.n_inputs * c.n_channels), gain);
  channelizer->set_delays(delays);
  channelizer->set_gains(View<const cf32, 2>(gains.data(), {c.n_inputs, c.n_channels}));
  const std::int64_t words = (c.n_spectra + 63) / 64;
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(c.n_inputs * words));
  std::vector<ChannelStatistics> statistics(static_cast<std::size_t>(c.n_inputs * c.n_channels));
  const Run run = [&](const std::byte* samples, const BlockView& blocks) {
    Output output;
    output.blocks = blocks;
    output.valid = valid.data();
    output.valid_words = words;
    output.statistics = c.statistics ? statistics.data() : nullptr;
    channelizer->execute(queue, {samples, 0, n_samples(config, c.n_spectra), {}}, 0, c.n_spectra,
                         output);
  };
  Result r = time_runs(queue, c, config, options, run, delays, gain, fma_ops, bytes_per_s);
  r.implementation = channelizer->implementation();
  return r;
}

Result measure_chain(const Case& c, const chain::CuFft& fft, const Options& options, double fma_ops,
                     double bytes_per_s) {
  Queue queue = Queue::cuda();
  const Config config = make_config(c);
  const auto delays = delays_of(c, config);
  const cf32 gain(0.5f, 0);
  chain::Chain chain(queue, fft, config, delays, gain);
  const Run run = [&](const std::byte* samples, const BlockView& blocks) {
    chain.execute(queue, samples, blocks);
  };
  Result r = time_runs(queue, c, config, options, run, delays, gain, fma_ops, bytes_per_s);
  r.implementation = "channelize/cuda/chain of cuFFT";
  return r;
}

}  // namespace

/// options.path but "all": only cases whose "IMPLEMENTATION CHANNELS PHASES DITHER STATISTICS" has
/// this in it.
void bench_channelize_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const double fma_ops = ceiling_cuda_fma_f32_ops();
  const double bytes_per_s = ceiling_cuda_copy_bytes_per_s();
  using enum SampleFormat;
  std::vector<Case> full = {
      {ci8, 64, 1024, 8, 2048}, {ci8, 256, 128, 8, 4096}, {ci5, 64, 128, 8, 8192},
      {ci8, 64, 256, 8, 4096},  {ci8, 64, 2048, 8, 1024}, {ci8, 64, 4096, 8, 512},
      {ci8, 64, 1024, 1, 2048}, {i8, 64, 1024, 8, 2048},  {ci8, 64, 1000, 8, 2048}};
  for (const std::int64_t k : {128, 256, 512, 1024}) {
    const std::int64_t n_spectra = 8'388'608 / k;  // 2 GiB of samples and blocks of 64 inputs
    full.push_back({ci8, 64, k, 8, n_spectra, "cuda:fused"});
    full.push_back({ci8, 64, k, 8, n_spectra, "cuda:fused", false});
    full.push_back({ci8, 64, k, 8, n_spectra, "cuda:fused", false, false});
    full.push_back({ci8, 64, k, 8, n_spectra, "cuda:fused", false, false, false});
  }
  const std::vector<Case> quick = {{ci8, 8, 64, 8, 256}};
  const auto asked_for = [&](const Case& c) {
    return options.path == "all" || label(c).find(options.path) != std::string::npos;
  };
  for (const Case& c : options.quick ? quick : full) {
    if (asked_for(c)) emit(measure(c, options, fma_ops, bytes_per_s));
  }
  const chain::CuFft fft = chain::CuFft::load();
  if (!fft.found() || options.quick) return;
  for (const std::int64_t k : {256, 1024}) {
    const Case c{ci8, 64, k, 8, 8'388'608 / k, "chain", true, true, false};
    Case planned = c;
    planned.implementation = "auto";
    if (asked_for(c)) emit(measure_chain(planned, fft, options, fma_ops, bytes_per_s));
  }
}

}  // namespace ryle::bench
