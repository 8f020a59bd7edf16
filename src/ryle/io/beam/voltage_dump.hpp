// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/frequency_axis.hpp"
#include "ryle/core/time.hpp"

/// Voltages of all antennas about a pulse, as they were received (search.md 7): HDF5, which
/// open_recording() reads like any other recording.
namespace ryle {

/// Why a dump was made. Times are those of the center of the highest channel.
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
  std::int64_t bytes = 0;           ///< of voltages
  std::int64_t packets = 0;         ///< of all channels
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

struct VoltageDumpInfo {
  std::string telescope;
  FrequencyAxis frequency;               ///< centers ascend
  SampleClock clock;                     ///< of spectra
  std::vector<Tick> first_tick;          ///< [channel], multiples of the 128 spectra of a packet
  std::int64_t n_packets = 0;            ///< of every channel
  std::vector<std::int64_t> input_line;  ///< [antenna of a packet]: line of the layout
  double k_dm = 0;                       ///< s MHz^2 pc^-1 cm^3 behind the windows
  std::string history;                   ///< the command line
};

/// /voltages [channel][packet][pair][spectrum 128][2] u8 (high nibble real), /first_tick [channel],
/// /present [channel][packet], /header, /triggers. What was not written or not present is 0. Grows
/// as ".NAME.part", appears by finish(); not finished when destroyed: leaves nothing.
class VoltageDumpWriter {
 public:
  static constexpr std::int64_t kPacketSpectra = 128;

  VoltageDumpWriter(const std::string& path, const VoltageDumpInfo& info, bool overwrite);
  ~VoltageDumpWriter();
  VoltageDumpWriter(const VoltageDumpWriter&) = delete;
  VoltageDumpWriter& operator=(const VoltageDumpWriter&) = delete;

  /// Packets [first, first + n) of each of the channels, counted from their own first ticks.
  /// @shape data [n_channels][stride_packets][packet]
  void write(std::int64_t first_channel, std::int64_t n_channels, std::int64_t first,
             std::int64_t n, const void* data, std::int64_t stride_packets);
  /// @shape present [channel][packet], 1 = received
  /// @param n_unlisted triggers of this dump besides `triggers`: /triggers/n_unlisted
  void finish(const std::vector<std::uint8_t>& present, const std::vector<DumpTrigger>& triggers,
              std::int64_t n_unlisted = 0);

  std::int64_t bytes() const;  ///< of voltages, all of them

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
