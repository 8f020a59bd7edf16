// SPDX-License-Identifier: BSD-3-Clause
// Several files as one recording. Every input has its files one after the other: each of them owns
// the time from its first tick to that of the next, so that a gap is the end of the file before it,
// which the reader of that file lists as absent.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_time.hpp"

namespace ryle {
namespace {

constexpr Tick kEver = std::int64_t{1} << 62;

/// Channels of an input that a file lacks throughout, and another file has.
enum class Loses : std::uint8_t { none, with_others, alone };

/// One file: where it lies, and what of it is read.
struct Member {
  std::string path;
  std::unique_ptr<Recording> recording;
  Tick first = 0;                    // its tick 0, in ticks of the set
  std::vector<std::string> names;    // [input of the file]
  std::vector<TickSpan> spans;       // [input of the file] what it holds, in ticks of the set
  std::vector<std::int64_t> inputs;  // [input of the file] input of the set
  std::vector<TickSpan> owned;       // [input of the file] what is read from it
  TickSpan hull;                     // of `owned`
  std::vector<Loses> loses;          // [input of the file]
  std::vector<ChannelGap> lost;      // channels of all inputs that it lacks, and others have
  bool whole = false;  // holds all inputs in their order, and owns one span of all of them

  const RecordingInfo& info() const { return recording->info(); }
};

TickSpan intersection(const TickSpan& a, const TickSpan& b) {
  const Tick begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

std::string seconds_text(const SampleClock& clock, std::int64_t n) {
  std::string text = std::to_string(clock.seconds(n));
  return std::to_string(n) + " samples, " + text + " s";
}

std::string utc_text(const SampleClock& clock, Tick tick) {
  const std::int64_t ns = clock.tai_ns(tick);
  std::string fraction = std::to_string(ns % kSecond_ns);
  fraction.insert(0, 9 - std::min<std::size_t>(9, fraction.size()), '0');
  return recording_utc_text(ns) + "." + fraction;
}

[[noreturn]] void differ(const Member& a, const Member& b, const std::string& what,
                         const std::string& of_a, const std::string& of_b) {
  throw FormatError(a.path + " and " + b.path + " are no recording together: " + what + " is " +
                    of_a + " and " + of_b);
}

std::string rate_text(const Rational& rate) {
  return rate.den == 1 ? std::to_string(rate.num) + " Hz"
                       : std::to_string(rate.num) + "/" + std::to_string(rate.den) + " Hz";
}

std::string code_text(const SampleLayout& layout) {
  std::string text = layout.encoding == Encoding::levels          ? "levels"
                     : layout.encoding == Encoding::offset_binary ? "offset binary"
                                                                  : "two's complement";
  text += layout.msb_first ? ", first in the high bits" : ", first in the low bits";
  if (!is_complex(layout.format)) return text;
  text += layout.imag_first ? ", imaginary part first" : ", real part first";
  return text + ", parts at bits " + std::to_string(layout.re_shift) + " and " +
         std::to_string(layout.im_shift);
}

std::string mhz_text(double hz) { return std::to_string(hz * 1e-6) + " MHz"; }

void require_different_files(const std::vector<std::string>& paths) {
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const auto& path : paths) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) throw IoError::from_errno("read", path, errno);
    const auto [at, is_new] = seen.emplace(std::pair(status.st_dev, status.st_ino), path);
    if (is_new) continue;
    throw FormatError(at->second == path
                          ? path + " is given twice"
                          : at->second + " and " + path + " are the same file, given twice");
  }
}

