# SPDX-License-Identifier: BSD-3-Clause
"""`ryle image` and WSClean make the same dirty image and the same dirty beam of one Measurement Set: equal size, scale
and weights, from the phase centre to 75 degrees from it."""
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
                          "--equalize", "no", "--json", *map(str, arguments)],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    return json.loads(run.stdout.splitlines()[-1])


def wsclean_image(folder, path, n, scale, *weight):
    run = subprocess.run(
        [program("wsclean"), "-j", "2", "-name", str(folder / "ws"), "-use-wgridder", "-wgridder-accuracy", "1e-6", "-niter", "0",
         "-make-psf", "-pol", "I", "-size", str(n), str(n), "-scale", scale, "-weight", *weight, "-no-update-model-required", path],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stdout[-3000:]


def plane(path):
    fits = module("astropy.io.fits")
    with fits.open(path) as file:
        return file[0].data[0, 0].astype(float), file[0].header.copy()


CASES = {  # Measurement Set, pixels, size of a pixel, weights of both
    "hemisphere": ("sky.ms", 200, "24amin", ("natural",), ()),  # corners 80 degrees from the phase centre
    "field": ("sky.ms", 256, "3amin", ("natural",), ()),
    "losses": ("kind_Jy_2_lossy_field.ms", 128, "10amin", ("natural",), ()),
    "uniform": ("sky.ms", 128, "10amin", ("uniform",), ("--weight", "uniform")),
    "briggs": ("sky.ms", 128, "10amin", ("briggs", "0.5"), ("--weight", "briggs", "--robust", "0.5")),
}


@pytest.mark.parametrize("path", ["direct", "w-stacked"])
@pytest.mark.parametrize("case", CASES)
def test_dirty_images_are_the_same(products, folder, case, path):
    name, n, scale, theirs, ours = CASES[case]
    said = ryle_image(folder, products / name, "--pixels", n, "--scale", scale, "--path", path, *ours)
    assert said["path"] == path
    wsclean_image(folder, products / name, n, scale, *theirs)
    for ours_name, theirs_name in (("ryle.fits", "ws-dirty.fits"), ("ryle-psf.fits", "ws-psf.fits")):
        image, header = plane(folder / ours_name)
        peer, peer_header = plane(folder / theirs_name)
        sky = np.isfinite(image)
        assert sky.mean() > 0.9
        peak = np.abs(peer[sky]).max()
        worst = np.abs(image - peer)[sky].max() / peak
        # Both grid to 1e-6 of the mean |V|; the peak is a share of that. WSClean's weights and uvw are float.
        assert worst < 1e-3, f"{ours_name}: {worst:.2e} of the peak"
        for key in ("CRPIX1", "CRPIX2"):
            assert header[key] == peer_header[key]
        assert header["CDELT2"] == pytest.approx(peer_header["CDELT2"], rel=1e-6)
    # Each fits what is above its own level of the main lobe, which is no Gaussian.
    if case in ("field", "losses"):
        for key in ("BMAJ", "BMIN"):
            assert header[key] == pytest.approx(peer_header[key], rel=0.1)
