# SPDX-License-Identifier: BSD-3-Clause
"""The Sun where it was: real recordings through `ryle correlate` and `ryle image`, coordinates checked by astropy."""
import math

import numpy as np
import pytest
from harness import data, run, ryle

LWA_SUN = (0.393, -0.141)   # (l, m) predicted for 2024-06-27T17:32:27 UTC
EDA2 = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
EDA2_SITE = ("--frequency-mhz", "159.375", "--latitude-deg", "-26.70331940", "--longitude-deg", "116.67081524",
             "--height-m", "377")


def separation_deg(ra_1, dec_1, ra_2, dec_2):
    a, b, c, d = map(math.radians, (ra_1, dec_1, ra_2, dec_2))
    return math.degrees(math.acos(min(1.0, math.sin(b) * math.sin(d) + math.cos(b) * math.cos(d) * math.cos(a - c))))


def sun_of(path):
    """RA and Dec of the Sun (ICRS, degrees) at the DATE-AVG of a FITS image, or DATE-OBS, by astropy."""
    fits = pytest.importorskip("astropy.io.fits")
    from astropy.coordinates import get_sun
    from astropy.time import Time
    from astropy.utils import iers
    iers.conf.auto_download = False
    iers.conf.auto_max_age = None
    iers.conf.iers_degraded_accuracy = "ignore"
    with fits.open(path) as f:
        header = f[0].header
        when = Time(header.get("DATE-AVG", header["DATE-OBS"]), scale="utc")
    sun = get_sun(when)
    # Direction only: the Sun has a distance, and its ICRS place as seen from the barycentre means nothing here.
    vector = sun.cartesian.xyz.value
    return math.degrees(math.atan2(vector[1], vector[0])), math.degrees(math.asin(vector[2] / np.linalg.norm(vector)))


def header_places(path, l, m):
    """RA, Dec in degrees that the WCS of the header gives to the direction cosines (l, m) of a picture of the hemisphere."""
    fits = pytest.importorskip("astropy.io.fits")
    from astropy.wcs import WCS
    with fits.open(path) as f:
        header = f[0].header
        cell = math.radians(abs(header["CDELT1"]))
        x, y = header["CRPIX1"] - 1 - l / cell, header["CRPIX2"] - 1 + m / cell
        plane = f[0].data.reshape(-1, *f[0].data.shape[-2:])[0]
        top, left = np.unravel_index(np.nanargmax(plane), plane.shape)
        # The file shows its peak where the program said it is.
        assert abs(left - x) < 1 and abs(top - y) < 1
        ra, dec = WCS(header).celestial.pixel_to_world_values(x, y)
    return float(ra), float(dec)


def test_lwa_tbx_shows_the_sun(tmp_path):
    recording, station = data("lwa/tbx-test.dat"), data("lwa/lwana-ssmif-2024may.txt")
    visibilities, sky, picture = tmp_path / "lwa.ms", tmp_path / "sky.fits", tmp_path / "sky.png"
    ryle("correlate", recording, "--format", "tbx", "--station", station, "-o", visibilities)
    result = ryle("image", visibilities, "-o", sky, "--png", picture)
    peak = result["peak"]
    print(peak, separation_deg(*header_places(sky, peak["l"], peak["m"]), *sun_of(sky)))
    assert math.hypot(peak["l"] - LWA_SUN[0], peak["m"] - LWA_SUN[1]) < 0.02
    assert peak["sigma"] >= 7.5
    assert picture.stat().st_size > 20000
    assert separation_deg(*header_places(sky, peak["l"], peak["m"]), *sun_of(sky)) < 0.5
    assert separation_deg(peak["ra_deg"], peak["dec_deg"], *sun_of(sky)) < 0.5


def test_eda2_shows_the_sun(tmp_path):
    real, imaginary = data(EDA2.format("real")), data(EDA2.format("imag"))
    antennas = data("eda2_20191104/antenna_locations.txt")
    sky, picture = tmp_path / "sky.fits", tmp_path / "sky.png"
    result = ryle("image", real, "--imag", imaginary, "--antennas", antennas, *EDA2_SITE, "-o", sky, "--png", picture,
                  "--pixels", "180")
    peak = result["peak"]
    print(peak, separation_deg(*header_places(sky, peak["l"], peak["m"]), *sun_of(sky)))
    assert peak["l"] == pytest.approx(0.09, abs=0.02)
    assert peak["m"] == pytest.approx(0.20, abs=0.02)
    assert peak["sigma"] > 60
    assert separation_deg(*header_places(sky, peak["l"], peak["m"]), *sun_of(sky)) < 1.0


def test_eda2_without_its_frequency_is_refused(tmp_path):
    real, imaginary = data(EDA2.format("real")), data(EDA2.format("imag"))
    message = ryle("image", real, "--imag", imaginary, "--antennas", data("eda2_20191104/antenna_locations.txt"),
                   "-o", tmp_path / "sky.fits", expect=78)
    assert "frequency" in message
    assert not (tmp_path / "sky.fits").exists()


def test_a_cross_polarization_alone_makes_no_image(tmp_path):
    """PAPER kept a polarization a file; of XY alone no brightness can be made, and that is what is said."""
    path = data("vis/pyuvdata/zen.2456865.60537.xy.uvcRREAAM.uvfits")
    for more in ([], ["--path", "vis-dft"]):
        message = run("image", path, "-o", tmp_path / "x.fits", *more, check=65).stderr
        assert "XX" in message and "YY" in message and "pyuvdata" in message
    assert "hold XY only" in run("image", path, "-o", tmp_path / "x.fits", check=65).stderr
    assert not (tmp_path / "x.fits").exists()
