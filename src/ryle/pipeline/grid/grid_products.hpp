// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ryle/engine/grid/grid.hpp"
#include "ryle/pipeline/grid/grid_scans.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {

struct GridProductOptions {
  std::string output, picture, source;  ///< source: for titles, when there is no object
  bool weights = true, noise = false, overwrite = false;
  bool one_file = false;  ///< weights, counts and noise are extensions of `output`
  bool f64 = false;       ///< values, weights and noise in double
  int n_workers = 0;      ///< that write
};

/// Before the input is opened: throws IoError for a file that could not be made in the end,
/// ConfigError for a name that ends in no known suffix.
void require_map_outputs(const GridOptions& options);
void require_map_outputs(const GridMergeOptions& options);
/// Throws IoError where the disk has no room for the values of a map; "" is no map.
void require_map_room(const std::string& output, std::int64_t n_cells, std::int64_t n_channels,
                      bool f64);

/// Planes that are the same for all channels stand once in their file, others become a cube: how a
/// run was cut into parts makes no difference.
class SharedPlanes;

/// Files of a map, channel by channel. The gridding thread calls append() and finish(), which wait
/// where the writer's own thread ("grid-write") is behind; nothing is published before finish().
class GridProducts {
 public:
  /// Creates the value cube at once: what cannot be written is said before anything is gridded.
  GridProducts(GridProductOptions options, const SkyCells& cells, MapMetadata metadata,
               std::int64_t n_channels);
  ~GridProducts();  ///< not finished: nothing stays
  GridProducts(const GridProducts&) = delete;
  GridProducts& operator=(const GridProducts&) = delete;
  /// The next channels; a plane without weights has those of the one before. Planes of float are
  /// written as doubles where those are asked for. Rethrows what the writing of others threw.
  void append(std::vector<grid::Plane> planes);
  void append(std::vector<grid::PlaneOf<double>> planes);
  bool f64() const { return options_.f64; }
  /// Publishes everything and fills in what the map shows.
  void finish(const std::vector<std::string>& history, GridSummary& summary);

 private:
  using Planes = std::variant<std::vector<grid::Plane>, std::vector<grid::PlaneOf<double>>>;
  template <class Real>
  void write(const std::vector<grid::PlaneOf<Real>>& planes);
  template <class Real>
  void write_beside(const grid::PlaneOf<Real>& plane);
  template <class Real>
  void add_to_mean(const std::vector<grid::PlaneOf<Real>>& planes);
  void join(const std::vector<std::string>& history);
  void describe(GridSummary& summary) const;
  void draw(const GridSummary& summary) const;

  GridProductOptions options_;
  Queue queue_;  ///< of the thread that writes
  const SkyCells& cells_;
  MapMetadata metadata_;
  std::unique_ptr<CubeWriter> value_;
  std::unique_ptr<SharedPlanes> weight_, count_, noise_;
  std::vector<float> mean_;
  std::vector<std::int32_t> mean_of_;
  double write_s_ = 0;
  BoundedQueue<Planes> waiting_;
  std::unique_ptr<StageThread> thread_;
};

/// Maps of all channels of the sums into the products, several at a time; values and their noise
/// are multiplied by `factor`, and divided by the mean response of the beam where there is one:
/// its weights over those of `sums`.
void append_planes(Queue& queue, const grid::Sums& sums, const grid::Sums* response,
                   const grid::Finish& finish, double factor, std::int64_t n_channels,
                   GridProducts& products);
/// Planes of append_planes() that are in memory at a time.
std::int64_t planes_at_a_time(const Queue& queue);

}  // namespace ryle::pipeline
