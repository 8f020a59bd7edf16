// SPDX-License-Identifier: BSD-3-Clause
// The search on the device: the block of Magro 2014 (1024 channels, 49,152 samples of 51.2 us),
// codes in device memory, verified, kernel time by events over rotated blocks.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/bench_cuda.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/search/cuda/drift.hpp"
#include "ryle/engine/search/cuda/normalize.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/engine/search/search.hpp"

namespace ryle::bench {
namespace {

constexpr std::int64_t kChannels = 1024;
constexpr double kInterval_s = 51.2e-6;

search::Band band_of_block() {
  search::Band band;
  band.channel_width_hz = 20e6 / kChannels;
  for (std::int64_t c = 0; c < kChannels; ++c)
    band.center_hz.push_back(398e6 + (static_cast<double>(c) + 0.5) * band.channel_width_hz);
  band.sample_interval_s = kInterval_s;
  return band;
}

__device__ unsigned hash(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// Codes of 0 .. 63, mean 24, rms near 8: four uniform numbers of 0 .. 14 less 4.
__global__ void fill_codes(std::uint8_t* codes, std::int64_t n, unsigned seed) {
  for (std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; k < n;
       k += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const unsigned bits = hash(static_cast<unsigned>(k) ^ seed * 0x9e3779b9u);
    int code = -4;
    for (int m = 0; m < 4; ++m) code += static_cast<int>((bits >> (8 * m) & 255) * 15 >> 8);
    codes[k] = static_cast<std::uint8_t>(min(63, max(0, code)));
  }
}

/// Power of noise under a bandpass, another one in each row. @shape power [row][n]
__global__ void fill_power(float* power, std::int64_t n, std::int64_t n_rows) {
  const std::int64_t row = blockIdx.x;
  if (row >= n_rows) return;
  const float level = 100 + 20 * __sinf(0.07f * static_cast<float>(row % kChannels));
  for (std::int64_t t = threadIdx.x; t < n; t += blockDim.x) {
    const unsigned bits = hash(static_cast<unsigned>(row * n + t));
    int sum = 0;
    for (int m = 0; m < 4; ++m) sum += static_cast<int>(bits >> (8 * m) & 255);
    power[row * n + t] = level * (1 + 0.001f * static_cast<float>(sum - 510));
  }
}

/// A few blocks of codes on the device, the first on the host too.
struct Blocks {
  std::int64_t stride = 0;
  std::vector<Buffer<std::uint8_t>> device;
  std::vector<std::uint8_t> host;

  Blocks(Queue& queue, std::int64_t n_samples) : stride((n_samples + 127) / 128 * 128) {
    for (unsigned k = 0; k < 4; ++k) {
      device.emplace_back(kChannels * stride + search::kReadAhead, MemorySpace::device);
      fill_codes<<<1024, 256, 0, cuda::stream_of(queue)>>>(device.back().data(),
                                                           device.back().size(), k + 1);
      RYLE_CUDA_LAUNCHED("fill_codes");
    }
    host.resize(static_cast<std::size_t>(device[0].size()));
    copy_bytes(queue, host.data(), device[0].data(), device[0].bytes());
    queue.synchronize();
  }
};

Result row(const std::string& implementation, std::int64_t n_outputs, std::int64_t n_trials) {
  Result r;
  r.engine = "search";
  r.implementation = implementation;
  r.device = list_devices().at(1).description;
  r.sizes = {{"n_channels", static_cast<double>(kChannels)},
             {"n_outputs", static_cast<double>(n_outputs)},
             {"n_trials", static_cast<double>(n_trials)}};
  r.rate_unit = "x real time";
  return r;
}

void time_row(Result& r, Queue& queue, const Options& options, std::int64_t n_outputs,
              const std::function<void()>& body) {
  if (!r.verified) return;
  std::tie(r.median_s, r.min_s) = detail::time_queue(queue, options.seconds_per_case, body);
  r.rate = static_cast<double>(n_outputs) * kInterval_s / r.median_s;
}

/// 200,000 outputs, corners among them, against the definition.
bool verify_sums(const Blocks& blocks, const search::DedisperseConfig& config,
                 const std::vector<std::uint16_t>& sums, std::int64_t n_outputs) {
  for (std::uint64_t k = 0; k < 200'000; ++k) {
    const auto pick = [&](std::uint64_t salt, std::int64_t n) {
      if (k < 4) return k % 2 == salt % 2 ? std::int64_t{0} : n - 1;
      return static_cast<std::int64_t>(combine(salt, k) % static_cast<std::uint64_t>(n));
    };
    const std::int64_t trial = pick(2, config.n_trials), t = pick(3, n_outputs);
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < kChannels; ++c)
      sum += blocks.host[static_cast<std::size_t>(
          c * blocks.stride + t + config.delays[static_cast<std::size_t>(trial * kChannels + c)])];
    if (sum != sums[static_cast<std::size_t>(trial * n_outputs + t)]) return false;
  }
  return true;
}

}  // namespace

namespace {

search::DedisperseConfig linear_plan(const search::Band& band, double step, std::int64_t n_trials,
                                     std::int64_t n_outputs) {
  search::DmPlanConfig plan;
  plan.kind = "linear";
  plan.step = step;
  plan.count = n_trials;
  search::DedisperseConfig config;
  config.n_channels = kChannels;
  config.n_trials = n_trials;
  config.delays = search::delay_table(band, search::dm_trials(band, plan));
  config.max_outputs = n_outputs;
  return config;
}

/// Sums, verified by `good`, then their boxcars and peaks against the CPU's hits.
void measure_plan(Queue& queue, const Options& options, const Emit& emit,
                  const search::DedisperseConfig& config, const Blocks& blocks, bool exact) {
  const std::int64_t n_outputs = config.max_outputs;
  const auto engine = search::make_dedisperser(queue, config);
  std::vector<Buffer<std::uint16_t>> sums;
  for (int k = 0; k < 2; ++k) {
    sums.emplace_back(config.n_trials * n_outputs, MemorySpace::device);
    RYLE_CUDA(cudaMemset(sums.back().data(), 0xA5, static_cast<std::size_t>(sums[0].bytes())));
  }
  std::size_t turn = 0;
  const auto dedisperse = [&] {
    engine->execute(queue, blocks.device[turn % 4].data(), blocks.stride, n_outputs,
                    sums[turn % 2].data(), n_outputs);
    ++turn;
  };
  dedisperse();
  std::vector<std::uint16_t> found(static_cast<std::size_t>(sums[0].size()));
  copy_bytes(queue, found.data(), sums[0].data(), sums[0].bytes());
  queue.synchronize();
  Queue host = Queue::cpu(0);
  Result r = row(std::string(engine->implementation()) + " dedisperse", n_outputs, config.n_trials);
  if (exact) {
    r.verified = verify_sums(blocks, config, found, n_outputs);
  } else {
    search::DedisperseConfig on_cpu = config;
    on_cpu.implementation = config.implementation.substr(0, config.implementation.find(':'));
    std::vector<std::uint16_t> expected(found.size());
    search::make_dedisperser(host, on_cpu)
        ->execute(host, blocks.host.data(), blocks.stride, n_outputs, expected.data(), n_outputs);
    r.verified = found == expected;
  }
  r.bytes = static_cast<double>(blocks.device[0].bytes() + sums[0].bytes());
  r.useful_ops = static_cast<double>(kChannels * n_outputs) * static_cast<double>(config.n_trials);
  time_row(r, queue, options, n_outputs, dedisperse);
  emit(r);
  // Boxcars have their rows.
  if (config.implementation == "subband" || config.implementation == options.path) return;

  // The wait for statistics and the way of hits to the host are in it.
  search::DetectConfig boxcars;
  boxcars.n_trials = config.n_trials;
  boxcars.max_width = 256;
  boxcars.max_columns = n_outputs;
  boxcars.implementation = "cuda";
  const auto detector = search::make_detector(queue, boxcars);
  boxcars.implementation = "cpu";
  const auto on_host = search::make_detector(host, boxcars);
  search::DetectInput in;
  in.stride = in.n_columns = in.stat_end = n_outputs;
  in.end_start = n_outputs - 256;
  std::vector<search::Hit> hits, expected;
  in.sums = found.data();
  on_host->execute(host, in, expected);
  copy_bytes(queue, sums[0].data(), found.data(), sums[0].bytes());  // the timing wrote others
  in.sums = sums[0].data();
  detector->execute(queue, in, hits);
  r = row("search/cuda boxcars, peaks", n_outputs, config.n_trials);
  r.sizes.emplace_back("max_width", 256);
  r.verified = hits == expected;
  r.bytes = static_cast<double>(sums[0].bytes());
  time_row(r, queue, options, n_outputs, [&] {
    hits.clear();
    in.sums = sums[turn++ % 2].data();
    detector->execute(queue, in, hits);
  });
  emit(r);
}

/// Power of many beams to codes; one beam of the first gulp against the CPU's.
void measure_normalizer(Queue& queue, const Options& options, const Emit& emit,
                        const search::Band& band) {
  const std::int64_t n_beams = options.quick ? 4 : 128, n = options.quick ? 2048 : 8192;
  const std::int64_t beam = kChannels * n, n_cells = n / search::kCell;
  Buffer<float> power(n_beams * beam, MemorySpace::device);
  Buffer<std::uint8_t> codes(n_beams * beam, MemorySpace::device);
  Buffer<std::uint8_t> cells(n_beams * kChannels * n_cells, MemorySpace::device);
  fill_power<<<static_cast<unsigned>(n_beams * kChannels), 256, 0, cuda::stream_of(queue)>>>(
      power.data(), n, n_beams * kChannels);
  RYLE_CUDA_LAUNCHED("fill_power");
  search::NormalizeConfig config;
  config.n_channels = kChannels;
  config.spectra.band = band;
  search::CudaNormalizer normalizer(queue, config, n_beams, n);
  const auto normalize = [&] {
    normalizer.execute(queue, {power.data(), beam, n, n},
                       {codes.data(), beam, n, cells.data(), kChannels * n_cells, n_cells});
  };
  normalize();
  const std::int64_t checked = n_beams / 3;
  std::vector<float> of_beam(static_cast<std::size_t>(beam));
  std::vector<std::uint8_t> found(of_beam.size()), expected(of_beam.size());
  std::vector<std::uint8_t> expected_cells(static_cast<std::size_t>(kChannels * n_cells));
  copy_bytes(queue, of_beam.data(), power.data() + checked * beam, beam * 4);
  copy_bytes(queue, found.data(), codes.data() + checked * beam, beam);
  queue.synchronize();
  Queue host = Queue::cpu(0);
  search::NormalizeReport report;
  search::Normalizer(config).execute(host, of_beam.data(), n, n, expected.data(), n,
                                     expected_cells.data(), n_cells, report);
  Result r = row("search/cuda/normalize", n, 0);
  r.sizes = {{"n_beams", static_cast<double>(n_beams)},
             {"n_channels", static_cast<double>(kChannels)},
             {"n_samples", static_cast<double>(n)}};
  r.verified = found == expected;
  r.bytes = static_cast<double>(power.bytes() + codes.bytes());
  time_row(r, queue, options, n, normalize);
  emit(r);
}

/// Levels of many beams, half a second; one beam of the first blocks against the CPU's.
void measure_levels(Queue& queue, const Options& options, const Emit& emit) {
  const std::int64_t n_beams = options.quick ? 2 : 64, n = 8192, beam = kChannels * n;
  Buffer<float> power(n_beams * beam, MemorySpace::device);
  fill_power<<<static_cast<unsigned>(n_beams * kChannels), 256, 0, cuda::stream_of(queue)>>>(
      power.data(), n, n_beams * kChannels);
  RYLE_CUDA_LAUNCHED("fill_power");
  search::DriftConfig config;
  config.n_channels = kChannels;
  config.window_samples = search::drift_window(0, kInterval_s, 256);
  search::CudaDriftFilter filter(queue, config, n_beams, n);
  const std::int64_t checked = n_beams / 3;
  std::vector<float> of_beam(static_cast<std::size_t>(beam)), found(of_beam.size()),
      expected(of_beam.size());
  copy_bytes(queue, of_beam.data(), power.data() + checked * beam, beam * 4);
  queue.synchronize();
  Queue host = Queue::cpu(0);
  search::DriftFilter on_host(config, n);
  bool equal = true;
  for (int block = 0; block < 3; ++block) {
    const std::int64_t n_out = filter.execute(queue, {power.data(), beam, n, n});
    equal = equal && n_out == on_host.execute(host, of_beam.data(), n, n, expected.data(), n);
    const search::DevicePower out = filter.output();
    if (n_out == 0) continue;
    copy_bytes(queue, found.data(), out.values + checked * out.beam_stride, beam * 4);
    queue.synchronize();
    for (std::int64_t c = 0; c < kChannels; ++c)
      equal = equal && std::equal(expected.data() + c * n, expected.data() + c * n + n_out,
                                  found.data() + c * n);
  }
  Result r = row("search/cuda levels", n, 0);
  r.sizes = {{"n_beams", static_cast<double>(n_beams)},
             {"n_channels", static_cast<double>(kChannels)},
             {"n_samples", static_cast<double>(n)},
             {"window_samples", static_cast<double>(config.window_samples)}};
  r.verified = equal;
  r.bytes = static_cast<double>(2 * power.bytes());
  time_row(r, queue, options, n, [&] { filter.execute(queue, {power.data(), beam, n, n}); });
  emit(r);
}

}  // namespace

void bench_search_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  Queue queue = Queue::cuda();
  const std::int64_t n_outputs = options.quick ? 4096 : 49'152;
  const search::Band band = band_of_block();
  const bool tree_alone = options.path.rfind("fdmt:", 0) == 0;
  if (!tree_alone) measure_normalizer(queue, options, emit, band);
  if (!tree_alone) measure_levels(queue, options, emit);
  auto exact = linear_plan(band, 0.1, options.quick ? 96 : 864, n_outputs);
  const bool named = options.implementation.rfind("cuda:", 0) == 0;
  exact.implementation = named ? options.implementation : "cuda";
  // Every row of the tree up to the sweep of DM 87.
  auto tree =
      linear_plan(band, 1 / band.sweep_samples_per_dm(), options.quick ? 300 : 4161, n_outputs);
  tree.implementation = "fdmt";
  tree.dispersion.resize(kChannels);
  for (std::size_t c = 0; c < kChannels; ++c)
    tree.dispersion[c] = 1e18 / (band.center_hz[c] * band.center_hz[c]);
  const std::int64_t longest = std::max(*std::max_element(exact.delays.begin(), exact.delays.end()),
                                        *std::max_element(tree.delays.begin(), tree.delays.end()));
  const Blocks blocks(queue, n_outputs + longest + 1);
  if (tree_alone) {
    tree.implementation = options.path;
    return measure_plan(queue, options, emit, tree, blocks, false);
  }
  measure_plan(queue, options, emit, exact, blocks, true);
  if (named) return;
  measure_plan(queue, options, emit, tree, blocks, false);
  // Channels up to a sample off their delays.
  auto subbands = exact;
  subbands.implementation = "subband";
  subbands.smear_samples = 1;
  measure_plan(queue, options, emit, subbands, blocks, false);
}

}  // namespace ryle::bench
