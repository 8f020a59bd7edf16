// SPDX-License-Identifier: BSD-3-Clause
// Gridding with planes of w (improved w-stacking: Arras et al. 2021, A&A 646, A58; Ye et al. 2022,
// MNRAS 510, 4110). Private to engine/image.
#pragma once
#include <string>
#include <vector>

#include "ryle/engine/image/image.hpp"

namespace ryle::image::detail {

/// What decides how many cells and planes there are.
struct SampleExtent {
  std::int64_t n = 0;  ///< samples that count
  double total_weight = 0;
  double max_amplitude = 0;     ///< of weight times visibility
  double min_w = 0, max_w = 0;  ///< of |w|: the image of a sample is that of its conjugate
  /// Of u and v, turned over where w < 0.
  double min_u = 0, max_u = 0, min_v = 0, max_v = 0;
};
SampleExtent extent_of(Queue& queue, const std::vector<Sample>& samples);

/// Whether w moves no phase of the picture by more than a third of the error that is allowed: one
/// plane then holds everything.
bool w_is_negligible(const Config& config, const SampleExtent& extent);
/// Largest phase that one plane gets wrong at the edge of the picture. @unit rad
double flat_phase_error_rad(const Config& config, const SampleExtent& extent);

/// @eq I(l,m) = Re sum_p exp(-2 pi i w_p t) FFT[ sum_k c_k phi(u - u_k) phi(v - v_k) phi(w_p - w_k)
/// ]
///     / (phi^(l) phi^(m) phi^(t)), t = n - 1 + depth / 2, phi of grid_function.hpp with the
///     support that is predicted to be the fastest within `max_error`
/// `flat`: one plane at the middle of w, t = n - 1, without phi along w.
/// Numeric contract: within max_error of sum |c| / sum of weights, anywhere; the same bits for any
/// number of workers. Cells are float from max_error 1e-5 on, else double; planes are added in
/// double.
class StackImager final : public Imager {
 public:
  /// `isa`: "avx512", "avx2" or "generic".
  StackImager(const Config& config, std::string isa, SamplePath path);
  void execute(Queue& queue, const std::vector<Sample>& samples,
               std::vector<double>& image) override;
  std::string_view implementation() const override { return name_; }
  SamplePath path() const override { return path_; }
  const Config& config() const override { return config_; }

 private:
  Config config_;
  std::string isa_, name_;
  SamplePath path_;
};

/// Predicted time on these cores (one transform is timed), infinite where the memory of this
/// machine does not hold a plane.
double stack_seconds(const Config& config, const std::string& isa, const SampleExtent& extent,
                     bool flat, int n_workers);

}  // namespace ryle::image::detail
