# SPDX-License-Identifier: BSD-3-Clause
"""Packets of every live format, recorded on their way: a run of the capture makes the products of the live run, bit by bit."""

import json
import pathlib
import re
import tempfile

import h5py
import numpy as np
import pytest
from capture import Recorder, ethernet, write_pcap, write_pcapng
from harness import HOST, ROOT, endpoints, receive_queue, run, start, stop, summary, wait_for

FOLDER = pathlib.Path(tempfile.mkdtemp())
OTHER_HOST = re.sub(r"^127\.(\d+)", lambda m: f"127.{int(m[1]) ^ 63}", HOST)


def settings(form):
    """Observation and --set values of a short run."""
    if form == "mwa32t":
        return "mwa32t.toml", ["simulator.period_samples=65536", "simulator.duration_s=0.4", "simulator.speed=0.15",
                               'source.start_utc="2026-01-01T00:00:00"', "correlate.integration_s=0.1", "output.ms=false", "output.uvfits=false"]
    if form == "best2":
        return "best2.toml", ["source.first_channel=480", "source.n_channels=16", "simulator.duration_s=0.5",
                              "simulator.speed=0.2", "search.dm_max=0.0", "beams.scale_s=0.1", "beams.queue=200"]
    more = ["source.n_channels=12", "source.channels_per_packet=6"] if form == "tbx" else []
    return None, more


