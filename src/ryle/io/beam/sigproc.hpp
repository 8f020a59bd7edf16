// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/beam/filterbank_file.hpp"

/// SIGPROC filterbanks and time series. Header: strings (i32 length 1..80, bytes), first
/// HEADER_START, last HEADER_END; each key is followed by its value. Data [time][if][channel], 1, 2
/// and 4 bit with the lowest bits first.
namespace ryle {

/// The header as it stands in the file, every key at most once.
struct SigprocHeader {
  std::map<std::string, double> numbers;  ///< i32, f64, u8 keys
  std::map<std::string, std::string> strings;
  std::vector<double> channel_table_mhz;  ///< FREQUENCY_START ... FREQUENCY_END
  std::int64_t header_bytes = 0;

  bool has(const std::string& key) const { return numbers.count(key) > 0; }
  double number(const std::string& key, double otherwise) const;
};

/// Parses a header from memory. Throws FormatError with `path`, byte offset, key and value.
/// @param keys extra keys "name:type", see FilterbankOptions
SigprocHeader parse_sigproc_header(const std::string& bytes, const std::string& path,
                                   const std::vector<std::string>& keys = {});

/// hhmmss.s and ddmmss.s (sign of the whole number) to radians, and back.
double sigproc_hours_to_rad(double hhmmss);
double sigproc_degrees_to_rad(double ddmmss);
double rad_to_sigproc_hours(double ra_rad);
double rad_to_sigproc_degrees(double dec_rad);

struct SigprocWriteOptions {
  bool overwrite = false;
  bool descending = true;  ///< order of channels on disk
};

/// Writes one IF; keys in a fixed order, no nsamples. The file grows as ".NAME.part" and appears by
/// finish(); a destroyed writer that was not finished leaves nothing.
class SigprocWriter {
 public:
  /// Takes from `info`: channels, interval, start, bits (1, 2, 4, 8 unsigned; 16 unsigned; 32
  /// float), names, position, refdm for one channel. Throws ConfigError for what SIGPROC cannot
  /// say.
  SigprocWriter(const std::string& path, const FilterbankInfo& info,
                const SigprocWriteOptions& options = {});
  ~SigprocWriter();
  SigprocWriter(const SigprocWriter&) = delete;
  SigprocWriter& operator=(const SigprocWriter&) = delete;

  /// Rounds to nearest even and clamps to the codes of the file, counting what was clamped.
  /// @shape data [channel][time], channels ascending
  void append(const float* data, std::int64_t stride, std::int64_t n);
  /// Codes as they are (8 bit and less); values above the range are clamped and counted.
  void append(const std::uint8_t* data, std::int64_t stride, std::int64_t n);
  std::int64_t n_samples() const;
  std::int64_t n_clamped_low() const;
  std::int64_t n_clamped_high() const;
  void finish();
  /// After an append that failed: publishes the first samples, at most the n_samples() that are
  /// whole.
  void finish_at(std::int64_t n_samples);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
