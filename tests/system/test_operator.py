# SPDX-License-Identifier: BSD-3-Clause
"""What an operator sees and asks of a run: lines of text or JSON, `ryle top`, `ryle command`."""

import datetime
import json
import pathlib
import re
import socket
import struct

import h5py
import numpy as np
import pytest
from harness import ROOT, endpoints, live_arguments, run, start, stop, summary, wait_for

EXAMPLES = ROOT / "examples"


@pytest.fixture(autouse=True)
def short_paths(tmp_path, monkeypatch):
    """The path of a unix socket has 107 bytes at most."""
    monkeypatch.chdir(tmp_path)


def slow_run(*settings, kinds=("tcp",) * 4):
    """A run of an hour of a light observation: it goes on until it is stopped."""
    arguments = live_arguments("out", "runtime.device=cpu", "channelize.n_channels=16", "output.pictures=false", "output.ms=false",
                               "output.uvfits=false", "simulator.wait_for_run=true", *settings, duration_s=3600, kinds=kinds)
    arguments.remove("-q")
    return start(*arguments)


def test_json_lines_have_time_level_and_event():
    arguments = live_arguments("out", "runtime.log=json", duration_s=1.0, kinds=("tcp",) * 4)
    arguments.remove("-q")
    done = run(*arguments)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines
    for line in lines:
        datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        assert line["level"] in ("info", "warning", "error") and line["event"] in ("progress", "state", "warning")
    last = lines[-1]
    assert last["data_s"] > 0.9 and last["integrations"] >= 0 and last["packets_received"] >= last["packets_used"] > 0
    assert {"input_bits_per_s", "lost_fraction", "realtime_margin_ratio", "rejected", "state"} <= set(last)
    failed = run("run", "nothing.toml", "--log", "json", check=66).stderr
    error = json.loads(failed)
    assert error["level"] == "error" and error["exit_code"] == 66 and "nothing.toml" in error["message"]


def test_text_lines_have_time_and_level_and_are_few():
    arguments = live_arguments("out", duration_s=4.0)
    arguments.remove("-q")
    lines = run(*arguments).stderr.splitlines()
    stamped = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ryle: (info|warning): ")
    assert all(stamped.match(line) for line in lines), lines
    # The first, the last, and changes of state: not one a second.
    states = [line.split("integrations ")[-1].split()[1] for line in lines]
    assert len(lines) <= 2 + sum(a != b for a, b in zip(states, states[1:])), lines


def test_top_shows_a_run_and_when_it_is_over():
    process = slow_run("runtime.metrics_file=run.prom")
    try:
        wait_for(lambda: pathlib.Path("run.prom").exists() and "ryle_integrations_total 0" not in pathlib.Path("run.prom").read_text())
        state = json.loads(run("top", "run.prom", "--json").stdout)
        assert not state["ended"] and not state["stale"] and state["data_s"] > 0 and state["integrations"] > 0
    finally:
        code, _, err = stop(process)
    assert code == 0, err
    text = run("top", "run.prom").stdout
    assert "ENDED" in text and "packets" in text and "integrations" in text
    assert json.loads(run("top", ".", "--json").stdout)["ended"]
    old = pathlib.Path("run.prom").read_text().replace("ryle_ended 1", "ryle_ended 0")
    pathlib.Path("run.prom").write_text(re.sub(r"ryle_updated_seconds \S+", "ryle_updated_seconds 1e9", old))
    assert "STALE" in run("top", "run.prom", check=69).stdout
    run("top", "nothing.prom", check=66)
    pathlib.Path("other.txt").write_text("up 1\n")
    assert "ryle_up" in run("top", "other.txt", check=65).stderr


def test_rejected_packets_are_named_with_sender_length_and_bytes():
    process = slow_run("runtime.log=json", "runtime.metrics_file=run.prom", kinds=("tcp", "tcp", "tcp", "udp"))
    try:
        wait_for(lambda: pathlib.Path("run.prom").exists() and "ryle_integrations_total 0" not in pathlib.Path("run.prom").read_text())
        host, port = re.search(r"udp://([\d.]+):(\d+)", " ".join(process.args)).groups()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((host, 0))
            sender = "{}:{}".format(*stranger.getsockname())
            wait_for(lambda: stranger.sendto(b"\xde\xad\xbe\xef" * 15, (host, int(port))) and sender in pathlib.Path("run.prom").read_text())
        assert f"; the last from {sender}, 60 bytes: de ad be ef" in run("top", "run.prom").stdout
    finally:
        code, out, err = stop(process)
    assert code == 0, err
    last = json.loads(err.splitlines()[-1])["rejected"]
    assert any(r["sender"] == sender and r["bytes"] == 60 and r["header"].startswith("de ad be ef") for r in last.values()), last
    result = json.loads(out.strip().splitlines()[-1])
    assert any(r["sender"] == sender for r in result["last_rejected"].values())


def test_a_run_is_asked_marked_rotated_and_stopped():
    process = slow_run("runtime.command_socket=run.sock", "correlate.integration_s=0.1", "voltages.ring_s=0.5",
                       "voltages.margin_s=0.01")
    try:
        wait_for(pathlib.Path("out/run.sock").exists)

        def ask(*words, check=0):
            return json.loads(run("command", "out/run.sock", *words, "--json", check=check).stdout)

        wait_for(lambda: ask("status")["integrations"] >= 2)
        status = ask("status")
        assert status["result"] == "done" and status["data_utc"] and status["state"]
        mark = ask("mark", "dish 3 is stowed")
        assert mark["result"] == "done" and mark["from_utc"] >= status["data_utc"]
        rotated = ask("rotate")
        assert rotated["result"] == "done"
        wait_for(pathlib.Path("out/mwa32t.uvh5").exists)
        wait_for(pathlib.Path("out/.mwa32t_s0002.uvh5.part").exists)
        assert ask("stop", "uvh5")["result"] == "done"
        wait_for(pathlib.Path("out/mwa32t_s0002.uvh5").exists)
        assert ask("start", "uvh5")["result"] == "done"
        count = ask("status")["integrations"]
        wait_for(lambda: ask("status")["integrations"] > count + 3)
        dumped = ask("dump", "0.05")
        assert dumped["result"] == "done" and "mwa32t_voltages_00001.h5" in dumped["message"]
        assert "voltages.ring_s" in ask("dump", "100", check=69)["message"]
        wait_for(pathlib.Path("out/mwa32t_voltages_00001.h5").exists)
        refused = ask("beams", "nothing.toml", check=69)
        assert refused["result"] == "refused" and "no beams" in refused["message"]
        assert "ms, uvfits and uvh5" in ask("stop", "pictures", check=69)["message"]
        pathlib.Path("bad.csv").write_text("input,amplitude,phase_deg\n0,1,0\n")
        assert "bad.csv" in ask("gains", "bad.csv", check=64)["message"]
        double = "input,amplitude,phase_deg\n" + "".join(f"{k},2,0\n" for k in range(64))
        pathlib.Path("double.csv").write_text(double)
        gains = ask("gains", "double.csv")
        wait_for(lambda: ask("status")["integrations"] > count + 8)
        run("command", "out/run.sock", "mark", check=64)
        run("command", "out/run.sock", "dance", check=64)
        stopped = ask("stop")
        assert stopped["result"] == "done"
        out, err = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == 0, err
    result = json.loads(out.strip().splitlines()[-1])
    assert [m["text"] for m in result["marks"]] == ["dish 3 is stowed"] and result["voltages"]["dumps"] == 1
    dump = json.loads(run("info", "out/mwa32t_voltages_00001.h5", "--json").stdout)
    assert dump["duration_s"] == pytest.approx(0.05, abs=1e-5) and dump["inputs"] == 64
    files = sorted(pathlib.Path("out").glob("*.uvh5"))
    # Without files while UVH5 is stopped; the third set has none.
    assert [f.name for f in files] == ["mwa32t.uvh5", "mwa32t_s0002.uvh5", "mwa32t_s0004.uvh5", "mwa32t_s0005.uvh5"]
    texts, times, power = [], [], []
    for name in files:
        with h5py.File(name) as f:
            texts.append(f["Header/history"][()].decode())
            times.append(np.unique(f["Header/time_array"][:]))
            autos = f["Header/ant_1_array"][:] == f["Header/ant_2_array"][:]
            power.append(np.median(np.abs(f["Data/visdata"][:][autos][..., :2])))  # XX, YY
    assert "dish 3 is stowed" in texts[0] and not any("dish 3 is stowed" in t for t in texts[1:])
    steps = np.diff(np.concatenate(times)) * 86400
    assert (steps > 0.05).all() and np.sum(steps > 0.15) <= 1  # at most one gap, where nothing was written
    # Gains are divided out: those of the example before, 2 of every input after.
    amplitude = np.array([float(line.split(",")[1]) for line in (EXAMPLES / "mwa32t_gains.csv").read_text().splitlines()
                          if line[:1].isdigit()])
    assert abs(power[3] / (power[2] * np.median(amplitude**2) / 4) - 1) < 0.15, power
    assert gains["from_utc"]
    assert not pathlib.Path("out/run.sock").exists()
    run("command", "out/run.sock", "status", check=66)


