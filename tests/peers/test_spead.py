# SPDX-License-Identifier: BSD-3-Clause
"""The spead2 package and Ryle talk to each other: F-engine heaps of spead2 become visibilities that equal a correlation in
numpy, sample for sample; visibilities that Ryle sends as heaps are those of its UVH5."""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import absent, module

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "system"))
import frames  # noqa: E402
from capture import ethernet, write_pcap  # noqa: E402

ANTENNAS, CHANNELS, HEAP_CHANNELS, SPECTRA, HEAPS = 3, 8, 4, 256, 8
INTEGRATION = 512  # spectra
TICKS = 8192       # timestamps of a spectrum
FIRST_HEAP = 1000
LIMIT_S = 100


def binary():
    program = os.environ.get("RYLE_BINARY")
    if not program:
        absent("ryle (set RYLE_BINARY, or run through ctest)")
    return program


def samples(seed=1):
    """[heap][block of channels][antenna][channel][spectrum][pol][re, im]"""
    shape = (HEAPS, CHANNELS // HEAP_CHANNELS, ANTENNAS, HEAP_CHANNELS, SPECTRA, 2, 2)
    return np.random.default_rng(seed).integers(-127, 128, shape, np.int8)


def correlation(x):
    """Mean conj(V_ij), as UVH5 has it: [integration][channel][input i][input j]."""
    z = x[..., 0].astype(np.float64) + 1j * x[..., 1]
    z = z.transpose(1, 3, 2, 5, 0, 4).reshape(CHANNELS, 2 * ANTENNAS, -1, INTEGRATION)  # [channel][input][integration][spectrum]
    return np.einsum("citn,cjtn->tcij", z.conj(), z) / INTEGRATION


def send_heaps(stream, x, flavour, repeat_items, descriptors, addressed):
    spead2 = module("spead2.send")
    group = spead2.ItemGroup(flavour=module("spead2").Flavour(4, 64, flavour))
    # Numbers of 64 bits have addresses in the heap, those of the width of an address are immediates.
    scalar = {"dtype": np.dtype(">u8")} if addressed else {"format": [("u", flavour)]}
    group.add_item(0x4103, "frequency", "", shape=(), **scalar)
    group.add_item(0x1600, "timestamp", "", shape=(), **scalar)
    group.add_item(0x4300, "feng_raw", "", shape=x.shape[3:], dtype=np.int8)
    group.add_item(0x4101, "feng_id", "", shape=(), **scalar)
    for heap in range(HEAPS):
        for block in range(CHANNELS // HEAP_CHANNELS):
            for antenna in range(ANTENNAS):
                group["timestamp"].value = (FIRST_HEAP + heap) * SPECTRA * TICKS
                group["frequency"].value = 16 + block * HEAP_CHANNELS
                group["feng_id"].value = antenna
                group["feng_raw"].value = x[heap, block, antenna]
                first = heap == block == antenna == 0
                made = group.get_heap(data="all", descriptors="all" if descriptors and first else "none")
                made.repeat_pointers = repeat_items
                stream.send_heap(made)
    stream.send_heap(group.get_end())


def observation(tmp_path, listen, *more):
    """A short array on the equator and the arguments of its run."""
    layout = tmp_path / "array.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"A{a},{50.0 * a},{20.0 * a * a},0.0,{pol},0\n" for a in range(ANTENNAS) for pol in "XY"))
    file = tmp_path / "spead.toml"
    file.write_text(f"""
schema = 1
[telescope]
layout = "array.csv"
latitude_deg = -30.7
longitude_deg = 21.4
height_m = 1050
[source]
kind = "network"
format = "spead"
listen = {json.dumps(listen)}
start_utc = "2026-01-01T00:00:00"
max_clock_error_s = 0
sample_rate_hz = "1712000000/8192"
first_channel = 16
n_channels = {CHANNELS}
channels_per_packet = {HEAP_CHANNELS}
spectra_per_heap = {SPECTRA}
ticks_per_spectrum = {TICKS}
channel_zero_mhz = 856
chunk_ms = 2.5
window_chunks = 6
close_after_ms = 20000
allow_small_rcvbuf = true
[correlate]
integration_s = {INTEGRATION * 8192 / 1712e6!r}
fringe_stopping = "none"
[output]
directory = {json.dumps(str(tmp_path / "out"))}
ms = false
uvfits = false
pictures = false
[runtime]
device = "cpu"
""")
    return [binary(), "run", str(file), "--json", "-q", *[word for value in more for word in ("--set", value)]]


def start(arguments):
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    return json.loads(out.strip().splitlines()[-1])


def wait_for_port(port, n=1):
    end = time.monotonic() + LIMIT_S
    while open("/proc/net/udp").read().count(f":{port:04X} ") < n:
        assert time.monotonic() < end
        time.sleep(0.02)


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def read_uvh5(path):
    """[integration][baseline][channel][XX, YY, XY, YX], antennas of the baselines, times."""
    h5py = module("h5py")
    with h5py.File(path) as file:
        n = len(np.unique(file["Header/time_array"][:]))
        data, flags = (file[f"Data/{name}"][:] for name in ("visdata", "flags"))
        rows = data.shape[0] // n
        assert not flags.any()
        assert list(file["Header/polarization_array"][:]) == [-5, -6, -7, -8]
        return (data.reshape(n, rows, *data.shape[1:]), file["Header/ant_1_array"][:rows],
                file["Header/ant_2_array"][:rows], file["Header/freq_array"][:].ravel())


def check_products(tmp_path, x):
    data, first, second, frequency = read_uvh5(tmp_path / "out" / "obs.uvh5")
    assert len(first) == ANTENNAS * (ANTENNAS + 1) // 2 and data.shape[0] == HEAPS * SPECTRA // INTEGRATION
    truth = correlation(x)
    for row, (i, j) in enumerate(zip(first, second)):
        for k, (p, q) in enumerate([(0, 0), (1, 1), (0, 1), (1, 0)]):
            # Sums of 512 products of bytes are exact in float32, and so is their mean.
            assert np.array_equal(data[:, row, :, k], truth[:, :, 2 * i + p, 2 * j + q].astype(np.complex64)), (i, j, p, q)
    assert np.allclose(frequency, 856e6 + (16 + np.arange(CHANNELS)) * 1712e6 / 8192)


@pytest.mark.parametrize("flavour, packet, repeat_items, descriptors, addressed",
                         [(48, 8264, True, False, False), (48, 1472, True, True, False), (40, 1100, False, True, True)])
def test_heaps_of_spead2_are_correlated_exactly(tmp_path, flavour, packet, repeat_items, descriptors, addressed):
    spead2 = module("spead2.send")
    x = samples()
    # What spead2 sends is kept on its way, so that the live run and the one of the capture have the same packets.
    port = free_port()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 26)
        receiver.bind(("127.0.0.1", 0))
        config = module("spead2").send.StreamConfig(max_packet_size=packet, rate=20e6, max_heaps=1000)
        stream = spead2.UdpStream(module("spead2").ThreadPool(), [receiver.getsockname()], config)
        sender = threading.Thread(target=send_heaps, args=(stream, x, flavour, repeat_items, descriptors, addressed))
        sender.start()
        datagrams = []
        while sender.is_alive() or select.select([receiver], [], [], 0.2)[0]:
            if select.select([receiver], [], [], 0.2)[0]:
                datagrams.append(receiver.recv(65535))
        sender.join()
    assert len(datagrams) >= x.nbytes // packet

    process = start(observation(tmp_path, [f"udp://127.0.0.1:{port}"]))
    wait_for_port(port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.bind(("127.0.0.1", 0))
        source = out.getsockname()
        for k, datagram in enumerate(datagrams):
            out.sendto(datagram, ("127.0.0.1", port))
            if k % 16 == 0:
                time.sleep(0.002)
        time.sleep(0.3)
    s = finish(process)
    control = s["packets_rejected"].get("control", 0)
    assert 1 <= control <= 4 and s["packets_rejected_total"] == control  # the stop, descriptors
    assert s["packets_received"] == len(datagrams) and s["warnings"] == []
    check_products(tmp_path, x)

    file = tmp_path / "heaps.pcap"
    write_pcap(file, [(time.time_ns(), ethernet(d, source, ("127.0.0.1", port))) for d in datagrams])
    replay = tmp_path / "replay"
    replay.mkdir()
    done = subprocess.run(observation(replay, [f"udp://127.0.0.1:{port}"], "source.kind=pcap", f"source.file={file}"),
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    check_products(replay, x)


def test_multicast_groups_of_channels(tmp_path):
    """One group per block of channels, as katgpucbf sends to its X-engines; lost packets cost their own samples."""
    spead2 = module("spead2.send")
    x = samples(2)
    port = free_port()
    process = start(observation(tmp_path, [f"udp://239.64.78.1+1:{port}?interface=lo&source=127.0.0.1"]))
    wait_for_port(port, 2)
    config = spead2.StreamConfig(max_packet_size=4168, rate=20e6, max_heaps=1000)
    group = spead2.ItemGroup(flavour=module("spead2").Flavour(4, 64, 48))
    for number, name in ((0x1600, "timestamp"), (0x4101, "feng_id"), (0x4103, "frequency")):
        group.add_item(number, name, "", shape=(), format=[("u", 48)])
    group.add_item(0x4300, "feng_raw", "", shape=x.shape[3:], dtype=np.int8)
    blocks = range(CHANNELS // HEAP_CHANNELS)
    streams = [spead2.UdpStream(module("spead2").ThreadPool(), [(f"239.64.78.{1 + block}", port)], config, ttl=1,
                                interface_address="127.0.0.1") for block in blocks]
    for heap, antenna, block in np.ndindex(HEAPS, ANTENNAS, len(blocks)):
        group["timestamp"].value = (FIRST_HEAP + heap) * SPECTRA * TICKS
        group["frequency"].value = 16 + block * HEAP_CHANNELS
        group["feng_id"].value = antenna
        group["feng_raw"].value = x[heap, block, antenna]
        made = group.get_heap(data="all", descriptors="none")
        made.repeat_pointers = True
        streams[block].send_heap(made)
    time.sleep(0.3)
    s = finish(process)
    assert s["packets_used"] == s["packets_received"] and s["warnings"] == []
    check_products(tmp_path, x)


@pytest.mark.parametrize("repeat_items", [True, False])
def test_beams_of_spead2_are_inputs(tmp_path, repeat_items):
    """Tied-array channelised voltages, bf_raw: a stream for each polarization of each beam, which its endpoint tells."""
    spead2 = module("spead2.send")
    x = samples(4)
    ports = [free_port() for _ in range(2 * ANTENNAS)]
    process = start(observation(tmp_path, [f"udp://127.0.0.1:{port}" for port in ports], "source.heaps=beam"))
    for port in ports:
        wait_for_port(port)
    config = spead2.StreamConfig(max_packet_size=1472, rate=5e6, max_heaps=1000)
    streams = [spead2.UdpStream(module("spead2").ThreadPool(), [("127.0.0.1", port)], config) for port in ports]
    groups = [spead2.ItemGroup(flavour=module("spead2").Flavour(4, 64, 48)) for _ in ports]
    for group in groups:
        for number, name in ((0x1600, "timestamp"), (0x4103, "frequency"), (0x5004, "beam_ants")):
            group.add_item(number, name, "", shape=(), format=[("u", 48)])
        group.add_item(0x5000, "bf_raw", "", shape=(HEAP_CHANNELS, SPECTRA, 2), dtype=np.int8)
        group["beam_ants"].value = 4
    for heap, block in np.ndindex(HEAPS, CHANNELS // HEAP_CHANNELS):
        for k, group in enumerate(groups):
            group["timestamp"].value = (FIRST_HEAP + heap) * SPECTRA * TICKS
            group["frequency"].value = 16 + block * HEAP_CHANNELS
            group["bf_raw"].value = x[heap, block, k // 2, :, :, k % 2]
            made = group.get_heap(data="all", descriptors="all" if heap == block == 0 else "none")
            made.repeat_pointers = repeat_items
            streams[k].send_heap(made)
    time.sleep(0.3)
    s = finish(process)
    control = s["packets_rejected"].get("control", 0)
    assert s["packets_rejected_total"] == control and s["warnings"] == []
    check_products(tmp_path, x)


def test_beams_of_ryle_are_received_by_spead2(tmp_path):
    """The voltages of two beams, two polarizations each, as heaps and as the HDF5 file of the same run."""
    spead2, recv, h5py = module("spead2"), module("spead2.recv"), module("h5py")
    samples_ = np.random.default_rng(5).integers(-50, 50, (3, 4, 600, 2, 2), np.int8)
    (tmp_path / "x.raw").write_bytes(frames.guppi(samples_, 600, 0, 150.0, 0.4))
    (tmp_path / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"A{a},{5.0 * a},{2.0 * a * a},0.0,{pol},0\n" for a in range(3) for pol in "XY"))
    (tmp_path / "beams.toml").write_text("""
[telescope]
layout = "array.csv"
latitude_deg = -30.7
longitude_deg = 21.4
[[beam]]
name = "zenith"
frame = "azel"
az_deg = 0.0
el_deg = 90.0
[[beam]]
name = "north"
frame = "azel"
az_deg = 0.0
el_deg = 70.0
""")
    port = free_port() // 8 * 8
    streams = []
    for k in range(4):
        streams.append(recv.Stream(spead2.ThreadPool(), recv.StreamConfig(max_heaps=16), recv.RingStreamConfig(heaps=100)))
        streams[-1].add_udp_reader(port + k, max_size=9200, buffer_size=1 << 22, bind_hostname="127.0.0.1")
    done = subprocess.run([binary(), "beamform", str(tmp_path / "x.raw"), "--beams", str(tmp_path / "beams.toml"), "--products", "voltage",
                           "--values", "ci8", "-o", str(tmp_path / "b.h5"), "-o", f"udp://127.0.0.1:{port}", "--json", "-q"],
                          capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    with h5py.File(tmp_path / "b.h5") as file:
        values, first = file["values"][:], int(file["gulps/first_value"][0])  # [time][beam][channel][polarization](re, im)
        times = file["time_tai_ns"][:]
    values = values.view(np.int8).reshape(*values.shape[:4], 2)
    for k, stream in enumerate(streams):
        group, got = spead2.ItemGroup(), {}
        for heap in stream:
            if "bf_raw" in group.update(heap):
                got[int(group["timestamp"].value)] = group["bf_raw"].value.copy()
                assert group["beam_ants"].value == 3 and group["frequency"].value == 0
        assert group["spectra_per_s"].value == 100_000 and group["first_center_hz"].value == pytest.approx(149.85e6)
        assert sorted(got) == list(range(first // 256 * 256, first + len(values), 256))
        sent = np.concatenate([got[at] for at in sorted(got)], axis=1)[:, first % 256:][:, :len(values)]
        assert np.array_equal(sent, values[:, k // 2, :, k % 2].transpose(1, 0, 2))
        assert values.any()
        at = int(group["epoch_tai_ns"].value) + first * 10_000
        assert abs(at - times[0]) <= 1


LIVE_ANTENNAS, LIVE_CHANNELS, LIVE_BLOCKS = 4, 8, 24
LIVE_RATE = 20_000     # spectra per second
LIVE_FIRST = 40_000    # counter of the first packet: 128 spectra each


def live_beams(tmp_path, port, spead, *more):
    """Packets of one channel of four antennas, 128 spectra of 4+4 bits, to beams that are sent to `spead`."""
    (tmp_path / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"A{a},{3.0 * a},{5.0 * a * a},0.0,X,0\n" for a in range(LIVE_ANTENNAS)))
    (tmp_path / "beams.toml").write_text(f"""
[telescope]
layout = "array.csv"
latitude_deg = -30.7
longitude_deg = 21.4
[band]
first_center_mhz = 100.0
channel_step_khz = {LIVE_RATE / 1e3}
n_channels = {LIVE_CHANNELS}
[[beam]]
name = "zenith"
frame = "azel"
az_deg = 0.0
el_deg = 90.0
[[beam]]
name = "north"
frame = "azel"
az_deg = 0.0
el_deg = 60.0
""")
    file = tmp_path / "live.toml"
    file.write_text(f"""
schema = 1
[source]
kind = "network"
format = "best2"
listen = ["udp://127.0.0.1:{port}"]
start_utc = "2026-01-01T00:00:00"
max_clock_error_s = 0
sample_rate_hz = {LIVE_RATE}
chunk_ms = 12.8
n_chunks = 32
close_after_ms = 20000
allow_small_rcvbuf = true
[source.packet]
length = {8 + 128 * LIVE_ANTENNAS}
header = [
  {{field = "sequence", type = "u32be", offset = 0, ticks_per_count = 128}},
  {{field = "first_channel", type = "u16be", offset = 4, count = {LIVE_CHANNELS}}},
]
payload = {{offset = 8, order = ["input", "time", "input"], extents = {{input = [{LIVE_ANTENNAS // 2}, 2], time = 128}}, sample = "ci4"}}
[beams]
file = "beams.toml"
weights = "f32"
filterbank = false
pictures = 0
spead = {json.dumps(spead)}
[output]
directory = {json.dumps(str(tmp_path / "out"))}
pictures = false
[runtime]
device = "cpu"
""")
    return [binary(), "run", str(file), "--json", "-q", *[word for value in more for word in ("--set", value)]]


def live_samples(lost=()):
    """Datagrams, and the voltages in them, 0 where they are lost: [channel][antenna][spectrum]."""
    parts = np.random.default_rng(9).integers(-7, 8, (LIVE_CHANNELS, LIVE_ANTENNAS, LIVE_BLOCKS, 128, 2))
    codes = ((parts[..., 0] & 15) << 4 | (parts[..., 1] & 15)).astype(np.uint8)
    datagrams = []
    for block in range(LIVE_BLOCKS):
        for channel in range(LIVE_CHANNELS):
            if (block, channel) in lost:
                parts[channel, :, block] = 0
                continue
            pairs = codes[channel, :, block].reshape(LIVE_ANTENNAS // 2, 2, 128).transpose(0, 2, 1)
            head = (LIVE_FIRST + block).to_bytes(4, "big") + channel.to_bytes(2, "big") + bytes(2)
            datagrams.append(head + pairs.tobytes())
    voltages = (parts[..., 0] + 1j * parts[..., 1]).reshape(LIVE_CHANNELS, LIVE_ANTENNAS, LIVE_BLOCKS * 128)
    return datagrams, voltages


def live_beam(beam, voltages):
    """Weighted sums of antennas, [channel][spectrum]."""
    hz = 100e6 + LIVE_RATE * np.arange(LIVE_CHANNELS)
    north_m = 5.0 * np.arange(LIVE_ANTENNAS)**2
    early_s = north_m * (np.cos(np.radians(60)) if beam == 1 else 0) / 299792458
    weights = np.exp(-2j * np.pi * hz[:, None] * early_s) / np.sqrt(LIVE_ANTENNAS)
    return np.einsum("ca,cat->ct", weights, voltages)


def check_live_beam(got, scale, beam, voltages):
    """Codes of a beam against sums in numpy: [channel][spectrum][re, im]."""
    expected = live_beam(beam, voltages) * scale[:, None]
    codes = got[..., 0] + 1j * got[..., 1]
    error = codes - expected
    assert np.max(np.abs(error.real)) < 0.51 and np.max(np.abs(error.imag)) < 0.51
    assert np.std(expected.real) == pytest.approx(16, rel=0.15)


@pytest.mark.parametrize("multicast", [False, True])
def test_live_beams_of_ryle_are_received_by_spead2(tmp_path, multicast):
    spead2, recv = module("spead2"), module("spead2.recv")
    port, out = free_port(), free_port() // 8 * 8
    spead = f"udp://239.64.79.1+1:{out}?interface=lo" if multicast else f"udp://127.0.0.1:{out}"
    streams = []
    for k in range(2):
        streams.append(recv.Stream(spead2.ThreadPool(), recv.StreamConfig(max_heaps=16), recv.RingStreamConfig(heaps=100)))
        if multicast:
            streams[-1].add_udp_reader(f"239.64.79.{1 + k}", out, 9200, 1 << 22, "127.0.0.1")
        else:
            streams[-1].add_udp_reader(out + k, max_size=9200, buffer_size=1 << 22, bind_hostname="127.0.0.1")
    datagrams, voltages = live_samples(lost=[(5, 3), (6, 3), (20, 0)])
    process = start(live_beams(tmp_path, port, spead))
    wait_for_port(port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for k, datagram in enumerate(datagrams):
            sender.sendto(datagram, ("127.0.0.1", port))
            if k % 16 == 0:
                time.sleep(0.002)
        time.sleep(0.3)
    s = finish(process)
    assert s["packets_used"] == len(datagrams) and s["warnings"] == []
    heaps = LIVE_BLOCKS * 128 // 256
    assert (s["beams"]["heaps_sent"], s["beams"]["heaps_dropped"], s["beams"]["datagrams_rejected"]) == (heaps, 0, 0)
    first = LIVE_FIRST * 128
    for beam, stream in enumerate(streams):
        group, got = spead2.ItemGroup(), {}
        for heap in stream:  # ends with Ryle's stop
            if "bf_raw" in group.update(heap):
                got[int(group["timestamp"].value)] = group["bf_raw"].value.copy()
                assert group["beam_ants"].value == LIVE_ANTENNAS and group["frequency"].value == 0
        assert sorted(got) == list(range(first, first + LIVE_BLOCKS * 128, 256))
        assert group["spectra_per_s"].value == LIVE_RATE and group["first_center_hz"].value == pytest.approx(100e6)
        # 2026-01-01T00:00:00 UTC
        assert int(group["epoch_tai_ns"].value) == (1767225600 + 37) * 10**9
        sent = np.concatenate([got[at] for at in sorted(got)], axis=1).astype(float)
        check_live_beam(sent, group["scale"].value.astype(float), beam, voltages)
        assert not sent[3, 5 * 128:7 * 128].any() and not sent[0, 20 * 128:21 * 128].any()


def test_live_beams_of_ryle_are_inputs_of_ryle(tmp_path):
    """The heaps of one run are the samples of another: power of its visibilities is that of the codes."""
    port, between = free_port(), free_port() // 8 * 8
    (tmp_path / "beams").mkdir()
    (tmp_path / "sum").mkdir()
    receiver = observation(tmp_path / "sum", [f"udp://127.0.0.1:{between + k}" for k in range(2)], "source.heaps=beam",
                           f"source.sample_rate_hz={LIVE_RATE}", "source.first_channel=0", f"source.n_channels={LIVE_CHANNELS}",
                           "source.channels_per_packet=0", "source.ticks_per_spectrum=1", "source.channel_zero_mhz=100",
                           "source.chunk_ms=25.6", "correlate.integration_s=0.0256")
    (tmp_path / "sum" / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n"
                                                "zenith,0,0,0,X,0\nnorth,9,0,0,X,0\n")
    second = start(receiver)
    wait_for_port(between)
    wait_for_port(between + 1)
    datagrams, voltages = live_samples()
    process = start(live_beams(tmp_path / "beams", port, f"udp://127.0.0.1:{between}"))
    wait_for_port(port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for k, datagram in enumerate(datagrams):
            sender.sendto(datagram, ("127.0.0.1", port))
            if k % 16 == 0:
                time.sleep(0.002)
        time.sleep(0.3)
    finish(process)
    time.sleep(0.3)
    s = finish(second)
    assert s["packets_rejected_total"] == s["packets_rejected"].get("control", 0) and s["lost_samples"] == 0
    h5py = module("h5py")
    with h5py.File(tmp_path / "sum" / "out" / "obs.uvh5") as file:
        data, first, other = (file[name][:] for name in ("Data/visdata", "Header/ant_1_array", "Header/ant_2_array"))
    for beam in range(2):
        autos = data[(first == beam) & (other == beam)][..., 0].real  # [integration][channel]
        assert autos.shape == (LIVE_BLOCKS * 128 // 512, LIVE_CHANNELS)
        power = np.mean((np.abs(live_beam(beam, voltages))**2).reshape(LIVE_CHANNELS, -1, 512), axis=2).T
        # The scale of a channel is one number; rounding adds 1/12 to the square of a part.
        scale2 = (autos - 1 / 6) / power
        assert np.max(np.ptp(scale2, axis=0) / np.mean(scale2, axis=0)) < 0.01


def test_what_a_slow_network_costs_is_counted(tmp_path):
    spead2, recv = module("spead2"), module("spead2.recv")
    port, out = free_port(), free_port() // 8 * 8
    stream = recv.Stream(spead2.ThreadPool(), recv.StreamConfig(max_heaps=16), recv.RingStreamConfig(heaps=100))
    stream.add_udp_reader(out, max_size=9200, buffer_size=1 << 22, bind_hostname="127.0.0.1")
    datagrams, _ = live_samples()
    process = start(live_beams(tmp_path, port, f"udp://127.0.0.1:{out}", "beams.spead_mb_per_s=0.02", "beams.queue=1"))
    wait_for_port(port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for k, datagram in enumerate(datagrams):
            sender.sendto(datagram, ("127.0.0.1", port))
            if k % 16 == 0:
                time.sleep(0.002)
        time.sleep(0.3)
    s = finish(process)
    heaps = LIVE_BLOCKS * 128 // 256
    beams = s["beams"]
    assert beams["heaps_sent"] + beams["heaps_dropped"] == heaps and beams["heaps_dropped"] > 0
    assert [w for w in s["warnings"] if f"beams.spead: {beams['heaps_dropped']} of {heaps} heaps were not sent" in w]
    group = spead2.ItemGroup()
    received = [heap for heap in stream if "bf_raw" in group.update(heap)]
    assert len(received) == beams["heaps_sent"]
    assert s["packets_used"] == len(datagrams) and beams["samples"] == LIVE_BLOCKS * 128 // 4  # nothing else suffers


def test_heaps_of_ryle_are_received_by_spead2(tmp_path):
    recv = module("spead2.recv")
    spead2 = module("spead2")
    x = samples(3)
    port, out_port = free_port(), free_port()
    stream = recv.Stream(spead2.ThreadPool(), recv.StreamConfig(max_heaps=64), recv.RingStreamConfig(heaps=1000))
    stream.add_udp_reader(out_port, max_size=9200, buffer_size=1 << 23, bind_hostname="127.0.0.1")
    process = start(observation(tmp_path, [f"udp://127.0.0.1:{port}"], f"output.spead=udp://127.0.0.1:{out_port}",
                                "output.spead_channels=2"))
    wait_for_port(port)
    sender = module("spead2.send").UdpStream(spead2.ThreadPool(), [("127.0.0.1", port)],
                                             module("spead2.send").StreamConfig(max_packet_size=1472, rate=20e6, max_heaps=1000))
    send_heaps(sender, x, 48, True, True, False)
    time.sleep(0.3)
    s = finish(process)
    assert s["warnings"] == []
    check_products(tmp_path, x)
    data, first, second, frequency = read_uvh5(tmp_path / "out" / "obs.uvh5")

    group, heaps, order = spead2.ItemGroup(), {}, None
    for heap in stream:  # ends with Ryle's stop
        updated = group.update(heap)
        if "xeng_bls_ordering" in updated:
            order = group["xeng_bls_ordering"].value
        if "xeng_raw" in updated:
            heaps[int(group["timestamp"].value), int(group["frequency"].value)] = (
                group["xeng_raw"].value.copy(), group["xeng_counts"].value.copy())
            assert group["integration_s"].value == pytest.approx(INTEGRATION * 8192 / 1712e6)
            assert group["first_center_hz"].value == frequency[0]
    times = sorted({at for at, _ in heaps})
    n = HEAPS * SPECTRA // INTEGRATION
    assert len(times) == n and len(heaps) == n * CHANNELS // 2
    rows = {(i, j): row for row, (i, j) in enumerate(zip(first, second))}
    pols = {(0, 0): 0, (1, 1): 1, (0, 1): 2, (1, 0): 3}
    for (at, channel), (raw, counts) in heaps.items():
        assert raw.dtype == np.float32 and np.all(counts == INTEGRATION)
        values = raw[..., 0] + 1j * raw[..., 1]
        for product, (i, p, j, q) in enumerate(order):
            stored = data[times.index(at), rows[i, j], channel:channel + 2, pols[p, q]]
            assert np.array_equal(np.conj(values[:, product]), stored)
