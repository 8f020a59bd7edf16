// SPDX-License-Identifier: BSD-3-Clause
// `ryle beamform`: recordings with a planted wave, read back from every file it writes.
#include "ryle/pipeline/beam/recorded_beams.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/beam/vdif_file.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kAntennas = 6, kChannels = 8, kSpectra = 5000;
constexpr double kRate_hz = 25'000, kFirst_hz = 150e6;
constexpr double kAz_deg = 130, kEl_deg = 55;

/// Spectra of 6 antennas: a wave of random phase and amplitude from one direction, and noise; as
/// VDIF, a thread per antenna.
class RecordedBeams : public ::testing::Test {
 protected:
  RecordedBeams()
      : folder_(std::filesystem::temp_directory_path() /
                ("ryle_recorded_beams_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    std::ofstream layout(folder_ / "six.csv");
    layout << "antenna,east_m,north_m,up_m,pol,cable_delay_ns\n";
    for (std::int64_t a = 0; a < kAntennas; ++a)
      layout << "a" << a << "," << east(a) << "," << north(a) << ",0.5,X," << 10 * a << "\n";
    std::ofstream(folder_ / "beams.toml")
        << "[telescope]\nlayout = \"six.csv\"\nlatitude_deg = 44.5\nlongitude_deg = 11.6\n"
           "[band]\nfirst_center_mhz = 150\nchannel_step_khz = 25\nn_channels = 8\n"
           "[[beam]]\nname = \"on\"\nframe = \"azel\"\naz_deg = "
        << kAz_deg << "\nel_deg = " << kEl_deg
        << "\n[[beam]]\nname = \"off\"\nframe = \"azel\"\naz_deg = 300\nel_deg = 40\n";
  }
  ~RecordedBeams() override { std::filesystem::remove_all(folder_); }

  static double east(std::int64_t a) { return 7.0 * static_cast<double>(a * a % 5); }
  static double north(std::int64_t a) { return 9.0 * static_cast<double>(a); }
  static cf64 wave(std::int64_t c, std::int64_t t) {
    const auto key = combine(11, static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(t));
    return cf64(gaussian(key), gaussian(key ^ 1u));
  }
  // Phase of the wave at an antenna: exp(+2 pi i nu (r.s/c - cable)).
  static cf64 phase(std::int64_t a, std::int64_t c) {
    const double az = kAz_deg * kDegree_rad, el = kEl_deg * kDegree_rad;
    const double early_s = (east(a) * std::cos(el) * std::sin(az) +
                            north(a) * std::cos(el) * std::cos(az) + 0.5 * std::sin(el)) /
                               kSpeedOfLight_m_per_s -
                           1e-8 * static_cast<double>(a);
    return std::polar(1.0, 2 * kPi * (kFirst_hz + kRate_hz * static_cast<double>(c)) * early_s);
  }
  static ci8 sample(std::int64_t a, std::int64_t c, std::int64_t t) {
    const auto key =
        combine(13, static_cast<std::uint64_t>(a * 8 + c), static_cast<std::uint64_t>(t));
    const cf64 v = 8.0 * wave(c, t) * phase(a, c) + 4.0 * cf64(gaussian(key), gaussian(key ^ 1u));
    return {static_cast<std::int8_t>(std::clamp(std::rint(v.real()), -127.0, 127.0)),
            static_cast<std::int8_t>(std::clamp(std::rint(v.imag()), -127.0, 127.0))};
  }
  static SampleClock clock() { return {tai_ns_from_utc_iso("2025-03-01T12:00:00"), {25'000, 1}}; }

  /// `lost`: spectra [begin, end) of an antenna (-1 = all) that never came, whole frames.
  std::string write(std::int64_t lost_antenna = -2, std::int64_t begin = 0, std::int64_t end = 0) {
    const std::string path = (folder_ / "in.vdif").string();
    VdifFileInfo info;
    info.clock = clock();
    info.n_channels = kChannels;
    info.n_threads = kAntennas;
    std::vector<ci8> codes;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      for (std::int64_t t = 0; t < kSpectra; ++t) {
        for (std::int64_t a = 0; a < kAntennas; ++a) codes.push_back(sample(a, c, t));
      }
    }
    VdifWriter writer(path, info, true);
    frame_ = writer.samples_per_frame();
    writer.append(codes.data(), kSpectra * kAntennas * 2, 0, kSpectra);
    writer.finish();
    if (lost_antenna == -2) return path;
    // The invalid bit of the frames that were lost.
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::int64_t bytes = 32 + frame_ * kChannels * 2;
    for (std::int64_t f = begin / frame_; f < end / frame_; ++f) {
      for (std::int64_t a = 0; a < kAntennas; ++a) {
        if (lost_antenna >= 0 && a != lost_antenna) continue;
        const std::int64_t at = (f * kAntennas + a) * bytes + 3;
        file.seekg(at);
        const int byte = file.get();
        file.seekp(at);
        file.put(static_cast<char>(byte | 0x80));
      }
    }
    return path;
  }

  RecordedBeamsSummary run(const std::string& recording, RecordedBeamsOptions options) const {
    const auto config =
        parse_observation("schema = 1\n", "test",
                          {"source.kind=\"file\"", "source.file=\"" + recording + "\"",
                           "source.format=\"vdif\"", "source.center_mhz=150", "runtime.threads=2"});
    options.beams = (folder_ / "beams.toml").string();
    options.overwrite = true;
    for (auto& output : options.outputs) output = path(output);
    return beamform_recording(config, options, {});
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// The beam toward the wave, weights of modulus 1 / sqrt(6), in double.
  static cf64 expected(std::int64_t c, std::int64_t t, std::int64_t without = -1) {
    cf64 sum = 0;
    for (std::int64_t a = 0; a < kAntennas; ++a) {
      if (a == without) continue;
      const ci8 v = sample(a, c, t);
      sum += cf64(v.re, v.im) * std::conj(phase(a, c));
    }
    return sum / std::sqrt(static_cast<double>(kAntennas)) * (without < 0 ? 1.0 : 6.0 / 5.0);
  }

  std::filesystem::path folder_;
  std::int64_t frame_ = 0;
};

std::vector<float> read_all(const std::string& path) {
  const auto file = open_filterbank(path);
  const auto& info = file->info();
  std::vector<float> values(static_cast<std::size_t>(info.n_channels * info.n_samples));
  file->read(0, info.n_samples, values.data(), info.n_samples);
  return values;
}

TEST_F(RecordedBeams, FilterbankHoldsThePowerOfTheWave) {
  RecordedBeamsOptions o;
  o.outputs = {"out.fil"};
  o.weights = "f32";
  o.integration = 10;
  o.incoherent = {"all"};
  const auto s = run(write(), o);
  EXPECT_EQ(s.n_values, 500);
  EXPECT_EQ(s.products, (std::vector<std::string>{path("out_on.fil"), path("out_off.fil"),
                                                  path("out_incoherent_all.fil")}));
  EXPECT_EQ(s.used_fraction, 1);
  EXPECT_EQ(s.lost_samples, 0u);
  const auto info = open_filterbank(path("out_on.fil"))->info();
  EXPECT_EQ(info.n_channels, kChannels);
  EXPECT_EQ(info.source_name, "on");
  EXPECT_NEAR(info.sample_interval_s, 10 / kRate_hz, 1e-12);
  EXPECT_NEAR(static_cast<double>(info.start_tai_ns - clock().epoch_tai_ns), 0, 1e3);
  EXPECT_NEAR(info.channel_center_hz[3], kFirst_hz + 3 * kRate_hz, 1);
  const auto on = read_all(path("out_on.fil")), off = read_all(path("out_off.fil")),
             all = read_all(path("out_incoherent_all.fil"));
  double sum_on = 0, sum_off = 0;
  for (std::int64_t c = 0; c < kChannels; ++c) {
    for (std::int64_t k = 0; k < 500; ++k) {
      const auto at = static_cast<std::size_t>(c * 500 + k);
      double want = 0, incoherent = 0;
      for (std::int64_t t = 10 * k; t < 10 * k + 10 && k % 25 == 0; ++t) {
        want += std::norm(expected(c, t)) / 10;
        for (std::int64_t a = 0; a < kAntennas; ++a) {
          const ci8 v = sample(a, c, t);
          incoherent += (v.re * v.re + v.im * v.im) / 10.0;
        }
      }
      if (k % 25 == 0) {
        // Phases of fractions of 2^-32 turn, products in f32.
        ASSERT_NEAR(on[at], want, 1e-5 * want) << c << " " << k;
        ASSERT_NEAR(all[at], incoherent, 1e-6 * incoherent) << c << " " << k;
      }
      sum_on += double{on[at]};
      sum_off += double{off[at]};
    }
  }
  EXPECT_GT(sum_on, 4 * sum_off);
}

// A lost antenna is renormalised for exactly as long as it is away; where nothing came the codes
// are the mean, and counts are exact.
TEST_F(RecordedBeams, LossIsExact) {
  RecordedBeamsOptions o;
  o.outputs = {"out.fil"};
  o.weights = "f32";
  write();
  const std::int64_t f = frame_;
  auto s = run(write(2, 2 * f, 4 * f), o);
  EXPECT_EQ(s.lost_samples, static_cast<std::uint64_t>(2 * f * kChannels));
  EXPECT_NEAR(s.used_fraction, 1 - 2.0 * static_cast<double>(f) / (6.0 * kSpectra), 1e-12);
  const auto on = read_all(path("out_on.fil"));
  for (const std::int64_t t : {2 * f - 1, 2 * f, 3 * f + 5, 4 * f - 1, 4 * f}) {
    const bool lost = t >= 2 * f && t < 4 * f;
    const double want = std::norm(expected(5, t, lost ? 2 : -1));
    EXPECT_NEAR(on[static_cast<std::size_t>(5 * kSpectra + t)], want, 2e-5 * want) << t;
  }
  o.format = "u8";
  s = run(write(-1, 2 * f, 4 * f), o);
  EXPECT_EQ(s.n_scale_changes, 1);
  const auto codes = read_all(path("out_on.fil"));
  EXPECT_EQ(codes[static_cast<std::size_t>(3 * kSpectra + 3 * f)], 64);
  double mean = 0, n = 0;
  for (std::int64_t t = 0; t < kSpectra; ++t) {
    if (t >= 2 * f && t < 4 * f) continue;
    mean += double{codes[static_cast<std::size_t>(3 * kSpectra + t)]};
    ++n;
  }
  EXPECT_NEAR(mean / n, 64, 3);  // exponential powers: 4 % of the mean are cut from the level
}

// Voltages as VDIF: every code is the beam times one scale; read by our own reader.
TEST_F(RecordedBeams, VdifHoldsTheVoltages) {
  RecordedBeamsOptions o;
  o.outputs = {"out.vdif"};
  o.weights = "f32";
  for (const char* format : {"ci8", "ci4"}) {
    o.format = format;
    const auto s = run(write(), o);
    EXPECT_EQ(s.output, "voltage");
    EXPECT_EQ(s.vdif.at("samples_left_out"), 0);
    EXPECT_EQ(s.vdif.at("invalid_frames"), 0);
    RecordingOptions reading;
    reading.reference_hz = kFirst_hz;
    const auto recording = open_recording(path("out_on.vdif"), "vdif", reading);
    ASSERT_EQ(recording->info().n_ticks, kSpectra);
    EXPECT_EQ(recording->info().clock.epoch_tai_ns, clock().epoch_tai_ns);
    std::vector<ci8> spectra(kSpectra * kChannels);
    std::vector<AbsentSpan> absent;
    recording->read_spectra(0, kSpectra, spectra, absent, nullptr);
    double cross = 0, power = 0, codes = 0;
    for (std::int64_t t = 0; t < kSpectra; t += 7) {
      const ci8 got = spectra[static_cast<std::size_t>(t * kChannels + 2)];
      const cf64 want = expected(2, t);
      cross += got.re * want.real() + got.im * want.imag();
      power += std::norm(want);
      codes += got.re * got.re + got.im * got.im;
    }
    // One scale: what rounding leaves of the correlation. ci8 at rms 16: 1 - 1/(24 256); ci4 at
    // rms 3: 1 - 1/(24 9) and some clipping.
    const bool bytes = std::string(format) == "ci8";
    EXPECT_GT(cross / std::sqrt(power * codes), bytes ? 0.9997 : 0.985) << format;
    EXPECT_NEAR(std::sqrt(codes / 2 / std::ceil(kSpectra / 7.0)), bytes ? 16 : 3, bytes ? 2 : 0.4);
  }
}

TEST_F(RecordedBeams, Hdf5TellsHowToReadIt) {
  RecordedBeamsOptions o;
  o.outputs = {"out.h5"};
  o.format = "u8";
  o.integration = 5;
  o.scale_s = 0.05;
  const auto s = run(write(), o);
  EXPECT_EQ(s.n_scale_changes, 4);  // 0.2 s of data
  namespace h5 = io::h5;
  const h5::Handle file(H5Fopen(path("out.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  ASSERT_TRUE(file.valid());
  const std::string where = path("out.h5");
  EXPECT_EQ(h5::shape_of(file.get(), "values", where), (std::vector<hsize_t>{1000, 2, 1, 8}));
  std::vector<std::uint8_t> codes(1000 * 2 * 8);
  h5::read_all(file.get(), "values", H5T_NATIVE_UINT8, codes.data(), codes.size(), where);
  const auto scales = h5::open_group(file.get(), "scales", where);
  const auto from = h5::read_ints(scales.get(), "from_value", where);
  EXPECT_EQ(from, (std::vector<std::int64_t>{0, 250, 500, 750}));
  std::vector<float> scale(4 * 2 * 8), offset(4 * 2 * 8);
  h5::read_all(scales.get(), "scale", H5T_NATIVE_FLOAT, scale.data(), scale.size(), where);
  h5::read_all(scales.get(), "offset", H5T_NATIVE_FLOAT, offset.data(), offset.size(), where);
  // A code is within half a step of the power, with the scale that was in force.
  for (std::size_t k = 0; k < 1000; k += 83) {
    double want = 0;
    for (std::size_t t = 5 * k; t < 5 * k + 5; ++t)
      want += std::norm(expected(4, static_cast<std::int64_t>(t))) / 5;
    const std::size_t at = k / 250 * 16 + 4;
    const double code = std::clamp(want * double{scale[at]} + double{offset[at]}, 0.0, 255.0);
    // i8 weights: 1.03e-5 of the power in each of 6 weights, 5 sigma.
    EXPECT_NEAR(codes[k * 16 + 4], code, 0.5 + 0.02 * want * double{scale[at]}) << k;
  }
  const auto gulps = h5::open_group(file.get(), "gulps", where);
  EXPECT_EQ(h5::read_ints(gulps.get(), "first_value", where)[0], 0);
}

TEST_F(RecordedBeams, SaysWhatDoesNotFit) {
  const std::string in = write();
  const auto why = [&](RecordedBeamsOptions o) -> std::string {
    try {
      run(in, o);
    } catch (const Error& e) {
      return e.what();
    }
    return "taken";
  };
  RecordedBeamsOptions o;
  o.outputs = {"out.txt"};
  EXPECT_NE(why(o).find(".fil, .vdif or .h5"), std::string::npos);
  o.outputs = {"out.fil"};
  o.output = "voltage";
  EXPECT_NE(why(o).find("a filterbank holds power"), std::string::npos);
  o.output = "stokes-i";
  EXPECT_NE(why(o).find("n_pols = 2"), std::string::npos);
  o.output = "";
  o.first_channel = 5;
  o.n_channels = 4;
  EXPECT_NE(why(o).find("the spectra have 0 to 8"), std::string::npos);
  o.outputs = {"out.vdif"};
  o.first_channel = 0;
  o.n_channels = 5;
  EXPECT_NE(why(o).find("power of two of channels, not 5"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path("out.fil")));
}

}  // namespace
}  // namespace ryle::pipeline
