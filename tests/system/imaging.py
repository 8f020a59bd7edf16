# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of imaging share."""

import math
import pathlib

import astropy.units as u
import numpy as np
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.wcs import WCS
from harness import ROOT, data, endpoints, ryle

LWA_SUN = (0.393, -0.141)
SOURCES = {"Cyg A": 3000, "Cas A": 2500, "Vir A": 1500}


def tbx(*arguments, expect=0):
    return ryle("image", data("lwa/tbx-test.dat"), "--station", data("lwa/lwana-ssmif-2024may.txt"), *arguments,
                expect=expect)


def plane(path, index=0):
    return fits.getdata(path)[index, 0].astype(float)


def radius(n):
    y, x = np.mgrid[:n, :n]
    return np.hypot(x - n // 2, y - n // 2) / (n * 0.40)


def live_arguments(directory, *settings, duration_s=0.08, speed=0.04):
    """`ryle run examples/lwasv.toml` on a port of its own, short; the ring holds the whole run."""
    arguments = ["run", ROOT / "examples/lwasv.toml", "-o", directory, "--json", "-q", "--allow-small-rcvbuf",
                 "--set", f"source.listen={endpoints(['udp'])}", "--set", f"simulator.duration_s={duration_s}",
                 "--set", f"simulator.speed={speed}", "--set", "source.n_chunks=32", "--set",
                 "source.stall_budget_s=1.0", "--set", "source.close_after_ms=20000"]
    for setting in settings:
        arguments += ["--set", setting]
    return arguments


def images_of(directory):
    return sorted(pathlib.Path(directory).glob("lwasv_image_*.fits"))


def sources_in(file):
    """Offset in pixels from its place by the header, and flux, of every simulated source."""
    with fits.open(file) as f:
        image, header = f[0].data[0, 0].astype(float), f[0].header
    wcs = WCS(header).celestial
    found = {}
    places = {"Cyg A": (299.86815, 40.73392), "Cas A": (350.85, 58.815), "Vir A": (187.70593, 12.39112)}
    for name, (ra, dec) in places.items():
        x, y = (float(v) for v in wcs.world_to_pixel(SkyCoord(ra * u.deg, dec * u.deg)))
        ix, iy = round(x), round(y)
        box = image[iy - 1:iy + 2, ix - 1:ix + 2]
        # A parabola through logarithms: exact for a Gaussian peak.
        g = np.log(np.maximum(box, 1e-3))
        dx = 0.5 * (g[1, 0] - g[1, 2]) / (g[1, 0] - 2 * g[1, 1] + g[1, 2])
        dy = 0.5 * (g[0, 1] - g[2, 1]) / (g[0, 1] - 2 * g[1, 1] + g[2, 1])
        top = g[1, 1] - 0.25 * (g[1, 0] - g[1, 2]) * dx - 0.25 * (g[0, 1] - g[2, 1]) * dy
        found[name] = (ix + dx - x, iy + dy - y, math.exp(top))
    return found
