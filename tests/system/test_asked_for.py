# SPDX-License-Identifier: BSD-3-Clause
"""What is asked for is made, or refused before data with what would work. Nothing of the user's is replaced unasked."""

import json

import pytest

from harness import ROOT, data, live_arguments, run, start, stop, summary, wait_for

EXAMPLES = ROOT / "examples"


# All of these once wrote nothing and ended with 0.
@pytest.mark.parametrize("example, setting, remedy", [
    ("best2.toml", "output.uvh5=true", "ryle correlate"),
    ("best2.toml", "image.cadence_s=0.1", "ryle image"),
    ("lwasv.toml", "beams.file=X", "ryle beamform"),
    ("mwa32t.toml", "search.dm_max=100", "ryle search"),
])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_product_the_run_cannot_make_is_refused_before_data(tmp_path, command, example, setting, remedy):
    where = ["-o", tmp_path / "out"] if command == "run" else []
    done = run(command, EXAMPLES / example, *where, "--set", setting, check=78)
    assert f"--set: {setting.split('=')[0]} = " in done.stderr and remedy in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_file_and_line_of_a_key_without_effect_are_named(tmp_path):
    copy = tmp_path / "obs.toml"
    copy.write_text((EXAMPLES / "mwa32t.toml").read_text() + "\n[search]\ndm_max = 100\n")
    done = run("run", copy, check=78)
    line = copy.read_text().splitlines().index("dm_max = 100") + 1
    assert f"obs.toml:{line}:" in done.stderr


def test_a_recording_too_short_for_one_integration_is_no_success(tmp_path):
    recording = tmp_path / "samples.bin"
    run("simulate", EXAMPLES / "mwa32t.toml", "-o", recording, "--set", "simulator.duration_s=0.01",
        "--set", "simulator.period_samples=4096", "--set", 'source.start_utc="2026-01-01T00:00:00"')
    layout = tmp_path / "wide.csv"  # delays across 5,000 km are 17 ms, the samples last 10 ms
    lines = (EXAMPLES / "mwa32t.csv").read_text().splitlines()
    wide = []
    for line in lines:
        fields = line.split(",")
        try:
            fields[1] = str(float(fields[1]) * 40_000)
        except ValueError:
            pass
        wide.append(",".join(fields))
    layout.write_text("\n".join(wide) + "\n")
    out = tmp_path / "o.uvh5"
    done = run("correlate", recording, "--format", "mwa32t-interleaved", "--layout", layout, "--latitude-deg", -26.7,
               "--longitude-deg", 116.67, "--center-mhz", 154.24, "--start", "2026-01-01T00:00:00", "-o", out,
               "--integration", 0.001, "--json", check=65)
    assert not out.exists()
    assert "visibilities: " in summary(done)["not_made"][0] and "too short" in summary(done)["not_made"][0]


def test_a_live_run_without_packets_is_no_success(tmp_path):
    metrics = tmp_path / "metrics.prom"  # written at the first line of progress
    running = start(*live_arguments(tmp_path / "out", "source.kind=network", f"runtime.metrics_file={metrics}",
                                    kinds=("udp",) * 4))
    wait_for(metrics.exists)
    code, out, _ = stop(running)
    assert code == 66
    assert "no packets arrived" in json.loads(out.strip().splitlines()[-1])["not_made"][0]


@pytest.fixture
def precious(tmp_path):
    folder = tmp_path / "precious"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "data").write_text("years of work")
    return folder


