// SPDX-License-Identifier: BSD-3-Clause
// Sub-bands as the device makes them, thread by thread on the host: the integers of the definition.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include <gtest/gtest.h>

#include <algorithm>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/cuda/subband.cuh"
#include "ryle/engine/search/device_memory.hpp"
#include "tests/engine/search/bands.hpp"

namespace ryle::search {
namespace {

using namespace detail;

struct EmulatedCase {
  std::int64_t n_channels, n_trials;
  double first_dm, step;
  int max_code;
  std::int64_t n_outputs;
  double smear;
};

std::vector<double> emulated_trials(const EmulatedCase& k) {
  std::vector<double> dms;
  for (std::int64_t i = 0; i < k.n_trials; ++i)
    dms.push_back(k.first_dm + static_cast<double>(i) * k.step);
  return dms;
}

template <class Sum>
std::vector<Sum> run_kernels(const DedisperseConfig& config, const std::vector<std::uint8_t>& codes,
                             std::int64_t code_stride, std::int64_t n_outputs,
                             std::int64_t sum_stride, std::uint64_t seed) {
  const SubbandPlan plan = subband_plan(config);
  const SubbandTables tables = subband_tables(plan, config.n_trials);
  const std::int64_t stride = subband_stride(n_outputs, tables.max_extra);
  EXPECT_EQ(device_subband_bytes(config),
            static_cast<std::int64_t>(tables.rows.size()) * stride * 2);
  std::vector<std::uint16_t> scratch(tables.rows.size() * static_cast<std::size_t>(stride), 0xCDCD);
  std::vector<Sum> sums(static_cast<std::size_t>(config.n_trials * sum_stride),
                        static_cast<Sum>(0xABABABAB));
  SubbandWork w{};
  w.codes = codes.data();
  w.code_stride = code_stride;
  w.n_outputs = n_outputs;
  w.rows = tables.rows.data();
  w.relative = tables.relative.data();
  w.n_rows = static_cast<int>(tables.rows.size());
  w.byte_channels = 255 / config.max_code;
  w.scratch = scratch.data();
  w.stride = stride;
  w.places = tables.places.data();
  w.n_subbands = static_cast<int>(plan.subbands.size());
  w.n_trials = static_cast<int>(config.n_trials);
  w.sums = sums.data();
  w.sum_stride = sum_stride;
  const auto tiles = [](std::int64_t n) {
    return static_cast<unsigned>((n + kSubbandTile - 1) / kSubbandTile);
  };
  // Fewer blocks than rows: they take the next.
  const auto rows = static_cast<unsigned>(std::min<std::size_t>(tables.rows.size(), 20));
  simt::launch({{tiles(stride), rows}, {kSubbandThreads}, 0}, seed,
               [&] { subband_rows_kernel(w); });
  const auto trials =
      static_cast<unsigned>((config.n_trials + kSubbandTrials - 1) / kSubbandTrials);
  simt::launch({{tiles(n_outputs), trials}, {kSubbandThreads}, 0}, seed,
               [&] { subband_trials_kernel<sizeof(Sum) == 4>(w); });
  return sums;
}

template <class Sum>
void compare(const DedisperseConfig& config, std::int64_t n_outputs, bool largest) {
  const auto maximum = *std::max_element(config.delays.begin(), config.delays.end());
  const std::int64_t stride = n_outputs + maximum + 1, sum_stride = n_outputs + 3;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(config.n_channels * stride) +
                                  kReadAhead);
  for (std::size_t j = 0; j < codes.size(); ++j)
    codes[j] = static_cast<std::uint8_t>(
        largest
            ? config.max_code
            : static_cast<int>(combine(5, j) % static_cast<std::uint64_t>(config.max_code + 1)));
  std::vector<Sum> wanted(static_cast<std::size_t>(config.n_trials * sum_stride),
                          static_cast<Sum>(0xABABABAB));
  DedisperseConfig reference = config;
  reference.implementation = "subband:reference";
  Queue host = Queue::cpu(1);
  make_dedisperser(host, reference)
      ->execute(host, codes.data(), stride, n_outputs, wanted.data(), sum_stride);
  EXPECT_EQ(run_kernels<Sum>(config, codes, stride, n_outputs, sum_stride, 7) == wanted, true)
      << config.n_channels << " channels, " << largest;
}

TEST(CudaSubbands, KernelsMakeTheIntegersOfTheDefinition) {
  const EmulatedCase cases[] = {{1, 3, 0, 1, 63, 100, 1},      {3, 5, 10, 3, 255, 1025, 2},
                                {40, 19, 0, 0.5, 63, 1, 1},    {100, 20, 5, 0.4, 127, 1500, 1},
                                {130, 9, 300, 40, 63, 300, 3}, {1100, 3, 0, 2, 63, 70, 1}};
  for (const auto& k : cases) {
    DedisperseConfig config;
    const Band band = test::band_of(400, 20, k.n_channels, 100e-6);
    config.n_channels = k.n_channels;
    config.n_trials = k.n_trials;
    config.delays = delay_table(band, emulated_trials(k));
    config.max_code = k.max_code;
    config.max_outputs = k.n_outputs;
    config.smear_samples = k.smear;
    for (const bool largest : {false, true}) {
      if (sum_format(k.n_channels, k.max_code) == SumFormat::u16)
        compare<std::uint16_t>(config, k.n_outputs, largest);
      else
        compare<std::uint32_t>(config, k.n_outputs, largest);
    }
  }
}

}  // namespace
}  // namespace ryle::search
