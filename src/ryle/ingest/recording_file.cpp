// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/recording_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <compare>
#include <iterator>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"

namespace ryle {
namespace {

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;

}  // namespace

RecordingFile::RecordingFile(const std::string& path) : path_(path) {
  require_regular_file(path);
  file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_) throw IoError::from_errno("open", path, errno);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) throw IoError::from_errno("read", path, errno);
  size_bytes_ = status.st_size;
}

std::size_t RecordingFile::read(std::int64_t offset, std::span<std::byte> destination) const {
  const auto n_bytes = static_cast<std::int64_t>(destination.size());
  const std::int64_t n = offset < 0 ? 0 : read_at(file_, destination.data(), n_bytes, offset);
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

std::span<const std::byte> RecordingFile::window(std::int64_t offset, std::size_t size) {
  if (offset < 0 || offset >= size_bytes_) return {};
  size = std::min<std::size_t>(size, static_cast<std::size_t>(size_bytes_ - offset));
  const auto have = static_cast<std::int64_t>(buffer_.size());
  if (offset < buffer_offset_ || offset + static_cast<std::int64_t>(size) > buffer_offset_ + have) {
    const auto rest = static_cast<std::size_t>(size_bytes_ - offset);
    buffer_.resize(std::min(std::max(kWindowBytes, size), rest));
    buffer_offset_ = offset;
    buffer_.resize(read(offset, buffer_));
  }
  const auto skip = static_cast<std::size_t>(offset - buffer_offset_);
  if (skip >= buffer_.size()) return {};
  return std::span<const std::byte>(buffer_).subspan(skip, std::min(size, buffer_.size() - skip));
}

std::string format_message(const std::string& path, std::int64_t offset, const std::string& field,
                           const std::string& value, const std::string& limit) {
  return path + ": byte " + std::to_string(offset) + ": " + field + " is " + value + "; " + limit;
}

void RecordingBase::read_samples(Tick, std::int64_t, std::span<std::byte>,
                                 std::vector<AbsentSpan>&) {
  throw UnsupportedError("this " + info_.format + " recording holds spectra: use read_spectra()");
}

void RecordingBase::read_spectra(Tick, std::int64_t, std::span<ci8>, std::vector<AbsentSpan>&,
                                 std::vector<std::uint8_t>*, std::vector<ChannelGap>*) {
  throw UnsupportedError("this " + info_.format +
                         " recording holds time samples: use read_samples()");
}

void RecordingBase::set_time_major_layout(SampleFormat format, Encoding encoding) {
  info_.layout.format = format;
  info_.layout.encoding = encoding;
  info_.layout.input_stride_bits = bits_per_sample(format);
  info_.layout.sample_stride_bits = info_.n_inputs * bits_per_sample(format);
}

void RecordingBase::name_inputs(std::string_view station) {
  for (std::int64_t p = 0; p < info_.n_inputs && !station.empty(); ++p)
    info_.input_names.push_back(std::string(station) + " input " + std::to_string(p));
}

void RecordingBase::set_unknown_rate(const std::string& why) {
  info_.rate_known = false;
  info_.clock.rate_hz = {1, 1};
  info_.warnings.push_back(why + ": give sample_rate_hz");
}

void add_absent(std::vector<AbsentSpan>& absent, std::int64_t input, Tick begin, Tick end) {
  if (begin >= end) return;
  if (!absent.empty() && absent.back().input == input && absent.back().end == begin) {
    absent.back().end = end;
    return;
  }
  absent.push_back({input, begin, end});
}

void merge_absent(std::vector<AbsentSpan>& absent, std::size_t from) {
  const auto begin = absent.begin() + static_cast<std::ptrdiff_t>(from);
  std::sort(begin, absent.end(), [](const AbsentSpan& a, const AbsentSpan& b) {
    return a.input != b.input ? a.input < b.input : a.begin < b.begin;
  });
  std::vector<AbsentSpan> merged;
  for (auto span = begin; span != absent.end(); ++span)
    add_absent(merged, span->input, span->begin, span->end);
  absent.resize(from);
  absent.insert(absent.end(), merged.begin(), merged.end());
}

Rational rational_rate(double rate_hz) {
  if (!(rate_hz > 0 && rate_hz <= 1e12)) {
    throw ConfigError("a rate of " + std::to_string(rate_hz) + " Hz is not in (0, 1e12]");
  }
  return Rational{std::llround(rate_hz * 1e6), 1'000'000}.reduced();
}

namespace {

/// Whether the time of frames[k], sorted by time, stands alone (arrange_frames) and is borne out by
/// nothing. `order` has the times as they were written.
class LoneFrames {
 public:
  LoneFrames(std::span<const FrameRef> frames, std::int64_t length)
      : frames_(frames), near_ticks_(static_cast<__int128>(16) * length) {
    for (const auto& f : frames) by_offset_.push_back({f.offset, f.tick});
    std::sort(by_offset_.begin(), by_offset_.end());
    std::size_t n_near = 0;
    for (std::size_t k = 0; k < frames.size(); ++k) n_near += alone(k) ? 0 : 1;
    // A file of few frames far apart has no neighbours to go by.
    judges_ = n_near >= 8 && n_near >= frames.size() / 2;
  }

  bool damaged(std::size_t k) const {
    if (!judges_ || !alone(k)) return false;
    if (k == 0 || k + 1 == frames_.size()) return true;
    const std::int64_t tick = frames_[k].tick;
    const auto at =
        std::lower_bound(by_offset_.begin(), by_offset_.end(), Written{frames_[k].offset, tick});
    const bool follows = at == by_offset_.begin() || std::prev(at)->tick < tick;
    const bool precedes = std::next(at) == by_offset_.end() || std::next(at)->tick > tick;
    return !follows || !precedes;
  }

 private:
  struct Written {
    std::int64_t offset, tick;
    auto operator<=>(const Written&) const = default;
  };
  bool near(std::size_t a, std::size_t b) const {
    return static_cast<__int128>(frames_[b].tick) - frames_[a].tick <= near_ticks_;
  }
  bool alone(std::size_t k) const {
    return (k == 0 || !near(k - 1, k)) && (k + 1 == frames_.size() || !near(k, k + 1));
  }

  std::span<const FrameRef> frames_;
  __int128 near_ticks_;
  std::vector<Written> by_offset_;
  bool judges_ = false;
};

}  // namespace

std::vector<FrameRef> arrange_frames(std::vector<FrameRef> frames, std::int64_t max_gap,
                                     std::int64_t step,
                                     std::map<std::string, std::int64_t>& counters,
                                     std::int64_t frame_length) {
  if (frames.empty()) return frames;
  const auto before = [](const FrameRef& a, const FrameRef& b) {
    if (a.tick != b.tick) return a.tick < b.tick;
    return a.stream != b.stream ? a.stream < b.stream : a.offset < b.offset;
  };
  std::sort(frames.begin(), frames.end(), before);
  // Grow from the median frame outwards until a gap is too wide. The difference of two int64 may
  // not fit: __int128.
  const auto gap = [&](std::size_t k) {
    return static_cast<__int128>(frames[k + 1].tick) - frames[k].tick;
  };
  std::size_t first = frames.size() / 2, last = first;
  while (first > 0 && gap(first - 1) <= max_gap) --first;
  while (last + 1 < frames.size() && gap(last) <= max_gap) ++last;
  std::int64_t bad_time = static_cast<std::int64_t>(frames.size() - (last - first + 1));
  std::int64_t duplicates = 0;
  std::vector<FrameRef> kept;
  kept.reserve(last - first + 1);
  const std::int64_t base = frames[(first + last) / 2].tick;
  const std::span<const FrameRef> believed(frames.data() + first, last - first + 1);
  const LoneFrames lone(believed, frame_length > 0 ? frame_length : step);
  for (std::size_t k = first; k <= last; ++k) {
    const FrameRef& f = frames[k];
    if ((static_cast<__int128>(f.tick) - base) % step != 0 || lone.damaged(k - first)) {
      ++bad_time;
    } else if (!kept.empty() && kept.back().tick == f.tick && kept.back().stream == f.stream) {
      ++duplicates;
    } else {
      kept.push_back(f);
    }
  }
  if (bad_time > 0) counters["rejected.time"] += bad_time;
  if (duplicates > 0) counters["rejected.duplicate"] += duplicates;
  counters["frames"] = static_cast<std::int64_t>(kept.size());
  return kept;
}

std::span<const FrameRef> frames_between(std::span<const FrameRef> frames, std::int64_t begin,
                                         std::int64_t end) {
  const auto earlier = [](const FrameRef& f, std::int64_t tick) { return f.tick < tick; };
  const auto from = std::lower_bound(frames.begin(), frames.end(), begin, earlier);
  const auto to = std::lower_bound(from, frames.end(), end, earlier);
  return frames.subspan(from - frames.begin(), to - from);
}

}  // namespace ryle
