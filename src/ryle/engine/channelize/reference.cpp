// SPDX-License-Identifier: BSD-3-Clause
// The equation of channelizer.hpp in double, spectrum by spectrum. Never optimised.
#include <cmath>
#include <numbers>

#include "ryle/core/bits.hpp"
#include "ryle/engine/channelize/dither.hpp"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/engine/channelize/requantize.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::channelize::detail {
namespace {

class Reference final : public Channelizer {
 public:
  explicit Reference(const Problem& problem)
      : problem_(problem),
        fft_(problem.n_points),
        delays_(problem.config.n_inputs),
        gains_(problem.config.n_inputs * problem.config.n_channels, cf32{1, 0}),
        spectrum_(problem.n_points) {}

  void execute(Queue& queue, const Input& input, std::int64_t first, std::int64_t n_spectra,
               const Output& output) override {
    check_call(problem_, input, n_spectra, output);
    mark_valid(queue, problem_, delays_, input, first, n_spectra, output.valid, output.valid_words);
    zero_blocks(output.blocks, n_spectra);
    for (std::int64_t p = 0; p < problem_.config.n_inputs; ++p) {
      for (std::int64_t i = 0; i < n_spectra; ++i) {
        if (test_bit(output.valid + p * output.valid_words, i))
          one_spectrum(input, p, first + i, i, output);
      }
    }
  }

  void set_delays(std::span<const DelayPolynomial> delays) override {
    check_delays(problem_, delays);
    delays_.assign(delays.begin(), delays.end());
  }
  void set_gains(View<const cf32, 2> gains) override { copy_gains(problem_, gains, gains_.data()); }
  std::string_view implementation() const override { return "channelize/reference"; }
  const Config& config() const override { return problem_.config; }
  std::span<const double> filter() const override { return problem_.filter; }

 private:
  void one_spectrum(const Input& input, std::int64_t p, std::int64_t m, std::int64_t i,
                    const Output& output) {
    const Shift shift = evaluate(problem_, delays_[p], m);
    const Tick begin = m * problem_.step - shift.samples - input.first_tick;
    std::fill(spectrum_.begin(), spectrum_.end(), cf64{});
    for (std::int64_t n = 0; n < problem_.n_filter; ++n) {
      spectrum_[n % problem_.n_points] +=
          problem_.filter[n] * decode_sample(problem_.config.layout, input.samples, p, begin + n);
    }
    fft_.forward(spectrum_.data());
    for (std::int64_t c = 0; c < problem_.config.n_channels; ++c) {
      cf64 x = spectrum_[bin_of_channel(problem_, c)];
      if (problem_.sense < 0) x = std::conj(x);
      // exp(-2 pi i [nu_0 d + s nu_bb (d - D/f_s)]), and the phase of the window's first sample,
      // mM.
      const auto sk = static_cast<double>(c - problem_.zero_channel);
      const auto k = static_cast<double>(problem_.n_points);
      const double rate_hz = problem_.config.sample_rate_hz;
      const double residual_s = shift.delay_s - static_cast<double>(shift.samples) / rate_hz;
      const auto start = static_cast<double>(m * problem_.step % problem_.n_points);
      const double turns = shift.phase_turns - problem_.config.reference_hz * shift.delay_s -
                           sk * rate_hz / k * residual_s - std::fmod(sk * start, k) / k;
      x *= std::polar(1.0, 2 * std::numbers::pi * (turns - std::floor(turns)));
      x *= cf64(gains_[p * problem_.config.n_channels + c]);
      store(problem_, x, p, c, m, i, output);
    }
  }

  Problem problem_;
  math::Fft fft_;
  std::vector<DelayPolynomial> delays_;
  std::vector<cf32> gains_;
  std::vector<cf64> spectrum_;
};

}  // namespace

std::unique_ptr<Channelizer> make_reference(const Problem& problem) {
  return std::make_unique<Reference>(problem);
}

}  // namespace ryle::channelize::detail