void require_same_kind(const Member& a, const Member& b) {
  const RecordingInfo &x = a.info(), &y = b.info();
  const auto texts = [&](const std::string& what, std::string_view of_a, std::string_view of_b) {
    if (of_a != of_b) differ(a, b, what, std::string(of_a), std::string(of_b));
  };
  texts("the format", x.format, y.format);
  texts("the content", x.channelized ? "spectra" : "samples",
        y.channelized ? "spectra" : "samples");
  texts("the sample format", name(x.layout.format), name(y.layout.format));
  if (x.clock.rate_hz != y.clock.rate_hz)
    differ(a, b, "the sample rate", rate_text(x.clock.rate_hz), rate_text(y.clock.rate_hz));
  if (x.frequency.n_channels != y.frequency.n_channels)
    differ(a, b, "the number of channels", std::to_string(x.frequency.n_channels),
           std::to_string(y.frequency.n_channels));
  const double width_hz = x.channelized ? x.frequency.channel_width_hz : x.clock.rate_hz.value();
  const auto near = [&](double of_a, double of_b) {
    return std::abs(of_a - of_b) <= 1e-3 * std::abs(width_hz);
  };
  if (!near(x.frequency.channel_width_hz, y.frequency.channel_width_hz))
    differ(a, b, "the width of a channel", std::to_string(x.frequency.channel_width_hz) + " Hz",
           std::to_string(y.frequency.channel_width_hz) + " Hz");
  if (!near(x.frequency.first_center_hz, y.frequency.first_center_hz))
    differ(a, b, "the first channel", mhz_text(x.frequency.first_center_hz),
           mhz_text(y.frequency.first_center_hz));
  if (!near(x.reference_hz, y.reference_hz))
    differ(a, b, "the sky frequency", mhz_text(x.reference_hz), mhz_text(y.reference_hz));
  const auto direction = [](bool inverted) { return inverted ? "downwards" : "upwards"; };
  texts("the direction of the band", direction(x.inverted_band), direction(y.inverted_band));
  texts("the code of samples", code_text(x.layout), code_text(y.layout));
}

/// Ticks from tick 0 of a to tick 0 of b. An origin that is rounded is good to 1 ns.
Tick ticks_between(const Member& a, const Member& b) {
  const auto origin = [](const RecordingInfo& info) {
    return info.origin_tai_ns != 0 ? std::pair(info.origin_tai_ns, info.ticks_from_origin)
                                   : std::pair(info.clock.epoch_tai_ns, Tick{0});
  };
  const auto [origin_a, ticks_a] = origin(a.info());
  const auto [origin_b, ticks_b] = origin(b.info());
  const Rational rate = a.info().clock.rate_hz;
  const __int128 unit = static_cast<__int128>(rate.den) * kSecond_ns;
  const __int128 scaled = static_cast<__int128>(origin_b - origin_a) * rate.num;
  __int128 ticks = scaled / unit;
  const __int128 rest = scaled - ticks * unit;
  if (2 * rest >= unit) ++ticks;
  if (2 * rest <= -unit) --ticks;
  const __int128 off = scaled - ticks * unit;
  if (off > 2 * static_cast<__int128>(rate.num) || off < -2 * static_cast<__int128>(rate.num)) {
    throw FormatError(a.path + " and " + b.path + " start " +
                      std::to_string(static_cast<double>(scaled) / static_cast<double>(unit)) +
                      " samples apart; files of one recording are whole samples apart");
  }
  ticks += ticks_b - ticks_a;
  if (ticks > kEver / 4 || ticks < -kEver / 4)
    throw FormatError(a.path + " and " + b.path + " are too far apart in time");
  return static_cast<Tick>(ticks);
}

/// Copies `count` samples of one input; strides and places in bits.
struct SampleCopy {
  std::int64_t bits = 8;
  bool msb_first = false;

  void operator()(const std::byte* from, std::int64_t from_bit, std::int64_t from_stride,
                  std::byte* to, std::int64_t to_bit, std::int64_t to_stride,
                  std::int64_t count) const {
    if (bits % 8 == 0) {
      const auto size = static_cast<std::size_t>(bits / 8);
      for (std::int64_t t = 0; t < count; ++t)
        std::memcpy(to + (to_bit + t * to_stride) / 8, from + (from_bit + t * from_stride) / 8,
                    size);
      return;
    }
    for (std::int64_t t = 0; t < count; ++t) {
      for (std::int64_t b = 0; b < bits; ++b)
        set(to, to_bit + t * to_stride + b, get(from, from_bit + t * from_stride + b));
    }
  }

 private:
  int shift(std::int64_t bit) const { return static_cast<int>(msb_first ? 7 - bit % 8 : bit % 8); }
  bool get(const std::byte* bytes, std::int64_t bit) const {
    return (static_cast<int>(bytes[bit / 8]) >> shift(bit) & 1) != 0;
  }
  void set(std::byte* bytes, std::int64_t bit, bool value) const {
    const auto mask = static_cast<std::byte>(1 << shift(bit));
    bytes[bit / 8] = value ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask;
  }
};

/// What one of several files is opened with.
RecordingOptions of_several(const RecordingOptions& options) {
  RecordingOptions own = options;
  own.may_lack_band = true;
  return own;
}

