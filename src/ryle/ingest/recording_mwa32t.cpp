// SPDX-License-Identifier: BSD-3-Clause
// MWA-32T recordings (Wayth 2009; ingest.md 2.1): groups of 17 words, one file a receiver or in
// turn in one file, and the published correlator's interleaved samples without markers.
#include <algorithm>
#include <array>
#include <cstring>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/extend.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::detail {
namespace {

constexpr std::int64_t kGroup = static_cast<std::int64_t>(wire::kMwa32tGroupBytes);
constexpr std::int64_t kPayload = static_cast<std::int64_t>(wire::kMwa32tPayloadBytesPerInstant);
constexpr std::int64_t kMaxReceivers = 255;

// Common to both transports: 1.28 MHz, 5+5 bits, time from the configuration.
class Mwa32tBase : public RecordingBase {
 protected:
  void set_metadata(const std::string& format, std::int64_t n_receivers,
                    const RecordingOptions& options) {
    info_.format = format;
    info_.n_inputs = n_receivers * wire::kMwa32tInputsPerReceiver;
    info_.clock.rate_hz = options.sample_rate_hz > 0 ? rational_rate(options.sample_rate_hz)
                                                     : Rational{wire::kMwa32tSampleRateHz, 1};
    info_.reference_hz = options.reference_hz;
    set_time_major_layout(SampleFormat::ci5, Encoding::twos_complement);
    info_.time_source = TimeSource::configured;
    if (options.start_utc.empty()) {
      info_.time_source = TimeSource::arrival;
      info_.clock.epoch_tai_ns = recording_tai_ns_from_unix(0).value();
      info_.warnings.push_back(
          "the file carries no time and start_utc is not given: times count from 1970");
      return;
    }
    const auto epoch = recording_tai_ns_from_text(options.start_utc);
    if (!epoch) {
      throw ConfigError("start_utc is \"" + options.start_utc +
                        "\"; a time like 2008-11-24T04:00:00 is needed");
    }
    info_.clock.epoch_tai_ns = *epoch;
  }
};

// ---- interleaved ----

class Mwa32tInterleaved final : public Mwa32tBase {
 public:
  Mwa32tInterleaved(const std::string& path, const RecordingOptions& options) : file_(path) {
    if (options.n_receivers < 1 || options.n_receivers > kMaxReceivers) {
      throw ConfigError("n_receivers is " + std::to_string(options.n_receivers) +
                        "; 1 to 255 are possible");
    }
    set_metadata("mwa32t-interleaved", options.n_receivers, options);
    row_ = options.n_receivers * kPayload;
    info_.n_ticks = file_.size_bytes() / row_;
    if (info_.n_ticks == 0) {
      throw FormatError(path + ": " + std::to_string(file_.size_bytes()) +
                        " bytes hold no instant of " + std::to_string(row_) + " bytes");
    }
    if (file_.size_bytes() % row_ != 0) {
      info_.warnings.push_back(
          "the last instant is cut: " + std::to_string(file_.size_bytes() % row_) + " bytes");
    }
    info_.warnings.push_back("without markers the alignment of the receivers cannot be verified");
    info_.counters["frames"] = info_.n_ticks;
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override {
    RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
    std::fill(destination.begin(), destination.begin() + n * row_, std::byte{0});
    const Tick begin = std::clamp<Tick>(first, 0, info_.n_ticks);
    const Tick end = std::clamp<Tick>(first + n, begin, info_.n_ticks);
    std::int64_t whole = 0;
    if (begin < end) {
      const auto to = destination.subspan((begin - first) * row_, (end - begin) * row_);
      whole = static_cast<std::int64_t>(file_.read(begin * row_, to)) / row_;
    }
    for (std::int64_t p = 0; p < info_.n_inputs; ++p) {
      add_absent(absent, p, first, std::min(begin, first + n));
      add_absent(absent, p, std::max(first, begin + whole), first + n);
    }
  }

 private:
  RecordingFile file_;
  std::int64_t row_ = 0;
};

// ---- groups ----

// Groups of one receiver that follow each other without a gap.
struct Run {
  Tick first = 0;
  std::int64_t n = 0;
  std::int64_t offset = 0;
};

// One receiver's groups: `stride` bytes apart from byte `start` of a file.
class GroupStream {
 public:
  GroupStream(const std::string& path, std::int64_t start, std::int64_t stride)
      : file_(path), start_(start), stride_(stride) {}

  const RecordingFile& file() const { return file_; }
  std::int64_t stride() const { return stride_; }
  std::vector<Run>& runs() { return runs_; }
  const std::vector<Run>& runs() const { return runs_; }
  /// Marker of the group at a byte offset; false beyond the last whole group.
  bool marker(std::int64_t offset, std::uint16_t& word) {
    const auto bytes = file_.window(offset, wire::kMwa32tGroupBytes);
    if (bytes.size() < wire::kMwa32tGroupBytes) return false;
    word = wire::load_le<std::uint16_t>(bytes.data());
    return true;
  }
  /// How many of `n` groups from `offset` count up by one from group to group.
  std::int64_t counting_steps(std::int64_t offset, std::int64_t n) {
    std::uint16_t last = 0, word = 0;
    std::int64_t steps = 0;
    if (!marker(offset, last)) return 0;
    for (std::int64_t k = 1; k < n && marker(offset + k * stride_, word); ++k) {
      steps += word == static_cast<std::uint16_t>(last + 1) ? 1 : 0;
      last = word;
    }
    return steps;
  }
  void scan_counted(RecordingInfo& info);
  void scan_uncounted();

