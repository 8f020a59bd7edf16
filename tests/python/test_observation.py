# SPDX-License-Identifier: BSD-3-Clause
"""An observation file from Python, and the files that it leaves."""

import json
import sys

import numpy as np
import pytest
from helpers import ROOT, interrupted

import ryle

sys.path.append(str(ROOT / "tests" / "system"))
import harness  # noqa: E402

FILE = ROOT / "examples" / "mwa32t.toml"


def settings(directory, duration_s):
    return {"source.listen": json.loads(harness.endpoints(["tcp", "tcp", "udp", "udp"])), "simulator.duration_s": duration_s,
            "output.directory": str(directory), "output.ms": False, "output.pictures": False, "source.allow_small_rcvbuf": True}


@pytest.fixture(scope="module")
def observation(tmp_path_factory):
    obs = ryle.Observation(FILE, set=settings(tmp_path_factory.mktemp("run"), 1.0))
    assert obs.products == []
    seen = []
    obs.run(on_progress=seen.append, interval_s=0.2)
    assert seen and {"state", "data_s"} <= set(seen[-1])
    return obs


def test_a_run_says_what_it_did(observation):
    summary = observation.summary
    assert summary["integrations"] == 2 and not summary["errors"] and not summary["not_made"]
    assert summary["packets_received"] >= summary["packets_used"] > 0
    assert [p.rsplit(".", 1)[1] for p in observation.products] == ["uvfits", "uvh5"]
    assert "n_channels = 128" in observation.configuration


def test_its_visibilities_are_arrays(observation):
    vis = observation.open("uvh5")
    assert vis.data.shape == (2, 128, 528, 4) and vis.data.dtype == np.complex64
    assert vis.counts.shape == vis.data.shape and vis.counts.max() <= 5000
    assert vis.antenna_m.shape == (32, 3) and len(vis.frequency_hz) == 128
    assert vis.info["implementations"] and vis.info["unit"] == "Jy"
    h5py = pytest.importorskip("h5py")
    with h5py.File(vis.path) as file:
        assert file["Data/visdata"].shape[0] == 2 * 528
    assert np.array_equal(ryle.read(observation.products[0]), vis.data)  # UVFITS, the same values


def test_its_image_shows_the_source_where_it_was_put(observation):
    pytest.importorskip("astropy")
    sky = ryle.image(observation.open("uvh5"), n_pixels=512)
    x, y, value = sky.peak()
    assert np.allclose(sky.direction(x, y)[:2], (0.35, 0.25), atol=0.02) and value > 2000
    sky.write(observation.products[0] + ".fits")
    again = ryle.open(observation.products[0] + ".fits")
    assert isinstance(again, ryle.FitsImage) and np.array_equal(again.data[0, 0], sky.array[0, 0], equal_nan=True)
    there, here = again.wcs.celestial.pixel_to_world(x, y), sky.wcs.pixel_to_world(x, y)
    assert here.separation(there).arcsec < 0.01
    assert abs((sky.time - observation.open("uvh5").time[0]).sec) < 1
    with pytest.raises(ryle.DataError, match="exists"):
        sky.write(observation.products[0] + ".fits")


def test_visibilities_are_written_in_another_format(observation, tmp_path):
    vis = observation.open("uvh5")
    ryle.write(tmp_path / "copy.uvfits", vis)
    copy = ryle.open(tmp_path / "copy.uvfits")
    assert np.array_equal(copy.data, vis.data) and np.array_equal(copy.counts, vis.counts)
    with pytest.raises(ryle.ConfigError):
        ryle.write(tmp_path / "copy.vis", vis)


def test_a_plan_is_that_of_the_program(observation):
    plan = observation.plan()
    assert plan["predicted_margin"] > 0 and plan["nodes"] and plan["total_memory_bytes"] > 0
    assert observation.graph().lstrip().startswith("<")


def test_a_wrong_key_is_the_programs_error():
    with pytest.raises(ryle.ConfigError, match="did you mean|n_channels") as caught:
        ryle.Observation(FILE, set={"channelize.n_chanels": 64})
    assert caught.value.exit_code == 78
    with pytest.raises(ryle.DataError) as caught:
        ryle.Observation("nothing.toml")
    assert caught.value.exit_code == 66


def test_an_exception_in_a_callback_ends_the_run_and_comes_back(tmp_path):
    obs = ryle.Observation(FILE, set=settings(tmp_path, 6.0))

    def report(progress):
        if progress["data_s"] > 0.6:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        obs.run(report, interval_s=0.1)
    assert 1 <= len(ryle.read(tmp_path / "mwa32t.uvh5")) < 10  # of 12: what was whole is published
    assert obs.summary is None and obs.products == []


def test_ctrl_c_publishes_and_raises(tmp_path):
    output, seconds, code = interrupted(f"""
        import ryle
        obs = ryle.Observation({str(FILE)!r}, set={settings(tmp_path, 6.0)!r})
        def report(p):
            if p["data_s"] > 0.6: print("ready", flush=True)
        try:
            obs.run(report, interval_s=0.1)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert "interrupted" in output and code == 0 and seconds < 30, output
    assert len(ryle.read(tmp_path / "mwa32t.uvh5")) >= 1
