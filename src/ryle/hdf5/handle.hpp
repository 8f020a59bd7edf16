// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <hdf5.h>

#include <utility>

namespace ryle::hdf5 {

/// Owns one identifier and the function that closes it.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() { reset(); }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, -1);
      close_ = other.close_;
    }
    return *this;
  }
  hid_t get() const { return id_; }
  bool valid() const { return id_ >= 0; }
  hid_t release() { return std::exchange(id_, -1); }
  void reset() noexcept {
    if (id_ >= 0) close_(id_);
    id_ = -1;
  }
  /// Closes and tells whether it went well (a full disk may first show here).
  bool close() {
    const bool good = id_ < 0 || close_(id_) >= 0;
    id_ = -1;
    return good;
  }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

}  // namespace ryle::hdf5
