# SPDX-License-Identifier: BSD-3-Clause
"""Several recordings as one observation, through the commands users type. Frames of VDIF are written here from the
definition, apart from Ryle's reader and writer."""

import json
import struct

import h5py
import numpy as np
import pytest
from harness import data, run, ryle

RATE = 64000  # real samples a second
PER_FRAME = 1280
FRAMES_PER_SECOND = RATE // PER_FRAME


def frame(second, number, thread, station, codes):
    """One frame of 8-bit real samples of one channel, EDV 1 with its rate."""
    payload = np.asarray(codes, np.uint8).tobytes()
    words = [second, number | 40 << 24, (32 + len(payload)) // 8, station | thread << 16 | 7 << 26,
             RATE // 2 // 1000 | 1 << 24, 0xACABFEED, 0, 0]
    return struct.pack("<8I", *words) + payload


def voltages(n_inputs, seconds=1.0, seed=1):
    """Noise that all inputs share in part: codes [input][time]."""
    rng = np.random.default_rng(seed)
    n = int(seconds * RATE)
    common = rng.normal(0, 15, n)
    return np.clip(np.rint(common + rng.normal(0, 20, (n_inputs, n)) + 128), 0, 255).astype(np.uint8)


def write(path, codes, threads, station=0x6645, first=0, n=None, skip=()):
    """Frames [first, first + n) of codes[thread] as one station's file."""
    with open(path, "wb") as file:
        for k in range(first, first + (n or codes.shape[1] // PER_FRAME - first)):
            if k in skip:
                continue
            for row, thread in enumerate(threads):
                file.write(frame(100 + k // FRAMES_PER_SECOND, k % FRAMES_PER_SECOND, thread, station,
                                 codes[row, k * PER_FRAME:(k + 1) * PER_FRAME]))
    return path


def layout(path, n):
    rows = [f"A{k},{30 * k},{11 * k * k},0,X,0" for k in range(n)]
    path.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "\n".join(rows) + "\n")
    return path


def correlate(folder, name, files, n_inputs, *more):
    out = folder / f"{name}.uvh5"
    facts = ryle("correlate", *files, "--layout", layout(folder / f"{n_inputs}.csv", n_inputs), "--center-mhz", 150,
                 "--channels", 32, "--integration", 0.1, "--latitude-deg", 50, "--device", "cpu", "-o", out, *more)
    with h5py.File(out) as file:
        values = file["Data/visdata"][...], file["Data/nsamples"][...], file["Header/time_array"][...]
    return values, facts


def test_parts_make_the_products_of_the_whole(tmp_path):
    codes = voltages(3)
    whole = write(tmp_path / "whole.vdif", codes, [0, 1, 2])
    a = write(tmp_path / "a.vdif", codes, [0, 1, 2], n=17)
    b = write(tmp_path / "b.vdif", codes, [0, 1, 2], first=17, n=20)
    c = write(tmp_path / "c.vdif", codes, [0, 1, 2], first=37)
    one, _ = correlate(tmp_path, "one", [whole], 3)
    parts, _ = correlate(tmp_path, "parts", [c, a, b], 3)
    for x, y in zip(one, parts):
        assert np.array_equal(x, y)


def test_a_gap_costs_exactly_its_samples(tmp_path):
    codes = voltages(2)
    one, _ = correlate(tmp_path, "lost", [write(tmp_path / "lost.vdif", codes, [0, 1], skip=range(20, 23))], 2)
    gap, summary = correlate(tmp_path, "gap", [write(tmp_path / "a.vdif", codes, [0, 1], n=20),
                                               write(tmp_path / "b.vdif", codes, [0, 1], first=23)], 2)
    for x, y in zip(one, gap):
        assert np.array_equal(x, y)
    assert summary["lost_samples"] == 2 * 3 * PER_FRAME
    assert any("absent" in line for line in summary["warnings"])
    assert gap[1].min() < gap[1].max()


def test_stations_are_inputs_of_one_observation(tmp_path):
    codes = voltages(3)
    stations = [write(tmp_path / f"s{k}.vdif", codes[k:k + 1], [0], station=0x4100 + k) for k in range(3)]
    one, _ = correlate(tmp_path, "one", [write(tmp_path / "whole.vdif", codes, [0, 1, 2])], 3)
    three, _ = correlate(tmp_path, "three", stations, 3)
    for x, y in zip(one, three):
        assert np.array_equal(x, y)
    facts = json.loads(run("info", *stations, "--json").stdout)
    assert facts["inputs"] == 3 and len(facts["parts"]) == 3
    assert [part["inputs"] for part in facts["parts"]] == [[0], [1], [2]]
    # A station that comes late is absent until then, and the others stand as they are.
    late = write(tmp_path / "late.vdif", codes[2:], [0], station=0x4102, first=10)
    short, summary = correlate(tmp_path, "late", [*stations[:2], late], 3)
    assert summary["lost_samples"] == 10 * PER_FRAME
    assert np.array_equal(short[2], one[2])


def test_what_does_not_fit_is_refused_with_both_names(tmp_path):
    codes = voltages(1, 0.5)
    a = write(tmp_path / "a.vdif", codes, [0])
    b = write(tmp_path / "b.vdif", codes, [0], first=10)
    empty = tmp_path / "empty.vdif"
    empty.write_bytes(b"")
    common = ["--layout", layout(tmp_path / "1.csv", 1), "-o", tmp_path / "x.uvh5"]
    for files, words in (([a, b], ["a.vdif", "b.vdif", "overlap"]), ([a, a], ["a.vdif", "twice"]),
                         ([a, empty], ["empty.vdif", "0 bytes"])):
        done = run("correlate", *files, *common, check=65)
        for word in words:
            assert word in done.stderr
    assert not (tmp_path / "x.uvh5").exists()


def test_an_observation_file_names_several_files(tmp_path):
    codes = voltages(2)
    write(tmp_path / "a.vdif", codes, [0, 1], n=20)
    write(tmp_path / "b.vdif", codes, [0, 1], first=20)
    layout(tmp_path / "two.csv", 2)
    observation = tmp_path / "o.toml"
    observation.write_text(f"""schema = 1
[telescope]
layout = "two.csv"
latitude_deg = 50
[source]
kind = "file"
format = "vdif"
files = ["{tmp_path}/a.vdif", "{tmp_path}/b.vdif"]
center_mhz = 150
[correlate]
integration_s = 0.25
[channelize]
n_channels = 32
[output]
directory = "{tmp_path}/out"
uvh5 = true
uvfits = false
pictures = false
""")
    text = run("run", observation, "--check").stdout
    assert "a.vdif and 1 more" in text and f"{codes.shape[1]} samples" in text
    assert run("run", observation).returncode == 0
    done = run("run", observation, "--set", f'source.file="{tmp_path}/a.vdif"', check=78)
    assert "both given" in done.stderr


@pytest.mark.parametrize("lower", [False, True])
def test_a_tone_appears_at_its_sky_frequency(tmp_path, lower):
    sky_hz, edge_hz = 1.4e9 + 10250.0, 1.4e9
    zero_hz = edge_hz + RATE / 2 if lower else edge_hz
    t = np.arange(RATE) / RATE
    tone = 40 * np.cos(2 * np.pi * (sky_hz - zero_hz) * t)[None] + np.random.default_rng(3).normal(0, 5, (2, RATE))
    path = write(tmp_path / "tone.vdif", np.clip(np.rint(tone + 128), 0, 255), [0, 1])
    out = tmp_path / "tone.uvh5"
    run("correlate", path, "--layout", layout(tmp_path / "2.csv", 2), "--channels", 64, "--integration", 0.5,
        "--device", "cpu", "-o", out, "--set", f'source.channel_map=["* {zero_hz / 1e6!r} {"L" if lower else "U"}"]')
    with h5py.File(out) as file:
        power = np.abs(file["Data/visdata"][...]).reshape(-1, 64, file["Data/visdata"].shape[-1]).sum(axis=(0, 2))
        frequencies = file["Header/freq_array"][...].ravel()
    assert abs(frequencies[power.argmax()] - sky_hz) <= RATE / 2 / 64 / 2


@pytest.mark.parametrize("by_file", [False, True])
def test_bands_of_threads_or_files_are_made_at_once(tmp_path, by_file):
    """Two antennas in two bands, of which the upper one is lower sideband: each the product of its band alone."""
    codes = voltages(4)
    files = [write(tmp_path / f"{k}.vdif", codes[2 * k:2 * k + 2], [2 * k, 2 * k + 1]) for k in range(2)] if by_file else [
        write(tmp_path / "all.vdif", codes, [0, 1, 2, 3])]
    layout(tmp_path / "two.csv", 2)
    observation = tmp_path / "o.toml"
    observation.write_text(f"""schema = 1
[telescope]
layout = "two.csv"
latitude_deg = 50
[source]
kind = "file"
format = "vdif"
files = {json.dumps([str(f) for f in files])}
channel_map = ["0 150.5 U", "1 150.5 U", "2 171 L", "3 171 L"]
[correlate]
integration_s = 0.25
[channelize]
n_channels = 32
[output]
name = "x"
uvh5 = true
ms = false
uvfits = false
pictures = false
""")

    def made(name, *settings):
        s = json.loads(run("run", observation, "-o", tmp_path / name, "--json", "-q", *settings).stdout.splitlines()[-1])
        found = {}
        for path in (tmp_path / name).glob("*.uvh5"):
            with h5py.File(path) as f:
                found[path.name] = f["Data/visdata"][:], f["Header/freq_array"][:].ravel(), f["Data/nsamples"][:]
        return s, found

    s, bands = made("all")
    assert sorted(bands) == ["x_150.5MHz.uvh5", "x_170.968MHz.uvh5"] and s["warnings"] == []
    low, low_bands = made("low", "--set", "source.center_mhz=150.51")
    high, high_bands = made("high", "--set", "source.center_mhz=170.98")
    assert s["integrations"] == low["integrations"] + high["integrations"] > 4
    for alone, name in ((low_bands, "x_150.5MHz.uvh5"), (high_bands, "x_170.968MHz.uvh5")):
        for a, b in zip(alone["x.uvh5"], bands[name], strict=True):
            assert np.array_equal(a, b)
    assert abs(bands["x_170.968MHz.uvh5"][1].mean() - 170.984e6) < 1e3
    done = run("run", observation, "-o", tmp_path / "none", "--set", "source.center_mhz=160", check=78)
    assert "lies in none of the bands" in done.stderr


def test_guppi_files_of_one_scan(tmp_path):
    raw = data("baseband/sample_puppi.raw").read_bytes()
    block = len(raw) // 4
    for k in range(4):
        (tmp_path / f"x.{k:04}.raw").write_bytes(raw[k * block:(k + 1) * block])
    facts = json.loads(run("info", *[tmp_path / f"x.{k:04}.raw" for k in (2, 0, 3, 1)], "--json").stdout)
    whole = json.loads(run("info", data("baseband/sample_puppi.raw"), "--json").stdout)
    for key in ("spectra", "inputs", "start_utc", "rate_hz", "first_channel_hz"):
        assert facts[key] == whole[key]
    assert facts["warnings"] == []
