// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/grid/convolution.hpp"
#include "ryle/engine/grid/large_array.hpp"

/// Single-dish gridding: every cell of a map is the weighted mean of the samples within reach.
/// @eq N = sum_k w u v x, D = sum_k w u v, Q = sum_k w^2 u v, n = sum_k v over |angle| < R;
/// value = N / D, noise = sqrt(Q) / D   (grid.md 1)
namespace ryle::grid {

/// Unit vectors, in the frame of the map. NaN: no place on the sky.
struct Positions {
  LargeVector<double> x, y, z;
  std::int64_t size() const { return static_cast<std::int64_t>(x.size()); }
};
/// From longitudes and latitudes, any range of longitude. What is not finite, or beyond a pole, is
/// NaN. @unit degrees
Positions positions(Queue& queue, const double* longitude_deg, const double* latitude_deg,
                    std::int64_t n);

/// Where the sums are made.
struct Cells {
  Positions directions;  ///< NaN: off the projection, stays empty
  /// Cells in a row of a map, which divides their number; 0: a list, of which neighbours should be
  /// neighbours on the sky.
  std::int64_t width = 0;
};

enum class Precision : std::uint8_t { f32, f64 };

struct Config {
  Convolution convolution;
  std::int64_t n_channels = 1;
  Precision precision = Precision::f32;  ///< of positions in a tile, weights and short sums
  std::string implementation =
      "auto";                     ///< auto (= cpu) | reference | cpu | cpu:avx512 | ... | cuda
  std::vector<int> devices = {};  ///< CUDA devices channels, then tiles are split over; empty: 0
};

/// What is measured at the positions of a plan. A value that is NaN or infinite or flagged, and one
/// whose weight is not finite and above 0, is absent: in its channel only.
struct Samples {
  const float* values = nullptr;
  std::int64_t sample_stride = 1, channel_stride = 0;
  const float* weights = nullptr;                                    ///< nullptr: all 1
  std::int64_t weight_sample_stride = 1, weight_channel_stride = 0;  ///< 0: one for all channels
  const std::uint8_t* flags = nullptr;  ///< strides of the values; not 0 = absent
};

/// What says how much stands behind a value.
struct Moments {
  double weight = 0;     ///< D
  double square = 0;     ///< Q
  double magnitude = 0;  ///< sum of |w u v|; D where the function is nowhere negative
  std::int64_t count = 0;

  void add(const Moments& m) {
    weight += m.weight;
    square += m.square;
    magnitude += m.magnitude;
    count += m.count;
  }
};

/// The sums so far. Where no value of a cell's neighbourhood was ever absent its moments are the
/// same for all channels and stand once.
class Sums {
 public:
  Sums(std::int64_t n_cells, std::int64_t n_channels);
  std::int64_t n_cells() const { return n_cells_; }
  std::int64_t n_channels() const { return n_channels_; }
  double weighted(std::int64_t channel, std::int64_t cell) const {  ///< N
    return weighted_[at(channel * n_cells_ + cell)];
  }
  const Moments& moments(std::int64_t channel, std::int64_t cell) const {
    return apart_[at(cell)] != 0 ? own_[at(channel * n_cells_ + cell)] : shared_[at(cell)];
  }
  /// The moments are the same in all channels everywhere.
  bool uniform() const { return own_.empty(); }
  void reset();
  /// Of cells [first, last) alone.
  void reset(std::int64_t first, std::int64_t last);

