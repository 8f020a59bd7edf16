// SPDX-License-Identifier: BSD-3-Clause
// VDIF files (ingest.md 2.6). Threads are inputs; several real channels are inputs too (they are
// separate bands of one thread), several complex channels make the recording channelized.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"
#include "ryle/wire/bytes.hpp"
#include "ryle/wire/vdif.hpp"

namespace ryle::detail {
namespace {

using wire::VdifHeader;

bool same_shape(const VdifHeader& a, const VdifHeader& b) {
  return a.frame_bytes == b.frame_bytes && a.legacy == b.legacy && a.n_channels == b.n_channels &&
         a.bits == b.bits && a.complex == b.complex;
}

// Elementary sample k of a payload as its value in int16 (ingest.md 2.7). Bits is a power of two,
// so the 32-bit words, least significant bits first, are one stream of bits.
template <int kBits>
std::int16_t elementary(const std::byte* payload, std::size_t k) {
  if constexpr (kBits == 16) {
    return static_cast<std::int16_t>(int{wire::load_le<std::uint16_t>(payload + 2 * k)} - 32768);
  } else if constexpr (kBits == 8) {
    return static_cast<std::int16_t>(static_cast<int>(payload[k]) - 128);
  } else {
    constexpr std::size_t kPerByte = 8 / kBits;
    const int code =
        static_cast<int>(payload[k / kPerByte]) >> (k % kPerByte * kBits) & ((1 << kBits) - 1);
    if constexpr (kBits == 4) return static_cast<std::int16_t>(code - 8);
    if constexpr (kBits == 2) return std::array<std::int16_t, 4>{-10, -3, 3, 10}[code];
    return static_cast<std::int16_t>(2 * code - 1);
  }
}

class Vdif final : public RecordingBase {
 public:
  Vdif(const std::string& path, const RecordingOptions& options) : file_(path) {
    info_.format = "vdif";
    find_shape();
    scan();
    drop_rare_threads();
    set_clock(options);
    set_shape(options);
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  struct Raw {
    std::int64_t second = 0;  // TAI seconds since 1970
    std::uint32_t frame = 0, thread = 0;
    std::int64_t offset = 0;
  };
  void find_shape();
  void scan();
  bool add_frame(const VdifHeader& header, std::int64_t offset);
  void drop_rare_threads();
  std::int64_t frames_per_second_from_file();
  void set_clock(const RecordingOptions& options);
  void set_shape(const RecordingOptions& options);
  bool load_frame(const FrameRef& frame);
  template <class Copy>
  void for_frames(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent, Copy copy);
  template <int kBits, class Sample>
  void copy_time(std::byte* to, const FrameRef& frame, std::int64_t from, std::int64_t count) const;
  template <int kBits>
  void copy_spectra(ci8* to, const FrameRef& frame, std::int64_t from, std::int64_t count) const;

  RecordingFile file_;
  VdifHeader shape_;
  std::int64_t start_ = 0;  // where the first frame begins
  std::int64_t samples_per_frame_ = 0;
  std::vector<Raw> raw_;
  std::vector<std::uint32_t> threads_;  // ascending; position = first input (x channels, real data)
  std::vector<FrameRef> frames_;        // tick in frames, stream = position in threads_
  std::vector<std::byte> bytes_;
};

// The first place where two headers, one frame apart, agree; the first header alone when there is
// only one frame.
void Vdif::find_shape() {
  constexpr std::int64_t kSearch = 1 << 20;
  VdifHeader first, second;
  for (std::int64_t offset = 0; offset < std::min(file_.size_bytes(), kSearch); offset += 8) {
    const auto head = file_.window(offset, wire::kVdifHeaderBytes);
    if (wire::parse_vdif_header(head, first) != wire::Reject::none) continue;
    const std::int64_t next = offset + first.frame_bytes;
    if (next > file_.size_bytes()) continue;
    const bool last =
        next + static_cast<std::int64_t>(wire::kVdifLegacyHeaderBytes) > file_.size_bytes();
    const bool pair = !last && wire::parse_vdif_header(file_.window(next, wire::kVdifHeaderBytes),
                                                       second) == wire::Reject::none;
    if ((last && offset == 0) || (pair && same_shape(first, second))) {
      shape_ = first;
      start_ = offset;
      if (offset > 0) info_.counters["bytes_skipped"] += offset;
      return;
    }
  }
  throw FormatError(file_.path() + ": no VDIF frames: nowhere in the first " +
                    std::to_string(std::min(file_.size_bytes(), kSearch)) +
                    " bytes do two headers, one frame length apart, agree");
}

bool Vdif::add_frame(const VdifHeader& h, std::int64_t offset) {
  if (h.invalid) {
    info_.counters["rejected.sender_invalid"] += 1;
    return false;
  }
  const auto epoch = recording_tai_ns_from_vdif(static_cast<int>(h.reference_epoch), h.seconds);
  if (!epoch) {
    info_.counters["rejected.time"] += 1;
    return false;
  }
  raw_.push_back({*epoch / kSecond_ns, h.frame, h.thread, offset});
  return true;
}

void Vdif::scan() {
  std::int64_t n_seen = 0;
  for (std::int64_t offset = start_; offset < file_.size_bytes(); offset += shape_.frame_bytes) {
    if (offset + shape_.frame_bytes > file_.size_bytes()) {
      info_.counters["rejected.cut_frame"] += 1;
      info_.warnings.push_back(
          "the last frame is cut: " + std::to_string(file_.size_bytes() - offset) + " of " +
          std::to_string(shape_.frame_bytes) + " bytes");
      break;
    }
    VdifHeader h;
    const auto reject = wire::parse_vdif_header(file_.window(offset, wire::kVdifHeaderBytes), h);
    ++n_seen;
    if (reject != wire::Reject::none || !same_shape(h, shape_)) {
      // Frames have one length, so the next one is known; a header that lies about itself costs one
      // frame.
      info_.counters["rejected.field"] += 1;
      continue;
    }
    add_frame(h, offset);
  }
  const std::uint32_t bits = shape_.bits;
  const bool readable = bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
  if (!readable || shape_.samples_per_frame == 0) {
    throw FormatError(
        format_message(file_.path(), start_, "bits per sample", std::to_string(bits),
                       std::to_string(n_seen) + " frames of " + std::to_string(shape_.n_channels) +
                           " channels, none usable: 1, 2, 4, 8 and 16 bits that fill the frame are "
                           "read, so these headers are damaged or of another kind"));
  }
  if (raw_.empty()) {
    throw FormatError(file_.path() + ": none of " + std::to_string(n_seen) +
                      " VDIF frames is usable (all are invalid, " + "or damaged)");
  }
  samples_per_frame_ = shape_.samples_per_frame;
}

// Threads of a recording come equally often: a number seen less than half as often as the commonest
// is damage.
void Vdif::drop_rare_threads() {
  std::map<std::uint32_t, std::int64_t> count;
  std::int64_t maximum = 0;
  for (const auto& f : raw_) maximum = std::max(maximum, ++count[f.thread]);
  const auto removed =
      std::erase_if(raw_, [&](const Raw& f) { return count[f.thread] * 2 < maximum; });
  if (removed > 0) info_.counters["rejected.foreign_stream"] += static_cast<std::int64_t>(removed);
  for (const auto& [thread, n] : count) {
    if (n * 2 >= maximum) threads_.push_back(thread);
  }
}

// EDV 0: the largest frame number of a second that the file completes, plus one; 0 = it completes
// none.
std::int64_t Vdif::frames_per_second_from_file() {
  std::map<std::int64_t, std::uint32_t> last;
  for (const auto& f : raw_) last[f.second] = std::max(last[f.second], f.frame);
  std::int64_t best = 0;
  for (const auto& [second, frame] : last) {
    if (last.contains(second + 1)) best = std::max<std::int64_t>(best, std::int64_t{frame} + 1);
  }
  return best;
}

void Vdif::set_clock(const RecordingOptions& options) {
  Rational rate{0, 1};
  if (options.sample_rate_hz > 0) {
    rate = rational_rate(options.sample_rate_hz);
  } else if (shape_.sample_rate_hz > 0) {
    rate = {static_cast<std::int64_t>(shape_.sample_rate_hz), 1};
  } else if (const std::int64_t fps = frames_per_second_from_file(); fps > 0) {
    rate = {fps * samples_per_frame_, 1};
    info_.warnings.push_back("sample rate " + std::to_string(rate.num) +
                             " Hz counted from the frames of a whole second");
  }
  // Without a rate only frames of one second can be put in order: 2^24 numbers of frames are
  // possible in it.
  std::int64_t fps = 1 << 24;
  if (rate.num > 0) {
    const __int128 frame_ticks = static_cast<__int128>(rate.den) * samples_per_frame_;
    if (rate.num % frame_ticks != 0) {
      throw ConfigError(file_.path() + ": a rate of " + std::to_string(rate.value()) +
                        " Hz is no whole number of frames of " +
                        std::to_string(samples_per_frame_) + " samples a second; VDIF needs one");
    }
    fps = static_cast<std::int64_t>(rate.num / frame_ticks);
    info_.clock.rate_hz = rate;
  } else {
    set_unknown_rate("the frames carry no sample rate");
  }
  std::vector<FrameRef> frames;
  frames.reserve(raw_.size());
  for (const auto& f : raw_) {
    const auto position =
        std::lower_bound(threads_.begin(), threads_.end(), f.thread) - threads_.begin();
    // A frame number beyond the second is damage: it would land in the next one.
    if (f.frame >= fps) {
      info_.counters["rejected.time"] += 1;
      continue;
    }
    frames.push_back({f.second * fps + f.frame, static_cast<std::uint32_t>(position), f.offset});
  }
  if (frames.empty()) {
    throw FormatError(file_.path() + ": every frame number exceeds the " + std::to_string(fps) +
                      " frames a second of " + std::to_string(rate.value()) +
                      " Hz; is sample_rate_hz right?");
  }
  const std::int64_t max_gap = rate.num > 0 ? kMaxGap_s * fps : fps;
  frames_ = arrange_frames(std::move(frames), max_gap, 1, info_.counters);
  raw_ = {};
  const std::int64_t base = frames_.front().tick;
  for (auto& f : frames_) f.tick -= base;
  info_.n_ticks =
      checked_file_product({frames_.back().tick + 1, samples_per_frame_}, "the recording");
  info_.clock.epoch_tai_ns = base / fps * kSecond_ns;
  if (rate.num > 0) {
    info_.clock.epoch_tai_ns +=
        static_cast<std::int64_t>(static_cast<__int128>(base % fps) * kSecond_ns / fps);
  }
  info_.time_source = TimeSource::header;
  if (info_.counters.contains("rejected.time")) {
    std::set<std::uint32_t> seen;
    for (const auto& f : frames_) seen.insert(f.stream);
    std::string lost;
    for (std::size_t k = 0; k < threads_.size(); ++k) {
      if (!seen.contains(static_cast<std::uint32_t>(k))) lost += " " + std::to_string(threads_[k]);
    }
    info_.warnings.push_back("frames whose time is far from the others' are left out" +
                             (lost.empty() ? lost : "; nothing remains of thread" + lost));
  }
}

void Vdif::set_shape(const RecordingOptions& options) {
  const auto n_threads = static_cast<std::int64_t>(threads_.size());
  info_.reference_hz = options.reference_hz;
  std::string names;
  for (const auto t : threads_) names += (names.empty() ? "" : " ") + std::to_string(t);
  info_.header["threads"] = names;
  info_.header["channels"] = std::to_string(shape_.n_channels);
  info_.header["bits"] = std::to_string(shape_.bits);
  info_.header["edv"] = std::to_string(shape_.edv);
  info_.header["station"] = std::to_string(shape_.station);
  info_.header["frame_bytes"] = std::to_string(shape_.frame_bytes);
  if (shape_.complex && shape_.n_channels > 1) {
    if (shape_.bits == 16) {
      throw UnsupportedError(file_.path() + ": 16-bit complex samples of " +
                             std::to_string(shape_.n_channels) +
                             " channels do not fit the 8 bits of a spectrum; 1 to 8 bits are read");
    }
    info_.channelized = true;
    info_.n_inputs = n_threads;
    info_.frequency = {options.reference_hz, info_.clock.rate_hz.value(), shape_.n_channels};
    set_time_major_layout(SampleFormat::ci8, Encoding::twos_complement);
    return;
  }
  info_.n_inputs = checked_file_product({n_threads, shape_.n_channels}, "inputs");
  if (shape_.n_channels > 1)
    info_.warnings.push_back("each real channel is delivered as an input: thread, then channel");
  const bool wide = shape_.bits == 16;
  set_time_major_layout(shape_.complex ? (wide ? SampleFormat::ci16 : SampleFormat::ci8)
                                       : (wide ? SampleFormat::i16 : SampleFormat::i8),
                        Encoding::twos_complement);
}

bool Vdif::load_frame(const FrameRef& frame) {
  bytes_.resize(shape_.frame_bytes);
  VdifHeader h;
  return file_.read_all(frame.offset, bytes_) &&
         wire::parse_vdif_header(bytes_, h) == wire::Reject::none && same_shape(h, shape_) &&
         h.thread == threads_[frame.stream];
}

// Calls copy(frame, first sample of the frame wanted, count, tick) for every frame there, and lists
// the others.
template <class Copy>
void Vdif::for_frames(Tick first, std::int64_t n, std::vector<AbsentSpan>& absent, Copy copy) {
  const std::size_t from = absent.size();
  const std::int64_t per_thread = info_.n_inputs / static_cast<std::int64_t>(threads_.size());
  std::vector<std::uint8_t> there(threads_.size());
  const std::int64_t s = samples_per_frame_;
  for (std::int64_t slot = first >= 0 ? first / s : -((s - 1 - first) / s); slot * s < first + n;
       ++slot) {
    const Tick t0 = std::max(first, slot * s), t1 = std::min(first + n, (slot + 1) * s);
    std::fill(there.begin(), there.end(), std::uint8_t{0});
    for (const auto& f : frames_between(frames_, slot, slot + 1)) {
      if (!load_frame(f)) continue;
      there[f.stream] = 1;
      copy(f, t0 - slot * s, t1 - t0, t0);
    }
    for (std::size_t k = 0; k < there.size(); ++k) {
      for (std::int64_t c = 0; c < per_thread && there[k] == 0; ++c) {
        absent.push_back({static_cast<std::int64_t>(k) * per_thread + c, t0, t1});
      }
    }
  }
  merge_absent(absent, from);
}

template <int kBits, class Sample>
void Vdif::copy_time(std::byte* to, const FrameRef& frame, std::int64_t from,
                     std::int64_t count) const {
  const std::byte* payload = bytes_.data() + shape_.header_bytes();
  const std::int64_t parts = shape_.complex ? 2 : 1;
  const std::int64_t per_thread =
      shape_.n_channels * parts;  // elementary samples of one thread at one time
  const std::int64_t row = info_.n_inputs * parts;
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t k = 0; k < per_thread; ++k) {
      const auto value = static_cast<Sample>(
          elementary<kBits>(payload, static_cast<std::size_t>((from + t) * per_thread + k)));
      std::memcpy(
          to + (t * row + frame.stream * per_thread + k) * static_cast<std::int64_t>(sizeof value),
          &value, sizeof value);
    }
  }
}

template <int kBits>
void Vdif::copy_spectra(ci8* to, const FrameRef& frame, std::int64_t from,
                        std::int64_t count) const {
  const std::byte* payload = bytes_.data() + shape_.header_bytes();
  const std::int64_t n_channels = shape_.n_channels, n_inputs = info_.n_inputs;
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const auto k = static_cast<std::size_t>(2 * ((from + t) * n_channels + c));
      to[(t * n_channels + c) * n_inputs + frame.stream] = {
          static_cast<std::int8_t>(elementary<kBits>(payload, k)),
          static_cast<std::int8_t>(elementary<kBits>(payload, k + 1))};
    }
  }
}