def station(folder, form):
    """32 stands of two polarizations, two boards of CHIPS, a few thousand packets."""
    (folder / "station.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"S{k},{7.0 * (k % 6)},{11.0 * (k // 6)},0.0,{pol},0\n" for k in range(32) for pol in "XY"))
    rate = 25000 if form == "chips" else '"765625/32"'
    (folder / "station.toml").write_text(f"""
schema = 1
[telescope]
layout = "station.csv"
latitude_deg = 34
longitude_deg = -107
[source]
format = "{form}"
start_utc = "2024-06-27T06:00:00"
sample_rate_hz = {rate}
first_channel = 2400
n_channels = 12
chunk_ms = 5.12
[simulator]
duration_s = 0.1
speed = 0.02
sefd_jy = 5000.0
rms_lsb = 2.3
period_samples = 1024
[[simulator.source]]
l = 0.2
m = 0.1
flux_jy = 3000.0
[correlate]
integration_s = 0.02
[output]
ms = false
uvfits = false
""")
    return folder / "station.toml"


def arguments(form, directory, listen, *more):
    name, values = settings(form)
    file = ROOT / "examples" / name if name else station(FOLDER, form)
    words = [f"source.listen={listen}", "source.n_chunks=64", "source.close_after_ms=20000",
             "output.pictures=false", *values, *more]
    return [file, *[word for value in words for word in ("--set", value)],
            *(["-o", directory, "--json", "-q"] if directory else [])]


def bits_of(directory):
    """What the products hold, without their headers' history."""
    result = {}
    for path in sorted(directory.iterdir()):
        if path.suffix == ".uvh5":
            with h5py.File(path) as file:
                for key in ("Data/visdata", "Data/flags", "Data/nsamples", "Header/time_array"):
                    result[path.name + key] = file[key][()].tobytes()
        elif path.suffix == ".fil":
            result[path.name] = path.read_bytes()
    return result


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """form -> (directory of the live run, endpoints, packets), each made once."""
    made = {}

    def make(form):
        if form not in made:
            directory = tmp_path_factory.mktemp(form)
            listen = endpoints(["udp"] * (4 if form == "mwa32t" else 1))
            ports = [int(e.rsplit(":", 1)[1]) for e in json.loads(listen)]
            live = start("run", *arguments(form, directory, listen, "source.kind=network", "source.max_clock_error_s=0.0",
                                           "source.stall_budget_s=1.0", "source.allow_small_rcvbuf=true"))
            recorder = Recorder(OTHER_HOST, HOST, ports)
            wait_for(lambda: all(receive_queue(HOST, port) is not None for port in ports))
            run("simulate", *arguments(form, None, listen.replace(HOST, OTHER_HOST)))
            packets = recorder.stop()
            wait_for(lambda: not any(receive_queue(HOST, port) for port in ports))
            code, out, err = stop(live)
            assert code == 0, err
            s = json.loads(out.strip().splitlines()[-1])
            assert s["packets_received"] == len(packets) and s["packets_rejected_total"] == 0
            made[form] = directory, listen, packets
        return made[form]

    return make


@pytest.mark.parametrize("form", ["mwa32t", "chips", "tbf", "tbx", "best2"])
def test_a_capture_makes_the_products_of_the_live_run(tmp_path, recorded, form):
    live, listen, packets = recorded(form)
    file = tmp_path / f"{form}.pcap"
    write_pcap(file, packets)
    s = summary(run("run", *arguments(form, tmp_path, listen, "source.kind=pcap", f"source.file={file}")))
    assert s["packets_used"] == len(packets) and s["dropped_chunks"] == 0 and s["warnings"] == []
    assert bits_of(live) and bits_of(live) == bits_of(tmp_path)
    info = json.loads(run("info", file, "--json").stdout)
    assert info["kind"] == "captured packets" and info["link"] == "Ethernet" and info["records"] == len(packets)
    assert {stream["looks_like"] for stream in info["streams"]} == {form}
    assert sum(stream["datagrams"] for stream in info["streams"]) == len(packets)


def test_pcapng_is_read_too_and_what_else_it_holds_is_told(tmp_path, recorded):
    live, listen, packets = recorded("chips")
    others = [(packets[0][0], ethernet(b"name?", (HOST, 999), (HOST, 53))), (packets[0][0], bytes(12) + b"\x08\x06" + bytes(40))]
    file = tmp_path / "chips.pcapng"
    write_pcapng(file, others + packets)
    s = summary(run("run", *arguments("chips", tmp_path, listen, "source.kind=pcap", f"source.file={file}")))
    assert bits_of(live) == bits_of(tmp_path)
    assert s["warnings"] == [f"{file} also has: 1 records that are not IP, 1 datagrams to other ports"]


def test_recorded_speed_is_kept(tmp_path, recorded):
    live, listen, packets = recorded("chips")
    begin = packets[0][0]
    file = tmp_path / "chips.pcap"
    write_pcap(file, [(begin + k * 2 * 10**9 // len(packets), frame) for k, (_, frame) in enumerate(packets)])  # 2 s
    s = summary(run("run", *arguments("chips", tmp_path, listen, "source.kind=pcap", f"source.file={file}",
                                      "source.replay_speed=2.0")))
    assert s["elapsed_s"] > 0.8
    assert bits_of(live) == bits_of(tmp_path)


def test_wrong_captures_are_named(tmp_path, recorded):
    live, listen, packets = recorded("chips")

    def failed(file, code, *more):
        return run("run", *arguments("chips", tmp_path / "out", listen, "source.kind=pcap", f"source.file={file}", *more),
                   check=code).stderr

    junk = tmp_path / "junk.pcap"
    junk.write_bytes(b"junk" * 100)
    assert "no PCAP or PCAPNG file" in failed(junk, 65)
    assert "absent.pcap" in failed(tmp_path / "absent.pcap", 66)
    assert "source.file is empty" in failed("", 78)
    whole = tmp_path / "whole.pcap"
    write_pcap(whole, packets)
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(whole.read_bytes() + b"\xff" * 16)
    assert f"damaged behind {len(packets)} records" in failed(damaged, 65)
    assert bits_of(tmp_path / "out") == bits_of(live), "what came before the damage is published"
    assert 'source.kind = "pcap"' in run("run", *arguments("chips", tmp_path / "o", listen, "source.kind=file",
                                                           f"source.file={whole}"), check=65).stderr
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(whole.read_bytes()[:-10])
    s = summary(run("run", *arguments("chips", tmp_path / "cut", listen, "source.kind=pcap", f"source.file={cut}")))
    assert s["warnings"] == [f"{cut} also has: a last record that is not whole"]
    assert s["packets_used"] == len(packets) - 1
    s = summary(run("run", *arguments("chips", tmp_path / "no", f'["udp://{HOST}:9"]', "source.kind=pcap",
                                      f"source.file={whole}"), check=None))
    assert f"{len(packets)} datagrams to other ports" in " ".join(s["warnings"]) and s["state"] == "NO_DATA"


def test_a_silent_multicast_group_is_told(tmp_path):
    listen = '["udp://239.64.77.1+2:24117?interface=lo"]'
    live = start("run", *arguments("chips", tmp_path, listen, "source.kind=network", "source.allow_small_rcvbuf=true"))
    wait_for(lambda: open("/proc/net/udp").read().count(":5E35 ") == 3)
    code, out, err = stop(live)
    warnings = " ".join(json.loads(out.strip().splitlines()[-1])["warnings"])
    assert "no data arrived" in warnings and "state NO_DATA" in warnings
    assert "no packet came from the multicast groups udp://239.64.77.1:24117?interface=lo, udp://239.64.77.2" in warnings
    wrong = run("run", *arguments("chips", tmp_path, '["udp://239.64.77.1:24117?interface=nosuch0"]',
                                  "source.kind=network"), check=69).stderr
    assert "no interface 'nosuch0'; it has lo (127.0.0.1)" in wrong