  // For gridders: different cells from different threads.
  double* weighted_of(std::int64_t channel) { return weighted_.data() + channel * n_cells_; }
  const double* weighted_of(std::int64_t channel) const {
    return weighted_.data() + channel * n_cells_;
  }
  bool apart(std::int64_t cell) const { return apart_[at(cell)] != 0; }
  Moments& shared(std::int64_t cell) { return shared_[at(cell)]; }
  Moments& own(std::int64_t channel, std::int64_t cell) {
    return own_[at(channel * n_cells_ + cell)];
  }
  /// From here on the channels of this cell have moments of their own. @pre allow_parting()
  void part(std::int64_t cell);
  void allow_parting();  ///< allocates; any thread, any number of times

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t n_cells_, n_channels_;
  ZeroArray<double> weighted_;  ///< [channel][cell]
  ZeroArray<Moments> shared_;   ///< [cell]
  ZeroArray<Moments> own_;      ///< [channel][cell], once needed
  ZeroArray<std::uint8_t> apart_;
  std::unique_ptr<std::once_flag> parting_;
};

/// Which samples reach which cells: made once for all channels. Immutable, any number of threads.
class GeometryPlan;

struct PlanMetadata {
  std::int64_t n_samples = 0;
  std::int64_t bad_positions = 0;
  std::int64_t out_of_reach = 0;  ///< of every cell
  std::int64_t n_tiles = 0;
  std::int64_t n_candidates = 0;  ///< (tile, sample)
};
PlanMetadata metadata(const GeometryPlan& plan);

/// Samples that were absent, by reason: the first that applies.
struct AbsentCounts {
  std::int64_t nan_value = 0, inf_value = 0, bad_weight = 0, flagged = 0;
};

/// Samples that CPUs plan and grid at a time where memory matters: directions and lists of more
/// than these take longer to make than to make again.
inline constexpr std::int64_t kSamplesTogether = std::int64_t{1} << 17;

/// Cells [first, last).
struct CellRange {
  std::int64_t first = 0, last = 0;
};

/// What gridders on CPUs hold for some cells. @unit bytes
struct CellMemory {
  std::int64_t n_tiles = 0;
  std::int64_t kept = 0;     ///< while the gridder lives: tiles, and what finds those of a sample
  std::int64_t making = 0;   ///< more while it is made
  std::int64_t planned = 0;  ///< of each plan
};
CellMemory cell_memory(const Convolution& convolution, const Cells& cells);

class Gridder {
 public:
  virtual ~Gridder() = default;
  /// Of many samples, those that one plan should have: others after them are added. Where they are
  /// cut decides the last bits.
  virtual std::int64_t samples_together() const { return std::numeric_limits<std::int64_t>::max(); }
  /// @pre at most 2^31 samples
  virtual std::shared_ptr<const GeometryPlan> plan(Queue& queue, Positions samples) = 0;
  /// Adds the samples of a plan. The same calls give the same bits, whatever the number of workers.
  virtual void execute(Queue& queue, const GeometryPlan& plan, const Samples& samples) = 0;
  /// Cells that the samples of a plan may reach, ascending: no other is touched by execute().
  virtual std::vector<CellRange> cells_of(const GeometryPlan&) const {
    return {{0, sums().n_cells()}};
  }
  virtual const Sums& sums() const = 0;
  virtual Sums& sums() = 0;
  virtual std::string_view implementation() const = 0;
};

/// Throws ConfigError for a convolution function, cells or channels that make no map.
std::unique_ptr<Gridder> make_gridder(const Config& config, Cells cells);
std::vector<std::string> available_implementations();

/// What a map shows of the sums. A cell is empty (NaN, weight 0, count 0) when fewer than min_count
/// samples or less than min_weight reach it; under functions with negative lobes also where
/// D < 0.1 sum |w u v|.
struct Finish {
  std::int64_t min_count = 1;
  double min_weight = 0;
};
template <class Real>
struct PlaneOf {
  std::vector<Real> value, weight, noise;
  std::vector<std::int32_t> count;
};
using Plane = PlaneOf<float>;
/// In float or double: sums are in double, what is rounded is the map.
template <class Real = float>
PlaneOf<Real> finish(const Sums& sums, const Finish& options, std::int64_t channel);
/// The values alone, of channels [first, first + n), on all workers. @shape [n][cell]
template <class Real>
void finish_values(Queue& queue, const Sums& sums, const Finish& options, std::int64_t first,
                   std::int64_t n, Real* values);

AbsentCounts count_absent(Queue& queue, const Samples& samples, std::int64_t n_samples,
                          std::int64_t n_channels);

}  // namespace ryle::grid
