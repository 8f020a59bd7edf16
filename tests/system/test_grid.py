# SPDX-License-Identifier: BSD-3-Clause
"""ryle grid as a user runs it: options, memory, progress. Scans are npz files made here."""

import json
import os
import subprocess

import numpy as np
from harness import BINARY, LIMIT_S, run, ryle

MAP = ["--kernel", "gauss:3arcmin", "--target", "center=10,20 size=1x1deg cell=2arcmin proj=SIN"]


def write_scans(path, n_samples=60_000, n_channels=3, seed=1):
    random = np.random.default_rng(seed)
    data = random.standard_normal((n_samples, n_channels)).astype(np.float32)
    data[::501, n_channels // 2] = np.nan
    np.savez(path, ra=random.uniform(9.5, 10.5, n_samples), dec=random.uniform(19.5, 20.5, n_samples), data=data)
    return path


def test_memory_is_planned(tmp_path):
    scans = write_scans(tmp_path / "scans.npz", n_samples=300_000, n_channels=8)
    plan = json.loads(run("grid", scans, *MAP, "--dry-run", "--json").stdout)
    assert plan["total_memory_bytes"] == sum(plan["memory_bytes"].values())
    assert plan["channels_at_a_time"] == 8
    assert not list(tmp_path.glob("*.fits"))
    gib = plan["total_memory_bytes"] / 2**30
    some = json.loads(run("grid", scans, *MAP, "--dry-run", "--json", "--memory", 0.9 * gib).stdout)
    assert some["parts"] > 1 and some["total_memory_bytes"] <= some["limit_bytes"]
    message = run("grid", scans, *MAP, "-o", tmp_path / "x.fits", "--memory", 0.5 * gib, check=78).stderr
    assert "GiB" in message and not (tmp_path / "x.fits").exists()


def test_every_option_reaches_the_map(tmp_path):
    scans = write_scans(tmp_path / "scans.npz", n_samples=4_000)
    np.savez(tmp_path / "w.npz", **np.load(scans), tsys=np.zeros(4_000, np.float32), u=np.r_[np.ones(3_000), np.zeros(1_000)])
    out = tmp_path / "o.fits"
    common = ["-o", out, "--overwrite"]
    done = ryle("grid", tmp_path / "w.npz", *MAP, *common, "--hdf5", "data=data", "--weights", "column:u", "--noise")
    assert done["absent"]["bad_weight"] > 2_900
    assert done["products"][-1].endswith(".noise.fits")
    assert ryle("grid", scans, *MAP, *common, "--channels", "1:3")["n_channels"] == 2
    healpix = ryle("grid", scans, "--kernel", "gauss:3arcmin", "--target", "healpix:nside=1024", *common)
    assert "HEALPix" in healpix["projection"]
    lines = tmp_path / "lines.csv"
    lines.write_text("name,ra,dec\nA,10,20\nB,10.2,19.9\n")
    assert ryle("grid", scans, "--kernel", "wmedian:gauss:3arcmin", "--target", f"sightlines:{lines}", *common)["covered_cells"] == 2
    assert "median" in ryle("grid", scans, *MAP[2:], "--kernel", "median:radius=4arcmin", *common)["kernel"]
    table = tmp_path / "k.txt"
    table.write_text("theta_arcmin K\n0 1\n1 0.8\n2 0.4\n3 0\n")
    assert "table" in ryle("grid", scans, *MAP[2:], "--kernel", f"table:{table}", *common)["kernel"]
    empty = tmp_path / "empty.npz"
    np.savez(empty, ra=np.zeros(0), dec=np.zeros(0), data=np.zeros((0, 3), np.float32))
    assert run("grid", empty, *MAP, *common, check=None).returncode in (65, 78)
    assert run("grid", check=64)


def test_progress_is_for_terminals(tmp_path):
    scans = write_scans(tmp_path / "scans.npz", n_samples=4_000)
    arguments = ["grid", scans, *MAP, "-o", tmp_path / "o.fits", "--overwrite"]
    lines = run(*arguments).stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("1 block of samples, 3 channels at a time in 1 part: ")
    assert run(*arguments, "-q").stderr == ""
    leader, follower = os.openpty()
    done = subprocess.run([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=follower, timeout=LIMIT_S)
    assert done.returncode == 0
    assert b"%" in os.read(leader, 65_536)
