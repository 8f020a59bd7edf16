# SPDX-License-Identifier: BSD-3-Clause
"""Long exposures of real data: stacks, their noise, and light curves of visibility files.

TART's 64 ms of voltages are the longest recording there is: integrations of 4 ms stand for the 5 s of a long exposure.
"""

import sqlite3

import numpy as np
import pytest
from astropy.io import fits
from harness import data, ryle

SITE = ("--latitude-deg", "-18.8971446", "--longitude-deg", "47.5551677", "--height-m", "1280")
N = 16  # whole integrations


@pytest.fixture(scope="module")
def visibilities(tmp_path_factory):
    directory = tmp_path_factory.mktemp("stacks")
    for suffix in ("uvh5", "uvfits", "ms"):
        ryle("correlate", data("tart/mg-tana-raw.hdf"), "--format", "tart", "--layout", data("tart/antenna_positions.json"),
             *SITE, "--channels", 16, "--integration", 0.004, "-o", directory / f"tart.{suffix}")
    return directory


def images(path):
    """Mean over the channels of every image, and the exposure of each."""
    with fits.open(path) as f:
        cubes = [h for h in f if h.header["NAXIS"] == 4 and h.name != "WEIGHT"]
        times = f["TIMES"].data["EXPTIME"] if "TIMES" in f else [cubes[0].header["EXPTIME"]]
        return np.array([h.data[0].astype(float).mean(0) for h in cubes]), np.array(times)


def made(visibilities, directory, cadence_s):
    out = directory / "stack.fits"
    ryle("image", visibilities / "tart.uvh5", "--path", "vis-grid", "--cadence", cadence_s, "--pixels", 64, "--products",
         "intensity", "-o", out, "--overwrite")
    return images(out)


def test_a_stack_is_the_mean_of_its_images(visibilities, tmp_path):
    single, exposure = made(visibilities, tmp_path, 0.004)
    assert len(single) >= N and exposure[:N] == pytest.approx(0.004, rel=0.01)
    top = np.nanmax(np.abs(single))
    inside = np.hypot(*(np.mgrid[:64, :64] - 32)) < 0.9 * 64 * 0.40
    shorter = None
    for n in (2, 4, 8):
        stacks, exposure = made(visibilities, tmp_path, 0.004 * n)
        assert exposure[0] == pytest.approx(0.004 * n, rel=0.01)
        means = np.array([single[k * n:(k + 1) * n].mean(0) for k in range(N // n)])
        # The frame of the stars has the north of ICRS: 0.15 degrees from that of the ground in 2026, 0.06 pixel at the edge.
        assert np.nanmax(np.abs(stacks[:N // n] - means)[:, inside]) < 0.05 * top
        # Stacks share that frame (the sky turns by 1e-4 of a pixel in 64 ms): a long one is the mean of two short ones.
        if shorter is not None:
            pairs = (shorter[0:2 * (N // n):2] + shorter[1:2 * (N // n):2]) / 2
            assert np.nanmax(np.abs(stacks[:N // n] - pairs)[:, inside]) < 1e-3 * top
        shorter = stacks
        # The noise of the mean of the images; the turn of the frame smooths nothing away.
        scatter = np.sqrt(np.nanmean(stacks[:N // n].var(0, ddof=1)[inside]))
        same = np.sqrt(np.nanmean(means.var(0, ddof=1)[inside]))
        assert scatter == pytest.approx(same, rel=0.01)
        # How fast it falls is the sky's affair: eleven satellites beat with one another, and their noise is not white.
        # That independent noise falls as 1 / sqrt(n) is shown where it is independent: SkyStack in tests/pipeline.


@pytest.mark.parametrize("suffix", ["uvh5", "uvfits", "ms"])
def test_light_curves_of_visibility_files(visibilities, tmp_path, suffix):
    """Two directions of the sky over the array: the light curve is the exact sum in every integration, at its time."""
    store, out = tmp_path / "watch.sqlite", tmp_path / "all.fits"
    result = ryle("image", visibilities / f"tart.{suffix}", "--path", "vis-dft", "--pixels", 64, "-o", out, "--watch",
                  "zenith=118.23/-18.83, sun", "--light-curves", store)
    watched = {w["name"].lower(): w for w in result["image"]["watched"]}
    assert watched["zenith"]["elevation_deg"] > 89 and watched["sun"]["n_images"] >= N
    db = sqlite3.connect(store)
    rows = db.execute("SELECT utc, centroid_tai_ns, exposure_s, i, q, center_hz FROM light_curve WHERE source = 'zenith' "
                      "ORDER BY centroid_tai_ns").fetchall()
    assert len(rows) >= N
    steps = np.diff([r[1] for r in rows[:N]]) * 1e-9
    assert steps == pytest.approx(0.004, rel=0.01)
    assert rows[0][0].startswith("2026-06-12T11:20:40")
    assert rows[0][5] == pytest.approx(1575.42e6, abs=0.6e6)
    # One input per antenna: no Stokes Q.
    assert all(r[4] is None for r in rows)
    # The mean of the light curve is the mean of the images there, half a pixel away at most.
    stack, _ = images(out)
    n = len(rows)
    center = stack[-1][31:34, 31:34]
    mean = np.mean([r[3] for r in rows[:n]])
    assert center.min() - 3e-3 < mean < center.max() + 3e-3