def commands_that_write(folder):
    scan = data("singledish/fast_m33/1421-1425_hor_input1.hdf5")
    vis = data("vis/pyuvdata/zen.2458661.23480.HH.uvh5")
    series = data("transients/gbt_j1807/GBT_J1807-0847.tim")
    tart = data("tart/mg-tana-raw.hdf")
    place = ["--layout", data("tart/antenna_positions.json"), "--latitude-deg", -18.897, "--longitude-deg", 47.555,
             "--height-m", 1280]
    return {
        "grid": ["grid", scan, "--beam", "2.9arcmin", "-o", folder],
        "grid png": ["grid", scan, "--beam", "2.9arcmin", "-o", folder.parent / "m.fits", "--png", folder],
        "image": ["image", vis, "-o", folder],
        "image png": ["image", vis, "-o", folder.parent / "i.fits", "--png", folder],
        "fold": ["fold", series, "--period", 0.163711, "-o", folder],
        "correlate": ["correlate", tart, "--format", "tart", *place, "--duration", 0.001, "--integration", 0.0005,
                      "-o", str(folder)],
    }


@pytest.mark.parametrize("which", ["grid", "grid png", "image", "image png", "fold", "correlate"])
def test_overwriting_never_takes_a_directory(precious, which):
    arguments = commands_that_write(precious)[which]
    done = run(*arguments, "--overwrite", check=None)
    assert done.returncode in (64, 73, 78), done.stdout + done.stderr
    assert (precious / "inside" / "data").read_text() == "years of work"


def test_simulate_replaces_no_file_unasked(tmp_path):
    target = tmp_path / "samples.bin"
    target.write_text("mine")
    arguments = ["simulate", EXAMPLES / "mwa32t.toml", "-o", target, "--set", "simulator.duration_s=0.01",
                 "--set", "simulator.period_samples=4096"]
    assert "exists" in run(*arguments, check=73).stderr
    assert target.read_text() == "mine"
    run(*arguments, "--overwrite")
    assert target.stat().st_size > 1000


# Before the first packet: the ports are those of nobody, a run that began would wait for ever.
@pytest.mark.parametrize("fault, code", [("taken", 73), ("no folder", 73), ("no room", 74)])
def test_outputs_are_checked_before_the_first_packet(tmp_path, fault, code):
    out = tmp_path / "out"
    settings = ["source.kind=network", "output.overwrite=false"]
    if fault == "taken":
        out.mkdir()
        (out / "mwa32t.uvh5").write_text("last night's")
    elif fault == "no folder":
        out.write_text("a file")
    else:
        settings += ["source.duration_s=1e9"]
    done = run(*live_arguments(out, *settings, kinds=("udp",) * 4), check=code, timeout=60)
    assert str(out) in done.stderr


def test_names_without_a_format_are_refused_before_data(tmp_path):
    recording = data("lwa/tbx-test.dat")
    station = data("lwa/lwana-ssmif-2024may.txt")
    done = run("correlate", recording, "--format", "tbx", "--station", station, "-o", tmp_path / "x.fits", check=78)
    assert ".uvh5" in done.stderr


# One spectrum a file, read back as a recording: the source is where it was put.
@pytest.mark.parametrize("form", ["tbf", "tbx"])
def test_simulated_frames_are_a_recording(tmp_path, form):
    recording, out = tmp_path / f"frames.{form}", tmp_path / "sky.fits"
    settings = ["--set", f"source.format={form}", "--set", "source.first_channel=2400", "--set", "source.n_channels=24",
                "--set", "source.channels_per_packet=12", "--set", "source.sample_rate_hz=0",
                "--set", "simulator.duration_s=0.02", "--set", f"telescope.layout={EXAMPLES}/lwasv.csv"]
    run("simulate", EXAMPLES / "lwasv.toml", "-o", recording, *settings)
    found = json.loads(run("info", recording, "--json").stdout)
    assert found["format"] == form and found["channels"] == 24 and found["inputs"] == 512
    assert "mwa32t, tbf and tbx" in run("simulate", EXAMPLES / "best2.toml", "-o", tmp_path / "b.dat", check=69).stderr
    run("image", recording, "--format", form, "--layout", EXAMPLES / "lwasv.csv", "--latitude-deg", 34.3484,
        "--longitude-deg", -106.8858, "-o", out)
    assert out.exists()
