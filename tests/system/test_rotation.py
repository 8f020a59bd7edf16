# SPDX-License-Identifier: BSD-3-Clause
"""New files by time: one after the other they are the run, to the last bit, and the manifest tells them apart."""

import hashlib
import json
import pathlib

import h5py
import numpy as np
from harness import ROOT, run, summary

EXAMPLE = ROOT / "examples/mwa32t.toml"
START = 'source.start_utc="2026-01-01T00:00:00"'


def settings(*values):
    return [word for value in values for word in ("--set", value)]


def test_segments_are_the_unrotated_run(tmp_path):
    recording = tmp_path / "samples.bin"
    run("simulate", EXAMPLE, "-o", recording, *settings("simulator.duration_s=0.75", "simulator.period_samples=65536", START))
    common = ["run", EXAMPLE, "-q", "--json", *settings(
        "source.kind=file", f"source.file={recording}", "source.format=mwa32t-interleaved", START,
        "correlate.integration_s=0.1", "output.uvfits=false", "output.pictures=false")]
    whole = summary(run(*common, "-o", tmp_path / "one", "--set", "output.ms=false"))
    rotated = summary(run(*common, "-o", tmp_path / "many", "--set", "output.segment_s=0.2"))
    recording.unlink()
    assert whole["integrations"] == rotated["integrations"] == 8
    assert [pathlib.Path(p).name for p in whole["products"]] == ["mwa32t.uvh5"]
    files = sorted(p for p in rotated["products"] if p.endswith(".uvh5"))
    assert [pathlib.Path(f).name for f in files] == [
        f"mwa32t_20260101T000000.{k}00Z_s000{n}.uvh5" for n, k in enumerate((0, 2, 4, 6), 1)]

    def joined(paths, name):
        return np.concatenate([h5py.File(p)[name][:] for p in paths])

    for name in ("Data/visdata", "Data/nsamples", "Data/flags", "Header/time_array", "Header/uvw_array",
                 "Header/ant_1_array", "Ryle/start_tai_ns", "Ryle/n_spectra", "Ryle/visdata_crc32c"):
        assert np.array_equal(joined(files, name), joined(whole["products"], name)), name

    lines = [json.loads(line) for line in (tmp_path / "many/mwa32t.manifest.jsonl").read_text().splitlines()]
    assert sorted(line["name"] for line in lines) == sorted(pathlib.Path(p).name for p in rotated["products"])
    assert sum(line["integrations"] for line in lines if line["name"].endswith(".uvh5")) == 8
    for line in lines:
        path = tmp_path / "many" / line["name"]
        if path.is_file():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == line["sha256"]
            assert path.stat().st_size == line["bytes"]
        else:  # a Measurement Set: the list of its files as sha256sum prints it
            inside = sorted(str(f.relative_to(path)) for f in path.rglob("*") if f.is_file())
            text = "".join(f"{hashlib.sha256((path / f).read_bytes()).hexdigest()}  {f}\n" for f in inside)
            assert hashlib.sha256(text.encode()).hexdigest() == line["sha256"]
        assert line["start_utc"].startswith("2026-01-01T00:00:00.")
