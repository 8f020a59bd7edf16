// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ryle/wire/described.hpp"

namespace ryle::wire {

/// n elements, `from` bytes apart where they are read and `to` bytes apart where they are written.
struct CopyAxis {
  std::int64_t n = 1;
  std::int64_t from = 0;
  std::int64_t to = 0;
};

/// Copies elements of a few bytes from one order of axes to another: the plan is made once, each
/// copy then takes the fastest way its axes allow (runs of whole memory, tiles of bytes that are
/// transposed in registers, strided elements). Elements must not overlap where they are written.
class StridedCopy {
 public:
  StridedCopy() = default;
  /// @pre element_bytes >= 1; the bytes of an element lie together in both orders
  StridedCopy(std::vector<CopyAxis> axes, int element_bytes);

  void run(const std::byte* from, std::byte* to) const noexcept;
  /// Whether `to` already holds what run() would write.
  bool equal(const std::byte* from, const std::byte* to) const noexcept;

  std::int64_t bytes() const { return bytes_; }

 private:
  enum class Kind : std::uint8_t { runs, bytes_transposed };
  template <class Inner>
  void loop(std::size_t axis, const std::byte* from, std::byte* to, const Inner& inner) const;

  Kind kind_ = Kind::runs;
  std::int64_t run_bytes_ = 0;  ///< that lie together
  std::int64_t bytes_ = 0;      ///< of a whole copy
  /// runs: the innermost loop. Transposed: rows lie together where they are written,
  /// columns where they are read.
  CopyAxis rows_, columns_;
  std::vector<CopyAxis> outer_;  ///< outermost first
};

/// The axes of a described payload of parts of whole bytes (ci4: of samples), for a StridedCopy.
struct PayloadAxes {
  std::vector<CopyAxis> axes;    ///< the outermost first, as in the payload
  std::int64_t first_bytes = 0;  ///< where the element of all indices 0 lies
  int element_bytes = 1;
};
/// `to` has the bytes from one index to the next where it is written: [channel, time, input, part].
/// @pre parts have 8 or 16 bits, or the sample is a ci4, or lies in a word (elements are samples)
PayloadAxes payload_axes(const PacketDescription& description,
                         const std::array<std::int64_t, 4>& to);

/// to[r * to_stride + c] = from[c * from_stride + r], r < n_rows, c < n_columns: bytes.
void transpose_bytes(const std::byte* from, std::int64_t from_stride, std::byte* to,
                     std::int64_t to_stride, std::int64_t n_rows, std::int64_t n_columns) noexcept;

}  // namespace ryle::wire
