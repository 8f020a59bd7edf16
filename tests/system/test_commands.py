# SPDX-License-Identifier: BSD-3-Clause
"""Command line: exit codes, messages, JSON."""

import json
import re
import sqlite3
import tomllib

import pytest
from harness import ROOT, data, run, ryle

EXAMPLE = ROOT / "examples/mwa32t.toml"


@pytest.mark.parametrize("setting, expected", [
    ("correlate.integration_time_s=1.0", 'did you mean "integration_s"'),
    ("channelize.n_channels=0", "must lie in 1 .."),
    ("channelize.n_channels=1048576", "memory"),
    ("channelize.bits=7", "must be 4, 8, 16 (half floats) or 32"),
    ("channelize.implementation=cpu:avx1024", "cpu:"),
    ("correlate.implementation=tensor", "cpu:"),
    ("telescope.layout=nowhere.csv", "nowhere.csv"),
    ("telescope.layout=mwa32t_gains.csv", "mwa32t_gains.csv"),
    ("correlate.phase_center=north", "RA_DEG,DEC_DEG"),
    ("runtime.device=gpu", "cuda:N"),
    ("source.listen=[]", "listen"),
    ("calibration.gains=mwa32t.csv", "mwa32t.csv"),
])
def test_bad_observations_are_refused_with_a_remedy(setting, expected):
    done = run("run", EXAMPLE, "--check", "--set", setting, check=None)
    assert done.returncode in (65, 66, 69, 71, 78), done.stdout + done.stderr
    assert expected in done.stderr, done.stderr
    assert re.match(r"(\S+Z )?ryle: error: ", done.stderr) and done.stderr.count("\n") == 1


def test_exit_codes():
    assert run("run", "/nowhere.toml", check=66)
    assert run("run", check=64)
    assert run("frobnicate", check=64)
    assert "pip install" in run("data", "fetch", "28.fil", "--to", "/nowhere", check=69).stderr
    assert run("run", EXAMPLE, "--check", "--set", "channelize.taps=\"four\"", check=78)
    assert run("correlate", "/nowhere.vdif", "-o", "/tmp/x.ms", "--layout", "x.csv", check=66)
    assert run("image", "/nowhere.ms", "-o", "/tmp/x.fits", check=66)


@pytest.mark.parametrize("command", [
    ("grid", "/nowhere.hdf5", "--png", "a.jpg"),
    ("grid", "merge", "/nowhere.rgrid", "--png", "a.jpg"),
    ("fold", "/nowhere.fil", "--period", "1", "--png", "a.jpg"),
    ("image", "/nowhere.ms", "--png", "a.jpg"),
    ("image", "/nowhere.dat", "--station", "/nowhere.txt", "--png", "a.jpg"),
    ("run", ROOT / "examples/lwasv.toml", "--set", "image.picture=a.jpg"),
])
def test_pictures_of_other_formats_are_refused_before_data(command):
    done = run(*command, check=78)
    assert "a.jpg" in done.stderr and ".png" in done.stderr, done.stderr


def test_plan_prints_memory_and_a_measured_margin():
    plan = json.loads(run("plan", EXAMPLE, "--json").stdout)
    assert plan["total_memory_bytes"] == sum(plan["memory_bytes"].values())
    assert plan["predicted_margin"] > 0
    # 8 operations x 2080 products x 128 channels x 10 kHz.
    assert plan["correlate_gops"] == pytest.approx(8 * 2080 * 128 * 1e4 * 1e-9)
    assert "real time" in run("plan", EXAMPLE).stdout


def test_plan_warns_of_decorrelation_when_delays_come_after_correlation():
    plan = json.loads(run("plan", EXAMPLE, "--json", "--set", "correlate.fringe_stopping=x", "--set",
                          "channelize.taps=1").stdout)
    # Plain FFT: tau x channel width = 1.2 % for 1.17 us and 10 kHz (correlate.md 9); cables add to it.
    assert plan["decorrelation"] > 0.01
    assert any("fringe_stopping" in w for w in plan["warnings"])


