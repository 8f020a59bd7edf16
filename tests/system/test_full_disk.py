# SPDX-License-Identifier: BSD-3-Clause
"""A disk that fills under a product: exit code 74 and a message, never a crash, nothing under a final name."""

import resource
import signal

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
