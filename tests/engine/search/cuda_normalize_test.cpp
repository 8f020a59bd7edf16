// SPDX-License-Identifier: BSD-3-Clause
// The kernels of the normalizer on the device, thread by thread on the host: codes, masks and
// counts of Normalizer, bit for bit, in whatever order threads run between barriers.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ryle/core/random.hpp"
#include "ryle/engine/search/cuda/normalize_codes.cuh"
#include "ryle/engine/search/cuda/normalize_common.cuh"
#include "ryle/engine/search/cuda/normalize_flags.cuh"
#include "ryle/engine/search/kurtosis.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

using namespace detail;

NormalizeConfig emulated_config(std::int64_t n_channels) {
  NormalizeConfig config;
  config.n_channels = n_channels;
  config.spectra.band.channel_width_hz = 20e6 / static_cast<double>(n_channels);
  for (std::int64_t c = 0; c < n_channels; ++c)
    config.spectra.band.center_hz.push_back(398e6 + (static_cast<double>(c) + 0.5) *
                                                        config.spectra.band.channel_width_hz);
  config.spectra.band.sample_interval_s = 2e-3;
  config.masked.assign(static_cast<std::size_t>(n_channels), 0);
  config.masked[1] = 1;
  return config;
}

/// [beam][channel][n]: noise under a bandpass.
std::vector<float> noise_under_bandpass(std::int64_t n_beams, std::int64_t n_channels,
                                        std::int64_t n, std::uint64_t seed) {
  std::vector<float> x;
  for (std::int64_t row = 0; row < n_beams * n_channels; ++row)
    for (std::int64_t t = 0; t < n; ++t) {
      const double level = 100 + 20 * std::sin(0.07 * static_cast<double>(row));
      const auto key = combine(seed, static_cast<std::uint64_t>(row * n + t));
      x.push_back(static_cast<float>(level + 0.1 * level * gaussian(key)));
    }
  return x;
}

/// The kernels on arrays of the host, in the order of CudaNormalizer.
class Emulated {
 public:
  Emulated(const NormalizeConfig& config, std::int64_t n_beams, std::int64_t gulp)
      : config_(config), n_beams_(n_beams), gulp_(gulp) {
    const std::int64_t rows = n_beams * config.n_channels;
    n_cells_ = (gulp + config.statistics_samples - 1) / config.statistics_samples;
    const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    absent_.assign(size(n_beams * gulp), 0xCD);
    masked_.assign(size(n_beams * gulp), 0);
    for (auto* cells : {&now_, &usual_}) cells->resize(size(rows * n_cells_));
    typical_.resize(size(rows));
    past_.resize(size(rows * config.median_cells / 2));
    scales_.resize(size(rows * n_cells_));
    bad_.resize(size(rows * n_cells_));
    flags_.resize(size(rows));
    basis_ = legendre_basis(size(config.n_channels), degree());
    flagger_ = std::make_unique<SpectraFlagger>(config.spectra);
    ring_ = flagger_->history() + gulp;
    sums_.resize(size(n_beams * flagger_->n_groups() * ring_));
    counts_.resize(sums_.size());
    band_.resize(size(n_beams * ring_));
    found_.assign(size(n_beams), 0);
    n_samples_.resize(bad_.size());
    common_.resize(size(n_beams * gulp));
    common_counts_.resize(common_.size());
    gains_.resize(size(rows));
  }

