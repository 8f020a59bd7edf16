// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/large_array.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ryle::grid::detail {

void* allocate_large(std::size_t count, std::size_t size, bool zeroed) {
  if (count > std::numeric_limits<std::size_t>::max() / size) throw std::bad_alloc();
  const std::size_t bytes = std::max<std::size_t>(count * size, 1);
  void* memory = zeroed ? std::calloc(bytes, 1) : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t kHuge = std::uintptr_t{1} << 21;
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (begin + kHuge - 1) / kHuge * kHuge;
  const std::uintptr_t last = (begin + bytes) / kHuge * kHuge;
  // Advice only.
  if (bytes >= 2 * kHuge) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace ryle::grid::detail