class RecordingSet final : public RecordingBase {
 public:
  RecordingSet(const std::vector<std::string>& paths, std::string_view format,
               const RecordingOptions& options) {
    require_different_files(paths);
    open(paths, format, options);
    choose_band(format, options);
    for (std::size_t k = 1; k < members_.size(); ++k) require_same_kind(members_[0], members_[k]);
    place();
    name_inputs(options.files_as == "inputs");
    share_out();
    require_one_observation();
    describe();
    find_lacking();
    detail::require_map_used(paths[0] + " and the others", options.channel_map,
                             info_.channel_map_used);
  }

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;
  void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                    std::vector<AbsentSpan>& absent, std::vector<std::uint8_t>* absent_channels,
                    std::vector<ChannelGap>* gaps = nullptr) override;

 private:
  void open(const std::vector<std::string>& paths, std::string_view format,
            const RecordingOptions& options);
  void choose_band(std::string_view format, const RecordingOptions& options);
  void place();
  void name_inputs(bool apart);
  void share_out();
  void require_no_overlap(const std::vector<std::pair<Member*, std::size_t>>& files) const;
  void require_one_observation();
  void describe();
  void find_lacking();
  /// Of a channel and input of a file in those of the set.
  std::size_t place_of(const Member& member, std::size_t at) const {
    const std::size_t n = member.inputs.size();
    return at / n * static_cast<std::size_t>(info_.n_inputs) +
           static_cast<std::size_t>(member.inputs[at % n]);
  }
  void add_lacking(const Member& member, const TickSpan& piece, bool with_gaps, std::size_t from,
                   std::vector<AbsentSpan>& absent) const;
  void add_lost_channels(const Member& member, const TickSpan& piece, std::size_t from,
                         std::vector<AbsentSpan>& absent, std::vector<ChannelGap>& gaps) const;
  void add_absent_of(const Member& member, const TickSpan& piece, std::size_t from,
                     std::vector<AbsentSpan>& absent) const;

  std::vector<Member> members_;      // in order of time
  std::vector<std::uint8_t> lacks_;  // [channel][input] 1 = missing throughout all files
  std::vector<std::byte> bytes_;
  std::vector<ci8> spectra_;
};

void RecordingSet::open(const std::vector<std::string>& paths, std::string_view format,
                        const RecordingOptions& options) {
  const Member* with_rate = nullptr;
  members_.reserve(paths.size());
  for (const auto& path : paths) {
    members_.emplace_back();
    members_.back().path = path;
    members_.back().recording = detail::open_one_recording(path, format, of_several(options));
    if (members_.back().info().rate_known) with_rate = &members_.back();
  }
  for (auto& member : members_) {
    if (member.info().rate_known) continue;
    if (with_rate == nullptr)
      throw ConfigError(member.path +
                        ": none of the files says the sample rate, without which they have no "
                        "order: give source.sample_rate_hz (--rate)");
    // A file too short to count its frames: the rate is that of the others.
    RecordingOptions known = of_several(options);
    known.sample_rate_hz = with_rate->info().clock.rate_hz.value();
    member.recording = detail::open_one_recording(member.path, format, known);
  }
}

// Of files in several bands those of one are read: that of options.reference_hz, else the lowest.
void RecordingSet::choose_band(std::string_view format, const RecordingOptions& options) {
  auto& bands = info_.bands_hz;
  for (const auto& member : members_)
    bands.insert(bands.end(), member.info().bands_hz.begin(), member.info().bands_hz.end());
  std::sort(bands.begin(), bands.end());
  const double tolerance_hz = 1e-6 * members_[0].info().clock.rate_hz.value();
  bands.erase(std::unique(bands.begin(), bands.end(),
                          [&](const auto& a, const auto& b) {
                            return std::abs(a.first - b.first) < tolerance_hz;
                          }),
              bands.end());
  if (bands.size() < 2) return;
  if (options.reference_hz == 0) {
    RecordingOptions lowest = of_several(options);
    lowest.reference_hz = 0.5 * (bands[0].first + bands[0].second);
    for (auto& member : members_) {
      lowest.sample_rate_hz = member.info().clock.rate_hz.value();
      member.recording = detail::open_one_recording(member.path, format, lowest);
    }
    info_.warnings.push_back(std::to_string(bands.size()) +
                             " bands: the lowest is read; source.center_mhz chooses another");
  }
  std::erase_if(members_, [this](const Member& member) {
    const RecordingInfo& info = member.info();
    if (info.n_inputs > 0) return false;
    info_.channel_map_used.insert(info_.channel_map_used.end(), info.channel_map_used.begin(),
                                  info.channel_map_used.end());
    return true;
  });
  if (members_.empty())
    throw ConfigError("source.center_mhz = " + std::to_string(options.reference_hz * 1e-6) +
                      " lies in none of the bands of source.channel_map");
}

