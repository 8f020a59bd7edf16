// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ryle/core/checked.hpp"

namespace ryle {

/// Where a buffer lives. `pinned` = page-locked host memory when a GPU is in use, plain host memory
/// otherwise.
enum class MemorySpace : std::uint8_t { host, pinned, device };

namespace detail {
/// 128-byte aligned, zero-filled allocation; throws DeviceError / std::bad_alloc. The deleter knows
/// the space.
std::shared_ptr<std::byte> allocate(MemorySpace space, std::int64_t n_bytes);
}  // namespace detail

/// Fixed-size, zero-initialised array in one memory space; owning, movable, cheap to move.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t size, MemorySpace space = MemorySpace::host)
      : storage_(detail::allocate(
            space, checked_product({size, static_cast<std::int64_t>(sizeof(T))}, "buffer"))),
        size_(size),
        space_(space) {}
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() const { return reinterpret_cast<T*>(storage_.get()); }
  std::int64_t size() const { return size_; }
  std::int64_t bytes() const { return size_ * static_cast<std::int64_t>(sizeof(T)); }
  MemorySpace space() const { return space_; }
  /// Host access; the space must be host or pinned.
  std::span<T> span() const { return {data(), static_cast<std::size_t>(size_)}; }
  T& operator[](std::int64_t i) const { return data()[i]; }

 private:
  std::shared_ptr<std::byte> storage_;
  std::int64_t size_ = 0;
  MemorySpace space_ = MemorySpace::host;
};

}  // namespace ryle
