// SPDX-License-Identifier: BSD-3-Clause
// Tables of gains: what a file keeps of them, and visibilities divided by them.
#include "ryle/pipeline/calibrate/apply_gains.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/telescope/gains.hpp"

namespace ryle::pipeline {
namespace {

namespace fs = std::filesystem;
namespace h5 = io::h5;
using testing::HasSubstr;

constexpr std::int64_t kAntennas = 4, kChannels = 9;

template <class F>
std::string rejection_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class GainFiles : public testing::Test {
 protected:
  GainFiles() : folder_(fs::temp_directory_path() / ("ryle-gains-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~GainFiles() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  static Observation observation(int n_pols) {
    Observation o;
    o.frequency = {100e6, 1e6, kChannels};
    o.array.latitude_rad = 0.6;
    for (std::int64_t a = 0; a < kAntennas; ++a) {
      o.array.antennas.push_back({"A" + std::to_string(a), {10.0 * double(a), double(a * a), 0}});
      for (int pol = 0; pol < n_pols; ++pol) o.array.inputs.push_back({a, pol, 0, 0, 0, false});
    }
    return o;
  }

  /// Amplitude a + 1, three times that in Y, of groups of `step` channels.
  static GainTable table(int n_pols, std::int64_t step = 1, double delay_s = 0) {
    GainTable t;
    t.observation = observation(n_pols);
    t.n_pols = n_pols;
    const FrequencyAxis& axis = t.observation.frequency;
    for (std::int64_t c = 0; c < kChannels; c += step) {
      const std::int64_t last = std::min(kChannels, c + step) - 1;
      t.center_hz.push_back(0.5 * (axis.center_hz(c) + axis.center_hz(last)));
      t.width_hz.push_back(1e6 * static_cast<double>(last - c + 1));
    }
    t.middle_tai_ns = t.start_tai_ns = 1'700'000'000'000'000'000;
    t.flux_unit = "Jy";
    t.model = "test";
    for (std::int64_t a = 0; a < kAntennas; ++a)
      for (const double hz : t.center_hz)
        for (int pol = 0; pol < n_pols; ++pol)
          t.gains.push_back(std::polar(double(a + 1) * (pol == 0 ? 1 : 3),
                                       0.1 * double(a + pol) - 2 * kPi * delay_s * (hz - 104e6)));
    t.flags.assign(t.gains.size(), 0);
    t.sigma_rad.assign(t.gains.size(), 0.01);
    t.sigma_amplitude = t.chi2 = t.sigma_rad;
    return t;
  }

  /// Visibilities of a sky of 1 behind receivers of amplitude a + 1, three times that in Y.
  static VisibilityFile visibilities(int n_products, double y = 3) {
    VisibilityFile file;
    file.observation = observation(n_products == 1 ? 1 : 2);
    VisibilityDump& d = file.dumps.emplace_back();
    d.n_channels = kChannels;
    d.n_baselines = n_pairs(kAntennas);
    d.n_pol_products = n_products;
    d.counts.assign(static_cast<std::size_t>(kChannels * d.n_baselines * n_products), 5);
    for (std::int64_t c = 0; c < kChannels; ++c)
      for (std::int64_t b = 0; b < d.n_baselines; ++b)
        for (int q = 0; q < n_products; ++q) {
          const auto [i, j] = pair_of(b);
          const double of_i = double(i + 1) * (q / 2 == 1 ? y : 1);
          const double of_j = double(j + 1) * (q % 2 == 1 ? y : 1);
          d.data.push_back(cf32(static_cast<float>(of_i * of_j)));
        }
    return file;
  }

  void expect_amplitude(const VisibilityFile& file, double amplitude) const {
    for (const cf32& v : file.dumps.front().data) ASSERT_NEAR(std::abs(v), amplitude, 1e-4);
  }

  template <class T>
  void replace(const std::string& file, const char* group, const char* name, hid_t type,
               const std::vector<T>& values, const std::vector<hsize_t>& shape) {
    const h5::Handle f = h5::open_file(file, H5F_ACC_RDWR);
    const h5::Handle g = h5::open_group(f.get(), group, file);
    h5::remove(g.get(), name);
    h5::put_array(g.get(), name, type, values.data(), shape, file);
  }

  fs::path folder_;
};

TEST_F(GainFiles, AreAppliedToTheChannelsThatTheyWereFoundFrom) {
  for (const std::int64_t step : {1, 2, 4, 5, 9}) {
    VisibilityFile file = visibilities(4);
    const auto applied = apply_gains(file, table(2, step));
    EXPECT_EQ(applied.n_values, kChannels * n_pairs(kAntennas) * 4);
    expect_amplitude(file, 1);
  }
  VisibilityFile other = visibilities(4);
  other.observation.frequency.first_center_hz += 2e6;
  EXPECT_THAT(rejection_of([&] { apply_gains(other, table(2, 4)); }), HasSubstr("MHz"));
}

TEST_F(GainFiles, KeepTheirId) {
  const GainTable t = table(2, 4, 3e-9);
  write_gain_table(path("id.h5"), t, false);
  EXPECT_EQ(gain_table_id(read_gain_table(path("id.h5"))), gain_table_id(t));
  GainTable shifted = t;
  shifted.center_hz[0] += 1e3;
  EXPECT_NE(gain_table_id(shifted), gain_table_id(t));
  GainTable renamed = t;
  renamed.observation.array.antennas[1].name = "B";
  EXPECT_NE(gain_table_id(renamed), gain_table_id(t));
}

TEST_F(GainFiles, HoldXAndYByTheirCodes) {
  const std::string name = path("jones.h5");
  write_gain_table(name, table(2), false);
  replace<std::int64_t>(name, "Header", "jones_array", H5T_NATIVE_INT64, {-6, -5}, {2});
  const GainTable swapped = read_gain_table(name);
  EXPECT_NEAR(std::abs(swapped.gains[swapped.at(1, 0, 0)]), 6, 1e-5);
  EXPECT_NEAR(std::abs(swapped.gains[swapped.at(1, 0, 1)]), 2, 1e-5);
  replace<std::int64_t>(name, "Header", "jones_array", H5T_NATIVE_INT64, {-1, -2}, {2});
  EXPECT_THAT(rejection_of([&] { read_gain_table(name); }), HasSubstr("Jones term -1"));
  replace<std::int64_t>(name, "Header", "jones_array", H5T_NATIVE_INT64, {-6, -6}, {2});
  EXPECT_THAT(rejection_of([&] { read_gain_table(name); }), HasSubstr("twice"));
  write_gain_table(name, table(1), true);
  replace<std::int64_t>(name, "Header", "jones_array", H5T_NATIVE_INT64, {-6}, {1});
  EXPECT_EQ(gain_polarization(read_gain_table(name)), "YY");
  VisibilityFile of_x = visibilities(1);
  EXPECT_THAT(rejection_of([&] { apply_gains(of_x, read_gain_table(name)); }), HasSubstr("YY"));
}

TEST_F(GainFiles, OfOnePolarizationAreThoseOfTheData) {
  VisibilityFile of_y = visibilities(1);
  of_y.observation.provenance.notes["single_polarization"] = "YY";
  apply_gains(of_y, table(2));  // 3 (a + 1) each
  expect_amplitude(of_y, 1.0 / 9);
  VisibilityFile of_i = visibilities(1);
  of_i.observation.provenance.notes["single_polarization"] = "I";
  apply_gains(of_i, table(2));  // the mean of 1 and 9
  expect_amplitude(of_i, 1.0 / 5);
  GainTable y = table(1);
  y.observation.provenance.notes["single_polarization"] = "YY";
  write_gain_table(path("y.h5"), y, false);
  EXPECT_EQ(gain_polarization(read_gain_table(path("y.h5"))), "YY");
  EXPECT_EQ(gain_table_id(read_gain_table(path("y.h5"))), gain_table_id(y));
  VisibilityFile both = visibilities(4);
  EXPECT_THAT(rejection_of([&] { apply_gains(both, y); }), HasSubstr("YY alone"));
}

TEST_F(GainFiles, AreAppliedOnceAndSetTheUnit) {
  VisibilityFile file = visibilities(4);
  file.observation.flux_unit = "Jy";
  GainTable relative = table(2);
  relative.flux_unit.clear();
  const auto applied = apply_gains(file, relative);
  EXPECT_EQ(file.observation.flux_unit, "uncalibrated");
  EXPECT_EQ(gains_applied(file.observation), applied.table_id);
  ASSERT_EQ(applied.warnings.size(), 2U);
  EXPECT_THAT(applied.warnings[0], HasSubstr("Jy"));
  EXPECT_THAT(applied.warnings[1], HasSubstr("between X and Y"));
  EXPECT_EQ(file.observation.provenance.notes.count("xy_phase"), 1U);
  EXPECT_THAT(rejection_of([&] { apply_gains(file, relative); }), HasSubstr("before"));
  GainTable shared = table(2);
  for (std::size_t k = 0; k < shared.gains.size(); k += 2) shared.gains[k + 1] = shared.gains[k];
  VisibilityFile again = visibilities(4, 1);
  EXPECT_TRUE(apply_gains(again, shared).warnings.empty());
  EXPECT_EQ(again.observation.flux_unit, "Jy");
}

TEST_F(GainFiles, AsCsvFlagInputsWithoutAGain) {
  GainTable t = table(2);
  for (std::int64_t c = 0; c < kChannels; ++c) t.flags[t.at(2, c, 1)] = 1;
  write_gain_table(path("dead.csv"), t, false);
  EXPECT_EQ(read_gains_csv(path("dead.csv"), 2 * kAntennas)[5], cf64(0));
  VisibilityFile file = visibilities(4);
  const auto applied = apply_gains(file, gains_for(path("dead.csv"), file.observation));
  // Y of antenna 2: YY and one of XY, YX with 3 others, 3 products of its own.
  EXPECT_EQ(applied.n_flagged, kChannels * (3 * 2 + 3));
}

TEST_F(GainFiles, AsCsvAreRefusedWhereTheyTurnOverTheBand) {
  const std::string why =
      rejection_of([&] { write_gain_table(path("turn.csv"), table(2, 1, 100e-9), false); });
  EXPECT_THAT(why, HasSubstr("100 ns"));
  EXPECT_THAT(why, HasSubstr(".h5"));
  EXPECT_FALSE(fs::exists(path("turn.csv")));
  write_gain_table(path("flat.csv"), table(2, 1, 5e-9), false);
}

TEST_F(GainFiles, ThatAreHostileAreRefused) {
  const std::string name = path("bad.h5");
  write_gain_table(name, table(2), false);
  std::vector<double> hz = table(2).center_hz;
  hz[3] = std::numeric_limits<double>::quiet_NaN();
  replace(name, "Header", "freq_array", H5T_NATIVE_DOUBLE, hz, {kChannels});
  EXPECT_THAT(rejection_of([&] { read_gain_table(name); }), HasSubstr("channel 3"));
  for (const char* axis : {"freq_array", "channel_width"})
    replace<double>(name, "Header", axis, H5T_NATIVE_DOUBLE, {}, {0});
  const h5::Handle complex = h5::complex_type(), truth = h5::bool_type();
  replace<cf32>(name, "Data", "gains", complex.get(), {}, {kAntennas, 0, 1, 2});
  replace<std::int8_t>(name, "Data", "flags", truth.get(), {}, {kAntennas, 0, 1, 2});
  EXPECT_THAT(rejection_of([&] { read_gain_table(name); }), HasSubstr("0 frequencies"));
}

}  // namespace
}  // namespace ryle::pipeline
