// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/grid/grid.hpp"

/// Sums over blocks of samples that do not depend on the order of the blocks: what a run in pieces,
/// a resumed run and a merge of several runs add up to are the bits of a single run.
namespace ryle::pipeline {

/// Sums of doubles, each kept as three signed digits of 32 bits (in 64, for carries) at the highest
/// level that one of its terms reached. A term is cut, digit by digit, at 2^-64 of that level; the
/// digits are integers, so that any order of terms gives the same digits. One term alone is exact:
/// 53 bits never span more than three digits.
class ExactPlane {
 public:
  static constexpr int kDigits = 3;
  static constexpr std::int64_t kBytesEach = kDigits * 8 + 1;
  ExactPlane() = default;
  explicit ExactPlane(std::int64_t n) : digits_(n * kDigits), level_(n, kNone) {}
  std::int64_t size() const { return static_cast<std::int64_t>(level_.size()); }
  /// @pre x is finite
  void add(std::int64_t i, double x);
  void add(std::int64_t i, const ExactPlane& other, std::int64_t j);
  void copy(std::int64_t i, const ExactPlane& other, std::int64_t j);
  double value(std::int64_t i) const;  ///< rounded to nearest

  // For files: [size][3] and [size].
  std::int64_t* digits(std::int64_t i) { return digits_.data() + i * kDigits; }
  const std::int64_t* digits(std::int64_t i) const { return digits_.data() + i * kDigits; }
  std::int8_t* levels(std::int64_t i) { return level_.data() + i; }
  const std::int8_t* levels(std::int64_t i) const { return level_.data() + i; }
  static constexpr std::int8_t kNone = -128;  ///< no term but 0 so far

 private:
  void raise(std::int64_t i, int level);
  std::vector<std::int64_t> digits_;
  std::vector<std::int8_t> level_;
};

/// Moments (grid.md 1) of cells.
struct ExactMoments {
  ExactPlane weight, square, magnitude;  ///< magnitude: empty where it is the weight
  std::vector<std::int64_t> count;
  ExactMoments() = default;
  ExactMoments(std::int64_t n, bool lobes)
      : weight(n), square(n), magnitude(lobes ? n : 0), count(n) {}
  void add(std::int64_t i, const grid::Moments& m);
  void add(std::int64_t i, const ExactMoments& other, std::int64_t j);
  void copy(std::int64_t i, const ExactMoments& other, std::int64_t j);
  grid::Moments value(std::int64_t i) const;
  std::int64_t size() const { return weight.size(); }
};

/// grid::Sums over many blocks.
class GridSums {
 public:
  GridSums() = default;
  /// `lobes`: the convolution function has negative ones, so that the magnitude is not the weight.
  GridSums(std::int64_t n_cells, std::int64_t n_channels, bool lobes);
  std::int64_t n_cells() const { return n_cells_; }
  std::int64_t n_channels() const { return n_channels_; }
  bool lobes() const { return lobes_; }
  void add(Queue& queue, const grid::Sums& block);
  /// Where no other cells of the block hold anything. @pre ascending, none twice
  void add(Queue& queue, const grid::Sums& block, const std::vector<grid::CellRange>& cells);
  /// @pre the same cells, channels and function
  void add(Queue& queue, const GridSums& other);
  /// The totals. @pre `to` has the same cells and channels; what it held is replaced
  void store(Queue& queue, grid::Sums& to) const;
  /// Bytes of a cell, and of a cell in a channel without and with moments of its own.
  static std::int64_t bytes_per_cell(bool lobes);
  static std::int64_t bytes_per_value();
  static std::int64_t bytes_per_own(bool lobes);

  // For files. Where apart(cell) the moments are own(channel, cell), else shared(cell).
  ExactPlane& weighted() { return weighted_; }  ///< [channel][cell]
  const ExactPlane& weighted() const { return weighted_; }
  ExactMoments& shared() { return shared_; }  ///< [cell]
  const ExactMoments& shared() const { return shared_; }
  ExactMoments& own() { return own_; }  ///< [channel][cell], empty until needed
  const ExactMoments& own() const { return own_; }
  std::vector<std::uint8_t>& apart() { return apart_; }
  const std::vector<std::uint8_t>& apart() const { return apart_; }
  void allow_parting();

 private:
  void part(std::int64_t cell);
  void add_cells(const grid::Sums& block, std::int64_t first, std::int64_t last);
  template <class Body>
  void for_cells(Queue& queue, const Body& body) const;
  std::int64_t n_cells_ = 0, n_channels_ = 0;
  bool lobes_ = false;
  ExactPlane weighted_;
  ExactMoments shared_, own_;
  std::vector<std::uint8_t> apart_;
};

}  // namespace ryle::pipeline
