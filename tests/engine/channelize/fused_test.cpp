// SPDX-License-Identifier: BSD-3-Clause
// The fused CUDA kernel on the host, with its barriers and shared memory (tests/support/simt),
// against the double-precision reference.
#include <gtest/gtest.h>

#include <complex>
#include <string>
#include <vector>

#include "tests/support/simt/cuda_names.hpp"
// After the words of CUDA.
#include "ryle/core/bits.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/channelize/cuda/fused.cuh"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::channelize {
namespace {

struct Case {
  Config config;
  std::int64_t n_spectra = 70;
  bool delays = false;
  bool absent = false;
  float gain = 0.2f;
};

Config base(std::int64_t n_channels, SampleFormat output) {
  Config c;
  c.n_inputs = 2;
  c.n_channels = n_channels;
  c.n_taps = 4;
  c.layout.format = SampleFormat::ci8;
  c.sample_rate_hz = 1.28e6;
  c.reference_hz = 150e6;
  c.output = output;
  c.seed = 77;
  return c;
}

/// One gulp and what the reference makes of it.
class Gulp {
 public:
  static constexpr std::int64_t kMargin = 40;
  static constexpr Tick kFirstTick = 6400;

  explicit Gulp(Case c) : case_(std::move(c)) {
    Config& config = case_.config;
    const std::int64_t k = config.n_channels;
    n_samples_ = (case_.n_spectra - 1) * k + config.n_taps * k + 2 * kMargin;
    auto& layout = config.layout;
    const bool interleaved = layout.sample_stride_bits > 16;
    layout.sample_stride_bits = interleaved ? 16 * config.n_inputs : 16;
    layout.input_stride_bits = interleaved ? 16 : 16 * n_samples_;
    config.max_spectra = case_.n_spectra;
    first_spectrum_ = (kFirstTick + kMargin + k - 1) / k;
    samples_.resize(static_cast<std::size_t>(2 * n_samples_ * config.n_inputs));
    for (std::size_t i = 0; i < samples_.size(); ++i)
      samples_[i] = static_cast<std::byte>(mix64(i + 1));
    gains_.resize(static_cast<std::size_t>(config.n_inputs * k));
    for (std::size_t i = 0; i < gains_.size(); ++i)
      gains_[i] = std::polar(case_.gain, static_cast<float>(i % 7));
    delays_.resize(static_cast<std::size_t>(config.n_inputs));
    for (std::size_t p = 0; case_.delays && p < delays_.size(); ++p) {
      delays_[p].delay_s[0] = (7.3 * static_cast<double>(p) - 5.4) / config.sample_rate_hz;
      delays_[p].delay_s[1] = 1e-4 * static_cast<double>(p);  // D steps within the gulp
      delays_[p].phase_turns[0] = 0.37 * static_cast<double>(p);
      delays_[p].phase_turns[1] = 1234.5;
    }
    if (case_.absent) absent_ = {{0, kFirstTick + 20 * k, kFirstTick + 20 * k + 3}};
    words_ = words_for_bits(case_.n_spectra);
    valid_.resize(static_cast<std::size_t>(config.n_inputs * words_));
    wanted_.resize(bytes(), std::byte{0xCD});
    wanted_statistics_.resize(static_cast<std::size_t>(config.n_inputs * k));
    run_reference();
  }

  std::size_t bytes() const {
    const Config& c = case_.config;
    return static_cast<std::size_t>(
        dense_blocks_bytes(c.output, c.n_channels, case_.n_spectra, c.n_inputs));
  }

