# SPDX-License-Identifier: BSD-3-Clause
"""Arguments and files that were made to hurt: a sentence and the documented code, nothing left behind, no signal."""

import os
import re
import resource
import struct
import subprocess

import pytest
from harness import binary, data, run

LAYOUT = "antenna,east_m,north_m,up_m,pol,cable_delay_ns\na,0,0,0,X,0\nb,30,0,0,X,0\n"


def filterbank(path, n=4000, channels=4):
    def text(value):
        return struct.pack("<i", len(value)) + value.encode()

    head = text("HEADER_START")
    for key, value in [("nchans", channels), ("nbits", 8), ("nifs", 1), ("telescope_id", 0), ("machine_id", 0), ("data_type", 1)]:
        head += text(key) + struct.pack("<i", value)
    for key, value in [("fch1", 400.0), ("foff", -1.0), ("tsamp", 1e-3), ("tstart", 59000.0)]:
        head += text(key) + struct.pack("<d", value)
    path.write_bytes(head + text("HEADER_END") + bytes((7 * k) % 23 for k in range(n * channels)))
    return path


def refused(code, *words, **options):
    """Ends by itself, with this code and one line."""
    done = run(*words, check=None, **options)
    assert done.returncode in (code if isinstance(code, tuple) else (code,)), (done.returncode, done.stderr)
    if done.returncode != 64:  # what the command line cannot mean is said by its parser, with the way to --help
        assert re.match(r"(\S+Z )?ryle: error: ", done.stderr) and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize("option", ["--dm=-100", "--dm=-1", "--dm=nan", "--dm=1e300", "--drift=2147483648", "--drift=nan",
                                    "--pdot=nan", "--bins=99999999999"])
def test_fold_takes_no_impossible_number(tmp_path, option):
    refused((64, 78), "fold", filterbank(tmp_path / "x.fil"), "--period", "0.1", option)


def test_a_negative_dm_of_an_ephemeris(tmp_path):
    par = tmp_path / "x.par"
    par.write_text("PSR X\nRAJ 1\nDECJ 5\nF0 10\nPEPOCH 59000\nDM -100\n")
    assert "line 6" in refused(65, "fold", filterbank(tmp_path / "x.fil"), "--par", par)


def test_observation_nested_without_end(tmp_path):
    deep = "a" + ".a" * 50000
    for text in (f"schema = 1\n{deep} = 1\n", "a = " + "[" * 50000, "a = " + "{a=" * 50000):
        file = tmp_path / "x.toml"
        file.write_text(text)
        assert "nested" in refused(78, "run", file, "--check")
    file.write_text("schema = 1\n")
    assert "nested" in refused(78, "run", file, "--check", "--set", deep + "=1")


def test_a_target_without_pixels(tmp_path):
    cards = ["SIMPLE  = T", "BITPIX  = -32", "NAXIS   = 2", "NAXIS1  = 0", "NAXIS2  = 10", "CTYPE1  = 'RA---SIN'",
             "CTYPE2  = 'DEC--SIN'", "CRVAL1  = 30.", "CRVAL2  = 40.", "CDELT1  = -0.1", "CDELT2  = 0.1", "END"]
    target = tmp_path / "t.fits"
    target.write_bytes("".join(card.ljust(80) for card in cards).ljust(2880).encode())
    scans = data("singledish/hegrid_mock/input1.fits")
    assert "a map has a width" in refused(65, "grid", scans, "--target", target, "-o", tmp_path / "m.fits")
    assert not list(tmp_path.glob(".*")) and not (tmp_path / "m.fits").exists()


def test_averages_of_no_channels(tmp_path):
    for n in ("0", "-1", str(2**63 - 1)):
        refused(78, "image", data("vis/pyuvdata/1133866760.uvfits"), "-o", tmp_path / "i.fits", "--channel-average", n)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name, words", [
    ("x.uvfits", ["image", "FILE", "-o", "i.fits"]),
    ("x.uvh5", ["image", "FILE", "-o", "i.fits"]),
    ("x.ms", ["image", "FILE", "-o", "i.fits"]),
    ("x.fil", ["search", "FILE", "-o", "s"]),
    ("x.fil", ["fold", "FILE", "--period", "1"]),
    ("x.fits", ["grid", "FILE", "-o", "m.fits"]),
    ("x.vdif", ["info", "FILE"]),
    ("x.toml", ["run", "FILE", "--check"]),
    ("x.par", ["fold", "GOOD", "--par", "FILE"]),
    ("x.csv", ["correlate", "GOOD", "--layout", "FILE", "-o", "c.uvh5"]),
])
def test_a_pipe_that_nobody_writes_to(tmp_path, name, words):
    pipe = tmp_path / name
    os.mkfifo(pipe)
    good = filterbank(tmp_path / "good.fil")
    words = [pipe if word == "FILE" else good if word == "GOOD" else word for word in words]
    if words[0] == "correlate":
        words[1] = data("baseband/sample.vdif")
    message = refused(65, *words, cwd=tmp_path)
    assert "not a regular file" in message, message
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({name, "good.fil"})


def correlate(tmp_path, output, limit):
    layout = tmp_path / "a.csv"
    layout.write_text(LAYOUT[:-len("b,30,0,0,X,0\n")])
    words = [binary(), "correlate", data("baseband/sample_mwa.vdif"), "--layout", layout, "--latitude-deg", "-26.7",
             "--longitude-deg", "116.7", "--channels", "64", "--center-mhz", "150", "--rate", "1280000", "-o", tmp_path / output]
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, preexec_fn=limit, check=False, timeout=100)


def test_few_descriptors(tmp_path):
    """casacore aborts where it cannot open a file of a set that it makes."""
    done = correlate(tmp_path, "c.ms", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16)))
    if "casacore" in done.stderr and done.returncode == 69:
        pytest.skip("skipped: built without casacore")
    assert done.returncode == 71 and "ulimit -n" in done.stderr, (done.returncode, done.stderr)
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("name", ["c.uvh5", "c.uvfits", "c.ms"])
def test_a_limit_of_file_sizes_is_a_write_error(tmp_path, name):
    done = correlate(tmp_path, name, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)))
    if "casacore" in done.stderr and done.returncode == 69:
        pytest.skip("skipped: built without casacore")
    assert done.returncode == 74, (done.returncode, done.stderr)
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]
