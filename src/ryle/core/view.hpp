// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace ryle {

/// Non-owning strided array: pointer, extents, strides in elements. Axes are listed slowest first;
/// constness is in the element type. Views are cheap values: pass them by value.
template <class T, int Rank>
struct View {
  T* data = nullptr;
  std::array<std::int64_t, Rank> extent{};
  std::array<std::int64_t, Rank> stride{};

  View() = default;
  View(T* pointer, std::array<std::int64_t, Rank> extents)
      : data(pointer), extent(extents), stride(row_major(extents)) {}
  View(T* pointer, std::array<std::int64_t, Rank> extents, std::array<std::int64_t, Rank> strides)
      : data(pointer), extent(extents), stride(strides) {}

  template <class... Index>
  T& operator()(Index... index) const {
    static_assert(sizeof...(Index) == Rank);
    const std::array<std::int64_t, Rank> i{static_cast<std::int64_t>(index)...};
    std::int64_t offset = 0;
    for (int axis = 0; axis < Rank; ++axis) offset += i[axis] * stride[axis];
    return data[offset];
  }

  std::int64_t size() const {
    std::int64_t n = 1;
    for (auto e : extent) n *= e;
    return n;
  }

  operator View<const T, Rank>() const { return {data, extent, stride}; }

  static std::array<std::int64_t, Rank> row_major(const std::array<std::int64_t, Rank>& extents) {
    std::array<std::int64_t, Rank> strides{};
    std::int64_t step = 1;
    for (int axis = Rank - 1; axis >= 0; --axis) {
      strides[axis] = step;
      step *= extents[axis];
    }
    return strides;
  }
};

}  // namespace ryle
