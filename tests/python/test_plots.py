# SPDX-License-Identifier: BSD-3-Clause
"""Every result draws itself, on axes that are given or new ones."""

import numpy as np
import pytest
from helpers import codes

import ryle

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
BAND = np.linspace(1.2e9, 1.5e9, 16)


def results():
    rng = np.random.default_rng(1)
    spectra = ryle.channelize(codes(rng, (3, 4096)), 16)
    yield spectra
    yield ryle.correlate(spectra)
    yield ryle.beamform(spectra, np.ones((1, 16, 3), np.complex64), integration=4)
    yield ryle.beamform(spectra, np.ones((1, 16, 3), np.complex64), output="voltage")
    yield ryle.dedisperse(rng.integers(0, 60, (16, 900)).astype(np.uint8), [0.0, 20.0, 40.0], frequency_hz=BAND, interval_s=1e-3)
    yield ryle.search(rng.normal(9, 1, (16, 4096)).astype(np.float32), frequency_hz=BAND, interval_s=1e-3, dm_max=50)
    yield ryle.fold(rng.normal(size=999).astype(np.float32), period_s=0.1, interval_s=1e-3, search=False)
    yield ryle.image_samples(rng.normal(0, 5, (99, 3)), np.ones(99, complex), n_pixels=32)
    cells = tuple(np.meshgrid(np.linspace(-0.2, 0.2, 9), np.linspace(-0.2, 0.2, 9)))
    yield ryle.grid(np.zeros(5), np.zeros(5), np.ones(5, np.float32), cells, beam="9arcmin")


def test_every_result_is_drawn(tmp_path):
    import matplotlib.pyplot as plt

    drawn = 0
    for k, result in enumerate(results()):
        ax = result.plot()
        ax.figure.savefig(tmp_path / f"{k}.png")
        assert (tmp_path / f"{k}.png").stat().st_size > 3000 and ax.get_xlabel() != "" or isinstance(result, ryle.Map)
        mine = plt.subplots()[1]
        assert result.plot(mine) is mine
        plt.close("all")
        drawn += 1
    assert drawn == 9


def test_a_map_with_a_wcs_has_its_coordinates():
    WCS = pytest.importorskip("astropy.wcs").WCS
    wcs = WCS(naxis=2)
    wcs.wcs.ctype, wcs.wcs.crval, wcs.wcs.crpix, wcs.wcs.cdelt = ["RA---SIN", "DEC--SIN"], [23.5, 30.7], [8, 8], [-0.05, 0.05]
    lon, lat = np.full(9, 23.5), np.full(9, 30.7)
    ax = ryle.grid(lon, lat, np.ones(9, np.float32), wcs, shape=(15, 15), beam="9arcmin").plot()
    assert type(ax).__name__ == "WCSAxes"
