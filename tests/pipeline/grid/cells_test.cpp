// SPDX-License-Identifier: BSD-3-Clause
#include <fitsio.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/map/cell_table.hpp"
#include "ryle/io/map/healpix.hpp"
#include "ryle/pipeline/grid/grid_target.hpp"
#include "ryle/pipeline/grid/sky_cells.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;

class SkyCellsTest : public testing::Test {
 protected:
  SkyCellsTest()
      : folder_(fs::temp_directory_path() / ("ryle_sky_cells_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~SkyCellsTest() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

MapMetadata some_metadata() {
  MapMetadata f;
  f.unit = "Jy/beam";
  f.object = "M33";
  f.telescope = "FAST";
  f.frequency = {1420.0e6, 5e3, 3};
  f.spectral_frame = "LSRK";
  f.observer_frame = "TOPOCENT";
  f.observed_utc = "2024-01-02T03:04:05";
  f.rest_frequency_hz = 1420.405751768e6;
  f.beam_fwhm_deg = 0.06;
  f.beam_minor_deg = 0.05;
  f.beam_position_angle_deg = 30;
  f.area_factor = 1.25;
  f.history = {"ryle grid some.hdf5"};
  return f;
}

// A plane whose value in a cell is that of its index.
void write_cells(const SkyCells& cells, const std::string& path, std::int64_t n_channels,
                 const MapMetadata& metadata) {
  fs::remove(path);
  const auto writer = cells.create(path, n_channels, CubeValues::float32, metadata, false);
  std::vector<float> plane(static_cast<std::size_t>(cells.n_cells()));
  for (std::int64_t c = 0; c < n_channels; ++c) {
    for (std::size_t i = 0; i < plane.size(); ++i)
      plane[i] = static_cast<float>(i) + 10'000 * static_cast<float>(c);
    writer->append(plane.data());
  }
  EXPECT_FALSE(fs::exists(path)) << "nothing under the final name before it is whole";
  writer->add_history({"known at the end"});
  writer->publish();
}

class Fits {
 public:
  explicit Fits(const std::string& path, int hdu = 1) {
    fits_open_diskfile(&file_, path.c_str(), READONLY, &status_);
    fits_movabs_hdu(file_, hdu, nullptr, &status_);
    EXPECT_EQ(status_, 0) << path;
  }
  ~Fits() { fits_close_file(file_, &status_); }
  Fits(const Fits&) = delete;
  Fits& operator=(const Fits&) = delete;
  std::string text(const char* name) {
    char value[FLEN_VALUE] = "";
    int status = 0;
    fits_read_key_str(file_, name, value, nullptr, &status);
    fits_clear_errmsg();
    return status == 0 ? value : "(none)";
  }
  double number(const char* name) {
    double value = 0;
    int status = 0;
    fits_read_key_dbl(file_, name, &value, nullptr, &status);
    fits_clear_errmsg();
    return status == 0 ? value : static_cast<double>(NAN);
  }
  /// Numbers of a column, [row][element].
  std::vector<double> column(const char* name) {
    int number = 0, type = 0, status = 0;
    long repeat = 0, width = 0, n_rows = 0;
    std::string text = name;
    fits_get_colnum(file_, CASEINSEN, text.data(), &number, &status);
    fits_get_coltype(file_, number, &type, &repeat, &width, &status);
    fits_get_num_rows(file_, &n_rows, &status);
    std::vector<double> values(static_cast<std::size_t>(n_rows * repeat));
    fits_read_col_dbl(file_, number, 1, 1, n_rows * repeat, 0, values.data(), nullptr, &status);
    EXPECT_EQ(status, 0) << name;
    return values;
  }
  std::string name_in_row(long row) {
    char value[100] = "";
    char* to = value;
    int status = 0;
    fits_read_col_str(file_, 1, row, 1, 1, nullptr, &to, nullptr, &status);
    return value;
  }
  bool checksums_are_right() {
    int data = 0, whole = 0, status = 0;
    fits_verify_chksum(file_, &data, &whole, &status);
    return data == 1 && whole == 1;
  }

 private:
  fitsfile* file_ = nullptr;
  int status_ = 0;
};

bool installed(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  char line[512];
  while (pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr) text += line;
  if (pipe != nullptr) pclose(pipe);
  return text;
}
/// fitsverify has nothing to say, where it is installed. (wcslib and astropy: tests/peers.)
void expect_good_fits(const std::string& path) {
  if (installed("fitsverify")) {
    const std::string said = output_of("fitsverify -q '" + path + "'");
    EXPECT_NE(said.find("verification OK"), std::string::npos) << said;
  }
}

void expect_same_directions(const SkyCells& a, const SkyCells& b) {
  ASSERT_EQ(a.n_cells(), b.n_cells());
  const auto n = static_cast<std::size_t>(a.n_cells());
  std::vector<double> lon(n), lat(n), lon2(n), lat2(n);
  a.directions(0, a.n_cells(), lon.data(), lat.data());
  b.directions(0, b.n_cells(), lon2.data(), lat2.data());
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_EQ(std::isnan(lon[i]), std::isnan(lon2[i])) << i;
    if (std::isnan(lon[i])) continue;
    ASSERT_NEAR(std::remainder(lon[i] - lon2[i], 360), 0, 1e-10) << i;
    ASSERT_NEAR(lat[i], lat2[i], 1e-10) << i;
  }
  // Any piece is that of the whole.
  double lon3[7], lat3[7];
  const std::int64_t first = a.n_cells() / 2 - 3;
  a.directions(first, 7, lon3, lat3);
  for (int k = 0; k < 7; ++k) {
    const auto i = static_cast<std::size_t>(first + k);
    ASSERT_TRUE(lon3[k] == lon[i] || std::isnan(lon[i]));
    ASSERT_TRUE(lat3[k] == lat[i] || std::isnan(lat[i]));
  }
}

MapRequest some_map(SkyFrame frame, const std::string& projection) {
  MapRequest r;
  r.frame = frame;
  r.projection = projection;
  r.center_longitude_deg = 359.9;
  r.center_latitude_deg = 75;
  r.cell_deg = 0.02;
  r.width = 13;
  r.height = 7;
  return r;
}

TEST_F(SkyCellsTest, MapsSayWhereTheyAre) {
  for (const auto& [frame, projection] : {std::pair{SkyFrame::icrs, "SIN"},
                                          {SkyFrame::fk5, "TAN"},
                                          {SkyFrame::galactic, "ZEA"},
                                          {SkyFrame::icrs, "AIT"},
                                          {SkyFrame::icrs, "CAR"}}) {
    const auto cells = map_cells(MapProjection::make(some_map(frame, projection)));
    EXPECT_EQ(cells->description(), std::string("13 x 7 ") + projection);
    const std::string path = file("map.fits");
    write_cells(*cells, path, 3, some_metadata());
    expect_same_directions(*cells, *map_cells(MapProjection::read(path)));
    EXPECT_EQ(MapProjection::read(path).frame(), frame);
    const auto again = cells_from_definition(cells->definition());
    expect_same_directions(*cells, *again);
    EXPECT_EQ(again->definition(), cells->definition());
    expect_good_fits(path);
    Fits f(path);
    EXPECT_EQ(f.text("RADESYS"), frame == SkyFrame::fk5    ? "FK5"
                                 : frame == SkyFrame::icrs ? "ICRS"
                                                           : "(none)");
    EXPECT_EQ(std::isnan(f.number("EQUINOX")), frame != SkyFrame::fk5);
    EXPECT_FALSE(std::isnan(f.number("LONPOLE")) || std::isnan(f.number("LATPOLE")));
    EXPECT_LT(f.number("CDELT1"), 0);
    EXPECT_TRUE(f.checksums_are_right());
  }
}

// cfitsio sums a header as it stands: of any length, with the end where it will be.
TEST_F(SkyCellsTest, ChecksumsHoldForHeadersOfAnyLength) {
  const auto cells = map_cells(MapProjection::make(some_map(SkyFrame::icrs, "SIN")));
  for (int n = 0; n <= 36; ++n) {
    MapMetadata metadata = some_metadata();
    metadata.history.assign(static_cast<std::size_t>(n), "a line");
    write_cells(*cells, file("cube.fits"), 3, metadata);
    Fits f(file("cube.fits"));
    EXPECT_TRUE(f.checksums_are_right()) << n << " lines of history";
  }
}

TEST_F(SkyCellsTest, HeadersSayFrequencyBeamAndUnit) {
  const auto cells = map_cells(MapProjection::make(some_map(SkyFrame::icrs, "SIN")));
  MapMetadata metadata = some_metadata();
  write_cells(*cells, file("cube.fits"), 3, metadata);
  {
    Fits f(file("cube.fits"));
    EXPECT_EQ(f.text("CTYPE3") + f.text("CUNIT3"), "FREQHz");
    EXPECT_EQ(f.number("CRPIX3"), 1);
    EXPECT_EQ(f.number("CRVAL3"), 1420.0e6);
    EXPECT_EQ(f.number("CDELT3"), 5e3);
    EXPECT_EQ(f.number("RESTFRQ"), metadata.rest_frequency_hz);
    EXPECT_EQ(f.text("SPECSYS") + f.text("SSYSOBS"), "LSRKTOPOCENT");
    EXPECT_EQ(f.text("BUNIT") + f.text("OBJECT") + f.text("TELESCOP"), "Jy/beamM33FAST");
    EXPECT_EQ(f.text("DATE-OBS"), metadata.observed_utc);
    EXPECT_NEAR(f.number("MJD-OBS"), 60311 + (3 * 3600 + 4 * 60 + 5) / 86400.0, 1e-9);
    EXPECT_EQ(f.number("BMAJ"), 0.06);
    EXPECT_EQ(f.number("BMIN"), 0.05);
    EXPECT_EQ(f.number("BPA"), 30);
  }
  metadata.velocity_axis = true;
  metadata.beam_minor_deg = 0;
  write_cells(*cells, file("velocity.fits"), 3, metadata);
  expect_good_fits(file("velocity.fits"));
  {
    Fits f(file("velocity.fits"));
    EXPECT_EQ(f.text("CTYPE3") + f.text("CUNIT3"), "VRADm/s");
    const double c = 299'792'458;
    EXPECT_NEAR(f.number("CRVAL3"), c * 405751.768 / 1420405751.768, 1e-6);
    EXPECT_NEAR(f.number("CDELT3"), -c * 5e3 / 1420405751.768, 1e-9);
    EXPECT_EQ(f.number("BMIN"), 0.06);
  }
  // One plane for a band of three channels.
  metadata.velocity_axis = false;
  metadata.beam_fwhm_deg = 0;
  write_cells(*cells, file("band.fits"), 1, metadata);
  {
    Fits f(file("band.fits"));
    EXPECT_EQ(f.number("CRVAL3"), 1420.005e6);
    EXPECT_EQ(f.number("CDELT3"), 15e3);
    EXPECT_EQ(f.text("BMAJ"), "(none)");
  }
  metadata.rest_frequency_hz = 0;
  metadata.velocity_axis = true;
  EXPECT_THROW(write_cells(*cells, file("no.fits"), 3, metadata), ConfigError);
  EXPECT_FALSE(fs::exists(file("no.fits")) || fs::exists(part_path(file("no.fits"))));
}

// A header as another program writes it.
void write_template(const std::string& path,
                    const std::vector<std::pair<std::string, std::string>>& cards) {
  fitsfile* file = nullptr;
  int status = 0;
  long axes[2] = {20, 10};
  fits_create_diskfile(&file, path.c_str(), &status);
  fits_create_img(file, FLOAT_IMG, 2, axes, &status);
  for (const auto& [name, value] : cards) {
    std::string card = name;
    card.resize(8, ' ');
    fits_write_record(file, (card + "= " + value).c_str(), &status);
  }
  fits_close_file(file, &status);
  EXPECT_EQ(status, 0);
}

TEST_F(SkyCellsTest, MapsLikeOthersKeepTheirParametersAndNothingElse) {
  std::vector<std::pair<std::string, std::string>> cards = {
      {"CTYPE1", "'RA---ZPN'"},  {"CTYPE2", "'DEC--ZPN'"},
      {"CRPIX1", "10.5"},        {"CRPIX2", "5.5"},
      {"CDELT1", "-0.1"},        {"CDELT2", "0.1"},
      {"CRVAL1", "30.0"},        {"CRVAL2", "40.0"},
      {"PV2_1", "1.0"},          {"PV2_3", "20.0"},
      {"LONPOLE", "170.0"},      {"RADESYS", "'FK5'"},
      {"EQUINOX", "2000.0"},     {"RESTFRQ", "1.0E9"},
      {"SPECSYS", "'BARYCENT'"}, {"DATE-OBS", "'1999-01-01T00:00:00'"}};
  write_template(file("zpn.fits"), cards);
  const auto like = map_cells(MapProjection::read(file("zpn.fits")));
  EXPECT_EQ(like->frame(), SkyFrame::fk5);
  write_cells(*like, file("made.fits"), 3, some_metadata());
  {
    Fits f(file("made.fits"));
    EXPECT_EQ(f.number("PV2_3"), 20);
    EXPECT_EQ(f.number("LONPOLE"), 170);
    EXPECT_EQ(f.text("SPECSYS"), "LSRK");
    EXPECT_EQ(f.text("DATE-OBS"), "2024-01-02T03:04:05");
  }
  expect_same_directions(*like, *map_cells(MapProjection::read(file("made.fits"))));
  expect_same_directions(*like, *cells_from_definition(like->definition()));
  // An equinox alone means FK5, and it says nothing of ICRS.
  cards[11] = {"HISTORY", "none"};
  fs::remove(file("zpn.fits"));
  write_template(file("zpn.fits"), cards);
  EXPECT_EQ(MapProjection::read(file("zpn.fits")).frame(), SkyFrame::fk5);
  cards[11] = {"RADESYS", "'ICRS'"};
  fs::remove(file("zpn.fits"));
  write_template(file("zpn.fits"), cards);
  const auto icrs = map_cells(MapProjection::read(file("zpn.fits")));
  EXPECT_EQ(icrs->definition().find("EQUINOX"), std::string::npos);
  EXPECT_NE(like->definition().find("EQUINOX"), std::string::npos);
  // Coordinates that are not made.
  cards[11] = {"RADESYS", "'FK4'"};
  cards[12] = {"EQUINOX", "1950.0"};
  fs::remove(file("zpn.fits"));
  write_template(file("zpn.fits"), cards);
  EXPECT_THROW(MapProjection::read(file("zpn.fits")), UnsupportedError);
}

grid::Positions samples_at(double lon_deg, double lat_deg) {
  Queue queue = Queue::cpu(1);
  const double lon[] = {lon_deg, lon_deg + 3}, lat[] = {lat_deg, lat_deg};
  return grid::positions(queue, lon, lat, 2);
}

TEST_F(SkyCellsTest, HealpixTablesSayTheirPixels) {
  const auto samples = samples_at(359, 41.8);
  for (const std::string& order : {std::string("nested"), std::string("ring")}) {
    const auto cells = pipeline::make_sky_cells("healpix:nside=64,order=" + order, samples,
                                                SkyFrame::icrs, 0, 2 * kDegree_rad);
    EXPECT_EQ(cells->width(), 0);
    // Two discs of 12.57 square degrees that meet a little, pixels of 0.84.
    EXPECT_NEAR(static_cast<double>(cells->n_cells()), 29, 4);
    const std::string path = file(order + ".fits");
    write_cells(*cells, path, 3, some_metadata());
    expect_good_fits(path);
    const auto n = static_cast<std::size_t>(cells->n_cells());
    std::vector<double> lon(n), lat(n);
    cells->directions(0, cells->n_cells(), lon.data(), lat.data());
    Fits f(path, 2);
    EXPECT_EQ(f.text("PIXTYPE") + f.text("INDXSCHM") + f.text("COORDSYS"), "HEALPIXEXPLICITC");
    EXPECT_EQ(f.text("ORDERING"), order == "ring" ? "RING" : "NESTED");
    EXPECT_EQ(f.number("NSIDE"), 64);
    EXPECT_EQ(f.text("1CTYP2") + f.text("TUNIT2"), "FREQJy/beam");
    EXPECT_EQ(f.number("1CRVL2"), 1420.0e6);
    EXPECT_TRUE(f.checksums_are_right());
    const auto pixels = f.column("PIXEL"), values = f.column("VALUE");
    ASSERT_EQ(pixels.size(), n);
    EXPECT_EQ(f.number("FIRSTPIX"), pixels.front());
    EXPECT_EQ(f.number("LASTPIX"), pixels.back());
    EXPECT_TRUE(std::is_sorted(pixels.begin(), pixels.end()));
    for (std::size_t row = 0; row < n; ++row) {
      // The value says the cell, the cell its direction, which must be that of the row's pixel.
      const auto cell = static_cast<std::size_t>(values[3 * row]);
      ASSERT_EQ(values[3 * row + 2], values[3 * row] + 20'000);
      const double l = lon[cell] * kDegree_rad, b = lat[cell] * kDegree_rad;
      const auto nest =
          healpix::nest_of(6, std::cos(b) * std::cos(l), std::cos(b) * std::sin(l), std::sin(b));
      ASSERT_EQ(pixels[row],
                static_cast<double>(order == "ring" ? healpix::ring_of_nest(6, nest) : nest));
    }
    const auto again = cells_from_definition(cells->definition());
    EXPECT_EQ(again->definition(), cells->definition());
    expect_same_directions(*cells, *again);
    const Panel panel = cells->picture(std::vector<float>(n, 1.0F), {});
    EXPECT_GT(std::count(panel.values.begin(), panel.values.end(), 1.0F), 100);
  }
}

TEST_F(SkyCellsTest, WholeSkiesAreImplicit) {
  const auto samples = samples_at(10, 10);
  const auto cells = pipeline::make_sky_cells("healpix:nside=4,full,order=ring,frame=galactic",
                                              samples, SkyFrame::icrs, 0, 1);
  EXPECT_EQ(cells->n_cells(), 192);
  EXPECT_EQ(cells->description(), "HEALPix nside 4 ring, all 192 pixels");
  MapMetadata metadata = some_metadata();
  metadata.quantity = "count";
  metadata.unit = "";
  const auto writer = cells->create(file("count.fits"), 1, CubeValues::int32, metadata, false);
  std::vector<std::int32_t> plane(192);
  for (std::int64_t i = 0; i < 192; ++i)
    plane[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(healpix::ring_of_nest(2, i));
  EXPECT_THROW(writer->append(std::vector<float>(192).data()), ConfigError);
  writer->append(plane.data());
  writer->publish();
  expect_good_fits(file("count.fits"));
  Fits f(file("count.fits"), 2);
  EXPECT_EQ(f.text("INDXSCHM") + f.text("OBJECT") + f.text("COORDSYS") + f.text("TTYPE1"),
            "IMPLICITFULLSKYGCOUNT");
  EXPECT_EQ(f.text("TFORM1"), "1J");
  const auto values = f.column("COUNT");
  for (std::size_t i = 0; i < 192; ++i) EXPECT_EQ(values[i], static_cast<double>(i));
  const Panel panel = cells->picture(std::vector<float>(192, 2.0F), {});
  const auto drawn = std::count(panel.values.begin(), panel.values.end(), 2.0F);
  EXPECT_NEAR(static_cast<double>(drawn), kPi / 4 * 800 * 400, 2'000) << "an ellipse";
}

TEST_F(SkyCellsTest, SightLinesKeepTheirOrderAndNames) {
  std::ofstream(file("list.csv")) << "# quasars\nName, RA, Dec\n\"3C 48, core\",24.42,33.16\n"
                                     "B,350,-20\nC,24.40,33.20\nD,90,90\n";
  const auto samples = samples_at(10, 10);
  const auto cells = pipeline::make_sky_cells("sightlines:" + file("list.csv"), samples,
                                              SkyFrame::galactic, 0, 0.1);
  EXPECT_EQ(cells->description(), "4 sight lines");
  EXPECT_EQ(cells->frame(), SkyFrame::icrs) << "the columns say so";
  double lon[4], lat[4];
  cells->directions(0, 4, lon, lat);
  write_cells(*cells, file("lines.fits"), 3, some_metadata());
  expect_good_fits(file("lines.fits"));
  Fits f(file("lines.fits"), 2);
  EXPECT_EQ(f.name_in_row(1), "3C 48, core");
  EXPECT_EQ(f.name_in_row(4), "D");
  const auto ra = f.column("RA"), dec = f.column("DEC"), value = f.column("VALUE");
  EXPECT_EQ(ra, (std::vector<double>{24.42, 350, 24.40, 90}));
  bool reordered = false;
  for (std::size_t row = 0; row < 4; ++row) {
    const auto cell = static_cast<std::size_t>(value[3 * row]);
    EXPECT_EQ(lon[cell], ra[row]);
    EXPECT_EQ(lat[cell], dec[row]);
    reordered = reordered || cell != row;
  }
  EXPECT_TRUE(reordered) << "the cells are in the order of neighbours";
  EXPECT_EQ(cells_from_definition(cells->definition())->definition(), cells->definition());
  const Panel panel = cells->picture({1, 1, 1, 1}, {});
  EXPECT_GT(std::count(panel.values.begin(), panel.values.end(), 1.0F), 20);

  const auto rejected = [&](const std::string& text) {
    std::ofstream(file("bad.csv")) << text;
    try {
      read_sight_lines(file("bad.csv"));
    } catch (const FormatError& e) {
      return std::string(e.what());
    }
    return std::string("taken");
  };
  EXPECT_NE(rejected("a,b\n1,2\n").find("line 1"), std::string::npos);
  EXPECT_NE(rejected("name,lon,lat\nx,12,abc\n").find("line 2"), std::string::npos);
  EXPECT_NE(rejected("name,lon,lat\nx,12,91\n").find("beyond a pole"), std::string::npos);
  EXPECT_NE(rejected("name,lon,lat\n").find("no sight line"), std::string::npos);
}

TEST_F(SkyCellsTest, TablesWrittenInBlocksAreTheSame) {
  std::vector<std::vector<double>> columns;
  for (const std::int64_t block_bytes : {std::int64_t{1} << 20, std::int64_t{2 * 4 * 5}}) {
    io::CellTable table;
    table.name = "T";
    table.columns = {"N"};
    table.forms = {"1J"};
    table.units = {""};
    table.prefix_bytes = 4;
    table.prefix = [](std::int64_t row, std::uint8_t* to) {
      io::put_big_endian(to, static_cast<std::uint64_t>(7 * row), 4);
    };
    table.n_rows = 5;
    table.cell_of_row = {4, 3, 2, 1, 0};
    table.header = [](io::FitsFile&) {};
    table.block_bytes = block_bytes;
    const auto writer =
        io::create_cell_table(file("t.fits"), table, 7, CubeValues::float32, some_metadata(), true);
    for (int c = 0; c < 7; ++c) {
      float plane[5];
      for (int i = 0; i < 5; ++i) plane[i] = static_cast<float>(10 * c + i);
      writer->append(plane);
    }
    writer->publish();
    Fits f(file("t.fits"), 2);
    EXPECT_EQ(f.column("N"), (std::vector<double>{0, 7, 14, 21, 28}));
    columns.push_back(f.column("VALUE"));
  }
  EXPECT_EQ(columns[0], columns[1]);
  EXPECT_EQ(columns[0][7 * 1 + 6], 63) << "row 1 is cell 3, channel 6";
}

TEST_F(SkyCellsTest, WhatIsNotWholeLeavesNothing) {
  const auto samples = samples_at(10, 10);
  std::ofstream(file("list.csv")) << "name,lon,lat\nA,10,10\n";
  for (const std::string& target : {std::string("healpix:16"), "sightlines:" + file("list.csv"),
                                    std::string("center=10,10 size=1x1deg cell=0.1deg")}) {
    const auto cells =
        pipeline::make_sky_cells(target, samples, SkyFrame::icrs, 0.01, 5 * kDegree_rad);
    const std::vector<float> plane(static_cast<std::size_t>(cells->n_cells()));
    const std::string path = file("partial.fits");
    {
      const auto writer = cells->create(path, 2, CubeValues::float32, some_metadata(), false);
      writer->append(plane.data());
      EXPECT_THROW(writer->publish(), ConfigError) << "a plane is missing";
      const std::vector<std::int32_t> counts(plane.size());
      EXPECT_THROW(writer->append(counts.data()), ConfigError) << "another type";
    }
    EXPECT_FALSE(fs::exists(path) || fs::exists(part_path(path))) << target;
    set_publish_fault_hook([](std::string_view operation, const std::string&) {
      return operation == "write" ? ENOSPC : 0;
    });
    {
      const auto writer = cells->create(path, 1, CubeValues::float32, some_metadata(), false);
      EXPECT_THROW(writer->append(plane.data()), IoError) << target;
    }
    set_publish_fault_hook({});
    EXPECT_FALSE(fs::exists(path) || fs::exists(part_path(path))) << target;
  }
}

TEST_F(SkyCellsTest, TargetsThatAreNoneAreRejected) {
  const auto samples = samples_at(10, 10);
  for (const char* target : {"healpix:1000", "healpix:nside=x", "healpix:order=spiral",
                             "healpix:nside=8,half", "healpix:nside=8,frame=ecliptic"})
    EXPECT_THROW(pipeline::make_sky_cells(target, samples, SkyFrame::icrs, 0.01, 0.01), ConfigError)
        << target;
  EXPECT_THROW(
      pipeline::make_sky_cells("sightlines:/no/such.csv", samples, SkyFrame::icrs, 0.01, 1),
      IoError);
  for (const char* text : {"", "map 3 x", "healpix 8 nested icrs\n4 3\n", "cube 3"})
    EXPECT_THROW(cells_from_definition(text), Error) << text;
  // Without a side: pixels of at most the cell.
  const auto cells =
      pipeline::make_sky_cells("healpix", samples, SkyFrame::icrs, kDegree_rad, 3 * kDegree_rad);
  EXPECT_LE(cells->cell_deg(), 1);
  EXPECT_GT(cells->cell_deg(), 0.5);
}

}  // namespace
}  // namespace ryle
