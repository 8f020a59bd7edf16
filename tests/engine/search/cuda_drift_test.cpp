// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the drift filter on the device, thread by thread on the host: samples of
// DriftFilter, bit for bit, in whatever order threads run between barriers.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/cuda/drift.cuh"

namespace ryle::search {
namespace {

using namespace detail;

/// The kernels on arrays of the host, in the order of CudaDriftFilter.
class EmulatedDrift {
 public:
  EmulatedDrift(const DriftConfig& config, std::int64_t n_beams, std::int64_t block)
      : config_(config), shape_(drift_shape(config.window_samples, block)), n_beams_(n_beams) {
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    const std::int64_t rows = n_beams * config.n_channels, plane = rows * shape_.plane;
    masked_ = config.masked;
    masked_.resize(size(config.n_channels), 0);
    ring_.assign(size(rows * shape_.ring()), NAN);
    before_.assign(size(plane), NAN);
    planes_.assign(size(plane), NAN);
    targets_.assign(size(rows), NAN);
    responses_.resize(size(rows));
    levels_.resize(size(rows));
    for (auto* list : {&common_, &calm_, &steps_, &middles_, &left_, &shared_})
      list->resize(size(n_beams * shape_.plane));
    scatters_.resize(size(n_beams));
    segments_.resize(size(n_beams * shape_.plane));
    there_.resize(size(n_beams));
    for (auto* list : {&own_, &own_middles_, &own_left_}) list->resize(size(plane / kDriftJoined));
    corrections_.resize(size(rows * (block / shape_.cell)));
    out.resize(size(rows * block));
  }

  std::int64_t run(const DevicePower& power, const std::vector<std::uint8_t>& absent,
                   std::uint64_t seed) {
    seed_ = seed;
    std::swap(before_, planes_);
    DriftWork w = work(power);
    w.absent = absent.data();
    const std::int64_t rows = n_beams_ * config_.n_channels;
    const auto beams = static_cast<unsigned>(n_beams_);
    const auto jobs_of = [&](std::int64_t jobs, const auto& kernel) {
      launch({{blocks(jobs, kDriftThreads)}, {kDriftThreads}, 0}, kernel);
    };
    const auto of_beams = [&](std::int64_t cells, const auto& kernel) {
      launch({{blocks(cells, kDriftThreads), beams}, {kDriftThreads}, 0}, kernel);
    };
    jobs_of(rows * (shape_.plane - w.n_new()), [&] { move_cells_kernel(w, rows); });
    const std::int64_t takes = rows * (shape_.block / kTakeSamples);
    launch({{blocks(takes, kTakeWarps)}, {32 * kTakeWarps}, 0},
           [&] { take_samples_kernel(w, takes); });
    taken_ += shape_.block;
    const std::int64_t n_out = std::max<std::int64_t>(0, taken_ - shape_.lag - given_);
    if (n_out == 0) return 0;
    w.first_out = shape_.plane - static_cast<int>((taken_ - given_) / shape_.cell);
    w.end_out = w.first_out + static_cast<int>(n_out / shape_.cell);
    jobs_of(rows, [&] { levels_kernel(w, rows); });
    of_beams(shape_.plane, [&] { common_level_kernel(w); });
    jobs_of(n_beams_, [&] { common_scatter_kernel(w); });
    of_beams(shape_.plane, [&] { common_steps_kernel(w); });
    jobs_of(n_beams_, [&] { common_segments_kernel(w); });
    of_beams(shape_.plane, [&] { common_middles_kernel(w); });
    of_beams(w.end_out - w.first_out, [&] { common_shared_kernel(w); });
    jobs_of(rows, [&] { channel_responses_kernel(w, rows); });
    jobs_of(rows * w.n_own(), [&] { own_levels_kernel(w, rows); });
    jobs_of(rows * w.n_own(), [&] { own_middles_kernel(w, rows); });
    jobs_of(rows * w.n_own(), [&] { corrections_kernel(w, rows); });
    launch({{blocks(n_out, 256), 3}, {256}, 0}, [&] { give_samples_kernel(w, rows); });
    given_ += n_out;
    return n_out;
  }

  std::vector<float> out;

