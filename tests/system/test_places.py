# SPDX-License-Identifier: BSD-3-Clause
"""Coordinates that `ryle image` prints, against the WCS of the header it writes and against astropy."""
import math

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import AltAz, EarthLocation, SkyCoord
from astropy.io import fits
from astropy.time import Time
from astropy.utils import iers
from astropy.wcs import WCS
from harness import data, run, ryle

iers.conf.auto_download = False
iers.conf.auto_max_age = None
iers.conf.iers_degraded_accuracy = "ignore"

# Phased fields of the MWA, a drift scan of HERA (both south); the LWA (north) is below.
FILES = ["1061316296.uvfits", "1133866760.uvfits", "1131733552_mini_cotter.uvfits", "zen.2458661.23480.HH.uvh5"]
ABERRATION_DEG = 29.5 / 3600  # 20.5 arcsec times the chord


def unflagged(source, folder):
    """The MWA samples are flagged from end to end: their coordinates are as good with weights of 1."""
    if source.suffix != ".uvfits":
        return source
    copy = folder / source.name
    with fits.open(source) as f:
        f[0].data["DATA"][..., 2] = 1
        f.writeto(copy, overwrite=True)
    return copy


def check_peak(peak, file):
    """The place of a peak that was printed is where the header puts its pixel, and where astropy sees that place."""
    with fits.open(file) as f:
        header = f[0].header
    cell = math.radians(abs(header["CDELT1"]))
    x, y = header["CRPIX1"] - 1 - peak["l"] / cell, header["CRPIX2"] - 1 + peak["m"] / cell
    there = WCS(header).celestial.pixel_to_world(x, y)
    said = SkyCoord(peak["ra_deg"] * units.deg, peak["dec_deg"] * units.deg)
    assert said.separation(there).deg < ABERRATION_DEG
    site = EarthLocation.from_geocentric(header["OBSGEO-X"], header["OBSGEO-Y"], header["OBSGEO-Z"], unit=units.m)
    local = said.transform_to(AltAz(obstime=Time(header["DATE-AVG"], scale="utc"), location=site))
    assert peak["elevation_deg"] == pytest.approx(local.alt.deg, abs=0.01)  # dUT1 of 0 for the true one: 15 arcsec a second
    assert math.cos(math.radians(peak["azimuth_deg"] - local.az.deg)) > math.cos(math.radians(0.05))
    return header


@pytest.mark.parametrize("name", FILES)
def test_phased_and_drifting_files(name, tmp_path):
    source = unflagged(data(f"vis/pyuvdata/{name}"), tmp_path)
    for arguments in (["--width", 0.6], ["--width", 0.3, "--phase-center", "zenith"],
                      ["--width", 0.6, "--phase-center", "sun"]):
        file = tmp_path / "image.fits"
        result = ryle("image", source, "--pixels", 48, "--channel-average", 64, *arguments, "-o", file, "--overwrite")
        header = check_peak(result["peak"], file)
        if len(arguments) == 2:
            assert abs(result["peak"]["l"]) <= 0.31
            print(name, header["CRVAL1"], header["CRVAL2"], result["peak"], result["warnings"])


def test_a_phased_field_is_where_the_file_says(tmp_path):
    source = unflagged(data("vis/pyuvdata/1131733552_mini_cotter.uvfits"), tmp_path)
    file = tmp_path / "image.fits"
    result = ryle("image", source, "--pixels", 48, "--width", 0.1, "-o", file)
    with fits.open(source) as f:
        ra, dec = f[0].header["OBSRA"], f[0].header["OBSDEC"]
    said = SkyCoord(result["peak"]["ra_deg"] * units.deg, result["peak"]["dec_deg"] * units.deg)
    assert said.separation(SkyCoord(ra * units.deg, dec * units.deg)).deg < 5  # 0.1 direction cosines across: 2.9 degrees
    text = run("image", source, "--pixels", 48, "--width", 0.1, "-o", file, "--overwrite").stdout
    assert f"RA {result['peak']['ra_deg']:.3f} deg, Dec {result['peak']['dec_deg']:.3f} deg" in text


def test_correlate_to_the_sun(tmp_path):
    recording, station = data("lwa/tbx-test.dat"), data("lwa/lwana-ssmif-2024may.txt")
    visibilities, file = tmp_path / "sun.uvfits", tmp_path / "sun.fits"
    ryle("correlate", recording, "--format", "tbx", "--station", station, "-o", visibilities, "--phase-center", "sun")
    result = ryle("image", visibilities, "-o", file)
    check_peak(result["peak"], file)
    assert math.hypot(result["peak"]["l"], result["peak"]["m"]) < 0.02  # the Sun, at the center
    below = ryle("correlate", recording, "--format", "tbx", "--station", station, "-o", tmp_path / "low.uvfits",
                 "--phase-center", "10,-60", expect=78)
    assert "altitude -" in below and "UTC" in below and "zenith" in below and "ris" in below
    assert not (tmp_path / "low.uvfits").exists()
    # The same of an observation file, and of its plan.
    observation = tmp_path / "low.toml"
    observation.write_text(f'schema = 1\n[source]\nkind = "file"\nfile = "{recording}"\nformat = "tbx"\n'
                           f'[telescope]\nstation = "{station}"\n[correlate]\nphase_center = "10,-60"\n'
                           f'[output]\ndirectory = "{tmp_path / "out"}"\n')
    for command in ("run", "plan"):
        assert "altitude -" in run(command, observation, check=78).stderr
    assert not (tmp_path / "out").exists()


def test_all_sky_images_say_where(tmp_path):
    file = tmp_path / "sky.fits"
    result = ryle("image", data("lwa/tbx-test.dat"), "--station", data("lwa/lwana-ssmif-2024may.txt"), "-o", file)
    peak = result["peak"]
    header = fits.getheader(file)
    there = WCS(header).celestial.pixel_to_world(peak["x"], peak["y"])
    said = SkyCoord(peak["ra_deg"] * units.deg, peak["dec_deg"] * units.deg)
    assert said.separation(there).deg < ABERRATION_DEG
    assert np.sin(np.radians(peak["azimuth_deg"])) * np.cos(np.radians(peak["elevation_deg"])) == pytest.approx(peak["l"])
    assert header["BMAJ"] > header["BMIN"] > 0