  /// Runs the kernel on spectra [from, from + n) of the gulp, from a multiple of a block.
  template <int K, int kTaps, int kStride>
  void run_fused(std::uint64_t seed, std::int64_t from, std::int64_t n, std::vector<std::byte>& out,
                 std::vector<detail::CudaStatistics>& counted) {
    using S = detail::FusedShape<K>;
    const Config& config = case_.config;
    const detail::Problem problem = detail::make_problem(config);
    const std::vector<float> filter(problem.filter.begin(), problem.filter.end());
    std::vector<float4> twiddles(K / 2);
    for (int k1 = 0; k1 < S::kR1; ++k1) {
      for (int n2 = 0; n2 < S::kR2; ++n2) {
        const cf64 root = math::unit_root(-k1 * n2, K);
        float* at = &twiddles[0].x + 2 * detail::fused_twiddle_at(S::kR2, k1, n2);
        at[0] = static_cast<float>(root.real());
        at[1] = static_cast<float>(root.imag());
      }
    }
    std::vector<std::uint32_t> keys(K);
    for (int c = 0; c < K; ++c) keys[static_cast<std::size_t>(c)] = dither_channel_key(77, c);
    const auto ramps = make_ramps(problem, from, n);
    detail::FusedArguments a;
    a.samples = samples_.data();
    a.first_tick = kFirstTick;
    a.input_stride_bytes = config.layout.input_stride_bits / 8;
    a.sample_stride_bytes = config.layout.sample_stride_bits / 8;
    a.filter = filter.data();
    a.twiddles = twiddles.data();
    a.gains = reinterpret_cast<const float2*>(gains_.data());
    a.channel_keys = keys.data();
    a.ramps = ramps.data();
    a.max_spectra = n;
    a.n_inputs = static_cast<int>(config.n_inputs);
    a.n_spectra = static_cast<int>(n);
    a.inverted = config.inverted_band;
    a.dither = config.dither;
    a.truncate = config.rounding == Rounding::truncate;
    a.blocks = view(out);
    a.blocks.data += from / spectra_per_block(config.output) * a.blocks.block_stride_bytes;
    a.statistics = counted.data();
    a.blocks_per_group = static_cast<int>(1 + seed % 3);
    const std::int64_t n_groups =
        (n_blocks(config.output, n) + a.blocks_per_group - 1) / a.blocks_per_group;
    simt::launch(
        {{static_cast<unsigned>(config.n_inputs * n_groups)}, {S::kThreads}, S::kSharedBytes}, seed,
        [&] { detail::fused_channelize<K, kTaps, kStride>(a); });
  }

  template <int K, int kTaps, int kStride>
  void check(std::uint64_t seed) {
    std::vector<std::byte> out(bytes(), std::byte{0xCD});
    std::vector<detail::CudaStatistics> counted(wanted_statistics_.size());
    run_fused<K, kTaps, kStride>(seed, 0, case_.n_spectra, out, counted);
    const BlockView found = view(out);
    const BlockView wanted = view(wanted_);
    const std::int64_t all = found.n_blocks * spectra_per_block(found.format);
    std::int64_t different = 0;
    for (std::int64_t channel = 0; channel < found.n_channels; ++channel) {
      for (std::int64_t p = 0; p < found.n_inputs; ++p) {
        double squares = 0;
        for (std::int64_t t = 0; t < all; ++t) {
          const cf64 x = get_sample(found, channel, t, p);
          const cf64 y = get_sample(wanted, channel, t, p);
          ASSERT_LE(std::max(std::abs(x.real() - y.real()), std::abs(x.imag() - y.imag())), 1)
              << "channel " << channel << " spectrum " << t << " input " << p;
          if (t >= case_.n_spectra || !test_bit(valid_.data() + p * words_, t)) {
            ASSERT_EQ(x, cf64(0)) << t;
          }
          different += (x.real() != y.real()) + (x.imag() != y.imag());
          squares += std::norm(x);
        }
        const auto at = static_cast<std::size_t>(channel * found.n_inputs + p);
        ASSERT_EQ(static_cast<double>(counted[at].squares.integer), squares) << channel;
        // A part that crosses a threshold by rounding may cross the one of clipping.
        EXPECT_NEAR(counted[at].saturated_low, wanted_statistics_[at].saturated_low, 1);
        EXPECT_NEAR(counted[at].saturated_high, wanted_statistics_[at].saturated_high, 1);
      }
    }
    // fp32 moves a value by 1e-5 LSB, so about that part of the codes crosses a threshold.
    const double parts = 2.0 * static_cast<double>(found.n_channels * found.n_inputs * all);
    EXPECT_LE(static_cast<double>(different), 3 + 1e-4 * parts);
  }

  std::int64_t saturated() const {
    std::int64_t sum = 0;
    for (const auto& s : wanted_statistics_) sum += s.saturated_low + s.saturated_high;
    return sum;
  }

 private:
  BlockView view(std::vector<std::byte>& of) const {
    const Config& c = case_.config;
    return dense_blocks(of.data(), c.output, c.n_channels, case_.n_spectra, c.n_inputs);
  }