def test_info_and_doctor_speak_json():
    info = json.loads(run("info", "--json").stdout)
    assert "reference" in info["correlate"] and "mwa32t" in info["recording_formats"]
    schema = json.loads(run("info", "--schema").stdout)
    assert "correlate" in schema["properties"]
    findings = json.loads(run("doctor", "--json", check=None).stdout)
    filters = next(f for f in findings if f["name"] == "HDF5 filters")["detail"]
    assert "LZF" in filters and "bitshuffle" in filters
    assert {"name", "verdict", "detail", "remedy"} <= set(findings[0])


# What else these commands take: files, devices and how they report; and what only a live run does with its beams.
NOT_OF_THE_SEARCH = {"--help", "--output", "--name", "--overwrite", "--no-pictures", "--key", "--pol", "--device", "--devices",
                     "--workers", "--json", "--quiet", "--log"}
LIVE_ONLY = ("fold", "block")


# What `ryle correlate` takes where the option is missing, and an observation file does not.
OF_RECORDINGS = {"--format": "auto", "--pictures": "write PNG"}


def options_of(command, section):
    """Lines of the help by option: those that are keys, and the others."""
    text = run(command, "--help").stdout
    others, keys = text.split(f"Keys of [{section}] in an observation file:")
    keys, more = (keys + "\n\n").split("\n\n", 1)
    parts = [re.split(r"\n  (?=-)", "\n" + t)[1:] for t in (keys, others + more)]
    return [{re.search(r"--[a-z][a-z0-9-]*", line)[0]: " ".join(line.split()) for line in part} for part in parts]


@pytest.mark.parametrize("command, section", [
    ("search", "search"), ("image", "image"), ("beamform", "beams"), ("correlate", "telescope"), ("correlate", "source"),
    ("correlate", "channelize"), ("correlate", "correlate"), ("correlate", "output"), ("correlate", "runtime")])
def test_options_and_keys_are_one_list(tmp_path, command, section):
    options, others = options_of(command, section)
    keys = json.loads(run("info", "--schema").stdout)["properties"][section]["properties"]
    shared = {key["x-option"]: key for key in keys.values() if "x-option" in key}
    assert options.keys() == shared.keys()
    for name, key in shared.items():
        if name in OF_RECORDINGS:
            assert OF_RECORDINGS[name] in options[name]
            continue
        zero = re.search("; 0 = (.*)$", key["description"])
        if key["type"] == "boolean":
            assert name.startswith("--no-") == key["default"]
        elif zero and key["default"] == 0:
            assert f"0 = {zero[1]}" in options[name].replace("default: ", "0 = ")
        elif key.get("default"):
            shown = key["default"] if isinstance(key["default"], str) else f"{key['default']:g}"
            assert f"={shown} " in options[name] or f"[{shown}]" in options[name]  # by the version of the parser
    if section in ("channelize", "correlate"):  # finer channels are cut live
        assert {name for name, key in keys.items() if "x-option" not in key} <= {"fine_channels"}
    if command == "search":
        assert others.keys() == NOT_OF_THE_SEARCH
        assert all(name.startswith(LIVE_ONLY) for name, key in keys.items() if "x-option" not in key)
    nothing = tmp_path / "nothing.toml"
    nothing.write_text("schema = 1\n")
    printed = tomllib.loads(run("run", nothing, "--print-config").stdout.replace("# no effect here: ", ""))[section]
    assert printed == {name: key.get("default", []) for name, key in keys.items() if name != "packet"}


def test_printed_configuration_is_a_configuration(tmp_path):
    text = run("run", EXAMPLE, "--print-config").stdout
    again = tmp_path / "again.toml"
    again.write_text(text)
    for name in ("mwa32t.csv", "mwa32t_gains.csv"):  # relative names are relative to the observation file
        (tmp_path / name).write_bytes((EXAMPLE.parent / name).read_bytes())
    run("run", again, "--check")


