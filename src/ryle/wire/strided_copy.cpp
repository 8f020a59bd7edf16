// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/strided_copy.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ryle/core/transpose.hpp"

namespace ryle::wire {
namespace {

// A constant size lets the compiler use vector moves where memcpy() would be a call.
template <std::size_t kBytes>
void copy_rows(const std::byte* from, std::byte* to, const CopyAxis& a) {
  for (std::int64_t k = 0; k < a.n; ++k) std::memcpy(to + k * a.to, from + k * a.from, kBytes);
}

void copy_runs(const std::byte* from, std::byte* to, const CopyAxis& a, std::int64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_rows<1>(from, to, a);
    case 2:
      return copy_rows<2>(from, to, a);
    case 4:
      return copy_rows<4>(from, to, a);
    case 8:
      return copy_rows<8>(from, to, a);
    case 16:
      return copy_rows<16>(from, to, a);
    case 24:
      return copy_rows<24>(from, to, a);
    case 32:
      return copy_rows<32>(from, to, a);
    case 48:
      return copy_rows<48>(from, to, a);
    case 64:
      return copy_rows<64>(from, to, a);
    default:
      break;
  }
  for (std::int64_t k = 0; k < a.n; ++k)
    std::memcpy(to + k * a.to, from + k * a.from, static_cast<std::size_t>(bytes));
}

// One column of every `stride`-th byte; constant strides become shuffles.
template <std::int64_t kStride>
void gather(const std::byte* from, std::byte* to, std::int64_t n) {
  for (std::int64_t k = 0; k < n; ++k) to[k] = from[k * kStride];
}

void gather(const std::byte* from, std::int64_t stride, std::byte* to, std::int64_t n) {
  if (stride == 2) return gather<2>(from, to, n);
  if (stride == 4) return gather<4>(from, to, n);
  if (stride == 8) return gather<8>(from, to, n);
  for (std::int64_t k = 0; k < n; ++k) to[k] = from[k * stride];
}

/// Joins axes that one loop can walk.
void join(std::vector<CopyAxis>& axes) {
  for (bool joined = true; joined;) {
    joined = false;
    for (std::size_t i = 0; i < axes.size() && !joined; ++i) {
      for (std::size_t k = 0; k < axes.size() && !joined; ++k) {
        if (i == k || axes[k].from != axes[i].n * axes[i].from ||
            axes[k].to != axes[i].n * axes[i].to)
          continue;
        axes[i].n *= axes[k].n;
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(k));
        joined = true;
      }
    }
  }
}

}  // namespace

void transpose_bytes(const std::byte* from, std::int64_t from_stride, std::byte* to,
                     std::int64_t to_stride, std::int64_t n_rows, std::int64_t n_columns) noexcept {
  const std::int64_t rows = n_rows / kTransposeTile * kTransposeTile;
  const std::int64_t columns = n_columns / kTransposeTile * kTransposeTile;
  for (std::int64_t r = 0; r < rows; r += kTransposeTile) {
    for (std::int64_t c = 0; c < columns; c += kTransposeTile)
      transpose_tile(from + c * from_stride + r, from_stride, to + r * to_stride + c, to_stride);
  }
  for (std::int64_t r = 0; r < rows && columns < n_columns; ++r) {
    gather(from + columns * from_stride + r, from_stride, to + r * to_stride + columns,
           n_columns - columns);
  }
  for (std::int64_t r = rows; r < n_rows; ++r)
    gather(from + r, from_stride, to + r * to_stride, n_columns);
}

