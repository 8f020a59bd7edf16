# SPDX-License-Identifier: BSD-3-Clause
"""Every GPS satellite of the TART recording as an image of its own."""
import math
import shutil

import numpy as np
import pytest
from astropy.io import fits
from harness import ryle

h5py = pytest.importorskip("h5py")
import tart_satellites  # noqa: E402
from test_tart import BEAM, SITE, in_sigma, recording, vectors  # noqa: E402, F401


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
