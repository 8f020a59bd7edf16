// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/descriptor.hpp"
#include "ryle/ingest/recording.hpp"

namespace ryle {

/// A regular file open for reading at any offset. Reads never throw: what cannot be read is short.
class RecordingFile {
 public:
  /// @throws IoError when it cannot be opened; FormatError when it is no regular file.
  explicit RecordingFile(const std::string& path);
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  /// Bytes read at `offset`: fewer than asked at the end of the file, or after an I/O error.
  std::size_t read(std::int64_t offset, std::span<std::byte> destination) const;
  bool read_all(std::int64_t offset, std::span<std::byte> destination) const {
    return read(offset, destination) == destination.size();
  }
  /// The bytes [offset, offset + size) for scanning, buffered; shorter at the end. Valid until the
  /// next call.
  std::span<const std::byte> window(std::int64_t offset, std::size_t size);

 private:
  std::string path_;
  Descriptor file_;
  std::int64_t size_bytes_ = 0;
  std::vector<std::byte> buffer_;
  std::int64_t buffer_offset_ = 0;
};

/// "FILE: byte OFFSET: FIELD is VALUE; LIMIT" in the wording all readers share.
std::string format_message(const std::string& path, std::int64_t offset, const std::string& field,
                           const std::string& value, const std::string& limit);

/// What every reader shares: the metadata, and refusing the call of the other kind.
class RecordingBase : public Recording {
 public:
  const RecordingInfo& info() const override { return info_; }
  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 protected:
  /// time-major: sample of input p at tick t is at bit (t * n_inputs + p) * bits, so that the
  /// layout does not depend on how many samples one call reads.
  void set_time_major_layout(SampleFormat format, Encoding encoding);
  /// "STATION input K" for every input, unless `station` is empty.
  void name_inputs(std::string_view station);
  /// Clock when neither the file nor the options tell the rate.
  void set_unknown_rate(const std::string& why);
  RecordingInfo info_;
};

/// Adds [begin, end) of one input, merging with the span before it when they touch.
void add_absent(std::vector<AbsentSpan>& absent, std::int64_t input, Tick begin, Tick end);

/// As add_absent, over all inputs; sorts and merges what is there from `from` on.
void merge_absent(std::vector<AbsentSpan>& absent, std::size_t from);
/// A configured rate as a ratio, exact to 1e-6 Hz; throws ConfigError unless 0 < rate <= 1e12.
Rational rational_rate(double rate_hz);

/// One frame of a file: where it lies and what it covers.
struct FrameRef {
  std::int64_t tick = 0;
  std::uint32_t stream = 0;
  std::int64_t offset = 0;
};

/// A jump of the clock longer than this is a broken stamp, not a gap to be filled.
inline constexpr std::int64_t kMaxGap_s = 600;
/// Sorts frames by (tick, stream) and drops, counting them in `counters`: rejected.time = further
/// from the median frame than a gap of `max_gap` ticks allows, or not a whole number of `step` from
/// the first one, or of a lone frame (below); rejected.duplicate = a second frame of one place (the
/// first in the file stays). "frames" becomes the number that is kept. A damaged time in one header
/// can so neither blind the reader nor stretch the recording to centuries.
///
/// A lone frame has no other within 16 times `frame_length` (0 = `step`), although such neighbours
/// are what frames of this file have. Its time is damaged when it is the first or the last of all,
/// where nothing bears it out, or when the frames written before and after it are not of times
/// before and after it.
std::vector<FrameRef> arrange_frames(std::vector<FrameRef> frames, std::int64_t max_gap,
                                     std::int64_t step,
                                     std::map<std::string, std::int64_t>& counters,
                                     std::int64_t frame_length = 0);
/// Frames with tick in [begin, end).
std::span<const FrameRef> frames_between(std::span<const FrameRef> frames, std::int64_t begin,
                                         std::int64_t end);

}  // namespace ryle
