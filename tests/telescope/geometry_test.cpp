// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/geometry.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ryle/core/units.hpp"

namespace ryle {
namespace {

ArrayLayout mwa_site() {
  ArrayLayout array;
  array.latitude_rad = -26.7033 * kDegree_rad;
  array.longitude_rad = 116.6708 * kDegree_rad;
  array.height_m = 377.8;
  return array;
}

double separation_rad(const Vector3& a, const Vector3& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                   (a[2] - b[2]) * (a[2] - b[2]));
}

double dot(const Vector3& a, const Vector3& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

Vector3 vector_of(const SkyDirection& d) {
  return {std::cos(d.dec_rad) * std::cos(d.ra_rad), std::cos(d.dec_rad) * std::sin(d.ra_rad),
          std::sin(d.dec_rad)};
}

/// astropy 5.2.1 (EarthLocation.from_geodetic of the site above; delta_ut1_utc = 0, polar motion 0;
/// SkyCoord(icrs).transform_to(AltAz(pressure=0)); sidereal_time("apparent")), frozen.
struct Epoch {
  const char* utc;
  std::int64_t tai_ns;
  double last_rad;
  SkyDirection zenith;
  SkyDirection sun;  // barycentric Sun - Earth, built-in ephemeris
  Vector3 sun_enu;   // get_sun().transform_to(AltAz): apparent, topocentric
  Vector3 enu[5];    // of kDirections
};

const double kDirections_deg[5][2] = {
    {83.633, 22.0145}, {201.365, -43.0192}, {10.0, -80.0}, {350.866, 58.815}, {5.0, -26.0}};

const Epoch kEpochs[] = {
    {"2009-06-15T12:34:56.789",
     1245069330'789'000'000,
     3.653600932560044,
     {3.651137595829467, -0.4651851874634372},
     {1.4645595514005307, 0.4070135331929967},
     {-0.7495818887692699, 0.11540478018882304, -0.6517735256503316},
     {{-0.7541326265810661, 0.09267894164245147, -0.65014967146187},
      {-0.09945541749314937, -0.2849021444740202, 0.9533831276068232},
      {0.057631577072180244, -0.9537049811608744, 0.2951701377733012},
      {0.320906115792947, 0.5824488810717952, -0.7468417273993853},
      {0.3688149536970399, -0.7593607541612651, -0.5360473626174136}}},
    {"2019-11-04T03:35:37",
     1572838574'000'000'000,
     3.7292831576845846,
     {3.7245025161836636, -0.46452199811672834},
     {3.817415895754425, -0.2648020713333792},
     {0.0893249857409694, 0.1966397737222523, 0.9763984055555505},
     {{-0.7128149852969088, 0.06870506470421336, -0.6979788039906066},
      {-0.1521010627145177, -0.28977458970516917, 0.9449317191640438},
      {0.06997361047686824, -0.9517834488415626, 0.29868371289391094},
      {0.349210883515216, 0.5943705409566573, -0.7244138450343235},
      {0.4281969323619449, -0.7456346085437777, -0.5105648026035353}}},
    {"2024-06-27T17:32:26.999975",
     1719509583'999'975'000,
     5.167933527362171,
     {5.161281940361227, -0.46707958357559726},
     {1.6888100841079574, 0.40649534978601204},
     {0.29866381906285727, -0.037340908164836366, -0.9536275896597237},
     {{0.4926800527712268, -0.01774558628619281, -0.8700295740770543},
      {-0.7274374428424932, -0.6359850887769339, 0.2575999487658536},
      {0.16930758958633946, -0.8577035034803324, 0.4854684750074168},
      {0.4227924021320541, 0.8981250444406892, -0.12090487685704338},
      {0.8412448289419343, -0.24613326469803953, 0.48137880487983725}}},
    {"2026-11-21T19:14:02",
     1795288479'000'000'000,
     1.8497296909472802,
     {1.8448750695383687, -0.46542555872096486},
     {4.134700842301202, -0.348324870652909},
     {0.7057083947360472, -0.5847732694036542, -0.4000198557447273},
     {{-0.3462866909204886, 0.7215243370144055, 0.5995733139385546},
      {0.7257858187020477, -0.6440229051086155, 0.24180455551221106},
      {-0.17524171547222608, -0.8873135246316605, 0.42657361634785984},
      {-0.4679358556564096, 0.6682981186067275, -0.5782851024000292},
      {-0.8844666708504226, -0.464175538067597, 0.047537122487870904}}},
};

constexpr double kArcsec_rad = kDegree_rad / 3600;

TEST(Geometry, AgreesWithAstropy) {
  const ArrayLayout array = mwa_site();
  for (const auto& epoch : kEpochs) {
    const std::int64_t t = tai_ns_from_utc_iso(epoch.utc);
    EXPECT_EQ(t, epoch.tai_ns) << epoch.utc;
    // Both are ERFA: they differ only in how the time reaches it and in the polar-motion model.
    EXPECT_NEAR(local_sidereal_time_rad(array, t), epoch.last_rad, 1e-9) << epoch.utc;
    EXPECT_LT(separation_rad(vector_of(zenith(array, t)), vector_of(epoch.zenith)),
              0.01 * kArcsec_rad)
        << epoch.utc;
    for (int k = 0; k < 5; ++k) {
      const Vector3 enu = enu_of_direction(
          array, {kDirections_deg[k][0] * kDegree_rad, kDirections_deg[k][1] * kDegree_rad}, t);
      EXPECT_LT(separation_rad(enu, epoch.enu[k]), 0.01 * kArcsec_rad) << epoch.utc << " " << k;
    }
  }
}

TEST(Geometry, SunAgreesWithAstropy) {
  const ArrayLayout array = mwa_site();
  for (const auto& epoch : kEpochs) {
    EXPECT_LT(separation_rad(vector_of(sun(epoch.tai_ns)), vector_of(epoch.sun)), 0.1 * kArcsec_rad)
        << epoch.utc;
    // Topocentric parallax of the Sun is at most 8.8 arcsec, and left out here.
    EXPECT_LT(
        separation_rad(enu_of_direction(array, sun(epoch.tai_ns), epoch.tai_ns), epoch.sun_enu),
        9.5 * kArcsec_rad)
        << epoch.utc;
  }
}

TEST(Geometry, TheSunOfEda2StandsWhereTheRecordSaysIt) {
  // PROVENANCE of the EDA2 data: (l, m) = (0.09, 0.20), altitude 77.5 deg.
  const Vector3 s = enu_of_direction(mwa_site(), sun(tai_ns_from_utc_iso("2019-11-04T03:35:37")),
                                     tai_ns_from_utc_iso("2019-11-04T03:35:37"));
  EXPECT_NEAR(s[0], 0.09, 0.005);
  EXPECT_NEAR(s[1], 0.20, 0.005);
}

TEST(Geometry, DirectionsGoThereAndBack) {
  const ArrayLayout array = mwa_site();
  const EarthOrientation eo{-0.3};
  for (const auto& direction : kDirections_deg) {
    const SkyDirection there{direction[0] * kDegree_rad, direction[1] * kDegree_rad};
    const Vector3 enu = enu_of_direction(array, there, kEpochs[1].tai_ns, eo);
    const SkyDirection back = direction_of_enu(array, enu, kEpochs[1].tai_ns, eo);
    // eraAticq inverts aberration and deflection by iteration: about a microarcsecond
    EXPECT_LT(separation_rad(vector_of(back), vector_of(there)), 1e-10);
    EXPECT_NEAR(dot(enu, enu), 1, 1e-14);
  }
}

TEST(Geometry, Dut1TurnsTheSky) {
  const ArrayLayout array = mwa_site();
  const double a = local_sidereal_time_rad(array, kEpochs[1].tai_ns, {0.0});
  const double b = local_sidereal_time_rad(array, kEpochs[1].tai_ns, {0.9});
  EXPECT_NEAR((b - a) / kArcsec_rad, 0.9 * 15.041, 0.01);
}

TEST(Geometry, ItrfOfReferenceAndOffsets) {
  const ArrayLayout array = mwa_site();
  const Vector3 reference = itrf_of_reference(array);
  // astropy EarthLocation.from_geodetic
  EXPECT_NEAR(reference[0], -2559453.146730239, 1e-6);
  EXPECT_NEAR(reference[1], 5095373.666185799, 1e-6);
  EXPECT_NEAR(reference[2], -2849055.2523048175, 1e-6);
  // Up is the height of the ellipsoid; east and north are its derivatives by longitude and
  // latitude.
  ArrayLayout moved = array;
  moved.height_m += 100;
  EXPECT_LT(separation_rad(itrf_of_enu(array, {0, 0, 100}), itrf_of_reference(moved)), 1e-6);
  moved = array;
  moved.longitude_rad += 1e-6;
  const double step_m = separation_rad(itrf_of_reference(moved), reference);
  EXPECT_LT(separation_rad(itrf_of_enu(array, {step_m, 0, 0}), itrf_of_reference(moved)), 1e-4);
  moved = array;
  moved.latitude_rad += 1e-6;
  const double north_m = separation_rad(itrf_of_reference(moved), reference);
  EXPECT_LT(separation_rad(itrf_of_enu(array, {0, north_m, 0}), itrf_of_reference(moved)), 1e-4);
  const Vector3 offset = itrf_offset_of_enu(array, {3, -4, 12});
  EXPECT_NEAR(dot(offset, offset), 169, 1e-9);
}

TEST(UvwAxes, AreOrthonormalAndTangentToIcrsNorthAndEast) {
  const ArrayLayout array = mwa_site();
  for (const auto& epoch : kEpochs) {
    for (const auto& direction : kDirections_deg) {
      const SkyDirection center{direction[0] * kDegree_rad, direction[1] * kDegree_rad};
      const auto axes = uvw_axes(array, center, epoch.tai_ns);
      for (int a = 0; a < 3; ++a) {
        for (int b = 0; b <= a; ++b) EXPECT_NEAR(dot(axes[a], axes[b]), a == b, 1e-12);
      }
      EXPECT_LT(separation_rad(axes[2], enu_of_direction(array, center, epoch.tai_ns)), 1e-13);
      // Finite steps to ICRS east and north. Their images have the scale 1 +- 1e-4 of aberration,
      // so only the direction of the image counts; third order in the step: 1e-8 * 1e-4.
      const double step_rad = 1e-4;
      for (int axis = 0; axis < 2; ++axis) {
        Vector3 image{};
        for (int sign : {-1, 1}) {
          SkyDirection beside = center;
          if (axis == 0) beside.ra_rad += sign * step_rad / std::cos(center.dec_rad);
          if (axis == 1) beside.dec_rad += sign * step_rad;
          const Vector3 enu = enu_of_direction(array, beside, epoch.tai_ns);
          for (int k = 0; k < 3; ++k) image[k] += sign * enu[k] / (2 * step_rad);
        }
        const double length = std::sqrt(dot(image, image));
        EXPECT_NEAR(length, 1, 1.1e-4);
        for (double& x : image) x /= length;
        // Deflection by the Sun, 1.97e-8 cot(t/2) rad at a distance t, is no rotation: its shear
        // remains (the Crab in June stands 1.3 degrees from the Sun: 8e-5).
        const double cosine = dot(vector_of(center), vector_of(epoch.sun));
        const double t = std::acos(cosine);
        const double shear = 1.97e-8 / std::tan(t / 2) / std::sin(t);
        EXPECT_LT(separation_rad(image, axes[axis]), (axis == 0 ? 1e-6 : 1e-7) + 2 * shear)
            << epoch.utc << " dec " << direction[1] << " axis " << axis;
      }
    }
  }
}

TEST(UvwAxes, HandedAsSeenFromInside) {
  // l grows east, m north, w toward the source: (l, m, s) is left handed for east, north, up seen
  // from the ground? At the zenith of the north pole of the horizon frame l = east, m = north, s =
  // up, and east x north = up.
  const ArrayLayout array = mwa_site();
  const auto axes = uvw_axes(array, zenith(array, kEpochs[0].tai_ns), kEpochs[0].tai_ns);
  const Vector3 cross{axes[0][1] * axes[1][2] - axes[0][2] * axes[1][1],
                      axes[0][2] * axes[1][0] - axes[0][0] * axes[1][2],
                      axes[0][0] * axes[1][1] - axes[0][1] * axes[1][0]};
  EXPECT_LT(separation_rad(cross, axes[2]), 1e-12);
  EXPECT_GT(axes[0][0],
            0.999);  // precession since 2000 turns the ICRS frame by a few arcminutes only
  EXPECT_GT(axes[1][1], 0.999);
}

TEST(TrackingDelay, IsLeadOfTheWavefrontMinusCable) {
  ArrayLayout array = mwa_site();
  array.antennas = {{"a", {30, 40, 5}}};
  array.inputs = {{.antenna = 0, .cable_delay_s = 100e-9, .cable_dispersion_s = 2e-9}};
  const double d = tracking_delay_s(array, 0, {0.6, 0.0, 0.8}, 40e6);
  EXPECT_NEAR(d, (30 * 0.6 + 5 * 0.8) / kSpeedOfLight_m_per_s - 100e-9 - 1e-9, 1e-18);
}

}  // namespace
}  // namespace ryle
