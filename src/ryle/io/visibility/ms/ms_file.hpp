// SPDX-License-Identifier: BSD-3-Clause
// The only door to casacore. Its 3.5 headers do not compile as C++20, so this folder is C++17 and
// this header speaks in plain structures only: no other Ryle header may be included here. Failures
// are std::runtime_error (one line).
#pragma once
#include <array>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ryle::ms {

struct AntennaRow {
  std::string name;
  std::array<double, 3> itrf_m{};
  std::array<double, 2> feed_angles_rad{};
};

/// One dump, exactly (MS TIME is a double that resolves 1 microsecond).
struct DumpRow {
  std::int64_t start_tai_ns = 0;
  std::int64_t centroid_tai_ns = 0;
  double interval_s = 0;
  std::int64_t n_spectra = 0;
};

struct InputRow {
  int antenna = 0;
  int receptor = 0;
  bool bad = false;
  double delay_s = 0;
  double rms_lsb = 0;
  double saturated_fraction = 0;
  std::vector<std::complex<double>> gains;  ///< [channel]
};

/// Everything outside the main table. Times are MJD UTC seconds, directions ICRS radians.
struct Impl {
  std::string telescope_name, observer, project, field_name, data_unit;
  std::array<double, 3> telescope_itrf_m{};
  int n_receptors = 2;
  std::vector<AntennaRow> antennas;
  std::array<double, 2> phase_center_rad{};
  std::array<double, 2> pointing_rad{};
  std::vector<double> channel_centers_hz;
  double channel_width_hz = 0;
  double noise_bandwidth_hz = 0;
  double begin_s = 0;
  double end_s = 0;
  std::vector<std::string> history, command_lines, configuration_lines;
  // RYLE_APPLIED and RYLE_DUMP
  std::vector<InputRow> inputs;
  std::vector<double> filter_response;
  std::int64_t n_taps = 0;
  std::string window;
  bool van_vleck = false;
  bool has_delays = false, has_gains = false, has_levels = false, has_saturation = false;
  std::string configuration, observation_json;
  std::vector<DumpRow> dumps;
};

/// Rows of one dump. @shape data, weight_spectrum, flag [baseline][channel][product]; uvw_m
/// [baseline][3]
struct DumpValues {
  double time_s = 0;
  double interval_s = 0;
  const int* antenna1 = nullptr;
  const int* antenna2 = nullptr;
  const double* uvw_m = nullptr;
  const std::complex<float>* data = nullptr;
  const float* weight_spectrum = nullptr;
  const bool* flag = nullptr;
};

/// Grows one Measurement Set at a path (a .part directory).
class Writer {
 public:
  Writer(const std::string& path, const std::string& data_unit, std::int64_t n_products,
         std::int64_t n_channels, std::int64_t n_baselines);
  ~Writer();  ///< unfinished: the table is dropped without flushing
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  void append(const DumpValues& dump);
  void finish(const Impl& content);  ///< writes the sub-tables and closes
  /// The tables stay on the disk as they are, whatever becomes of the writer.
  void leave();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A Measurement Set read whole. @shape as DumpValues, over all rows
struct ReadResult {
  Impl content;  ///< antennas, telescope, frequencies, phase centre; all of it when is_ryle
  bool is_ryle = false;
  bool has_feed_angles = false;
  bool has_corrected_data = false;  ///< a column that is not read
  bool tai = false;                 ///< times are TAI, not UTC
  std::string pol_convention;       ///< of pyuvdata: "sum", "avg" or nothing
  std::vector<int> corr_types;
  std::int64_t n_rows = 0;
  std::vector<double> time_s, interval_s, uvw_m;
  std::vector<int> antenna1, antenna2;
  std::vector<std::complex<float>> data;
  std::vector<float> weight_spectrum;
  std::vector<std::uint8_t> flag;
};
/// `column` of the values: "" is DATA.
ReadResult read(const std::string& path, const std::string& column);

/// The first rows (at most max_rows) of a set that was never finished: no sub-table is looked at.
struct UnfinishedRows {
  std::vector<std::complex<float>> data;
  std::vector<float> weight_spectrum;
};
UnfinishedRows read_unfinished(const std::string& path, std::int64_t max_rows);

}  // namespace ryle::ms
