# SPDX-License-Identifier: BSD-3-Clause
"""What is asked for is made, or refused before data with what would work. Nothing of the user's is replaced unasked."""

import json
import struct
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest
from astropy.io import fits

from harness import ROOT, data, live_arguments, run, start, stop, summary, wait_for

EXAMPLES = ROOT / "examples"


# All of these once wrote nothing and ended with 0.
@pytest.mark.parametrize("example, setting, remedy", [
    ("lwasv.toml", "beams.weights=f32", "beams.file"),
    ("lwasv.toml", "search.dm_max=100", "beams.file"),
    ("best2.toml", "output.segment_s=10", "output.uvh5"),
    ("mwa32t.toml", "search.dm_max=100", "beams.file"),
])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_product_the_run_cannot_make_is_refused_before_data(tmp_path, command, example, setting, remedy):
    where = ["-o", tmp_path / "out"] if command == "run" else []
    done = run(command, EXAMPLES / example, *where, "--set", setting, check=78)
    assert f"--set: {setting.split('=')[0]} = " in done.stderr and remedy in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_nodes_of_a_run_are_drawn(tmp_path):
    drawing = tmp_path / "run.svg"
    run("run", EXAMPLES / "best2.toml", "--graph", drawing, "--set", "output.uvh5=true", "--set", "image.cadence_s=0.5")
    text = "".join(ElementTree.parse(drawing).getroot().itertext())
    for word in ("best2 live", "visibilities", "images", "search of beams", "UVH5", "filterbanks", "x real time here"):
        assert word in text
    run("run", EXAMPLES / "best2.toml", "--graph", tmp_path / "run.txt", check=78)
    assert not (tmp_path / "run.txt").exists()


def test_gains_of_the_observation_reach_the_beams(tmp_path):
    # Every second stand is turned by half a turn: a beam at Cas A loses it unless the gains are told.
    gains = tmp_path / "gains.csv"
    gains.write_text("input,amplitude,phase_deg\n" + "".join(f"{k},1,{180 * (k // 2 % 2)}\n" for k in range(512)))
    beams = tmp_path / "beams.toml"
    beams.write_text('[[beam]]\nname = "cas"\nframe = "icrs"\nra_deg = 350.85\ndec_deg = 58.815\n')
    power = {}
    for name, settings in {"plain": [], "told": [f"simulator.gains={gains}", f"calibration.gains={gains}"],
                           "not told": [f"simulator.gains={gains}"]}.items():
        arguments = [x for s in [f"beams.file={beams}", "simulator.duration_s=0.04", "output.name=x", *settings]
                     for x in ("--set", s)]
        run("run", EXAMPLES / "lwasv.toml", "-o", tmp_path / name, *arguments)
        power[name] = np.mean(json.loads((tmp_path / name / "x_beams.json").read_text())["beams"][0]["mean"])
    assert power["told"] == pytest.approx(power["plain"], rel=0.05)
    assert power["not told"] < 0.2 * power["plain"]


@pytest.mark.parametrize("example, settings, path, keys", [
    ("mwa32t.toml", ['output.files=["x.uvh5","./x.uvh5"]'], "x.uvh5", ["output.files", "output.files"]),
    ("best2.toml", ["image.cadence_s=0.5", 'image.watch=["sun"]', "image.light_curves=out/best2.sqlite"], "best2.sqlite",
     ["image.light_curves", "candidates of the search"]),
    ("mwa32t.toml", ["runtime.metrics_file=out/mwa32t.uvh5"], "mwa32t.uvh5", ["output.ms, uvfits, uvh5", "runtime.metrics_file"]),
    ("best2.toml", ["runtime.metrics_file=out/best2_b0329.fil"], "best2_b0329.fil", ["runtime.metrics_file", "filterbank of beam"]),
    ("mwa32t.toml", [f'output.files=["{EXAMPLES}/mwa32t.csv"]'], "mwa32t.csv", ["telescope.layout", "output.files"]),
])
@pytest.mark.parametrize("command", ["run", "plan"])
def test_two_products_on_one_path_are_refused(tmp_path, command, example, settings, path, keys):
    done = run(command, EXAMPLES / example, *[word for s in settings for word in ("--set", s)], check=78, cwd=tmp_path)
    assert f"{path} is asked for twice" in done.stderr
    for key in keys:
        assert key in done.stderr
    assert not list(tmp_path.iterdir())


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
                                    'source.start_utc="now"',
                                    kinds=("udp",) * 4))
    wait_for(metrics.exists)
    code, out, _ = stop(running)
    assert code == 66
    said = json.loads(out.strip().splitlines()[-1])
    assert "no packets arrived" in said["not_made"][0]
    assert any("rest on this host's clock" in w for w in said["warnings"])


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
    assert ".pcap" in run("simulate", EXAMPLES / "best2.toml", "-o", tmp_path / "b.dat", check=69).stderr
    run("image", recording, "--format", form, "--layout", EXAMPLES / "lwasv.csv", "--latitude-deg", 34.3484,
        "--longitude-deg", -106.8858, "-o", out)
    assert out.exists()


