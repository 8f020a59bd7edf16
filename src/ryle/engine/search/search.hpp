// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/device/queue.hpp"

/// Incoherent dedispersion of unsigned codes by integer shifts, then boxcars and peaks over the
/// sums.
/// @eq D[trial][t] = sum_c x[c][t + delay(trial, c)]   (Magro 2014, search.md 5)
/// @eq S/N = (sum_W D - W mu) / (sigma sqrt(W w)), mu and sigma of the trial, w the unmasked
/// fraction (conventions.md 7)
namespace ryle::search {

struct DedisperseConfig {
  std::int64_t n_channels = 0;
  std::int64_t n_trials = 0;
  std::vector<std::int32_t> delays;  ///< [trial][channel], samples, >= 0
  int max_code = 63;                 ///< largest code that occurs, 1 .. 255
  std::int64_t max_outputs = 0;      ///< most outputs one execute() makes
  /// auto | reference | cpu | cpu:avx512 | cpu:avx2 | cpu:generic; the tree: fdmt | fdmt:reference
  /// | fdmt:avx512 | fdmt:avx2 | fdmt:generic; two stages: subband | subband:reference |
  /// subband:avx512 | subband:avx2 | subband:generic; on GPUs: cuda | cuda:shared | cuda:direct |
  /// fdmt:cuda | fdmt:cuda:tiles | subband:cuda
  std::string implementation = "auto";
  /// [channel] nu^-2 in any unit, for the tree; empty: from the delays.
  std::vector<double> dispersion = {};
  /// Samples that a channel may lie off its delay. Above 0, auto takes sub-bands where they need
  /// fewer additions than exact sums; 0: auto is exact, and subband takes 1.
  double smear_samples = 0;
};

/// What an approximate method sums off the planned delays.
struct TrackError {
  double max_samples = 0, rms_samples = 0;
};

/// The narrowest integer that holds n_channels * max_code: the range proof of the plan.
enum class SumFormat : std::uint8_t { u16, u32 };
SumFormat sum_format(std::int64_t n_channels, int max_code);

/// Rows a fast implementation may read beyond the samples it needs, in bytes; contents do not
/// matter.
inline constexpr std::int64_t kReadAhead = 256;

class Dedisperser {
 public:
  virtual ~Dedisperser() = default;
  /// No allocation. Every exact implementation gives the same integers, and so
  /// does every implementation of the tree, wherever calls begin and end.
  /// @shape codes [channel][time] u8, `code_stride` bytes between channels, at least n_outputs +
  /// max_delay() samples, and kReadAhead readable bytes behind those of the last channel
  /// @shape sums [trial][time] u16 or u32 by sum_format(), `sum_stride` elements between trials
  /// @pre 0 <= n_outputs <= max_outputs; no code above max_code
  virtual void execute(Queue& queue, const std::uint8_t* codes, std::int64_t code_stride,
                       std::int64_t n_outputs, void* sums, std::int64_t sum_stride) = 0;
  virtual std::int64_t max_delay() const = 0;
  virtual TrackError track_error() const { return {}; }
  /// Predicted additions of rows for one output of all trials, for comparison; 0 = not known.
  virtual double work() const { return 0; }
  virtual std::string_view implementation() const = 0;
};

std::unique_ptr<Dedisperser> make_dedisperser(Queue& queue, const DedisperseConfig& config);
/// Exact ones.
std::vector<std::string> available_implementations();
/// The tree's.
std::vector<std::string> available_trees();
/// Those of two stages.
std::vector<std::string> available_subbands();
/// What makes exact sums, or detects, where the tree or the sub-bands of this name run
/// ("fdmt:avx2": "cpu:avx2"); other names unchanged.
std::string exact_implementation(const std::string& name);
/// "cuda", "fdmt:cuda", "subband:cuda", "cuda:direct", ...
inline bool names_cuda(const std::string& implementation) {
  return implementation.find("cuda") != std::string::npos;
}

// Boxcars and peaks.

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
