// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "ryle/core/time.hpp"

/// Voltages of one beam as VDIF 1.1.1: complex samples, one frame per thread (polarization) with
/// all channels, [time][channel][re, im], offset binary, EDV 1 with the sample rate where it is
/// whole kHz.
namespace ryle {

struct VdifFileInfo {
  SampleClock clock;            ///< of the complex samples of a channel; a whole number of Hz
  std::int64_t n_channels = 0;  ///< a power of two, as the header says it
  std::int64_t n_threads = 1;   ///< polarizations
  int bits = 8;                 ///< 8 (ci8) or 4 (ci4)
  std::string station = "RY";   ///< two letters
};

/// Grows as ".NAME.part", appears by finish().
class VdifWriter {
 public:
  /// Frames start at whole seconds of UTC; a clock between is moved by less than half a sample
  /// (time_shift_s). Throws ConfigError for what VDIF cannot say.
  VdifWriter(const std::string& path, const VdifFileInfo& info, bool overwrite);
  ~VdifWriter();
  VdifWriter(const VdifWriter&) = delete;
  VdifWriter& operator=(const VdifWriter&) = delete;

  /// Samples [first, first + n) of the clock, which follow on; ticks between are written as frames
  /// marked invalid, up to 600 s of them. A frame without any sample present is marked invalid.
  /// @shape codes [channel][time][thread] ci8, or ci4 bytes (re << 4 | im & 15); absent: bit t = 1
  /// where no input was there, nullptr = all there
  void append(const void* codes, std::int64_t channel_stride_bytes, Tick first, std::int64_t n,
              const std::uint64_t* absent = nullptr);
  /// Whole frames only: what is left of the last one is not written.
  void finish();

  std::int64_t samples_per_frame() const;
  std::int64_t n_frames() const;          ///< written, of all threads
  std::int64_t n_invalid_frames() const;  ///< of them
  std::int64_t n_left_out() const;        ///< samples before the first and after the last frame
  double time_shift_s() const;            ///< time in the file minus time of the clock

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle
