# SPDX-License-Identifier: BSD-3-Clause
"""More of imaging, for those who have a minute (label slow)."""

import json
import math
import signal

import numpy as np
import pytest
from astropy.io import fits
from harness import data, run, ryle, start, stop, summary, wait_for
from imaging import LWA_SUN, SOURCES, images_of, live_arguments, plane, radius, sources_in, tbx


def test_a_correlated_grid_is_the_efield_image(tmp_path):
    a = tbx("--path", "efield", "-o", tmp_path / "a.fits", "--pixels", 64)
    b = tbx("--path", "vis-grid", "--set", "image.correlated_functions=true", "-o", tmp_path / "b.fits", "--pixels", 64)
    assert (a["path"], b["path"]) == ("efield", "vis-grid")
    one, two = plane(tmp_path / "a.fits"), plane(tmp_path / "b.fits")
    use = radius(64) < 0.95
    # One identity, two ways, in fp32: image.md 12, T-EP-01.
    assert np.nanmax(np.abs(one - two)[use]) < 2e-5 * np.nanmax(one)


def test_visibility_paths_agree_with_the_direct_sum(tmp_path):
    vis = tmp_path / "lwa.uvh5"
    ryle("correlate", data("lwa/tbx-test.dat"), "--station", data("lwa/lwana-ssmif-2024may.txt"), "-o", vis)
    result = ryle("image", vis, "--path", "vis-grid", "-o", tmp_path / "a.fits")
    peak = result["peak"]
    assert math.hypot(peak["l"] - LWA_SUN[0], peak["m"] - LWA_SUN[1]) < 0.02 and peak["sigma"] >= 7.5
    # The same voltages without the detour.
    tbx("--path", "vis-grid", "--set", "image.dead_below=0", "--set", "image.dead_above=1e9", "-o", tmp_path / "b.fits")
    one, two = plane(tmp_path / "a.fits"), plane(tmp_path / "b.fits")
    use = radius(128) < 0.8
    # Visibilities are stored in float32: 312 channels x 8000 pairs of 6e-8 each, far below 1e-4.
    assert np.nanmax(np.abs(one - two)[use]) < 1e-4 * np.nanmax(two)


def test_bins_and_products(tmp_path):
    result = tbx("--channels-per-bin", 100, "--products", "linear", "-o", tmp_path / "a.fits", "--pixels", 64)
    assert result["image"]["n_bins"] == 4
    header = fits.getheader(tmp_path / "a.fits")
    # 312 channels from 2176 of 196 MHz / 8192: the first hundred are centred at channel 2225.5.
    width = 196e6 / 8192
    assert header["CRVAL3"] == pytest.approx(2225.5 * width, abs=1)
    assert header["CDELT3"] == pytest.approx(100 * width, abs=1e-3)
    assert header["NAXIS3"] == 4 and header["CRVAL4"] == -5


def test_time_samples_are_channelized_first(tmp_path):
    result = ryle("image", data("tart/mg-tana-raw.hdf"), "--format", "tart", "--layout",
                  data("tart/antenna_positions.json"), "--latitude-deg", -18.897, "--longitude-deg", 47.555,
                  "--height-m", 1280, "--channels", 128, "--pixels", 96, "--path", "vis-dft", "-o", tmp_path / "t.fits")
    assert any(i.startswith("channelize/") for i in result["implementations"])
    assert result["image"]["n_inputs"] == 24 and result["image"]["images"] == 1
    assert result["peak"]["sigma"] > 4  # PRN 28: 7.2 sigma in its own few channels (image.md 12)


def test_a_silent_board_changes_weights_not_fluxes(tmp_path):
    # Board 3 of 16 never sends: 240 of 256 stands, 0.5 s of patience for it.
    s = summary(run(*live_arguments(tmp_path, "simulator.dying_receiver=3", "simulator.dies_at_s=0",
                                    "simulator.returns_at_s=0", "source.no_data_s=0.3", "image.path=vis-grid")))
    image = s["image"]
    assert s["undelivered_samples"] > 0 and s["lost_samples"] == 0 and image["images"] >= 3
    assert image["weight_fraction"] == pytest.approx(240 * 239 / (256 * 255), rel=1e-6)
    for name, (dx, dy, flux) in sources_in(images_of(tmp_path)[-1]).items():
        assert math.hypot(dx, dy) < 0.06, name
        assert flux == pytest.approx(SOURCES[name], rel=0.06), name


def test_dead_inputs_are_left_out(tmp_path):
    dead = [0, 1, 40, 77, 511]
    s = summary(run(*live_arguments(tmp_path, f"simulator.dead_inputs={dead}", duration_s=0.04)))
    assert s["image"]["n_dead_inputs"] == len(dead) and s["image"]["images"] == 2
    watched = {w["name"]: w for w in s["image"]["watched"]}
    for name, flux in SOURCES.items():
        assert watched[name]["mean_flux"] == pytest.approx(flux, rel=0.03), name


def test_an_interrupt_publishes_whole_images(tmp_path):
    process = start(*live_arguments(tmp_path, duration_s=10, speed=0.04))
    wait_for(lambda: len(images_of(tmp_path)) >= 2)
    code, out, err = stop(process, signal.SIGINT)
    assert code == 0, err
    s = json.loads(out.strip().splitlines()[-1])
    assert s["stopped_by_signal"] and s["image"]["images"] == len(images_of(tmp_path))
    assert not list(tmp_path.glob(".*part"))
    for file in images_of(tmp_path):
        with fits.open(file, checksum=True) as f:
            f.verify("exception")
