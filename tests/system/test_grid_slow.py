# SPDX-License-Identifier: BSD-3-Clause
"""ryle grid in pieces: shards and kills."""

import json
import signal
import time

import pytest
from harness import run, ryle, start
from test_grid import MAP, write_scans


def planes(path):
    """The data of a FITS file: what is left after its header, which names the command."""
    content = path.read_bytes()
    end = next(k for k in range(0, len(content), 80) if content[k:k + 80].rstrip() == b"END")
    return content[(end // 2880 + 1) * 2880:]


def test_shards_and_merge_are_the_run(tmp_path):
    scans = write_scans(tmp_path / "scans.npz")
    whole = ryle("grid", scans, *MAP, "-o", tmp_path / "whole.fits", "--block-samples", 17_000)
    assert whole["blocks_done"] == 4
    assert whole["absent"]["nan_value"] == 120
    assert "values NaN 120" in (tmp_path / "whole.fits").read_bytes()[:8640].decode("ascii", "replace")
    for k in (2, 5, 1, 4, 3):
        ryle("grid", scans, *MAP, "--block-samples", 17_000, "--shard", f"{k}/5", "--accumulate", tmp_path / f"{k}.rgrid")
    merged = ryle("grid", "merge", *tmp_path.glob("?.rgrid"), "-o", tmp_path / "merged.fits", "--png", tmp_path / "m.png")
    assert merged["n_samples"] == 60_000
    for kind in ("", ".weight", ".count"):
        assert planes(tmp_path / f"whole{kind}.fits") == planes(tmp_path / f"merged{kind}.fits")
    message = ryle("grid", "merge", *tmp_path.glob("?.rgrid"), tmp_path / "1.rgrid", "-o", tmp_path / "x.fits", expect=78)
    assert "count twice" in message and not (tmp_path / "x.fits").exists()
    some = ["grid", "merge", *(tmp_path / f"{k}.rgrid" for k in (1, 2, 4, 5)), "-o", tmp_path / "x.fits"]
    assert "shard 3/5 of the run of scans.npz" in ryle(*some, expect=78) and not (tmp_path / "x.fits").exists()
    assert "shard 3/5" in ryle(*some, "--partial")["missing"][0]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_goes_on(tmp_path, how):
    scans = write_scans(tmp_path / "scans.npz")
    command = ["grid", scans, *MAP, "--block-samples", 400, "-o", tmp_path / "map.fits", "--json"]
    whole = ["grid", scans, *MAP, "--block-samples", 400, "-o", tmp_path / "whole.fits"]
    sums = tmp_path / "map.rgrid"
    process = start(*command, "--checkpoint", sums, "--checkpoint-interval", 0)
    end = time.monotonic() + 30
    while not sums.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(how)
    out, err = process.communicate(timeout=30)
    if process.returncode == 0:
        pytest.skip("skipped: the run ended before the signal")
    assert not list(tmp_path.glob("map*.fits")), "nothing incomplete has a final name"
    if how == signal.SIGINT:
        assert process.returncode == 75 and "--resume" in err
        assert json.loads(out)["stopped"]
    assert "--resume" in run(*command, "--checkpoint", sums, check=78).stderr
    resumed = ryle(*command[:-1], "--resume")
    assert resumed["blocks_resumed"] > 0 and resumed["blocks_resumed"] + resumed["blocks_done"] == 150
    assert not sums.exists()
    ryle(*whole)
    for kind in ("", ".weight", ".count"):
        assert planes(tmp_path / f"whole{kind}.fits") == planes(tmp_path / f"map{kind}.fits")
