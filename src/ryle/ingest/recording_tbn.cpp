// SPDX-License-Identifier: BSD-3-Clause
// LWA TBN files: 512 complex samples of one input a frame (ingest.md 2.3).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle::detail {
namespace {

using wire::kLwaTicksPerSecond;
constexpr std::int64_t kSamples = wire::kTbnSamplesPerFrame;

class Tbn final : public RecordingBase {
 public:
  Tbn(const std::string& path, const RecordingOptions& options) : file_(path) {
    info_.format = "tbn";
    auto frames = scan();
    set_clock(options, std::move(frames));
    set_time_major_layout(SampleFormat::ci8, Encoding::twos_complement);
    info_.reference_hz =
        options.reference_hz > 0
            ? options.reference_hz
            : static_cast<double>(tuning_) * static_cast<double>(kLwaTicksPerSecond) / 4294967296.0;
    info_.header["tuning_word"] = std::to_string(tuning_);
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;

 private:
  std::vector<FrameRef> scan();
  void set_clock(const RecordingOptions& options, std::vector<FrameRef> frames);

  RecordingFile file_;
  wire::TbnGeometry geometry_{.n_inputs = 0x3FFF};
  std::vector<FrameRef> frames_;  // tick in frames from the first, stream = input
  std::uint32_t tuning_ = 0;
};

std::vector<FrameRef> Tbn::scan() {
  std::vector<FrameRef> frames;
  std::map<std::uint32_t, std::int64_t> tunings;
  std::int64_t offset = 0;
  while (offset + static_cast<std::int64_t>(wire::kTbnFrameBytes) <= file_.size_bytes()) {
    wire::Packet packet;
    auto reject = wire::decode(geometry_, file_.window(offset, wire::kTbnFrameBytes), packet);
    if (reject == wire::Reject::none && packet.tick_raw >> 62 != 0) reject = wire::Reject::field;
    if (reject == wire::Reject::none) {
      frames.push_back({static_cast<std::int64_t>(packet.tick_raw), packet.stream, offset});
      ++tunings[packet.channel];
      offset += static_cast<std::int64_t>(wire::kTbnFrameBytes);
      continue;
    }
    info_.counters["rejected." + std::string(wire::name(reject))] += 1;
    // Frames have one length: try the next place where one could begin.
    const auto view = file_.window(offset + 1, std::size_t{1} << 16);
    constexpr std::array kSync{std::byte{0xDE}, std::byte{0xC0}, std::byte{0xDE}, std::byte{0x5C}};
    const auto hit = std::search(view.begin(), view.end(), kSync.begin(), kSync.end());
    std::int64_t skip = hit - view.begin() + 1;
    if (hit == view.end())
      skip = std::max<std::int64_t>(1, static_cast<std::int64_t>(view.size()) - 3);
    info_.counters["bytes_skipped"] += skip;
    offset += skip;
  }
  if (offset < file_.size_bytes()) {
    info_.counters["rejected.cut_frame"] += 1;
    info_.warnings.push_back(
        "the last frame is cut: " + std::to_string(file_.size_bytes() - offset) + " of 1048 bytes");
  }
  if (frames.empty()) {
    throw FormatError(file_.path() + ": no whole tbn frame (sync DE C0 DE 5C, id 0) in " +
                      std::to_string(file_.size_bytes()) + " bytes");
  }
  const auto maximum =
      std::max_element(tunings.begin(), tunings.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  tuning_ = maximum->first;
  if (tunings.size() > 1)
    info_.warnings.push_back("frames of " + std::to_string(tunings.size()) + " tunings");
  return frames;
}

// The commonest step between two time tags of one input; 0 = no input has two.
std::int64_t common_step(std::vector<FrameRef> frames) {
  std::sort(frames.begin(), frames.end(), [](const FrameRef& a, const FrameRef& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.tick < b.tick;
  });
  std::map<std::int64_t, std::int64_t> steps;
  for (std::size_t k = 1; k < frames.size(); ++k) {
    const std::int64_t step = frames[k].tick - frames[k - 1].tick;
    if (frames[k].stream == frames[k - 1].stream && step > 0) ++steps[step];
  }
  std::int64_t best = 0, votes = 0;
  for (const auto& [step, count] : steps) {
    if (count > votes) {
      best = step;
      votes = count;
    }
  }
  return best;
}

void Tbn::set_clock(const RecordingOptions& options, std::vector<FrameRef> frames) {
  std::int64_t step = common_step(frames);
  if (options.sample_rate_hz > 0) {
    rational_rate(options.sample_rate_hz);  // range
    const double ticks =
        static_cast<double>(kLwaTicksPerSecond * kSamples) / options.sample_rate_hz;
    if (!(ticks >= 1 && ticks < 1e15))
      throw ConfigError("sample_rate_hz is outside what TBN time tags can express");
    step = std::llround(ticks);
  }
  const std::int64_t sort_step = step > 0 ? step : 1;
  frames_ =
      arrange_frames(std::move(frames), kMaxGap_s * kLwaTicksPerSecond, sort_step, info_.counters);
  const std::int64_t base = frames_.front().tick;
  std::uint32_t last_input = 0;
  for (auto& f : frames_) {
    f.tick = (f.tick - base) / sort_step;
    last_input = std::max(last_input, f.stream);
  }
  info_.n_inputs = std::int64_t{last_input} + 1;
  info_.n_ticks = checked_file_product({frames_.back().tick + 1, kSamples}, "the recording");
  if (step > 0) {
    info_.clock.rate_hz = Rational{kLwaTicksPerSecond * kSamples, step}.reduced();
  } else {
    set_unknown_rate("all frames carry one time tag, so the sample rate is not known");
    info_.n_ticks = kSamples;
  }
  const auto epoch =
      recording_tai_ns_from_unix(base / kLwaTicksPerSecond, base % kLwaTicksPerSecond * 250 / 49);
  if (!epoch) {
    throw FormatError(format_message(file_.path(), frames_.front().offset, "time tag",
                                     std::to_string(base), "not a time between 1961 and 2200"));
  }
  info_.clock.epoch_tai_ns = *epoch;
  constexpr std::int64_t kFirstLight_tag =
      std::int64_t{1136073600} * kLwaTicksPerSecond;  // 2006-01-01
  if (base < kFirstLight_tag) {
    info_.warnings.push_back("time " + recording_utc_text(*epoch) +
                             " is implausible: the station clock was not set");
  }
}

void Tbn::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                       std::vector<AbsentSpan>& absent) {
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  std::fill(destination.begin(), destination.begin() + samples_bytes(n), std::byte{0});
  const std::size_t from = absent.size();
  const std::int64_t n_inputs = info_.n_inputs;
  std::vector<std::uint8_t> there(n_inputs);
  std::array<std::byte, wire::kTbnFrameBytes> bytes;
  const auto floor_div = [](std::int64_t a) {
    return a >= 0 ? a / kSamples : -((kSamples - 1 - a) / kSamples);
  };
  for (std::int64_t slot = floor_div(first); slot * kSamples < first + n; ++slot) {
    const Tick t0 = std::max(first, slot * kSamples),
               t1 = std::min(first + n, (slot + 1) * kSamples);
    std::fill(there.begin(), there.end(), std::uint8_t{0});
    for (const auto& f : frames_between(frames_, slot, slot + 1)) {
      wire::Packet packet;
      if (!file_.read_all(f.offset, bytes) ||
          wire::decode(geometry_, bytes, packet) != wire::Reject::none)
        continue;
      if (packet.stream != f.stream) continue;  // the file changed under us
      there[f.stream] = 1;
      const std::byte* source = bytes.data() + packet.payload_offset;
      for (Tick t = t0; t < t1; ++t) {
        std::memcpy(destination.data() + ((t - first) * n_inputs + f.stream) * 2,
                    source + (t - slot * kSamples) * 2, 2);
      }
    }
    for (std::int64_t p = 0; p < n_inputs; ++p) {
      if (there[p] == 0) absent.push_back({p, t0, t1});
    }
  }
  merge_absent(absent, from);
}

}  // namespace

std::unique_ptr<Recording> open_tbn(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<Tbn>(path, options);
}

}  // namespace ryle::detail