void Vdif::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                        std::vector<AbsentSpan>& absent) {
  if (info_.channelized) return RecordingBase::read_samples(first, n, destination, absent);
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  std::fill(destination.begin(), destination.begin() + samples_bytes(n), std::byte{0});
  for_frames(
      first, n, absent, [&](const FrameRef& f, std::int64_t from, std::int64_t count, Tick tick) {
        std::byte* to = destination.data() + (tick - first) * info_.layout.sample_stride_bits / 8;
        switch (shape_.bits) {
          case 1:
            return copy_time<1, std::int8_t>(to, f, from, count);
          case 2:
            return copy_time<2, std::int8_t>(to, f, from, count);
          case 4:
            return copy_time<4, std::int8_t>(to, f, from, count);
          case 8:
            return copy_time<8, std::int8_t>(to, f, from, count);
          default:
            return copy_time<16, std::int16_t>(to, f, from, count);
        }
      });
}

void Vdif::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                        std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                        std::vector<ChannelGap>* gaps) {
  if (!info_.channelized)
    return RecordingBase::read_spectra(first, n, destination, absent, absent_channels, gaps);
  const std::int64_t size =
      checked_file_product({info_.frequency.n_channels, info_.n_inputs}, "a spectrum");
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >=
                            checked_file_product({n, size}, "spectra"));
  std::fill(destination.begin(), destination.begin() + n * size, ci8{});
  if (absent_channels != nullptr) absent_channels->assign(size, 0);
  for_frames(first, n, absent,
             [&](const FrameRef& f, std::int64_t from, std::int64_t count, Tick tick) {
               ci8* to = destination.data() + (tick - first) * size;
               switch (shape_.bits) {
                 case 1:
                   return copy_spectra<1>(to, f, from, count);
                 case 2:
                   return copy_spectra<2>(to, f, from, count);
                 case 4:
                   return copy_spectra<4>(to, f, from, count);
                 default:
                   return copy_spectra<8>(to, f, from, count);
               }
             });
}

}  // namespace

std::unique_ptr<Recording> open_vdif(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<Vdif>(path, options);
}

}  // namespace ryle::detail