  /// @shape power [beam][channel][n], `stride` between channels
  void run(const float* power, std::int64_t stride, std::int64_t n, std::uint64_t seed) {
    seed_ = seed;
    codes.assign(static_cast<std::size_t>(n_beams_ * config_.n_channels * stride), 0xCD);
    cells.assign(codes.size() / 64 + 1, 0xCD);
    counters.assign(static_cast<std::size_t>(n_beams_ * kNormalizeCounters), 0);
    NormalizeWork w = work(power, stride, n);
    const FlagWork f{degree(),
                     basis_.data(),
                     config_.bandpass_threshold,
                     config_.iqrm_threshold,
                     config_.cell_threshold,
                     n,
                     config_.flag_channels,
                     median_error(w.n_cells, w.n_past_cells, w.median_cells)};
    const auto blocks = [](std::int64_t jobs, unsigned threads) {
      return simt::Grid{{static_cast<unsigned>((jobs + threads - 1) / threads)}, {threads}, 0};
    };
    const std::int64_t rows = n_beams_ * config_.n_channels, jobs = rows * w.n_cells;
    const std::int64_t measures = n_beams_ * ((config_.n_channels + 31) / 32) * w.n_cells;
    launch({{static_cast<unsigned>((n + 255) / 256), static_cast<unsigned>(n_beams_)}, {256}, 0},
           [&] { absent_kernel(w); });
    launch({{static_cast<unsigned>((measures + kMeasureWarps - 1) / kMeasureWarps)},
            {32 * kMeasureWarps},
            0},
           [&] { measure_kernel(w, measures); });
    launch(blocks(jobs, 128), [&] {
      if (w.median_cells <= 16)
        medians_kernel<16>(w, jobs);
      else
        medians_kernel<kMaxMedianCells>(w, jobs);
    });
    decide(n_beams_, [&](const FlagRoom& room) {
      room.memory == nullptr ? channels_kernel<true>(w, f, room)
                             : channels_kernel<false>(w, f, room);
    });
    decide(n_beams_ * w.n_cells, [&](const FlagRoom& room) {
      room.memory == nullptr ? cells_kernel<true>(w, f, room) : cells_kernel<false>(w, f, room);
    });
    if (w.n_samples != nullptr) flag_kurtosis(w);
    launch(blocks(jobs, 256), [&] { scales_kernel(w, jobs); });
    BurstWork b{sums_.data(),
                counts_.data(),
                band_.data(),
                ring_,
                0,
                n,
                0,
                static_cast<int>(flagger_->n_groups()),
                config_.spectra.threshold,
                found_.data()};
    write(w, b, 0, n_beams_);
    if (config_.flag_channels) find_bursts(w, b);
    if (config_.zero_dm != ZeroDm::off) {
      w.common = common_.data();
      w.common_counts = common_counts_.data();
      w.gains = gains_.data();
      launch({{static_cast<unsigned>((n + 255) / 256), static_cast<unsigned>(n_beams_)}, {256}, 0},
             [&] { common_kernel(w); });
      launch(
          {{static_cast<unsigned>((config_.n_channels + kResponseThreads - 1) / kResponseThreads),
            static_cast<unsigned>(n_beams_)},
           {kResponseThreads},
           0},
          [&] { response_kernel(w, config_.zero_dm == ZeroDm::weighted); });
      std::fill(counters.begin(), counters.end(), 0);
      write(w, {}, 0, n_beams_);
    }
    launch(blocks(rows, 256), [&] { keep_cells_kernel(w, rows); });
    n_past_cells_ = std::min<std::int64_t>(config_.median_cells / 2, n_past_cells_ + w.n_cells);
  }

  /// Times that the user masks. @shape [channel][gulp]
  std::vector<std::uint8_t> times;
  std::vector<std::uint8_t> codes, cells;
  std::vector<unsigned long long> counters;
  bool in_room = false;  ///< decisions among channels in memory of their own
  const std::vector<std::uint8_t>& flags() const { return flags_; }
  bool found(std::int64_t beam) const { return found_[static_cast<std::size_t>(beam)] != 0; }

