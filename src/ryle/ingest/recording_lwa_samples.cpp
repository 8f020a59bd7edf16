// SPDX-License-Identifier: BSD-3-Clause
// LWA files of time samples: TBN (complex samples of one input a frame), TBW (real samples of both
// polarizations of a stand) and DRX (complex samples of one polarization and tuning of a beam)
// (ingest.md 2.3). Frames of a kind have one length; their time tags count 196 MHz ticks.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle::detail {
namespace {

using wire::kLwaTicksPerSecond;

/// What the header of a frame says.
struct LwaHeader {
  std::int64_t tag = 0;       // 196 MHz ticks of the first sample
  std::uint32_t stream = 0;   // TBN input, TBW stand - 1, DRX id byte
  std::uint32_t tuning = 0;   // word: x 196e6 / 2^32 Hz
  std::uint32_t variant = 0;  // what all frames of a file have in common: bits, decimation
};

/// One kind of frames.
struct LwaKindOfSamples {
  const char* name;
  const char* id;  // of its headers, for messages
  std::int64_t frame_bytes, header_bytes;
  std::int64_t inputs_per_frame;
  wire::Reject (*parse)(std::span<const std::byte> frame, LwaHeader& header);
  SampleFormat (*format)(std::uint32_t variant);
  std::int64_t (*n_samples)(std::uint32_t variant);
  std::int64_t (*step)(std::uint32_t variant);  // ticks from frame to frame; 0 = not in the header
  // Samples [from, from + n) of a payload, all inputs of the frame, `stride` bytes from one time to
  // the next.
  void (*unpack)(std::uint32_t variant, const std::byte* payload, std::int64_t from, std::int64_t n,
                 std::byte* to, std::int64_t stride);
};

std::int8_t signed_nibble(unsigned code) {
  return static_cast<std::int8_t>((static_cast<int>(code & 15) ^ 8) - 8);
}

double tuning_hz(std::uint32_t word) {
  return static_cast<double>(word) * static_cast<double>(kLwaTicksPerSecond) / 4294967296.0;
}

// ---- TBN ----

wire::Reject parse_tbn(std::span<const std::byte> frame, LwaHeader& header) {
  wire::Packet packet;
  const auto reject = wire::decode(wire::TbnGeometry{.n_inputs = 0x3FFF}, frame, packet);
  if (reject != wire::Reject::none) return reject;
  if (packet.tick_raw >> 62 != 0) return wire::Reject::field;
  header = {static_cast<std::int64_t>(packet.tick_raw), packet.stream, packet.channel, 0};
  return wire::Reject::none;
}

void unpack_tbn(std::uint32_t, const std::byte* payload, std::int64_t from, std::int64_t n,
                std::byte* to, std::int64_t stride) {
  for (std::int64_t t = 0; t < n; ++t) std::memcpy(to + t * stride, payload + (from + t) * 2, 2);
}

const LwaKindOfSamples kTbn{"tbn",
                            "id 0",
                            wire::kTbnFrameBytes,
                            24,
                            1,
                            parse_tbn,
                            [](std::uint32_t) { return SampleFormat::ci8; },
                            [](std::uint32_t) { return std::int64_t{wire::kTbnSamplesPerFrame}; },
                            [](std::uint32_t) { return std::int64_t{0}; },
                            unpack_tbn};

// ---- TBW: 400 samples of 12 bits (three bytes hold X and Y) or 1200 of 4 bits, X in the high ones

constexpr std::uint32_t kFourBits = 1;

wire::Reject parse_tbw(std::span<const std::byte> frame, LwaHeader& header) {
  const auto kind = wire::identify_lwa_frame(frame);
  if (kind.kind == wire::LwaKind::none) return wire::Reject::magic;
  if (kind.kind != wire::LwaKind::tbw) return wire::Reject::field;
  const std::uint32_t id = wire::load_be<std::uint16_t>(frame.data() + 12);
  const auto tag = wire::load_be<std::uint64_t>(frame.data() + 16);
  if ((id & 0x3FFF) == 0 || tag >> 62 != 0) return wire::Reject::field;
  header = {static_cast<std::int64_t>(tag), (id & 0x3FFF) - 1, 0, id >> 14 & kFourBits};
  return wire::Reject::none;
}

std::int64_t tbw_samples(std::uint32_t variant) { return variant == kFourBits ? 1200 : 400; }

void unpack_tbw(std::uint32_t variant, const std::byte* payload, std::int64_t from, std::int64_t n,
                std::byte* to, std::int64_t stride) {
  for (std::int64_t t = 0; t < n; ++t) {
    if (variant == kFourBits) {
      const auto byte = static_cast<unsigned>(payload[from + t]);
      const std::array<std::int8_t, 2> both{signed_nibble(byte >> 4), signed_nibble(byte)};
      std::memcpy(to + t * stride, both.data(), sizeof both);
      continue;
    }
    const std::byte* p = payload + (from + t) * 3;
    const int b0 = static_cast<int>(p[0]), b1 = static_cast<int>(p[1]), b2 = static_cast<int>(p[2]);
    const auto sign = [](int code) { return static_cast<std::int16_t>((code ^ 2048) - 2048); };
    const std::array<std::int16_t, 2> both{sign(b0 << 4 | b1 >> 4), sign((b1 & 15) << 8 | b2)};
    std::memcpy(to + t * stride, both.data(), sizeof both);
  }
}

const LwaKindOfSamples kTbw{
    "tbw",
    "id 0, bit 15 of the source",
    1224,
    24,
    2,
    parse_tbw,
    [](std::uint32_t v) { return v == kFourBits ? SampleFormat::i8 : SampleFormat::i16; },
    tbw_samples,
    tbw_samples,
    unpack_tbw};

// ---- DRX: 4096 samples of 4+4 bits, real in the high ones

wire::Reject parse_drx(std::span<const std::byte> frame, LwaHeader& header) {
  const auto kind = wire::identify_lwa_frame(frame);
  if (kind.kind == wire::LwaKind::none) return wire::Reject::magic;
  if (kind.kind != wire::LwaKind::drx || frame.size() < 32) return wire::Reject::field;
  const std::byte* p = frame.data();
  const std::uint32_t id = wire::load_be<std::uint32_t>(p + 4) >> 24;
  const std::uint32_t decimation = wire::load_be<std::uint16_t>(p + 12);
  // The tag is that of the beamformer's output; the offset, in ticks too, is the delay through it.
  const std::int64_t offset = wire::load_be<std::uint16_t>(p + 14);
  const auto tag = wire::load_be<std::uint64_t>(p + 16);
  if ((id & 7) == 0 || (id >> 3 & 7) == 0 || decimation == 0 || tag >> 62 != 0)
    return wire::Reject::field;
  header = {static_cast<std::int64_t>(tag) - offset, id, wire::load_be<std::uint32_t>(p + 24),
            decimation};
  return wire::Reject::none;
}

constexpr std::int64_t kDrxSamples = 4096;

void unpack_drx(std::uint32_t, const std::byte* payload, std::int64_t from, std::int64_t n,
                std::byte* to, std::int64_t stride) {
  for (std::int64_t t = 0; t < n; ++t) {
    const auto byte = static_cast<unsigned>(payload[from + t]);
    const std::array<std::int8_t, 2> both{signed_nibble(byte >> 4), signed_nibble(byte)};
    std::memcpy(to + t * stride, both.data(), sizeof both);
  }
}

const LwaKindOfSamples kDrx{"drx",
                            "id of a beam, tuning and polarization",
                            4128,
                            32,
                            1,
                            parse_drx,
                            [](std::uint32_t) { return SampleFormat::ci8; },
                            [](std::uint32_t) { return kDrxSamples; },
                            [](std::uint32_t decimation) { return kDrxSamples * decimation; },
                            unpack_drx};

std::uint32_t drx_tuning(std::uint32_t id) { return id >> 3 & 7; }
/// Inputs of one tuning in order: beam, then polarization.
std::uint32_t drx_order(std::uint32_t id) { return (id & 7) << 1 | id >> 7; }

class LwaSamples final : public RecordingBase {
 public:
  LwaSamples(const std::string& path, const LwaKindOfSamples& kind, const RecordingOptions& options)
      : file_(path), kind_(kind) {
    info_.format = kind.name;
    auto frames = scan();
    n_samples_ = kind.n_samples(variant_);
    choose_tuning(options, frames);
    number_inputs(frames);
    set_clock(options, std::move(frames));
    const SampleFormat format = kind.format(variant_);
    set_time_major_layout(format, Encoding::twos_complement);
    sample_bytes_ = bits_per_sample(format) / 8;
    set_spans();
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;

 private:
  std::vector<FrameRef> scan();
  void keep_commonest(std::vector<FrameRef>& frames, const std::vector<std::uint32_t>& variants);
  void choose_tuning(const RecordingOptions& options, std::vector<FrameRef>& frames);
  void number_inputs(std::vector<FrameRef>& frames);
  void set_clock(const RecordingOptions& options, std::vector<FrameRef> frames);
  void note_lost_frames(const std::set<std::uint32_t>& lost);
  void set_spans();

  RecordingFile file_;
  const LwaKindOfSamples& kind_;
  std::vector<FrameRef> frames_;          // tick in frames from the first, stream = first input
  std::vector<std::uint32_t> stream_of_;  // [input / inputs_per_frame] as headers have it
  std::uint32_t variant_ = 0;
  std::map<std::uint32_t, std::map<std::uint32_t, std::int64_t>> tunings_;  // [tuning id][word]
  std::int64_t n_samples_ = 0, sample_bytes_ = 0;
};

std::vector<FrameRef> LwaSamples::scan() {
  std::vector<FrameRef> frames;
  std::vector<std::uint32_t> variants;
  std::int64_t offset = 0;
  while (offset + kind_.frame_bytes <= file_.size_bytes()) {
    LwaHeader h;
    const auto reject =
        kind_.parse(file_.window(offset, static_cast<std::size_t>(kind_.frame_bytes)), h);
    if (reject == wire::Reject::none) {
      frames.push_back({h.tag, h.stream, offset});
      variants.push_back(h.variant);
      ++tunings_[&kind_ == &kDrx ? drx_tuning(h.stream) : 0][h.tuning];
      offset += kind_.frame_bytes;
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
        "the last frame is cut: " + std::to_string(file_.size_bytes() - offset) + " of " +
        std::to_string(kind_.frame_bytes) + " bytes");
  }
  if (frames.empty()) {
    throw FormatError(file_.path() + ": no whole " + kind_.name + " frame (sync DE C0 DE 5C, " +
                      kind_.id + ") in " + std::to_string(file_.size_bytes()) + " bytes");
  }
  keep_commonest(frames, variants);
  return frames;
}

// Frames of another decimation or number of bits are damage, or another recording.
void LwaSamples::keep_commonest(std::vector<FrameRef>& frames,
                                const std::vector<std::uint32_t>& variants) {
  std::map<std::uint32_t, std::int64_t> votes;
  for (const auto v : variants) ++votes[v];
  variant_ = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
               return a.second < b.second;
             })->first;
  std::size_t kept = 0;
  for (std::size_t k = 0; k < frames.size(); ++k) {
    if (variants[k] == variant_) frames[kept++] = frames[k];
  }
  if (kept < frames.size())
    info_.counters["rejected.field"] += static_cast<std::int64_t>(frames.size() - kept);
  frames.resize(kept);
}

