# SPDX-License-Identifier: BSD-3-Clause
"""Observations that take no time: a recording of four antennas with a pulse in it, and the simulated MWA-32T."""

import json
import sys

import numpy as np
from helpers import ROOT

import ryle

sys.path.append(str(ROOT / "tests" / "system"))
import frames  # noqa: E402
import harness  # noqa: E402

MWA32T = ROOT / "examples" / "mwa32t.toml"
N_CHANNELS, N_ANTENNAS, WIDTH_HZ = 16, 4, 1e6
DUMP_SPECTRA, DUMPS = 4096, 50
DM, PULSE_S = 10.0, 0.1

BEAMS = """
[[beam]]
name = "zenith"
frame = "azel"
az_deg = 0.0
el_deg = 90.0

[[beam]]
name = "south"
frame = "azel"
az_deg = 180.0
el_deg = 40.0
"""

RECORDED = """
schema = 1
[telescope]
layout = "array.csv"
latitude_deg = 34
longitude_deg = -107
[source]
kind = "file"
format = "guppi"
file = "{folder}/x.raw"
[correlate]
integration_s = {integration_s}
[output]
directory = "out"
name = "x"
ms = false
uvfits = false
uvh5 = true
pictures = false
overwrite = true
[runtime]
device = "cpu"
"""


def recording(folder):
    """The folder of an observation x.toml: noise of four antennas, and a pulse from the zenith after PULSE_S (at the top of the band)."""
    rng = np.random.default_rng(1)
    n = DUMP_SPECTRA * DUMPS
    mhz = 400.0 + WIDTH_HZ * 1e-6 * np.arange(N_CHANNELS)
    samples = rng.normal(0, 12, (N_ANTENNAS, N_CHANNELS, n, 1, 2)).astype(np.float32)
    late = np.rint((PULSE_S + 4.1488064e3 * DM * (mhz ** -2 - mhz[-1] ** -2)) * WIDTH_HZ).astype(int)
    for channel, first in enumerate(late):
        samples[:, channel, first: first + 1000] += rng.normal(0, 12, (1, 1000, 1, 2)).astype(np.float32)
    codes = np.rint(samples).clip(-127, 127).astype(np.int8)
    (folder / "x.raw").write_bytes(frames.guppi(codes, n // 10, 0, mhz.mean(), WIDTH_HZ * 1e-6 * N_CHANNELS))
    lines = [f"{k},{e},{north},0,X,0" for k, (e, north) in enumerate([(0, 0), (9, 2), (-3, 8), (5, -7)])]
    (folder / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "\n".join(lines) + "\n")
    (folder / "x.toml").write_text(RECORDED.format(folder=folder, integration_s=DUMP_SPECTRA / WIDTH_HZ))
    (folder / "beams.toml").write_text(BEAMS)
    return folder


def recorded(folder, out, **settings):
    """An observation of that recording; settings as section__key."""
    changes = {key.replace("__", "."): value for key, value in settings.items()}
    return ryle.Observation(folder / "x.toml", set={"output.directory": str(out), **changes})


ALL_PRODUCTS = {"image__cadence_s": 0.02, "image__n_pixels": 32, "beams__file": "beams.toml", "beams__filterbank": False, "beams__pictures": 0,
                "beams__integration_spectra": 128, "search__dm_max": 20.0, "search__dm_min": 1.0}


def live_settings(directory, duration_s):
    return {"source.listen": json.loads(harness.endpoints(["tcp", "tcp", "udp", "udp"])), "simulator.duration_s": duration_s,
            "output.directory": str(directory), "output.ms": False, "output.pictures": False, "source.allow_small_rcvbuf": True}


def live(directory, duration_s, **settings):
    """The simulated MWA-32T, two integrations a second."""
    return ryle.Observation(MWA32T, set={**live_settings(directory, duration_s), **{k.replace("__", "."): v for k, v in settings.items()}})