 private:
  int degree() const {
    return std::min<int>(kBandpassDegree, static_cast<int>(config_.n_channels / 16));
  }
  void launch(const simt::Grid& grid, const std::function<void()>& kernel) {
    simt::launch(grid, seed_++, kernel);
  }
  NormalizeWork work(const float* power, std::int64_t stride, std::int64_t n) {
    NormalizeWork w{};
    const std::int64_t beam = config_.n_channels * stride;
    w.in = {power, beam, stride, n};
    w.out = {codes.data(), beam, stride, cells.data(), beam / 64, stride / 64};
    w.n_beams = static_cast<int>(n_beams_);
    w.n_channels = static_cast<int>(config_.n_channels);
    w.cell_samples = static_cast<int>(config_.statistics_samples);
    w.n_cells = static_cast<int>((n + w.cell_samples - 1) / w.cell_samples);
    w.median_cells = static_cast<int>(config_.median_cells);
    w.n_past_cells = static_cast<int>(n_past_cells_);
    w.past_room = w.median_cells / 2;
    w.absent_stride = gulp_;
    w.user = config_.masked.data();
    w.absent = absent_.data();
    w.masked = masked_.data();
    w.now = now_.data();
    w.usual = usual_.data();
    w.typical = typical_.data();
    w.past = past_.data();
    w.scales = scales_.data();
    w.bad = bad_.data();
    w.flags = flags_.data();
    w.counters = counters.data();
    w.times = times.empty() ? nullptr : times.data();
    w.times_stride = gulp_;
    w.n_samples = config_.kurtosis_degrees > 0 ? n_samples_.data() : nullptr;
    return w;
  }
  void write(const NormalizeWork& w, const BurstWork& b, std::int64_t beam, std::int64_t n_beams) {
    const CodeGroups groups = code_groups(w, b);
    launch({{static_cast<unsigned>(w.n_cells * groups.parts_of_cell),
             static_cast<unsigned>(groups.n), static_cast<unsigned>(n_beams)},
            {kWriteThreads},
            0},
           [&] {
             if (w.gains != nullptr)
               codes_kernel<true, true, true>(w, b, groups, static_cast<int>(beam));
             else if (!whole_words(w))
               codes_kernel<false, false, true>(w, b, groups, static_cast<int>(beam));
             else if (w.times != nullptr)
               codes_kernel<true, false, true>(w, b, groups, static_cast<int>(beam));
             else
               codes_kernel<true, false, false>(w, b, groups, static_cast<int>(beam));
           });
  }
  void flag_kurtosis(const NormalizeWork& w) {
    const auto n = static_cast<std::size_t>(config_.statistics_samples) + 1;
    std::vector<std::uint8_t> seen(n, 0);
    std::vector<double> low(n, 0.0), high(n, 0.0);
    const KurtosisWork k{config_.kurtosis_degrees, seen.data(), low.data(), high.data()};
    const std::int64_t jobs = n_beams_ * config_.n_channels * w.n_cells;
    launch({{static_cast<unsigned>((jobs + 255) / 256)}, {256}, 0},
           [&] { count_samples_kernel(w, k, jobs); });
    for (std::size_t count = 32; count < n; ++count) {
      if (seen[count] == 0) continue;
      const auto limits =
          kurtosis_limits(static_cast<std::int64_t>(count), config_.kurtosis_degrees);
      low[count] = limits.low;
      high[count] = limits.high;
    }
    decide(n_beams_ * w.n_cells, [&](const FlagRoom& room) {
      room.memory == nullptr ? kurtosis_kernel<true>(w, k, room)
                             : kurtosis_kernel<false>(w, k, room);
    });
  }
  /// Blocks that decide among channels: in shared memory, or some at a time in memory of their own.
  template <class Body>
  void decide(std::int64_t n_blocks, const Body& body) {
    const std::int64_t stride = flag_room_stride(config_.n_channels);
    if (!in_room) {
      launch({{static_cast<unsigned>(n_blocks)},
              {kSelectThreads},
              static_cast<std::size_t>(kFlagChannel_bytes * config_.n_channels)},
             [&] {
               body({nullptr, 0, 0});
             });
      return;
    }
    constexpr std::int64_t kAtATime = 4;
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(kAtATime * stride), 0xCD);
    for (std::int64_t first = 0; first < n_blocks; first += kAtATime)
      launch({{static_cast<unsigned>(std::min(kAtATime, n_blocks - first))}, {kSelectThreads}, 0},
             [&] {
               body({memory.data(), stride, static_cast<int>(first)});
             });
  }
  /// Beams that stand out are decomposed by the host's flagger, as CudaNormalizer does it.
  void find_bursts(const NormalizeWork& w, const BurstWork& b) {
    std::fill(found_.begin(), found_.end(), 0);
    launch({{static_cast<unsigned>((b.n + 255) / 256), static_cast<unsigned>(n_beams_)}, {256}, 0},
           [&] { band_kernel(b, 0, 0, b.n); });
    launch({{static_cast<unsigned>(n_beams_ * kBurstWidths)},
            {kSelectThreads},
            static_cast<std::size_t>(burst_list_bytes(static_cast<int>(b.n)))},
           [&] { bursts_kernel(b); });
    for (std::int64_t beam = 0; beam < n_beams_; ++beam) {
      if (!found(beam)) continue;
      std::vector<float> sums, counts;
      for (std::int64_t g = 0; g < b.n_groups; ++g)
        for (std::int64_t t = 0; t < b.n; ++t) {
          sums.push_back(b.sums[(beam * b.n_groups + g) * b.ring + t]);
          counts.push_back(b.counts[(beam * b.n_groups + g) * b.ring + t]);
        }
      SpectraFlagger flagger(config_.spectra);
      std::vector<std::uint8_t> out;
      flagger.execute(sums, counts, b.n, out);
      std::copy(out.begin(), out.end(), masked_.begin() + beam * gulp_);
      std::fill_n(counters.begin() + beam * kNormalizeCounters, kNormalizeCounters, 0);
      write(w, {}, beam, 1);
    }
  }

  NormalizeConfig config_;
  std::int64_t n_beams_, gulp_, n_cells_ = 0, n_past_cells_ = 0, ring_ = 0;
  std::uint64_t seed_ = 0;
  std::unique_ptr<SpectraFlagger> flagger_;
  std::vector<std::uint8_t> absent_, masked_, bad_, flags_;
  std::vector<CellMoments> now_, usual_, typical_, past_;
  std::vector<CellScale> scales_;
  std::vector<double> basis_;
  std::vector<float> sums_, counts_, band_;
  std::vector<float> common_, common_counts_, gains_;
  std::vector<int> found_, n_samples_;
};

/// Against Normalizer: codes, cells, flags and what became of every sample.
void expect_beam(const Emulated& found, std::int64_t beam, Normalizer& host, const float* power,
                 std::int64_t n_channels, std::int64_t stride, std::int64_t n,
                 NormalizeReport* expected = nullptr) {
  Queue queue = Queue::cpu(1);
  const std::int64_t size = n_channels * stride;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(size), 0xCD);
  std::vector<std::uint8_t> cells(static_cast<std::size_t>(size / 64), 0xCD);
  NormalizeReport report;
  host.execute(queue, power + beam * size, stride, n, codes.data(), stride, cells.data(),
               stride / 64, report);
  EXPECT_TRUE(std::equal(codes.begin(), codes.end(), found.codes.begin() + beam * size)) << beam;
  EXPECT_TRUE(std::equal(cells.begin(), cells.end(), found.cells.begin() + beam * size / 64))
      << beam;
  EXPECT_TRUE(std::equal(host.channel_flags().begin(), host.channel_flags().end(),
                         found.flags().begin() + beam * n_channels));
  const auto* counters = found.counters.data() + beam * kNormalizeCounters;
  const auto count = [&](int k) { return static_cast<std::int64_t>(counters[k]); };
  EXPECT_EQ(count(kNone), report.written) << beam;
  EXPECT_EQ(count(kUser), report.masked_user);
  EXPECT_EQ(count(kAbsent), report.masked_absent);
  EXPECT_EQ(count(kChannel), report.masked_channel);
  EXPECT_EQ(count(kBadCell), report.masked_cell);
  EXPECT_EQ(count(kTime), report.masked_time);
  EXPECT_EQ(count(kKurtosis), report.masked_kurtosis);
  EXPECT_EQ(count(kSpectrum), report.masked_spectra);
  EXPECT_EQ(count(kClippedLow), report.clipped_low);
  EXPECT_EQ(count(kClippedHigh), report.clipped_high);
  if (expected != nullptr) *expected = report;
}

