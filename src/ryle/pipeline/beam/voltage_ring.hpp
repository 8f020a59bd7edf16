// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"
#include "ryle/io/beam/voltage_dump.hpp"
#include "ryle/pipeline/base/voltage_summary.hpp"
#include "ryle/pipeline/beam/voltage_fill.hpp"
#include "ryle/runtime/chunk.hpp"

/// The last seconds of received voltages, and what of them a trigger asks for, as files (search.md
/// 7). Nothing is copied: chunks go back to the receiver later.
namespace ryle::pipeline {

struct RunSummary;

/// What decides which ticks belong to a pulse.
struct VoltageShape {
  FrequencyAxis frequency;  ///< of spectra, or of the channels made of samples
  SampleClock clock;        ///< of ticks: spectra, or samples
  double k_dm = 4148.8064;
  double margin_s = 0.1;
  bool per_channel = false;  ///< windows follow the pulse; else all channels have one window
  bool samples = false;      ///< one row for the whole band
  Tick unit_ticks = 1;       ///< windows are made of
  double reference_hz = 0;   ///< that times of triggers are of; 0 = center of the highest channel

  double trigger_hz() const {
    return reference_hz > 0 ? reference_hz : frequency.center_hz(frequency.n_channels - 1);
  }
};

/// @eq t_c = t_ref + k_DM DM X_c, X_c = nu_c^-2 - nu_ref^-2 (MHz, nu_ref = trigger_hz(); X_c = 0 of
/// channels at or below 0 Hz); ticks floor((t_c - h_c) f) .. ceil((t_c + h_c) f), h_c = W/2 +
/// margin + k_DM dDM X_c, out to whole units, and to the longest of all channels
VoltageWindow voltage_window(const VoltageShape& shape, const DumpTrigger& trigger);
/// From the first tick to the last of such a window, in seconds, before units: the lowest channel
/// above 0 Hz is the latest.
double voltage_window_s(const VoltageShape& shape, double dm_pc_cm3, double dm_error,
                        double width_s);

enum class TriggerResult : std::uint8_t {
  accepted,
  merged,    ///< into a dump that is not on disk yet, or it lies within one that is
  rejected,  ///< the ring has nothing of it, or it is no trigger at all
  limited,   ///< more than the observation allows
  dropped,   ///< dumps that wait for the disk hold too much of the ring
};

const char* name_of(TriggerResult result);

/// What whoever asked is told.
struct TriggerReply {
  std::int64_t dump = 0;  ///< number in the name of the file that will hold it, 0 = none
  std::string message;    ///< why not
};

struct VoltageRingConfig {
  VoltageShape shape;
  VoltageChunks chunks;
  std::int64_t n_chunks = 0;             ///< kept
  std::vector<std::int64_t> input_line;  ///< [input of a packet]: line of the layout
  double dumps_per_minute = 6;           ///< of data
  double max_bytes = 0;                  ///< of a run; 0 = no limit
  /// A trigger that did not come from the search may lie so much later than the newest data.
  double ahead_s = 0;
  std::string path_stem;  ///< files are STEM_00001.h5 ...; numbers that are taken are left out
  bool overwrite = false;
  std::string telescope, command_line;
};

/// The ring of chunks that are kept for dumps of voltages.
/// - Thread: the engine's thread calls take(), any thread trigger(). The ring's own thread
/// ("voltages")
///   writes files and holds no more than the chunks of its dumps.
/// - Reads chunks after the engines have used them, and gives the oldest back to the source.
/// - A slow disk loses dumps, counted, and makes the ring shorter meanwhile; the receiver gets its
///   chunks back whatever happens.
/// - Ends with finish(), which writes what was asked for.
class VoltageRing {
 public:
  explicit VoltageRing(const VoltageRingConfig& config);
  ~VoltageRing();
  VoltageRing(const VoltageRing&) = delete;
  VoltageRing& operator=(const VoltageRing&) = delete;

  /// Keeps the chunk; those to be given back to the source are appended to `free`.
  /// @param clock of its segment
  void take(Chunk* chunk, const SampleClock& clock, std::vector<Chunk*>& free);
  TriggerResult trigger(const DumpTrigger& trigger, TriggerReply* reply = nullptr);
  /// Triggers and concluded dumps since the last call. Of triggers that nobody takes the first
  /// kMaxRecords wait; the rest is only counted.
  VoltageRecords take_records();
  static constexpr std::size_t kMaxRecords = 10'000;
  /// No more chunks: writes what was asked for. Chunks must live until it returns.
  void finish(RunSummary& summary);

  VoltageSummary counts() const;
  /// First message of each kind, with how often it was meant.
  std::vector<std::string> messages() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::pipeline
