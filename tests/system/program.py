# SPDX-License-Identifier: BSD-3-Clause
"""Runs the ryle program, and finds the real data."""
import json
import os
import pathlib
import subprocess

import pytest

DATA = pathlib.Path(os.environ.get("RYLE_DATA") or pathlib.Path(__file__).resolve().parents[2].parent / "shared" / "data")


def data(relative):
    """Path of a data file; skips the test when it is not there."""
    path = DATA / relative
    if not path.exists():
        pytest.skip(f"skipped: no data ({relative})")
    return path


def ryle(*arguments, expect=0):
    """Runs the program with --json and returns its last line as an object (its errors as text when it must fail)."""
    program = os.environ.get("RYLE_PROGRAM")
    if not program:
        pytest.skip("skipped: RYLE_PROGRAM is not set (run it through ctest)")
    command = [program, *map(str, arguments), "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == expect, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout.splitlines()[-1]) if expect == 0 else done.stderr
