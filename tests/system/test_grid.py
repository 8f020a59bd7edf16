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


def test_the_plan_holds_for_every_target(tmp_path):
    """Measured against planned, of maps, HEALPix (cells far wider than the kernel, and narrow ones) and sight lines."""
    scans = write_scans(tmp_path / "scans.npz", n_samples=20_000, n_channels=4)
    lines = tmp_path / "lines.csv"
    random = np.random.default_rng(2)
    places = zip(random.uniform(9.5, 10.5, 30_000), random.uniform(19.5, 20.5, 30_000))
    lines.write_text("name,ra,dec\n" + "".join(f"L{k},{a},{d}\n" for k, (a, d) in enumerate(places)))
    for target, kernel in (("center=10,20 size=8x8deg cell=0.5arcmin proj=SIN", "gauss:3arcmin"),
                           ("center=10,20 size=60x60deg cell=6arcmin proj=SIN", "gauss:1arcmin"),
                           ("healpix:nside=128,full", "gauss:1arcmin"),
                           ("healpix:nside=128,full,order=ring", "gauss:1arcmin"),
                           ("healpix:nside=16384", "gauss:1arcmin"),
                           (f"sightlines:{lines}", "gauss:1arcmin")):
        done = ryle("grid", scans, "--kernel", kernel, "--target", target, "-o", tmp_path / "o.fits", "--overwrite")
        plan = done["plan"]
        planned = plan["total_memory_bytes"] + plan["program_bytes"]
        # Where values are absent in one channel up to absent_bytes come on top.
        # A megabyte more: pages of the program that are first used after the plan.
        assert 0.85 * planned < done["peak_memory_bytes"] < 1.05 * (planned + plan["absent_bytes"]) + 1e6, target


def test_weights_and_flags_of_channels_in_npz(tmp_path):
    n, c = 3_000, 3
    random = np.random.default_rng(5)
    ra, dec = random.uniform(9.9, 10.1, n), random.uniform(19.9, 20.1, n)
    data = random.standard_normal((n, c)).astype(np.float32)
    weights, mask = random.uniform(0.1, 2, (n, c)).astype(np.float32), random.random((n, c)) < 0.1
    np.savez(tmp_path / "s.npz", ra=ra, dec=dec, data=data, weights=weights, mask=mask)
    out = tmp_path / "lines.fits"
    (tmp_path / "l.csv").write_text("name,ra,dec\nA,10,20\n")
    done = ryle("grid", tmp_path / "s.npz", "--target", f"sightlines:{tmp_path / 'l.csv'}", "--kernel", "gauss:sigma=2arcmin,radius=3sigma",
                "--weights", "column:weights", "-o", out)
    assert done["absent"]["flagged"] == mask.sum() and "mask" in done["choices"][0]
    a, b = np.deg2rad([ra, dec]), np.deg2rad([10, 20])
    h = np.sin((a[1] - b[1]) / 2) ** 2 + np.cos(a[1]) * np.cos(b[1]) * np.sin((a[0] - b[0]) / 2) ** 2
    theta = np.rad2deg(2 * np.arcsin(np.sqrt(h))) * 60
    w = np.where(theta < 6, np.exp(-theta**2 / 8), 0)[:, None] * weights * ~mask
    row = out.read_bytes()[-2880:]
    want = ((w * data).sum(0) / w.sum(0)).astype(">f4")
    got = np.frombuffer(row[17:17 + 4 * c], ">f4")
    assert np.allclose(got, want, rtol=3e-6), (got, want)


def test_every_option_reaches_the_map(tmp_path):
    scans = write_scans(tmp_path / "scans.npz", n_samples=4_000)
    np.savez(tmp_path / "w.npz", **np.load(scans), tsys=np.zeros(4_000, np.float32), u=np.r_[np.ones(3_000), np.zeros(1_000)])
    out = tmp_path / "o.fits"
    common = ["-o", out, "--overwrite"]
    done = ryle("grid", tmp_path / "w.npz", *MAP, *common, "--hdf5", "data=data", "--weights", "column:u", "--noise")
    assert done["absent"]["bad_weight"] > 2_900
    assert done["products"][-1].endswith(".noise.fits")
    said = ryle("grid", scans, *MAP, *common, "--channels", "1:3", "--unit", "K", "--ra-unit", "deg", "--flags", "none")
    assert said["n_channels"] == 2 and said["unit"] == "K"
    assert "count twice" in ryle("grid", scans, scans, *MAP, *common, expect=78)
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
    assert len(lines) == 1 and "Z ryle: info: 1 block of samples, 3 channels at a time in 1 part: " in lines[0]
    assert run(*arguments, "-q").stderr == ""
    leader, follower = os.openpty()
    done = subprocess.run([BINARY, *map(str, arguments)], stdout=subprocess.PIPE, stderr=follower, timeout=LIMIT_S)
    assert done.returncode == 0
    assert b"%" in os.read(leader, 65_536)
