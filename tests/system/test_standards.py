# SPDX-License-Identifier: BSD-3-Clause
"""VDIF, CODIF, DADA and GUPPI RAW as they come live, over every transport: what a run makes of them is what it makes of the
same bytes in a file, or a correlation in numpy."""

import datetime
import json
import os
import socket
import struct
import threading
import time

import frames
import h5py
import numpy as np
import pytest
from capture import ethernet, write_pcap
from harness import HOST, binary, data, endpoints, receive_queue, run, start, stop, summary, wait_for

RATE = 1_280_000
SPECTRA = 256  # of an integration


def array(folder, n_inputs):
    pols = "XY" if n_inputs % 2 == 0 else "X"
    (folder / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"A{k},{30.0 * k},{11.0 * k * k},0.0,{pol},0\n" for k in range(n_inputs // len(pols)) for pol in pols))


def observation(folder, n_inputs, source, rate=RATE, channels=16, spectra=False):
    """A short run; `source` are lines of [source]."""
    array(folder, n_inputs)
    interval = SPECTRA * (1 if spectra else 2 * channels if 'sample = "i' in source else channels) / rate
    file = folder / "observation.toml"
    file.write_text(f"""
schema = 1
[telescope]
layout = "array.csv"
latitude_deg = 34
longitude_deg = -107
[source]
kind = "network"
sample_rate_hz = {rate}
max_clock_error_s = 0
allow_small_rcvbuf = true
close_after_ms = 20000
chunk_ms = 2
n_chunks = 64
window_chunks = 8
no_data_s = 0.2
{source}
[correlate]
integration_s = {interval!r}
fringe_stopping = "none"
van_vleck = "off"
{"" if spectra else f'''[channelize]
n_channels = {channels}
taps = 1
window = "rectangular"
bits = 32'''}
[output]
name = "x"
ms = false
uvfits = false
pictures = false
[runtime]
device = "cpu"
""")
    return file


def visibilities(folder):
    with h5py.File(folder / "x.uvh5") as f:
        return f["Data/visdata"][:], f["Data/nsamples"][:], f["Header/time_array"][:], f["Header/freq_array"][:].ravel()


def listening(live, kind, listen):
    """Waits until a run is bound."""
    def wait_for(condition):
        while not condition():
            assert live.poll() is None, live.communicate()[1]
            time.sleep(0.02)

    port = int(listen.rsplit(":", 1)[1])
    if kind == "udp":
        wait_for(lambda: receive_queue(HOST, port) is not None)
        return
    address = f"{int.from_bytes(socket.inet_aton(HOST), 'little'):08X}:{port:04X}"
    wait_for(lambda: any(line.split()[1] == address and line.split()[3] == "0A" for line in open("/proc/net/tcp").readlines()[1:]))


def receive(folder, file, kind, send, *settings):
    """A live run of what `send(endpoint)` sends; its summary."""
    out = folder / "live"
    listen = folder / "pipe" if kind == "pipe" else json.loads(endpoints([kind]))[0]
    if kind == "pipe":
        os.mkfifo(listen)
    words = [f'source.listen=["{"pipe:" if kind == "pipe" else ""}{listen}"]', *settings]
    live = start("run", file, "-o", out, "--json", "-q", *[w for value in words for w in ("--set", value)])
    if kind != "pipe":
        listening(live, kind, listen)
    send(listen)
    if kind == "udp":
        port = int(listen.rsplit(":", 1)[1])
        wait_for(lambda: not receive_queue(HOST, port))
        time.sleep(0.2)
    if kind == "pipe":
        text, err = live.communicate(timeout=100)
        code = live.returncode
    else:
        code, text, err = stop(live)
    assert code == 0, err
    return json.loads(text.strip().splitlines()[-1])


def sender(kind, packets, pause=0.02):
    def send(endpoint):
        if kind == "pipe":
            with open(endpoint, "wb") as pipe:
                for packet in packets:
                    pipe.write(packet)
            return
        host, port = endpoint.split("//")[1].rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM) as s:
            s.connect((host, int(port)))
            for k, packet in enumerate(packets):
                try:
                    s.sendall(packet) if kind == "tcp" else s.send(packet)
                except ConnectionError:  # the run has closed it
                    break
                if pause and k % 16 == 15:
                    time.sleep(pause)
        time.sleep(0.3)
    return send


def codes(seed, n_inputs, n_times, n_channels, parts, bits):
    return np.random.default_rng(seed).integers(0, 1 << bits, (n_inputs, n_times, n_channels, parts))


def levels(code, bits):
    """Values of VDIF's codes."""
    if bits == 1:
        return 2.0 * code - 1
    return np.array([-10.0, -3, 3, 10])[code] if bits == 2 else code - 2.0 ** (bits - 1)


def agree(live, file, exact=False):
    a, b = visibilities(live), visibilities(file)
    # A busy machine may be too slow for the dumps of a live run, which are then dropped whole.
    there = (np.abs(b[2][:, None] - np.unique(a[2])) < 5e-9).any(axis=1)
    b = (b[0][there], b[1][there], b[2][there], b[3])
    assert a[0].shape == b[0].shape and a[0].size
    assert np.array_equal(a[1], b[1]) and np.allclose(a[2], b[2], atol=1e-11, rtol=0) and np.allclose(a[3], b[3])
    if exact:
        assert np.array_equal(a[0], b[0])
    assert np.allclose(a[0], b[0], atol=1e-5 * np.abs(b[0]).max())


# (kind, bits, complex, threads, stations, real channels of a frame, prefix)
VDIF = {
    "2 bits, four threads": ("udp", 2, False, [0, 1, 2, 3], [], 1, 0),
    "1 bit, threads in any order, VTP": ("udp", 1, False, [5, 2], [], 1, 8),
    "complex 8 bits, two stations": ("tcp", 8, True, [0, 1], ["0x11", "Ef"], 1, 0),
    "complex 4 bits through a pipe": ("pipe", 4, True, [0, 1], [], 1, 0),
    "real channels are inputs": ("udp", 4, False, [0], [], 4, 0),
    "16 bits over TCP": ("tcp", 16, False, [0, 1], [], 1, 8),
}


@pytest.mark.parametrize("name", VDIF)
def test_vdif_live_is_what_the_file_is(tmp_path, name):
    kind, bits, complex_, threads, stations, channels, prefix = VDIF[name]
    parts, per_frame = (2, 640) if complex_ else (1, 640)
    numbers = [0x11, 0x4566][:max(1, len(stations))]
    n_inputs = len(threads) * len(numbers) * channels
    c = codes(1, n_inputs, 640 * 48, 1, parts, bits)
    sent = frames.vdif_frames(c, bits, complex_, per_frame, threads, numbers)
    assert frames.SECOND * RATE % per_frame == 0
    file = observation(tmp_path, n_inputs, f"""format = "vdif"
sample = "{'c' if complex_ else ''}i{bits}"
frame_bytes = {len(sent[0])}
frame_prefix_bytes = {prefix}
threads = {threads}
stations = {json.dumps(stations)}
{"n_channels = " + str(channels) if channels > 1 else ""}
center_mhz = 150.0
""")
    numbered = [struct.pack("<Q", k)[:prefix] + frame for k, frame in enumerate(sent)]
    s = receive(tmp_path, file, kind, sender(kind, numbered))
    assert s["packets_used"] == len(sent) and s["packets_rejected_total"] == 0 and s["lost_samples"] == 0
    assert s["warnings"] == []
    # The correlation of the values that the codes stand for.
    step = 16 if complex_ else 32
    v = levels(c[:, :, 0, :], bits)
    z = (v[..., 0] + 1j * v[..., 1]) if complex_ else v[..., 0]
    z = z[:, :z.shape[1] // step * step].reshape(n_inputs, -1, step)
    f = np.fft.fft(z, axis=2) if complex_ else np.fft.rfft(z, axis=2)[..., :16]
    f = np.fft.fftshift(f, axes=2) if complex_ else f
    n = f.shape[1] // SPECTRA
    f = f[:, :n * SPECTRA].reshape(n_inputs, n, SPECTRA, -1)
    power = (np.abs(f) ** 2).mean(axis=2)
    data_, nsamples, times, _ = visibilities(tmp_path / "live")
    assert s["integrations"] + s["dropped_dumps"] >= n and (nsamples[0] > 0).all()
    with h5py.File(tmp_path / "live/x.uvh5") as h:
        first, second = h["Header/ant_1_array"][:], h["Header/ant_2_array"][:]
        pols = list(h["Header/polarization_array"][:])
    autos = np.flatnonzero(first == second)
    scale = None
    for k, row in enumerate(autos[:max(1, n_inputs // 2)]):
        if len(pols) == 1:
            break
        for letter, p in ((0, -5), (1, -6)):
            got = np.squeeze(data_[row])[..., pols.index(p)].real
            ratio = got / power[2 * k + letter, 0]
            scale = np.median(ratio) if scale is None else scale
            assert np.allclose(ratio, scale, rtol=2e-3), (k, letter, ratio)
    # 2026-03-01T12:00 and half an integration, MJD 61100.5.
    assert abs((times[0] - 2400000.5 - 61100.5) * 86400 - 0.5 * SPECTRA * step / RATE) < 1e-4
    if sorted(threads) != threads:
        return  # of ascending threads the recording is the same
    (tmp_path / "x.vdif").write_bytes(b"".join(sent))
    text = file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{tmp_path}/x.vdif"')
    for key in ("sample =", "frame_bytes", "frame_prefix", "threads", "stations", "n_channels = " + str(channels) + "\ncenter"):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(key))
    if channels > 1:
        text = text.replace(f"n_channels = {channels}\n", "", 1)
    file.write_text(text)
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file")


def test_complex_channels_of_vdif_are_spectra(tmp_path):
    n_channels, per_frame = 8, 128
    c = codes(2, 2, per_frame * 10, n_channels, 2, 8)
    sent = frames.vdif_frames(c, 8, True, per_frame, [0, 1])
    file = observation(tmp_path, 2, f"""format = "vdif"
sample = "ci8"
frame_bytes = {len(sent[0])}
n_channels = {n_channels}
channel_zero_mhz = 400.0
""", rate=12800, spectra=True)
    s = receive(tmp_path, file, "udp", sender("udp", sent), "source.chunk_ms=10")
    assert s["packets_used"] == len(sent) and s["lost_samples"] == 0
    got, _, times, frequency = visibilities(tmp_path / "live")
    assert np.allclose(frequency, 400e6 + 12800 * np.arange(n_channels))
    z = (c[..., 0] - 128.0) + 1j * (c[..., 1] - 128.0)  # [input][time][channel]
    n = z.shape[1] // SPECTRA
    x = z.reshape(2, n, SPECTRA, n_channels)
    made = np.rint((times - 2461101.0) * 86400 * 12800 / SPECTRA - 0.5).astype(int)
    want = (np.abs(x) ** 2).mean(axis=2)[:, made]
    with h5py.File(tmp_path / "live/x.uvh5") as h:
        pols = list(h["Header/polarization_array"][:])
    got = np.squeeze(got)
    assert np.allclose(got[..., pols.index(-5)].real, want[0], rtol=1e-6)
    assert np.allclose(got[..., pols.index(-6)].real, want[1], rtol=1e-6)


def test_frames_that_do_not_belong_are_counted_and_named(tmp_path):
    c = codes(3, 2, 640 * 40, 1, 1, 2)
    sent = frames.vdif_frames(c, 2, False, 640, [0, 1])
    size = len(sent[0])
    strange = {
        "foreign_stream": frames.vdif_header(size, 2, 0, 9, 0) + sent[0][32:],
        "field": frames.vdif_header(size, 4, 0, 0, 0) + sent[0][32:],
        "too_short": sent[0][:-8],
        "too_long": sent[0] + bytes(8),
        "length": frames.vdif_header(size + 8, 2, 0, 0, 0) + sent[0][32:],
        "sender_invalid": frames.vdif_header(size, 2, 0, 1, 22, invalid=True) + sent[0][32:],
        "future": frames.vdif_header(size, 2, 0, 0, 0, epoch=53) + sent[0][32:],
    }
    packets = sent[:44] + list(strange.values()) + sent[44:45] + sent[46:]
    file = observation(tmp_path, 2, f"""format = "vdif"
sample = "i2"
frame_bytes = {size}
center_mhz = 150.0
""")
    s = receive(tmp_path, file, "udp", sender("udp", packets))
    assert {k: v for k, v in s["packets_rejected"].items() if v} == dict.fromkeys(strange, 1)
    # The frame that its sender marked is absent: 640 samples of one input.
    assert s["lost_samples"] == 640
    told = [w for w in s["warnings"] if "a packet that was refused says" in w]
    assert len(told) == 1 and "VDIF of" in told[0] and "thread" in told[0]


def test_what_does_not_fit_is_refused_before_data(tmp_path):
    def refusal(*settings):
        file = observation(tmp_path, 2, 'format = "vdif"\nlisten = ["udp://127.0.0.1:5000"]\ncenter_mhz = 150.0\n'
                           'sample = "i2"\nframe_bytes = 192\n')
        return run("run", file, "--check", *[w for value in settings for w in ("--set", value)], check=78).stderr

    assert "source.frame_bytes" in refusal("source.frame_bytes=190")
    assert "no whole number of frames" in refusal("source.sample_rate_hz=1280001")
    assert 'needs the type of a sample' in refusal("source.sample=8bit")
    assert "1 thread (source.threads)" in refusal("source.threads=[3]")
    assert "no station" in refusal('source.stations=["Eff"]')
    assert "has no effect" in refusal("source.period_s=2")
    assert "datagrams do not wait" in refusal("source.lossless=true")
    assert "over tcp://, pipe: or fd://" in refusal("source.format=dada", "source.frame_bytes=0", "source.sample=ci8")


def test_endpoints_of_which_some_wait_are_refused(tmp_path):
    file = observation(tmp_path, 2, 'format = "vdif"\nsample = "i2"\nframe_bytes = 192\ncenter_mhz = 150.0\n')

    def refusal(listen, *settings):
        return run("run", file, "--check", "--set", f"source.listen={json.dumps(listen)}",
                   *[w for value in settings for w in ("--set", value)], check=78).stderr

    tcp, udp, pipe = "tcp://127.0.0.1:5000", "udp://127.0.0.1:5001", f"pipe:{tmp_path}/pipe"
    assert "all of whose endpoints are tcp://" in refusal([tcp, udp], "source.lossless=true")
    for mix in ([pipe, tcp], [tcp, pipe], [udp, pipe]):
        assert "pipe: and fd:// endpoints alone" in refusal(mix)


def test_a_stream_without_a_byte_ends_the_run(tmp_path):
    file = observation(tmp_path, 2, 'format = "dada"\nsample = "ci8"\ncenter_mhz = 150.0\n')
    with open(os.devnull, "rb") as f:
        s = summary(run("run", file, "-o", tmp_path / "live", "--json", "-q", "--set", f'source.listen=["fd://{f.fileno()}"]',
                        pass_fds=(f.fileno(),), check=66))
    assert s["integrations"] == 0 and any("nothing was made" in w for w in s["warnings"])


@pytest.mark.parametrize("n_streams", [1, 2])
def test_streams_go_on_after_a_gap_as_the_recording_does(tmp_path, n_streams):
    """Blocks of GUPPI RAW whose PKTIDX goes on beyond the window of the receiver: absent samples, exactly."""
    samples = np.random.default_rng(9).integers(-50, 50, (n_streams, 4, 32 + 128 * 400, 2, 2), np.int8)
    lost = range(100, 300)
    for k in range(n_streams):
        (tmp_path / f"{k}.raw").write_bytes(frames.guppi(samples[k:k + 1], 160, 32, 150.0, 0.4, lost=lost))
    (tmp_path / "all.raw").write_bytes(frames.guppi(samples, 160, 32, 150.0, 0.4, lost=lost))
    file = observation(tmp_path, 2 * n_streams, f"""format = "guppi"
sample = "ci8"
n_channels = 4
frame_bytes = {4 * 160 * 2 * 2}
overlap_samples = 32
channel_zero_mhz = 149.85
""", rate=100_000, spectra=True)
    streams = [open(tmp_path / f"{k}.raw", "rb") for k in range(n_streams)]
    listen = json.dumps([f"fd://{f.fileno()}" for f in streams])
    s = summary(run("run", file, "-o", tmp_path / "live", "--json", "-q", "--set", f"source.listen={listen}",
                    pass_fds=[f.fileno() for f in streams]))
    for f in streams:
        f.close()
    assert s["packets_used"] == n_streams * 200 and s["packets_rejected_total"] == 0 and s["warnings"] == []
    assert s["lost_samples"] == n_streams * 200 * 128 * 4 * 2  # blocks, spectra, channels, polarizations
    text = file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{tmp_path}/all.raw"')
    for key in ("sample =", "n_channels", "frame_bytes", "overlap", "channel_zero"):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(key))
    file.write_text(text)
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file", exact=True)


@pytest.mark.parametrize("kind", ["pipe", "tcp", "udp"])
def test_frames_after_a_gap_of_all_are_of_the_same_observation(tmp_path, kind):
    """A gap of 0.5 s, and one of 20 s, in frames of two threads that come over a network or through a pipe."""
    second = RATE // 640
    c = codes(10, 2, 640 * second, 1, 1, 2)
    sent = frames.vdif_frames(c, 2, False, 640, [0, 1])
    before, after = sent[:second // 2], sent[3 * second // 2:]  # 0.25 s, 0.5 s lost
    later = frames.vdif_frames(c, 2, False, 640, [0, 1], second=frames.SECOND + 20)
    file = observation(tmp_path, 2, f"""format = "vdif"
sample = "i2"
frame_bytes = {len(sent[0])}
center_mhz = 150.0
""")

    def send(endpoint):
        sender(kind, before + after)(endpoint)

    s = receive(tmp_path, file, kind, send)
    lost = s["packets_rejected"].get("future", 0)  # those that told of the gap
    assert s["packets_used"] + lost == len(before) + len(after) and s["packets_rejected_total"] == lost
    assert lost <= (32 if kind != "udp" else 400)
    assert s["lost_samples"] == (len(sent) - s["packets_used"]) * 640
    assert s["warnings"] == []
    n = 2 * SPECTRA * 16
    times = visibilities(tmp_path / "live")[2]
    made = np.unique(np.rint((times - 2461101.0) * 86400 * RATE / n - 0.5))
    assert np.isin([0, second * 640 // n - 1], made).all() and not np.isin(second * 640 // n // 2, made)

    def send_later(endpoint):
        sender(kind, before + later[:second])(endpoint)

    (tmp_path / "live").rename(tmp_path / "gap")
    (tmp_path / "pipe").unlink(missing_ok=True)
    s = receive(tmp_path, file, kind, send_later)
    assert len(s["warnings"]) == 1 and "went ahead by 19.75" in s["warnings"][0] and "new segment" in s["warnings"][0]
    assert s["lost_samples"] <= 640 * s["packets_rejected_total"]  # nothing of the time between


def test_a_stream_that_is_no_frames_is_closed_and_the_next_is_read(tmp_path):
    c = codes(4, 2, 640 * 20, 1, 1, 2)
    sent = frames.vdif_frames(c, 2, False, 640, [0, 1])
    file = observation(tmp_path, 2, f"""format = "vdif"
sample = "i2"
frame_bytes = {len(sent[0])}
center_mhz = 150.0
""")

    def send(endpoint):
        sender("tcp", [b"x" * 3 * len(sent[0])])(endpoint)
        sender("tcp", [sent[0][1:]] + sent)(endpoint)  # begins within a frame
        sender("tcp", sent)(endpoint)

    s = receive(tmp_path, file, "tcp", send)
    assert s["packets_used"] == len(sent) and s["lost_samples"] == 0
    assert any("2 connections closed, for what came were no packets" in w for w in s["warnings"])


def test_codif_live(tmp_path):
    n_channels, per_frame = 4, 64
    samples = np.random.default_rng(5).integers(-100, 100, (2, per_frame * 80, n_channels, 2))
    sent = frames.codif_frames(samples, per_frame, [0, 1], 12800 * 4, 4)
    file = observation(tmp_path, 2, f"""format = "codif"
sample = "ci16"
sample_encoding = "twos_complement"
frame_bytes = {len(sent[0])}
n_channels = {n_channels}
period_s = 4
channel_zero_mhz = 400.0
""", rate=12800, spectra=True)
    text = run("run", file, "--set", 'source.listen=["udp://127.0.0.1:5000"]', "--check", check=None).stderr
    assert "16 bits a part" in text  # spectra of up to 8 bits are taken
    samples = samples[:, :, :1]
    sent = frames.codif_frames(samples, per_frame, [0, 1], RATE * 4, 4)
    file = observation(tmp_path, 2, f"""format = "codif"
sample = "ci16"
sample_encoding = "twos_complement"
frame_bytes = {len(sent[0])}
period_s = 4
center_mhz = 150.0
""")
    s = receive(tmp_path, file, "udp", sender("udp", sent))
    assert s["packets_used"] == len(sent) and s["packets_rejected_total"] == 0 and s["lost_samples"] == 0
    times = visibilities(tmp_path / "live")[2]
    assert abs((times[0] - 2400000.5 - 61100.5) * 86400 - 0.5 * SPECTRA * 16 / RATE) < 1e-4
    (tmp_path / "x.codif").write_bytes(b"".join(sent))
    text = file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{tmp_path}/x.codif"')
    for key in ("sample =", "sample_encoding", "frame_bytes", "period_s"):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(key))
    file.write_text(text)
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file")


@pytest.mark.parametrize("kind", ["tcp", "pipe"])
def test_a_dada_stream_is_the_recording(tmp_path, kind):
    samples = np.random.default_rng(6).integers(-50, 50, (16 * SPECTRA * 20, 1, 2, 2), np.int8)
    recording = frames.dada(samples, 150.0, RATE, OBS_OFFSET=2 * 2 * 4096)
    file = observation(tmp_path, 2, 'format = "dada"\nsample = "ci8"\ncenter_mhz = 150.0\n')
    s = receive(tmp_path, file, kind, sender(kind, [recording]))
    assert s["lost_samples"] == 0 and s["warnings"] == []
    assert s["integrations"] == 20
    (tmp_path / "x.dada").write_bytes(recording)
    file.write_text(file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{tmp_path}/x.dada"')
                    .replace('sample = "ci8"\n', ""))
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file")


def test_dada_through_a_descriptor_and_of_two_streams(tmp_path):
    samples = np.random.default_rng(7).integers(-50, 50, (16 * SPECTRA * 24, 1, 4, 1), np.int8)
    for k in range(2):
        (tmp_path / f"{k}.dada").write_bytes(frames.dada(np.ascontiguousarray(samples[:, :, 2 * k:2 * k + 2]), 150.32, RATE))
    (tmp_path / "all.dada").write_bytes(frames.dada(samples, 150.32, RATE))
    file = observation(tmp_path, 4, 'format = "dada"\nsample = "i8"\ncenter_mhz = 150.0\n')
    with open(tmp_path / "0.dada", "rb") as a, open(tmp_path / "1.dada", "rb") as b:
        s = summary(run("run", file, "-o", tmp_path / "live", "--json", "-q", "--set",
                        f'source.listen=["fd://{a.fileno()}","fd://{b.fileno()}"]', pass_fds=(a.fileno(), b.fileno())))
    assert s["lost_samples"] == 0 and s["warnings"] == []
    file.write_text(file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{tmp_path}/all.dada"')
                    .replace('sample = "i8"\n', ""))
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_stream_that_begins_later_is_absent_until_then(tmp_path, order):
    """Two DADA streams, the second a second after the first, far beyond the window: its samples are lost, no others."""
    n, block = 2 * RATE, 2048  # of samples of two inputs in 4096 bytes
    samples = np.random.default_rng(11).integers(-50, 50, (n, 1, 4, 1), np.int8)
    late = RATE + 3 * block  # 625 blocks and 3
    first, second = order
    (tmp_path / f"{first}.dada").write_bytes(frames.dada(np.ascontiguousarray(samples[:, :, :2]), 150.32, RATE))
    # As much before the second as blocks allow by its start, the rest by its offset.
    start = (frames.START + datetime.timedelta(seconds=1)).strftime("%Y-%m-%d-%H:%M:%S")
    (tmp_path / f"{second}.dada").write_bytes(frames.dada(np.ascontiguousarray(samples[late:, :, 2:]), 150.32, RATE, UTC_START=start,
                                                          OBS_OFFSET=2 * (late - RATE)))
    file = observation(tmp_path, 4, 'format = "dada"\nsample = "i8"\ncenter_mhz = 150.0\n')
    with open(tmp_path / "0.dada", "rb") as a, open(tmp_path / "1.dada", "rb") as b:
        s = summary(run("run", file, "-o", tmp_path / "live", "--json", "-q", "--set",
                        f'source.listen=["fd://{a.fileno()}","fd://{b.fileno()}"]', pass_fds=(a.fileno(), b.fileno())))
    assert s["packets_rejected_total"] == 0 and s["packets_used"] == n // block + (n - late) // block
    assert s["undelivered_samples"] + s["lost_samples"] == 2 * late, s


@pytest.mark.parametrize("width_mhz", [0.4, -0.4])
def test_a_guppi_stream_is_the_recording(tmp_path, width_mhz):
    samples = np.random.default_rng(8).integers(-50, 50, (2, 4, 16 + 128 * 12, 2, 2), np.int8)
    recording = frames.guppi(samples, 144, 16, 150.0, width_mhz, lost=(5,))
    inverted = width_mhz < 0
    file = observation(tmp_path, 4, f"""format = "guppi"
sample = "ci8"
n_channels = 4
frame_bytes = {2 * 4 * 144 * 2 * 2}
overlap_samples = 16
inverted_band = {str(inverted).lower()}
channel_zero_mhz = {150.15 if inverted else 149.85}
""", rate=100_000, spectra=True)
    s = receive(tmp_path, file, "tcp", sender("tcp", [recording]))
    assert s["lost_samples"] > 0 and s["packets_rejected_total"] == 0
    (tmp_path / "x.raw").write_bytes(recording)
    text = file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{tmp_path}/x.raw"')
    for key in ("sample =", "n_channels", "frame_bytes", "overlap", "inverted", "channel_zero"):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(key))
    file.write_text(text)
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file", exact=True)


def test_a_header_of_another_stream_ends_the_run_with_what_would_fit(tmp_path):
    samples = np.zeros((4096, 1, 2, 2), np.int8)
    file = observation(tmp_path, 2, 'format = "dada"\nsample = "i8"\ncenter_mhz = 150.0\n')
    (tmp_path / "x.dada").write_bytes(frames.dada(samples, 151.0, 2 * RATE))
    with open(tmp_path / "x.dada", "rb") as f:
        done = run("run", file, "-o", tmp_path / "live", "-q", "--set", f'source.listen=["fd://{f.fileno()}"]',
                   pass_fds=(f.fileno(),), check=65)
    assert 'source.sample = "ci8"' in done.stderr and "FREQ = 151" in done.stderr
    (tmp_path / "noise").write_bytes(bytes(range(256)) * 64)
    with open(tmp_path / "noise", "rb") as f:
        done = run("run", file, "-o", tmp_path / "live", "-q", "--set", f'source.listen=["fd://{f.fileno()}"]',
                   pass_fds=(f.fileno(),), check=65)
    assert "does not begin with a DADA header" in done.stderr


def test_real_frames_live_are_the_recording(tmp_path):
    """Eight threads of 2-bit samples of a VLBI station, as they were recorded."""
    recording = data("baseband/sample.vdif")
    bytes_ = recording.read_bytes()
    sent = [bytes_[k:k + 5032] for k in range(0, len(bytes_), 5032)]
    file = observation(tmp_path, 8, """format = "vdif"
sample = "i2"
frame_bytes = 5032
center_mhz = 150.0
""", rate=32_000_000)
    packets = [(k * 1000, ethernet(f, ("10.0.0.1", 4000), ("10.0.0.2", 5000))) for k, f in enumerate(sent)]
    write_pcap(tmp_path / "x.pcap", packets)
    s = summary(run("run", file, "-o", tmp_path / "live", "--json", "-q", "--set", 'source.listen=["udp://0.0.0.0:5000"]',
                    "--set", "source.kind=pcap", "--set", f"source.file={tmp_path / 'x.pcap'}"))
    assert s["packets_used"] == len(sent) == 16
    text = file.read_text().replace('kind = "network"', f'kind = "file"\nfile = "{recording}"')
    for key in ("sample =", "frame_bytes"):
        text = "\n".join(line for line in text.split("\n") if not line.startswith(key))
    file.write_text(text)
    run("run", file, "-o", tmp_path / "file", "-q")
    agree(tmp_path / "live", tmp_path / "file")


def test_simulated_vdif_is_sent_received_recorded_and_replayed(tmp_path):
    """One source over two antennas: its frames live, and in a capture of the simulator, make one UVH5 and show it where it is."""
    file = observation(tmp_path, 8, """format = "vdif"
sample = "i8"
frame_bytes = 1056
center_mhz = 150.0
start_utc = "2026-03-01T12:00:00"
""", rate=1_024_000, channels=32)
    file.write_text(file.read_text().replace("[runtime]", """[simulator]
duration_s = 0.1
speed = 0.2
sefd_jy = 5000
rms_lsb = 20
period_samples = 65536
[[simulator.source]]
l = 0.2
m = 0.1
flux_jy = 10000
[runtime]"""))
    # In a file of packets the boards come in bursts, one after the other.
    file.write_text(file.read_text().replace("window_chunks = 8", "window_chunks = 64") + "[calibration]\njy_per_count2 = 1.0\n")
    listen = endpoints(["udp"])
    live = summary(run("run", file, "-o", tmp_path / "live", "--json", "-q", "--set", "source.kind=simulator", "--set",
                       f"source.listen={listen}", "--set", "source.n_chunks=200"))
    assert live["packets_rejected_total"] == 0 and live["lost_samples"] == 0 and live["packets_used"] == 8 * 100
    run("simulate", file, "-o", tmp_path / "x.pcap", "--set", f"source.listen={listen}")
    said = run("run", file, "--check", "--set", "source.kind=pcap", "--set", f"source.listen={listen}", check=78).stderr
    assert "source.start_utc" in said and "tell the time" in said
    simulated = file.read_text()
    file.write_text(simulated.replace('start_utc = "2026-03-01T12:00:00"\n', ""))
    again = summary(run("run", file, "-o", tmp_path / "again", "--json", "-q", "--set", "source.kind=pcap", "--set",
                        f"source.listen={listen}", "--set", f"source.file={tmp_path / 'x.pcap'}"))
    assert again["packets_used"] == live["packets_used"]
    agree(tmp_path / "live", tmp_path / "again", exact=True)
    info = json.loads(run("info", tmp_path / "x.pcap", "--json").stdout)
    assert {stream["looks_like"] for stream in info["streams"]} == {"vdif"}
    file.write_text(simulated)
    tcp = summary(run("run", file, "-o", tmp_path / "tcp", "--json", "-q", "--set", "source.kind=simulator", "--set",
                      f"source.listen={endpoints(['tcp'])}", "--set", "source.lossless=true"))
    assert tcp["packets_used"] == live["packets_used"] and tcp["lost_samples"] == 0
    agree(tmp_path / "live", tmp_path / "tcp", exact=True)