def test_simulated_impairments_come_from_the_command_line():
    # A tenth is lost on the way: the run counts what is missing and says so.
    arguments = live_arguments("out", "source.close_after_ms=2000", duration_s=1.0, kinds=("udp",) * 4)
    result = summary(run(*arguments, "--simulate", "loss=0.1", "--simulate", "duplicate=0.02"))
    wanted = 64 * 1_280_000
    assert 0.07 * wanted < result["lost_samples"] < 0.13 * wanted
    assert result["packets_rejected"]["duplicate"] > 200
    assert result["packets_received"] == result["packets_used"] + result["packets_rejected_total"]
    refused = run(*live_arguments("out2", duration_s=1.0), "--simulate", "loss=0.1", check=78).stderr
    assert "tcp://" in refused and "udp://" in refused


def packets_of(path):
    """Time (s), destination port and payload of each datagram of a PCAP file."""
    data = pathlib.Path(path).read_bytes()
    assert struct.unpack("<I", data[:4])[0] == 0xA1B23C4D
    at, found = 24, []
    while at < len(data):
        seconds, ns, kept, length = struct.unpack("<IIII", data[at:at + 16])
        assert kept == length
        frame = data[at + 16:at + 16 + kept]
        assert frame[12:14] == b"\x08\x00" and frame[23] == 17
        port, udp = struct.unpack(">HH", frame[36:40])
        assert udp == len(frame) - 34
        found.append((seconds + 1e-9 * ns, port, frame[42:]))
        at += 16 + kept
    return found


@pytest.mark.parametrize("example, settings, n, size", [
    ("mwa32t.toml", [f"source.listen={endpoints(('udp',) * 4)}", "simulator.duration_s=0.1"], 4 * 500, 16 + 32 * 256),
    ("lwasv.toml", ["simulator.duration_s=0.01"], 16 * 250, 16 + 8 * 32),
    ("best2.toml", ["simulator.duration_s=0.2"], None, 4104),
])
@pytest.mark.parametrize("sky", ["frozen", "moving"])
def test_packets_of_every_format_go_into_a_file(example, settings, n, size, sky):
    settings = [*settings, f"simulator.sky={sky}", "simulator.speed=1", 'source.start_utc="2024-06-27T06:00:00"']
    if example == "mwa32t.toml":
        settings.append("simulator.period_samples=65536")
    arguments = [word for s in settings for word in ("--set", s)]
    result = summary(run("simulate", EXAMPLES / example, "-o", "x.pcap", "--json", *arguments))
    packets = packets_of("x.pcap")
    assert result["packets"] == len(packets) and (n is None or n == len(packets)) and len(packets) > 100
    assert {len(p) for _, _, p in packets} == {size}
    assert abs(packets[0][0] - datetime.datetime(2024, 6, 27, 6, tzinfo=datetime.timezone.utc).timestamp()) < 1e-6
    run("simulate", EXAMPLES / example, "-o", "x.pcap", *arguments, check=73)


