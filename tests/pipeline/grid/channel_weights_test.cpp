// SPDX-License-Identifier: BSD-3-Clause
// Weights and flags of every channel, from files to the map, beside the sum over all pairs.
#include <cmath>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/map/map_projection.hpp"
#include "tests/io/scan/scan_files.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::size_t kSamples = 900, kOwnChannels = 3;
constexpr double kSigma_rad = 2.0 / 60 * kDegree_rad;

struct WeighedScans {
  std::vector<double> ra, dec, value, weight, flag;  // the last three [sample][channel]
};
WeighedScans weighed_scans() {
  WeighedScans s;
  std::mt19937 random(21);
  std::uniform_real_distribution<double> u(-0.15, 0.15), w(0.1, 2);
  for (std::size_t k = 0; k < kSamples; ++k) {
    s.ra.push_back(40 + u(random) / std::cos(50 * kDegree_rad));
    s.dec.push_back(50 + u(random));
    for (std::size_t c = 0; c < kOwnChannels; ++c) {
      s.value.push_back(static_cast<float>(u(random) + static_cast<double>(c)));
      s.weight.push_back(k % 41 == c ? 0 : static_cast<float>(w(random)));
      s.flag.push_back(k % 17 == 2 * c ? 1 : 0);
    }
  }
  return s;
}

/// Value and count of a channel at a place: all pairs, in double.
std::pair<double, int> direct_sum(const WeighedScans& s, std::size_t c, double ra, double dec) {
  double n = 0, d = 0;
  int count = 0;
  for (std::size_t k = 0; k < kSamples; ++k) {
    const std::size_t at = k * kOwnChannels + c;
    const double a = (s.dec[k] - dec) * kDegree_rad, b = (s.ra[k] - ra) * kDegree_rad;
    const double h = std::pow(std::sin(a / 2), 2) + std::cos(dec * kDegree_rad) *
                                                        std::cos(s.dec[k] * kDegree_rad) *
                                                        std::pow(std::sin(b / 2), 2);
    const double theta = 2 * std::asin(std::sqrt(h));
    if (s.flag[at] != 0 || s.weight[at] <= 0 || !(theta < 3 * kSigma_rad)) continue;
    const double w = s.weight[at] * std::exp(-theta * theta / (2 * kSigma_rad * kSigma_rad));
    n += w * s.value[at];
    d += w;
    ++count;
  }
  return {n / d, count};
}

std::string write_weighed_hdf5(const Scratch& scratch, const WeighedScans& s) {
  const std::string path = scratch.file("weighed.h5");
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  put(file, "ra", H5T_NATIVE_DOUBLE, s.ra.data(), {kSamples});
  put(file, "dec", H5T_NATIVE_DOUBLE, s.dec.data(), {kSamples});
  put(file, "Ta", H5T_NATIVE_DOUBLE, s.value.data(), {kSamples, kOwnChannels});
  put(file, "weights", H5T_NATIVE_DOUBLE, s.weight.data(), {kSamples, kOwnChannels});
  const std::vector<std::uint8_t> bytes(s.flag.begin(), s.flag.end());
  put(file, "flags", H5T_NATIVE_UINT8, bytes.data(), {kSamples, kOwnChannels});
  H5Fclose(file);
  return path;
}

std::string write_weighed_sdfits(const Scratch& scratch, const WeighedScans& s) {
  const std::string path = scratch.file("weighed.fits");
  test::write_table(path, "SINGLE DISH",
                    {{"DATA", "3D", "K", s.value, {}, ""},
                     {"CRVAL2", "1D", "deg", s.ra, {}, ""},
                     {"CRVAL3", "1D", "deg", s.dec, {}, ""},
                     {"FLAGS", "3B", "", s.flag, {}, ""},
                     {"weights", "3E", "", s.weight, {}, ""}},
                    {{"CTYPE1", "FREQ"},
                     {"CRVAL1", "", 1.42e9},
                     {"CRPIX1", "", 1},
                     {"CDELT1", "", -1e4},  // read from the last channel on
                     {"CTYPE2", "RA"},
                     {"CTYPE3", "DEC"},
                     {"RADESYS", "ICRS"}});
  return path;
}

