# SPDX-License-Identifier: BSD-3-Clause
"""ryle search and ryle fold on the real data, and on files that are not what they say."""

import sqlite3
import struct

import pytest
from harness import data, run, ryle, start, stop

FRB = "transients/askap_frb180417/28.fil"
PARKES = "transients/parkes_uwl_crab/parkes_{}.fil"


def test_frb180417_is_exactly_one_candidate(tmp_path):
    found = ryle("search", data(FRB), "-o", tmp_path)
    assert len(found["candidates"]) == 1 and found["flagged"] == []
    burst = found["candidates"][0]
    assert burst["dm_pc_cm3"] == pytest.approx(474, abs=3) and burst["snr"] >= 15.5
    assert burst["time_s"] == pytest.approx(2.029, abs=0.003)
    assert found["k_dm"] == 4148.8064
    names = {p.name for p in tmp_path.iterdir()}
    assert names == {"28.cand", "28.cands", "28.csv", "28.singlepulse", "28.sqlite", "28_00001.png", "28_00001.xml"}
    database = sqlite3.connect(tmp_path / "28.sqlite")
    assert database.execute("SELECT count(*) FROM event WHERE flags = ''").fetchone() == (1,)
    assert database.execute("SELECT value FROM run WHERE key = 'k_dm'").fetchone() == (4148.8064,)
    assert "exists" in ryle("search", data(FRB), "-o", tmp_path, expect=73)


def test_psrfits_gives_the_same_burst():
    fil, fits = (ryle("search", data(f))["candidates"] for f in (FRB, FRB.replace(".fil", ".fits")))
    assert len(fits) == 1 and fits[0]["dm_pc_cm3"] == pytest.approx(fil[0]["dm_pc_cm3"], abs=0.2)
    assert fits[0]["snr"] == pytest.approx(fil[0]["snr"], rel=0.03)


def test_the_constant_is_recorded_and_moves_the_dm():
    physical, dedisp = (ryle("search", data(FRB), "--k-dm", k) for k in ("physical", "dedisp"))
    assert dedisp["k_dm"] == 4150
    shift = physical["candidates"][0]["dm_pc_cm3"] - dedisp["candidates"][0]["dm_pc_cm3"]
    assert shift == pytest.approx(474.7 * (4150 / 4148.8064 - 1), abs=0.1)


def test_fewer_bits_show_the_same_brightest_events():
    # Two seconds of interference without a pulsar; 8, 4, 2 and 1 bit of the same samples.
    brightest = {}
    for bits in ("8bit_1", "4bit", "2bit", "1bit"):
        found = ryle("search", data(PARKES.format(bits)), "--dm-max", "100")
        brightest[bits] = sorted(found["candidates"] + found["flagged"], key=lambda e: -e["snr_boxcar"])
    assert len(brightest["8bit_1"]) >= 3
    # What quantising leaves of the S/N: 2 bits 0.94 and 1 bit 0.80 at best, with levels where they belong; up to 0.06 are
    # other channels flagged. The third (0.41 s) overlaps the second (0.48 s), and may be joined with it.
    for bits, least in (("4bit", 0.95), ("2bit", 0.8), ("1bit", 0.65)):
        for k, event in enumerate(brightest[bits]):
            if k > 1 and event["snr_boxcar"] < 9:  # near the threshold: with some bits only
                continue
            # Events are up to 0.15 s wide and hardly dispersed: within a third of that, as far as DM and time can be told.
            full = min(brightest["8bit_1"], key=lambda e: abs(e["time_s"] - event["time_s"]))
            assert event["time_s"] == pytest.approx(full["time_s"], abs=0.05)
            if k < 2:  # the brightest, in their order
                assert full is brightest["8bit_1"][k] and event["flags"] == full["flags"]
                assert least < event["snr_boxcar"] / full["snr_boxcar"] < 1.08
            if bits != "1bit":
                assert event["dm_pc_cm3"] == pytest.approx(full["dm_pc_cm3"], abs=10)
        assert len(brightest[bits]) >= (2 if bits == "1bit" else 3)


