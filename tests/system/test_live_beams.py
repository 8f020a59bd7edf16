# SPDX-License-Identifier: BSD-3-Clause
"""BEST-2 live: packets of the simulator become filterbanks of beams in which its pulsar pulses (docs/live-beams.md)."""

import csv
import json
import struct

import numpy as np
import pytest
from harness import ROOT, endpoints, run, summary

CHANNELS = 64


def arguments(directory, *settings):
    values = [f"source.listen={endpoints(['udp'])}", "source.first_channel=480",
              f"source.n_channels={CHANNELS}", "source.n_chunks=64", "simulator.duration_s=1.0", "simulator.speed=1.0",
              "source.stall_budget_s=1.0", "source.close_after_ms=20000", "beams.scale_s=0.1", "beams.queue=200",
              "output.pictures=false", "search.dm_max=0.0", *settings]
    return ["run", ROOT / "examples/best2.toml", "-o", directory, "--json", "-q", "--allow-small-rcvbuf",
            *[word for value in values for word in ("--set", value)]]


def filterbank(path):
    """Header values we need and data [time][channel], highest channel first."""
    raw = path.read_bytes()
    end = raw.index(b"HEADER_END") + len(b"HEADER_END")

    def value(key, kind):
        at = raw.index(key.encode()) + len(key)
        return struct.unpack_from("<" + kind, raw, at)[0]

    head = {"tsamp": value("tsamp", "d"), "fch1": value("fch1", "d"), "foff": value("foff", "d"),
            "nchans": value("nchans", "i"), "tstart": value("tstart", "d"), "src_raj": value("src_raj", "d")}
    return head, np.frombuffer(raw[end:], np.uint8).reshape(-1, head["nchans"]).astype(float)


def series(head, data, dm):
    """Mean over the band at a dispersion measure, arrival at the highest channel."""
    mhz = head["fch1"] + head["foff"] * np.arange(head["nchans"])
    shift = np.rint(4148.8064 * dm * (mhz**-2 - mhz[0]**-2) / head["tsamp"]).astype(int)
    return np.mean([np.roll(data[:, c], -shift[c]) for c in range(head["nchans"])], axis=0)


def test_the_pulsar_pulses_in_its_beam_only(tmp_path):
    s = summary(run(*arguments(tmp_path)))
    blocks = round(1.0 * 78125 / 4 / 128)
    assert s["packets_received"] == s["packets_used"] == blocks * CHANNELS
    assert s["lost_samples"] == 0 and s["errors"] == [] and s["warnings"] == [] and s["state"] in ("OK", "SLOW")
    assert s["beams"]["beams"] == 4 and s["beams"]["samples"] == blocks * 128 // 4
    assert s["beams"]["dropped_samples"] == 0 and s["data_s"] == pytest.approx(blocks * 128 / 19531.25)
    head, data = filterbank(tmp_path / "best2_b0329.fil")
    assert head["nchans"] == CHANNELS and head["tsamp"] == pytest.approx(4 / 19531.25, rel=1e-12)
    assert head["fch1"] == pytest.approx(418 - 480.5 * 0.01953125, abs=1e-9) and head["foff"] == -0.01953125
    assert head["tstart"] == pytest.approx(60735 + (16 * 60 + 10) / 1440, abs=1e-8)
    assert head["src_raj"] == pytest.approx(33259.4, abs=0.01)
    assert len(data) == blocks * 128 // 4
    assert abs(np.mean(data) - 64) < 1 and 7 < np.std(data) < 9

    # Pulses of 6.6 ms = 32 samples at 0.2 and 0.91452 s: S/N 13 in 1.25 MHz.
    power = np.convolve(series(head, data, 26.764), np.ones(32) / 32, "valid")
    noise = np.std(power[2000:4000])
    for at_s in (0.2, 0.91452):
        # start_s is of the highest channel taken
        near = round(at_s / head["tsamp"])
        window = power[near - 40:near + 40]
        assert np.max(window) - 64 > 8 * noise
        assert abs(int(np.argmax(window)) - 40) <= 6
    off = np.convolve(series(*filterbank(tmp_path / "best2_off.fil"), 26.764), np.ones(32) / 32, "valid")
    assert np.max(off) - 64 < 6 * noise

    notes = json.loads((tmp_path / "best2_beams.json").read_text())
    assert notes["absent"] == [] and [b["name"] for b in notes["beams"]][:2] == ["b0329", "zenith"]
    assert notes["beams"][1]["el_deg"] == pytest.approx(90, abs=1e-6)