 private:
  static unsigned blocks(std::int64_t jobs, int threads) {
    return static_cast<unsigned>((jobs + threads - 1) / threads);
  }
  void launch(const simt::Grid& grid, const std::function<void()>& kernel) {
    simt::launch(grid, seed_++, kernel);
  }
  DriftWork work(const DevicePower& power) {
    DriftWork w{};
    w.in = power;
    w.shape = shape_;
    w.n_beams = static_cast<int>(n_beams_);
    w.n_channels = static_cast<int>(config_.n_channels);
    w.multiply = config_.multiply;
    w.taken = taken_;
    w.given = given_;
    w.masked = masked_.data();
    w.ring = ring_.data();
    w.before = before_.data();
    w.planes = planes_.data();
    w.levels = levels_.data();
    w.targets = targets_.data();
    w.responses = responses_.data();
    w.common = common_.data();
    w.middles = middles_.data();
    w.left = left_.data();
    w.shared = shared_.data();
    w.scatters = scatters_.data();
    w.calm = calm_.data();
    w.steps = steps_.data();
    w.segments = segments_.data();
    w.there = there_.data();
    w.own = own_.data();
    w.own_middles = own_middles_.data();
    w.own_left = own_left_.data();
    w.corrections = corrections_.data();
    w.out = out.data();
    return w;
  }

  DriftConfig config_;
  DriftShape shape_;
  std::int64_t n_beams_, taken_ = 0, given_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<std::uint8_t> masked_;
  std::vector<float> ring_, before_, planes_, targets_, responses_, common_, calm_, steps_,
      middles_, left_, shared_, scatters_, own_, own_middles_, own_left_, corrections_;
  std::vector<CellLevel> levels_;
  std::vector<CellRange> there_, segments_;
};

/// Two beams with drifts, steps, losses, a dead channel, interference of one channel.
std::vector<float> troubled(std::int64_t n_channels, std::int64_t n) {
  std::vector<float> x;
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t c = 0; c < n_channels; ++c)
      for (std::int64_t t = 0; t < n; ++t) {
        double v = 50 + gaussian(combine(21 + static_cast<std::uint64_t>(b),
                                         static_cast<std::uint64_t>(c * n + t)));
        v += b == 0 ? 0.5 * std::sin(static_cast<double>(t) / 700) : t < n / 3 ? 0 : 0.8;
        if (b == 1 && c == 2) v = 7;
        if (b == 0 && c == 3 && t / 300 % 2 == 0) v += 40;
        if (b == 0 && t >= 1500 && t < 1530) v = 0;
        if (b == 1 && c == 1 && t >= 900 && t < 1400) v = NAN;
        x.push_back(static_cast<float>(v));
      }
  return x;
}

TEST(CudaDriftKernels, EqualTheHost) {
  constexpr std::int64_t kChannels = 5, kBlock = 1024, kN = 4 * kBlock;
  for (const std::int64_t window : {64, 600, 2500, 40000})  // cells of 1, 4, 16, 256
    for (const bool multiply : {false, true}) {
      if (multiply && window != 600) continue;
      DriftConfig config;
      config.n_channels = kChannels;
      config.window_samples = window;
      config.multiply = multiply;
      config.masked.assign(kChannels, 0);
      config.masked[4] = 1;
      const auto data = troubled(kChannels, kN);
      EmulatedDrift emulated(config, 2, kBlock);
      std::vector<std::unique_ptr<DriftFilter>> host;
      for (int b = 0; b < 2; ++b) host.push_back(std::make_unique<DriftFilter>(config, kBlock));
      Queue queue = Queue::cpu(1);
      std::int64_t all = 0;
      for (std::int64_t k = 0; all < kN && k < 40; ++k) {
        const std::int64_t first = k * kBlock;
        const std::int64_t n = k == 3 ? 700 : k > 3 ? 0 : kBlock;  // the last one is short
        std::vector<std::uint8_t> absent(2 * kBlock, 0);
        if (k == 1) std::fill_n(absent.begin() + 1500 - kBlock, 30, std::uint8_t{1});
        const float* from = data.data() + (n > 0 ? first : 0);
        const std::int64_t come = emulated.run({from, kChannels * kN, kN, n}, absent,
                                               static_cast<std::uint64_t>(100 * k));
        for (std::int64_t b = 0; b < 2; ++b) {
          std::vector<float> out(static_cast<std::size_t>(kChannels * kBlock));
          ASSERT_EQ(host[static_cast<std::size_t>(b)]->execute(queue, from + b * kChannels * kN, kN,
                                                               n, out.data(), kBlock),
                    come);
          for (std::int64_t c = 0; c < kChannels; ++c)
            for (std::int64_t t = 0; t < come; ++t) {
              const float a = out[static_cast<std::size_t>(c * kBlock + t)];
              const float e =
                  emulated.out[static_cast<std::size_t>((b * kChannels + c) * kBlock + t)];
              ASSERT_TRUE(std::memcmp(&a, &e, 4) == 0 || (std::isnan(a) && std::isnan(e)))
                  << window << " block " << k << " beam " << b << " channel " << c << " " << t
                  << ": " << a << " " << e;
            }
        }
        all += come;
      }
      EXPECT_GE(all, window == 40000 ? kBlock : kN);
    }
}

}  // namespace
}  // namespace ryle::search