def test_j1807_folds(tmp_path):
    tim = data("transients/gbt_j1807/GBT_J1807-0847.tim")
    folded = ryle("fold", tim, "--period", "0.1637", "-o", tmp_path / "p.txt", "--png", tmp_path / "p.png")
    assert folded["period_s"] == pytest.approx(0.163711, abs=2e-6) and folded["reduced_chi2"] >= 600
    assert len((tmp_path / "p.txt").read_text().splitlines()) == 130
    assert (tmp_path / "p.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("change, words", [
    (lambda b: b[:200], "the header ends within"),
    (lambda b: b.replace(b"nchans", b"nchanz"), 'unknown key "nchanz"'),
    (lambda b: b"X" + b[1:], "byte 0: length of the first string"),
    (lambda b: b[:327], "no data"),
    (lambda b: b"", "header"),
])
def test_corrupted_files_are_refused(tmp_path, change, words):
    broken = tmp_path / "broken.fil"
    broken.write_bytes(change(data(FRB).read_bytes()[:40000]))
    message = ryle("search", broken, expect=65)
    assert words in message and "byte" in message and message.count("\n") == 1


@pytest.mark.parametrize("option", [
    "--dm-max=nan", "--dm-max=-5", "--dm-max=0", "--dm-min=-1", "--threshold=nan", "--threshold=-7", "--width-max=-1",
    "--width-max=inf", "--dm-candidate-min=nan", "--burst-threshold=nan", "--sk-degrees=-1", "--adjacent=-1",
    "--position-error=nan", "--smear-samples=-1", "--workers=-1", "--max-beams=-4", "--block-samples=-1",
])
def test_numbers_that_are_none_are_no_defaults(option):
    message = run("search", data(FRB), option, check=64).stderr
    assert option.split("=")[0] in message and "is not a number" in message


def test_a_width_below_a_sample_is_rejected():
    assert "half a sample of 0.001266 s" in run("search", data(FRB), "--width-max", "0.0001", check=78).stderr


@pytest.mark.parametrize("command", [
    ("fold", "--period", "0.1637", "--dm=-100"), ("fold", "--period=nan",), ("fold", "--period=-0.1"),
    ("fold", "--period", "0.1637", "--drift=-1"), ("fold", "--period", "0.1637", "--bins=-2"),
    ("trigger", "--utc", "2025-03-01T16:10:00", "--dm=nan"), ("trigger", "--utc", "2025-03-01T16:10:00", "--width=-1"),
])
def test_the_same_of_fold_and_trigger(command):
    assert "is not a number" in run(command[0], "/nowhere", *command[1:], check=64).stderr


def test_options_that_cannot_be():
    assert "physical" in run("search", data(FRB), "--k-dm", "mine", check=78).stderr
    assert "native" in run("search", data(FRB), "--plan", "best", check=78).stderr
    assert "cpu:generic" in run("search", data(FRB), "--implementation", "gpu", check=69).stderr
    assert run("search", "/nowhere.fil", check=66)


def test_info_tells_what_a_filterbank_holds():
    facts = ryle("info", data(FRB))
    assert facts["kind"] == "filterbank" and facts["channels"] == 336 and facts["samples"] == 5120
    assert ryle("info", data("transients/parkes_uwl_crab/parkes_4bit.sf"))["bits"] == 4


def test_a_stopped_search_publishes_and_ends_with_0(tmp_path):
    """The first Ctrl-C ends a search as it ends the other commands (docs/exit-codes.md): what was searched is written."""
    def word(text):
        return struct.pack("<i", len(text)) + text.encode()

    header = word("HEADER_START")
    for key, value in (("nchans", 64), ("nbits", 8), ("nifs", 1), ("machine_id", 0), ("telescope_id", 0), ("data_type", 1)):
        header += word(key) + struct.pack("<i", value)
    for key, value in (("fch1", 1500.0), ("foff", -1.0), ("tsamp", 0.001), ("tstart", 60000.0)):
        header += word(key) + struct.pack("<d", value)
    file = tmp_path / "long.fil"
    file.write_bytes(header + word("HEADER_END"))
    with open(file, "r+b") as f:
        f.truncate(1 << 33)  # 37 hours, none of them on the disk
    process = start("search", file, "-o", tmp_path / "out", "--dm-max", "20")
    assert process.stderr.read(1)  # the first line of progress
    code, out, _ = stop(process)
    assert code == 0 and "stopped by a signal after" in out
    assert (tmp_path / "out/long.csv").exists() and not list((tmp_path / "out").glob(".*.part"))