def test_a_silence_keeps_the_time(tmp_path):
    s = summary(run(*arguments(tmp_path, "simulator.dying_receiver=0", "simulator.dies_at_s=0.4",
                               "simulator.returns_at_s=0.5")))
    head, data = filterbank(tmp_path / "best2_b0329.fil")
    blocks = round(1.0 * 78125 / 4 / 128)
    assert len(data) == blocks * 128 // 4
    middle = data[round(0.42 / head["tsamp"]):round(0.48 / head["tsamp"])]
    assert np.all(middle == 64)
    assert np.std(data[round(0.6 / head["tsamp"]):]) > 7
    sent = s["packets_used"]
    assert 0.88 < sent / (blocks * CHANNELS) < 0.92


def candidates(directory, dm=26.8):
    with open(directory / "best2.csv") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    return [float(row["time_s"]) for row in rows if not row["flags"] and abs(float(row["dm_pc_cm3"]) - dm) < 10]


def test_masks_of_the_search_are_keys(tmp_path):
    kill = tmp_path / "kill.txt"
    kill.write_text("zap 408 418\n")  # half of the channels
    search = ["search.dm_max=60.0", "source.n_channels=256", "beams.filterbank=false"]
    run(*arguments(tmp_path / "all", *search))
    assert candidates(tmp_path / "all") == pytest.approx([0.2, 0.91452], abs=0.01)
    run(*arguments(tmp_path / "masked", *search, "search.mask_times=0.15-0.3", f"search.kill_file={kill}"))
    assert candidates(tmp_path / "masked") == pytest.approx([0.91452], abs=0.01)
    kill.write_text("zap 408 higher\n")
    done = run(*arguments(tmp_path / "none", *search, f"search.kill_file={kill}"), check=65)
    assert f"{kill}: line 1" in done.stderr and not (tmp_path / "none").exists()


def test_an_observation_without_a_time_is_refused(tmp_path):
    done = run(*arguments(tmp_path, "source.kind=network", "source.start_utc=now"), check=78)
    assert "source.start_utc is needed" in done.stderr


@pytest.mark.parametrize("setting", [
    "beams.spead=udp://nosuch.invalid:7000", "beams.spead=udp://239.1.2.3+3:7000?interface=nosuch0",
    "output.spead=udp://nosuch.invalid:7000",
])
def test_a_receiver_that_is_unknown_is_found_before_the_run(tmp_path, setting):
    line = arguments(tmp_path / "out", setting, "output.uvh5=true")
    host = "nosuch0" if "nosuch0" in setting else "nosuch.invalid"
    done = run(*line, check=69)
    assert host in done.stderr and "STARTING" not in done.stderr
    assert not list(tmp_path.glob("out/*.fil")) and not list(tmp_path.glob("out/*.uvh5"))
    settings = [word for word in line[line.index("--set"):]]
    assert host in run("plan", ROOT / "examples/best2.toml", *settings, check=69).stderr


ANTENNAS, BAND_CHANNELS, RATE = 64, 512, 25_000


def packet(order, extents, samples, counter, channel):
    return f"""
[source.packet]
length = {16 + ANTENNAS * samples}
header = [
  {{field = "sequence", {counter}}},
  {{field = "first_channel", {channel}, count = {BAND_CHANNELS}}},
]
payload = {{offset = 16, order = {order}, extents = {extents}, sample = "ci4"}}
"""


PACKETS = {
    # As BEST-2's with other numbers: the beamformer takes these packets as they come.
    "pairs": packet('["input", "time", "input"]', f"{{input = [{ANTENNAS // 2}, 2], time = 128}}", 128,
                    'type = "u64be", offset = 0, bits = [63, 26], ticks_per_count = 128',
                    'type = "u64be", offset = 0, bits = [24, 16], interleave = 2'),
    # Another order, other lengths, channels one after the other.
    "spectra": packet('["time", "input"]', f"{{time = 64, input = {ANTENNAS}}}", 64,
                      'type = "u32le", offset = 4, ticks_per_count = 64', 'type = "u16le", offset = 10'),
}


