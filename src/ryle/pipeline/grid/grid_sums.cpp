// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

constexpr int kDigitBits = 32;
constexpr std::uint64_t kDigitMask = 0xFFFFFFFFu;

std::size_t cell_index(std::int64_t i) { return static_cast<std::size_t>(i); }

// ceil(e / 32) - 1: the level L with 2^(32 L) <= |x| < 2^(32 (L + 1)) for 2^(e - 1) <= |x| < 2^e.
int level_of(int e) { return (e + 32 * 64 - 1) / kDigitBits - 64; }

}  // namespace

void ExactPlane::raise(std::int64_t i, int level) {
  std::int64_t* d = digits(i);
  std::int8_t& own = level_[cell_index(i)];
  const int steps = own == kNone ? kDigits : level - own;
  for (int k = kDigits - 1; k >= 0; --k) d[k] = k >= steps ? d[k - steps] : 0;
  own = static_cast<std::int8_t>(level);
}

void ExactPlane::add(std::int64_t i, double x) {
  if (x == 0) return;
  int e = 0;
  const double fraction = std::frexp(x, &e);
  const int level = level_of(e);
  std::int8_t& own = level_[cell_index(i)];
  if (own == kNone || level > own) raise(i, level);
  // |x| = m 2^(e - 53) in units of 2^(32 (level - 2)).
  const auto m = static_cast<std::uint64_t>(std::ldexp(std::abs(fraction), 53));
  const int shift = e - 53 - kDigitBits * (level - kDigits + 1);
  const auto units = static_cast<unsigned __int128>(m) << shift;
  const std::int64_t sign = x < 0 ? -1 : 1;
  const std::int64_t part[kDigits] = {
      sign * static_cast<std::int64_t>(units >> (2 * kDigitBits)),
      sign *
          static_cast<std::int64_t>(static_cast<std::uint64_t>(units >> kDigitBits) & kDigitMask),
      sign * static_cast<std::int64_t>(static_cast<std::uint64_t>(units) & kDigitMask)};
  std::int64_t* d = digits(i);
  const int down = own - level;
  for (int k = 0; k + down < kDigits; ++k) d[k + down] += part[k];
}

void ExactPlane::add(std::int64_t i, const ExactPlane& other, std::int64_t j) {
  const std::int8_t level = *other.levels(j);
  if (level == kNone) return;
  std::int8_t& own = level_[cell_index(i)];
  if (own == kNone || level > own) raise(i, level);
  const std::int64_t* from = other.digits(j);
  std::int64_t* d = digits(i);
  for (int k = 0, down = own - level; k + down < kDigits; ++k) d[k + down] += from[k];
}

void ExactPlane::copy(std::int64_t i, const ExactPlane& other, std::int64_t j) {
  std::copy_n(other.digits(j), kDigits, digits(i));
  level_[cell_index(i)] = *other.levels(j);
}

double ExactPlane::value(std::int64_t i) const {
  const std::int8_t level = level_[cell_index(i)];
  if (level == kNone) return 0;
  const std::int64_t* d = digits(i);
  constexpr auto kBase = static_cast<__int128>(1) << kDigitBits;
  const __int128 units = (static_cast<__int128>(d[0]) * kBase + d[1]) * kBase + d[2];
  return std::ldexp(static_cast<double>(units), kDigitBits * (level - kDigits + 1));
}

void ExactMoments::add(std::int64_t i, const grid::Moments& m) {
  weight.add(i, m.weight);
  square.add(i, m.square);
  if (magnitude.size() > 0) magnitude.add(i, m.magnitude);
  count[cell_index(i)] += m.count;
}
void ExactMoments::add(std::int64_t i, const ExactMoments& other, std::int64_t j) {
  weight.add(i, other.weight, j);
  square.add(i, other.square, j);
  if (magnitude.size() > 0) magnitude.add(i, other.magnitude, j);
  count[cell_index(i)] += other.count[cell_index(j)];
}
void ExactMoments::copy(std::int64_t i, const ExactMoments& other, std::int64_t j) {
  weight.copy(i, other.weight, j);
  square.copy(i, other.square, j);
  if (magnitude.size() > 0) magnitude.copy(i, other.magnitude, j);
  count[cell_index(i)] = other.count[cell_index(j)];
}
grid::Moments ExactMoments::value(std::int64_t i) const {
  grid::Moments m;
  m.weight = weight.value(i);
  m.square = square.value(i);
  m.magnitude = magnitude.size() > 0 ? magnitude.value(i) : m.weight;
  m.count = count[cell_index(i)];
  return m;
}

GridSums::GridSums(std::int64_t n_cells, std::int64_t n_channels, bool lobes)
    : n_cells_(n_cells),
      n_channels_(n_channels),
      lobes_(lobes),
      weighted_(n_cells * n_channels),
      shared_(n_cells, lobes),
      apart_(cell_index(n_cells)) {}

