# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of the package share: plain definitions in NumPy, data, and a child that Ctrl-C is sent to."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("RYLE_DATA", ROOT.parent / "shared" / "data"))


def data(relative):
    path = DATA / relative
    if not path.exists():
        pytest.skip(f"skipped: no data ({relative})")
    return str(path)


def codes(rng, shape, low=-128, high=128):
    return rng.integers(low, high, shape + (2,)).astype(np.int8)


def as_complex(x):
    return x[..., 0].astype(np.float64) + 1j * x[..., 1]


def pairs(n):
    return [(i, j) for j in range(n) for i in range(j + 1)]


def interrupted(code, after="ready", timeout_s=60):
    """Runs code that prints `after`, then sends it SIGINT; its output, seconds to its end and exit code."""
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        seen = ""
        while after not in seen:
            line = child.stdout.readline()
            assert line, f"the child ended: {seen}"
            seen += line
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        rest, _ = child.communicate(timeout=timeout_s)
        return seen + rest, time.monotonic() - begin, child.returncode
    finally:
        child.kill()
        child.wait()
