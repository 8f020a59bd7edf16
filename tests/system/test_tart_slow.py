# SPDX-License-Identifier: BSD-3-Clause
"""The GPS satellites of the TART recording in images: together, and every one as an image of its own."""
import math
import shutil

import numpy as np
import pytest
from astropy.io import fits
from harness import ryle

h5py = pytest.importorskip("h5py")
import tart_satellites  # noqa: E402
from test_tart import REQUIRED_COHERENCE, SITE, recording, vectors  # noqa: E402, F401


def test_the_fit_would_notice_a_swapped_pair_of_antennas(recording):  # noqa: F811
    """Otherwise the coherence would prove nothing: vectors made from directions fit perfectly, two swapped ones do not."""
    *_, positions = recording
    k = 2 * np.pi * tart_satellites.RADIO_FREQUENCY / tart_satellites.SPEED_OF_LIGHT
    random = np.random.default_rng(1)
    gains = np.exp(2j * np.pi * random.random(24))
    vectors = {prn: gains * np.exp(1j * k * (positions @ random.uniform(-.6, .6, 2))) for prn in tart_satellites.DOPPLER}
    assert min(tart_satellites.joint_fit(vectors, positions).values()) > 0.999
    swapped = positions.copy()
    swapped[[3, 17]] = swapped[[17, 3]]
    assert min(tart_satellites.joint_fit(vectors, swapped).values()) < REQUIRED_COHERENCE


def at(image, l, m):
    """Largest pixel within one of a direction, and its offset in direction cosines."""
    n = len(image)
    x, y = round(n // 2 - 0.40 * n * l), round(n // 2 + 0.40 * n * m)
    box = image[y - 1:y + 2, x - 1:x + 2]
    dy, dx = np.unravel_index(np.nanargmax(box), box.shape)
    x, y = x + dx - 1, y + dy - 1
    return image[y, x], math.hypot(l + (x - n // 2) / (0.40 * n), m - (y - n // 2) / (0.40 * n))


def in_sigma(image):
    middle = np.nanmedian(image)
    return (image - middle) / (1.4826 * np.nanmedian(np.abs(image - middle)))


# A synthesized beam of 24 antennas within 1.7 m: 0.6 wavelengths of 0.19 m over an rms radius of 1.05 m (FWHM, direction cosines).
BEAM = 0.055


@pytest.mark.parametrize("through", ["voltages", "visibilities"])
def test_satellites_stand_in_the_image_where_the_fit_has_them(recording, vectors, tmp_path, through):  # noqa: F811
    """64 ms of the voltages as they are: what stands out of the noise of the sky stands at its place."""
    folder, _, _, positions = recording
    phases, directions, _ = tart_satellites.fit(vectors[0], positions)
    phases, directions = tart_satellites.above_the_horizon(phases, directions, positions)
    assert max(math.hypot(*d) for d in directions.values()) < 1
    images = {}
    tried = {"right": phases, "wrong": phases.conj()} if through == "voltages" else {"right": phases}
    for name, gains in tried.items():
        tart_satellites.write_gains(tmp_path / "gains.csv", gains)
        source = folder / "mg-tana-raw.hdf"
        arguments = ["--format", "tart", "--layout", folder / "antenna_positions.json", *SITE, "--channels", 64]
        if through == "visibilities":
            ryle("correlate", source, *arguments, "--integration", 0.064, "-o", tmp_path / "tart.uvh5", "--overwrite")
            source, arguments = tmp_path / "tart.uvh5", []
        result = ryle("image", source, *arguments, "--channels-per-bin", 8, "--path", "vis-grid", "--gains",
                      tmp_path / "gains.csv", "-o", tmp_path / "tart.fits", "--overwrite")
        assert result["path"] == "vis-grid"
        cube, header = fits.getdata(tmp_path / "tart.fits")[0], fits.getheader(tmp_path / "tart.fits")
        frequency = header["CRVAL3"] + header["CDELT3"] * np.arange(len(cube))
        inside = np.abs(frequency - tart_satellites.RADIO_FREQUENCY) < 1.02e6  # most of the power of the C/A codes
        images[name] = in_sigma(cube[inside].astype(float).mean(0))
    # image.md 12 has 7.2, 5.2, 4.5, 4.5 in another 2 MHz. A place is good to half a beam over its signal-to-noise ratio (1 sigma)
    # on each axis, and half a pixel of 1 / (128 x 0.40).
    for prn, least in {28: 7.0, 16: 4.9, 26: 4.3, 31: 4.0, 27: 3.6}.items():
        sigma, off = at(images["right"], *directions[prn])
        assert sigma > least, prn
        assert off < 2 * math.sqrt(2) * BEAM / (2 * sigma) + 0.5 * math.sqrt(2) / (128 * 0.40), prn
        assert "wrong" not in images or at(images["wrong"], *directions[prn])[0] < 3.6, prn
    # The brightest is the brightest of the whole sky.
    assert np.nanmax(images["right"]) == at(images["right"], *directions[28])[0]


def test_every_satellite_alone_in_the_sky(recording, vectors, tmp_path):  # noqa: F811
    """Times its code, a satellite is a line at its carrier, the others stay noise: a point source of its own in one channel.
    Bits times +-1 are bits, so the recording stays one."""
    folder, bits, config, positions = recording
    phases, directions, coherence = tart_satellites.fit(vectors[0], positions)
    phases, directions = tart_satellites.above_the_horizon(phases, directions, positions)
    tart_satellites.write_gains(tmp_path / "gains.csv", phases)
    path = tmp_path / "alone.hdf"
    shutil.copy(folder / "mg-tana-raw.hdf", path)
    path.chmod(0o644)
    for prn, code in tart_satellites.codes(bits, config):
        with h5py.File(path, "r+") as f:
            f["data"][:] = np.packbits(bits ^ (code < 0), axis=1)
        ryle("image", path, "--format", "tart", "--layout", folder / "antenna_positions.json", *SITE, "--channels", 256,
             "--channels-per-bin", 1, "--pixels", 128, "--products", "intensity", "--path", "vis-grid", "--gains",
             tmp_path / "gains.csv", "-o", tmp_path / "alone.fits", "--overwrite")
        cube, header = fits.getdata(tmp_path / "alone.fits")[0], fits.getheader(tmp_path / "alone.fits")
        channel = int(np.nanmax(cube, axis=(1, 2)).argmax())
        frequency = header["CRVAL3"] + header["CDELT3"] * channel
        # Doppler shifts are a tenth of a channel.
        assert abs(frequency - tart_satellites.RADIO_FREQUENCY) < 0.5 * header["CDELT3"], prn
        image = in_sigma(cube[channel].astype(float))
        y, x = np.unravel_index(np.nanargmax(image), image.shape)
        l, m = -(x - 64) / (128 * 0.40), (y - 64) / (128 * 0.40)
        # Phases that the fit leaves, sqrt(2 (1 - coherence)) rad, turn the wavefront by beam / sqrt(24) of them: 0.004 at most.
        left = math.sqrt(2 * (1 - coherence[prn])) * BEAM / math.sqrt(24)
        off = math.hypot(l - directions[prn][0], m - directions[prn][1])
        print(prn, round(float(image[y, x]), 1), round(off, 4))
        assert off < 3 * left + 0.5 * math.sqrt(2) / (128 * 0.40), prn
        assert image[y, x] > 12, prn
