# SPDX-License-Identifier: BSD-3-Clause
"""Gains from real visibilities and a real recording."""
import csv
import math

import h5py
import numpy as np
import pytest
from harness import data, ryle


EDA2 = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
# The 13 antennas of the set that have no data, by PROVENANCE.md, and a wild one.
EDA2_DEAD = {1, 18, 31, 81, 86, 136, 141, 158, 192, 210, 221, 233, 252}


def eda2():
    return [data(EDA2.format("real")), "--imag", data(EDA2.format("imag")), "--antennas",
            data("eda2_20191104/antenna_locations.txt"), "--frequency-mhz", "159.375", "--latitude-deg", "-26.70331940",
            "--longitude-deg", "116.67081524", "--height-m", "377", "--conjugate", "no"]


def read_csv(path):
    rows = csv.DictReader(line for line in open(path) if not line.startswith("#"))
    return np.array([float(r["amplitude"]) * np.exp(1j * math.radians(float(r["phase_deg"]))) for r in rows])


@pytest.mark.parametrize("uv_min, limit_deg", [(0, 1.2), (2, 0.9), (5, 0.6)])
def test_eda2_finds_its_gains_from_the_sun(tmp_path, uv_min, limit_deg):
    out, table = tmp_path / "gains.csv", tmp_path / "gains.h5"
    result = ryle("calibrate", *eda2(), "--model", "sun", "--uv-min", uv_min, "-o", out, "-o", table, "--png",
                  tmp_path / "gains.png")
    (found,) = result["sets"]
    dropped = {d["antenna"] for d in result["dropped"]}
    assert EDA2_DEAD <= dropped and 12 <= len(dropped) <= 16
    assert any(d["why"].startswith("wild") for d in result["dropped"])
    assert found["n_converged"] == 1 and found["rounds"] <= 60
    assert found["halves_deg"] <= limit_deg
    assert 5 < found["phase_rms_deg"] < 20
    assert (tmp_path / "gains.png").stat().st_size > 10000
    # The Sun, without the inputs that were left out, and with the gains.
    dead = ",".join(str(a) for a in sorted(dropped))
    image = ryle("image", *eda2(), "--dead", dead, "--path", "vis-grid", "--pixels", 256, "--gains", out, "-o",
                 tmp_path / "sun.fits")
    assert image["peak"]["sigma"] >= 83
    gains = read_csv(out)
    assert gains.shape == (256,) and np.median(np.abs(gains)) == pytest.approx(1, abs=0.02)
    with h5py.File(table) as file:
        assert file["Header/gain_convention"][()] == b"divide"
        assert file["Data/flags"][:, 0, 0, 0].sum() == len(dropped)


def test_one_spectrum_of_tbx_is_refused_with_the_spectra_that_would_do(tmp_path):
    message = ryle("calibrate", data("lwa/tbx-test.dat"), "--station",
                   data("lwa/lwana-ssmif-2024may.txt"), "--model", "sun", "-o", tmp_path / "gains.csv", expect=65)
    assert "spectra" in message and "--max-sigma-deg" in message
    words = message.split()
    needed = float(words[words.index("spectra") - 1])
    error_deg = float(words[words.index("deg,") - 1])
    # The Sun is 0.005 to 0.007 of the power of an input: 50 to 70 deg by the bound of 312 channels, 25 to 50 spectra for 10.
    assert 9 <= needed <= 55 and needed == pytest.approx((error_deg / 10) ** 2, rel=0.1, abs=1)
    assert not (tmp_path / "gains.csv").exists()
