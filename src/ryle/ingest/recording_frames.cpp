// SPDX-License-Identifier: BSD-3-Clause
// Files of VDIF and CODIF frames (ingest.md 2.6). Every thread of every station is an input;
// several real channels of a thread are inputs too (separate bands), several complex ones make the
// recording channelized. A channel map tells where the channels lie on the sky.
#include "ryle/ingest/recording_frames.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/core/units.hpp"
#include "ryle/ingest/channel_map.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_time.hpp"

namespace ryle::detail {
namespace {

constexpr std::int64_t kMaxFramesPerSecond = 1 << 30;
constexpr std::int64_t kMaxFramesPerPeriod = 1 << 24;  // where no rate says how many there are

/// What tells streams of frames apart.
struct StreamId {
  std::uint32_t station = 0, group = 0, thread = 0;
  auto operator<=>(const StreamId&) const = default;
};

StreamId stream_id(const FrameHeader& h) { return {h.station, h.group, h.thread}; }

bool can_be_read(const FrameShape& s) {
  return s.coding.bits >= 1 && s.coding.bits <= 16 && s.n_samples > 0;
}

std::string band_text(double low_hz, double high_hz) {
  return std::to_string(low_hz * 1e-6) + " to " + std::to_string(high_hz * 1e-6) + " MHz";
}

[[noreturn]] void reject_center(const std::string& path, double hz, const std::string& bands) {
  throw ConfigError(path + ": source.center_mhz = " + std::to_string(hz * 1e-6) +
                    " lies in none of the bands of source.channel_map: " + bands);
}

class FrameRecording final : public RecordingBase {
 public:
  FrameRecording(const std::string& path, const FrameFormat& format,
                 const RecordingOptions& options)
      : file_(path), format_(format) {
    info_.format = format.name;
    find_shape();
    scan();
    drop_rare_streams();
    set_clock(options);
    set_channels(options);
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  struct Raw {
    std::int64_t second = 0;  // TAI seconds since 1970, of the period
    std::int64_t frame = 0;
    StreamId stream;
    std::int64_t offset = 0;
  };
  /// A channel of a stream that is delivered: as an input, or as a channel of a spectrum.
  struct Channel {
    std::int64_t channel = 0;
    std::int64_t place = 0;
    bool lower = false;
  };
  struct Stream {
    StreamId id;
    std::int64_t first_input = 0, n_inputs = 0;
    std::vector<Channel> channels;
    char sideband = ' ';
    double tuning_hz = 0;
  };
  /// Where a channel of a stream lies, for the choice of a band.
  struct ChannelBand {
    std::size_t stream = 0;
    std::int64_t channel = 0;
    double low_hz = 0, high_hz = 0, reference_hz = 0;
    bool lower = false;
  };
  wire::Reject parse(std::int64_t offset, FrameHeader& header) {
    return format_.parse(file_.window(offset, static_cast<std::size_t>(format_.header_bytes)),
                         header);
  }
  void find_shape();
  void scan();
  void drop_rare_streams();
  std::int64_t frames_per_period_from_file() const;
  Rational find_rate(const RecordingOptions& options);
  void set_clock(const RecordingOptions& options);
  void note_lost_streams();
  void set_spans();
  std::string name_of(const Stream& stream) const;
  void describe();
  void set_channels(const RecordingOptions& options);
  void set_inputs(const RecordingOptions& options, const std::vector<ChannelMapEntry>& map);
  void set_spectra(const RecordingOptions& options, const std::vector<ChannelMapEntry>& map);
  std::vector<ChannelBand> place_channels(const std::vector<ChannelMapEntry>& map);
  void choose_band(std::vector<ChannelBand>& channels, const RecordingOptions& options);
  bool load_frame(const FrameRef& frame, FrameHeader& header);
  std::int16_t* unpack(std::int64_t from, std::int64_t count);
  template <class Copy>
  void for_frames(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent, Copy copy);
  template <class Sample>
  void copy_time(std::byte* to, const Stream& stream, const FrameHeader& header, Tick tick,
                 std::int64_t from, std::int64_t count);

  RecordingFile file_;
  const FrameFormat& format_;
  FrameHeader head_;  // the first one that agrees with the next
  FrameShape shape_;
  std::int64_t start_ = 0;  // where the first frame begins
  std::vector<Raw> raw_;
  std::vector<Stream> streams_;   // in order of their ids
  std::vector<FrameRef> frames_;  // tick in frames, stream = position in streams_
  bool odd_start_ = false;        // tick 0 is an odd number of ticks after the start of 1970
  std::vector<std::byte> bytes_;
  std::vector<std::int16_t> values_;
};

// The first place where two headers, one frame apart, agree; the first header alone when there is
// only one frame.
void FrameRecording::find_shape() {
  constexpr std::int64_t kSearch = 1 << 20;
  FrameHeader first, second;
  for (std::int64_t offset = 0; offset < std::min(file_.size_bytes(), kSearch); offset += 8) {
    if (parse(offset, first) != wire::Reject::none) continue;
    const std::int64_t next = offset + first.shape.frame_bytes;
    if (next > file_.size_bytes()) continue;
    const bool last = next + first.shape.header_bytes > file_.size_bytes();
    const bool pair = !last && parse(next, second) == wire::Reject::none;
    if ((last && offset == 0) || (pair && first.shape == second.shape)) {
      head_ = first;
      shape_ = first.shape;
      start_ = offset;
      if (offset > 0) info_.counters["bytes_skipped"] += offset;
      return;
    }
  }
  throw FormatError(file_.path() + ": no " + format_.title + " frames: nowhere in the first " +
                    std::to_string(std::min(file_.size_bytes(), kSearch)) +
                    " bytes do two headers, one frame length apart, agree");
}

void FrameRecording::scan() {
  std::int64_t n_seen = 0;
  std::map<StreamId, Stream> seen;
  for (std::int64_t offset = start_; offset < file_.size_bytes(); offset += shape_.frame_bytes) {
    if (offset + shape_.frame_bytes > file_.size_bytes()) {
      info_.counters["rejected.cut_frame"] += 1;
      info_.warnings.push_back(
          "the last frame is cut: " + std::to_string(file_.size_bytes() - offset) + " of " +
          std::to_string(shape_.frame_bytes) + " bytes");
      break;
    }
    FrameHeader h;
    const auto reject = parse(offset, h);
    ++n_seen;
    if (reject != wire::Reject::none || h.shape != shape_) {
      // Frames have one length, so the next one is known; a header that lies about itself costs one
      // frame.
      info_.counters["rejected.field"] += 1;
      continue;
    }
    if (h.invalid) {
      info_.counters["rejected.sender_invalid"] += 1;
      continue;
    }
    const auto epoch = recording_tai_ns_from_vdif(h.reference_epoch, h.seconds);
    if (!epoch) {
      info_.counters["rejected.time"] += 1;
      continue;
    }
    const StreamId id = stream_id(h);
    seen.try_emplace(id, Stream{id, 0, 0, {}, h.sideband, h.tuning_hz});
    raw_.push_back({*epoch / kSecond_ns, h.frame, id, offset});
  }
  if (!can_be_read(shape_)) {
    throw FormatError(format_message(
        file_.path(), start_, "bits per sample", std::to_string(shape_.coding.bits),
        std::to_string(n_seen) + " frames of " + std::to_string(shape_.n_channels) +
            " channels, none usable: 1 to 16 bits that fill the frame are read, so these headers "
            "are damaged or of another kind"));
  }
  if (raw_.empty()) {
    throw FormatError(file_.path() + ": none of " + std::to_string(n_seen) + " " + format_.title +
                      " frames is usable (all are invalid, or damaged)");
  }
  for (auto& [id, stream] : seen) streams_.push_back(std::move(stream));
}

// Streams of a recording come equally often, or many times: a thread or station seen less than half
// as often as the commonest, and a few times only, is damage.
void FrameRecording::drop_rare_streams() {
  constexpr std::int64_t kFew = 16;
  std::map<StreamId, std::int64_t> count;
  std::int64_t maximum = 0;
  for (const auto& f : raw_) maximum = std::max(maximum, ++count[f.stream]);
  const auto rare = [&](const StreamId& id) {
    return count[id] * 2 < maximum && count[id] < std::max(kFew, maximum / 64);
  };
  const auto removed = std::erase_if(raw_, [&](const Raw& f) { return rare(f.stream); });
  if (removed == 0) return;
  info_.counters["rejected.foreign_stream"] += static_cast<std::int64_t>(removed);
  std::string list;
  for (const auto& s : streams_)
    if (rare(s.id) && list.size() < 300)
      list += ", " + name_of(s) + " (" + std::to_string(count[s.id]) + ")";
  std::erase_if(streams_, [&](const Stream& s) { return rare(s.id); });
  info_.warnings.push_back(std::to_string(removed) + " frames of rare threads left out" + list);
}

// Without a rate in the header: the largest frame number of a period that the file completes, plus
// one; 0 = it completes none.
std::int64_t FrameRecording::frames_per_period_from_file() const {
  std::map<std::int64_t, std::int64_t> last;
  for (const auto& f : raw_) last[f.second] = std::max(last[f.second], f.frame);
  std::int64_t best = 0;
  for (const auto& [second, frame] : last) {
    if (last.contains(second + head_.period_s)) best = std::max(best, frame + 1);
  }
  return best;
}

Rational FrameRecording::find_rate(const RecordingOptions& options) {
  if (options.sample_rate_hz > 0) return rational_rate(options.sample_rate_hz);
  if (head_.rate_hz.num > 0) return head_.rate_hz;
  const std::int64_t n = frames_per_period_from_file();
  if (n == 0) return {0, 1};
  const Rational rate = Rational{n * shape_.n_samples, head_.period_s}.reduced();
  info_.warnings.push_back("sample rate " + std::to_string(rate.num) +
                           (rate.den == 1 ? "" : "/" + std::to_string(rate.den)) +
                           " Hz counted from the frames of a whole second");
  return rate;
}

void FrameRecording::set_clock(const RecordingOptions& options) {
  const Rational rate = find_rate(options);
  const std::int64_t period_s = head_.period_s;
  std::int64_t per_period = kMaxFramesPerPeriod;
  if (rate.num > 0) {
    const __int128 frame_ticks = static_cast<__int128>(rate.den) * shape_.n_samples;
    const __int128 ticks = static_cast<__int128>(rate.num) * period_s;
    if (ticks % frame_ticks != 0) {
      throw ConfigError(file_.path() + ": a rate of " + std::to_string(rate.value()) +
                        " Hz is no whole number of frames of " + std::to_string(shape_.n_samples) +
                        " samples in " + std::to_string(period_s) + " s; " + format_.title +
                        " needs one");
    }
    // Times since 1970 in frames fit 63 bits.
    if (ticks / frame_ticks > static_cast<__int128>(kMaxFramesPerSecond) * period_s)
      throw FormatError(file_.path() + ": a rate of " + std::to_string(rate.value()) +
                        " Hz in frames of " + std::to_string(shape_.n_samples) +
                        " samples is impossible");
    per_period = static_cast<std::int64_t>(ticks / frame_ticks);
    info_.clock.rate_hz = rate;
  } else {
    set_unknown_rate("the frames carry no sample rate");
  }
  // Periods are counted from one that this file has.
  const std::int64_t phase_s = raw_.front().second % period_s;
  std::vector<FrameRef> frames;
  frames.reserve(raw_.size());
  for (const auto& f : raw_) {
    const auto position =
        std::lower_bound(streams_.begin(), streams_.end(), f.stream,
                         [](const Stream& s, const StreamId& id) { return s.id < id; }) -
        streams_.begin();
    // A frame number beyond the period is damage: it would land in the next one.
    if (f.frame >= per_period || (f.second - phase_s) % period_s != 0) {
      info_.counters["rejected.time"] += 1;
      continue;
    }
    frames.push_back({(f.second - phase_s) / period_s * per_period + f.frame,
                      static_cast<std::uint32_t>(position), f.offset});
  }
  if (frames.empty()) {
    throw FormatError(file_.path() + ": every frame number exceeds the " +
                      std::to_string(per_period) + " frames in " + std::to_string(period_s) +
                      " s of " + std::to_string(rate.value()) + " Hz; is sample_rate_hz right?");
  }
  const std::int64_t max_gap =
      rate.num > 0 ? (kMaxGap_s + period_s - 1) / period_s * per_period : per_period;
  frames_ = arrange_frames(std::move(frames), max_gap, 1, info_.counters);
  raw_ = {};
  const std::int64_t base = frames_.front().tick;
  for (auto& f : frames_) f.tick -= base;
  info_.n_ticks =
      checked_file_product({frames_.back().tick + 1, shape_.n_samples}, "the recording");
  odd_start_ = (base % 2 != 0) && (shape_.n_samples % 2 != 0);
  info_.origin_tai_ns = (base / per_period * period_s + phase_s) * kSecond_ns;
  info_.clock.epoch_tai_ns = info_.origin_tai_ns;
  if (rate.num > 0) {
    info_.ticks_from_origin = base % per_period * shape_.n_samples;
    info_.clock.epoch_tai_ns = info_.clock.tai_ns(info_.ticks_from_origin);
  }
  info_.time_source = TimeSource::header;
  if (info_.counters.contains("rejected.time")) note_lost_streams();
}

void FrameRecording::note_lost_streams() {
  std::set<std::uint32_t> seen;
  for (const auto& f : frames_) seen.insert(f.stream);
  std::string lost;
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    if (!seen.contains(static_cast<std::uint32_t>(k)))
      lost += " " + std::to_string(streams_[k].id.thread);
  }
  info_.warnings.push_back("frames whose time is far from the others' are left out" +
                           (lost.empty() ? lost : "; nothing remains of thread" + lost));
}

std::string FrameRecording::name_of(const Stream& stream) const {
  const std::string letters = station_letters(stream.id.station);
  std::string text = "station " + (letters.empty() ? std::to_string(stream.id.station) : letters);
  if (stream.id.group != 0) text += " group " + std::to_string(stream.id.group);
  return text + " thread " + std::to_string(stream.id.thread);
}

void FrameRecording::describe() {
  std::set<std::uint32_t> stations;
  std::string threads, names, sidebands, tunings;
  const auto add = [](std::string& to, const std::string& word) {
    to += (to.empty() ? "" : " ") + word;
  };
  for (const auto& s : streams_) {
    if (stations.insert(s.id.station).second) add(names, std::to_string(s.id.station));
    add(threads, std::to_string(s.id.thread));
    if (s.sideband != ' ') add(sidebands, std::string(1, s.sideband));
    if (s.sideband != ' ') add(tunings, std::to_string(s.tuning_hz * 1e-6));
  }
  info_.header["threads"] = threads;
  info_.header["channels"] = std::to_string(shape_.n_channels);
  info_.header["bits"] = std::to_string(shape_.coding.bits);
  info_.header["edv"] = std::to_string(head_.extension);
  info_.header["station"] = names;
  info_.header["frame_bytes"] = std::to_string(shape_.frame_bytes);
  if (!sidebands.empty()) {
    info_.header["sidebands"] = sidebands;
    info_.header["tunings_mhz"] = tunings;
  }
}

void FrameRecording::set_spans() {
  std::vector<TickSpan> of_stream(streams_.size(), {info_.n_ticks, 0});
  for (const auto& f : frames_) {
    auto& span = of_stream[f.stream];
    span.begin = std::min(span.begin, f.tick * shape_.n_samples);
    span.end = std::max(span.end, (f.tick + 1) * shape_.n_samples);
  }
  info_.input_spans.assign(info_.n_inputs, {0, 0});
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    for (std::int64_t c = 0; c < streams_[k].n_inputs; ++c) {
      if (of_stream[k].begin < of_stream[k].end)
        info_.input_spans[streams_[k].first_input + c] = of_stream[k];
    }
  }
}

void FrameRecording::set_channels(const RecordingOptions& options) {
  describe();
  info_.reference_hz = options.reference_hz;
  const auto map = parse_channel_map(options.channel_map);
  if (!map.empty() && !info_.rate_known)
    throw ConfigError(file_.path() +
                      ": source.channel_map needs the sample rate: give "
                      "source.sample_rate_hz (--rate)");
  if (map.empty() && std::any_of(streams_.begin(), streams_.end(),
                                 [](const Stream& s) { return s.sideband == 'L'; }))
    info_.warnings.push_back(
        "some threads are of the lower sideband and are read as they are: source.channel_map says "
        "where they lie on the sky");
  info_.channelized = shape_.coding.complex && shape_.n_channels > 1;
  info_.channelized ? set_spectra(options, map) : set_inputs(options, map);
  set_spans();
}

// Which channels the map names, and where they are; what it does not name is not read.
std::vector<FrameRecording::ChannelBand> FrameRecording::place_channels(
    const std::vector<ChannelMapEntry>& map) {
  std::vector<ChannelBand> placed;
  std::set<const ChannelMapEntry*> used;
  std::string unnamed;
  const double width_hz = info_.clock.rate_hz.value() * (shape_.coding.complex ? 1 : 0.5);
  for (std::size_t k = 0; k < streams_.size(); ++k) {
    const StreamId& id = streams_[k].id;
    const std::string letters = station_letters(id.station);
    for (std::int64_t c = 0; c < shape_.n_channels; ++c) {
      const ChannelMapEntry* at =
          find_channel(map, letters, id.station, id.thread, c, shape_.n_channels);
      if (at == nullptr) {
        unnamed +=
            (unnamed.empty() ? "" : ", ") + name_of(streams_[k]) + " channel " + std::to_string(c);
        continue;
      }
      used.insert(at);
      ChannelBand p{k, c, at->zero_hz, 0, at->zero_hz, at->lower};
      if (shape_.coding.complex) {
        p.low_hz -= 0.5 * width_hz;
      } else if (at->lower) {
        p.low_hz -= width_hz;
        p.reference_hz = p.low_hz;
      }
      p.high_hz = p.low_hz + width_hz;
      placed.push_back(p);
    }
  }
  for (const auto* place : used) info_.channel_map_used.push_back(place->text);
  if (placed.empty())
    throw ConfigError(file_.path() + ": source.channel_map names none of its channels: " + unnamed);
  if (!unnamed.empty())
    info_.warnings.push_back("not in source.channel_map, so not read: " + unnamed);
  return placed;
}

// Keeps the channels of one band: inputs of a recording share one.
void FrameRecording::choose_band(std::vector<ChannelBand>& channels,
                                 const RecordingOptions& options) {
  const double tolerance_hz = 1e-6 * info_.clock.rate_hz.value();
  auto& bands = info_.bands_hz;
  for (const auto& p : channels) {
    const bool known = std::ranges::any_of(
        bands, [&](const auto& band) { return std::abs(band.first - p.low_hz) < tolerance_hz; });
    if (!known) bands.emplace_back(p.low_hz, p.high_hz);
  }
  std::sort(bands.begin(), bands.end());
  std::string list;
  for (const auto& [low, high] : bands) list += (list.empty() ? "" : ", ") + band_text(low, high);
  auto chosen = bands.begin();
  if (options.reference_hz > 0) {
    const double hz = options.reference_hz + tolerance_hz;
    chosen = std::ranges::find_if(
        bands, [&](const auto& band) { return hz >= band.first && hz < band.second; });
    if (chosen == bands.end() && options.may_lack_band) return channels.clear();
    if (chosen == bands.end()) reject_center(file_.path(), options.reference_hz, list);
  } else if (bands.size() > 1) {
    info_.warnings.push_back(std::to_string(bands.size()) + " bands (" + list +
                             "): the lowest is read; source.center_mhz chooses another");
  }
  const auto elsewhere = [&](double hz) { return std::abs(hz - chosen->first) >= tolerance_hz; };
  std::erase_if(channels, [&](const ChannelBand& p) { return elsewhere(p.low_hz); });
  info_.reference_hz = channels.front().reference_hz;
}

// Time samples: every channel of every stream is an input.
void FrameRecording::set_inputs(const RecordingOptions& options,
                                const std::vector<ChannelMapEntry>& map) {
  std::vector<ChannelBand> chosen;
  if (map.empty()) {
    for (std::size_t k = 0; k < streams_.size(); ++k)
      for (std::int64_t c = 0; c < shape_.n_channels; ++c) chosen.push_back({k, c, 0, 0, 0, false});
    if (shape_.n_channels > 1)
      info_.warnings.push_back("each real channel is delivered as an input: thread, then channel");
  } else {
    chosen = place_channels(map);
    choose_band(chosen, options);
  }
  for (const auto& p : chosen) {
    Stream& stream = streams_[p.stream];
    if (stream.n_inputs == 0) stream.first_input = info_.n_inputs;
    ++stream.n_inputs;
    stream.channels.push_back({p.channel, info_.n_inputs, p.lower});
    ++info_.n_inputs;
    info_.input_names.push_back(name_of(stream) + (shape_.n_channels > 1 && map.empty()
                                                       ? " channel " + std::to_string(p.channel)
                                                       : ""));
  }
  // Two channels of one thread in one band (polarizations) are told apart by their number.
  if (std::set(info_.input_names.begin(), info_.input_names.end()).size() != chosen.size()) {
    for (std::size_t k = 0; k < chosen.size(); ++k)
      info_.input_names[k] += " channel " + std::to_string(chosen[k].channel);
  }
  checked_file_product({info_.n_inputs, shape_.n_samples}, "inputs");
  const bool wide = shape_.coding.bits > 8;
  set_time_major_layout(shape_.coding.complex ? (wide ? SampleFormat::ci16 : SampleFormat::ci8)
                                              : (wide ? SampleFormat::i16 : SampleFormat::i8),
                        Encoding::twos_complement);
}

// Spectra: streams are inputs, and the channels of all of them the same ones.
void FrameRecording::set_spectra(const RecordingOptions& options,
                                 const std::vector<ChannelMapEntry>& map) {
  if (shape_.coding.bits > 8) {
    throw UnsupportedError(file_.path() + ": " + std::to_string(shape_.coding.bits) +
                           "-bit complex samples of " + std::to_string(shape_.n_channels) +
                           " channels do not fit the 8 bits of a spectrum; 1 to 8 bits are read");
  }
  info_.frequency = {options.reference_hz, info_.clock.rate_hz.value(), shape_.n_channels};
  if (map.empty()) {
    for (auto& stream : streams_)
      for (std::int64_t c = 0; c < shape_.n_channels; ++c) stream.channels.push_back({c, c, false});
  } else {
    auto placed = place_channels(map);
    std::set<std::size_t> used;
    for (const auto& p : placed) used.insert(p.stream);
    std::stable_sort(placed.begin(), placed.end(), [](const ChannelBand& a, const ChannelBand& b) {
      return std::tuple(a.stream, a.reference_hz) < std::tuple(b.stream, b.reference_hz);
    });
    const std::size_t n = placed.size() / used.size();
    const double width_hz =
        n > 1 ? placed[1].reference_hz - placed[0].reference_hz : info_.clock.rate_hz.value();
    for (std::size_t k = 0; k < placed.size(); ++k) {
      const ChannelBand& p = placed[k];
      const double expected_hz = placed[0].reference_hz + static_cast<double>(k % n) * width_hz;
      if (placed.size() % used.size() != 0 || !(width_hz > 0) ||
          !(std::abs(p.reference_hz - expected_hz) < 1e-3 * width_hz))
        throw ConfigError(file_.path() + ": source.channel_map: channel " +
                          std::to_string(p.channel) + " of " + name_of(streams_[p.stream]) +
                          " is at " + std::to_string(p.reference_hz * 1e-6) + " MHz, not " +
                          std::to_string(expected_hz * 1e-6) +
                          "; all threads must have the same channels at equal distances");
      streams_[p.stream].channels.push_back({p.channel, static_cast<std::int64_t>(k % n), p.lower});
    }
    info_.frequency = {placed[0].reference_hz, width_hz, static_cast<std::int64_t>(n)};
    const double low_hz = placed[0].low_hz, high_hz = placed[n - 1].high_hz;
    if (const double hz = options.reference_hz; hz > 0 && (hz < low_hz || hz >= high_hz))
      reject_center(file_.path(), hz, band_text(low_hz, high_hz));
  }
  for (auto& stream : streams_) {
    if (stream.channels.empty()) continue;
    stream.first_input = info_.n_inputs++;
    stream.n_inputs = 1;
    info_.input_names.push_back(name_of(stream));
  }
  set_time_major_layout(SampleFormat::ci8, Encoding::twos_complement);
}

bool FrameRecording::load_frame(const FrameRef& frame, FrameHeader& header) {
  bytes_.resize(shape_.frame_bytes);
  return file_.read_all(frame.offset, bytes_) &&
         format_.parse(bytes_, header) == wire::Reject::none && header.shape == shape_ &&
         stream_id(header) == streams_[frame.stream].id;
}

// All elementary samples of complete samples [from, from + count) of the frame in bytes_.
std::int16_t* FrameRecording::unpack(std::int64_t from, std::int64_t count) {
  const std::int64_t per_sample = shape_.n_channels * (shape_.coding.complex ? 2 : 1);
  values_.resize(count * per_sample);
  unpack_elements(shape_.coding, bytes_.data() + shape_.header_bytes, from * per_sample,
                  count * per_sample, values_.data());
  return values_.data();
}

// Calls copy(stream, header, first sample of the frame wanted, count, tick) for every frame there,
// and lists the others.
template <class Copy>
void FrameRecording::for_frames(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent,
                                Copy copy) {
  const std::size_t from = absent.size();
  std::vector<std::uint8_t> there(streams_.size());
  FrameHeader header;
  const std::int64_t s = shape_.n_samples;
  for (std::int64_t slot = floor_divide(first, s); slot * s < first + n; ++slot) {
    const Tick t0 = std::max(first, slot * s), t1 = std::min(first + n, (slot + 1) * s);
    std::fill(there.begin(), there.end(), std::uint8_t{0});
    for (const auto& f : frames_between(frames_, slot, slot + 1)) {
      if (streams_[f.stream].n_inputs == 0 || !load_frame(f, header)) continue;
      there[f.stream] = 1;
      copy(streams_[f.stream], header, t0 - slot * s, t1 - t0, t0);
    }
    for (std::size_t k = 0; k < there.size(); ++k) {
      for (std::int64_t c = 0; c < streams_[k].n_inputs && there[k] == 0; ++c)
        absent.push_back({streams_[k].first_input + c, t0, t1});
    }
  }
  merge_absent(absent, from);
}

// The lower sideband of real samples is turned over by changing the sign of every other one,
// counted from an instant that all files have in common; of complex ones the conjugate is taken.
template <class Sample>
void FrameRecording::copy_time(std::byte* to, const Stream& stream, const FrameHeader& header,
                               Tick tick, std::int64_t from, std::int64_t count) {
  const std::int64_t parts = shape_.coding.complex ? 2 : 1;
  const std::int64_t row = info_.n_inputs * parts;
  const std::int16_t* values = unpack(from, count);
  const std::int64_t per_sample = shape_.n_channels * parts;
  for (const auto& c : stream.channels) {
    if (!header.channel_valid(c.channel)) continue;
    const std::int16_t* from_values = values + c.channel * parts;
    std::byte* to_values = to + c.place * parts * static_cast<std::int64_t>(sizeof(Sample));
    const auto put = [&](std::int64_t t, std::int64_t part, int value) {
      const auto sample = static_cast<Sample>(value);
      std::memcpy(to_values + (t * row + part) * static_cast<std::int64_t>(sizeof sample), &sample,
                  sizeof sample);
    };
    const bool odd = ((tick % 2 != 0) != odd_start_);
    const auto turned = [](int value) {
      return std::min<int>(-value, std::numeric_limits<Sample>::max());
    };
    if (parts == 2) {
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int16_t* value = from_values + t * per_sample;
        put(t, 0, value[0]);
        put(t, 1, c.lower ? turned(value[1]) : value[1]);
      }
      continue;
    }
    for (std::int64_t t = 0; t < count; ++t) put(t, 0, from_values[t * per_sample]);
    for (std::int64_t t = odd ? 0 : 1; c.lower && t < count; t += 2)
      put(t, 0, turned(from_values[t * per_sample]));
  }
}

