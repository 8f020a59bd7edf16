// SPDX-License-Identifier: BSD-3-Clause
// Numbers of a file by position: samples and channels with any step, any byte order, read in blocks
// and turned into [channel][sample]. Private to io/. Readers only lay out; nothing here knows
// a format. Reading is const and has no shared state: several threads may read one file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/descriptor.hpp"

namespace ryle::io {

/// A file read by position; every range is checked against its size before anything is allocated.
class RawFile {
 public:
  explicit RawFile(const std::string& path);
  /// Takes over `descriptor`; `path` is for messages.
  RawFile(Descriptor file, std::string path);
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  bool holds(std::int64_t first_byte, std::int64_t n_bytes) const {
    return first_byte >= 0 && n_bytes >= 0 && first_byte <= size_bytes_ &&
           n_bytes <= size_bytes_ - first_byte;
  }
  /// Throws FormatError when the file ends before.
  void read(std::int64_t first_byte, std::int64_t n_bytes, void* to) const;

 private:
  Descriptor file_;
  std::string path_;
  std::int64_t size_bytes_ = 0;
};

struct RawNumber {
  enum class Kind : std::uint8_t { real, with_sign, without_sign, logical };
  Kind kind = Kind::real;
  int bytes = 4;
  bool big_endian = false;
  double scale = 1, zero = 0;  ///< value = zero + scale * stored
  bool has_null = false;       ///< integers only: `null` stands for nothing, read as NaN
  std::int64_t null = 0;
  /// Floats of this machine, to be used as they are.
  bool native_float() const;
};

/// n numbers, step_bytes apart, behind `from`.
void decode(const std::byte* from, std::int64_t step_bytes, std::int64_t n, const RawNumber& number,
            double* to);
void decode(const std::byte* from, std::int64_t step_bytes, std::int64_t n, const RawNumber& number,
            float* to);

/// Where the value of (sample, channel, polarization) is.
struct RawSamples {
  RawNumber number;
  std::int64_t n_samples = 0, n_channels = 0;
  std::vector<std::int64_t> begin_bytes;  ///< of each sample; empty: as the next two say
  std::int64_t first_byte = 0, sample_step_bytes = 0;
  std::int64_t channel_step_bytes = 0;
  std::vector<std::int64_t> polarization_bytes{0};  ///< offsets of those whose mean is read
  bool descending = false;                          ///< stored from the highest frequency down

  std::int64_t begin_of(std::int64_t sample) const {
    return begin_bytes.empty() ? first_byte + sample * sample_step_bytes : begin_bytes[sample];
  }
};

/// Samples [first, first + n) of them. Throws ConfigError.
RawSamples some_of(const RawSamples& samples, std::int64_t first, std::int64_t n);

/// Channels [first, first + n). @shape out [channel][sample]
void read_raw(const RawFile& file, const RawSamples& samples, std::int64_t first, std::int64_t n,
              float* out);
/// The same for flags: 1 where any polarization has a number that is not 0.
void read_raw(const RawFile& file, const RawSamples& samples, std::int64_t first, std::int64_t n,
              std::uint8_t* out);
/// Several of them, from one file or more, in pieces that several threads take.
struct RawRead {
  std::shared_ptr<const RawFile> file;
  RawSamples samples;
  std::int64_t first_channel = 0, n_channels = 1;
  float* out = nullptr;  ///< @shape [channel][sample]
};
void read_raw_all(const std::vector<RawRead>& reads);

/// body(k) for all k in [0, n), on a few threads: one waits for a disk, or for pages to be copied,
/// while others work. What one of them threw is thrown when all have ended.
void on_threads(std::int64_t n, const std::function<void(std::int64_t)>& body);

/// All numbers of channel 0, polarization 0 as double: positions, weights.
std::vector<double> read_raw_numbers(const RawFile& file, const RawSamples& samples);

/// [sample][channel] with rows of `pitch` to columns of [channel][sample], optionally from the last
/// channel down; to[c * to_stride + s].
template <class Out>
void transpose_to(const float* from, std::int64_t pitch, std::int64_t n_samples,
                  std::int64_t n_channels, bool descending, Out* to, std::int64_t to_stride) {
  constexpr std::int64_t kSide = 16;
  for (std::int64_t s0 = 0; s0 < n_samples; s0 += kSide)
    for (std::int64_t c0 = 0; c0 < n_channels; c0 += kSide)
      for (std::int64_t c = c0; c < c0 + kSide && c < n_channels; ++c) {
        Out* row = to + (descending ? n_channels - 1 - c : c) * to_stride;
        for (std::int64_t s = s0; s < s0 + kSide && s < n_samples; ++s)
          row[s] = static_cast<Out>(from[s * pitch + c]);
      }
}

}  // namespace ryle::io
