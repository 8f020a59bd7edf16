# SPDX-License-Identifier: BSD-3-Clause
"""Maps, HEALPix tables and sight lines of the gridder: no warning from fitsverify, wcslib and astropy; every value where
its cell is."""
import subprocess
import warnings

import numpy as np
import pytest
from conftest import module, program

MAPS = tuple(f"map_{name}.fits" for name in ("SIN", "TAN", "ZEA", "CAR", "SFL", "AIT", "STG"))
TABLES = ("healpix_part.fits", "healpix_full.fits", "sightlines.fits")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)


def separation_deg(lon1, lat1, lon2, lat2):
    lon1, lat1, lon2, lat2 = map(np.radians, (lon1, lat1, lon2, lat2))
    chord2 = np.sin((lat1 - lat2) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon1 - lon2) / 2) ** 2
    return np.degrees(2 * np.arcsin(np.sqrt(chord2)))


def test_fitsverify_has_nothing_to_say(products):
    result = run(program("fitsverify"), *(products / name for name in MAPS + TABLES))
    assert result.returncode == 0
    assert result.stdout.count("0 warning(s) and 0 error(s)") == len(MAPS + TABLES), result.stdout


@pytest.mark.parametrize("name", MAPS)
def test_astropy_finds_the_cells(products, name):
    fits, wcs = module("astropy.io.fits"), module("astropy.wcs")
    truth = products.truth["maps"][name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with fits.open(products / name, checksum=True) as file:
            file.verify("exception")
            header, data = file[0].header, np.array(file[0].data)
        frame = wcs.WCS(header)
        lon, lat, frequency = frame.pixel_to_world_values(*np.indices(data.shape)[::-1])
    cell = data[0].astype(int).ravel()
    assert np.array_equal(cell, np.arange(cell.size)) and data[1].ravel()[3] == 3.5
    distance = separation_deg(lon[0].ravel(), lat[0].ravel(), np.array(truth["longitude_deg"]), np.array(truth["latitude_deg"]))
    assert distance.max() < 1e-6
    assert np.allclose(frequency[:, 0, 0], [1420e6, 1420.01e6], atol=1e-3)
    assert header["CTYPE1"].startswith("GLON" if truth["frame"] == "galactic" else "RA")
    assert ("EQUINOX" in header) == (truth["frame"] == "fk5") and header["SPECSYS"] == "LSRK"
    report = wcs.validate(str(products / name))
    assert "No issues." in str(report), report


def test_astropy_reads_the_tables(products):
    fits = module("astropy.io.fits")
    for name in TABLES:
        truth = products.truth["maps"][name]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with fits.open(products / name, checksum=True) as file:
                file.verify("exception")
                header, rows = file[1].header, np.array(file[1].data)
        value = rows["VALUE"]
        assert value.shape == (len(truth["longitude_deg"]), 2) and np.all(value[:, 1] == value[:, 0] + 0.5)
        assert header["TUNIT" + str(len(rows.dtype))] == "K"
        cell = value[:, 0].astype(int)
        assert np.array_equal(np.sort(cell), np.arange(cell.size))
        if name == "sightlines.fits":
            assert [n.decode() if isinstance(n, bytes) else n for n in rows["NAME"]] == ["A", "B", "C"]
            assert np.array_equal(rows["GLON"], np.array(truth["longitude_deg"])[cell])
        else:
            # Rings go from north to south, and east along a ring.
            latitude, longitude = (np.array(truth[k])[cell] for k in ("latitude_deg", "longitude_deg"))
            place = np.round(-latitude, 9) * 1e4 + longitude
            assert np.all(np.diff(place) > 0) and header["ORDERING"] == "RING"
            if name == "healpix_part.fits":
                assert np.all(np.diff(rows["PIXEL"]) > 0) and header["INDXSCHM"] == "EXPLICIT"
