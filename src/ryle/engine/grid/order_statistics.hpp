// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/engine/grid/grid.hpp"

/// Maps of medians: what a few samples of interference cannot move (grid.md 2).
/// @eq median: the middle x of the samples within reach, of an even number the mean of the two
/// @eq weighted median: the smallest x whose cumulative weight w u reaches half of the sum; where
/// it is half exactly, the mean of this x and the next
namespace ryle::grid {

enum class Statistic : std::uint8_t { mean, median, weighted_median };

/// What makes a cell's value of the samples within reach.
struct Estimator {
  Statistic statistic = Statistic::mean;
  Convolution convolution;  ///< of a median: only its support
};

/// What parse_convolution() knows, of which means are made; "median:radius=1.4arcmin", "median"
/// (half the beam), "wmedian:gauss:1.5arcmin", "wmedian" (gauss). Throws ConfigError.
Estimator parse_estimator(const std::string& text, double beam_fwhm_rad);
std::string to_string(const Estimator& estimator);

struct OrderConfig {
  Estimator estimator;
  std::int64_t n_channels = 1;
  Finish finish;                        ///< when a cell is empty
  std::string implementation = "auto";  ///< auto | reference | cpu:selection
  /// FWHM of a Gaussian beam: values are divided by the same statistic of its response to a source
  /// in the cell; 0: they are not.
  double response_beam_rad = 0;
};

/// Where the maps go. @shape [channel][cell]
struct OrderPlanes {
  float* value = nullptr;         ///< NaN where a cell is empty
  float* weight = nullptr;        ///< sum of the weights; of plain medians the count
  std::int32_t* count = nullptr;  ///< samples within reach
  std::int64_t channel_stride = 0;
};

class OrderGridder {
 public:
  virtual ~OrderGridder() = default;
  /// Medians of parts cannot be joined: all samples are in one plan.
  virtual std::shared_ptr<const GeometryPlan> plan(Queue& queue, Positions samples) = 0;
  /// Samples are absent as they are in means. Weights w u are rounded to 24 bits of the largest
  /// within reach, so that their sums are exact in any order: every implementation, any number of
  /// workers and channels give the same bits.
  virtual void execute(Queue& queue, const GeometryPlan& plan, const Samples& samples,
                       const OrderPlanes& planes) = 0;
  /// Which of these samples a cell may see, ascending: no other is needed.
  virtual std::vector<std::uint32_t> near(Queue& queue, Positions samples);
  virtual std::string_view implementation() const = 0;
};

/// Rows of a map, or cells of a list, that are tiles of their own: maps made in bands of so many
/// have the bits of the whole.
inline constexpr std::int64_t kBandRows = 16, kBandCells = 256;

/// Throws ConfigError for a mean, weights below 0 (negative lobes), cells or channels that make no
/// map; UnsupportedError for an implementation that is none.
std::unique_ptr<OrderGridder> make_order_gridder(const OrderConfig& config, Cells cells);
std::vector<std::string> available_order_implementations();

}  // namespace ryle::grid
