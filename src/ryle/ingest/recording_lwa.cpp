// SPDX-License-Identifier: BSD-3-Clause
// LWA TBF and TBX files: frames of a few channels of one spectrum of all stands (ingest.md 2.3).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/lwa.hpp"

namespace ryle::detail {
namespace {

using wire::kLwaTicksPerSecond;

constexpr std::size_t kMaxFrameBytes =
    wire::kTbxHeaderBytes + std::size_t{wire::kLwaMaxChannels} * 512;

// Int4 to int8: high = real, low = imaginary, two's complement.
ci8 unpack_nibbles(std::byte b) {
  const int high = static_cast<int>(b) >> 4, low = static_cast<int>(b) & 15;
  return {static_cast<std::int8_t>((high ^ 8) - 8), static_cast<std::int8_t>((low ^ 8) - 8)};
}

class LwaSpectra final : public RecordingBase {
 public:
  LwaSpectra(const std::string& path, bool tbx, const RecordingOptions& options)
      : file_(path), tbx_(tbx) {
    info_.format = tbx ? "tbx" : "tbf";
    info_.channelized = true;
    auto frames = scan();
    set_clock(options, frames);
    set_axes();
  }

  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  std::vector<FrameRef> scan();
  wire::Reject decode(std::span<const std::byte> bytes, wire::Packet& packet) const {
    return tbx_ ? wire::decode(tbx_geometry_, bytes, packet)
                : wire::decode(tbf_geometry_, bytes, packet);
  }
  void set_clock(const RecordingOptions& options, std::vector<FrameRef>& frames);
  void drop_rare_channels();
  void set_axes();
  std::int64_t find_sync(std::int64_t from);
  void add_gaps(Tick tick, const std::vector<std::uint8_t>& present,
                std::vector<ChannelGap>& gaps) const;
  bool copy_frame(const FrameRef& frame, ci8* spectrum, std::vector<std::uint8_t>& present);

