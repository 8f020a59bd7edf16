// SPDX-License-Identifier: BSD-3-Clause
// Which samples each tile must look at. Private to the engine.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "ryle/engine/grid/cpu/tile.hpp"
#include "ryle/engine/grid/tiles.hpp"

namespace ryle::grid {

class GeometryPlan {
 public:
  Positions samples;
  /// Samples of tile t, in the order they were given: [begin[t], begin[t + 1]) of `lists`, or in
  /// plans for float32 of `offsets`.
  LargeVector<std::uint32_t> lists;
  LargeVector<detail::TileOffset> offsets;
  std::vector<std::int64_t> begin;
  PlanMetadata metadata;
  std::shared_ptr<void> device;  ///< what other back-ends hold in place of lists
};

namespace detail {

/// Tiles by place: space in cubes, each with the tiles whose reach it touches. A sphere is only a
/// surface in it, so poles and the seam of longitude are places like any other.
class TileIndex {
 public:
  /// @param chord of the support radius
  TileIndex(const std::vector<Tile>& tiles, double chord);
  /// Tiles that may be reached from a unit vector.
  struct Range {
    const SearchGroup* first = nullptr;
    std::int32_t n = 0;
  };
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(slots_.size() * sizeof(Slot) +
                                     groups_.size() * sizeof(SearchGroup));
  }
  /// Held while it was made, beside bytes().
  std::int64_t making_bytes() const { return making_bytes_; }
  std::uint64_t key(double x, double y, double z) const {
    return key_of(cube(x), cube(y), cube(z));
  }
  Range find(std::uint64_t key) const {
    for (std::uint64_t slot = hash(key) & mask_;; slot = (slot + 1) & mask_) {
      const Slot& s = slots_[slot];
      if (s.key == key) return {groups_.data() + s.begin, s.n};
      if (s.key == kFree) return {};
    }
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kFree;
    std::int64_t begin = 0;
    std::int32_t n = 0;
  };
  std::int64_t cube(double v) const { return static_cast<std::int64_t>((v + 1.5) * per_unit_); }
  static std::uint64_t key_of(std::int64_t x, std::int64_t y, std::int64_t z) {
    return static_cast<std::uint64_t>(x) << 42 | static_cast<std::uint64_t>(y) << 21 |
           static_cast<std::uint64_t>(z);
  }
  static std::uint64_t hash(std::uint64_t key) { return (key * 0x9E3779B97F4A7C15u) >> 20; }
  /// Returns how many of the cubes a tile touches.
  double choose_cubes(const std::vector<Tile>& tiles);
  std::int64_t making_bytes_ = 0;
  double per_unit_ = 1;
  std::uint64_t mask_ = 0;
  std::vector<Slot> slots_;
  std::vector<SearchGroup> groups_;
};

/// @param offsets the plan holds where samples are in their tiles, in float32
GeometryPlan make_geometry(Queue& queue, const std::vector<Tile>& tiles, const TileIndex& index,
                           SearchKernel search, bool offsets, Positions samples);

}  // namespace detail
}  // namespace ryle::grid
