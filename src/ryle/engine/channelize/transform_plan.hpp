// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/engine/channelize/cpu/kernel.hpp"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/math/fft.hpp"

namespace ryle::channelize::detail {

/// Owns the tables of a KernelPlan: filter, twiddles, passes, chirps. Not movable: the plan points
/// into it.
class TransformPlan {
 public:
  TransformPlan(const Problem& problem, const KernelTable& kernel, bool float_stream,
                std::int64_t sample_bytes);
  TransformPlan(const TransformPlan&) = delete;
  TransformPlan& operator=(const TransformPlan&) = delete;
  const KernelPlan& plan() const { return plan_; }

 private:
  void make_filter(const Problem& problem, const KernelTable& kernel);
  void choose_columns(const KernelTable& kernel);
  void make_passes(std::int64_t n, bool wide_radices);
  void make_digits(const Problem& problem, std::int64_t n_lanes);
  void make_chirp(const KernelTable& kernel);

  KernelPlan plan_{};
  std::vector<float> filter_;
  std::vector<std::int32_t> digits_, whole_;
  std::vector<float> column_twiddles_;
  math::FftPasses<float> passes_;
  std::vector<float> chirp_;
  std::vector<float> chirp_filter_;
  std::vector<float> untangle_;
  std::vector<std::uint32_t> channel_of_, channel_keys_;
};

}  // namespace ryle::channelize::detail