# Every command that makes files: (its arguments with the output in place, a name that ends in no known suffix, the code
# of that). The inputs are not there: an error that names the output was found before they were looked for.
NOT_THERE = "not_there.dat"
MAKERS = {
    "image of visibilities": (lambda out: ["image", "not_there.uvh5", "-o", out], "x.fits", "x.jpg", 78),
    "picture of visibilities": (lambda out: ["image", "not_there.uvh5", "--png", out], "x.png", "x.jpg", 78),
    "all-sky images": (lambda out: ["image", "not_there.uvh5", "--path", "auto", "-o", out], "x.fits", "x.jpg", 78),
    "image of voltages": (lambda out: ["image", NOT_THERE, "--layout", EXAMPLES / "mwa32t.csv", "-o", out], "x.fits",
                          "x.jpg", 78),
    "movie": (lambda out: ["image", NOT_THERE, "--layout", EXAMPLES / "mwa32t.csv", "--movie", out], "x.mp4", "x.doc", 69),
    "correlate": (lambda out: ["correlate", NOT_THERE, "-o", out], "x.uvh5", "x.jpg", 78),
    "beamform": (lambda out: ["beamform", NOT_THERE, "--beams", EXAMPLES / "best2_beams.toml", "-o", out], "x.h5", "x.jpg",
                 78),
    "grid": (lambda out: ["grid", NOT_THERE, "-o", out], "x.fits", "x.jpg", 78),
    "picture of a map": (lambda out: ["grid", NOT_THERE, "--png", out], "x.png", "x.jpg", 78),
    "merge": (lambda out: ["grid", "merge", NOT_THERE, "-o", out], "x.fits", "x.jpg", 78),
    "merged sums": (lambda out: ["grid", "merge", NOT_THERE, "--accumulate", out], "x.rgrid", None, 0),
    "fold": (lambda out: ["fold", NOT_THERE, "--period", 0.1, "-o", out], "x.txt", None, 0),
    "tables of fold": (lambda out: ["fold", NOT_THERE, "--period", 0.1, "--fits", out], "x.fits", "x.jpg", 78),
    "picture of fold": (lambda out: ["fold", NOT_THERE, "--period", 0.1, "--png", out], "x.png", "x.jpg", 78),
    "search": (lambda out: ["search", NOT_THERE, "-o", out.parent, "--name", out.stem], "x.csv", None, 0),
    "pattern": (lambda out: ["beampattern", NOT_THERE, "-o", out], "x.csv", "x.jpg", 78),
    "gains": (lambda out: ["calibrate", "not_there.uvh5", "-o", out], "x.h5", "x.jpg", 78),
    "picture of gains": (lambda out: ["calibrate", "not_there.uvh5", "--png", out], "x.png", "x.jpg", 78),
    "gains of a recording": (lambda out: ["calibrate", NOT_THERE, "--layout", EXAMPLES / "mwa32t.csv", "-o", out], "x.csv",
                             "x.jpg", 78),
    "apply": (lambda out: ["apply", "not_there.uvh5", "--gains", "gains.h5", "-o", out], "x.uvh5", "x.jpg", 78),
    "import": (lambda out: ["import", "best2", NOT_THERE, NOT_THERE, "--band", "descending", "-o", out], "x.toml", "x.jpg",
               64),
    "run": (lambda out: ["run", EXAMPLES / "mwa32t.toml", "-o", out.parent, "--set", f"output.name={out.stem}", "--set",
                         "output.overwrite=false", "--set", "source.kind=file", "--set", f"source.file={NOT_THERE}"],
            "x.uvh5", None, 0),
    "simulate": (lambda out: ["simulate", EXAMPLES / "mwa32t.toml", "-o", out, "--set", "simulator.duration_s=1e5"], "x.bin",
                 None, 0),
}


