// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/search/dedisperse.hpp"

/// Boxcars and peaks over dedispersed sums.
/// @eq S/N = (sum_W x - W mu) / (sigma sqrt(W w)), mu and sigma of the trial, w the unmasked
/// fraction (conventions.md 7)
namespace ryle::search {

/// 1..8, then steps of 1.19 rounded to samples; above 32 the same on data halved in time once per
/// octave. Widths up to max_width (at most kMaxWidth), at least {1}.
inline constexpr std::int64_t kMaxWidth = 2048;
std::vector<std::int32_t> boxcar_widths(std::int64_t max_width);

/// Local maximum above the threshold: the best boxcar among the starts of a block and the widths of
/// an octave. Blocks are 64 starts, for widths above 32 x 2^k 64 starts of the halved data.
struct Hit {
  std::int64_t start = 0;  ///< first sample, in ticks of the file
  std::int32_t width = 0;  ///< samples
  std::int32_t trial = 0;
  float snr = 0;
  double center() const { return static_cast<double>(start) + 0.5 * width; }
  friend bool operator==(const Hit&, const Hit&) = default;
};

struct DetectConfig {
  std::int64_t n_trials = 0;
  std::int64_t max_width = 256;
  std::int64_t max_columns = 0;
  double threshold = 7;
  SumFormat format = SumFormat::u16;
  std::string implementation = "auto";  ///< as of the dedisperser
};

/// Columns of all trials. Starts are searched in [first_start, end_start), multiples of 64 from
/// column 0; a boxcar may reach to n_columns >= end_start + max_width.
struct DetectInput {
  const void* sums = nullptr;  ///< [trial][column] u16 or u32
  std::int64_t stride = 0;
  std::int64_t n_columns = 0;
  std::int64_t first_tick = 0;  ///< of column 0
  std::int64_t first_start = 0, end_start = 0;
  std::int64_t stat_first = 0, stat_end = 0;  ///< columns mu and sigma come from
  /// [trial][column / 64]: unmasked fraction; nullptr = `level` everywhere. Below kMinWeight
  /// nothing is searched.
  const float* weights = nullptr;
  std::int64_t weight_stride = 0;
  float level = 1;  ///< > 0
};
inline constexpr float kMinWeight = 0.2f;

/// mu and sigma of one trial. @unit code units of a sum; sigma of full weight
struct SeriesStatistics {
  double mu = 0;
  double sigma = 0;  ///< 0: nothing can be said, the trial is not searched
};

class Detector {
 public:
  virtual ~Detector() = default;
  /// Appends hits in the order of trial, octave, time. Every implementation gives the same.
  virtual void execute(Queue& queue, const DetectInput& input, std::vector<Hit>& hits) = 0;
  virtual const std::vector<SeriesStatistics>& statistics()
      const = 0;  ///< [trial], of the last call
  virtual std::string_view implementation() const = 0;
  /// On a device, beyond what grows with the trials alone.
  virtual std::int64_t memory_bytes() const { return 0; }
};

std::unique_ptr<Detector> make_detector(Queue& queue, const DetectConfig& config);

}  // namespace ryle::search