 private:
  std::int64_t find_groups(std::int64_t from);
  RecordingFile file_;
  std::int64_t start_, stride_;
  std::vector<Run> runs_;
};

// The next byte from which 8 groups count up; -1 = none within 64 KiB.
std::int64_t GroupStream::find_groups(std::int64_t from) {
  for (std::int64_t offset = from; offset < from + 65536; ++offset) {
    if (counting_steps(offset, 8) == 7) return offset;
  }
  return -1;
}

// Follows the 16-bit counter from instant 0 = the first group. A jump is taken forwards, mod 2^16:
// a file is written in order, and 51.2 ms is longer than what a capture node loses at once.
void GroupStream::scan_counted(RecordingInfo& info) {
  std::int64_t offset = start_;
  std::uint16_t word = 0, next = 0;
  Tick instant = 0;
  if (!marker(offset, word)) return;
  std::uint16_t expected = word;
  while (marker(offset, word)) {
    const bool has_next = marker(offset + stride_, next);
    // Damaged: the next group goes on as if this one had been right. The last group has no witness.
    if (word != expected && (!has_next || next == static_cast<std::uint16_t>(expected + 1))) {
      info.counters["rejected.marker"] += 1;
      ++instant;
    } else {
      if (word != expected && next != static_cast<std::uint16_t>(word + 1)) {
        const std::int64_t found = stride_ == kGroup ? find_groups(offset + 1) : -1;
        if (found < 0) {
          info.warnings.push_back(file_.path() + ": no groups after byte " +
                                  std::to_string(offset));
          info.counters["bytes_skipped"] += file_.size_bytes() - offset;
          return;
        }
        info.counters["bytes_skipped"] += found - offset;
        offset = found;
        marker(offset, word);
      }
      const auto jump = static_cast<std::uint16_t>(word - expected);
      if (jump != 0) {
        info.counters["gaps"] += 1;
        instant += jump;
        expected = word;
      }
      const bool joins = !runs_.empty() && runs_.back().first + runs_.back().n == instant &&
                         runs_.back().offset + runs_.back().n * stride_ == offset;
      if (!joins) runs_.push_back({instant, 0, offset});
      ++runs_.back().n;
      ++instant;
      info.counters["frames"] += 1;
    }
    ++expected;
    offset += stride_;
  }
}

void GroupStream::scan_uncounted() {
  const std::int64_t n = (file_.size_bytes() - start_ - kGroup + stride_) / stride_;
  if (n > 0) runs_.push_back({0, n, start_});
}

class Mwa32tGroups final : public Mwa32tBase {
 public:
  Mwa32tGroups(const std::vector<std::string>& paths, const RecordingOptions& options) {
    open_streams(paths, options);
    set_metadata("mwa32t", static_cast<std::int64_t>(streams_.size()), options);
    if (counted_) {
      for (auto& s : streams_) s->scan_counted(info_);
      align();
    } else {
      for (auto& s : streams_) s->scan_uncounted();
      info_.warnings.push_back(
          "the markers do not count: the alignment of the receivers cannot be verified");
    }
    Tick end = 0;
    for (const auto& s : streams_) {
      if (!s->runs().empty()) end = std::max(end, s->runs().back().first + s->runs().back().n);
    }
    if (end == 0) throw FormatError(paths.front() + ": no whole group of 34 bytes");
    info_.n_ticks = end;
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;

 private:
  void open_streams(const std::vector<std::string>& paths, const RecordingOptions& options);
  void align();
  bool read_run(const GroupStream& stream, std::int64_t offset, std::int64_t n, std::byte* to);

  std::vector<std::unique_ptr<GroupStream>> streams_;  // one a receiver
  bool counted_ = true;
  std::vector<std::byte> bytes_;
};

void Mwa32tGroups::open_streams(const std::vector<std::string>& paths,
                                const RecordingOptions& options) {
  constexpr std::int64_t kProbe = 64;
  const std::int64_t n = static_cast<std::int64_t>(paths.size());
  if (n > kMaxReceivers)
    throw ConfigError("255 receivers at most, " + std::to_string(n) + " files given");
  if (n > 1) {
    for (const auto& p : paths) {
      streams_.push_back(std::make_unique<GroupStream>(p, 0, kGroup));
      const std::int64_t groups = std::min(kProbe, streams_.back()->file().size_bytes() / kGroup);
      counted_ = counted_ && streams_.back()->counting_steps(0, kProbe) * 4 >= (groups - 1) * 3;
    }
    return;
  }
  // One file: one receiver's groups, or those of n_receivers in turn. The markers decide.
  const std::int64_t turns = std::clamp<std::int64_t>(options.n_receivers, 1, kMaxReceivers);
  for (const std::int64_t r : {turns, std::int64_t{1}}) {
    GroupStream probe(paths.front(), 0, r * kGroup);
    const std::int64_t groups = std::min(kProbe, probe.file().size_bytes() / (r * kGroup));
    if (groups < 2 || probe.counting_steps(0, kProbe) * 4 < (groups - 1) * 3) continue;
    for (std::int64_t k = 0; k < r; ++k) {
      streams_.push_back(std::make_unique<GroupStream>(paths.front(), k * kGroup, r * kGroup));
    }
    return;
  }
  throw FormatError(paths.front() +
                    ": no groups of 17 words whose markers count up; give the receivers' files "
                    "with commas between them, "
                    "or format mwa32t-interleaved for samples without markers");
}

// Puts the receivers on one time axis: their first markers, nearest to the median one (mod 2^16),
// the earliest = 0.
void Mwa32tGroups::align() {
  std::vector<Tick> start(streams_.size(), 0);
  std::vector<Tick> known;
  std::uint16_t reference = 0, word = 0;
  bool have_reference = false;
  for (std::size_t r = 0; r < streams_.size(); ++r) {
    const auto& runs = streams_[r]->runs();
    if (runs.empty() || !streams_[r]->marker(runs.front().offset, word)) continue;
    if (!have_reference) reference = word;
    have_reference = true;
    start[r] =
        wire::extend(static_cast<std::uint16_t>(word - reference), 16, 0) - runs.front().first;
    known.push_back(start[r]);
  }
  if (known.empty()) return;
  std::nth_element(known.begin(), known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2),
                   known.end());
  const Tick median = known[known.size() / 2];
  Tick earliest = INT64_MAX;
  for (std::size_t r = 0; r < streams_.size(); ++r) {
    start[r] = wire::extend(static_cast<std::uint64_t>(start[r]), 16, median);
    if (!streams_[r]->runs().empty())
      earliest = std::min(earliest, start[r] + streams_[r]->runs().front().first);
  }
  for (std::size_t r = 0; r < streams_.size(); ++r) {
    for (auto& run : streams_[r]->runs()) run.first += start[r] - earliest;
    if (start[r] != earliest && !streams_[r]->runs().empty()) {
      info_.warnings.push_back("receiver " + std::to_string(r) + " starts " +
                               std::to_string(start[r] - earliest) +
                               " samples after the first one");
    }
  }
}

bool Mwa32tGroups::read_run(const GroupStream& stream, std::int64_t offset, std::int64_t n,
                            std::byte* to) {
  const std::int64_t row = info_.n_inputs * 2;
  constexpr std::int64_t kPiece = 8192;
  for (std::int64_t done = 0; done < n; done += kPiece) {
    const std::int64_t count = std::min(kPiece, n - done);
    bytes_.resize((count - 1) * stream.stride() + kGroup);
    if (!stream.file().read_all(offset + done * stream.stride(), bytes_)) return false;
    for (std::int64_t k = 0; k < count; ++k) {
      std::memcpy(to + (done + k) * row, bytes_.data() + k * stream.stride() + 2,
                  static_cast<std::size_t>(kPayload));
    }
  }
  return true;
}

void Mwa32tGroups::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                                std::vector<AbsentSpan>& absent) {
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  const std::int64_t row = info_.n_inputs * 2;
  std::fill(destination.begin(), destination.begin() + n * row, std::byte{0});
  const std::size_t from = absent.size();
  constexpr std::int64_t kInputs = wire::kMwa32tInputsPerReceiver;
  for (std::size_t r = 0; r < streams_.size(); ++r) {
    const auto missing = [&](Tick a, Tick b) {
      for (std::int64_t k = 0; k < kInputs && a < b; ++k) {
        absent.push_back({static_cast<std::int64_t>(r) * kInputs + k, a, b});
      }
    };
    Tick done = first;
    const auto& runs = streams_[r]->runs();
    auto run = std::partition_point(runs.begin(), runs.end(),
                                    [&](const Run& x) { return x.first + x.n <= first; });
    for (; run != runs.end() && run->first < first + n; ++run) {
      const Tick t0 = std::max(done, run->first), t1 = std::min(first + n, run->first + run->n);
      missing(done, t0);
      std::byte* to =
          destination.data() + (t0 - first) * row + static_cast<std::int64_t>(r) * kPayload;
      if (!read_run(*streams_[r], run->offset + (t0 - run->first) * streams_[r]->stride(), t1 - t0,
                    to))
        missing(t0, t1);
      done = t1;
    }
    missing(done, first + n);
  }
  merge_absent(absent, from);
}

}  // namespace

std::unique_ptr<Recording> open_mwa32t_groups(const std::vector<std::string>& paths,
                                              const RecordingOptions& options) {
  return std::make_unique<Mwa32tGroups>(paths, options);
}

std::unique_ptr<Recording> open_mwa32t_interleaved(const std::string& path,
                                                   const RecordingOptions& options) {
  return std::make_unique<Mwa32tInterleaved>(path, options);
}

}  // namespace ryle::detail
