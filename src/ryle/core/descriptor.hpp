// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

/// File descriptors of the system.
namespace ryle {

/// Owns a descriptor and closes it at the end. -1 = none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      descriptor_ = std::exchange(other.descriptor_, -1);
    }
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  /// 0, or -1 with errno where the system did not accept everything that was written.
  int close();

 private:
  int descriptor_ = -1;
};

/// Reads until n bytes are there or the file ends. How many are there; -1 with errno on an error.
std::int64_t read_at(const Descriptor& file, void* to, std::int64_t n_bytes, std::int64_t offset);
/// Writes all of them. How many were written: fewer with errno.
std::int64_t write_bytes(const Descriptor& file, const void* from, std::int64_t n_bytes);

}  // namespace ryle
