// SPDX-License-Identifier: BSD-3-Clause
// The tree as it is defined, by recursion in plain integers. Shares the shape of the tree with the
// fast one, nothing else.
#include <algorithm>
#include <cmath>

#include "ryle/engine/search/fdmt_plan.hpp"
#include "ryle/engine/search/implementations.hpp"

namespace ryle::search::detail {
namespace {

class TreeReference final : public Dedisperser {
 public:
  explicit TreeReference(const DedisperseConfig& config)
      : config_(config),
        x_(tree_dispersion(config)),
        tree_(tree_of(config.n_channels)),
        max_delay_(*std::max_element(config.delays.begin(), config.delays.end())) {}

  void execute(Queue&, const std::uint8_t* codes, std::int64_t code_stride, std::int64_t n_outputs,
               void* sums, std::int64_t sum_stride) override {
    const SumFormat format = sum_format(config_.n_channels, config_.max_code);
    for (std::int64_t trial = 0; trial < config_.n_trials; ++trial) {
      const std::int32_t sweep = config_.delays[trial * config_.n_channels];
      for (std::int64_t t = 0; t < n_outputs; ++t) {
        const std::int64_t sum = value(tree_[0], sweep, codes + t, code_stride);
        store_sum(sums, format, trial * sum_stride + t, sum);
      }
    }
  }
  std::int64_t max_delay() const override { return max_delay_; }
  std::string_view implementation() const override { return "search/fdmt/reference"; }

 private:
  /// @eq A[node, s][t] = sum_p A[p, e_p - b_p][t + b_p]; `codes` at time t of channel 0
  std::int64_t value(const TreeNode& node, std::int64_t sweep, const std::uint8_t* codes,
                     std::int64_t stride) const {
    const std::int64_t top = node.bounds.back() - 1, bottom = node.bounds.front();
    const double span = x(bottom) - x(top);
    std::int64_t sum = 0;
    for (std::size_t p = 0; p + 1 < node.bounds.size(); ++p) {
      const std::int64_t from = node.bounds[p], to = node.bounds[p + 1] - 1;
      const auto round = [&](std::int64_t channel) {
        return span > 0 ? std::lrint(static_cast<double>(sweep) * ((x(channel) - x(top)) / span))
                        : 0;
      };
      const std::int64_t start = round(to), end = round(from);
      sum += node.part_node.empty()
                 ? codes[from * stride + start]
                 : value(tree_[node.part_node[p]], end - start, codes + start, stride);
    }
    return sum;
  }
  double x(std::int64_t channel) const { return x_[channel]; }

  DedisperseConfig config_;
  std::vector<double> x_;
  std::vector<TreeNode> tree_;
  std::int64_t max_delay_;
};

}  // namespace

std::unique_ptr<Dedisperser> make_fdmt_reference(const DedisperseConfig& config) {
  return std::make_unique<TreeReference>(config);
}

}  // namespace ryle::search::detail
