// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ryle/core/absent.hpp"
#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"

namespace ryle {

/// Ticks [begin, end).
struct TickSpan {
  Tick begin = 0;
  Tick end = 0;
  friend bool operator==(const TickSpan&, const TickSpan&) = default;
};

/// One file of a recording, in ticks and inputs of the recording.
struct RecordingPart {
  std::string file;
  TickSpan span;
  std::vector<std::int64_t> inputs;  ///< which input each of the inputs of the file is
};

/// What a file of voltages holds.
struct RecordingInfo {
  std::string format;        ///< "tart", "tbx", "vdif", ...
  bool channelized = false;  ///< spectra (TBF, TBX, CHIPS, GUPPI, ...) instead of time samples
  std::int64_t n_inputs = 0;
  std::int64_t n_ticks = 0;  ///< time samples, or spectra when channelized
  SampleClock clock;         ///< of samples, or of spectra
  /// Tick 0 is `ticks_from_origin` ticks after `origin_tai_ns`, exactly: clock.epoch_tai_ns is that
  /// instant in whole nanoseconds. Without an origin (0) the epoch is exact to 1 ns.
  std::int64_t origin_tai_ns = 0;
  Tick ticks_from_origin = 0;
  /// False: neither file nor options tell the rate, and clock.rate_hz is a placeholder of 1 Hz:
  /// good for `ryle info`, to be refused by anything that computes with it.
  bool rate_known = true;
  TimeSource time_source = TimeSource::header;
  SampleLayout layout;      ///< of what read_samples() delivers
  double reference_hz = 0;  ///< time samples: sky frequency of baseband 0 (0 = not known)
  bool inverted_band = false;
  bool from_zero_hz = false;  ///< time samples of the sky itself: reference_hz = 0 is a frequency
  FrequencyAxis frequency;    ///< channelized: ascending
  /// [input] What tells inputs of several files apart ("station 12 thread 3"); empty = the file
  /// does not say.
  std::vector<std::string> input_names;
  /// [input] From the first to behind the last tick that is there; empty = all of them.
  std::vector<TickSpan> input_spans;
  /// Bands that RecordingOptions::channel_map gives to real or complex channels of time samples,
  /// from their lowest to behind their highest sky frequency, ascending: one of them is read.
  std::vector<std::pair<double, double>> bands_hz;
  std::vector<std::string> channel_map_used;  ///< entries of RecordingOptions::channel_map
  std::vector<RecordingPart> parts;  ///< of a recording of several files, in the order given
  std::map<std::string, std::string> header;  ///< as found, for `ryle info`
  std::vector<std::string> warnings;  ///< quirks met: cut frames, missing marks, implausible times
  std::map<std::string, std::int64_t> counters;  ///< frames read, rejected by reason, bytes skipped
};

/// A file of voltages behind one interface (ingest.md 2, 3). Throws FormatError / IoError on
/// opening; while reading, what is missing or damaged is an AbsentSpan, never an exception.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual const RecordingInfo& info() const = 0;
  /// Time samples [first, first + n) of all inputs as info().layout says, from the start of
  /// `destination`. The layout is time-major ([time][input]), so it does not depend on n. Absent
  /// samples, also those before 0 or after n_ticks, are the code of zero where there is one, and
  /// are added to `absent` in ticks of the recording.
  /// @pre !channelized; destination.size() >= samples_bytes(n)
  virtual void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                            std::vector<AbsentSpan>& absent) = 0;
  /// Spectra [first, first + n) as ci8, [spectrum][channel][input]; what is absent is 0, and listed
  /// once: per input where all channels are, in `gaps` where some are, in absent_channels
  /// [channel][input] (1) where a channel is missing throughout. Without `gaps`, a spectrum that
  /// lacks some channels is absent whole. @pre channelized
  virtual void read_spectra(Tick first, std::int64_t n, std::span<ci8> destination,
                            std::vector<AbsentSpan>& absent,
                            std::vector<std::uint8_t>* absent_channels,
                            std::vector<ChannelGap>* gaps = nullptr) = 0;
  /// Bytes read_samples(…, n, …) needs.
  std::int64_t samples_bytes(std::int64_t n) const;
};

/// Options a file cannot tell by itself.
struct RecordingOptions {
  double sample_rate_hz = 0;  ///< formats without a rate (VDIF EDV 0, raw MWA-32T)
  double reference_hz = 0;
  /// TBF: 0 = 25 kHz for 256 stands (LWA-SV), 196 MHz / 8192 for others (LWA-NA).
  double spectrum_rate_hz = 0;
  std::string start_utc;  ///< raw MWA-32T
  /// DADA with several channels and polarizations: T F P, slowest first ("TFP"), with the times of
  /// a block when T is not the slowest ("PFT256").
  std::string axis_order;
  std::int64_t n_receivers = 4;  ///< raw MWA-32T
  /// Of several files. auto: files of the same inputs follow each other in time, others are further
  /// inputs. inputs: every file is a station of its own, whatever its header says.
  std::string files_as = "auto";
  /// VDIF: "[STATION:]THREAD[/CHANNEL] MHZ [U|L]", the sky frequency of baseband 0 and the sideband
  /// of a channel (upper unless said).
  std::vector<std::string> channel_map;
  /// A file without the band of reference_hz has no inputs and is no error: one of several.
  bool may_lack_band = false;
};

/// format: mwa32t | mwa32t-interleaved | tbf | tbx | tbn | tbw | drx | tart | vdif | codif | guppi
/// | dada | voltages (dumps of `ryle run`) | auto (by content, then name).
std::unique_ptr<Recording> open_recording(const std::string& path, std::string_view format,
                                          const RecordingOptions& options = {});
/// Several files as one recording: files of the same inputs in the order of their times, what lies
/// between them is absent; files of other inputs (stations, threads) side by side, in the order
/// given. The span is that of all files together. One path is open_recording(); of "mwa32t" every
/// path is a receiver.
/// @throws FormatError that names both files where they do not fit: other format, rate, band or
/// channels, one file twice, the same samples twice, more than 600 s between them, a start that is
/// no whole sample from that of the others.
std::unique_ptr<Recording> open_recordings(const std::vector<std::string>& paths,
                                           std::string_view format,
                                           const RecordingOptions& options = {});
/// Names open_recording knows.
std::vector<std::string> recording_formats();

}  // namespace ryle
