# SPDX-License-Identifier: BSD-3-Clause
"""WSClean images our Measurement Set and finds each source where it was put, with its flux and its circular sign."""
import subprocess

import numpy as np
import pytest
from conftest import module, program


def fitted_peak(image, x, y):
    """Pixel position and height of the Gaussian through the 3 x 3 pixels about the extreme value near (x, y)."""
    xi, yi = int(round(x)), int(round(y))
    box = image[yi - 3:yi + 4, xi - 3:xi + 4]
    dy, dx = np.unravel_index(np.argmax(np.abs(box)), box.shape)
    yy, xx = yi - 3 + dy, xi - 3 + dx
    nine = image[yy - 1:yy + 2, xx - 1:xx + 2].astype(float)
    sign = np.sign(nine[1, 1])
    log = np.log(np.maximum(nine * sign, 1e-30))
    gradient = np.array([log[1, 2] - log[1, 0], log[2, 1] - log[0, 1]]) / 2
    mixed = (log[2, 2] - log[2, 0] - log[0, 2] + log[0, 0]) / 4
    curvature = np.array([[log[1, 2] - 2 * log[1, 1] + log[1, 0], mixed],
                          [mixed, log[2, 1] - 2 * log[1, 1] + log[0, 1]]])
    step = -np.linalg.solve(curvature, gradient)
    return xx + step[0], yy + step[1], sign * np.exp(log[1, 1] + gradient @ step / 2)


@pytest.fixture(scope="module")
def images(products, tmp_path_factory):
    wsclean = program("wsclean")
    fits = module("astropy.io.fits")
    wcs = module("astropy.wcs")
    stem = tmp_path_factory.mktemp("wsclean") / "sky"
    run = subprocess.run(
        [wsclean, "-j", "2", "-name", str(stem), "-use-wgridder", "-pol", "IQUV", "-size", "400", "400", "-scale", "3amin",
         "-weight", "uniform", "-niter", "20000", "-gain", "0.1", "-mgain", "0.7", "-threshold", "0.003",
         "-no-update-model-required", products / "sky.ms"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    out = {}
    for stokes in "IQUV":
        with fits.open(f"{stem}-{stokes}-image.fits") as file:
            out[stokes] = file[0].data[0, 0].astype(float)
            header = file[0].header
    out["wcs"] = wcs.WCS(header).celestial
    return out


def pixel_of(images, source):
    return images["wcs"].world_to_pixel_values(np.degrees(source["ra_rad"]), np.degrees(source["dec_rad"]))


@pytest.mark.parametrize("k", range(4))
def test_position_and_flux(products, images, k):
    source = products.truth["sources"][k]
    x, y = pixel_of(images, source)
    found_x, found_y, flux = fitted_peak(images["I"], float(x), float(y))
    assert abs(found_x - x) < 0.2 and abs(found_y - y) < 0.2
    assert abs(flux / source["i"] - 1) < 0.02
    # Mirrored through the centre there is nothing: the signs of uvw and data agree.
    cx, cy = 200, 200
    mx, my = int(round(2 * cx - float(x))), int(round(2 * cy - float(y)))
    assert np.abs(images["I"][my - 2:my + 3, mx - 2:mx + 3]).max() < 0.1 * source["i"]


@pytest.mark.parametrize("k", range(4))
def test_polarization_signs(products, images, k):
    source = products.truth["sources"][k]
    x, y = (float(v) for v in pixel_of(images, source))
    for stokes in "QUV":
        expected = source[stokes.lower()]
        near = images[stokes][int(round(y)) - 1:int(round(y)) + 2, int(round(x)) - 1:int(round(x)) + 2]
        if expected == 0:
            assert np.abs(near).max() < 0.03, stokes
        else:
            assert abs(fitted_peak(images[stokes], x, y)[2] / expected - 1) < 0.02, stokes
