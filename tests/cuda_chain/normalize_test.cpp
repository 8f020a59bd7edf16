// SPDX-License-Identifier: BSD-3-Clause
// The normalizer on the device: codes, masks, flags and reports of Normalizer, bit for bit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/normalize.hpp"
#include "tests/cuda/cuda_test.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/search/cuda/normalize.hpp"
#endif

namespace ryle::search {
namespace {

#ifdef RYLE_HAVE_CUDA

constexpr std::int64_t kBlock = 4096;

class CudaNormalize : public ryle::test::CudaTest {};

Band band_of(std::int64_t n_channels) {
  Band band;
  band.channel_width_hz = 20e6 / static_cast<double>(n_channels);
  for (std::int64_t c = 0; c < n_channels; ++c)
    band.center_hz.push_back(398e6 + (static_cast<double>(c) + 0.5) * band.channel_width_hz);
  band.sample_interval_s = 2e-3;
  return band;
}

/// [beam][channel][n]: noise under a bandpass, and each beam with troubles of its own.
struct Data {
  std::int64_t n_beams, n_channels, n;
  std::vector<float> x;
  float* row(std::int64_t b, std::int64_t c) { return x.data() + (b * n_channels + c) * n; }

  Data(std::int64_t beams, std::int64_t channels, std::int64_t samples, bool troubles)
      : n_beams(beams), n_channels(channels), n(samples) {
    x.resize(static_cast<std::size_t>(beams * channels * samples));
    for (std::int64_t b = 0; b < beams; ++b)
      for (std::int64_t c = 0; c < channels; ++c) {
        const double shape = 100 + 20 * std::sin(0.07 * static_cast<double>(c + 9 * b));
        for (std::int64_t t = 0; t < n; ++t)
          row(b, c)[t] = static_cast<float>(
              shape + 0.1 * shape *
                          gaussian(combine(static_cast<std::uint64_t>(b),
                                           static_cast<std::uint64_t>(c * n + t))));
      }
    if (troubles) spoil();
  }

  void add(std::int64_t b, std::int64_t c0, std::int64_t c1, std::int64_t t0, std::int64_t t1,
           float value) {
    for (std::int64_t c = c0; c < c1; ++c)
      for (std::int64_t t = t0; t < std::min(t1, n); ++t) row(b, c)[t] += value;
  }
  void set(std::int64_t b, std::int64_t c0, std::int64_t c1, std::int64_t t0, std::int64_t t1,
           float value) {
    for (std::int64_t c = c0; c < c1; ++c) std::fill(row(b, c) + t0, row(b, c) + t1, value);
  }
  void spoil() {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    add(0, 20, 21, 0, n, 60);             // a channel off the bandpass
    set(0, 3, 4, 0, n, 7);                // a dead one
    for (std::int64_t t = 0; t < n; ++t)  // a noisy one
      row(0, 30)[t] = 100 + 4 * (row(0, 30)[t] - 100);
    add(1, 10, 11, 2048, 3072, 40);  // cells of one channel
    add(1, 40, 42, 5000, 5400, 30);
    set(1, 0, n_channels, 1000, 1300, nan);  // lost samples
    set(1, 5, 9, 3000, 6000, nan);
    set(2, 0, n_channels, 6000, 6200, 0);   // a dead spectrum
    add(2, 0, n_channels, 2500, 2503, 80);  // bursts without dispersion
    add(2, 0, n_channels, 9000, 9040, -30);
    const Band band = band_of(n_channels);
    for (std::int64_t c = 0; c < n_channels; ++c) {  // a bright pulse
      const auto t = 4000 + std::llround(band.delay_samples(c, 60));
      add(3, c, c + 1, t, t + 4, 70);
    }
    if (n_beams > 4) set(4, 0, n_channels, 0, n, 1);  // a beam without data
  }
};

NormalizeConfig config_of(std::int64_t n_channels) {
  NormalizeConfig config;
  config.n_channels = n_channels;
  config.spectra.band = band_of(n_channels);
  config.masked.assign(static_cast<std::size_t>(n_channels), 0);
  config.masked[1] = 1;
  return config;
}

void expect_report(const NormalizeReport& found, const NormalizeReport& expected,
                   const std::string& where) {
  EXPECT_EQ(found.n_samples, expected.n_samples) << where;
  EXPECT_EQ(found.masked_user, expected.masked_user) << where;
  EXPECT_EQ(found.masked_absent, expected.masked_absent) << where;
  EXPECT_EQ(found.masked_channel, expected.masked_channel) << where;
  EXPECT_EQ(found.masked_cell, expected.masked_cell) << where;
  EXPECT_EQ(found.masked_time, expected.masked_time) << where;
  EXPECT_EQ(found.masked_kurtosis, expected.masked_kurtosis) << where;
  EXPECT_EQ(found.masked_spectra, expected.masked_spectra) << where;
  EXPECT_EQ(found.written, expected.written) << where;
  EXPECT_EQ(found.clipped_low, expected.clipped_low) << where;
  EXPECT_EQ(found.clipped_high, expected.clipped_high) << where;
  EXPECT_EQ(found.spectra.n_masked_runs, expected.spectra.n_masked_runs) << where;
  EXPECT_EQ(found.spectra.n_pulses_kept, expected.spectra.n_pulses_kept) << where;
  EXPECT_EQ(found.spectra.n_undecided, expected.spectra.n_undecided) << where;
}

/// Gulps of kBlock, the last one short; `lost`: the second one never came.
class Comparison {
 public:
  Comparison(Queue& queue, const NormalizeConfig& config, Data& data, std::int64_t gulp)
      : queue_(queue),
        config_(config),
        data_(data),
        gulp_(gulp),
        device_(queue, config, data.n_beams, gulp),
        power_(data.n_beams * data.n_channels * gulp, MemorySpace::device),
        codes_(power_.size(), MemorySpace::device),
        cells_(power_.size() / kCell, MemorySpace::device) {
    for (std::int64_t b = 0; b < data.n_beams; ++b)
      hosts_.push_back(std::make_unique<Normalizer>(config));
    reports_.resize(hosts_.size());
  }

