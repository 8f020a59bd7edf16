# SPDX-License-Identifier: BSD-3-Clause
"""Tables of gains: pyuvdata reads them, and divides visibilities by them as `ryle apply` does."""
import json
import os
import subprocess

import numpy as np
import pytest
from conftest import module


def ryle(*arguments):
    binary = os.environ.get("RYLE_BINARY")
    if not binary:
        pytest.skip("skipped: RYLE_BINARY is not set")
    done = subprocess.run([binary, *map(str, arguments), "--json"], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("channels", [1, 3])
def test_pyuvdata_divides_by_the_gains_as_we_do(products, offline, tmp_path, channels):
    pyuvdata = module("pyuvdata")
    data = pyuvdata.UVData.from_file(products / "sky.uvh5")
    # A model of one source at the phase center: whatever gains that gives are a table like any other.
    center = data.phase_center_catalog[0]
    sky = tmp_path / "sky.csv"
    sky.write_text("name,ra_deg,dec_deg,flux_jy,frequency_mhz,min_mhz,max_mhz\n"
                   f"center,{np.degrees(center['cat_lon'])},{np.degrees(center['cat_lat'])},100,100,1,10000\n")
    table = tmp_path / "gains.h5"
    report = ryle("calibrate", products / "sky.uvh5", "--model", sky, "--uv-min", 0, "--drop-below", 0, "--drop-above", 1e9,
                  "--max-sigma-deg", 180, "--max-rounds", 5000, "--channels-per-gain", channels, "-o", table)
    cal = pyuvdata.UVCal.from_file(table)
    cal.check()
    assert cal.gain_convention == "divide" and cal.cal_style == "sky" and cal.sky_catalog == report["model"]
    assert cal.ref_antenna_name == report["reference"]
    assert cal.Nfreqs == -(-data.Nfreqs // channels) and list(cal.jones_array) == [-5, -6]
    assert list(cal.telescope.antenna_names) == list(data.telescope.antenna_names)
    ours = tmp_path / "ours.uvh5"
    ryle("apply", products / "sky.uvh5", "--gains", table, "-o", ours)
    ours = pyuvdata.UVData.from_file(ours)
    if channels == 1:
        theirs = pyuvdata.utils.uvcalibrate(data, cal, inplace=False)
        good = ~theirs.flag_array
        assert np.array_equal(theirs.flag_array, ours.flag_array)
        scale = np.abs(theirs.data_array[good]).max()
        assert np.abs(theirs.data_array[good] - ours.data_array[good]).max() < 1e-6 * scale
        assert ours.vis_units == "Jy"
