// SPDX-License-Identifier: BSD-3-Clause
// Beams of recordings on a device: samples in host memory, files as from the CPU.
#include "ryle/pipeline/beam/recorded_beams.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/beam/vdif_file.hpp"
#include "ryle/pipeline/beam/host_beamformer.hpp"
#include "ryle/telescope/geometry.hpp"
#include "tests/cuda/cuda_test.hpp"
#include "tests/io/scratch.hpp"
#include "tests/pipeline/beam/two_gulps.hpp"

namespace ryle::pipeline {
namespace {

using beamform::OutputFormat;
using beamform::OutputKind;
using test::form_beams;
using test::small_beams;

class CudaRecordedBeams : public ryle::test::CudaTest {};

// Integers are the same; powers are sums in another order, within 2^-20 of their value (cuda.hpp).
TEST_F(CudaRecordedBeams, CopiesAreThereInTime) {
  Queue host = Queue::cpu(1);
  for (const auto& [kind, format] : {std::pair{OutputKind::power, OutputFormat::f32},
                                     std::pair{OutputKind::voltage, OutputFormat::ci8}}) {
    auto config = small_beams(kind, format);
    const auto on_host = form_beams(*beamform::make_beamformer(host, config), host);
    config.implementation = "cuda";
    HostBeamformer engine(queue(), config);
    const auto on_device = form_beams(engine, host);
    EXPECT_EQ(on_device.used, on_host.used);
    ASSERT_EQ(on_device.values.size(), on_host.values.size());
    if (format == OutputFormat::ci8) {
      EXPECT_TRUE(on_device.values == on_host.values);
      EXPECT_EQ(on_device.low, on_host.low);
      EXPECT_EQ(on_device.high, on_host.high);
      continue;
    }
    for (std::size_t k = 0; k < on_host.values.size(); k += 4) {
      float a = 0, b = 0;
      std::memcpy(&a, on_device.values.data() + k, 4);
      std::memcpy(&b, on_host.values.data() + k, 4);
      ASSERT_NEAR(a, b, std::ldexp(std::abs(b), -20)) << k;
    }
  }
}

TEST_F(CudaRecordedBeams, FilterbanksAreThoseOfTheCpu) {
  constexpr std::int64_t kAntennas = 4, kChannels = 8, kSpectra = 3000;
  const test::Scratch scratch;
  std::ofstream layout(scratch / "four.csv");
  layout << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";
  for (std::int64_t a = 0; a < kAntennas; ++a)
    layout << "a" << a << "," << 7 * a << "," << 5 * (a % 2) << ",0.5,X,0\n";
  layout.close();
  std::ofstream(scratch / "beams.toml")
      << "[telescope]\nlayout = \"four.csv\"\nlatitude_deg = 44.5\nlongitude_deg = 11.6\n"
         "[band]\nfirst_center_mhz = 150\nchannel_step_khz = 25\nn_channels = 8\n"
         "[[beam]]\nname = \"b\"\nframe = \"azel\"\naz_deg = 130\nel_deg = 55\n";
  VdifFileInfo info;
  info.clock = {tai_ns_from_utc_iso("2025-03-01T12:00:00"), {25'000, 1}};
  info.n_channels = kChannels;
  info.n_threads = kAntennas;
  std::vector<ci8> codes(static_cast<std::size_t>(kChannels * kSpectra * kAntennas));
  for (std::size_t k = 0; k < codes.size(); ++k) {
    const auto key = combine(3, k);
    codes[k] = {static_cast<std::int8_t>(key % 100), static_cast<std::int8_t>(key >> 8 & 63)};
  }
  VdifWriter writer(scratch / "in.vdif", info, true);
  writer.append(codes.data(), kSpectra * kAntennas * 2, 0, kSpectra);
  writer.finish();
  std::vector<std::vector<float>> powers;
  for (const std::string device : {"cpu", "cuda:0"}) {
    const auto config = parse_observation(
        "schema = 1\n", "test",
        {"source.kind=file", "source.format=vdif", "source.file=" + (scratch / "in.vdif"),
         "source.center_mhz=150", "runtime.threads=1", "runtime.device=" + device});
    RecordedBeamsOptions options;
    options.beams = scratch / "beams.toml";
    options.outputs = {scratch / (device.substr(0, 3) + "x.fil")};
    options.integration = 16;
    const auto summary = beamform_recording(config, options, {});
    EXPECT_NE(summary.implementations.back().find(device.substr(0, 3)), std::string::npos)
        << summary.implementations.back();
    const auto file = open_filterbank(options.outputs.front(), {});
    powers.emplace_back(static_cast<std::size_t>(kChannels * file->info().n_samples));
    file->read(0, file->info().n_samples, powers.back().data(), file->info().n_samples);
  }
  ASSERT_EQ(powers[0].size(), powers[1].size());
  for (std::size_t k = 0; k < powers[0].size(); ++k)
    ASSERT_NEAR(powers[1][k], powers[0][k], std::ldexp(powers[0][k], -20)) << k;
}

}  // namespace
}  // namespace ryle::pipeline
