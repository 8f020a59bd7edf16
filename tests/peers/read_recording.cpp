// SPDX-License-Identifier: BSD-3-Clause
// Reads recordings as Ryle does and writes what it got as float32 for a peer to compare, real part
// before imaginary: read_recording RATE_HZ OUTPUT FILE..., [time][input] of time samples,
// [spectrum][channel][input] of spectra. A rate of 0 is that of the files.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording.hpp"

namespace {

using namespace ryle;

std::vector<cf32> values_of(Recording& recording) {
  const RecordingInfo& info = recording.info();
  std::vector<cf32> out;
  std::vector<AbsentSpan> absent;
  if (info.channelized) {
    std::vector<ci8> spectra(
        static_cast<std::size_t>(info.n_ticks * info.frequency.n_channels * info.n_inputs));
    recording.read_spectra(0, info.n_ticks, spectra, absent, nullptr);
    for (const ci8& v : spectra) out.emplace_back(v.re, v.im);
    return out;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(recording.samples_bytes(info.n_ticks)));
  recording.read_samples(0, info.n_ticks, bytes, absent);
  for (Tick t = 0; t < info.n_ticks; ++t)
    for (std::int64_t p = 0; p < info.n_inputs; ++p)
      out.emplace_back(decode_sample(info.layout, bytes.data(), p, t));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  try {
    ryle::RecordingOptions options;
    options.sample_rate_hz = std::strtod(argv[1], nullptr);
    const auto recording = ryle::open_recordings({argv + 3, argv + argc}, "auto", options);
    const auto values = values_of(*recording);
    std::ofstream(argv[2], std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof values[0]));
    std::printf("%lld %lld %lld %lld\n", static_cast<long long>(recording->info().n_ticks),
                static_cast<long long>(recording->info().frequency.n_channels),
                static_cast<long long>(recording->info().n_inputs),
                static_cast<long long>(recording->info().clock.epoch_tai_ns));
  } catch (const ryle::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
