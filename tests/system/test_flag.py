# SPDX-License-Identifier: BSD-3-Clause
"""`ryle flag`: dead and wild inputs, interference, and what AOFlagger finds in the same file."""
import shutil
import subprocess

import h5py
import numpy as np
import pytest
from harness import data, ryle


def make(path, n_antennas=10, n_times=40, n_channels=96, seed=1):
    """A UVH5 file of pyuvdata with noise, a source and planted interference; the true mask [time][channel]."""
    pyuvdata = pytest.importorskip("pyuvdata")
    from astropy.coordinates import EarthLocation
    generator = np.random.default_rng(seed)
    positions = generator.normal(0, 60, (n_antennas, 3)) * [1, 1, 0.1]
    site = EarthLocation.from_geodetic(116.67, -26.7, 377)
    telescope = pyuvdata.Telescope.new(
        name="test", instrument="test", location=site,
        antenna_positions={k: p for k, p in enumerate(positions)}, x_orientation="east", feeds=["x", "y"],
        mount_type="fixed")
    times = 2459000.5 + np.arange(n_times) * 1.0 / 86400
    frequencies = 150e6 + np.arange(n_channels) * 40e3
    pairs = [(i, j) for i in range(n_antennas) for j in range(i, n_antennas)]
    uv = pyuvdata.UVData.new(freq_array=frequencies, polarization_array=["xx", "yy"], times=times, telescope=telescope,
                             antpairs=pairs, do_blt_outer=True, integration_time=1.0, channel_width=40e3, empty=True,
                             time_axis_faster_than_bls=False)
    shape = (n_times, len(pairs), n_channels, 2)
    values = generator.normal(0, 1, shape) + 1j * generator.normal(0, 1, shape) + 12
    values[:, [i == j for i, j in pairs]] += 100  # noise of the receivers
    truth = np.zeros((n_times, n_channels), bool)
    truth[:, 30] = True       # a carrier
    truth[12:14, 10:80] = True  # a pulse
    truth[20:30, 60:62] = True
    phases = np.exp(2j * np.pi * generator.uniform(size=(1, len(pairs), 1, 1)))
    values = values * phases + 8 * truth[:, None, :, None] * phases
    for b, (i, j) in enumerate(pairs):
        values[:, b] *= {3: 1e-3}.get(i, 1) * {3: 1e-3}.get(j, 1) * {7: 8.0}.get(i, 1) * {7: 8.0}.get(j, 1)
    autos = [i == j for i, j in pairs]
    values[:, autos] = np.abs(values[:, autos])
    uv.data_array = values.reshape(n_times * len(pairs), n_channels, 2).astype(np.complex64)
    uv.flag_array = np.zeros(uv.data_array.shape, bool)
    uv.nsample_array = np.ones(uv.data_array.shape, np.float32)
    uv.write_uvh5(str(path), clobber=True)
    return truth, pairs


def flags_of(path, n_times):
    with h5py.File(path) as file:
        flags = file["Data/flags"][:]
        first, second = file["Header/ant_1_array"][:], file["Header/ant_2_array"][:]
    n = len(first) // n_times
    # XX and YY: a file of the two holds XY and YX as flagged.
    return flags.reshape(n_times, n, *flags.shape[1:])[..., :2], first[:n], second[:n]


def test_inputs_and_interference_are_found_and_named(tmp_path):
    source = tmp_path / "in.uvh5"
    truth, _ = make(source)
    out = tmp_path / "out.uvh5"
    told = ryle("flag", source, "-o", out)
    assert {int(entry["antenna"]) for entry in told["inputs"]} == {3, 7}
    assert {entry["pol"] for entry in told["inputs"]} == {"X", "Y"}
    ratios = sorted(entry["row_power"] for entry in told["inputs"])
    assert ratios[0] < 0.01 and ratios[-1] > 5
    flags, first, second = flags_of(out, 40)
    bad = np.isin(first, [3, 7]) | np.isin(second, [3, 7])
    assert flags[:, bad].all()
    good = flags[:, ~bad]
    assert good[:, :, truth.nonzero()[1][0]].size
    found = good[truth.nonzero()[0], :, truth.nonzero()[1]].mean()
    wrong = good.transpose(0, 2, 1, 3)[~truth].mean()
    assert found > 0.95 and wrong < 0.03
    assert told["channels"][30] > 0.9
    # The two implementations flag the same values.
    slow = tmp_path / "slow.uvh5"
    ryle("flag", source, "-o", slow, "--implementation", "reference")
    assert (flags_of(slow, 40)[0] == flags).all()
    # What is off is off.
    ryle("flag", source, "-o", slow, "--overwrite", "--no-sum-threshold", "--no-row-power", expect=78)
    only = ryle("flag", source, "-o", slow, "--overwrite", "--no-sum-threshold")
    assert only["flagged_interference"] == 0 and only["flagged_inputs"] > 0
    assert ryle("flag", source, "-o", slow, "--overwrite", "--no-row-power")["inputs"] == []
    assert "max_window" in ryle("flag", source, "-o", slow, "--overwrite", "--max-window", 5, expect=78)


def test_aoflagger_finds_the_same(tmp_path):
    aoflagger = shutil.which("aoflagger")
    if aoflagger is None:
        pytest.skip("skipped: aoflagger is not installed")
    source = tmp_path / "in.uvh5"
    truth, _ = make(source)
    mine, theirs = tmp_path / "mine.ms", tmp_path / "theirs.ms"
    ryle("flag", source, "-o", mine, "--no-row-power")
    ryle("flag", source, "-o", theirs, "--no-row-power", "--threshold", 1000)  # a Measurement Set without flags
    subprocess.run([aoflagger, "-j", "2", str(theirs)], check=True, stdout=subprocess.DEVNULL, timeout=200)
    flags = {}
    for path in (mine, theirs):
        copy = path.with_suffix(".uvh5")
        ryle("flag", path, "-o", copy, "--no-row-power", "--threshold", 1000)
        cube, first, second = flags_of(copy, 40)
        flags[path] = cube[:, first != second].transpose(0, 2, 1, 3)
    for cube in flags.values():
        assert cube[truth].mean() > 0.9
    both = (flags[mine] & flags[theirs]).sum() / (flags[mine] | flags[theirs]).sum()
    assert both > 0.5, both  # AOFlagger grows its flags: it takes more beside the interference
    assert flags[mine][~truth].mean() < 0.03


def test_eda2_has_fourteen_inputs_outside(tmp_path):
    real = data("eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_real_channel000_time000000.fits")
    description = tmp_path / "eda2.toml"
    description.write_text(f"""[visibilities]
format = "covariance"
real = "{real}"
imaginary = "{str(real).replace("real", "imag")}"
antennas = "{real.parent / "antenna_locations.txt"}"
frequency_mhz = 159.375
latitude_deg = -26.7033194
longitude_deg = 116.67081524
""")
    out = tmp_path / "flagged.uvh5"
    told = ryle("flag", description, "-o", out)
    assert len(told["inputs"]) == 14  # 13 are known dead, one is wild
    assert max(entry["row_power"] for entry in told["inputs"]) == pytest.approx(15**2, rel=0.2)
    assert any("too few" in note for note in told["notes"])
    before = ryle("image", description, "-o", tmp_path / "a.fits", "--equalize", "no")["peak"]["sigma"]
    after = ryle("image", out, "-o", tmp_path / "b.fits", "--equalize", "no")["peak"]["sigma"]
    assert after > 80 > before  # the note's figures: 65 and 84
