// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/telescope/geometry.hpp"

/// Detected power against time and frequency, as search back ends write it: SIGPROC and PSRFITS.
namespace ryle {

/// What a filterbank (or one time series: one channel) holds.
struct FilterbankInfo {
  std::string path;
  std::string format;                     ///< "sigproc" or "psrfits"
  std::vector<double> channel_center_hz;  ///< ascending, whatever the order on disk
  double channel_width_hz = 0;            ///< > 0
  bool descending = false;                ///< on disk
  std::int64_t n_channels = 0;
  std::int64_t n_samples = 0;
  double sample_interval_s = 0;
  int bits = 0;
  bool is_signed = false;
  std::int64_t n_ifs = 1;
  double start_mjd_utc = 0;       ///< as written; a double holds 0.63 us
  std::int64_t start_tai_ns = 0;  ///< of the first sample
  double dispersion_measure = 0;  ///< of a dedispersed series (refdm), else 0
  double dedispersed_hz = 0;      ///< SIGPROC time series: fch1
  bool barycentric = false;
  std::string source_name;
  std::string telescope;
  int telescope_id = 0;  ///< SIGPROC number; 0 = unknown
  int machine_id = 0;
  SkyDirection position;              ///< ICRS
  std::int64_t header_bytes = 0;      ///< offset of the data (SIGPROC)
  std::vector<std::string> warnings;  ///< what the header says and the file does not
};

struct FilterbankOptions {
  /// SIGPROC keys Ryle does not know, as "name:type", type one of i32 i64 f64 u8 string.
  std::vector<std::string> keys;
  /// Which of several IFs: "" (1: it, 2: mean of both, 4: refused), "I" (the first), "XXYY" (mean
  /// of the first two).
  std::string polarization;
};

/// Reader of one file. One thread at a time.
class FilterbankReader {
 public:
  virtual ~FilterbankReader() = default;
  virtual const FilterbankInfo& info() const = 0;
  /// Reads samples [first, first + n) of all channels as numbers, IFs combined, PSRFITS scales,
  /// offsets applied and channels of weight 0 as NaN.
  /// @shape to [channel][time] f32, channels ascending in frequency, `stride` between channels
  /// Throws FormatError, IoError.
  virtual void read(std::int64_t first, std::int64_t n, float* to, std::int64_t stride) = 0;
};

/// Opens by content: "HEADER_START" or FITS.
std::unique_ptr<FilterbankReader> open_filterbank(const std::string& path,
                                                  const FilterbankOptions& options = {});

/// Whether the first sample of `b` follows the last one of `a`, within half a sample: same channels
/// and interval, and both say when they were recorded.
bool follows_in_time(const FilterbankInfo& a, const FilterbankInfo& b);
bool same_channels(const FilterbankInfo& a, const FilterbankInfo& b);
/// Files of which each follows the one before, as one. Throws ConfigError where one does not.
std::unique_ptr<FilterbankReader> join_filterbanks(
    std::vector<std::unique_ptr<FilterbankReader>> parts);

namespace io {
std::unique_ptr<FilterbankReader> open_sigproc(const std::string& path,
                                               const FilterbankOptions& options);
std::unique_ptr<FilterbankReader> open_psrfits(const std::string& path,
                                               const FilterbankOptions& options);
}  // namespace io

}  // namespace ryle