// Where the files lie, from the start of the first of them.
void RecordingSet::place() {
  for (auto& member : members_) member.first = ticks_between(members_[0], member);
  const auto earlier = [](const Member& a, const Member& b) { return a.first < b.first; };
  const Tick start = std::min_element(members_.begin(), members_.end(), earlier)->first;
  for (auto& member : members_) {
    member.first -= start;
    const RecordingInfo& info = member.info();
    member.spans = info.input_spans;
    member.spans.resize(info.n_inputs, {0, info.n_ticks});
    for (auto& span : member.spans) span = {span.begin + member.first, span.end + member.first};
  }
}

// Inputs of the set in the order in which the files name them.
void RecordingSet::name_inputs(bool apart) {
  std::map<std::string, std::int64_t> known;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& member = members_[k];
    member.names = member.info().input_names;
    for (std::int64_t p = static_cast<std::int64_t>(member.names.size());
         p < member.info().n_inputs; ++p)
      member.names.push_back("input " + std::to_string(p));
    for (auto& input : member.names) {
      if (apart) input = "file " + std::to_string(k) + " " + input;
      const auto [at, is_new] = known.emplace(input, static_cast<std::int64_t>(known.size()));
      if (is_new) info_.input_names.push_back(input);
      member.inputs.push_back(at->second);
    }
  }
}

void RecordingSet::require_no_overlap(
    const std::vector<std::pair<Member*, std::size_t>>& files) const {
  for (std::size_t k = 1; k < files.size(); ++k) {
    const auto& [a, pa] = files[k - 1];
    const auto& [b, pb] = files[k];
    const TickSpan both = intersection(a->spans[pa], b->spans[pb]);
    if (both.begin == both.end) continue;
    const SampleClock clock{a->info().clock.tai_ns(-a->first), a->info().clock.rate_hz};
    const bool same = a->spans[pa] == b->spans[pb];
    throw FormatError(
        a->path + " and " + b->path + " both hold " + a->names[pa] + " from " +
        utc_text(clock, both.begin) + " to " + utc_text(clock, both.end) + " (" +
        seconds_text(clock, both.end - both.begin) + ")" +
        (same ? ": the same samples twice; leave one out" : "; files must not overlap") +
        ", or say that every file is a station of its own: source.files_as = "
        "\"inputs\" (--files-as inputs)");
  }
}

// Gives every tick of every input to one file: the last that began.
void RecordingSet::share_out() {
  std::vector<std::vector<std::pair<Member*, std::size_t>>> files(info_.input_names.size());
  for (auto& member : members_) {
    member.owned.resize(member.inputs.size());
    for (std::size_t p = 0; p < member.inputs.size(); ++p)
      files[member.inputs[p]].emplace_back(&member, p);
  }
  for (auto& of_input : files) {
    std::stable_sort(of_input.begin(), of_input.end(), [](const auto& a, const auto& b) {
      const TickSpan &x = a.first->spans[a.second], &y = b.first->spans[b.second];
      return x.begin != y.begin ? x.begin < y.begin : x.end < y.end;
    });
    require_no_overlap(of_input);
    for (std::size_t k = 0; k < of_input.size(); ++k) {
      const auto& [member, p] = of_input[k];
      const Tick begin = k == 0 ? -kEver : member->spans[p].begin;
      const Tick end = k + 1 == of_input.size()
                           ? kEver
                           : of_input[k + 1].first->spans[of_input[k + 1].second].begin;
      member->owned[p] = {begin, end};
    }
  }
  for (auto& member : members_) {
    member.hull = member.owned[0];
    member.whole = member.inputs.size() == files.size();
    for (std::size_t p = 0; p < member.owned.size(); ++p) {
      member.hull = {std::min(member.hull.begin, member.owned[p].begin),
                     std::max(member.hull.end, member.owned[p].end)};
      member.whole = member.whole && member.owned[p] == member.owned[0] &&
                     member.inputs[p] == static_cast<std::int64_t>(p);
    }
  }
}

