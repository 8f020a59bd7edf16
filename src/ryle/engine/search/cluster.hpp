// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ryle/engine/search/detect.hpp"

/// Friends of friends among tokens, in one pass. Clusters stay open until nothing that is still to
/// come can join them, so a pulse across a block boundary is one cluster.
namespace ryle::search {

struct ClusterConfig {
  std::vector<double> sweep_samples;  ///< [trial]: delay across the band, ascending
};

struct Cluster {
  Token best;  ///< highest S/N; ties to the earliest, then the lowest trial, then the narrowest
  std::int64_t n_tokens = 0;
  std::int64_t begin = 0, end = 0;  ///< first sample of the first, end of the last token
  std::int32_t lowest_trial = 0, highest_trial = 0;
};

/// A token lies in a cell of time (of its center), band sweep and width. Widths 4^k .. 4^(k+1) are
/// one level, the sides of its cells 4^(k+1) samples (in sweep at least twice the widest step
/// between trials). Tokens are friends when they share a cell, or their cells touch, those of
/// adjacent levels seen in the coarser one. Cells lie on an absolute grid: clusters depend on the
/// tokens only, not on their order or grouping.
class Clusterer {
 public:
  explicit Clusterer(const ClusterConfig& config);
  ~Clusterer();
  Clusterer(const Clusterer&) = delete;
  Clusterer& operator=(const Clusterer&) = delete;

  void add(std::span<const Token> tokens);
  /// Every token with a start before `tick` has been added. Appends the clusters that are complete,
  /// in order of best.start.
  void close_before(std::int64_t tick, std::vector<Cluster>& closed);
  void close_all(std::vector<Cluster>& closed);
  std::int64_t n_open_cells() const;
  /// First sample of any cluster that is still open; the largest number when there is none.
  std::int64_t earliest_open() const;

 private:
  struct Content;
  std::unique_ptr<Content> content_;
};

}  // namespace ryle::search