@pytest.mark.parametrize("which", MAKERS)
def test_every_output_is_checked_before_the_input_is_opened(tmp_path, which):
    arguments, name, wrong, code = MAKERS[which]
    taken = tmp_path / name
    taken.write_text("last night's")
    assert str(taken) in run(*arguments(taken), check=73).stderr
    assert taken.read_text() == "last night's"
    no_folder = taken / name  # a file where a folder should be
    assert str(taken) in run(*arguments(no_folder), check=73).stderr
    if wrong:
        said = run(*arguments(tmp_path / wrong), check=code).stderr
        assert wrong in said or "must end in" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == [name]


def test_beams_have_a_file_each_that_is_checked(tmp_path):
    (tmp_path / "x_zenith.fil").write_text("last night's")
    beams = tmp_path / "beams.toml"
    beams.write_text(f'''[telescope]
layout = "{EXAMPLES}/mwa32t.csv"
latitude_deg = -26.7
longitude_deg = 116.67
[[beam]]
name = "zenith"
frame = "azel"
az_deg = 0
el_deg = 90
[[beam]]
name = "low"
frame = "azel"
az_deg = 0
el_deg = 60
''')
    done = run("beamform", "not_there.dat", "--beams", beams, "-o", tmp_path / "x.fil", check=73)
    assert "x_zenith.fil" in done.stderr


# The second of two recordings that are searched one by one: nothing is made of the first.
def test_outputs_of_every_recording_are_checked_before_the_first_is_searched(tmp_path):
    for k in (1, 2):
        header = b"".join(len(w).to_bytes(4, "little") + w + v for w, v in (
            (b"HEADER_START", b""), (b"nchans", (16).to_bytes(4, "little")), (b"nbits", (8).to_bytes(4, "little")),
            (b"nifs", (1).to_bytes(4, "little")), (b"tstart", struct.pack("<d", 58000.0 + k)),
            (b"tsamp", struct.pack("<d", 1e-3)), (b"fch1", struct.pack("<d", 1400.0)), (b"foff", struct.pack("<d", -1.0)),
            (b"HEADER_END", b"")))
        (tmp_path / f"{k}.fil").write_bytes(header + bytes(range(1, 251)) * 1024)
    out = tmp_path / "out"
    out.mkdir()
    (out / "2.cand").write_text("last night's")
    assert "2.cand" in run("search", tmp_path / "1.fil", tmp_path / "2.fil", "-o", out, check=73).stderr
    assert [p.name for p in out.iterdir()] == ["2.cand"]
    run("search", tmp_path / "1.fil", tmp_path / "2.fil", "-o", out, "--overwrite")
    assert (out / "1.cand").exists()


# Declination 80 never rises at latitude -26.7: before a port is opened.
@pytest.mark.parametrize("kind", ["network", "simulator"])
def test_a_live_run_to_a_phase_centre_that_never_rises_is_refused(tmp_path, kind):
    done = run(*live_arguments(tmp_path / "out", 'correlate.phase_center="100,80"', f"source.kind={kind}", kinds=("udp",) * 4),
               check=78, timeout=60)
    assert "does not rise" in done.stderr and "altitude" in done.stderr


def test_a_mistyped_command_of_grid_names_the_one_that_exists():
    done = run("grid", "mrege", "a.rgrid", "b.rgrid", "-o", "m.fits", check=64)
    assert "ryle grid merge" in done.stderr
    assert "ryle import best2" in run("import", "bset2", check=64).stderr
    assert "ryle import best2 has no option --bnad; did you mean --band?" in run("import", "best2", "--bnad", 1, check=64).stderr


def test_the_plan_looks_at_allowed_senders():
    done = run("plan", EXAMPLES / "mwa32t.toml", "--set", 'source.allowed_senders=["10.1.2.300"]', check=78)
    assert "10.1.2.300" in done.stderr


