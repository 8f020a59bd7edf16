# SPDX-License-Identifier: BSD-3-Clause
"""The tutorials run as they stand, in less than 30 s each, draw a picture, and find what is known to be true."""

import ast
import os
import pathlib
import re
import resource
import subprocess
import sys

import numpy as np
import pytest
from helpers import DATA, ROOT, data

FOLDER = ROOT / "docs" / "tutorials"
LIMIT_S = 30

# Runs a tutorial, saves its pictures where it would show them, and prints the names that are asked for.
RUNNER = """
import runpy, sys
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
try:
    from astropy.utils import iers
    iers.conf.auto_download = False
    iers.conf.auto_max_age = None
except ImportError:
    pass
name, picture, *wanted = sys.argv[1:]
plt.show = lambda *_, **__: plt.gcf().savefig(picture, dpi=50)
space = runpy.run_path(name)
print("VALUES", {key: eval(key, space) for key in wanted})
"""


def run(name, directory, *wanted):
    """Values of expressions after the tutorial has run: numbers."""
    for module in ("matplotlib", "astropy"):
        pytest.importorskip(module, reason=f"skipped: no {module}")
    picture = pathlib.Path(directory) / "picture.png"
    environment = dict(os.environ, RYLE_DATA=str(DATA), TMPDIR=str(directory))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, "-W", "error::RuntimeWarning", "-c", RUNNER, str(FOLDER / f"{name}.py"), str(picture), *wanted],
                           capture_output=True, text=True, env=environment, timeout=240)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5000
    # Processor time, which other work on the machine does not change.
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent_s < LIMIT_S, f"{spent_s:.0f} s of processor time"
    return ast.literal_eval(ended.stdout.rpartition("VALUES ")[2])


def test_the_sun_is_where_its_ephemeris_says(tmp_path):
    data("lwa/tbx-test.dat"), data("lwa/lwana-ssmif-2024may.txt")
    v = run("sun_from_voltages", tmp_path, "float(separation_deg)", "float(sigma)", "float(sun.alt.deg)", "tuple(map(float, sky.direction(x, y)))")
    assert v["float(separation_deg)"] < 1.0 and v["float(sigma)"] > 7 and abs(v["float(sun.alt.deg)"] - 65.3) < 0.1
    assert np.allclose(v["tuple(map(float, sky.direction(x, y)))"][:2], (0.391, -0.141), atol=0.01)


def test_the_lines_of_the_first_page_find_the_sun(tmp_path):
    pytest.importorskip("astropy", reason="skipped: no astropy")
    for name in ("tbx-test.dat", "lwana-ssmif-2024may.txt"):
        (tmp_path / name).symlink_to(data(f"lwa/{name}"))
    lines = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)[1]
    check = """
from astropy.coordinates import SkyCoord, get_sun
from astropy.utils import iers
iers.conf.auto_download = False
iers.conf.auto_max_age = None
sun = get_sun(sky.time)
print("separation", sky.wcs.pixel_to_world(*sky.peak()[:2]).separation(SkyCoord(sun.ra, sun.dec)).deg)
"""
    ended = subprocess.run([sys.executable, "-c", lines + check], capture_output=True, text=True, cwd=tmp_path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "SkyCoord" in ended.stdout and float(ended.stdout.rpartition("separation ")[2]) < 1.5


def test_the_sums_of_the_correlator_are_those_of_numpy(tmp_path):
    v = run("correlator_in_ten_lines", tmp_path, "n_different", "sums.size", "float(delay_samples)", "float(np.abs(neighbours[inner]).mean())")
    assert v["n_different"] == 0 and v["sums.size"] == 64 * 36
    assert abs(v["float(delay_samples)"] - 2) < 0.05 and abs(v["float(np.abs(neighbours[inner]).mean())"] - 0.2) < 0.01


def test_the_burst_has_the_published_dispersion(tmp_path):
    data("transients/askap_frb180417/28.fil")
    v = run("burst_from_a_filterbank", tmp_path, "len(found.unflagged)", "burst['dm_pc_cm3']", "burst['snr']", "burst['time_s']",
            "float(trials[best[0]])")
    assert v["len(found.unflagged)"] == 1 and abs(v["burst['dm_pc_cm3']"] - 474.8) < 1 and v["burst['snr']"] > 15
    assert abs(v["burst['time_s']"] - 2.029) < 0.005 and abs(v["float(trials[best[0]])"] - 474.8) < 5


def test_m33_is_the_map_of_cygrid(tmp_path):
    data("singledish/fast_m33/1421-1425_hor_input1.hdf5")
    v = run("m33_single_dish", tmp_path, "int(covered.sum())", "peak_k", "values.tolist().__len__()", "float(np.nansum(values.astype(float)))")
    assert v["int(covered.sum())"] == 20199 and abs(v["peak_k"] - 1.3621) < 1e-4
    reference = DATA / "singledish/fast_m33/m33_cygrid_ref.npz"
    if reference.exists():
        assert abs(v["float(np.nansum(values.astype(float)))"] / np.nansum(np.load(reference)["map"]) - 1) < 1e-6


def test_an_array_of_ones_own_shows_its_source(tmp_path):
    v = run("your_own_array", tmp_path, "summary['packets_rejected_total']", "summary['lost_samples']", "summary['integrations']",
            "float(l)", "float(m)", "float(value)", "visibilities.data.shape")
    assert v["summary['packets_rejected_total']"] == v["summary['lost_samples']"] == 0 and v["summary['integrations']"] == 2
    assert v["visibilities.data.shape"] == (2, 32, 32 * 33 // 2, 1)
    assert abs(v["float(value)"] / 2000 - 1) < 0.1  # Jy
    assert abs(v["float(l)"] - 0.40) < 0.02 and abs(v["float(m)"] + 0.25) < 0.02


def test_calibration_brings_the_source_back(tmp_path):
    v = run("calibration", tmp_path, "float(error.max())", "float(found_l)", "float(found_m)", "before.direction(*before.peak()[:2])[:2]")
    assert v["float(error.max())"] < 0.06
    assert abs(v["float(found_l)"] - 0.3) < 0.02 and abs(v["float(found_m)"] - 0.4) < 0.02
    assert np.hypot(*np.subtract(v["before.direction(*before.peak()[:2])[:2]"], (0.3, 0.4))) > 0.1


def test_every_tutorial_is_written_in_cells_and_tested():
    tested = pathlib.Path(__file__).read_text()
    files = sorted(FOLDER.glob("*.py"))
    assert len(files) == 6
    for file in files:
        text = file.read_text()
        assert f'run("{file.stem}"' in tested
        first = text.split("# %%")[1]
        assert first.startswith(" [markdown]\n# # ") and "You will see" in first and text.rstrip().endswith("plt.show()"), file