  void run(bool lost) {
    for (std::int64_t first = 0; first < data_.n; first += gulp_) {
      const std::int64_t n = std::min(gulp_, data_.n - first);
      if (lost && first == gulp_) {
        device_.skip(n);
        for (auto& host : hosts_) host->skip(n);
        continue;
      }
      gulp(first, n);
    }
    n_bursts_ = device_.n_bursts();
  }
  std::int64_t n_bursts_ = 0;
  const std::vector<NormalizeReport>& reports() const { return reports_; }

 private:
  void gulp(std::int64_t first, std::int64_t n) {
    const std::int64_t rows = data_.n_beams * data_.n_channels;
    std::vector<float> packed(static_cast<std::size_t>(rows * gulp_), -1);
    for (std::int64_t r = 0; r < rows; ++r)
      std::copy_n(data_.x.data() + r * data_.n + first, n, packed.data() + r * gulp_);
    copy_bytes(queue_, power_.data(), packed.data(), power_.bytes());
    std::vector<std::uint8_t> codes(packed.size(), 0xCD), cells(packed.size() / kCell, 0xCD);
    copy_bytes(queue_, codes_.data(), codes.data(), codes_.bytes());
    copy_bytes(queue_, cells_.data(), cells.data(), cells_.bytes());
    const std::int64_t beam = data_.n_channels * gulp_;
    device_.execute(queue_, {power_.data(), beam, gulp_, n},
                    {codes_.data(), beam, gulp_, cells_.data(), beam / kCell, gulp_ / kCell});
    std::vector<std::uint8_t> found(codes.size()), found_cells(cells.size());
    copy_bytes(queue_, found.data(), codes_.data(), codes_.bytes());
    copy_bytes(queue_, found_cells.data(), cells_.data(), cells_.bytes());
    queue_.synchronize();
    Queue host = Queue::cpu(1);
    for (std::int64_t b = 0; b < data_.n_beams; ++b) {
      const auto at = static_cast<std::size_t>(b);
      hosts_[at]->execute(host, packed.data() + b * beam, gulp_, n, codes.data() + b * beam, gulp_,
                          cells.data() + b * beam / kCell, gulp_ / kCell, reports_[at]);
      const std::string where = "beam " + std::to_string(b) + " from " + std::to_string(first);
      EXPECT_EQ(device_.channel_flags(b), hosts_[at]->channel_flags()) << where;
      expect_report(device_.report(b), reports_[at], where);
    }
    const auto differ = std::mismatch(found.begin(), found.end(), codes.begin()).first;
    EXPECT_TRUE(found == codes) << "codes differ at " << differ - found.begin() << " from "
                                << first;
    EXPECT_TRUE(found_cells == cells) << "cells differ from " << first;
  }

