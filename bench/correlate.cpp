// SPDX-License-Identifier: BSD-3-Clause
// X-engine: ci8 planar blocks in memory -> accumulated products, packing and folding included,
// finish() apart.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

#include "bench/bench.hpp"
#ifdef RYLE_HAVE_CUDA
#include "bench/bench_cuda.hpp"
#endif
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/engine/correlate/correlate.hpp"

namespace ryle::bench {
namespace {

struct CorrelateCase {
  std::int64_t n_inputs;
  std::int64_t n_spectra;
  std::int64_t n_channels;
};

std::int64_t last_level_cache_bytes() {
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : std::int64_t{32} << 20;
}

// A run is about 2.5 G operations (some milliseconds, shorter than a time slice), at least one
// channel per worker; successive runs read other gulps, together larger than the last-level cache.
std::vector<CorrelateCase> cases(bool quick, int n_workers) {
  if (quick) return {{64, 1024, 8}};
  std::vector<CorrelateCase> list;
  for (const std::int64_t n : {16, 32, 64, 128, 256, 512, 1024}) {
    for (const std::int64_t t : {1024, 4096}) {
      list.push_back({n, t, std::max<std::int64_t>(n_workers, 2'500'000'000 / (4 * n * n * t))});
    }
  }
  return list;
}

std::int64_t gulps_beyond_cache(const CorrelateCase& k, bool quick) {
  if (quick) return 2;
  return 2 + last_level_cache_bytes() * 5 / 4 / (2 * k.n_inputs * k.n_spectra * k.n_channels);
}

// Gaussian codes of 30 LSB: a table of 64 Ki values read at random offsets is random enough and
// fast to make.
void fill_gaussian(Buffer<std::byte>& memory, std::uint64_t seed) {
  static const std::vector<std::int8_t> table = [] {
    std::vector<std::int8_t> values(1 << 17);
    for (std::size_t k = 0; k < values.size(); ++k) {
      values[k] =
          static_cast<std::int8_t>(std::clamp(30 * gaussian(combine(17, k)), -128.0, 127.0));
    }
    return values;
  }();
  constexpr std::int64_t kPiece = 256;
  for (std::int64_t at = 0; at < memory.bytes(); at += kPiece) {
    const auto offset =
        static_cast<std::int64_t>(combine(seed, static_cast<std::uint64_t>(at)) & 0xffff);
    std::memcpy(memory.data() + at, table.data() + offset,
                static_cast<std::size_t>(std::min(kPiece, memory.bytes() - at)));
  }
}

// One input of one channel as plain numbers, the textbook way.
void unpack(const ConstBlockView& blocks, std::int64_t channel, std::int64_t input,
            std::int64_t n_spectra, std::vector<std::int32_t>& re, std::vector<std::int32_t>& im) {
  re.resize(n_spectra);
  im.resize(n_spectra);
  for (std::int64_t t = 0; t < n_spectra; ++t) {
    const cf64 v = get_sample(blocks, channel, t, input);
    re[t] = static_cast<std::int32_t>(v.real());
    im[t] = static_cast<std::int32_t>(v.imag());
  }
}

ci64 product(const std::vector<std::int32_t>& ar, const std::vector<std::int32_t>& ai,
             const std::vector<std::int32_t>& br, const std::vector<std::int32_t>& bi) {
  ci64 sum{0, 0};
  for (std::size_t t = 0; t < ar.size(); ++t) {
    sum.re += std::int64_t{ar[t]} * br[t] + std::int64_t{ai[t]} * bi[t];
    sum.im += std::int64_t{ai[t]} * br[t] - std::int64_t{ar[t]} * bi[t];
  }
  return sum;
}

// Whole rows of products (all i <= j) of three channels against int64: every row of small arrays,
// 12 of large ones.
bool verify(const correlate::Input& input, const correlate::Sums& sums, const CorrelateCase& k) {
  const std::int64_t pairs = n_pairs(k.n_inputs);
  if (static_cast<std::int64_t>(sums.integer.size()) != pairs * k.n_channels) return false;
  const std::int64_t rows = std::min<std::int64_t>(k.n_inputs, k.n_inputs <= 128 ? k.n_inputs : 12);
  std::vector<std::vector<std::int32_t>> re(k.n_inputs), im(re.size());
  for (std::uint64_t try_ = 0; try_ < 3; ++try_) {
    const auto channel =
        static_cast<std::int64_t>(combine(3, try_) % static_cast<std::uint64_t>(k.n_channels));
    for (std::int64_t i = 0; i < k.n_inputs; ++i)
      unpack(input.blocks, channel, i, k.n_spectra, re[i], im[i]);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t j = k.n_inputs - 1 - row * k.n_inputs / rows;
      for (std::int64_t i = 0; i <= j; ++i) {
        const std::int64_t at = channel * pairs + pair_index(i, j);
        if (!(sums.integer[at] == product(re[i], im[i], re[j], im[j]))) return false;
        if (sums.counts[at] != static_cast<std::uint32_t>(k.n_spectra)) return false;
      }
    }
  }
  return true;
}

struct Ceiling {
  double ops;
  std::string name;
};

Ceiling ceiling_for(const std::string& implementation) {
  const bool amx = implementation == "correlate/cpu/amx";
  const double ops = amx ? ceiling_amx_int8_ops() : ceiling_vpdpbusd_ops();
  return {ops, amx ? "tdpbssd" : "vpdpbusd"};
}

void measure(const Options& options, const CorrelateCase& k, const std::string& implementation,
             const Emit& emit) {
  Queue queue = Queue::cpu(options.n_workers);
  const correlate::Config config{k.n_inputs, k.n_channels, SampleFormat::ci8, k.n_spectra,
                                 implementation};
  auto correlator = correlate::make_correlator(queue, config);
  const std::int64_t gulp_bytes =
      dense_blocks_bytes(SampleFormat::ci8, k.n_channels, k.n_spectra, k.n_inputs);
  const std::int64_t n_gulps = gulps_beyond_cache(k, options.quick);
  Buffer<std::byte> memory(n_gulps * gulp_bytes);
  fill_gaussian(memory, 29);
  correlate::Input input;
  input.blocks =
      dense_blocks(memory.data(), SampleFormat::ci8, k.n_channels, k.n_spectra, k.n_inputs);
  input.n_spectra = k.n_spectra;
  correlator->execute(queue, input);
  correlate::Sums sums;
  correlator->finish(queue, sums);

  Result result;
  result.engine = "correlate";
  result.implementation = std::string(correlator->implementation());
  result.device = device_description(options.n_workers);
  result.sizes = {{"n_inputs", static_cast<double>(k.n_inputs)},
                  {"n_channels", static_cast<double>(k.n_channels)},
                  {"n_spectra", static_cast<double>(k.n_spectra)}};
  result.verified = verify(input, sums, k);
  result.rate_unit = "GOPS";
  result.useful_ops = cost(config).useful_ops_per_spectrum * static_cast<double>(k.n_spectra);
  result.bytes = static_cast<double>(gulp_bytes);
  if (result.verified) {
    const Ceiling before = ceiling_for(result.implementation);
    std::tie(result.median_s, result.min_s) =
        time_runs(options.seconds_per_case, [&, gulp = std::int64_t{0}]() mutable {
          gulp = (gulp + 1) % n_gulps;
          input.blocks.data = memory.data() + gulp * gulp_bytes;
          correlator->execute(queue, input);
        });
    const double ceiling = std::max(before.ops, ceiling_for(result.implementation).ops);
    result.rate = result.useful_ops / result.median_s * 1e-9;
    if (ceiling > 0) {
      result.roofline_fraction =
          result.useful_ops / result.median_s / (ceiling * options.n_workers);
      char text[64];
      std::snprintf(text, sizeof text, "%s %d x 1 core %.1f GOPS", before.name.c_str(),
                    options.n_workers, ceiling * 1e-9);
      result.roofline = text;
    }
  }
  emit(result);
}

}  // namespace

void bench_correlate(const Options& options, const Emit& emit) {
#ifdef RYLE_HAVE_CUDA
  bench_correlate_cuda(options, emit);
  if (options.implementation.rfind("cuda", 0) == 0) return;
#endif
  std::vector<std::string> names{options.implementation};
  if (options.implementation == "all") {
    names.clear();
    for (const auto& name : correlate::available_implementations()) {
      if (name.rfind("cpu:", 0) == 0 && name != "cpu:avx512") names.push_back(name);
    }
  }
  for (const auto& k : cases(options.quick, options.n_workers)) {
    for (const auto& name : names) measure(options, k, name, emit);
  }
}

void bench_levels(const Options& options, const Emit& emit) {
#ifdef RYLE_HAVE_CUDA
  if (const std::string why = cuda_unavailable_reason(); !why.empty())
    throw UnsupportedError("bench levels measures kernels of GPUs: " + why);
  bench_levels_cuda(options, emit);
#else
  (void)options, (void)emit;
  throw UnsupportedError(
      "bench levels measures kernels of GPUs, and this build has no CUDA; `ryle bench correlate` "
      "measures the correlators of this machine");
#endif
}

}  // namespace ryle::bench
