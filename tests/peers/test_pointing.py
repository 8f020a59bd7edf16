# SPDX-License-Identifier: BSD-3-Clause
"""Directions of beams against astropy with the same dUT1: 1 arcsec (T-BF-06, 19). Without polar motion, which astropy
has and we leave out (0.5 arcsec at most)."""
import os
import subprocess

from conftest import absent, module

SITE = (44.5239, 11.6456, 25.0)
TIMES = ("2017-03-04T05:06:07.000", "2020-06-15T12:00:00.250", "2016-12-31T23:59:58.500", "2024-11-22T03:00:00.000")
PLACES = ((0.0, 40.0), (359.999999, 40.0), (53.2475, 54.5787), (15.0, 89.9), (200.0, 10.0), (299.868, 40.734))


def ours(lines):
    helper = os.environ.get("RYLE_PRINT_POINTING")
    if not helper:
        absent("print_pointing (set RYLE_PRINT_POINTING, or run through ctest)")
    result = subprocess.run([helper, *map(str, SITE)], input="\n".join(lines) + "\n", capture_output=True, text=True,
                            timeout=60, check=True)
    return [tuple(map(float, row.split())) for row in result.stdout.splitlines()]


def compare(frame, make):
    """Largest separation in arcsec from astropy, over all times and places above the horizon by 5 deg."""
    coordinates, units, time = module("astropy.coordinates"), module("astropy.units"), module("astropy.time")
    site = coordinates.EarthLocation.from_geodetic(SITE[1], SITE[0], SITE[2])
    lines, wanted = [], []
    for utc in TIMES:
        instant = time.Time(utc, scale="utc", location=site)
        horizon = coordinates.AltAz(obstime=instant, location=site, pressure=0 * units.hPa)
        for lon, lat in PLACES:
            lines.append(f"{frame} {utc} {float(instant.delta_ut1_utc):.9f} {lon} {lat}")
            wanted.append(make(coordinates, units, instant, site, lon, lat).transform_to(horizon))
    worst, used = 0.0, 0
    for (azimuth, elevation), want in zip(ours(lines), wanted):
        if want.alt.deg < 5:
            continue
        got = coordinates.SkyCoord(az=azimuth * units.deg, alt=elevation * units.deg, frame=want.frame)
        worst, used = max(worst, got.separation(want).arcsec), used + 1
    assert used >= 8
    return worst


def test_icrs(offline):
    worst = compare("icrs", lambda c, u, t, s, lon, lat: c.SkyCoord(lon * u.deg, lat * u.deg, frame="icrs"))
    assert worst < 1.0, worst


def test_apparent(offline):
    def make(c, u, t, s, lon, lat):
        return c.SkyCoord(lon * u.deg, lat * u.deg, frame=c.TETE(obstime=t, location=s))
    worst = compare("apparent", make)
    assert worst < 1.0, worst


def test_hadec(offline):
    def make(c, u, t, s, lon, lat):
        return c.SkyCoord(ha=lon * u.deg, dec=lat * u.deg, frame=c.HADec(obstime=t, location=s, pressure=0 * u.hPa))
    worst = compare("hadec", make)
    assert worst < 1.0, worst