SPEAD = ["source.format=spead", "source.start_utc='2026-01-01T00:00:00'", "source.sample_rate_hz=25000", "source.channel_zero_mhz=0",
         "source.channels_per_packet=4", "source.ticks_per_spectrum=8192", "simulator.period_samples=1024"]


# The smallest windows: two chunks of as few packets as there can be.
@pytest.mark.parametrize("example, settings", [
    ("lwasv.toml", ["source.chunk_ms=5"]), ("best2.toml", ["source.chunk_ms=6.5536"]), ("lwasv.toml", ["source.chunk_ms=10", *SPEAD]),
    ("mwa32t.toml", [f"source.listen={endpoints(('udp',) * 4)}", "source.chunk_ms=1", "simulator.period_samples=65536"]),
])
def test_a_file_of_packets_is_received_whole_by_the_smallest_window(example, settings):
    settings = [word for s in (*settings, "source.window_chunks=2") for word in ("--set", s)]
    here = ["--set", "simulator.sky=moving", "--set", "simulator.duration_s=0.1"]
    made = summary(run("simulate", EXAMPLES / example, "-o", "x.pcap", "--json", *settings, *here))
    times = [at for at, _, _ in packets_of("x.pcap")]
    assert times == sorted(times)
    result = summary(run("run", EXAMPLES / example, "--set", "source.kind=pcap", "--set", f"source.file={pathlib.Path('x.pcap').resolve()}",
                         "-o", "out", "--json", "-q", *settings))
    assert result["packets_received"] == result["packets_used"] == made["packets"]
    assert result["lost_samples"] == 0 and result["data_s"] > 0.09


def test_bursts_and_damaged_headers_come_from_the_command_line():
    """Packets of the example with and without them: runs of the asked length are missing, single bits of headers are turned."""
    here = ["--set", "simulator.duration_s=0.1", "--set", "simulator.speed=1", "--json"]
    example = EXAMPLES / "lwasv.toml"

    def sent(name, *impairments):
        made = summary(run("simulate", example, "-o", name, *here, *[word for i in impairments for word in ("--simulate", i)]))
        packets = [payload for _, _, payload in packets_of(name)]
        assert made["packets"] == len(packets)
        return packets

    whole = sent("whole.pcap")
    boards = {}  # [header without the sequence number]: sequence numbers
    for packet in sent("bursts.pcap", "bursts=0.02", "burst_packets=10"):
        boards.setdefault(packet[:8], []).append(int.from_bytes(packet[8:16], "big"))
    gaps = np.concatenate([np.diff(numbers) - 1 for numbers in boards.values()])
    gaps = gaps[gaps > 0]
    # A burst begins with a chance of 0.02 and ends with one of 0.1 a packet.
    assert len(boards) == 16 and len(gaps) > 300 and abs(gaps.mean() - 10) < 2 and gaps.max() > 20
    assert abs(gaps.sum() / len(whole) - 0.02 / 0.12) < 0.03
    damaged = sent("damaged.pcap", "corrupt=0.05")
    turned = [int.from_bytes(a, "big") ^ int.from_bytes(b, "big") for a, b in zip(whole, damaged, strict=True) if a != b]
    bits = 8 * len(whole[0])
    assert abs(len(turned) / len(whole) - 0.05) < 0.01
    assert all(x.bit_count() == 1 and x.bit_length() > bits - 16 * 8 for x in turned)
    for name, n_sent in (("bursts.pcap", None), ("damaged.pcap", len(whole))):
        result = summary(run("run", example, "--set", "source.kind=pcap", "--set", f"source.file={pathlib.Path(name).resolve()}", "-o",
                             name + ".out", "--json", "-q"))
        assert result["packets_received"] == result["packets_used"] + result["packets_rejected_total"]
        # What is lost is what did not come, or was not what it said: 8 channels of 32 inputs a packet.
        assert result["lost_samples"] >= 0.9 * (len(whole) - result["packets_used"]) * 8 * 32
        assert result["packets_rejected_total"] > 500 if n_sent else result["packets_rejected_total"] == 0