template <class Body>
void GridSums::for_cells(Queue& queue, const Body& body) const {
  constexpr std::int64_t kPart = 4096;
  queue.parallel_for((n_cells_ + kPart - 1) / kPart,
                     [&](std::int64_t p) { body(p * kPart, std::min(n_cells_, (p + 1) * kPart)); });
}

void GridSums::allow_parting() {
  if (own_.size() == 0) own_ = ExactMoments(n_cells_ * n_channels_, lobes_);
}

void GridSums::part(std::int64_t cell) {
  if (apart_[cell_index(cell)] != 0) return;
  for (std::int64_t c = 0; c < n_channels_; ++c) own_.copy(c * n_cells_ + cell, shared_, cell);
  apart_[cell_index(cell)] = 1;
}

void GridSums::add(Queue& queue, const grid::Sums& block) { add(queue, block, {{0, n_cells_}}); }

void GridSums::add(Queue& queue, const grid::Sums& block,
                   const std::vector<grid::CellRange>& cells) {
  if (!block.uniform()) allow_parting();
  // Rows of a few cells, or all of a map: pieces of some thousand cells for the workers.
  constexpr std::int64_t kCellsTogether = 4096;
  std::vector<grid::CellRange> pieces;
  for (const grid::CellRange& r : cells)
    for (std::int64_t i = r.first; i < r.last; i += kCellsTogether)
      pieces.push_back({i, std::min(r.last, i + kCellsTogether)});
  const std::int64_t n = static_cast<std::int64_t>(pieces.size()),
                     n_jobs = std::min<std::int64_t>(n, 64);
  queue.parallel_for(n_jobs, [&](std::int64_t job) {
    for (std::int64_t k = n * job / n_jobs; k < n * (job + 1) / n_jobs; ++k)
      add_cells(block, pieces[cell_index(k)].first, pieces[cell_index(k)].last);
  });
}

void GridSums::add_cells(const grid::Sums& block, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first; i < last; ++i) {
    if (block.apart(i)) part(i);
    if (apart_[cell_index(i)] == 0) {
      shared_.add(i, block.moments(0, i));
      continue;
    }
    for (std::int64_t c = 0; c < n_channels_; ++c) own_.add(c * n_cells_ + i, block.moments(c, i));
  }
  for (std::int64_t c = 0; c < n_channels_; ++c)
    for (std::int64_t i = first; i < last; ++i)
      weighted_.add(c * n_cells_ + i, block.weighted(c, i));
}

void GridSums::add(Queue& queue, const GridSums& other) {
  RYLE_ASSERT(other.n_cells_ == n_cells_ && other.n_channels_ == n_channels_ &&
              other.lobes_ == lobes_);
  if (other.own_.size() > 0) allow_parting();
  for_cells(queue, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const bool theirs = other.apart_[cell_index(i)] != 0;
      if (theirs) part(i);
      if (apart_[cell_index(i)] == 0) {
        shared_.add(i, other.shared_, i);
        continue;
      }
      for (std::int64_t c = 0; c < n_channels_; ++c) {
        const std::int64_t at = c * n_cells_ + i;
        if (theirs)
          own_.add(at, other.own_, at);
        else
          own_.add(at, other.shared_, i);
      }
    }
    for (std::int64_t c = 0; c < n_channels_; ++c)
      for (std::int64_t i = c * n_cells_ + first; i < c * n_cells_ + last; ++i)
        weighted_.add(i, other.weighted_, i);
  });
}

void GridSums::store(Queue& queue, grid::Sums& to) const {
  RYLE_ASSERT(to.n_cells() == n_cells_ && to.n_channels() == n_channels_);
  to.reset();
  if (own_.size() > 0) to.allow_parting();
  for_cells(queue, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      if (apart_[cell_index(i)] == 0) {
        to.shared(i) = shared_.value(i);
        continue;
      }
      to.part(i);
      for (std::int64_t c = 0; c < n_channels_; ++c) to.own(c, i) = own_.value(c * n_cells_ + i);
    }
    for (std::int64_t c = 0; c < n_channels_; ++c) {
      double* weighted = to.weighted_of(c);
      for (std::int64_t i = first; i < last; ++i) weighted[i] = weighted_.value(c * n_cells_ + i);
    }
  });
}

std::int64_t GridSums::bytes_per_value() { return ExactPlane::kBytesEach; }
std::int64_t GridSums::bytes_per_own(bool lobes) {
  return (lobes ? 3 : 2) * ExactPlane::kBytesEach + 8;
}
std::int64_t GridSums::bytes_per_cell(bool lobes) { return bytes_per_own(lobes) + 1; }

}  // namespace ryle::pipeline
