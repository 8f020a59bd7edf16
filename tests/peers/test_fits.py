# SPDX-License-Identifier: BSD-3-Clause
"""Our FITS image: no warning from fitsverify, wcslib, astropy; sources on the pixels where the WCS says they are."""
import subprocess
import warnings

import numpy as np
from conftest import module, program


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)


def test_fitsverify_has_nothing_to_say(products):
    result = run(program("fitsverify"), products / "painted.fits")
    assert result.returncode == 0
    assert "0 warning(s) and 0 error(s)" in result.stdout, result.stdout


def test_wcslib_has_nothing_to_say(products):
    result = run(program("wcsware"), "-l", products / "painted.fits")
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
