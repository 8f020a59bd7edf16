// SPDX-License-Identifier: BSD-3-Clause
// Few-bit samples: visibilities and pictures with the flux that the sky has, and with the same.
#include "ryle/pipeline/base/level_correction.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ryle/core/baseline.hpp"
#include "ryle/core/random.hpp"
#include "ryle/engine/correlate/van_vleck.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/run/sample_path.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kInputs = 8;
constexpr std::int64_t kTicks = 1 << 16;
constexpr double kCorrelation = 0.4;  // of any two inputs
constexpr SampleClock kClock{1'700'000'000'000'000'000, {1'000'000, 1}};

double gaussian(std::uint64_t key) {
  const double u = (static_cast<double>(mix64(key) >> 11) + 0.5) * 0x1p-53;
  const double v = static_cast<double>(mix64(key ^ 0x5555) >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
}

/// A source at the zenith in noise, as samples of one or two bits.
class CoarseSky final : public Recording {
 public:
  explicit CoarseSky(int bits) : bits_(bits) {
    info_.n_inputs = kInputs;
    info_.n_ticks = kTicks;
    info_.clock = kClock;
    info_.reference_hz = 40e6;
    info_.layout.format = bits == 1 ? SampleFormat::i1 : SampleFormat::i2;
    info_.layout.encoding = Encoding::levels;
    info_.layout.input_stride_bits = bits;
    info_.layout.sample_stride_bits = bits * kInputs;
    bytes_.resize(static_cast<std::size_t>(kTicks * bits));
    for (std::int64_t t = 0; t < kTicks; ++t) {
      const auto tick = static_cast<std::uint64_t>(t);
      const double common = std::sqrt(kCorrelation) * gaussian(combine(1, tick));
      std::uint32_t word = 0;
      for (std::int64_t p = 0; p < kInputs; ++p) {
        const double x = common + std::sqrt(1 - kCorrelation) *
                                      gaussian(combine(2 + static_cast<std::uint64_t>(p), tick));
        const std::uint32_t two = x < -0.98 ? 0 : x < 0 ? 1 : x < 0.98 ? 2 : 3;
        word |= (bits == 1 ? two / 2 : two) << (p * bits);
      }
      std::memcpy(bytes_.data() + t * bits, &word, static_cast<std::size_t>(bits));
    }
  }
  const RecordingInfo& info() const override { return info_; }
  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>&) override {
    std::memcpy(destination.data(), bytes_.data() + first * bits_,
                static_cast<std::size_t>(n * bits_));
  }
  void read_spectra(Tick, std::int64_t, std::span<ci8>, std::vector<AbsentSpan>&,
                    std::vector<std::uint8_t>*, std::vector<ChannelGap>*) override {}

 private:
  int bits_;
  RecordingInfo info_;
  std::vector<std::byte> bytes_;
};

class CoarseSamples : public ::testing::TestWithParam<int> {
 protected:
  CoarseSamples()
      : directory_(fs::temp_directory_path() / ("ryle-coarse-" + std::to_string(getpid()))) {
    fs::create_directories(directory_);
    std::ofstream layout(directory_ / "layout.csv");
    layout << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";
    for (int a = 0; a < kInputs; ++a)
      layout << "A" << a << ',' << 7 * a % 23 << ',' << 5 * a * a % 19 << ",0,X,0\n";
  }
  ~CoarseSamples() override { fs::remove_all(directory_); }

  ObservationConfig config(const std::string& van_vleck) const {
    return parse_observation(
        "[telescope]\nlatitude_deg = 34\nlongitude_deg = -107\nlayout = \"layout.csv\"\n"
        "[channelize]\nn_channels = 32\n[correlate]\nintegration_s = 0.0640\n"
        "fringe_stopping = \"none\"\nvan_vleck = \"" +
            van_vleck +
            "\"\n[runtime]\nthreads = 1\ndevice = \"cpu\"\n[image]\nn_pixels = 32\npath = "
            "\"vis-dft\"\nfits = false\nlatest = false\nequalize = \"yes\"\n[output]\npictures = "
            "false\noverwrite = true\nfiles = [\"" +
            file() + "\"]\ndirectory = \"" + directory_.string() + "\"\n",
        (directory_ / "obs.toml").string());
  }
  std::string file() const { return (directory_ / "coarse.uvh5").string(); }

