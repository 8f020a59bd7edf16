// SPDX-License-Identifier: BSD-3-Clause
// `ryle bench channelize`: samples in memory to planar blocks, delays with rates, complex gains,
// dither, statistics on.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

#include "bench/bench.hpp"
#ifdef RYLE_HAVE_CUDA
#include "bench/bench_cuda.hpp"
#endif
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/engine/channelize/channelize.hpp"

namespace ryle::bench {
namespace {

struct ChannelizeCase {
  channelize::Config config;
  std::int64_t n_spectra;  // per execute()
};

SampleLayout per_input(SampleFormat format, std::int64_t n_samples) {
  SampleLayout layout;
  layout.format = format;
  layout.sample_stride_bits = bits_per_sample(format);
  layout.input_stride_bits = n_samples * layout.sample_stride_bits;
  return layout;
}

/// 8 taps, 1024 channels, ci8 to ci8: the case of the speed target.
ChannelizeCase pfb_case(bool quick) {
  ChannelizeCase c{{}, quick ? 64 : 1024};
  c.config.n_inputs = quick ? 1 : 8;
  c.config.n_channels = 1024;
  c.config.n_taps = 8;
  c.config.layout = per_input(SampleFormat::ci8, (c.n_spectra + 8) * 1024);
  c.config.sample_rate_hz = 200e6;
  return c;
}

/// MWA-32T: 64 inputs interleaved in time, 5+5 bits in 16, 128 channels, 4 taps Hamming.
ChannelizeCase mwa32t_case() {
  ChannelizeCase c{{}, 2560};
  c.config.n_inputs = 64;
  c.config.n_channels = 128;
  c.config.n_taps = 4;
  c.config.window = channelize::Window::hamming;
  c.config.layout.format = SampleFormat::ci5;
  c.config.layout.input_stride_bits = 16;
  c.config.layout.sample_stride_bits = 64 * 16;
  c.config.sample_rate_hz = 1.28e6;
  return c;
}

/// TART-like: real 1-bit samples, 24 inputs.
ChannelizeCase one_bit_case() {
  ChannelizeCase c{{}, 2048};
  c.config.n_inputs = 24;
  c.config.n_channels = 512;
  c.config.n_taps = 4;
  c.config.layout = per_input(SampleFormat::i1, (c.n_spectra + 4) * 1024);
  c.config.layout.encoding = Encoding::levels;
  c.config.sample_rate_hz = 16.368e6;
  return c;
}

std::int64_t gulp_samples(const ChannelizeCase& c) {
  // Four samples to spare on either side for the delays, and a few for whole cache lines.
  return (c.n_spectra - 1) * channelize::step_length(c.config) +
         channelize::filter_length(c.config) + 64;
}

void set_corrections(channelize::Channelizer& engine, const channelize::Config& config) {
  std::vector<channelize::DelayPolynomial> delays(config.n_inputs);
  std::vector<cf32> gains(config.n_inputs * config.n_channels);
  for (std::int64_t p = 0; p < config.n_inputs; ++p) {
    // Early by 10 to 30 samples: the window moves into the gulp, which starts at tick 0.
    delays[p].delay_s[0] = -(10.0 + 20.0 * uniform(combine(1, p))) / config.sample_rate_hz;
    delays[p].delay_s[1] = 1e-10 * static_cast<double>(p % 7 - 3);
    delays[p].phase_turns[0] = uniform(combine(2, p));
    const double level = config.layout.format == SampleFormat::ci8   ? 0.6
                         : config.layout.format == SampleFormat::ci5 ? 1.7
                                                                     : 16;
    for (std::int64_t c = 0; c < config.n_channels; ++c) {
      const auto g = std::polar(level, 6.283 * uniform(combine(3, p, c)));
      gains[p * config.n_channels + c] = cf32(g);
    }
  }
  engine.set_delays(delays);
  engine.set_gains(View<const cf32, 2>(gains.data(), {config.n_inputs, config.n_channels}));
}

/// Gaussian codes: zeros or a constant would flatter nothing here, but saturate nothing either.
void fill(std::byte* bytes, std::int64_t n, const channelize::Config& config, std::uint64_t seed) {
  if (config.layout.format != SampleFormat::ci8) {
    for (std::int64_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(mix64(seed + i));
    return;
  }
  std::int8_t table[4096];
  for (int i = 0; i < 4096; ++i)
    table[i] =
        static_cast<std::int8_t>(std::lrint(std::clamp(30 * gaussian(2 * i), -128.0, 127.0)));
  for (std::int64_t i = 0; i < n; ++i)
    bytes[i] = static_cast<std::byte>(table[mix64(seed + i) & 4095]);
}

struct Buffers {
  Buffers(const ChannelizeCase& c, MemorySpace space, std::int64_t count)
      : sample_bytes((gulp_samples(c) * c.config.layout.sample_stride_bits +
                      (c.config.layout.input_stride_bits > c.config.layout.sample_stride_bits
                           ? (c.config.n_inputs - 1) * c.config.layout.input_stride_bits
                           : 0)) /
                     8),
        block_bytes(dense_blocks_bytes(c.config.output, c.config.n_channels, c.n_spectra,
                                       c.config.n_inputs)),
        n(count),
        samples(sample_bytes * count, space),
        blocks(block_bytes * count, space),
        words(words_for_bits(c.n_spectra)),
        valid(c.config.n_inputs * words),
        statistics(c.config.n_inputs * c.config.n_channels) {}

  std::int64_t sample_bytes, block_bytes, n;
  Buffer<std::byte> samples, blocks;
  std::int64_t words;
  Buffer<std::uint64_t> valid;
  Buffer<channelize::ChannelStatistics> statistics;

  channelize::Input input(const ChannelizeCase& c, std::int64_t i) const {
    return {samples.data() + i * sample_bytes, 0, gulp_samples(c), {}};
  }
  channelize::Output output(const ChannelizeCase& c, std::int64_t i, std::int64_t n_spectra) const {
    return {dense_blocks(blocks.data() + i * block_bytes, c.config.output, c.config.n_channels,
                         n_spectra, c.config.n_inputs),
            valid.data(), words, statistics.data()};
  }
};

/// Compares the first spectra with the reference: at most one unit apart, in at most 2e-4 of the
/// parts (rounding ties).
bool verify(Queue& queue, channelize::Channelizer& engine, const ChannelizeCase& c,
            const Buffers& buffers) {
  const std::int64_t n = std::min<std::int64_t>(c.n_spectra, 80);
  channelize::Config config = c.config;
  config.implementation = "reference";
  config.max_spectra = n;
  Queue host = Queue::cpu(1);
  auto reference = channelize::make_channelizer(host, config);
  set_corrections(*reference, config);
  ChannelizeCase small = c;
  small.n_spectra = n;
  Buffers want(small, MemorySpace::host, 1);
  copy_bytes(queue, want.samples.data(), buffers.samples.data(), want.sample_bytes);
  engine.execute(queue, buffers.input(c, 0), 0, n, buffers.output(c, 0, n));
  Buffer<std::byte> got(want.block_bytes);
  copy_bytes(queue, got.data(), buffers.blocks.data(), want.block_bytes);
  queue.synchronize();
  // The small case holds the whole first gulp of each input only when inputs are interleaved or the
  // strides agree.
  const channelize::Input input{want.samples.data(), 0, gulp_samples(small), {}};
  Buffer<std::byte> all(buffers.sample_bytes);
  copy_bytes(queue, all.data(), buffers.samples.data(), buffers.sample_bytes);
  queue.synchronize();
  channelize::Input whole = buffers.input(c, 0);
  whole.samples = all.data();
  static_cast<void>(input);
  reference->execute(host, whole, 0, n, want.output(small, 0, n));
  std::int64_t apart = 0;
  std::int64_t far = 0;
  std::int64_t nonzero = 0;
  for (std::int64_t i = 0; i < want.block_bytes; ++i) {
    const int a = static_cast<int>(static_cast<std::int8_t>(got[i]));
    const int b = static_cast<int>(static_cast<std::int8_t>(want.blocks[i]));
    apart += a != b;
    far += std::abs(a - b) > 1;
    nonzero += b != 0;
  }
  return far == 0 && apart <= want.block_bytes / 5000 && nonzero > want.block_bytes / 4;
}

Result measure(const std::string& implementation, const Options& options, ChannelizeCase c) {
  const bool device = implementation.rfind("cuda", 0) == 0;
  Queue queue = device ? Queue::cuda() : Queue::cpu(options.n_workers);
  c.config.implementation = implementation;
  c.config.max_spectra = c.n_spectra;
  const auto engine = channelize::make_channelizer(queue, c.config);
  set_corrections(*engine, c.config);
  const MemorySpace space = device ? MemorySpace::device : MemorySpace::host;
  const std::int64_t one = Buffers(c, space, 1).sample_bytes + Buffers(c, space, 1).block_bytes;
  const std::int64_t total =
      options.quick ? one : std::int64_t{320} << 20;  // about three times a large cache
  Buffers buffers(c, space, std::max<std::int64_t>(1, total / one));
  Buffer<std::byte> source(buffers.sample_bytes);
  for (std::int64_t i = 0; i < buffers.n; ++i) {
    if (i < 2) fill(source.data(), buffers.sample_bytes, c.config, 1000003 * i);
    copy_bytes(queue, buffers.samples.data() + i * buffers.sample_bytes, source.data(),
               buffers.sample_bytes);
    queue.synchronize();
  }
  Result r;
  r.engine = "channelize";
  r.implementation = engine->implementation();
  r.device = device ? list_devices().back().description : device_description(options.n_workers);
  r.sizes = {{"n_inputs", static_cast<double>(c.config.n_inputs)},
             {"n_channels", static_cast<double>(c.config.n_channels)},
             {"n_taps", static_cast<double>(c.config.n_taps)},
             {"n_spectra", static_cast<double>(c.n_spectra)},
             {"bits_per_sample", static_cast<double>(bits_per_sample(c.config.layout.format))}};
  r.rate_unit = "Gsamples/s";
  r.verified = verify(queue, *engine, c, buffers);
  if (!r.verified) return r;
  std::int64_t turn = 0;
  std::tie(r.median_s, r.min_s) = time_runs(options.quick ? 0.02 : options.seconds_per_case, [&] {
    const std::int64_t i = turn++ % buffers.n;
    engine->execute(queue, buffers.input(c, i), 0, c.n_spectra, buffers.output(c, i, c.n_spectra));
    queue.synchronize();
  });
  // Samples are counted at the receiver: real input has 2K samples to K channels.
  const auto samples =
      static_cast<double>(c.n_spectra * channelize::step_length(c.config) * c.config.n_inputs);
  const auto outputs = static_cast<double>(c.n_spectra * c.config.n_channels * c.config.n_inputs);
  r.useful_ops = channelize::cost(c.config).useful_ops_per_sample * outputs;
  r.bytes = static_cast<double>(buffers.sample_bytes + buffers.block_bytes);
  r.rate = samples / r.median_s * 1e-9;
  if (!device) {
    const double ceiling = ceiling_fma_f32_ops() * options.n_workers;
    char text[64];
    std::snprintf(text, sizeof text, "fp32 FMA %d core%s %.1f GFLOPS", options.n_workers,
                  options.n_workers == 1 ? "" : "s", ceiling * 1e-9);
    r.roofline = text;
    r.roofline_fraction = ceiling > 0 ? r.useful_ops / r.median_s / ceiling : 0;
  }
  return r;
}

}  // namespace

void bench_channelize(const Options& options, const Emit& emit) {
#ifdef RYLE_HAVE_CUDA
  bench_channelize_cuda(options, emit);
  if (options.implementation.rfind("cuda", 0) == 0) return;
#endif
  std::vector<std::string> names{options.implementation};
  if (options.implementation == "all") {
    names = channelize::available_implementations();
    std::erase_if(names, [](const std::string& name) {  // the GPU is timed by its own clock above
      return name == "reference" || name.rfind("cuda", 0) == 0;
    });
  }
  for (const auto& each : names) {
    emit(measure(each, options, pfb_case(options.quick)));
    if (options.quick) continue;
    emit(measure(each, options, mwa32t_case()));
    emit(measure(each, options, one_bit_case()));
  }
}

}  // namespace ryle::bench