  RecordingFile file_;
  bool tbx_;
  wire::TbfGeometry tbf_geometry_{.n_stands = 0};
  wire::TbxGeometry tbx_geometry_{.n_stands = 0, .n_channels = 0};
  std::vector<FrameRef>
      frames_;  // tick in spectra from the first one, stream = first channel of the frame
  std::map<std::uint32_t, std::uint32_t> widths_;  // channels of a frame, by its first channel
  std::set<std::uint32_t> channels_;               // those of the recording
  std::int64_t first_channel_ = 0;
  std::vector<std::byte> frame_bytes_;
};

std::int64_t LwaSpectra::find_sync(std::int64_t from) {
  constexpr std::byte kSync[4] = {std::byte{0xDE}, std::byte{0xC0}, std::byte{0xDE},
                                  std::byte{0x5C}};
  while (from < file_.size_bytes()) {
    const auto view = file_.window(from, std::size_t{1} << 16);
    const auto hit = std::search(view.begin(), view.end(), std::begin(kSync), std::end(kSync));
    if (hit != view.end()) return from + (hit - view.begin());
    if (view.size() < 8) break;
    from += static_cast<std::int64_t>(view.size()) - 3;
  }
  return file_.size_bytes();
}

std::vector<FrameRef> LwaSpectra::scan() {
  const auto wanted = tbx_ ? wire::LwaKind::tbx : wire::LwaKind::tbf;
  std::vector<FrameRef> frames;
  auto& counters = info_.counters;
  std::int64_t offset = 0;
  while (offset < file_.size_bytes()) {
    const auto head = file_.window(offset, wire::kTbxHeaderBytes);
    const auto kind = wire::identify_lwa_frame(head);
    wire::Packet packet;
    auto reject = wire::Reject::magic;
    if (kind.kind == wanted) {
      const auto bytes = file_.window(offset, kind.bytes);
      if (bytes.size() < kind.bytes) {
        counters["rejected.cut_frame"] += 1;
        info_.warnings.push_back("the last frame is cut: " + std::to_string(bytes.size()) + " of " +
                                 std::to_string(kind.bytes) + " bytes at byte " +
                                 std::to_string(offset));
        break;
      }
      reject = decode(bytes, packet);
    }
    // Times beyond 2^62 ticks (745 years) cannot be right, and leave room for differences.
    if (reject == wire::Reject::none && packet.tick_raw >> 62 != 0) reject = wire::Reject::field;
    if (reject == wire::Reject::none && info_.n_inputs == 0) info_.n_inputs = packet.n_inputs;
    if (reject == wire::Reject::none && packet.n_inputs != info_.n_inputs)
      reject = wire::Reject::field;
    if (reject == wire::Reject::none) {
      frames.push_back({static_cast<std::int64_t>(packet.tick_raw), packet.channel, offset});
      widths_[packet.channel] = packet.n_channels;
      offset += static_cast<std::int64_t>(kind.bytes);
      continue;
    }
    counters["rejected." + std::string(wire::name(reject))] += 1;
    const std::int64_t next = find_sync(offset + 1);
    counters["bytes_skipped"] += next - offset;
    offset = next;
  }
  if (frames.empty()) {
    throw FormatError(file_.path() + ": no whole " + info_.format + " frame (sync DE C0 DE 5C, " +
                      (tbx_ ? "id 8" : "id 1 or 5") + ") in " + std::to_string(file_.size_bytes()) +
                      " bytes");
  }
  return frames;
}

void LwaSpectra::set_clock(const RecordingOptions& options, std::vector<FrameRef>& frames) {
  // A spectrum takes 196 MHz / rate ticks: 7840 (25 kHz, LWA-SV) or 8192 (LWA-NA).
  const bool north_arm = tbx_ || info_.n_inputs != 512;
  std::int64_t ticks = north_arm ? 8192 : 7840;
  if (options.spectrum_rate_hz > 0) {
    const double wanted = static_cast<double>(kLwaTicksPerSecond) / options.spectrum_rate_hz;
    if (!(wanted >= 1 && wanted < 1e9))
      throw ConfigError("spectrum_rate_hz must lie in (0.2, 196e6]");
    ticks = std::llround(wanted);
  }
  frames_ =
      arrange_frames(std::move(frames), kMaxGap_s * kLwaTicksPerSecond, ticks, info_.counters);
  const std::int64_t base = frames_.front().tick;
  for (auto& f : frames_) f.tick = (f.tick - base) / ticks;
  info_.n_ticks = frames_.back().tick + 1;
  info_.clock.rate_hz = Rational{kLwaTicksPerSecond, ticks}.reduced();
  // 1 tick = 250/49 ns exactly.
  const auto epoch =
      recording_tai_ns_from_unix(base / kLwaTicksPerSecond, base % kLwaTicksPerSecond * 250 / 49);
  if (!epoch) {
    throw FormatError(format_message(file_.path(), frames_.front().offset, "time tag",
                                     std::to_string(base), "not a time between 1961 and 2200"));
  }
  info_.clock.epoch_tai_ns = *epoch;
  info_.time_source = TimeSource::header;
}

// The channels of the recording are those that come regularly: one damaged channel number must not
// make every spectrum look incomplete.
void LwaSpectra::drop_rare_channels() {
  std::map<std::uint32_t, std::int64_t> count;
  std::int64_t maximum = 0;
  for (const auto& f : frames_) maximum = std::max(maximum, ++count[f.stream]);
  const auto rare = [&](const FrameRef& f) { return count[f.stream] * 2 < maximum; };
  const auto removed = std::erase_if(frames_, rare);
  if (removed > 0) info_.counters["rejected.channel"] += static_cast<std::int64_t>(removed);
  info_.counters["frames"] = static_cast<std::int64_t>(frames_.size());
  for (const auto& [channel, n] : count) {
    if (n * 2 < maximum) continue;
    for (std::uint32_t c = 0; c < widths_[channel]; ++c) channels_.insert(channel + c);
  }
}

void LwaSpectra::set_axes() {
  drop_rare_channels();
  first_channel_ = *channels_.begin();
  info_.frequency.n_channels = *channels_.rbegin() - first_channel_ + 1;
  info_.frequency.channel_width_hz = info_.clock.rate_hz.value();
  info_.frequency.first_center_hz =
      static_cast<double>(first_channel_) * info_.frequency.channel_width_hz;
  set_time_major_layout(SampleFormat::ci8, Encoding::twos_complement);
  const auto missing = info_.frequency.n_channels - static_cast<std::int64_t>(channels_.size());
  if (missing > 0) {
    info_.warnings.push_back(std::to_string(missing) + " of " +
                             std::to_string(info_.frequency.n_channels) +
                             " channels between the first and the last are in no frame");
  }
  info_.header["first_channel"] = std::to_string(first_channel_);
  info_.header["stands"] = std::to_string(info_.n_inputs / 2);
}

bool LwaSpectra::copy_frame(const FrameRef& frame, ci8* spectrum,
                            std::vector<std::uint8_t>& present) {
  std::array<std::byte, wire::kTbxHeaderBytes> head;
  if (!file_.read_all(frame.offset, head)) return false;
  const auto kind = wire::identify_lwa_frame(head);
  if (kind.bytes == 0 || kind.bytes > kMaxFrameBytes) return false;
  frame_bytes_.resize(kind.bytes);
  wire::Packet packet;
  if (!file_.read_all(frame.offset, frame_bytes_) ||
      decode(frame_bytes_, packet) != wire::Reject::none)
    return false;
  const std::int64_t c0 = packet.channel - first_channel_;
  // The file may have changed since it was scanned.
  if (packet.n_inputs != info_.n_inputs || c0 < 0 ||
      c0 + packet.n_channels > info_.frequency.n_channels)
    return false;
  const auto payload = std::span(frame_bytes_).subspan(packet.payload_offset, packet.payload_bytes);
  ci8* to = spectrum + c0 * info_.n_inputs;
  for (std::size_t k = 0; k < payload.size(); ++k) to[k] = unpack_nibbles(payload[k]);
  for (std::uint32_t c = 0; c < packet.n_channels; ++c) present[c0 + c] = 1;
  return true;
}

// Runs of channels that the recording has and this spectrum lacks.
void LwaSpectra::add_gaps(Tick tick, const std::vector<std::uint8_t>& present,
                          std::vector<ChannelGap>& gaps) const {
  const auto n = static_cast<std::int64_t>(present.size());
  const auto lost = [&](std::int64_t c) {
    return c < n && present[c] == 0 &&
           channels_.contains(static_cast<std::uint32_t>(first_channel_ + c));
  };
  for (std::int64_t c = 0; c < n; ++c) {
    if (!lost(c)) continue;
    const std::int64_t begin = c;
    while (lost(c)) ++c;
    gaps.push_back({begin, c, tick, tick + 1});
  }
}

void LwaSpectra::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                              std::vector<AbsentSpan>& absent,
                              std::vector<std::uint8_t>* absent_channels,
                              std::vector<ChannelGap>* gaps) {
  const std::int64_t n_channels = info_.frequency.n_channels;
  const std::int64_t size = checked_file_product({n_channels, info_.n_inputs}, "a spectrum");
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >=
                            checked_file_product({n, size}, "spectra"));
  std::fill(destination.begin(), destination.begin() + n * size, ci8{});
  std::vector<std::uint8_t> present(n_channels);
  for (std::int64_t t = 0; t < n; ++t) {
    std::fill(present.begin(), present.end(), std::uint8_t{0});
    for (const auto& frame : frames_between(frames_, first + t, first + t + 1)) {
      copy_frame(frame, destination.data() + t * size, present);
    }
    std::int64_t count = 0;
    for (std::size_t c = 0; c < present.size(); ++c) count += present[c];
    if (count == static_cast<std::int64_t>(channels_.size())) continue;
    if (count > 0 && gaps != nullptr) {
      add_gaps(first + t, present, *gaps);
      continue;
    }
    std::fill(destination.begin() + t * size, destination.begin() + (t + 1) * size, ci8{});
    for (std::int64_t p = 0; p < info_.n_inputs; ++p)
      absent.push_back({p, first + t, first + t + 1});
  }
  if (absent_channels != nullptr) {
    absent_channels->assign(size, 0);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const bool missing = !channels_.contains(static_cast<std::uint32_t>(first_channel_ + c));
      std::fill_n(absent_channels->begin() + c * info_.n_inputs, info_.n_inputs, missing ? 1 : 0);
    }
  }
}

}  // namespace

std::unique_ptr<Recording> open_lwa_spectra(const std::string& path, bool tbx,
                                            const RecordingOptions& options) {
  return std::make_unique<LwaSpectra>(path, tbx, options);
}

}  // namespace ryle::detail