  /// Mean correlation coefficient of the visibilities.
  double visibilities(CoarseSky& sky, const std::string& van_vleck) const {
    const auto setup = config(van_vleck);
    SampleMetadata metadata{kInputs, sky.info().layout, kClock, 40e6, false,
                            4096,    TimeSource::header};
    SamplePath path(setup, metadata, load_array(setup, kInputs), false, "test");
    std::vector<std::byte> samples(static_cast<std::size_t>(sky.samples_bytes(4096)));
    std::vector<AbsentSpan> absent;
    for (Tick t = 0; t < kTicks; t += 4096) {
      sky.read_samples(t, 4096, samples, absent);
      path.feed(samples.data(), t, 4096, {}, 0, kClock);
    }
    RunSummary summary;
    path.finish(summary, {});
    const VisibilityFile read = read_visibility_file(file());
    EXPECT_EQ(read.observation.applied.van_vleck, van_vleck == "auto");
    const VisibilityDump& dump = read.dumps.front();
    double sum = 0;
    double n = 0;
    for (std::int64_t c = 1; c < dump.n_channels; ++c) {
      const auto at = [&](std::int64_t i, std::int64_t j) {
        return static_cast<double>(
            dump.data[static_cast<std::size_t>(dump.index(c, pair_index(i, j), 0))].real());
      };
      for (std::int64_t j = 0; j < kInputs; ++j) {
        for (std::int64_t i = 0; i < j; ++i) {
          sum += at(i, j) / std::sqrt(at(i, i) * at(j, j));
          n += 1;
        }
      }
    }
    return sum / n;
  }

  /// The peak of the picture, in powers of an antenna.
  double picture(CoarseSky& sky, const std::string& van_vleck) const {
    const auto setup = config(van_vleck);
    const auto reader = make_spectra_reader(setup, sky);
    SpectraMetadata metadata;
    metadata.frequency = reader->frequency;
    metadata.clock = reader->clock;
    metadata.n_spectra = reader->n_spectra;
    metadata.max_gulp = reader->max_gulp;
    metadata.scale = reader->scale;
    metadata.samplers = reader->samplers;
    metadata.format = reader->format;
    SkyPath path(setup, load_array(setup, kInputs), metadata, "test");
    SpectraGulp gulp;
    for (std::int64_t first = 0; first < reader->n_spectra;) {
      const std::int64_t n = std::min(path.room(first), reader->n_spectra - first);
      reader->read(first, n, gulp);
      path.feed(gulp, first, 0, reader->clock);
      first += n;
    }
    RunSummary summary;
    path.finish({}, summary);
    return summary.image->peak->value;
  }

  fs::path directory_;
};

// To first order in the correlation: one bit leaves asin(r) / r - 1 = r^2 / 6 + 3 r^4 / 40, more
// bits leave less. Noise: the mean of all pairs follows the power of the common signal, rms
// r sqrt(2 / n) / (1 - 1/n_inputs) in n samples: 5 sigma = 0.0127 with 2^16. Both are drawn from
// the same samples, so picture and visibilities differ by the requantiser's noise only.
TEST_P(CoarseSamples, PictureAndVisibilitiesHaveTheFluxOfTheSky) {
  CoarseSky sky(GetParam());
  const double r = kCorrelation;
  const double left = r * (r * r / 6 + 3 * std::pow(r, 4) / 40);
  const double noise = 5 * r * std::sqrt(2.0 / kTicks) / (1 - 1.0 / kInputs);
  const double visible = visibilities(sky, "auto");
  const double pictured = picture(sky, "auto");
  EXPECT_GT(visible, r - noise);
  EXPECT_LT(visible, r + left + noise);
  EXPECT_NEAR(pictured, visible, 0.01 * r);
  // What coarse samples make of it: 2/pi asin(r) with one bit, 0.88 r with two.
  EXPECT_LT(visibilities(sky, "off"), (GetParam() == 1 ? 0.68 : 0.92) * r);
  EXPECT_LT(picture(sky, "off"), (GetParam() == 1 ? 0.68 : 0.92) * r);
}
INSTANTIATE_TEST_SUITE_P(Bits, CoarseSamples, ::testing::Values(1, 2));

// Codes counted as they would be for Gaussian samples: k and the power against their integrals.
TEST(LevelCorrection, FourBitsAreStepsOfOne) {
  SampleLayout layout;
  layout.format = SampleFormat::ci4;
  channelize::LevelStatistics levels;
  const double rms = 2.3;
  for (int c = -8; c <= 7; ++c) {
    const double low = c == -8 ? -1e9 : (c - 0.5) / rms;
    const double high = c == 7 ? 1e9 : (c + 0.5) / rms;
    levels.histogram[c + 128] =
        std::llround(5e7 * (std::erfc(low / std::sqrt(2.0)) - std::erfc(high / std::sqrt(2.0))));
  }
  levels.n_samples = 50'000'000;
  const auto found = sampler_gain(levels, layout);
  const double power = correlate::detail::quantized_power(four_bit_codes(), rms);
  const auto want = correlate::quantized_gain(four_bit_codes(), 2 * power);
  // The mean that the asymmetric clipping leaves is not power of the voltage: 1e-6 of it.
  EXPECT_NEAR(found.cross, want.cross, 1e-4);
  EXPECT_NEAR(found.autos, want.autos, 1e-4);
  EXPECT_NEAR(want.autos, rms * rms / power, 1e-12);
  EXPECT_GT(want.cross, 1.0);  // clipped
  EXPECT_LT(want.cross, 1.01);
  layout.format = SampleFormat::ci8;
  EXPECT_FALSE(is_coarse(layout));
  EXPECT_TRUE(sampler_gains(std::vector<channelize::LevelStatistics>(3), layout).empty());
}

}  // namespace
}  // namespace ryle::pipeline
