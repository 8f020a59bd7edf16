// SPDX-License-Identifier: BSD-3-Clause
// The two stages as they are defined, one output at a time in plain integers. Shares the plan with
// the fast one, nothing else.
#include <algorithm>

#include "ryle/engine/search/implementations.hpp"
#include "ryle/engine/search/subband_plan.hpp"

namespace ryle::search::detail {
namespace {

class SubbandReference final : public Dedisperser {
 public:
  explicit SubbandReference(const DedisperseConfig& config)
      : config_(config),
        plan_(subband_plan(config)),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {}

  void execute(Queue&, const std::uint8_t* codes, std::int64_t code_stride, std::int64_t n_outputs,
               void* sums, std::int64_t sum_stride) override {
    const SumFormat format = sum_format(config_.n_channels, config_.max_code);
    for (std::int64_t trial = 0; trial < config_.n_trials; ++trial) {
      for (std::int64_t t = 0; t < n_outputs; ++t) {
        std::int64_t sum = 0;
        for (const Subband& s : plan_.subbands)
          sum += subband_sum(s, trial, codes + s.first_channel * code_stride + t, code_stride);
        store_sum(sums, format, trial * sum_stride + t, sum);
      }
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  TrackError track_error() const override { return plan_.error; }
  std::string_view implementation() const override { return "search/subband/reference"; }

 private:
  /// @eq S[s, g][t + start(i, s)]; `codes` at time t of the sub-band's first channel
  static std::int64_t subband_sum(const Subband& s, std::int64_t trial, const std::uint8_t* codes,
                                  std::int64_t stride) {
    const std::int64_t start = s.start[trial];
    const std::int64_t group = s.group[trial];
    std::int64_t sum = 0;
    for (std::int64_t c = 0; c < s.n_channels; ++c)
      sum += codes[c * stride + start + s.relative[group * s.n_channels + c]];
    return sum;
  }

  DedisperseConfig config_;
  SubbandPlan plan_;
  std::int64_t max_delay_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_subband_reference(const DedisperseConfig& config) {
  return std::make_unique<SubbandReference>(config);
}

}  // namespace ryle::search::detail
