# SPDX-License-Identifier: BSD-3-Clause
"""Real telescope data through the commands users type."""

import json

import numpy as np
import pytest
from harness import data, run


def test_one_lwa_spectrum_shows_the_sun_where_it_was(tmp_path):
    from astropy.io import fits
    from astropy.coordinates import SkyCoord, get_sun
    from astropy.time import Time
    from astropy.utils import iers
    from astropy.wcs import WCS
    iers.conf.auto_download = False
    recording = data("lwa/tbx-test.dat")
    run("correlate", recording, "--format", "tbx", "--station", data("lwa/lwana-ssmif-2024may.txt"), "-o", tmp_path / "lwa.ms")
    image = json.loads(run("image", tmp_path / "lwa.ms", "-o", tmp_path / "sky.fits", "--png", tmp_path / "sky.png",
                           "--json").stdout)["peak"]
    assert np.hypot(image["l"] - 0.393, image["m"] + 0.141) < 0.02
    assert image["sigma"] >= 7.5
    header = fits.getheader(tmp_path / "sky.fits")
    plane = fits.getdata(tmp_path / "sky.fits").squeeze()
    y, x = np.unravel_index(np.nanargmax(plane), plane.shape)
    # get_sun gives the geocentric direction (GCRS); its axes are those of ICRS. Do not transform: .icrs would move the
    # observer to the barycenter, inside the Sun.
    sun = get_sun(Time(header["DATE-OBS"], scale="utc"))
    found = WCS(header).celestial.pixel_to_world(x, y)
    assert found.separation(SkyCoord(sun.ra, sun.dec)).deg < 0.5


def test_eda2_covariance_shows_the_sun():
    stem = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
    import tempfile
    with tempfile.TemporaryDirectory() as d:
        image = json.loads(run("image", data(stem.format("real")), "--imag", data(stem.format("imag")), "--antennas",
                               data("eda2_20191104/antenna_locations.txt"), "--frequency-mhz", 159.375, "--latitude-deg",
                               -26.70331940, "--longitude-deg", 116.67081524, "--height-m", 377, "--png", d + "/s.png",
                               "--json").stdout)["peak"]
    assert np.hypot(image["l"] - 0.09, image["m"] - 0.20) < 0.01
    assert image["sigma"] > 60


@pytest.mark.parametrize("name", ["baseband/sample.vdif", "baseband/sample.dada", "baseband/sample_puppi.raw",
                                  "baseband/sample_mwa.vdif", "lwa/tbn-test.dat", "lwa/tbf-test.dat",
                                  "tart/mg-tana-raw.hdf"])
def test_info_reads_every_format(name):
    facts = json.loads(run("info", data(name), "--json").stdout)
    assert facts["inputs"] > 0 and facts["kind"] in ("samples", "spectra")


def test_damaged_headers_are_refused_or_skipped():
    done = run("info", data("baseband/sample_drao_corrupted.vdif"), check=None)
    assert done.returncode in (0, 65)
    assert done.returncode == 0 or "sample_drao_corrupted.vdif" in done.stderr


def test_a_station_file_that_does_not_match_is_refused(tmp_path):
    done = run("correlate", data("lwa/tbx-test.dat"), "--format", "tbx", "--station", data("lwa/lwasv-ssmif.txt"), "-o",
               tmp_path / "x.uvh5", check=78)
    assert "512 inputs" in done.stderr and "128" in done.stderr