void FrameRecording::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                                  std::vector<AbsentSpan>& absent) {
  if (info_.channelized) return RecordingBase::read_samples(first, n, destination, absent);
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  std::fill(destination.begin(), destination.begin() + samples_bytes(n), std::byte{0});
  for_frames(first, n, absent,
             [&](const Stream& stream, const FrameHeader& header, std::int64_t from,
                 std::int64_t count, Tick tick) {
               std::byte* to =
                   destination.data() + (tick - first) * info_.layout.sample_stride_bits / 8;
               for (const auto& c : stream.channels) {
                 if (!header.channel_valid(c.channel))
                   absent.push_back({c.place, tick, tick + count});
               }
               if (shape_.coding.bits > 8) {
                 copy_time<std::int16_t>(to, stream, header, tick, from, count);
               } else {
                 copy_time<std::int8_t>(to, stream, header, tick, from, count);
               }
             });
}

void FrameRecording::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                                  std::vector<AbsentSpan>& absent,
                                  std::vector<std::uint8_t>* absent_channels,
                                  std::vector<ChannelGap>* gaps) {
  if (!info_.channelized)
    return RecordingBase::read_spectra(first, n, destination, absent, absent_channels, gaps);
  const std::int64_t size =
      checked_file_product({info_.frequency.n_channels, info_.n_inputs}, "a spectrum");
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >=
                            checked_file_product({n, size}, "spectra"));
  std::fill(destination.begin(), destination.begin() + n * size, ci8{});
  if (absent_channels != nullptr) absent_channels->assign(size, 0);
  const auto copy = [&](const Stream& stream, const FrameHeader& header, std::int64_t from,
                        std::int64_t count, Tick tick) {
    const auto invalid =
        std::count_if(stream.channels.begin(), stream.channels.end(),
                      [&](const Channel& c) { return !header.channel_valid(c.channel); });
    // A gap of channels is one of all inputs; with several the spectrum of this one is absent.
    if (invalid > 0 && (gaps == nullptr || info_.n_inputs > 1)) {
      absent.push_back({stream.first_input, tick, tick + count});
      return;
    }
    const std::int16_t* values = unpack(from, count);
    for (const auto& c : stream.channels) {
      if (!header.channel_valid(c.channel)) {
        gaps->push_back({c.place, c.place + 1, tick, tick + count});
        continue;
      }
      for (std::int64_t t = 0; t < count; ++t) {
        const std::int16_t* value = values + 2 * (t * shape_.n_channels + c.channel);
        const int im = c.lower ? std::min(127, -value[1]) : value[1];
        destination[(tick - first + t) * size + c.place * info_.n_inputs + stream.first_input] = {
            static_cast<std::int8_t>(value[0]), static_cast<std::int8_t>(im)};
      }
    }
  };
  for_frames(first, n, absent, copy);
}

}  // namespace

std::unique_ptr<Recording> open_frames(const std::string& path, const FrameFormat& format,
                                       const RecordingOptions& options) {
  return std::make_unique<FrameRecording>(path, format, options);
}

// Four bits of luck in 2^40 for anything else.
bool looks_like_frames(const std::string& path, const FrameFormat& format) {
  RecordingFile file(path);
  FrameHeader a, b;
  const auto size = static_cast<std::size_t>(format.header_bytes);
  if (format.parse(file.window(0, size), a) != wire::Reject::none) return false;
  if (a.shape.frame_bytes == file.size_bytes()) return true;
  return format.parse(file.window(a.shape.frame_bytes, size), b) == wire::Reject::none &&
         a.shape == b.shape;
}

}  // namespace ryle::detail
