// SPDX-License-Identifier: BSD-3-Clause
// The equation, in int64 or double. Never optimised; shares no code with the fast implementations.
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/implementations.hpp"

namespace ryle::correlate::detail {
namespace {

class Reference final : public Correlator {
 public:
  explicit Reference(const Config& config) : config_(config), pairs_(n_pairs(config.n_inputs)) {
    clear();
  }

  void execute(Queue&, const Input& input) override {
    for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
      for (std::int64_t j = 0; j < config_.n_inputs; ++j) {
        for (std::int64_t i = 0; i <= j; ++i) add(input, channel, i, j);
      }
    }
    sums_.n_spectra += input.n_spectra;
  }

  void finish(Queue&, Sums& sums) override {
    sums = sums_;
    clear();
  }
  void reset(Queue&) override { clear(); }
  std::string_view implementation() const override { return "correlate/reference"; }
  const Config& config() const override { return config_; }

 private:
  // @eq V_ij = sum_t v_i conj(v_j); n_ij = number of t with both valid
  void add(const Input& input, std::int64_t channel, std::int64_t i, std::int64_t j) {
    const std::int64_t at = channel * pairs_ + pair_index(i, j);
    for (std::int64_t t = 0; t < input.n_spectra; ++t) {
      const cf64 a = get_sample(input.blocks, channel, t, i);
      const cf64 b = get_sample(input.blocks, channel, t, j);
      if (is_integer_format(config_.format)) {
        const auto ar = static_cast<std::int64_t>(a.real()),
                   ai = static_cast<std::int64_t>(a.imag());
        const auto br = static_cast<std::int64_t>(b.real()),
                   bi = static_cast<std::int64_t>(b.imag());
        sums_.integer[at].re += ar * br + ai * bi;
        sums_.integer[at].im += ai * br - ar * bi;
      } else {
        sums_.real[at] += a * std::conj(b);
      }
      const auto* mask = input.valid;
      if (mask != nullptr) mask += channel * input.valid_channel_stride_words;
      sums_.counts[at] += mask == nullptr || (test_bit(mask + i * input.valid_words, t) &&
                                              test_bit(mask + j * input.valid_words, t));
    }
  }

  void clear() {
    sums_ = Sums{};
    const std::size_t n = static_cast<std::size_t>(config_.n_channels * pairs_);
    if (is_integer_format(config_.format)) {
      sums_.integer.resize(n);
    } else {
      sums_.real.resize(n);
    }
    sums_.counts.resize(n);
  }

  Config config_;
  std::int64_t pairs_;
  Sums sums_;
};

}  // namespace

std::unique_ptr<Correlator> make_reference(const Config& config) {
  return std::make_unique<Reference>(config);
}

}  // namespace ryle::correlate::detail