// The sky frequency; of DRX one tuning, as a recording has one band.
void LwaSamples::choose_tuning(const RecordingOptions& options, std::vector<FrameRef>& frames) {
  std::uint32_t chosen = tunings_.begin()->first;
  std::string list;
  std::map<std::uint32_t, std::uint32_t> words;
  for (const auto& [id, votes] : tunings_) {
    words[id] = std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) {
                  return a.second < b.second;
                })->first;
    if (votes.size() > 1)
      info_.warnings.push_back("frames of " + std::to_string(votes.size()) + " tunings");
    list += (list.empty() ? "" : ", ") + std::to_string(id) + " at " +
            std::to_string(tuning_hz(words[id]) * 1e-6) + " MHz";
  }
  if (tunings_.size() > 1) {
    const double half_hz = 0.5 * static_cast<double>(kLwaTicksPerSecond) *
                           static_cast<double>(n_samples_) /
                           static_cast<double>(kind_.step(variant_));
    bool found = false;
    for (const auto& [id, word] : words) {
      if (options.reference_hz > 0 && !found &&
          std::abs(tuning_hz(word) - options.reference_hz) <= half_hz) {
        chosen = id;
        found = true;
      }
    }
    const bool all_known =
        std::all_of(words.begin(), words.end(), [](const auto& w) { return w.second != 0; });
    if (!found && options.reference_hz > 0 && all_known)
      throw ConfigError(file_.path() +
                        ": source.center_mhz = " + std::to_string(options.reference_hz * 1e-6) +
                        " lies in no tuning: " + list);
    if (!found)
      info_.warnings.push_back("tunings " + list + ": " + std::to_string(chosen) +
                               " is read; source.center_mhz within its band chooses another");
    std::erase_if(frames, [&](const FrameRef& f) { return drx_tuning(f.stream) != chosen; });
  }
  const std::uint32_t word = words[chosen];
  info_.reference_hz = tuning_hz(word);
  if (options.reference_hz > 0 && tunings_.size() == 1) info_.reference_hz = options.reference_hz;
  if (info_.reference_hz == 0) info_.reference_hz = options.reference_hz;
  // The samples of the antennas themselves: baseband 0 is 0 Hz.
  info_.from_zero_hz = &kind_ == &kTbw;
  if (&kind_ != &kTbw) info_.header["tuning_word"] = std::to_string(word);
  if (&kind_ == &kDrx) info_.header["tuning"] = std::to_string(chosen);
}

