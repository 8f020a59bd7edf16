// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/visibility/element_beam_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/hdf5_file.hpp"

namespace ryle {
namespace {

namespace h5 = io::h5;

class ElementBeamFile : public testing::Test {
 protected:
  /// X receives E-theta at the azimuth 0 with n, Y receives E-phi with 2 n; shape as asked.
  std::string write(const std::vector<hsize_t>& shape, bool with_axes = true) {
    const std::string path =
        (std::filesystem::path(testing::TempDir()) / "ryle_element_beam.h5").string();
    const h5::Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          H5Fclose);
    const std::vector<double> frequency{100e6, 200e6}, zenith{0, 45, 90}, azimuth{0, 90, 180, 270};
    if (with_axes)
      h5::put_array(file.get(), "frequency_hz", H5T_NATIVE_DOUBLE, frequency.data(), {2}, path);
    h5::put_array(file.get(), "zenith_deg", H5T_NATIVE_DOUBLE, zenith.data(), {3}, path);
    h5::put_array(file.get(), "azimuth_deg", H5T_NATIVE_DOUBLE, azimuth.data(), {4}, path);
    std::vector<cf32> jones;
    for (const double hz : frequency) {
      for (const double z : zenith) {
        for (std::size_t a = 0; a < azimuth.size(); ++a) {
          const auto n = static_cast<float>(std::cos(z * kDegree_rad) * hz / 100e6);
          for (const cf32 v : {cf32(n), cf32(0), cf32(0), cf32(0, 2 * n)}) jones.push_back(v);
        }
      }
    }
    h5::put_array(file.get(), "jones", h5::complex_type().get(), jones.data(), shape, path);
    return path;
  }
};

TEST_F(ElementBeamFile, IsReadWithItsAxes) {
  const std::string path = write({2, 3, 4, 2, 2});
  const ElementBeam beam = element_beam_of(path, 0);
  EXPECT_EQ(beam.name(), "ryle_element_beam.h5");
  EXPECT_TRUE(beam.is_polarized());
  const double n = std::sqrt(0.5);
  const auto at = beam.coherency({n, 0, n}, 200e6);
  EXPECT_NEAR(at[0].real(), 4 * 0.5, 1e-6);
  EXPECT_NEAR(at[3].real(), 16 * 0.5, 1e-6);
  EXPECT_NEAR(std::abs(at[1]), 0, 1e-12);
  EXPECT_NEAR(beam.coherency({0, 0, 1}, 150e6)[0].real(), 1.5 * 1.5, 1e-6);
  EXPECT_EQ(element_beam_of("dipole 0.4", 0).name(), "dipole 0.4 m above ground");
}

TEST_F(ElementBeamFile, WhatDoesNotFitIsRefused) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      read_element_beam(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message(write({2, 3, 16})), testing::HasSubstr("[2][3][4][2][2]"));
  EXPECT_THAT(message(write({2, 3, 4, 2, 2}, false)), testing::HasSubstr("lacks frequency_hz"));
  EXPECT_THROW(read_element_beam("not-there.h5"), IoError);
}

}  // namespace
}  // namespace ryle
