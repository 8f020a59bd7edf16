// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

/// Arrays of a gridding run: hundreds of megabytes that are written once. With small pages, and
/// zeros written first by one thread, making them takes longer than using them.
namespace ryle::grid {

namespace detail {
/// Memory from malloc or, zeroed, from calloc: huge pages are asked for where they fit, and pages
/// come when first touched, by whichever worker does. Throws std::bad_alloc.
void* allocate_large(std::size_t count, std::size_t size, bool zeroed);

struct FreeLarge {
  void operator()(void* p) const { std::free(p); }
};
}  // namespace detail

/// Leaves elements without a value as they are instead of setting them to zero.
template <class T>
struct LargeAllocator {
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) noexcept {}  // NOLINT: as allocators must
  T* allocate(std::size_t n) {
    return static_cast<T*>(detail::allocate_large(n, sizeof(T), false));
  }
  void deallocate(T* p, std::size_t) noexcept { std::free(p); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }
};

/// resize() does not set new elements.
template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

/// Of a type whose zero is all bits zero.
template <class T>
class ZeroArray {
 public:
  ZeroArray() = default;
  explicit ZeroArray(std::size_t n)
      : data_(static_cast<T*>(detail::allocate_large(n, sizeof(T), true))), size_(n) {}
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  std::unique_ptr<T, detail::FreeLarge> data_;
  std::size_t size_ = 0;
};

}  // namespace ryle::grid
