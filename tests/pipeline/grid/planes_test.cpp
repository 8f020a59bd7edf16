// SPDX-License-Identifier: BSD-3-Clause
// What planes of a map stand for: polarizations, beams, extensions of one file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "tests/io/scan/scan_files.hpp"
#include "tests/pipeline/grid/scans_support.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::size_t kTimes = 600, kChannels = 4;
constexpr double kBeam_deg = 3.0 / 60;

struct Sky {
  std::vector<double> ra, dec;
};
// A field of 0.3 deg about (40, 50), several samples a beam.
Sky some_sky() {
  Sky sky;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> u(-0.15, 0.15);
  for (std::size_t t = 0; t < kTimes; ++t) {
    sky.ra.push_back(40 + u(random) / std::cos(50 * kDegree_rad));
    sky.dec.push_back(50 + u(random));
  }
  return sky;
}

// [polarization][time][channel] as HiFAST has it.
template <class Value>
std::string write_hifast(const Scratch& scratch, const std::string& name, const char* quantity,
                         const Value& value) {
  const Sky sky = some_sky();
  std::vector<float> values;
  for (std::size_t p = 0; p < 2; ++p)
    for (std::size_t t = 0; t < kTimes; ++t)
      for (std::size_t c = 0; c < kChannels; ++c)
        values.push_back(static_cast<float>(value(p, sky.ra[t], sky.dec[t], c)));
  const double freq_mhz[kChannels] = {1400, 1410, 1420, 1430};
  const std::string path = scratch.file(name);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(H5Gcreate2(file, "S", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  put(file, "S/ra", H5T_NATIVE_DOUBLE, sky.ra.data(), {kTimes});
  put(file, "S/dec", H5T_NATIVE_DOUBLE, sky.dec.data(), {kTimes});
  put(file, "S/freq", H5T_NATIVE_DOUBLE, freq_mhz, {kChannels});
  put(file, quantity, H5T_NATIVE_FLOAT, values.data(), {2, kTimes, kChannels});
  H5Fclose(file);
  return path;
}
std::string write_two_polarizations(const Scratch& scratch) {
  return write_hifast(
      scratch, "two.hdf5", "S/Ta", [](std::size_t p, double ra, double dec, auto c) {
        return 10 * static_cast<double>(p) + static_cast<double>(c) + (ra - 40) + 2 * (dec - 50);
      });
}

GridOptions options_about(const Scratch& scratch, const std::string& file) {
  GridOptions o = options_of(scratch, file);
  o.beam_fwhm_rad = kBeam_deg * kDegree_rad;
  o.kernel = "gauss";
  o.target = "center=40,50 size=0.2x0.2deg cell=1arcmin proj=SIN";
  return o;
}

std::string card_of(const std::string& path, const char* name, int hdu = 1) {
  fitsfile* file = nullptr;
  int status = 0;
  char value[80] = "";
  fits_open_diskfile(&file, path.c_str(), READONLY, &status);
  fits_movabs_hdu(file, hdu, nullptr, &status);
  fits_read_key(file, TSTRING, name, value, nullptr, &status);
  int ignored = 0;
  fits_close_file(file, &ignored);
  return status == 0 ? value : "";
}

std::vector<float> map_of(const GridOptions& o) {
  grid_scans(o);
  std::vector<long> shape;
  return read_cube(o.output, shape);
}
std::vector<float> one_behind_the_other(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(GridPlanes, PolarizationsStandOnAStokesAxis) {
  const Scratch scratch;
  GridOptions o = options_about(scratch, write_two_polarizations(scratch));
  o.channels = "1:3";
  o.scans.polarization = "XX";
  auto want = map_of(o);
  o.scans.polarization = "YY";
  want = one_behind_the_other(want, map_of(o));

  std::vector<long> shape;
  for (const char* choice : {"XX,YY", "all", "xx,yy"}) {
    o.scans.polarization = choice;
    const GridSummary s = grid_scans(o);
    EXPECT_EQ(s.n_channels, 4);
    expect_same_bits(read_cube(o.output, shape), want, choice);
    EXPECT_EQ(shape, (std::vector<long>{12, 12, 2, 2}));
    EXPECT_EQ(card_of(o.output, "CTYPE4"), "STOKES");
    EXPECT_EQ(std::stod(card_of(o.output, "CRVAL4")), -5) << "XX";
    EXPECT_EQ(std::stod(card_of(o.output, "CDELT4")), -1) << "then YY";
    EXPECT_EQ(std::stod(card_of(o.output, "CRVAL3")), 1.41e9);
    read_cube(scratch.file("map.weight.fits"), shape);
    EXPECT_EQ(shape, (std::vector<long>{12, 12, 1})) << "a weight all of them share";
  }
  // One channel at a time, in pieces, and as the sum of two files.
  o.memory_bytes = limit_for(o, 1);
  EXPECT_EQ(plan_grid(o).plan.n_parts, 4);
  expect_same_bits(map_of(o), want, "in parts");
  o.memory_bytes = 0;
  o.block_samples = 200;
  const auto pieces = map_of(o);
  GridOptions part = o;
  GridMergeOptions merge;
  part.output.clear();
  part.n_shards = 2;
  for (part.shard = 1; part.shard <= 2; ++part.shard) {
    part.accumulate = scratch.file("part" + std::to_string(part.shard) + ".rgrid");
    grid_scans(part);
    merge.files.push_back(part.accumulate);
  }
  merge.output = scratch.file("merged.fits");
  merge_grids(merge);
  expect_same_bits(read_cube(merge.output, shape), pieces, "merged");
  EXPECT_EQ(shape, (std::vector<long>{12, 12, 2, 2}));
  EXPECT_EQ(std::stod(card_of(merge.output, "CDELT4")), -1);
  EXPECT_EQ(std::stod(card_of(merge.output, "CRVAL3")), 1.41e9);
  merge.files.pop_back();
  merge.overwrite = true;
  EXPECT_THROW(merge_grids(merge), ConfigError) << "half of the planes";

  o.scans.polarization = "YY,XX,RR";
  EXPECT_THROW(grid_scans(o), ConfigError) << "uneven steps";
  o.scans.polarization = "XX,TOTAL";
  EXPECT_THROW(grid_scans(o), ConfigError) << "no code of FITS";
  o.scans.polarization = "XX,YY";
  o.target = "healpix:1024";
  EXPECT_THROW(grid_scans(o), UnsupportedError) << "a table has no such axis";
}

// Rows of a polarization of their own (GBT), with weights of their own.
TEST(GridPlanes, PolarizationsInRowsKeepTheirWeights) {
  const Scratch scratch;
  const Sky sky = some_sky();
  std::vector<double> data, ra, dec, stokes, tsys;
  for (std::size_t t = 0; t < kTimes; ++t)
    for (int p = 0; p < 2; ++p) {
      for (int c = 0; c < 3; ++c) data.push_back(10 * p + c + 20 * (sky.dec[t] - 50));
      ra.push_back(sky.ra[t]);
      dec.push_back(sky.dec[t]);
      stokes.push_back(-5 - p);
      tsys.push_back(20 + 3 * p + static_cast<double>(t % 7));
    }
  const auto ones = std::vector<double>(2 * kTimes, 1);
  const auto write = [&](const std::string& path) {
    test::write_table(path, "SINGLE DISH",
                      {{"DATA", "3E", "K", data, {}, ""},
                       {"CRVAL2", "1D", "deg", ra, {}, ""},
                       {"CRVAL3", "1D", "deg", dec, {}, ""},
                       {"CRVAL4", "1I", "", stokes, {}, ""},
                       {"TSYS", "1D", "K", tsys, {}, ""},
                       {"EXPOSURE", "1D", "s", ones, {}, ""}},
                      {{"CTYPE1", "FREQ"},
                       {"CRVAL1", "", 1.42e9},
                       {"CRPIX1", "", 1},
                       {"CDELT1", "", 1e4},
                       {"CTYPE2", "RA"},
                       {"CTYPE3", "DEC"},
                       {"CTYPE4", "STOKES"},
                       {"RADESYS", "ICRS"}});
  };
  const std::string path = scratch.file("rows.fits");
  write(path);
  GridOptions o = options_about(scratch, path);
  o.scans.weights = "tsys";
  std::vector<float> want, weights;
  std::vector<long> shape;
  for (const char* p : {"XX", "YY"}) {
    o.scans.polarization = p;
    want = one_behind_the_other(want, map_of(o));
    const auto weight = read_cube(scratch.file("map.weight.fits"), shape);
    for (int c = 0; c < 3; ++c) weights = one_behind_the_other(weights, weight);
  }
  o.scans.polarization = "XX,YY";
  expect_same_bits(map_of(o), want, "values");
  expect_same_bits(read_cube(scratch.file("map.weight.fits"), shape), weights, "weights");
  EXPECT_EQ(shape, (std::vector<long>{12, 12, 3, 2}));

  dec[5] += 0.01;
  std::filesystem::remove(path);
  write(path);
  try {
    grid_scans(o);
    FAIL() << "polarizations of different places";
  } catch (const ConfigError& e) {
    EXPECT_NE(std::string(e.what()).find("not measured at the same places"), std::string::npos);
  }
}

TEST(GridPlanes, OneFileHoldsAllPlanes) {
  const Scratch scratch;
  GridOptions o = options_about(scratch, write_two_polarizations(scratch));
  o.noise = true;
  for (const char* target : {"", "healpix:2048"}) {
    if (*target != '\0') o.target = target;
    o.output = scratch.file("apart.fits");
    o.one_file = false;
    grid_scans(o);
    o.output = scratch.file("one.fits");
    o.one_file = true;
    const GridSummary s = grid_scans(o);
    EXPECT_EQ(s.products, (std::vector<std::string>{o.output}));
    EXPECT_FALSE(std::filesystem::exists(scratch.file("one.weight.fits")));
    const bool table = *target != '\0';
    fitsfile* file = nullptr;
    int status = 0, n = 0;
    fits_open_diskfile(&file, o.output.c_str(), READONLY, &status);
    fits_get_num_hdus(file, &n, &status);
    EXPECT_EQ(n, table ? 5 : 4);
    for (int hdu = 1; hdu <= n; ++hdu) {
      int data = 0, all = 0;
      fits_movabs_hdu(file, hdu, nullptr, &status);
      fits_verify_chksum(file, &data, &all, &status);
      EXPECT_EQ(all, 1) << target << " HDU " << hdu;
      EXPECT_EQ(data, 1) << target << " HDU " << hdu;
    }
    const char* const names[] = {"WEIGHT", "COUNT", "NOISE"};
    const char* const apart[] = {"apart.weight.fits", "apart.count.fits", "apart.noise.fits"};
    for (int k = 0; k < 3 && !table; ++k) {
      fits_movnam_hdu(file, IMAGE_HDU, const_cast<char*>(names[k]), 0, &status);
      std::vector<long> shape;
      const auto want = read_cube(scratch.file(apart[k]), shape);
      std::vector<float> got(want.size());
      fits_read_img(file, TFLOAT, 1, static_cast<LONGLONG>(got.size()), nullptr, got.data(),
                    nullptr, &status);
      expect_same_bits(got, want, names[k]);
    }
    if (table) fits_movnam_hdu(file, BINARY_TBL, const_cast<char*>("COUNT"), 0, &status);
    fits_close_file(file, &status);
    EXPECT_EQ(status, 0);
  }
  o.output.clear();
  o.picture = scratch.file("map.png");
  EXPECT_THROW(grid_scans(o), ConfigError);
}

TEST(GridPlanes, GainsOfBeamsMakeFluxes) {
  const Scratch scratch;
  const auto seven = [](std::size_t, double, double, auto) { return 7.0; };
  const std::string file = write_hifast(scratch, "x-M02_W.hdf5", "S/Ta", seven);
  const std::string gains = scratch.file("gains.txt");
  std::ofstream(gains) << "beam MHz K/Jy  # three\nM01 1400 99\n2, 1400, 10\nM02 1420 14\n";
  GridOptions o = options_about(scratch, file);
  o.normalize = "none";
  o.gains = gains;
  const GridSummary s = grid_scans(o);
  EXPECT_EQ(s.unit, "Jy/beam");
  std::vector<long> shape;
  const auto map = read_cube(o.output, shape);
  EXPECT_EQ(card_of(o.output, "BUNIT"), "Jy/beam");
  const double want[kChannels] = {7.0 / 10, 7.0 / 12, 7.0 / 14, 7.0 / 14};
  const std::size_t middle = 6 * 12 + 6;
  for (std::size_t c = 0; c < kChannels; ++c)
    EXPECT_NEAR(map[c * 144 + middle], want[c], 1e-6) << c;  // two roundings to float32
  // Then they are multiplied as other fluxes are.
  o.normalize = "auto";
  EXPECT_NEAR(map_of(o)[middle], 0.7 * grid_scans(o).area_factor, 1e-6);
  const auto message = [&](const std::string& path, const std::string& text) -> std::string {
    std::ofstream(gains) << text;
    o.files = {path};
    try {
      grid_scans(o);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message(file, "M01 16\n").find("no gain of beam 2"), std::string::npos);
  EXPECT_NE(message(file, "M02 16\nM02 -1\n").find("line 2"), std::string::npos);
  EXPECT_NE(message(write_hifast(scratch, "y-M02_W.hdf5", "S/flux", seven), "M02 16\n")
                .find("divide kelvins"),
            std::string::npos);
  EXPECT_NE(message(write_hifast(scratch, "z.hdf5", "S/Ta", seven), "M02 16\n").find("which beam"),
            std::string::npos);
}

// A point source in the middle of a pixel: each sample sees it through the beam, so that the pixel
// has exactly its flux, however few samples there are and wherever they lie.
TEST(GridPlanes, NormalizedByTheBeamAPointSourceHasItsFlux) {
  const Scratch scratch;
  constexpr double kFlux = 5;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto source = [&](std::size_t, double ra, double dec, auto c) {
    const double a = (ra - 40) * kDegree_rad, d = dec * kDegree_rad, d0 = 50 * kDegree_rad;
    const double h = std::pow(std::sin((d - d0) / 2), 2) +
                     std::cos(d) * std::cos(d0) * std::pow(std::sin(a / 2), 2);
    const double x = 2 * std::asin(std::sqrt(h)) / (kBeam_deg * kDegree_rad);
    if (c == 2 && ra > 40) return nan;  // half of them are absent in one channel
    return (c + 1.0) * kFlux * std::exp2(-4 * x * x);
  };
  GridOptions o = options_about(scratch, write_hifast(scratch, "point.hdf5", "S/Ta", source));
  const std::size_t middle = 6 * 12 + 6;
  for (const char* kernel : {"gauss", "gauss:3arcmin", "mean", "jinc",
                             "ellipse:major=3arcmin,minor=2arcmin,pa=30deg", "median", "wmedian"}) {
    o.kernel = kernel;
    const bool median = o.kernel.find("median") != std::string::npos;
    o.normalize = "auto";
    const auto plain = map_of(o);
    EXPECT_LT(plain[middle], 0.95 * kFlux) << kernel << " samples are not all at its center";
    o.normalize = "beam";
    for (const bool in_parts : {false, true}) {
      if (in_parts && o.kernel != "gauss" && o.kernel != "wmedian") continue;
      o.block_samples = in_parts && !median ? 150 : kGridBlockSamples;
      o.memory_bytes = in_parts ? limit_for(o, 1) : 0;
      const auto map = map_of(o);
      // Values are float32 (6e-8 each), weights to 1e-6 of the largest (grid.md 4).
      for (std::size_t c = 0; c < kChannels; ++c)
        EXPECT_NEAR(map[c * 144 + middle], (static_cast<double>(c) + 1) * kFlux,
                    4e-6 * (static_cast<double>(c) + 1) * kFlux)
            << kernel << " channel " << c << (in_parts ? " in parts" : "");
    }
  }
  o.kernel = "gauss";
  o.accumulate = scratch.file("sums.rgrid");
  EXPECT_THROW(grid_scans(o), UnsupportedError);
  o.accumulate.clear();
  o.kernel = "gauss:3arcmin";
  o.beam_fwhm_rad = 0;
  EXPECT_THROW(grid_scans(o), ConfigError) << "no beam";
  o.normalize = "flux";
  EXPECT_THROW(grid_scans(o), ConfigError);
}

}  // namespace
}  // namespace ryle::pipeline