PayloadAxes payload_axes(const PacketDescription& d, const std::array<std::int64_t, 4>& to) {
  PayloadAxes found;
  const SampleCode& s = d.sample;
  const bool apart = d.has(Axis::complex);
  const bool whole = !s.complex || s.word_bytes > 0 || s.bits == 4;  // elements are samples
  found.element_bytes = static_cast<int>((whole ? s.stride_bits() : s.bits) / 8);
  std::vector<PayloadAxis> order = d.order;
  if (!whole && !apart) order.push_back({Axis::complex, 2});
  std::array<std::int64_t, 4> next = to;
  std::int64_t from = found.element_bytes;
  for (auto a = order.rbegin(); a != order.rend(); ++a) {
    CopyAxis axis{a->extent, from, next[static_cast<std::size_t>(a->axis)]};
    next[static_cast<std::size_t>(a->axis)] *= a->extent;
    from = from * a->extent + a->pad_bits / 8;
    if (a->axis == Axis::complex && !s.re_first) {
      found.first_bytes = axis.from;
      axis.from = -axis.from;
    }
    found.axes.insert(found.axes.begin(), axis);
  }
  return found;
}

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, int element_bytes) {
  if (element_bytes > 1) axes.push_back({element_bytes, 1, 1});
  bytes_ = 1;
  for (const auto& a : axes) bytes_ *= a.n;
  std::erase_if(axes, [](const CopyAxis& a) { return a.n == 1; });
  join(axes);
  const auto take = [&axes](auto&& wanted, CopyAxis& into) {
    const auto found = std::find_if(axes.begin(), axes.end(), wanted);
    if (found == axes.end()) return false;
    into = *found;
    axes.erase(found);
    return true;
  };
  CopyAxis run{1, 1, 1};
  take([](const CopyAxis& a) { return a.from == 1 && a.to == 1; }, run);
  run_bytes_ = run.n;
  if (run_bytes_ == 1 && take([](const CopyAxis& a) { return a.from == 1; }, rows_)) {
    kind_ = Kind::bytes_transposed;
    take([](const CopyAxis& a) { return a.to == 1; }, columns_);
    if (columns_.n == 1) {  // nothing lies together where it is written
      kind_ = Kind::runs;
    }
  }
  // What is left: memory is written from its beginning to its end.
  std::sort(axes.begin(), axes.end(),
            [](const CopyAxis& a, const CopyAxis& b) { return std::abs(a.to) > std::abs(b.to); });
  if (kind_ == Kind::runs && rows_.n == 1 && !axes.empty()) {
    rows_ = axes.back();
    axes.pop_back();
  }
  outer_ = std::move(axes);
  // Columns far apart are as many streams of reading: some at a time, each from end to end, are
  // what prefetchers follow, and what is written meanwhile stays in the caches
  // (fengine_blocks.cpp).
  constexpr std::int64_t kTogether = 2 * kTransposeTile, kFarBytes = 512;
  if (kind_ == Kind::bytes_transposed && columns_.n > kTogether && columns_.n % kTogether == 0 &&
      columns_.from >= kFarBytes && !outer_.empty()) {
    outer_.insert(outer_.begin(), {columns_.n / kTogether, kTogether * columns_.from, kTogether});
    columns_.n = kTogether;
  }
}

template <class Inner>
void StridedCopy::loop(std::size_t axis, const std::byte* from, std::byte* to,
                       const Inner& inner) const {
  if (axis == outer_.size()) return inner(from, to);
  const CopyAxis& a = outer_[axis];
  for (std::int64_t k = 0; k < a.n; ++k) loop(axis + 1, from + k * a.from, to + k * a.to, inner);
}

void StridedCopy::run(const std::byte* from, std::byte* to) const noexcept {
  if (kind_ == Kind::bytes_transposed) {
    return loop(0, from, to, [this](const std::byte* f, std::byte* t) {
      transpose_bytes(f, columns_.from, t, rows_.to, rows_.n, columns_.n);
    });
  }
  loop(0, from, to,
       [this](const std::byte* f, std::byte* t) { copy_runs(f, t, rows_, run_bytes_); });
}

bool StridedCopy::equal(const std::byte* from, const std::byte* to) const noexcept {
  bool same = true;
  // Read only: the loop hands out what it was given.
  loop(0, from, const_cast<std::byte*>(to), [&](const std::byte* f, const std::byte* t) {
    for (std::int64_t r = 0; r < rows_.n && same; ++r) {
      for (std::int64_t c = 0; c < columns_.n && same; ++c) {
        same =
            std::memcmp(t + r * rows_.to + c * columns_.to, f + r * rows_.from + c * columns_.from,
                        static_cast<std::size_t>(run_bytes_)) == 0;
      }
    }
  });
  return same;
}

}  // namespace ryle::wire
