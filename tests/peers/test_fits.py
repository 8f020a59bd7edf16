# SPDX-License-Identifier: BSD-3-Clause
"""Our FITS image: no warning from fitsverify, wcslib, astropy; sources on the pixels where the WCS says they are."""
import subprocess
import warnings

import numpy as np
import pytest
from conftest import module, program


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)


IMAGES = ("painted.fits", "allsky.fits", "linear.fits", "series.fits")


@pytest.mark.parametrize("name", IMAGES)
def test_fitsverify_has_nothing_to_say(products, name):
    result = run(program("fitsverify"), products / name)
    assert result.returncode == 0
    assert "0 warning(s) and 0 error(s)" in result.stdout, result.stdout


@pytest.mark.parametrize("name", IMAGES[:3])
def test_wcslib_has_nothing_to_say(products, name):
    result = run(program("wcsware"), "-l", products / name)
    assert result.returncode == 0, result.stdout
    assert "rror" not in result.stdout and "arning" not in result.stdout, result.stdout


def test_astropy_reads_without_a_warning(products):
    fits, wcs = module("astropy.io.fits"), module("astropy.wcs")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fits.open(products / "painted.fits", checksum=True) as file:
            file.verify("exception")
            header, data = file[0].header, np.array(file[0].data)
            names = [hdu.name for hdu in file]
            frame = wcs.WCS(header)
            celestial = frame.celestial
    assert names[1:3] == ["RYLE_OBSERVATION", "RYLE_APPLIED"]
    assert data.shape == (4, 8, 64, 64) and np.isnan(data[0, 0, 0, 0])
    for source in products.truth["sources"]:
        x, y = celestial.world_to_pixel_values(np.degrees(source["ra_rad"]), np.degrees(source["dec_rad"]))
        # The exact pixel of (l, m): 32 - l/cell, 32 + m/cell (conventions.md 5), to 1e-6 of a pixel.
        assert abs(x - (32 - source["l"] / 0.005)) < 1e-6
        assert abs(y - (32 + source["m"] / 0.005)) < 1e-6
        assert data[0, 0, int(round(float(y))), int(round(float(x)))] == np.float32(source["i"])
    center = celestial.pixel_to_world_values(32, 32)
    assert np.allclose(np.radians(center), [products.truth["ra_rad"], products.truth["dec_rad"]], atol=1e-9)
    assert header["CRPIX1"] == 33 and header["CDELT1"] < 0
    assert frame.wcs.restfrq == 150e6 and frame.wcs.specsys == "TOPOCENT" and frame.wcs.radesys == "ICRS"
    frequency = frame.sub([3]).all_pix2world(np.arange(8)[:, None], 0)[:, 0]
    assert np.allclose(frequency, 150e6 + 160e3 * np.arange(8))


def test_header_says_what_and_when(products):
    fits = module("astropy.io.fits")
    header = fits.getheader(products / "painted.fits")
    for key in ("TELESCOP", "INSTRUME", "OBJECT", "OBSERVER", "ORIGIN", "CREATOR", "DATE", "DATE-OBS", "DATE-AVG",
                "MJD-OBS", "TIMESYS", "RADESYS", "SPECSYS", "BUNIT", "OBSGEO-X", "OBSGEO-Y", "OBSGEO-Z", "CHECKSUM", "DATASUM"):
        assert key in header, key
    history = "\n".join(header["HISTORY"])
    assert "correlate/cpu/avx2" in history and "loss_ppm" in history
    assert "=" not in history and "BMAJ" not in header  # nothing there that could be taken for a keyword


def test_configuration_is_in_the_file(products):
    fits = module("astropy.io.fits")
    json = module("json")
    with fits.open(products / "painted.fits") as file:
        table = file["RYLE_OBSERVATION"]
        text = table.data["JSON"].tobytes()[:table.header["JSONLEN"]].decode()
        observation = json.loads(text)
        assert len(file["RYLE_APPLIED"].data) == 64
    assert "integration_s = 2.0" in observation["provenance"]["configuration"]
    assert "\u00e9" in observation["provenance"]["configuration"]


