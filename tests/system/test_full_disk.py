# SPDX-License-Identifier: BSD-3-Clause
"""A disk that fills under a product: exit code 74 and a message, never a crash, nothing under a final name."""

import json
import resource
import signal

import pytest
from harness import ROOT, run

START = 'source.start_utc="2026-01-01T00:00:00"'


def limit_files(n_bytes):
    """The kernel refuses bytes past the limit of a file, as a full disk does (EFBIG for ENOSPC)."""
    def apply():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    return apply


# HDF5 keeps what it could not write, and without care crashes on it when the process ends.
def test_uvh5_ends_with_the_exit_code_of_a_full_disk(tmp_path):
    recording = tmp_path / "samples.bin"
    setting = ["--set", "simulator.period_samples=65536", "--set", START]
    run("simulate", ROOT / "examples/mwa32t.toml", "-o", recording, "--set", "simulator.duration_s=0.06", *setting)
    done = run("run", ROOT / "examples/mwa32t.toml", "-q", "-o", tmp_path / "out", "--set", "source.kind=file",
               "--set", f"source.file={recording}", "--set", "source.format=mwa32t-interleaved", *setting,
               "--set", "output.ms=false", "--set", "output.uvfits=false", "--set", "output.pictures=false",
               "--set", "correlate.integration_s=0.05",
               check=74, restore_signals=False, preexec_fn=limit_files(3_000_000))
    assert done.stderr.strip() and "infinite loop" not in done.stderr
    assert not list((tmp_path / "out").glob("*.uvh5"))


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "samples.bin"
    run("simulate", ROOT / "examples/mwa32t.toml", "-o", path, "--set", "simulator.duration_s=0.06",
        "--set", "simulator.period_samples=65536", "--set", START)
    return path


# Five whole integrations of 440 kB each are there when the sixth or seventh does not fit.
@pytest.mark.parametrize("suffix", ["uvh5", "uvfits", "ms"])
@pytest.mark.parametrize("policy", ["stop_recording", "stop"])
def test_whole_integrations_survive_a_full_disk(samples, tmp_path, suffix, policy):
    out = tmp_path / "out"
    others = [f"output.{s}=false" for s in ("ms", "uvfits", "uvh5", "pictures") if s != suffix]
    settings = [f"output.on_disk_full={policy}", "channelize.n_channels=16", "correlate.integration_s=0.004", "source.kind=file",
                f"source.file={samples}", "source.format=mwa32t-interleaved", "simulator.period_samples=65536", START, *others]
    arguments = [item for setting in settings for item in ("--set", setting)]
    done = run("run", ROOT / "examples/mwa32t.toml", "-q", "--json", "-o", out, *arguments, check=74, restore_signals=False,
               preexec_fn=limit_files(2_600_000))
    name = f"mwa32t.{suffix}"
    assert not (out / name).exists() and "whole integrations stay in" in done.stdout + done.stderr
    if policy == "stop_recording":
        summary = json.loads(done.stdout.strip().splitlines()[-1])
        assert summary["dropped_dumps"] > 0 and "ryle recover" in summary["errors"][0]
    listed = json.loads(run("recover", out, "--list", "--json").stdout)
    run("recover", out)
    assert (out / name).exists()
    info = json.loads(run("info", out / name, "--json").stdout)
    assert info["integrations"] >= 4, listed
    assert info["notes"]["recovered"]
