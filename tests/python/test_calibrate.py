# SPDX-License-Identifier: BSD-3-Clause
"""Gains: of arrays against NumPy, of files as the program finds them."""
import pathlib

import numpy as np
import pytest
from helpers import data, pairs

import ryle


def simulated(n=12, n_channels=5, seed=4):
    rng = np.random.default_rng(seed)
    gains = rng.uniform(0.7, 1.3, (n_channels, n)) * np.exp(2j * np.pi * rng.uniform(size=(n_channels, n)))
    waves = np.exp(2j * np.pi * rng.uniform(size=(3, n)))
    matrix = np.einsum("k,ka,kb->ab", [1.0, 0.5, 0.2], waves, waves.conj())
    model = np.array([matrix[i, j] for i, j in pairs(n)])
    v = np.array([[g[i] * g[j].conj() * matrix[i, j] for i, j in pairs(n)] for g in gains])
    return gains, v, model


def test_gains_of_arrays_are_those_that_were_put_in():
    gains, v, model = simulated()
    weights = np.ones(v.shape)
    weights[2, 7] = 0
    v[2, 7] = np.nan
    for name in ryle.implementations()["calibrate"]:
        found, flags, sigma = ryle.solve_gains(v, model, weights, implementation=name)
        assert not flags.any()
        assert np.allclose(found, gains * np.exp(-1j * np.angle(gains[:, :1])), atol=1e-5)
        assert (sigma < 1e-2).all()


def test_another_shape_and_a_word_that_is_not_known_are_errors():
    _, v, model = simulated()
    with pytest.raises(ryle.ConfigError, match="baselines"):
        ryle.solve_gains(v[:, :-1], model[:-1])
    with pytest.raises(ryle.ConfigError, match="method"):
        ryle.solve_gains(v, model, method="guess")
    with pytest.raises(ryle.UnsupportedError):
        ryle.solve_gains(v, model, implementation="cuda")


def test_a_file_is_calibrated_as_the_program_does(tmp_path):
    folder = pathlib.Path(data("eda2_20191104"))
    stem = "20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
    description = tmp_path / "eda2.toml"
    description.write_text(f'''[visibilities]
format = "covariance"
real = "{folder / stem.format("real")}"
imaginary = "{folder / stem.format("imag")}"
antennas = "{folder / "antenna_locations.txt"}"
frequency_mhz = 159.375
latitude_deg = -26.70331940
longitude_deg = 116.67081524
height_m = 377
conjugate = "no"
''')
    file = ryle.read_visibilities(description)
    gains = ryle.calibrate(file, "sun")
    assert gains.array.shape == (256, 1, 1) and gains.flags.sum() == len(gains.report["dropped"]) == 14
    assert np.median(np.abs(gains.array[~gains.flags])) == pytest.approx(1, abs=0.01)
    assert 0.001 < np.median(gains.sigma_rad[~gains.flags]) < 0.02
    gains.write(tmp_path / "gains.h5")
    gains.picture(tmp_path / "gains.png")
    with pytest.raises(ryle.DataError, match="would be wrong"):
        ryle.calibrate(file, "sun", max_sigma_deg=0.1)
    with pytest.raises(ryle.ConfigError, match="method"):
        ryle.calibrate(file, "sun", method="guess")
