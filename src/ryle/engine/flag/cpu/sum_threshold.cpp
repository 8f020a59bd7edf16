// SPDX-License-Identifier: BSD-3-Clause
// @eq as reference.cpp, with running sums: a step adds the sample that enters and takes away the
// one that leaves.
#include <algorithm>

#include "ryle/engine/flag/sum_threshold.hpp"

namespace ryle::flag::detail {
namespace {

class RunningSumThreshold : public Passes {
 public:
  explicit RunningSumThreshold(const Config& config) : Passes(config, "flag/cpu") {}

 private:
  void flag_rows(const Rows& rows, std::int64_t length, double threshold,
                 const std::vector<double>& residual, const std::vector<std::uint8_t>& flags_in,
                 std::vector<std::uint8_t>& flags_out) override {
    for (std::int64_t row = 0; row < rows.n_rows; ++row) {
      const std::int64_t origin = row * rows.row_stride;
      double sum = 0;
      std::int64_t count = 0;
      std::int64_t flagged_to = 0;  // windows overlap: each sample is set once
      for (std::int64_t k = 0; k < rows.n; ++k) {
        const std::int64_t in = origin + k * rows.stride;
        if (flags_in[in] == 0) {
          sum += residual[in];
          ++count;
        }
        if (k >= length) {
          const std::int64_t out = origin + (k - length) * rows.stride;
          if (flags_in[out] == 0) {
            sum -= residual[out];
            --count;
          }
        }
        if (count == 0) sum = 0;  // rounding does not stay
        if (k + 1 < length || count == 0 || !(sum > threshold * static_cast<double>(count)))
          continue;
        for (std::int64_t m = std::max(k + 1 - length, flagged_to); m <= k; ++m)
          flags_out[origin + m * rows.stride] = 1;
        flagged_to = k + 1;
      }
    }
  }
};

}  // namespace

std::unique_ptr<SumThreshold> make_cpu(const Config& config) {
  return std::make_unique<RunningSumThreshold>(config);
}

}  // namespace ryle::flag::detail
