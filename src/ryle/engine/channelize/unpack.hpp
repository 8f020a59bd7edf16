// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ryle/core/samples.hpp"
#include "ryle/engine/channelize/cpu/kernel.hpp"

namespace ryle::channelize::detail {

/// Turns receiver samples of any layout into one of the two streams that the fast filter reads:
/// consecutive parts (real samples, or re im re im ...) as int8 for formats of up to 8 bits, as
/// float for wider ones. Every value is exact.
class Unpacker {
 public:
  /// kernel: vector code for interleaved words, or nullptr.
  explicit Unpacker(const SampleLayout& layout, const KernelTable* kernel = nullptr);

  /// Bytes of one sample in the stream.
  std::int64_t sample_bytes() const { return sample_bytes_; }
  bool floats() const { return floats_; }
  /// The layout already is the stream: input p starts at direct(samples, p), no copy needed.
  bool is_direct() const { return direct_; }
  const std::byte* direct(const void* samples, std::int64_t input) const;
  /// Inputs that share cache lines and are best unpacked together (1 = each on its own).
  std::int64_t group() const { return group_; }

  /// Unpacks samples [from, from + count) of inputs [input, input + n_inputs) into rows of
  /// row_bytes.
  void unpack(const void* samples, std::int64_t input, std::int64_t n_inputs, std::int64_t from,
              std::int64_t count, std::byte* out, std::int64_t row_bytes) const;

  /// 16-bit words of neighbouring inputs side by side, which arrange() takes.
  bool interleaved() const;
  /// Arranges words of kernel->n_word_inputs inputs for the integer filter: `origin` is the sample
  /// of row 0, point 0, and samples [begin, end) after it may be read.
  void arrange(const KernelPlan& plan, const void* samples, std::int64_t input, std::int64_t origin,
               std::int64_t begin, std::int64_t end, std::byte* out, std::int64_t cell_bytes) const;

 private:
  void unpack_one(const unsigned char* bytes, std::int64_t input, std::int64_t from,
                  std::int64_t count, std::byte* out) const;
  void unpack_small(const unsigned char* bytes, std::int64_t bit, std::int64_t count,
                    std::int8_t* out) const;
  void unpack_words(const unsigned char* bytes, std::int64_t stride, std::int64_t count,
                    std::int8_t* out) const;
  void unpack_interleaved(const unsigned char* bytes, std::int64_t n_inputs, std::int64_t count,
                          std::byte* out, std::int64_t row_bytes) const;

  SampleLayout layout_;
  const KernelTable* kernel_;
  bool complex_;
  int part_bits_;
  bool floats_;
  bool direct_;
  std::int64_t sample_bytes_;
  std::int64_t group_;
  std::vector<std::int8_t> table_;  // formats under 8 bits: [byte][parts per byte]
};

}  // namespace ryle::channelize::detail
