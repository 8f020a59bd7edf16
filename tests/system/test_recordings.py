# SPDX-License-Identifier: BSD-3-Clause
"""Real telescope data through the commands users type."""

import json


import h5py
import numpy as np
import pytest
from harness import data, run


@pytest.mark.parametrize("name", ["baseband/sample.vdif", "baseband/sample.dada", "baseband/sample_puppi.raw",
                                  "baseband/sample_mwa.vdif", "lwa/tbn-test.dat", "lwa/tbf-test.dat",
                                  "tart/mg-tana-raw.hdf"])
def test_info_reads_every_format(name):
    facts = json.loads(run("info", data(name), "--json").stdout)
    assert facts["inputs"] > 0 and facts["kind"] in ("samples", "spectra")


def test_a_rate_that_is_not_known_is_not_printed_as_one():
    path = data("baseband/sample_mwa.vdif")
    facts = json.loads(run("info", path, "--json").stdout)
    assert facts["rate_hz"] is None and facts["duration_s"] is None
    text = run("info", path).stdout
    assert "rate_hz: not known" in text and "duration_s: not known" in text


def test_damaged_headers_are_refused_or_skipped():
    done = run("info", data("baseband/sample_drao_corrupted.vdif"), check=None)
    assert done.returncode in (0, 65)
    assert done.returncode == 0 or "sample_drao_corrupted.vdif" in done.stderr


def test_a_station_file_that_does_not_match_is_refused(tmp_path):
    done = run("correlate", data("lwa/tbx-test.dat"), "--format", "tbx", "--station", data("lwa/lwasv-ssmif.txt"), "-o",
               tmp_path / "x.uvh5", check=78)
    assert "512 inputs" in done.stderr and "128" in done.stderr


def test_a_recording_without_a_rate_is_refused_until_it_is_given(tmp_path):
    layout = tmp_path / "two.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n"
                      "A,0,0,0,X,0\nA,0,0,0,Y,0\nB,9,0,0,X,0\nB,9,0,0,Y,0\n")
    common = ["correlate", data("lwa/vdif-test.dat"), "--layout", layout, "-o", tmp_path / "v.uvh5", "--center-mhz", 60,
              "--integration", 0.001]
    done = run(*common, check=78)
    assert "sample rate" in done.stderr and "--rate" in done.stderr


# The levels of 8-bit spectra were once set from the first samples and clipped what came after: 0.963 of this power.
# A plain FFT keeps the sum of squares of every block of samples, so that the sum over channels is the mean over time.
def test_no_power_of_a_recording_is_clipped(tmp_path):
    recording = data("baseband/sample.dada")
    layout = tmp_path / "two.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\nA,0,0,0,X,0\nA,0,0,0,Y,0\n")
    out = tmp_path / "d.uvh5"
    samples = np.fromfile(recording, np.int8, offset=4096).reshape(-1, 2, 2).astype(float)  # [time][pol][re, im]
    n_channels = 16
    whole = samples[:len(samples) // n_channels * n_channels]
    duration_s = len(samples) / 16e6
    run("correlate", recording, "--layout", layout, "-o", out, "--channels", n_channels, "--taps", 1, "--device", "cpu",
        "--integration", duration_s, "--fringe-stopping", "none", "--set", "correlate.van_vleck=off")
    with h5py.File(out) as file:
        values, counts = file["Data/visdata"][...], file["Data/nsamples"][...]
        order = list(file["Header/polarization_array"][...])
    values = values.reshape(-1, n_channels, len(order))
    counts = counts.reshape(values.shape)
    for pol, code in enumerate((-5, -6)):  # XX, YY
        mean = np.average(values[..., order.index(code)].real, weights=counts[..., order.index(code)])
        assert mean == pytest.approx((whole[:, pol] ** 2).sum(axis=-1).mean(), rel=1e-3)