@pytest.mark.parametrize("engine", ["calibrate", "correlate", "channelize"])
def test_benchmarks_print_the_same_fields(engine):
    fields = ["engine", "implementation", "device", "case", "median_s", "min_s", "useful_ops", "bytes", "rate", "rate_unit",
              "roofline_fraction", "roofline", "verified"]
    for line in run("bench", engine, "--quick", "--json").stdout.splitlines():
        row = json.loads(line)
        assert list(row) == fields
        assert row["verified"] is True and row["rate"] > 0


@pytest.mark.parametrize("arguments, hint", [
    (["imgae", "x"], 'did you mean "ryle image"?'),
    (["correlate", "x", "-o", "y.ms", "--phase-centre", "sun"], "did you mean --phase-center?"),
    (["correlate", "x", "--integration-s", "1"], "did you mean --integration?"),
])
def test_words_that_are_not_known_get_the_nearest(arguments, hint):
    assert hint in run(*arguments, check=64).stderr


@pytest.mark.parametrize("name, kind", [
    ("lwa/tbx-test.dat", "spectra"), ("tart/mg-tana-raw.hdf", "samples"), ("baseband/sample.dada", "samples"),
    ("transients/askap_frb180417/28.fil", "filterbank"), ("transients/askap_frb180417/28.fits", "filterbank"),
    ("transients/gbt_j1807/GBT_J1807-0847.tim", "time series"),
    ("vis/pyuvdata/1061316296.uvfits", "visibilities"),
    ("singledish/fast_m33/1421-1425_hor_input1.hdf5", "scans"), ("singledish/hegrid_mock/mock503.hdf5", "scans"),
    ("singledish/srt_medicina/med_data.fits", "scans"),
    ("singledish/gbt_sdfits_real/AGBT17B_173_04_gdigs-testdata.fits", "scans"),
    ("singledish/hegrid_mock/target1.fits", "FITS image"),
    ("eda2_20191104/dirty_image_20220406T035747506_real_TEMPLATE_512x512.fits", "FITS image"),
])
def test_info_knows_what_ryle_reads(name, kind):
    assert ryle("info", data(name))["kind"] == kind


def test_info_knows_what_ryle_writes(tmp_path):
    event = tmp_path / "e.xml"
    event.write_text('<?xml version="1.0"?>\n<voe:VOEvent ivorn="ivo://a/b#1" role="test">\n'
                     '<Param name="dm" value="474.8" unit="pc/cm3"/></voe:VOEvent>\n')
    found = ryle("info", event)
    assert found["kind"] == "VOEvent" and found["parameters"] == {"dm": "474.8 pc/cm3"}
    database = tmp_path / "d.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE candidates (id INTEGER)")
        connection.execute("INSERT INTO candidates VALUES (7)")
    assert ryle("info", database)["rows"] == {"candidates": 1}
    notes = tmp_path / "n.json"
    notes.write_text('{"mean_code": 64, "beams": [{"name": "a"}]}')
    assert ryle("info", notes)["kind"] == "notes of beams"
    assert ryle("info", ROOT / "examples/best2.toml")["kind"] == "observation file"
    assert ryle("info", ROOT / "examples/best2_beams.toml")["beams"][0] == "b0329"
    sky = tmp_path / "map.fits"
    run("grid", data("singledish/fast_m33/1421-1425_hor_input1.hdf5"), "--beam", "2.9arcmin", "-o", sky)
    assert ryle("info", sky)["axis 1"]["type"].startswith("RA---")
    assert {"beamform", "channelize", "correlate", "grid", "image", "search"} <= ryle("info").keys()


@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"SIMPLE  =", b"\x89HDF\r\n\x1a\n", b"SQLite format 3\x00",
                                     b"{", b"<", b"PK\x03\x04"])
def test_info_refuses_what_it_cannot_read(tmp_path, content):
    damaged = tmp_path / "x.dat"
    damaged.write_bytes(content)
    done = run("info", damaged, check=None)
    assert done.returncode in (65, 69) or (content == b"<" and done.returncode == 0), done.stdout + done.stderr


def test_bench_levels_says_what_it_needs():
    done = run("bench", "levels", "--quick", "--json", check=None)
    assert done.returncode == 0 or (done.returncode == 69 and "GPU" in done.stderr)
