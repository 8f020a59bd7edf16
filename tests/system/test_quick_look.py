# SPDX-License-Identifier: BSD-3-Clause
"""The first picture a user sees: examples/mwa32t.toml."""
import math
import tomllib

import numpy as np
from astropy.io import fits
from harness import ROOT, live_arguments, run, ryle


def test_the_three_sources_stand_out_from_the_sidelobes(tmp_path):
    example = tomllib.loads((ROOT / "examples/mwa32t.toml").read_text())
    run(*live_arguments(tmp_path, "output.pictures=false", "output.ms=false", "output.uvfits=false", duration_s=0.25, speed=0.25))
    keys = example["image"]
    width = keys.get("width", 2.0)
    taper = keys["taper_pixels"] * width / keys["n_pixels"]  # as the quick look takes it
    ryle("image", tmp_path / "mwa32t.uvh5", "--pixels", keys["n_pixels"], "--width", width, "--taper", taper,
         "--channel-average", keys.get("channel_average", 8), "-o", tmp_path / "sky.fits")
    header = fits.getheader(tmp_path / "sky.fits")
    sky = fits.getdata(tmp_path / "sky.fits")[0, 0].astype(float)
    n, cell = keys["n_pixels"], width / keys["n_pixels"]
    assert math.radians(header["BMIN"]) > 1.8 * cell  # sampled
    y, x = np.mgrid[:n, :n]
    l, m = (n // 2 - x) * cell, (y - n // 2) * cell
    elsewhere = np.isfinite(sky)
    peaks = []
    for source in example["simulator"]["source"]:
        distance = np.hypot(l - source["l"], m - source["m"])
        peaks.append(np.nanmax(np.where(distance < 0.02, sky, -np.inf)))
        elsewhere &= distance > 0.08
    print(peaks, np.max(sky[elsewhere]))
    assert min(peaks) > 1.5 * np.max(sky[elsewhere])