def second_array(tmp_path, name):
    """An observation of 64 antennas and 512 channels that ascend, in TOML alone."""
    rng = np.random.default_rng(64)
    (tmp_path / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"A{a},{e:.3f},{n:.3f},0.000,X,0\n" for a, (e, n) in enumerate(rng.uniform(-40, 40, (ANTENNAS, 2)))))
    (tmp_path / "beams.toml").write_text(f"""
[telescope]
name = "SECOND"
layout = "array.csv"
latitude_deg = -26.7
longitude_deg = 116.7
height_m = 377.0
[band]
first_center_mhz = 140.0
channel_step_khz = {RATE / 1e3}
n_channels = {BAND_CHANNELS}
[[beam]]
name = "pulsar"
frame = "azel"
az_deg = 40.0
el_deg = 75.0
[[beam]]
name = "off"
frame = "azel"
az_deg = 220.0
el_deg = 60.0
""")
    file = tmp_path / f"{name}.toml"
    east, north = np.cos(np.radians(75)) * np.sin(np.radians(40)), np.cos(np.radians(75)) * np.cos(np.radians(40))
    file.write_text(f"""
schema = 1
[source]
kind = "simulator"
format = "best2"
listen = {endpoints(['udp'])}
start_utc = "2026-01-01T12:00:00"
sample_rate_hz = {RATE}
first_channel = 100
n_channels = 64
chunk_ms = 40.96
n_chunks = 64
stall_budget_s = 1.0
close_after_ms = 20000
{PACKETS[name]}
[simulator]
duration_s = 0.6144
speed = 0.5
wait_for_run = true
sefd_jy = 2000.0
rms_lsb = 2.3
period_samples = 1024
[[simulator.source]]
name = "pulsar"
l = {east}
m = {north}
flux_jy = 300.0
start_s = 0.1
duration_s = 0.004
period_s = 0.25
dm_pc_cm3 = 5.0
[beams]
file = "beams.toml"
integration_spectra = 4
scale_s = 0.05
queue = 400
pictures = 0
[search]
dm_max = 12.0
[correlate]
integration_s = 0.2048
fringe_stopping = "none"
[output]
name = "best2"
uvh5 = true
pictures = false
""")
    return file


def test_an_array_of_other_numbers_runs_by_its_description_alone(tmp_path):
    h5py = pytest.importorskip("h5py")
    made = {}
    for name in PACKETS:
        file = second_array(tmp_path, name)
        out = tmp_path / name
        s = summary(run("run", file, "-o", out, "--json", "-q", "--allow-small-rcvbuf"))
        samples = 64 if name == "spectra" else 128
        spectra = round(0.6144 * RATE / samples) * samples
        assert s["packets_used"] == s["packets_received"] == spectra // samples * 64
        assert s["lost_samples"] == 0 and s["errors"] == [] and s["beams"]["beams"] == 2
        head, data = filterbank(out / "best2_pulsar.fil")
        assert head["nchans"] == 64 and head["foff"] == pytest.approx(-RATE / 1e6)
        assert head["fch1"] == pytest.approx(140 + 163 * RATE / 1e6)
        with h5py.File(next(out.glob("*.uvh5"))) as visibilities:
            assert visibilities["Header/Nants_data"][()] == ANTENNAS
            assert visibilities["Header/freq_array"][:].ravel() == pytest.approx(140e6 + (100 + np.arange(64)) * RATE)
            made[name] = data, candidates(out, dm=5.0), visibilities["Data/visdata"][:]
    # start_s is that of the highest channel received.
    assert made["pairs"][1] == pytest.approx([0.1, 0.35, 0.6], abs=0.02) or made["pairs"][1] == pytest.approx([0.1, 0.35], abs=0.02)
    assert made["pairs"][1] == made["spectra"][1]
    assert np.array_equal(made["pairs"][0], made["spectra"][0])
    assert np.array_equal(made["pairs"][2], made["spectra"][2])

    # The packets as a file, and the file in the place of the sockets.
    file = second_array(tmp_path, "pairs")
    run("simulate", file, "-o", tmp_path / "sent.pcap", "-q")
    s = summary(run("run", file, "-o", tmp_path / "replay", "--json", "-q", "--set", "source.kind=pcap", "--set",
                    f"source.file={tmp_path / 'sent.pcap'}"))
    assert s["lost_samples"] == 0
    assert np.array_equal(filterbank(tmp_path / "replay" / "best2_pulsar.fil")[1], made["pairs"][0])


@pytest.mark.parametrize("change, words", [
    ("telescope", "inputs"), ("source.n_channels=500", "packets count 512"), ("source.pair_swap=true", ""),
    ("source.antenna_map=[1,0]", "each of 0 to 63"), ("source.sample_rate_hz=0", "sample_rate_hz is needed"),
])
def test_an_array_that_does_not_fit_its_packets_is_refused(tmp_path, change, words):
    file = second_array(tmp_path, "pairs")
    settings = ["--set", change]
    if change == "telescope":  # an antenna is missing
        lines = (tmp_path / "array.csv").read_text().splitlines()
        (tmp_path / "array.csv").write_text("\n".join(lines[:-1]) + "\n")
        settings = []
    done = run("run", file, "--check", *settings, check=78 if words else 0)
    assert words in done.stderr