// What lies between the files, and whether they have to do with each other.
void RecordingSet::require_one_observation() {
  std::vector<const Member*> order;
  for (const auto& member : members_) order.push_back(&member);
  std::stable_sort(order.begin(), order.end(),
                   [](const Member* a, const Member* b) { return a->first < b->first; });
  const SampleClock clock{0, members_[0].info().clock.rate_hz};
  const Member* last = order[0];
  for (const Member* member : order) {
    const Tick end = last->first + last->info().n_ticks;
    const std::int64_t gap = member->first - end;
    if (gap > 0) {
      const std::string between = last->path + " and " + member->path;
      if (clock.seconds(gap) > static_cast<double>(kMaxGap_s))
        throw FormatError(between + " are " + std::to_string(clock.seconds(gap)) +
                          " s apart; files more than " + std::to_string(kMaxGap_s) +
                          " s apart are observations of their own");
      info_.warnings.push_back("no samples between " + between + ": " + seconds_text(clock, gap) +
                               " are absent");
    }
    if (member->first + member->info().n_ticks > end) last = member;
  }
}

void RecordingSet::describe() {
  const auto first =
      std::min_element(members_.begin(), members_.end(),
                       [](const Member& a, const Member& b) { return a.first < b.first; });
  const RecordingInfo& one = first->info();
  info_.format = one.format;
  info_.channelized = one.channelized;
  info_.n_inputs = static_cast<std::int64_t>(info_.input_names.size());
  info_.clock = one.clock;
  info_.origin_tai_ns = one.origin_tai_ns;
  info_.ticks_from_origin = one.ticks_from_origin;
  info_.time_source = one.time_source;
  info_.reference_hz = one.reference_hz;
  info_.inverted_band = one.inverted_band;
  info_.from_zero_hz = one.from_zero_hz;
  info_.frequency = one.frequency;
  info_.header = one.header;
  info_.layout = one.layout;
  info_.layout.input_stride_bits = bits_per_sample(one.layout.format);
  info_.layout.sample_stride_bits = info_.n_inputs * bits_per_sample(one.layout.format);
  info_.input_spans.assign(info_.n_inputs, {kEver, -kEver});
  for (const auto& member : members_) {
    const RecordingInfo& info = member.info();
    info_.n_ticks = std::max(info_.n_ticks, member.first + info.n_ticks);
    info_.parts.push_back(
        {member.path, {member.first, member.first + info.n_ticks}, member.inputs});
    for (const auto& warning : info.warnings)
      info_.warnings.push_back(member.path + ": " + warning);
    info_.channel_map_used.insert(info_.channel_map_used.end(), info.channel_map_used.begin(),
                                  info.channel_map_used.end());
    for (const auto& [counter, n] : info.counters) info_.counters[counter] += n;
    for (std::size_t p = 0; p < member.inputs.size(); ++p) {
      auto& span = info_.input_spans[member.inputs[p]];
      span = {std::min(span.begin, member.spans[p].begin), std::max(span.end, member.spans[p].end)};
    }
  }
  TickSpan common{0, info_.n_ticks};
  for (const auto& span : info_.input_spans) common = intersection(common, span);
  if (common.begin == common.end)
    info_.warnings.push_back("at no time are all " + std::to_string(info_.n_inputs) +
                             " inputs there");
}

// Which channels all files lack, and which only some of them. A gap of channels is one of all
// inputs.
void RecordingSet::find_lacking() {
  if (!info_.channelized) return;
  const std::int64_t n_channels = info_.frequency.n_channels;
  lacks_.assign(checked_file_product({n_channels, info_.n_inputs}, "a spectrum"), 1);
  std::vector<AbsentSpan> none;
  std::vector<std::vector<std::uint8_t>> of_file(members_.size());  // [channel][input of the file]
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& member = members_[k];
    member.recording->read_spectra(0, 0, {}, none, &of_file[k]);
    member.loses.assign(member.inputs.size(), Loses::none);
    of_file[k].resize(static_cast<std::size_t>(n_channels) * member.inputs.size());
    for (std::size_t at = 0; at < of_file[k].size(); ++at)
      if (of_file[k][at] == 0) lacks_[place_of(member, at)] = 0;
  }
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& member = members_[k];
    const std::size_t n_inputs = member.inputs.size();
    for (std::int64_t c = 0; c < n_channels; ++c) {
      std::vector<std::size_t> losers;
      for (std::size_t p = 0; p < n_inputs; ++p) {
        const std::size_t at = static_cast<std::size_t>(c) * n_inputs + p;
        if (of_file[k][at] != 0 && lacks_[place_of(member, at)] == 0) losers.push_back(p);
      }
      const bool all = member.whole && losers.size() == n_inputs;
      for (const std::size_t p : losers)
        member.loses[p] = std::max(member.loses[p], all ? Loses::with_others : Loses::alone);
      if (!all) continue;
      if (member.lost.empty() || member.lost.back().channel_end != c)
        member.lost.push_back({c, c, 0, 0});
      member.lost.back().channel_end = c + 1;
    }
  }
}

