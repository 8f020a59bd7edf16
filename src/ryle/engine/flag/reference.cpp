// SPDX-License-Identifier: BSD-3-Clause
// @eq flag s .. s+M-1 where sum (not flagged) r > chi_M x their number
#include <algorithm>

#include "ryle/engine/flag/sum_threshold.hpp"

namespace ryle::flag::detail {
namespace {

class ReferenceSumThreshold : public Passes {
 public:
  explicit ReferenceSumThreshold(const Config& config) : Passes(config, "flag/reference") {}

 private:
  void flag_rows(const Rows& rows, std::int64_t length, double threshold,
                 const std::vector<double>& residual, const std::vector<std::uint8_t>& flags_in,
                 std::vector<std::uint8_t>& flags_out) override {
    for (std::int64_t row = 0; row < rows.n_rows; ++row) {
      for (std::int64_t first = 0; first + length <= rows.n; ++first) {
        double sum = 0;
        double count = 0;
        for (std::int64_t k = first; k < first + length; ++k) {
          const std::int64_t at = row * rows.row_stride + k * rows.stride;
          if (flags_in[at] != 0) continue;
          sum += residual[at];
          count += 1;
        }
        if (!(count > 0 && sum > threshold * count)) continue;
        for (std::int64_t k = first; k < first + length; ++k)
          flags_out[row * rows.row_stride + k * rows.stride] = 1;
      }
    }
  }
};

}  // namespace

std::unique_ptr<SumThreshold> make_reference(const Config& config) {
  return std::make_unique<ReferenceSumThreshold>(config);
}

}  // namespace ryle::flag::detail
