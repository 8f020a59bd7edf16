# SPDX-License-Identifier: BSD-3-Clause
"""SIGPROC filterbanks read by `your` (8, 16 and 32 bit: its reader has no others that work).

1, 2 and 4 bit: its header, and the samples by SIGPROC's rule in numpy. sigpyproc reads every depth, but wants Python 3.12: where
RYLE_SIGPYPROC_PYTHON names one that has it (pip install sigpyproc==2.0.0), it is asked too.
"""
import json
import os
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import module

N_CHANNELS, N_TIMES = 24, 1000


@pytest.fixture(scope="module")
def your():
    # Progress bars and pictures of `your`, which its reader imports and does not use: 100 MB of packages otherwise.
    for name, member in (("rich.progress", "Progress"), ("skimage.transform", "resize")):
        try:
            __import__(name)
        except ImportError:
            parent, child = name.split(".")
            stub = types.ModuleType(name)
            setattr(stub, member, None)
            sys.modules.setdefault(parent, types.ModuleType(parent))
            sys.modules[name] = stub
            setattr(sys.modules[parent], child, stub)
    return module("your")


def codes(bits):
    """[time][channel], channels descending as they stand in the file."""
    t, c = np.arange(N_TIMES)[:, None], np.arange(N_CHANNELS)[::-1][None, :]
    code = c * 31 + t * 7 + t // 13
    return code % 2**bits if bits < 32 else -0.25 * code.astype(np.float32)


def check_header(h, bits):
    assert (h.nbits, h.nchans, h.npol, h.native_nspectra) == (bits, N_CHANNELS, 1, N_TIMES)
    assert h.fch1 == pytest.approx(411.5) and h.foff == pytest.approx(-0.5) and h.bw == pytest.approx(-12)
    assert h.tsamp == pytest.approx(69.12e-6) and h.tstart == 60310.25
    assert h.source_name in ("B0329+54", b"B0329+54")
    assert h.ra_deg == pytest.approx(np.degrees(0.9338), abs=1e-6)
    assert h.dec_deg == pytest.approx(np.degrees(-0.0087), abs=1e-6)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_your_reads_header_and_samples(your, products, bits):
    file = your.Your(products / f"beam{bits}.fil")
    check_header(file.your_header, bits)
    assert np.array_equal(file.get_data(0, N_TIMES), codes(bits))
    assert np.array_equal(file.get_data(137, 64), codes(bits)[137:201])


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_fewer_bits_have_the_header_and_the_bit_order(your, products, bits):
    pysigproc = sys.modules["your.formats.pysigproc"]
    path = products / f"beam{bits}.fil"
    file = pysigproc.SigprocFile(path)
    assert (file.nbits, file.nchans, file.nifs, file.nspectra()) == (bits, N_CHANNELS, 1, N_TIMES)
    assert file.fch1 == pytest.approx(411.5) and file.foff == pytest.approx(-0.5)
    packed = np.fromfile(path, np.uint8, offset=file.hdrbytes).reshape(N_TIMES, -1)
    # Lowest bits first.
    shifts = np.arange(0, 8, bits)
    unpacked = (packed[:, :, None] >> shifts & (2**bits - 1)).reshape(N_TIMES, N_CHANNELS)
    assert np.array_equal(unpacked, codes(bits))


SIGPYPROC = """
import json, sys
import numpy as np
from sigpyproc.readers import FilReader
file = FilReader(sys.argv[1])
h = file.header
block = np.asarray(file.read_block(0, h.nsamples).data)
print(json.dumps({"header": [h.nbits, h.nchans, h.nsamples, h.fch1, h.foff, h.tsamp, h.tstart, h.source],
                  "samples": block.T.tolist()}))
"""


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16, 32])
def test_sigpyproc_reads_header_and_samples(products, bits):
    python = os.environ.get("RYLE_SIGPYPROC_PYTHON")
    if python is None:
        pytest.skip("skipped: RYLE_SIGPYPROC_PYTHON (a Python 3.12 with sigpyproc) is not set")
    run = subprocess.run([python, "-c", SIGPYPROC, products / f"beam{bits}.fil"], check=True, capture_output=True, text=True)
    read = json.loads(run.stdout.splitlines()[-1])
    assert read["header"] == [bits, N_CHANNELS, N_TIMES, 411.5, -0.5, 69.12e-6, 60310.25, "B0329+54"]
    assert np.array_equal(read["samples"], codes(bits))