// TBN and TBW number their inputs; a DRX id is a beam, a tuning and a polarization.
void LwaSamples::number_inputs(std::vector<FrameRef>& frames) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> ids;  // (order, id)
  std::uint32_t last = 0;
  for (const auto& f : frames) {
    last = std::max(last, f.stream);
    if (&kind_ == &kDrx) ids.emplace(drx_order(f.stream), f.stream);
  }
  if (&kind_ == &kDrx) {
    for (const auto& [order, id] : ids) {
      stream_of_.push_back(id);
      info_.input_names.push_back("beam " + std::to_string(id & 7) + " polarization " +
                                  std::to_string(id >> 7));
    }
  } else {
    for (std::uint32_t k = 0; k <= last; ++k) stream_of_.push_back(k);
  }
  info_.n_inputs = static_cast<std::int64_t>(stream_of_.size()) * kind_.inputs_per_frame;
  for (auto& f : frames) {
    const auto at = std::find(stream_of_.begin(), stream_of_.end(), f.stream) - stream_of_.begin();
    f.stream = static_cast<std::uint32_t>(at * kind_.inputs_per_frame);
  }
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

void LwaSamples::note_lost_frames(const std::set<std::uint32_t>& lost) {
  const auto at = info_.counters.find("rejected.time");
  if (at == info_.counters.end()) return;
  std::string text = std::to_string(at->second) + (at->second == 1 ? " frame" : " frames") +
                     " left out: their times are far from the others', or between them";
  for (const std::uint32_t input : lost) {
    text += input == *lost.begin() ? "; nothing remains of " : ", ";
    text += input < info_.input_names.size() ? info_.input_names[input]
                                             : "input " + std::to_string(input);
  }
  info_.warnings.push_back(text);
}

