// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/recording_time.hpp"

namespace ryle::test {

inline std::vector<unsigned char> slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string write_file(const std::string& name, const std::vector<unsigned char>& bytes) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return path;
}

inline std::int64_t time_of(const char* utc) { return recording_tai_ns_from_text(utc).value(); }

/// The spectrum of lwa/tbx-test.dat (26 frames of 12 channels) sent `n` times, 8192 ticks apart,
/// without the frames that lost(spectrum, frame) names.
template <class Lost>
std::vector<unsigned char> tbx_spectra(const std::string& path, int n, const Lost& lost) {
  constexpr std::ptrdiff_t kFrame = 1564;
  const auto raw = slurp(path);
  std::vector<unsigned char> file;
  for (int spectrum = 0; spectrum < n; ++spectrum) {
    for (int frame = 0; frame < 26; ++frame) {
      if (lost(spectrum, frame)) continue;
      std::vector<unsigned char> bytes(raw.begin() + frame * kFrame,
                                       raw.begin() + (frame + 1) * kFrame);
      std::uint64_t tag = 0;  // big-endian at byte 20, in ticks of 196 MHz
      for (int k = 20; k < 28; ++k) tag = tag << 8 | bytes[static_cast<std::size_t>(k)];
      tag += 8192 * static_cast<std::uint64_t>(spectrum);
      for (int k = 27; k >= 20; --k, tag >>= 8)
        bytes[static_cast<std::size_t>(k)] = static_cast<unsigned char>(tag);
      file.insert(file.end(), bytes.begin(), bytes.end());
    }
  }
  return file;
}

/// Samples [first, first + n), destination prefilled with garbage; checks that nothing beyond is
/// touched.
struct Samples {
  Samples(Recording& recording, Tick first, std::int64_t n)
      : info(recording.info()),
        bytes(static_cast<std::size_t>(recording.samples_bytes(n)) + 8, std::byte{0xCD}) {
    recording.read_samples(first, n, bytes, absent);
    for (std::size_t k = bytes.size() - 8; k < bytes.size(); ++k)
      EXPECT_EQ(bytes[k], std::byte{0xCD});
  }
  cf64 at(std::int64_t input, std::int64_t tick) const {
    return decode_sample(info.layout, bytes.data(), input, tick);
  }
  RecordingInfo info;
  std::vector<std::byte> bytes;
  std::vector<AbsentSpan> absent;
};

struct Spectra {
  Spectra(Recording& recording, Tick first, std::int64_t n) : info(recording.info()) {
    const auto size = static_cast<std::size_t>(n * info.frequency.n_channels * info.n_inputs);
    values.assign(size + 4, ci8{-51, -51});
    recording.read_spectra(first, n, values, absent, &missing);
    for (std::size_t k = size; k < values.size(); ++k) EXPECT_EQ(values[k], (ci8{-51, -51}));
  }
  ci8 at(std::int64_t spectrum, std::int64_t channel, std::int64_t input) const {
    return values[static_cast<std::size_t>(
        (spectrum * info.frequency.n_channels + channel) * info.n_inputs + input)];
  }
  RecordingInfo info;
  std::vector<ci8> values;
  std::vector<AbsentSpan> absent;
  std::vector<std::uint8_t> missing;
};

}  // namespace ryle::test