  Queue& queue_;
  NormalizeConfig config_;
  Data& data_;
  std::int64_t gulp_;
  CudaNormalizer device_;
  Buffer<float> power_;
  Buffer<std::uint8_t> codes_, cells_;
  std::vector<std::unique_ptr<Normalizer>> hosts_;
  std::vector<NormalizeReport> reports_;
};

// No block of today's devices has shared memory for the decisions among so many channels.
TEST_F(CudaNormalize, MoreChannelsThanSharedMemoryHolds) {
  constexpr std::int64_t kMany = 6000;
  Data data(1, kMany, 3072, false);
  data.add(0, 4321, 4322, 0, data.n, 60);
  data.add(0, 5900, 5901, 1024, 2048, 40);
  Comparison c(queue(), config_of(kMany), data, 3072);
  c.run(false);
  EXPECT_GE(c.reports()[0].masked_channel, data.n);
  EXPECT_GT(c.reports()[0].masked_cell, 0);
}

TEST_F(CudaNormalize, EqualsTheHost) {
  Data data(5, 64, 3 * kBlock - 700, true);
  Comparison c(queue(), config_of(64), data, kBlock);
  c.run(false);
  // Every cause was there, and bursts went to the host.
  const auto& r = c.reports();
  EXPECT_GT(r[0].masked_channel, 2 * kBlock);
  EXPECT_GT(r[1].masked_cell, 0);
  EXPECT_GT(r[1].masked_absent, 300 * 64);
  EXPECT_GT(r[2].masked_spectra, 0);
  EXPECT_GT(r[3].spectra.n_pulses_kept + r[3].spectra.n_undecided, 0);
  EXPECT_EQ(r[4].written, 0);
  EXPECT_GE(c.n_bursts_, 3);
}

TEST_F(CudaNormalize, AfterALoss) {
  Data data(4, 48, 4 * 2048, true);
  Comparison c(queue(), config_of(48), data, 2048);
  c.run(true);
}

TEST_F(CudaNormalize, OtherShapes) {
  for (const std::int64_t n_channels : {5, 33, 300, 1024}) {
    Data data(2, n_channels, 2 * 1024 + 65, false);
    Comparison c(queue(), config_of(n_channels), data, 1024);
    c.run(false);
  }
  // Without flags, and cells of another length.
  NormalizeConfig config = config_of(40);
  config.flag_channels = false;
  config.statistics_samples = 192;
  Data data(2, 40, 3000, false);
  Comparison c(queue(), config, data, 1536);
  c.run(false);
}

// Times masked by the user, over a loss too; spectral kurtosis; the zero-DM filter.
TEST_F(CudaNormalize, MasksKurtosisAndTheFilter) {
  for (const ZeroDm filter : {ZeroDm::off, ZeroDm::mean, ZeroDm::weighted}) {
    NormalizeConfig config = config_of(48);
    config.zero_dm = filter;
    config.kurtosis_degrees = 100;  // rms = 0.1 of the mean
    std::vector<std::uint8_t> few(48, 0);
    std::fill_n(few.begin() + 4, 9, std::uint8_t{1});
    config.mask.blocks = {{1000, 1131, {}}, {4000, 6400, few}};
    Data data(3, 48, 4 * 2048, true);
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t c = 0; c < 48; ++c)
        for (std::int64_t t = 0; t < data.n; ++t)
          data.row(b, c)[t] += 4 * std::sin(0.02F * static_cast<float>(t));
    Comparison c(queue(), config, data, 2048);
    c.run(filter == ZeroDm::mean);
    EXPECT_GT(c.reports()[0].masked_time, 131 * 40);
    EXPECT_GT(c.reports()[0].masked_kurtosis, 0);
  }
}

TEST_F(CudaNormalize, SaysWhatItDoesNot) {
  NormalizeConfig config = config_of(16);
  config.median_cells = 66;
  EXPECT_EQ(CudaNormalizer::unsupported(config), "running medians over more than 64 cells");
  EXPECT_THROW(CudaNormalizer(queue(), config, 1, 1024), UnsupportedError);
  config.median_cells = 64;
  EXPECT_EQ(CudaNormalizer::unsupported(config), "");
}

#else

TEST(CudaNormalize, EqualsTheHost) { GTEST_SKIP() << "skipped: " << cuda_unavailable_reason(); }

#endif

}  // namespace
}  // namespace ryle::search
