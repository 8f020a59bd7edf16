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


def candidates(directory):
    with open(directory / "best2.csv") as f:
        rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
    return [float(row["time_s"]) for row in rows if not row["flags"] and abs(float(row["dm_pc_cm3"]) - 26.8) < 10]


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
