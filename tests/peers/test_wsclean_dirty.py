# SPDX-License-Identifier: BSD-3-Clause
"""`ryle image` and WSClean make the same dirty image and the same dirty beam of one Measurement Set: equal size, scale
and weights, from the phase centre to 80 degrees from it."""
import json
import os
import subprocess

import numpy as np
import pytest
from conftest import absent, module, program


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("dirty")


def ryle_image(folder, path, *arguments):
    binary = os.environ.get("RYLE_BINARY")
    if not binary:
        absent("ryle (set RYLE_BINARY, or run through ctest)")
    run = subprocess.run([binary, "image", path, "-o", folder / "ryle.fits", "--psf", folder / "ryle-psf.fits", "--overwrite",
                          "--equalize", "no", "--accuracy", "1e-6", "--json", *map(str, arguments)],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def wsclean_image(folder, name, path, n, scale, *weight):
    """By default WSClean grids on as few pixels as the longest baseline needs and interpolates those asked for, which costs
    1e-2 of the peak near the horizon: -no-small-inversion. Where pixels are so wide that a baseline comes near to their
    Nyquist limit it leaves the baseline out."""
    run = subprocess.run(
        [program("wsclean"), "-j", "2", "-name", str(folder / name), "-use-wgridder", "-wgridder-accuracy", "1e-6", "-niter", "0",
         "-no-small-inversion", "-make-psf", "-pol", "I", "-size", str(n), str(n), "-scale", scale,
         "-weight", *weight, "-no-update-model-required", path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stdout[-3000:]


def plane(path):
    fits = module("astropy.io.fits")
    with fits.open(path) as file:
        return file[0].data[0, 0].astype(float), file[0].header.copy()


CASES = {  # Measurement Set, pixels, size of a pixel, weights of both, of the peak
    "hemisphere": ("sky.ms", 600, "8amin", ("natural",), (), 1e-5),  # corners 80 degrees from the phase centre
    "field": ("sky.ms", 256, "3amin", ("natural",), (), 1e-5),
    "losses": ("kind_Jy_2_lossy_field.ms", 128, "10amin", ("natural",), (), 1e-5),
    # Cells of the uv plane are those of WSClean without padding. Of 615 cells a few count otherwise there: 0.7 % of the peak
    # remain, where cells that begin elsewhere leave 5 %.
    "uniform": ("sky.ms", 128, "10amin", ("uniform", "-padding", "1"), ("--weight", "uniform"), 0.015),
    "briggs": ("sky.ms", 128, "10amin", ("briggs", "0.5", "-padding", "1"), ("--weight", "briggs", "--robust", "0.5"), 0.015),
}


@pytest.mark.parametrize("path", ["direct", "w-stacked"])
@pytest.mark.parametrize("case", CASES)
def test_dirty_images_are_the_same(products, folder, case, path):
    name, n, scale, theirs, ours, limit = CASES[case]
    said = ryle_image(folder, products / name, "--pixels", n, "--scale", scale, "--path", path, *ours)
    assert said["path"] == path
    if path == "direct":  # WSClean's images serve both paths
        wsclean_image(folder, case, products / name, n, scale, *theirs)
    for ours_name, theirs_name in (("ryle.fits", f"{case}-dirty.fits"), ("ryle-psf.fits", f"{case}-psf.fits")):
        image, header = plane(folder / ours_name)
        peer, peer_header = plane(folder / theirs_name)
        sky = np.isfinite(image)
        assert sky.mean() > 0.9
        worst = np.abs(image - peer)[sky].max() / np.abs(peer[sky]).max()
        assert worst < limit, f"{ours_name}: {worst:.2e} of the peak"
        for key in ("CRPIX1", "CRPIX2"):
            assert header[key] == peer_header[key]
        assert header["CDELT2"] == pytest.approx(peer_header["CDELT2"], rel=1e-6)
    # Each fits what is above its own level of the main lobe, which is no Gaussian.
    if case == "field":
        for key in ("BMAJ", "BMIN"):
            assert header[key] == pytest.approx(peer_header[key], rel=0.1)