TEST(CudaNormalizeKernels, EqualTheHost) {
  constexpr std::int64_t kChannels = 40, kGulp = 1536;
  NormalizeConfig config = emulated_config(kChannels);
  config.statistics_samples = 512;
  auto power = noise_under_bandpass(2, kChannels, kGulp, 3);
  const auto add = [&](std::int64_t b, std::int64_t c0, std::int64_t c1, std::int64_t t0,
                       std::int64_t t1, float value) {
    for (std::int64_t c = c0; c < c1; ++c)
      for (std::int64_t t = t0; t < t1; ++t)
        power[static_cast<std::size_t>((b * kChannels + c) * kGulp + t)] += value;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add(0, 20, 21, 0, kGulp, 60);          // a channel off the bandpass
  add(0, 10, 11, 512, 1024, 40);         // a cell of one channel
  add(0, 5, 9, 300, 463, nan);           // lost samples
  add(0, 0, kChannels, 900, 930, nan);   // lost spectra
  add(1, 0, kChannels, 1400, 1403, 80);  // a burst without dispersion
  add(1, 12, 13, 512, 1024, 40);
  NormalizeReport reports[2];
  for (const bool in_room : {true, false}) {  // as with more channels than shared memory holds
    Emulated emulated(config, 2, kGulp);
    emulated.in_room = in_room;
    emulated.run(power.data(), kGulp, kGulp, 1);
    for (std::int64_t b = 0; b < 2; ++b) {
      Normalizer host(config);
      expect_beam(emulated, b, host, power.data(), kChannels, kGulp, kGulp, &reports[b]);
    }
    EXPECT_TRUE(emulated.found(1));
  }
  // Every cause was there.
  EXPECT_GT(reports[0].masked_channel, kGulp / 2);
  EXPECT_GT(reports[0].masked_cell, 0);
  EXPECT_GT(reports[0].masked_absent, 30 * 39);
  EXPECT_GT(reports[1].masked_spectra, 0);
}

// Power of single spectra scatters by more than 5 % of its rms in cells of 512: what stays and what
// goes is the host's decision.
TEST(CudaNormalizeKernels, SingleSpectra) {
  constexpr std::int64_t kChannels = 64, kGulp = 1024;
  NormalizeConfig config = emulated_config(kChannels);
  config.statistics_samples = 512;
  std::vector<float> power;
  for (std::int64_t c = 0; c < kChannels; ++c)
    for (std::int64_t t = 0; t < kGulp; ++t) {
      const double x = -std::log(uniform(combine(29, static_cast<std::uint64_t>(c * kGulp + t))));
      power.push_back(static_cast<float>(c == 40 ? 100 + 170 * (x - 1) : 100 * x));
    }
  Emulated emulated(config, 1, kGulp);
  emulated.run(power.data(), kGulp, kGulp, 5);
  Normalizer host(config);
  NormalizeReport report;
  expect_beam(emulated, 0, host, power.data(), kChannels, kGulp, kGulp, &report);
  EXPECT_EQ(emulated.flags()[40], 1);
  EXPECT_EQ(report.masked_channel, kGulp);
}

// Times masked by the user, spectral kurtosis, and what all channels do at once taken out of each
// by its response.
TEST(CudaNormalizeKernels, MasksKurtosisAndTheFilter) {
  constexpr std::int64_t kChannels = 36, kGulp = 768;
  NormalizeConfig config = emulated_config(kChannels);
  config.statistics_samples = 256;
  config.kurtosis_degrees = 20;
  config.zero_dm = ZeroDm::weighted;
  std::vector<std::uint8_t> few(kChannels, 0);
  std::fill_n(few.begin() + 4, 9, std::uint8_t{1});
  config.mask.blocks = {{100, 131, {}}, {400, 700, few}};
  // Noise of 20 pairs of degrees of freedom: rms = mean / sqrt(20).
  std::vector<float> power;
  for (std::int64_t c = 0; c < kChannels; ++c)
    for (std::int64_t t = 0; t < kGulp; ++t) {
      const auto key = combine(11, static_cast<std::uint64_t>(c * kGulp + t));
      const double common = 0.04 * std::sin(0.02 * static_cast<double>(t));
      double x = 0;
      for (std::uint64_t k = 0; k < 40; ++k) {
        const double g = gaussian(combine(key, k));
        x += g * g / 40;
      }
      // Bursts that hardly change the rms of their cell, but its kurtosis.
      if (c == 20 && t >= 256 && t < 512) x += t % 32 == 0 ? 1.1 : 0;
      if (t == 600) x += 2;  // in all channels: no kurtosis of one among its neighbors
      power.push_back(static_cast<float>(100 * (x + common)));
    }
  Emulated emulated(config, 1, kGulp);
  emulated.times.assign(static_cast<std::size_t>(kChannels * kGulp), 0);
  for (const auto& block : config.mask.blocks)
    for (std::int64_t c = 0; c < kChannels; ++c)
      if (block.channels.empty() || block.channels[static_cast<std::size_t>(c)] != 0)
        std::fill(emulated.times.begin() + c * kGulp + block.first,
                  emulated.times.begin() + c * kGulp + block.end, std::uint8_t{1});
  emulated.run(power.data(), kGulp, kGulp, 2);
  Normalizer host(config);
  NormalizeReport report;
  expect_beam(emulated, 0, host, power.data(), kChannels, kGulp, kGulp, &report);
  EXPECT_EQ(report.masked_time, 31 * (kChannels - 1) + 300 * 9);
  EXPECT_GT(report.masked_kurtosis, 0);
  EXPECT_LT(report.masked_kurtosis, 10 * 256);
}

// Few channels, rows off whole words, cells of other lengths, medians over gulps.
TEST(CudaNormalizeKernels, OtherShapes) {
  for (const std::int64_t n_channels : {3, 33}) {
    NormalizeConfig config = emulated_config(n_channels);
    config.flag_channels = false;
    config.statistics_samples = 192;
    config.median_cells = n_channels == 3 ? 16 : 18;
    const std::int64_t gulp = 576, stride = 640 + (n_channels == 3 ? 0 : 1);
    Emulated emulated(config, 1, gulp);
    Normalizer host(config);
    for (std::uint64_t k = 0; k < 2; ++k) {
      const std::int64_t n = k == 0 ? gulp : gulp - 127;
      const auto power = noise_under_bandpass(1, n_channels, stride, 7 + k);
      emulated.run(power.data(), stride, n, k);
      expect_beam(emulated, 0, host, power.data(), n_channels, stride, n);
    }
  }
}

}  // namespace
}  // namespace ryle::search
