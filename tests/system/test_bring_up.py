# SPDX-License-Identifier: BSD-3-Clause
"""A telescope nobody programmed, written as TOML alone: the observation file is read out of docs/bring_up.md, simulated from
itself, correlated and imaged. And `ryle capture` of its packets."""

import json
import math
import re
import shutil
import socket
import struct
import subprocess
import threading

import h5py
import numpy as np
import pytest
from astropy.io import fits
from harness import LIMIT_S, ROOT, binary, endpoints, run, ryle, summary

PAGE = (ROOT / "docs/bring_up.md").read_text()
SOURCES = {(0.30, 0.20): 3000, (-0.45, -0.25): 2000}


def observation(directory, *changes):
    """The file of the page, with its array file beside it; `changes` are pairs of texts."""
    text = re.search(r"```toml\n(.*?)```", PAGE, re.S).group(1)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    shutil.copy(ROOT / "examples/bring_up.csv", directory)
    path = directory / "bring_up.toml"
    path.write_text(text)
    return path


def live(directory, path, *settings):
    arguments = ["run", path, "-o", directory / "out", "--json", "-q", "--allow-small-rcvbuf", "--set",
                 f"source.listen={endpoints(['udp'])}", "--set", "source.close_after_ms=20000", "--set", "runtime.device=cpu"]
    for setting in settings:
        arguments += ["--set", setting]
    return arguments