  void run_reference() {
    Config config = case_.config;
    config.implementation = "reference";
    Queue queue = Queue::cpu(1);
    const auto reference = make_channelizer(queue, config);
    reference->set_delays(delays_);
    reference->set_gains(View<const cf32, 2>(gains_.data(), {config.n_inputs, config.n_channels}));
    Output output;
    output.blocks = view(wanted_);
    output.valid = valid_.data();
    output.valid_words = words_;
    output.statistics = wanted_statistics_.data();
    reference->execute(queue, {samples_.data(), kFirstTick, n_samples_, absent_}, first_spectrum_,
                       case_.n_spectra, output);
  }

  std::vector<detail::CudaRamp> make_ramps(const detail::Problem& problem, std::int64_t from,
                                           std::int64_t n) const {
    std::vector<detail::CudaRamp> ramps;
    for (std::int64_t p = 0; p < problem.config.n_inputs; ++p) {
      for (std::int64_t i = from; i < from + n; ++i) {
        const std::int64_t m = first_spectrum_ + i;
        const auto shift = detail::evaluate(problem, delays_[static_cast<std::size_t>(p)], m);
        const auto phase = detail::phase_ramp(problem, shift, m);
        ramps.push_back({phase.base, phase.slope, m * problem.step - shift.samples,
                         dither_spectrum_key(m),
                         test_bit(valid_.data() + p * words_, i) ? 1u : 0u});
      }
    }
    return ramps;
  }

  Case case_;
  std::int64_t n_samples_ = 0;
  std::int64_t first_spectrum_ = 0;
  std::int64_t words_ = 0;
  std::vector<std::byte> samples_;
  std::vector<cf32> gains_;
  std::vector<DelayPolynomial> delays_;
  std::vector<AbsentSpan> absent_;
  std::vector<std::uint64_t> valid_;
  std::vector<std::byte> wanted_;
  std::vector<ChannelStatistics> wanted_statistics_;
};

TEST(FusedKernel, EverySize) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    Gulp({.config = base(128, SampleFormat::ci8)}).check<128, 4, 2>(seed);
    Gulp({.config = base(256, SampleFormat::ci8)}).check<256, 4, 2>(seed);
  }
  Gulp({.config = base(512, SampleFormat::ci8), .n_spectra = 33}).check<512, 4, 2>(1);
  Gulp({.config = base(1024, SampleFormat::ci8), .n_spectra = 33}).check<1024, 4, 2>(1);
}

TEST(FusedKernel, DelaysAbsentSamplesAndInvertedBands) {
  for (const bool inverted : {false, true}) {
    Case c{.config = base(128, SampleFormat::ci8), .n_spectra = 90, .delays = true, .absent = true};
    c.config.inverted_band = inverted;
    Gulp(c).check<128, 4, 2>(5);
    c.config.layout.sample_stride_bits = 32;
    c.config.n_taps = 8;
    Gulp(c).check<128, 8, 0>(6);
  }
}

TEST(FusedKernel, ClippingRoundingAndFourBits) {
  for (const bool dither : {false, true}) {
    for (const auto rounding : {Rounding::nearest_even, Rounding::truncate}) {
      Case c{.config = base(128, SampleFormat::ci4), .n_spectra = 130, .gain = 0.1f};
      c.config.dither = dither;
      c.config.rounding = rounding;
      Gulp gulp(c);
      EXPECT_GT(gulp.saturated(), 100);
      gulp.check<128, 4, 2>(7);
    }
  }
}

TEST(FusedKernel, CuttingTheGulpGivesTheSameBits) {
  Case c{.config = base(128, SampleFormat::ci8), .n_spectra = 128, .delays = true};
  Gulp gulp(c);
  std::vector<std::byte> once(gulp.bytes()), cut(gulp.bytes());
  std::vector<detail::CudaStatistics> of_once(256), of_cut(256);
  gulp.run_fused<128, 4, 2>(3, 0, 128, once, of_once);
  gulp.run_fused<128, 4, 2>(4, 0, 64, cut, of_cut);
  gulp.run_fused<128, 4, 2>(4, 64, 64, cut, of_cut);
  EXPECT_EQ(once, cut);
  for (std::size_t k = 0; k < of_once.size(); ++k)
    ASSERT_EQ(of_once[k].squares.integer, of_cut[k].squares.integer);
}

}  // namespace
}  // namespace ryle::channelize
