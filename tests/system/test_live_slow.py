# SPDX-License-Identifier: BSD-3-Clause
"""What a killed run leaves behind is brought to where it belongs (docs/exit-codes.md, reliability)."""

import json
import pathlib

import numpy as np
from harness import live_arguments, run, start, wait_for
from test_live import ALL_TCP, FINAL, names, uvh5


def test_recover_publishes_what_a_killed_run_had(tmp_path):
    process = start(*live_arguments(tmp_path, duration_s=60, speed=0.5, kinds=ALL_TCP))
    part = tmp_path / ".mwa32t.uvh5.part"
    # An integration of 2,080 products and 128 channels is about 3.5 MB here.
    wait_for(lambda: part.exists() and part.stat().st_size > 9_000_000)
    busy = json.loads(run("recover", tmp_path, "--json").stdout)["unfinished"]
    assert [u["outcome"] for u in busy] == ["in_use"] * 3, "a living run is left alone"
    process.kill()
    process.communicate()
    before = names(tmp_path)
    listed = {pathlib.Path(u["name"]).name: u for u in
              json.loads(run("recover", tmp_path, "--list", "--json").stdout)["unfinished"]}
    assert sorted(listed) == sorted(FINAL) and names(tmp_path) == before, "listing changes nothing"
    whole = listed["mwa32t.uvh5"]["integrations"]
    assert listed["mwa32t.uvh5"]["outcome"] == "whole" and whole >= 2
    text = run("recover", tmp_path).stdout
    assert f"{whole} whole integrations" in text, text
    # What could only be made again from another product stays aside until it is given up by name.
    aside = [n for n in names(tmp_path) if n not in FINAL]
    assert set(FINAL) <= set(names(tmp_path)) and all(n.endswith(".dead") for n in aside), names(tmp_path)
    run("recover", tmp_path, "--delete", check=None)
    assert names(tmp_path) == sorted(FINAL), "everything published, nothing left behind"
    samples, data, *_ = uvh5(tmp_path / "mwa32t.uvh5")
    assert samples.shape[0] == whole and np.all(samples > 0.99) and np.all(np.isfinite(data))
    for name in ("mwa32t.ms", "mwa32t.uvh5"):
        image = json.loads(run("image", tmp_path / name, "-o", tmp_path / f"{name}.fits", "--taper", 0.016,
                               "--json").stdout)
        assert abs(image["peak"]["l"] - 0.35) < 0.004 and abs(image["peak"]["m"] - 0.25) < 0.004
    assert "nothing unfinished" in run("recover", tmp_path).stdout
    assert "cannot read" in run("recover", tmp_path / "absent", check=66).stderr