def test_the_sixth_telescope_is_correlated_and_imaged(tmp_path):
    path = observation(tmp_path)
    s = summary(run(*live(tmp_path, path)))
    assert s["packets_rejected_total"] == 0 and s["packets_used"] == s["packets_received"] > 4 * 4000
    assert s["lost_samples"] == 0 and s["integrations"] == 3
    with h5py.File(tmp_path / "out/sixth.uvh5") as f:
        assert f["Header/Nants_data"][()] == 48 and f["Header/Npols"][()] == 4
        frequency = f["Header/freq_array"][:].ravel()
    # Real samples: half of the rate, from the edge of the band.
    assert len(frequency) == 32 and abs(frequency[1] - frequency[0] - 500e3 / 32) < 1
    assert 150e6 <= frequency[0] < 150.02e6
    sky = tmp_path / "sky.fits"
    ryle("image", tmp_path / "out/sixth.uvh5", "--taper", 0.03, "--channel-average", 32, "-o", sky)
    image = np.squeeze(fits.getdata(sky)).astype(float)
    n = image.shape[0]
    cell = 2.0 / n
    y, x = np.mgrid[:n, :n]
    l, m = (n // 2 - x) * cell, (y - n // 2) * cell
    elsewhere = np.isfinite(image)
    for (source_l, source_m), flux in SOURCES.items():
        distance = np.hypot(l - source_l, m - source_m)
        near = np.where(distance < 0.03, image, -np.inf)
        peak = np.unravel_index(np.argmax(near), near.shape)
        assert math.hypot(l[peak] - source_l, m[peak] - source_m) < 1.5 * cell
        assert abs(near[peak] / flux - 1) < 0.2, (near[peak], flux)
        elsewhere &= distance > 0.1
    assert np.max(image[elsewhere]) < 0.5 * 2000


def test_other_layouts_of_the_same_samples_give_the_same_visibilities(tmp_path):
    """Bytes in another order, counted otherwise: what is made of them is the same, value for value."""
    short = ["simulator.duration_s=0.25", "output.ms=false", "output.uvfits=false", "output.pictures=false"]
    layouts = {
        "page": [],
        "turned": [('order = ["time", "input"]', 'order = ["input", "time"]')],
        "pairs": [('order = ["time", "input"], extents = {time = 128, input = 24}',
                   'order = ["input", "time", "input"], extents = {input = [12, 2], time = 128}')],
        "offset binary": [('sample = "i8"', 'sample = "i8", twos_complement = false')],
        "wide": [("length = 3088", "length = 6160"), ('sample = "i8"', 'sample = "i8", word = "u16be", re_shift = 3')],
        "little endian": [('type = "u64be", offset = 0, ticks_per_count = 128', 'type = "u32le", offset = 4'),
                          ('type = "u8", offset = 8, base = 1', 'type = "u64be", offset = 8, bits = [46, 44]'),
                          ('{field = "constant", type = "u32be", offset = 12, value = 0x36544831},', "")],
    }
    first = None
    for k, (name, changes) in enumerate(layouts.items()):
        directory = tmp_path / str(k)
        directory.mkdir()
        s = summary(run(*live(directory, observation(directory, *changes), *short)))
        assert s["packets_rejected_total"] == 0 and s["lost_samples"] == 0, name
        with h5py.File(directory / "out/sixth.uvh5") as f:
            data = f["Data/visdata"][:]
        first = data if first is None else first
        assert np.array_equal(data, first), name


@pytest.mark.parametrize("sample, bits, rms_lsb", [("i1", 1, 6), ("i2", 2, 6), ("i4", 4, 2), ("i12be", 12, 200), ("i16le", 16, 1000),
                                                   ("ci5", 10, 4)])
def test_samples_of_every_width_show_the_sky(tmp_path, sample, bits, rms_lsb):
    levels = ", levels = true" if bits <= 2 else ""
    path = observation(tmp_path, ("length = 3088", f"length = {16 + 24 * 16 * bits}"),
                       ('sample = "i8"', f'sample = "{sample}"{levels}'), ("rms_lsb = 20.0", f"rms_lsb = {rms_lsb}"))
    s = summary(run(*live(tmp_path, path, "simulator.duration_s=0.25", "output.ms=false", "output.uvfits=false",
                          "output.pictures=false")))
    assert s["packets_rejected_total"] == 0 and s["lost_samples"] == 0
    image = ryle("image", tmp_path / "out/sixth.uvh5", "--taper", 0.03, "--channel-average", 32, "-o", tmp_path / "sky.fits")
    assert math.hypot(image["peak"]["l"] - 0.30, image["peak"]["m"] - 0.20) < 0.01


def test_counters_from_1970_begin_again_every_two_seconds(tmp_path):
    """Seconds of POSIX and a counter within two of them, even ones, or odd ones as a board may have it."""
    counter = '{field = "sequence", type = "u64be", offset = 0, ticks_per_count = 128}'
    dated = ('{field = "sequence", type = "u32be", offset = 4, ticks_per_count = 128, since = "1970"}, '
             '{field = "second", type = "u32be", offset = 0, counts_per_period = 20000, period_s = 2}')
    start, integration_s = "2026-03-01T12:00:01.792", 0.0512
    changes = [("sample_rate_hz = 1000000", "sample_rate_hz = 1280000"), ("integration_s = 0.2", f"integration_s = {integration_s}")]
    # The dither of fewer bits depends on the count.
    settings = ["simulator.duration_s=0.512", "calibration.jy_per_count2=1", "channelize.bits=32", "output.ms=false", "output.uvfits=false", "output.pictures=false"]

    def made(name, path, *more):
        s = summary(run("run", path, "-o", tmp_path / name, "--json", "-q", "--set", "runtime.device=cpu", *more,
                        *[w for value in settings for w in ("--set", value)]))
        assert s["packets_rejected_total"] == 0 and s["lost_samples"] == 0, s
        with h5py.File(tmp_path / name / "sixth.uvh5") as f:
            return f["Data/visdata"][:], f["Header/time_array"][:]

    at_start = ("2026-03-01T12:00:00", start)
    plain = observation(tmp_path, *changes, at_start)
    listen = ["--set", f"source.listen={endpoints(['udp'])}"]
    data, times = made("plain", plain, *listen, "--allow-small-rcvbuf", "--set", "source.close_after_ms=20000")
    path = observation(tmp_path, *changes, at_start, (counter, dated))
    run("simulate", path, "-o", tmp_path / "even.pcap", *listen, "--set", settings[0])
    path = observation(tmp_path, *changes, ('start_utc = "2026-03-01T12:00:00"   # of counter 0\n', ""), (counter, dated))
    capture = bytearray((tmp_path / "even.pcap").read_bytes())
    at, crossed = 24, set()
    while at < len(capture):
        header = at + 16 + 42
        second, count = struct.unpack_from(">II", capture, header)
        crossed.add(second)
        odd = second - 1 if count < 10000 else second + 1
        struct.pack_into(">II", capture, header, odd, count + 10000 * (second - odd))
        at += 16 + struct.unpack_from("<I", capture, at + 8)[0]
    assert len(crossed) == 2 and all(second % 2 == 0 for second in crossed)
    (tmp_path / "odd.pcap").write_bytes(capture)
    first = 2461101.0 + (1.792 + 0.5 * integration_s) / 86400
    for name in ("even", "odd"):
        again, its_times = made(name, path, *listen, "--set", "source.kind=pcap", "--set", f"source.file={tmp_path / name}.pcap")
        assert np.array_equal(again, data) and np.allclose(its_times, times, atol=1e-11, rtol=0)
        assert abs(its_times[0] - first) * 86400 < 3e-4  # half of a filter later


# The same antennas behind an F-engine: eight channels of 8 bits, critically sampled.
SPECTRA = [("length = 3088", "length = 6160"), ("ticks_per_count = 128", "ticks_per_count = 16"),
           ('order = ["time", "input"], extents = {time = 128, input = 24}, sample = "i8"',
            'order = ["channel", "time", "input", "complex"], extents = {channel = 8, time = 16, input = 24}, sample = "ci8"'),
           ("sample_rate_hz = 1000000", "sample_rate_hz = 31250\nchannel_zero_mhz = 150.0"),
           ("center_mhz = 150.0              # real samples: the edge of the band, 150 to 150.5 MHz\n", ""),
           ("[channelize]\nn_channels = 32\n", ""), ("period_samples = 65536", "period_samples = 8192"), ("rms_lsb = 20.0", "rms_lsb = 2.3")]
ALONE = ["output.ms=false", "output.uvfits=false", "output.pictures=false"]


@pytest.mark.parametrize("sky, fine", [("frozen", 0), ("moving", 0), ("moving", 4)])
def test_spectra_of_8_bits_show_the_sky(tmp_path, sky, fine):
    path = observation(tmp_path, *SPECTRA)
    s = summary(run(*live(tmp_path, path, f"simulator.sky={sky}", f"channelize.fine_channels={fine}", *ALONE)))
    assert s["packets_rejected_total"] == 0 and s["lost_samples"] == 0 and s["integrations"] >= 2
    with h5py.File(tmp_path / "out/sixth.uvh5") as f:
        frequency = f["Header/freq_array"][:].ravel()
    parts = fine or 1
    assert len(frequency) == 8 * parts and np.allclose(np.diff(frequency), 31250 / parts)
    assert frequency[0] == pytest.approx(150e6 - 31250 / parts * (parts // 2), abs=1)
    image = ryle("image", tmp_path / "out/sixth.uvh5", "--taper", 0.03, "--channel-average", 8 * parts, "-o", tmp_path / "sky.fits")
    assert math.hypot(image["peak"]["l"] - 0.30, image["peak"]["m"] - 0.20) < 0.01


def test_fine_channels_add_up_to_the_received_ones(tmp_path):
    """One tap is a unitary transform of four samples: the mean over the fine channels of an integration is that of the channel."""
    found = {}
    for fine in (0, 4):
        directory = tmp_path / str(fine)
        directory.mkdir()
        finer = ["channelize.fine_channels=4", "channelize.taps=1", "channelize.bits=32"] if fine else []
        s = summary(run(*live(directory, observation(directory, *SPECTRA), "correlate.integration_s=0.1024",
                              "correlate.fringe_stopping=none", *finer, *ALONE)))
        assert s["lost_samples"] == 0 and s["integrations"] >= 5
        with h5py.File(directory / "out/sixth.uvh5") as f:
            found[fine] = f["Data/visdata"][:], f["Header/time_array"][:]
    n = 5 * len(found[0][0]) // len(np.unique(found[0][1]))  # rows of the first five integrations
    coarse, finer = found[0][0][:n], found[4][0][:n]
    mean = finer.reshape(n, 8, 4, 4).mean(axis=2)
    # float32 sums of 800 products, and the integers of 3,200 in the other.
    assert np.max(np.abs(mean - coarse)) < 1e-5 * np.max(np.abs(coarse))


def test_mistakes_are_told_before_anything_is_opened(tmp_path):
    def refusal(*changes, code=78):
        return run("run", observation(tmp_path, *changes), "--check", check=code).stderr

    assert "bring_up.toml:19:1: source.packet: payload.extents: 3072 samples" in refusal(("length = 3088", "length = 3087"))
    assert 'did you mean "sequence"' in refusal(('"sequence"', '"sequance"'))
    assert "overlaps" in refusal(("offset = 8, base", "offset = 7, base"))
    half = (ROOT / "examples/bring_up.csv").read_text().splitlines(True)[:43]  # 40 inputs
    (tmp_path / "half.csv").write_text("".join(half))
    assert "which packets of 24 (source.packet, payload.extents) do not divide" in refusal(("bring_up.csv", "half.csv"))
    assert "a header field must tell which" in refusal(
        ('  {field = "board", type = "u8", offset = 8, base = 1},\n', ""))


def test_packets_that_do_not_fit_are_counted(tmp_path):
    path = observation(tmp_path)
    where = endpoints(["udp"])
    host, port = re.search(r"//([\d.]+):(\d+)", where).groups()
    stop = threading.Event()

    def disturb():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            while not stop.is_set():
                s.sendto(b"x" * 3088, (host, int(port)))  # no constant
                s.sendto(b"y" * 99, (host, int(port)))
                stop.wait(0.05)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        arguments = live(tmp_path, path, "simulator.duration_s=0.25", "output.ms=false", "output.uvfits=false",
                         "output.pictures=false")
        arguments[arguments.index("--set") + 1] = f"source.listen={where}"
        s = summary(run(*arguments))
    finally:
        stop.set()
        thread.join()
    assert s["lost_samples"] == 0
    assert s["packets_rejected"]["magic"] > 0 and s["packets_rejected"]["too_short"] > 0


def test_capture_describes_records_and_replays(tmp_path):
    path = observation(tmp_path, ("duration_s = 0.6", "duration_s = 0.1"))
    where = endpoints(["udp"])
    endpoint = re.search(r'"(.*)"', where).group(1)
    record = tmp_path / "first.pcap"
    capture = subprocess.Popen([binary(), "capture", endpoint, "-o", record, "--packets", "400", "--seconds", "60", "--describe",
                                path, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(60):  # the simulator does not know when somebody listens
        run("simulate", path, "--set", f"source.listen={where}", "--set", "simulator.wait_for_run=false", "--set",
            "simulator.speed=0.2")
        if capture.poll() is not None:
            break
    out, err = capture.communicate(timeout=LIMIT_S)
    assert capture.returncode == 0, err
    live_report = json.loads(out)
    assert live_report["datagrams"] == live_report["accepted"] == 400 and live_report["rejected"] == 0
    assert record.stat().st_size == 24 + 400 * (16 + 42 + 3088)
    done = run("capture", "--file", record, "--describe", path)
    assert "400 datagrams: 400 accepted" in done.stdout and "4 streams" in done.stdout
    assert "the counter steps by 1 as described" in done.stdout
    assert re.search(r"1  127[\d.]+:\d+  3088 bytes: counter \d+ = tick \d+, inputs 0 to 23", done.stdout)
    # A description with mistakes is told what is wrong.
    wrong = observation(tmp_path, ("0x36544831", "0x36544832"))
    done = run("capture", "--file", record, "--describe", wrong, check=65)
    assert "rejected, magic: constant at offset 12 is" in done.stdout and "(0x36544832)" in done.stdout
    wrong = observation(tmp_path, ("ticks_per_count = 128", "ticks_per_count = 64"))
    done = run("capture", "--file", record, "--describe", wrong)
    assert "the counter of a stream steps by 1 from packet to packet" in done.stdout
    assert "the description says 2" in done.stdout
    # Sent again, it is the same.
    again = tmp_path / "again.pcap"
    capture = subprocess.Popen([binary(), "capture", endpoint, "-o", again, "--packets", "400", "--seconds", "60", "--json"],
                               stdout=subprocess.PIPE, text=True)
    for _ in range(60):
        run("capture", "--replay", record, endpoint, "--speed", 0.5)
        if capture.poll() is not None:
            break
    out, _ = capture.communicate(timeout=LIMIT_S)
    assert json.loads(out)["datagrams"] == 400


CHIPS = """
[source.packet]
length = 272
header = [
  {field = "board", type = "u8", offset = 0, base = 1},
  {field = "constant", type = "u8", offset = 2, value = 8},
  {field = "first_channel", type = "u16be", offset = 6},
  {field = "sequence", type = "u64be", offset = 8, base = 1},
]
payload = {offset = 16, order = ["channel", "input"], extents = {channel = 8, input = 32}, sample = "ci4"}
"""


def test_described_spectra_give_what_the_codec_of_their_format_gives(tmp_path):
    """LWA-SV's boards by their codec and by descriptions, of bytes in other orders: the same visibilities
    and images, value for value."""
    text = (ROOT / "examples/lwasv.toml").read_text()
    described = text.replace('format = "chips"', 'format = "described"\nchannel_width_hz = 25000').replace("[simulator]", CHIPS + "\n[simulator]", 1)
    time_inside = CHIPS.replace("length = 272", "length = 4112").replace(
        'order = ["channel", "input"], extents = {channel = 8, input = 32}',
        'order = ["input", "channel", "time"], extents = {channel = 8, input = 32, time = 16}').replace(
        "base = 1},\n]", "base = 1, ticks_per_count = 16},\n]")
    halves = CHIPS.replace("length = 272", "length = 144").replace("channel = 8", "channel = 4")
    files = {"codec": text, "described": described, "time inside": described.replace(CHIPS, time_inside),
             "two packets": described.replace(CHIPS, halves)}
    first = None
    shutil.copy(ROOT / "examples/lwasv.csv", tmp_path)
    for k, (name, content) in enumerate(files.items()):
        path = tmp_path / f"{k}.toml"
        path.write_text(content)
        out = tmp_path / str(k)
        s = summary(run("run", path, "-o", out, "--json", "-q", "--allow-small-rcvbuf", "--set", "runtime.device=cpu",
                        "--set", f"source.listen={endpoints(['udp'])}", "--set", "simulator.duration_s=0.0512", "--set",
                        "source.n_chunks=32", "--set", "source.stall_budget_s=1.0", "--set", "source.close_after_ms=20000",
                        "--set", "output.uvh5=true", "--set", "correlate.integration_s=0.0256"))
        assert s["packets_rejected_total"] == 0 and s["lost_samples"] == 0, name
        with h5py.File(out / "lwasv.uvh5") as f:
            data = f["Data/visdata"][:]
            frequency = f["Header/freq_array"][:].ravel()
        image = fits.getdata(sorted(out.glob("lwasv_image_*.fits"))[0])
        assert abs(frequency[0] - 60e6) < 1
        if first is None:
            first = data, image
        assert np.array_equal(data, first[0]), name
        assert np.array_equal(image, first[1], equal_nan=True), name
