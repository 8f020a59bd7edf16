// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/core/time.hpp"

/// Voltages of all antennas about an instant, as they were received (search.md 7): HDF5, which
/// open_recording() reads like any other recording.
namespace ryle {

/// Why a dump was made. Times are those of the center of the highest channel that is searched.
struct DumpTrigger {
  std::int64_t tai_ns = 0;
  double dm_pc_cm3 = 0, dm_error = 0;
  double width_s = 0;
  double snr = 0;
  std::string beam;        ///< or what another instrument calls its event
  std::int64_t event = 0;  ///< number of the candidate; 0 = asked for from outside
};

/// What became of a trigger.
struct TriggerRecord {
  std::int64_t number = 0;  ///< 1, 2, ... as they came
  DumpTrigger trigger;
  std::string result;     ///< accepted, merged, rejected, limited, dropped
  std::int64_t dump = 0;  ///< number of its dump, 0 = none
  std::string message;    ///< why not
};

/// One dump, as it is on disk or was lost.
struct DumpRecord {
  std::int64_t number = 0;                        ///< in the name of its file
  std::string file;                               ///< name without directories; "" = it was lost
  std::int64_t begin_tai_ns = 0, end_tai_ns = 0;  ///< of all channels
  double low_hz = 0, high_hz = 0;                 ///< edges of the band
  std::int64_t n_channels = 0;
  std::int64_t bytes = 0;  ///< of voltages
  /// What can be absent one by one: packets of a channel, or where dumps are no packets the values
  /// of an input (in a channel).
  std::int64_t packets = 0;
  std::int64_t absent_packets = 0;  ///< of them not received, or no longer in the ring
  double left_s = 0;                ///< of its beginning that had left the ring
  std::string message;              ///< why it was lost
};

struct VoltageRecords {
  std::vector<TriggerRecord> triggers;
  std::vector<DumpRecord> dumps;
  bool empty() const { return triggers.empty() && dumps.empty(); }
  /// Triggers that may wait for a database: anyone may send them.
  static constexpr std::size_t kMaxWaiting = 100'000;
  /// Appends dumps and, up to kMaxWaiting, triggers. Returns how many triggers had no room.
  std::int64_t append(const VoltageRecords& more);
};

/// How voltages lie in a dump: rows of units of time.
///
///     content   rows      unit         a unit in the file
///     packets   channels  128 spectra  [pair][spectrum 128][2] u8, high nibble real
///     spectra   channels  1 spectrum   [input] u8 (ci4, high nibble real) or [input][re, im] i8
///     samples   1         1 sample     the bytes of all inputs at an instant, as `layout` says
struct VoltageForm {
  enum class Content : std::uint8_t { packets, spectra, samples };
  Content content = Content::packets;
  std::int64_t n_rows = 0;
  std::int64_t n_inputs = 0;
  SampleFormat format = SampleFormat::ci4;  ///< packets, spectra: ci4 or ci8
  SampleLayout layout;                      ///< samples: sample_stride_bits are whole bytes
  double reference_hz = 0;                  ///< samples: sky frequency of baseband 0
  bool inverted_band = false;               ///< samples

  Tick unit_ticks() const;
  std::int64_t unit_bytes() const;
};

struct VoltageDumpInfo {
  std::string telescope;
  VoltageForm form;
  FrequencyAxis frequency;               ///< centers ascend; samples: of the channels made of them
  SampleClock clock;                     ///< of ticks: spectra, or samples
  std::vector<Tick> first_tick;          ///< [row], multiples of a unit
  std::int64_t n_units = 0;              ///< of every row
  std::vector<std::int64_t> input_line;  ///< [input of a packet]: line of the layout
  double k_dm = 0;                       ///< s MHz^2 pc^-1 cm^3 behind the windows
  std::string history;                   ///< the command line
};

/// /voltages [row][unit][...] of VoltageForm, /first_tick [row], /header, /triggers. Of packets
/// /present [row][unit] u8, else /present [row][unit][(n_inputs + 7) / 8] u8, bit k of byte j for
/// input 8 j + k, which is there only where something is absent. What was not written or not
/// present is 0. Grows as ".NAME.part", appears by finish(); not finished when destroyed: leaves
/// nothing.
class VoltageDumpWriter {
 public:
  VoltageDumpWriter(const std::string& path, const VoltageDumpInfo& info, bool overwrite);
  ~VoltageDumpWriter();
  VoltageDumpWriter(const VoltageDumpWriter&) = delete;
  VoltageDumpWriter& operator=(const VoltageDumpWriter&) = delete;

  /// Units [first, first + n) of each of the rows, counted from their own first ticks.
  /// @shape data [n_rows][stride_units][unit]
  void write(std::int64_t first_row, std::int64_t n_rows, std::int64_t first, std::int64_t n,
             const void* data, std::int64_t stride_units);
  /// Of spectra and samples: which inputs were received, of units [first, first + n) of a row. What
  /// is never told is present.
  /// @shape bits [n][(n_inputs + 7) / 8]
  void write_present(std::int64_t row, std::int64_t first, std::int64_t n,
                     const std::uint8_t* bits);
  /// @param present of packets [row][unit], 1 = received; else empty
  /// @param n_unlisted triggers of this dump besides `triggers`: /triggers/n_unlisted
  void finish(const std::vector<std::uint8_t>& present, const std::vector<DumpTrigger>& triggers,
              std::int64_t n_unlisted = 0);

  std::int64_t bytes() const;  ///< of voltages, all of them

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
