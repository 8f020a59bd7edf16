// SPDX-License-Identifier: BSD-3-Clause
// The tree as the device makes it, thread by thread on the host: the integers of the definition.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include <gtest/gtest.h>

#include <algorithm>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/cuda/fdmt.cuh"
#include "ryle/engine/search/device_memory.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

using namespace detail::device_tree;

struct EmulatedTree {
  std::int64_t n_channels, n_trials;
  double step;  // in rows
  int max_code;
  std::int64_t n_outputs;
  bool aligned;
  int shared_kib = 227;  // of a multiprocessor
};

DedisperseConfig config_of(const EmulatedTree& k) {
  const Band band = test::best2_band(k.n_channels);
  std::vector<double> dms;
  for (std::int64_t i = 0; i < k.n_trials; ++i)
    dms.push_back(static_cast<double>(i) * k.step / std::max(1e-9, band.sweep_samples_per_dm()));
  DedisperseConfig config;
  config.n_channels = k.n_channels;
  config.n_trials = k.n_trials;
  config.delays = delay_table(band, dms);
  config.max_code = k.max_code;
  config.max_outputs = k.n_outputs;
  for (const double hz : band.center_hz) config.dispersion.push_back(1e18 / (hz * hz));
  return config;
}

struct Codes {
  std::vector<std::uint8_t> memory;
  std::int64_t stride = 0;
};

std::vector<std::uint16_t> run_kernels(const EmulatedTree& k, const DedisperseConfig& config,
                                       const Codes& codes, std::int64_t sum_stride) {
  TileLimits limits;
  limits.small_beams_bytes = (k.shared_kib - 1) * 1024;
  limits.bytes = (k.shared_kib / 2 - 1) * 1024;
  const std::vector<Pass> passes = tree_passes(config, limits);
  const auto max_delay = *std::max_element(config.delays.begin(), config.delays.end());
  Work w{};
  w.half = device_tree_half(k.n_outputs);
  w.n_outputs = k.n_outputs;
  w.n_codes = k.n_outputs + max_delay;
  const std::int64_t stride = device_tree_stride(k.n_outputs, max_delay);
  std::vector<std::uint16_t> sums(static_cast<std::size_t>(config.n_trials * sum_stride), 0xABAB);
  std::vector<std::vector<std::uint32_t>> all;
  for (std::size_t p = 0; p < passes.size(); ++p)
    all.emplace_back(static_cast<std::size_t>(passes[p].n_rows * stride), 0xCDCDCDCD);
  for (std::size_t p = 0; p < passes.size(); ++p) {
    const Pass& pass = passes[p];
    w.last = p + 1 == passes.size();
    auto& rows = all[p];
    w.in = pass.codes ? static_cast<const void*>(codes.memory.data()) : all[p - 1].data();
    w.in_stride = pass.codes ? codes.stride : stride;
    w.out = w.last ? static_cast<void*>(sums.data()) : rows.data();
    w.out_stride = w.last ? sum_stride : stride;
    w.padded = k.n_outputs == 2 * w.half && sum_stride % 2 == 0;
    w.tiles = pass.tiles.data();
    w.inputs = pass.codes ? static_cast<const void*>(pass.code_inputs.data()) : pass.inputs.data();
    w.steps = pass.steps.data();
    w.back = p % 2 != 0;
    w.n_tiles = static_cast<int>(pass.tiles.size());
    w.zeros = pass.odd ? pass.input_bytes : -1;
    w.steps_at = pass.input_bytes + (pass.odd ? kZeroBytes : 0);
    w.shared_bytes = w.steps_at + pass.step_bytes;
    // Rows far apart share no input: few of them take more than half of the memory.
    EXPECT_LE(w.shared_bytes, k.step <= 1 ? limits.bytes : limits.small_beams_bytes);
    const int words = pass.codes ? kCodeTileWords : kTileWords;
    w.n_times = static_cast<int>((w.half + pass.longest + words - 1) / words);
    const auto n_blocks = static_cast<unsigned>(w.n_times * w.n_tiles);
    if (!pass.codes) {
      simt::launch({{n_blocks}, {kTileThreads}, static_cast<std::size_t>(w.shared_bytes)}, 3,
                   [&] { add_tiles(w); });
      continue;
    }
    const bool quads = quads_fit(config.max_code);
    simt::launch({{n_blocks}, {kCodeThreads}, static_cast<std::size_t>(w.shared_bytes)}, 5, [&] {
      k.aligned ? (quads ? add_codes<true, true>(w) : add_codes<false, true>(w))
                : (quads ? add_codes<true, false>(w) : add_codes<false, false>(w));
    });
  }
  return sums;
}

TEST(CudaTree, KernelsMakeTheIntegersOfTheDefinition) {
  const EmulatedTree cases[] = {
      {1, 3, 0, 63, 100, false},          {13, 9, 1, 255, 1025, false},
      {101, 30, 1, 63, 1024, true},       {101, 30, 1, 64, 1030, true},
      {100, 9, 7.3, 127, 512, true},      {1024, 21, 1, 63, 300, false},
      {512, 20, 33, 63, 530, false, 100}, {1024, 48, 1, 63, 90, false, 100},
      {516, 12, 4, 63, 512, false}};
  for (const auto& k : cases) {
    const DedisperseConfig config = config_of(k);
    const auto maximum = *std::max_element(config.delays.begin(), config.delays.end());
    Codes codes;
    codes.stride = k.n_outputs + maximum + (k.aligned ? 0 : 3);
    if (k.aligned) codes.stride = (codes.stride + 15) / 16 * 16;
    codes.memory.resize(static_cast<std::size_t>(config.n_channels * codes.stride + kReadAhead));
    for (std::size_t j = 0; j < codes.memory.size(); ++j)
      codes.memory[j] = static_cast<std::uint8_t>(
          combine(5, j) % 8 == 0 ? combine(6, j) % static_cast<std::uint64_t>(config.max_code + 1)
                                 : static_cast<std::uint64_t>(config.max_code));
    // What lies behind the codes of a channel may be anything.
    for (std::size_t j = 0; j < codes.memory.size(); ++j)
      if (static_cast<std::int64_t>(j) % codes.stride >= k.n_outputs + maximum ||
          static_cast<std::int64_t>(j) >= config.n_channels * codes.stride)
        codes.memory[j] = 0xFF;
    const std::int64_t sum_stride = k.n_outputs + (k.aligned ? 4 : 3);
    std::vector<std::uint16_t> wanted(static_cast<std::size_t>(config.n_trials * sum_stride),
                                      0xABAB);
    DedisperseConfig reference = config;
    reference.implementation = "fdmt:reference";
    Queue host = Queue::cpu(1);
    make_dedisperser(host, reference)
        ->execute(host, codes.memory.data(), codes.stride, k.n_outputs, wanted.data(), sum_stride);
    EXPECT_EQ(run_kernels(k, config, codes, sum_stride) == wanted, true)
        << k.n_channels << " channels, " << k.n_outputs << " outputs";
  }
}

}  // namespace
}  // namespace ryle::search