void LwaSamples::set_clock(const RecordingOptions& options, std::vector<FrameRef> frames) {
  std::int64_t step = kind_.step(variant_);
  if (step == 0) step = common_step(frames);
  if (options.sample_rate_hz > 0) {
    rational_rate(options.sample_rate_hz);  // range
    const double ticks =
        static_cast<double>(kLwaTicksPerSecond * n_samples_) / options.sample_rate_hz;
    if (!(ticks >= 1 && ticks < 1e15))
      throw ConfigError("sample_rate_hz is outside what the time tags can express");
    step = std::llround(ticks);
  }
  const std::int64_t sort_step = step > 0 ? step : 1;
  std::set<std::uint32_t> lost;  // first inputs of frames of which none is kept
  for (const auto& f : frames) lost.insert(f.stream);
  frames_ =
      arrange_frames(std::move(frames), kMaxGap_s * kLwaTicksPerSecond, sort_step, info_.counters);
  for (const auto& f : frames_) lost.erase(f.stream);
  note_lost_frames(lost);
  const std::int64_t base = frames_.front().tick;
  for (auto& f : frames_) f.tick = (f.tick - base) / sort_step;
  info_.n_ticks = checked_file_product({frames_.back().tick + 1, n_samples_}, "the recording");
  if (step > 0) {
    info_.clock.rate_hz = Rational{kLwaTicksPerSecond * n_samples_, step}.reduced();
  } else {
    set_unknown_rate("all frames carry one time tag, so the sample rate is not known");
    info_.n_ticks = n_samples_;
  }
  const auto epoch = recording_tai_ns_from_unix(
      floor_divide(base, kLwaTicksPerSecond),
      (base - floor_divide(base, kLwaTicksPerSecond) * kLwaTicksPerSecond) * 250 / 49);
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

// A file may begin and end between the frames of one time.
void LwaSamples::set_spans() {
  if (!info_.rate_known) return;
  info_.input_spans.assign(info_.n_inputs, {0, 0});
  for (const auto& f : frames_) {
    for (std::int64_t p = f.stream; p < f.stream + kind_.inputs_per_frame; ++p) {
      auto& span = info_.input_spans[p];
      if (span.begin == span.end) span.begin = f.tick * n_samples_;
      span.end = (f.tick + 1) * n_samples_;
    }
  }
}

void LwaSamples::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                              std::vector<AbsentSpan>& absent) {
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  std::fill(destination.begin(), destination.begin() + samples_bytes(n), std::byte{0});
  const std::size_t from = absent.size();
  const std::int64_t stride = info_.n_inputs * sample_bytes_;
  std::vector<std::uint8_t> there(info_.n_inputs);
  std::vector<std::byte> bytes(kind_.frame_bytes);
  for (std::int64_t slot = floor_divide(first, n_samples_); slot * n_samples_ < first + n; ++slot) {
    const Tick t0 = std::max(first, slot * n_samples_),
               t1 = std::min(first + n, (slot + 1) * n_samples_);
    std::fill(there.begin(), there.end(), std::uint8_t{0});
    for (const auto& f : frames_between(frames_, slot, slot + 1)) {
      LwaHeader h;
      if (!file_.read_all(f.offset, bytes) || kind_.parse(bytes, h) != wire::Reject::none) continue;
      // The file may have changed since it was scanned.
      if (h.stream != stream_of_[f.stream / kind_.inputs_per_frame] || h.variant != variant_)
        continue;
      for (std::int64_t p = 0; p < kind_.inputs_per_frame; ++p) there[f.stream + p] = 1;
      kind_.unpack(variant_, bytes.data() + kind_.header_bytes, t0 - slot * n_samples_, t1 - t0,
                   destination.data() + (t0 - first) * stride + f.stream * sample_bytes_, stride);
    }
    for (std::int64_t p = 0; p < info_.n_inputs; ++p) {
      if (there[p] == 0) absent.push_back({p, t0, t1});
    }
  }
  merge_absent(absent, from);
}

}  // namespace

std::unique_ptr<Recording> open_tbn(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<LwaSamples>(path, kTbn, options);
}

std::unique_ptr<Recording> open_tbw(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<LwaSamples>(path, kTbw, options);
}

std::unique_ptr<Recording> open_drx(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<LwaSamples>(path, kDrx, options);
}

}  // namespace ryle::detail