def peak_of(plane):
    """Sub-pixel place of the brightest point: top of the elliptical Gaussian through it and its neighbours."""
    y, x = np.unravel_index(np.nanargmax(plane), plane.shape)
    dy, dx = (a.ravel() for a in np.mgrid[-1:2, -1:2])
    terms = np.stack([np.ones(9), dx, dy, dx * dx, dx * dy, dy * dy], axis=1)
    _, bx, by, cxx, cxy, cyy = np.linalg.lstsq(terms, np.log(plane[y - 1:y + 2, x - 1:x + 2]).ravel(), rcond=None)[0]
    return np.array([x, y]) - np.linalg.solve([[2 * cxx, cxy], [cxy, 2 * cyy]], [bx, by])


def test_injected_sources_are_where_astropy_expects_them(products, offline):
    """Zenith distance 2 to 75 deg, tilted array: azimuth and altitude to ICRS by astropy, to pixels by our header."""
    fits, wcs, coordinates = module("astropy.io.fits"), module("astropy.wcs"), module("astropy.coordinates")
    units, time = module("astropy.units"), module("astropy.time")
    header, data = fits.getheader(products / "allsky.fits"), fits.getdata(products / "allsky.fits")
    place = coordinates.EarthLocation.from_geocentric(*[header["OBSGEO-" + k] for k in "XYZ"], unit="m")
    when = time.Time(header["DATE-AVG"], scale="utc")
    when.delta_ut1_utc = 0.0  # as the file was made; 0.2 s are 3 arcsec
    frame = wcs.WCS(header).celestial
    for plane, source in zip(data[0], products.truth["all_sky"]):
        horizon = coordinates.AltAz(az=source["az_deg"] * units.deg, alt=(90 - source["zd_deg"]) * units.deg,
                                    obstime=when, location=place)
        sky = coordinates.SkyCoord(horizon).icrs
        want = frame.world_to_pixel_values(sky.ra.deg, sky.dec.deg)
        found = peak_of(plane)
        assert np.hypot(want[0] - found[0], want[1] - found[1]) <= 0.05, (source, want, found)


def test_cross_product_bins_and_weights(products):
    fits = module("astropy.io.fits")
    with fits.open(products / "linear.fits", checksum=True) as file:
        assert [hdu.name for hdu in file][1:4] == ["WEIGHT", "XY", "BINS"]
        assert file[0].data.shape == (2, 3, 128, 128) and file["WEIGHT"].data.shape == (2, 3)
        assert file["XY"].data.shape == (2, 1, 3, 128, 128) and file["XY"].header["CTYPE5"] == "COMPLEX"
        assert file["XY"].header["CRVAL4"] == -7
        assert np.allclose(file["BINS"].data["FREQ"], [60.0125e6, 60.0625e6, 60.1e6])
        assert file[0].header["CRVAL3"] == 60.0125e6 and file[0].header["CDELT3"] == 50e3
        for key in ("IMGPATH", "ANTFUNC", "GAINSID", "IMPLEMNT", "LOSSPPM", "DATE-BEG", "DATE-AVG", "DATE-END", "EXPTIME", "BUNIT"):
            assert key in file[0].header, key


def test_series_turns_with_the_sky(products):
    fits = module("astropy.io.fits")
    with fits.open(products / "series.fits", checksum=True) as file:
        images = [hdu for hdu in file if hdu.name.startswith("IMAGE")]
        assert len(images) == 3 and len(file["TIMES"].data) == 3
        steps = np.diff([hdu.header["CRVAL1"] for hdu in images])
        assert np.allclose(steps, 5 / 86164.09 * 360, rtol=1e-3)
        assert np.allclose(file["TIMES"].data["RA"], [hdu.header["CRVAL1"] for hdu in images])