TEST(ChannelWeights, AreThoseOfTheDirectSum) {
  const Scratch scratch;
  const WeighedScans scans = weighed_scans();
  for (const bool sdfits : {false, true}) {
    SCOPED_TRACE(sdfits ? "SDFITS" : "HDF5");
    GridOptions o = options_of(scratch, sdfits ? write_weighed_sdfits(scratch, scans)
                                               : write_weighed_hdf5(scratch, scans));
    o.scans.weights = "column:weights";
    o.kernel = "gauss:sigma=2arcmin,radius=3sigma";
    o.target = "center=40,50 size=0.2x0.2deg cell=2arcmin proj=SIN";
    std::vector<long> shape;
    for (const auto precision : {grid::Precision::f64, grid::Precision::f32}) {
      o.precision = precision;
      o.block_samples = precision == grid::Precision::f64 ? kGridBlockSamples : 250;
      const GridSummary s = grid_scans(o);
      EXPECT_GT(s.absent.flagged, 0);
      EXPECT_GT(s.absent.bad_weight, 0);
      ASSERT_FALSE(s.choices.empty());
      EXPECT_NE(s.choices[0].find("flags"), std::string::npos);
      EXPECT_EQ(s.plan.absent_bytes, 0) << "room for the weights of all channels is in the plan";
      const auto value = read_cube(o.output, shape);
      const auto count = read_cube(scratch.file("map.count.fits"), shape);
      ASSERT_EQ(shape, (std::vector<long>{6, 6, 3}));
      const MapProjection map = MapProjection::read(o.output);
      std::vector<double> lon(36), lat(36);
      map.directions(0, 6, lon.data(), lat.data());
      for (std::size_t c = 0; c < kOwnChannels; ++c)
        for (std::size_t i = 0; i < 36; ++i) {
          const std::size_t stored = sdfits ? kOwnChannels - 1 - c : c;
          const auto [want, n] = direct_sum(scans, stored, lon[i], lat[i]);
          EXPECT_NEAR(value[c * 36 + i], want, 3e-6) << c << " " << i;
          EXPECT_EQ(count[c * 36 + i], n) << c << " " << i;
        }
    }
    o.scans.flags = "none";
    EXPECT_EQ(grid_scans(o).absent.flagged, 0);
    o.scans.flags = "nothing";
    EXPECT_THROW(grid_scans(o), Error);
    o.scans.flags = "FLAGS";
    if (sdfits) {
      EXPECT_GT(grid_scans(o).absent.flagged, 0);
    }
  }
}

TEST(ChannelWeights, MediansHaveThem) {
  const Scratch scratch;
  GridOptions o = options_of(scratch, write_weighed_hdf5(scratch, weighed_scans()));
  o.scans.weights = "column:weights";
  o.beam_fwhm_rad = 5.0 / 60 * kDegree_rad;
  o.kernel = "wmedian";
  o.target = "center=40,50 size=0.2x0.2deg cell=2arcmin proj=SIN";
  std::vector<long> shape;
  grid_scans(o);
  const auto once = read_cube(o.output, shape);
  o.block_samples = 250;
  grid_scans(o);
  expect_same_bits(read_cube(o.output, shape), once, "in blocks");
  o.implementation = "reference";
  grid_scans(o);
  expect_same_bits(read_cube(o.output, shape), once, "by sorting");
}

// Doubles reach the file: what float32 cannot tell apart.
TEST(GridPrecision, DoublesAreWrittenAsSuch) {
  const Scratch scratch;
  WeighedScans scans = weighed_scans();
  for (double& v : scans.value) v = 1 + 1e-9 * v;  // values are float: all are 1
  GridOptions o = options_of(scratch, write_weighed_hdf5(scratch, scans));
  o.scans.weights = "column:weights";
  o.kernel = "gauss:sigma=2arcmin,radius=3sigma";
  o.precision = grid::Precision::f64;
  o.noise = true;
  const auto bits_of = [](const std::string& path) {
    fitsfile* file = nullptr;
    int status = 0, bits = 0;
    fits_open_diskfile(&file, path.c_str(), READONLY, &status);
    fits_get_img_type(file, &bits, &status);
    int data_sum = 0, header_sum = 0;
    fits_verify_chksum(file, &data_sum, &header_sum, &status);
    fits_close_file(file, &status);
    EXPECT_EQ(status, 0) << path;
    EXPECT_EQ(data_sum, 1) << path;
    EXPECT_EQ(header_sum, 1) << path;
    return bits;
  };
  for (const char* target :
       {"center=40,50 size=0.2x0.2deg cell=2arcmin proj=SIN", "healpix:1024"}) {
    o.target = target;
    grid_scans(o);
    if (o.target == "healpix:1024") continue;
    for (const char* kind : {"", ".weight", ".noise"})
      EXPECT_EQ(bits_of(scratch.file(std::string("map") + kind + ".fits")), -64) << kind;
    EXPECT_EQ(bits_of(scratch.file("map.count.fits")), 32);
    fitsfile* file = nullptr;
    int status = 0;
    std::vector<double> weight(36);
    fits_open_diskfile(&file, scratch.file("map.weight.fits").c_str(), READONLY, &status);
    fits_read_img(file, TDOUBLE, 1, 36, nullptr, weight.data(), nullptr, &status);
    fits_close_file(file, &status);
    bool beyond_float = false;
    for (const double w : weight)
      beyond_float = beyond_float || w != static_cast<double>(static_cast<float>(w));
    EXPECT_TRUE(beyond_float);
  }
  fitsfile* file = nullptr;
  int status = 0, type = 0;
  long repeat = 0, width = 0;
  fits_open_diskfile(&file, o.output.c_str(), READONLY, &status);
  fits_movabs_hdu(file, 2, nullptr, &status);
  fits_get_coltype(file, 2, &type, &repeat, &width, &status);
  std::vector<double> row(3);
  fits_read_col(file, TDOUBLE, 2, 1, 1, 3, nullptr, row.data(), nullptr, &status);
  fits_close_file(file, &status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(type, TDOUBLE);
  EXPECT_EQ(repeat, 3);
  for (const double v : row) EXPECT_NEAR(v, 1, 1e-12);
}

}  // namespace
}  // namespace ryle::pipeline
