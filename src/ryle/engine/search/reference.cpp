// SPDX-License-Identifier: BSD-3-Clause
// The equation, in int64. Never optimised; shares no code with the fast implementations.
#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/engine/search/implementations.hpp"

namespace ryle::search::detail {
namespace {

class ReferenceDedisperser final : public Dedisperser {
 public:
  explicit ReferenceDedisperser(const DedisperseConfig& config)
      : config_(config),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {}

  void execute(Queue&, const std::uint8_t* codes, std::int64_t code_stride, std::int64_t n_outputs,
               void* sums, std::int64_t sum_stride) override {
    const SumFormat format = sum_format(config_.n_channels, config_.max_code);
    for (std::int64_t trial = 0; trial < config_.n_trials; ++trial) {
      for (std::int64_t t = 0; t < n_outputs; ++t) {
        // @eq D[trial][t] = sum_c x[c][t + delay(trial, c)]
        std::int64_t sum = 0;
        for (std::int64_t c = 0; c < config_.n_channels; ++c)
          sum += codes[c * code_stride + t + config_.delays[trial * config_.n_channels + c]];
        store_sum(sums, format, trial * sum_stride + t, sum);
      }
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override { return "search/reference"; }

 private:
  DedisperseConfig config_;
  std::int64_t max_delay_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_reference(const DedisperseConfig& config) {
  return std::make_unique<ReferenceDedisperser>(config);
}

}  // namespace ryle::search::detail