@pytest.fixture(scope="module")
def visibilities(tmp_path_factory):
    """A recording of 32 antennas, and its visibilities."""
    folder = tmp_path_factory.mktemp("visibilities")
    recording = folder / "samples.bin"
    run("simulate", EXAMPLES / "mwa32t.toml", "-o", recording, "--set", "simulator.duration_s=0.02",
        "--set", "simulator.period_samples=4096", "--set", 'source.start_utc="2026-01-01T00:00:00"')
    return recording, correlated(recording, folder / "vis.uvh5")


def correlated(recording, out, *options, code=0, layout=EXAMPLES / "mwa32t.csv"):
    done = run("correlate", recording, "--format", "mwa32t-interleaved", "--layout", layout,
               "--latitude-deg", -26.7, "--longitude-deg", 116.67, "--center-mhz", 154.24, "--start", "2026-01-01T00:00:00",
               "--integration", 0.01, "--channels", 16, "--device", "cpu", "-o", out, *options, check=code)
    return out if code == 0 else done.stderr


def test_the_path_of_visibilities_is_the_cheaper_one(visibilities, tmp_path):
    layout = tmp_path / "small.csv"  # a twentieth of the array: few cells
    header, *inputs = [line for line in (EXAMPLES / "mwa32t.csv").read_text().splitlines() if line[0] != "#"]
    small = [[str(0.05 * float(f)) if 1 <= k <= 3 else f for k, f in enumerate(line.split(","))] for line in inputs]
    layout.write_text("\n".join([header, *map(",".join, small)]) + "\n")
    vis = correlated(visibilities[0], tmp_path / "small.uvh5", layout=layout)
    for pixels in (32, 128):
        cost = {}
        for path in ("vis-grid", "vis-dft", "auto"):
            said = summary(run("image", vis, "--path", path, "--pixels", pixels, "--device", "cpu", "--json", "-o",
                               tmp_path / "x.fits", "--overwrite"))
            cost[path] = said["image"]["predicted_s"]
            chosen = said["path"]
        assert chosen == min(("vis-grid", "vis-dft"), key=cost.get), cost


# Nothing is taken out of the phases: only UVH5 has a word for that, and Ryle reads it again.
def test_data_without_fringe_stopping_say_so(visibilities, tmp_path):
    layout = tmp_path / "no_cables.csv"  # those are not undone then, either
    header, *inputs = [line for line in (EXAMPLES / "mwa32t.csv").read_text().splitlines() if line[0] != "#"]
    layout.write_text("\n".join([header, *(",".join([*line.split(",")[:5], "0", "90"]) for line in inputs)]) + "\n")
    none = correlated(visibilities[0], tmp_path / "none.uvh5", "--fringe-stopping", "none", layout=layout)
    stopped = correlated(visibilities[0], tmp_path / "stopped.uvh5", layout=layout)
    with h5py.File(none) as file, h5py.File(stopped) as phased:
        entry = file["Header/phase_center_catalog/0"]
        assert entry["cat_type"][()] == b"unprojected" and entry["cat_frame"][()] == b"altaz"
        assert phased["Header/phase_center_catalog/0/cat_type"][()] == b"sidereal"
        assert file["Header/phase_center_app_dec"][0] == pytest.approx(np.radians(-26.7))
        # East, north, up of antenna 2 - antenna 1, which at the zenith are u, v, w but for precession.
        assert np.abs(file["Header/uvw_array"][:] - phased["Header/uvw_array"][:]).max() < 2
        assert np.abs(file["Data/visdata"][:] - phased["Data/visdata"][:]).max() > 0.1  # heights of the antennas
    planes = []
    for vis in (none, stopped):
        run("image", vis, "-o", tmp_path / "x.fits", "--equalize", "no", "--overwrite")
        planes.append(fits.getdata(tmp_path / "x.fits").ravel())
    seen = np.isfinite(planes[0])
    assert np.corrcoef(planes[0][seen], planes[1][seen])[0, 1] > 0.9999
    for name in ("none.ms", "none.uvfits"):
        assert "cannot say" in correlated(visibilities[0], tmp_path / name, "--fringe-stopping", "none", code=78)
    assert "phase_center" in correlated(visibilities[0], tmp_path / "x.uvh5", "--fringe-stopping", "none", "--phase-center",
                                        "100,-26", code=78)