// What a file lacks of an input and others have, where no gaps of channels tell it: its piece is
// absent.
void RecordingSet::add_lacking(const Member& member, const TickSpan& piece, bool with_gaps,
                               std::size_t from, std::vector<AbsentSpan>& absent) const {
  for (std::size_t p = 0; p < member.inputs.size(); ++p) {
    const TickSpan mine = intersection(piece, member.owned[p]);
    const bool lost = with_gaps ? member.loses[p] == Loses::alone : member.loses[p] != Loses::none;
    if (!lost || mine.begin == mine.end) continue;
    const auto same = [&](const AbsentSpan& a) { return a.input == member.inputs[p]; };
    absent.erase(
        std::remove_if(absent.begin() + static_cast<std::ptrdiff_t>(from), absent.end(), same),
        absent.end());
    absent.push_back({member.inputs[p], mine.begin, mine.end});
  }
}

// What a file lacks of all inputs and others have, where it has anything: `absent` from `from` on
// is of the piece.
void RecordingSet::add_lost_channels(const Member& member, const TickSpan& piece, std::size_t from,
                                     std::vector<AbsentSpan>& absent,
                                     std::vector<ChannelGap>& gaps) const {
  if (member.lost.empty()) return;
  merge_absent(absent, from);
  std::vector<std::size_t> n_absent(piece.end - piece.begin);
  for (std::size_t k = from; k < absent.size(); ++k)
    for (Tick t = absent[k].begin; t < absent[k].end; ++t) ++n_absent[t - piece.begin];
  for (Tick t = piece.begin; t < piece.end; ++t) {
    const Tick begin = t;
    while (t < piece.end && n_absent[t - piece.begin] < member.inputs.size()) ++t;
    if (begin == t) continue;
    for (const auto& gap : member.lost)
      gaps.push_back({gap.channel_begin, gap.channel_end, begin, t});
  }
}

// Spans that a reader appended from `from` on, in its own ticks and inputs, to those of the set.
void RecordingSet::add_absent_of(const Member& member, const TickSpan& piece, std::size_t from,
                                 std::vector<AbsentSpan>& absent) const {
  std::size_t kept = from;
  for (std::size_t k = from; k < absent.size(); ++k) {
    const auto p = static_cast<std::size_t>(absent[k].input);
    const TickSpan span =
        intersection({absent[k].begin + member.first, absent[k].end + member.first},
                     intersection(piece, member.owned[p]));
    if (span.begin < span.end) absent[kept++] = {member.inputs[p], span.begin, span.end};
  }
  absent.resize(kept);
}

void RecordingSet::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                                std::vector<AbsentSpan>& absent) {
  if (info_.channelized) return RecordingBase::read_samples(first, n, destination, absent);
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  const std::size_t absent_from = absent.size();
  const SampleCopy copy{info_.layout.input_stride_bits, info_.layout.msb_first};
  const std::int64_t row = info_.layout.sample_stride_bits;
  for (auto& member : members_) {
    const TickSpan piece = intersection(member.hull, {first, first + n});
    const std::int64_t count = piece.end - piece.begin;
    if (count == 0) continue;
    const std::size_t from = absent.size();
    const std::int64_t skip = (piece.begin - first) * row;
    // What ends within a byte would clear the bits behind it, of a file that may be read already.
    const bool to_place = member.whole && skip % 8 == 0 && count * row % 8 == 0;
    const std::int64_t size = member.recording->samples_bytes(count);
    if (!to_place) bytes_.resize(size);
    member.recording->read_samples(
        piece.begin - member.first, count,
        to_place ? destination.subspan(skip / 8, size) : std::span(bytes_), absent);
    add_absent_of(member, piece, from, absent);
    if (to_place) continue;
    const SampleLayout& layout = member.info().layout;
    for (std::size_t p = 0; p < member.inputs.size(); ++p) {
      const TickSpan mine = intersection(piece, member.owned[p]);
      copy(bytes_.data(),
           static_cast<std::int64_t>(p) * layout.input_stride_bits +
               (mine.begin - piece.begin) * layout.sample_stride_bits,
           layout.sample_stride_bits, destination.data(),
           member.inputs[p] * info_.layout.input_stride_bits + (mine.begin - first) * row, row,
           mine.end - mine.begin);
    }
  }
  merge_absent(absent, absent_from);
}

void RecordingSet::read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                                std::vector<AbsentSpan>& absent,
                                std::vector<std::uint8_t>* absent_channels,
                                std::vector<ChannelGap>* gaps) {
  if (!info_.channelized)
    return RecordingBase::read_spectra(first, n, destination, absent, absent_channels, gaps);
  const std::int64_t n_channels = info_.frequency.n_channels;
  const std::int64_t size = checked_file_product({n_channels, info_.n_inputs}, "a spectrum");
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >=
                            checked_file_product({n, size}, "spectra"));
  if (absent_channels != nullptr) *absent_channels = lacks_;
  const std::size_t absent_from = absent.size();
  std::vector<std::uint8_t> missing;  // as find_lacking() knows
  for (auto& member : members_) {
    const TickSpan piece = intersection(member.hull, {first, first + n});
    const std::int64_t count = piece.end - piece.begin;
    if (count == 0) continue;
    const std::size_t from = absent.size(), gaps_from = gaps != nullptr ? gaps->size() : 0;
    const std::int64_t n_inputs = member.info().n_inputs;
    if (!member.whole) spectra_.resize(count * n_channels * n_inputs);
    // A gap of channels is one of all inputs: of a file of some of them the spectrum is absent.
    member.recording->read_spectra(
        piece.begin - member.first, count,
        member.whole ? destination.subspan((piece.begin - first) * size) : std::span(spectra_),
        absent, &missing, member.whole ? gaps : nullptr);
    add_absent_of(member, piece, from, absent);
    for (std::size_t k = gaps_from; gaps != nullptr && k < gaps->size(); ++k) {
      (*gaps)[k].begin += member.first;
      (*gaps)[k].end += member.first;
    }
    for (std::size_t p = 0; p < member.inputs.size() && !member.whole; ++p) {
      const std::int64_t input = member.inputs[p];
      const auto local = static_cast<std::int64_t>(p);
      const TickSpan mine = intersection(piece, member.owned[p]);
      for (Tick t = mine.begin; t < mine.end; ++t) {
        const ci8* source = spectra_.data() + (t - piece.begin) * n_channels * n_inputs + local;
        ci8* to = destination.data() + (t - first) * size + input;
        for (std::int64_t c = 0; c < n_channels; ++c) to[c * info_.n_inputs] = source[c * n_inputs];
      }
    }
    add_lacking(member, piece, gaps != nullptr, from, absent);
    for (std::size_t k = from; k < absent.size(); ++k)  // what is absent is 0
      for (Tick t = absent[k].begin; t < absent[k].end; ++t)
        for (std::int64_t c = 0; c < n_channels; ++c)
          destination[(t - first) * size + c * info_.n_inputs + absent[k].input] = {};
    if (gaps != nullptr) add_lost_channels(member, piece, from, absent, *gaps);
  }
  merge_absent(absent, absent_from);
}

}  // namespace

std::unique_ptr<Recording> open_recordings(const std::vector<std::string>& paths,
                                           std::string_view format,
                                           const RecordingOptions& options) {
  if (paths.empty()) throw ConfigError("no recording is named");
  if (options.files_as != "auto" && options.files_as != "inputs")
    throw ConfigError("files_as is \"" + options.files_as + "\"; auto and inputs are known");
  if (paths.size() == 1) return open_recording(paths[0], format, options);
  const bool by_name = std::all_of(paths.begin(), paths.end(),
                                   [](const auto& path) { return path.ends_with(".mwa32t"); });
  if (format == "mwa32t" || ((format.empty() || format == "auto") && by_name)) {
    require_different_files(paths);
    return detail::open_mwa32t_groups(paths, options);
  }
  return std::make_unique<RecordingSet>(paths, format, options);
}

}  // namespace ryle
