# SPDX-License-Identifier: BSD-3-Clause
"""Every live source feeds every product, and all at once make the bytes that each makes alone."""

import json
import pathlib
import re
import shutil
import threading
import time

import h5py
import numpy as np
import pytest
from astropy.io import fits

from harness import ROOT, endpoints, run, summary

BEAMS = """
[[beam]]
name = "zenith"
frame = "azel"
az_deg = 0.0
el_deg = 90.0

[[beam]]
name = "north"
frame = "icrs"
ra_deg = 350.85
dec_deg = 58.815
"""

# What is set for all runs of a source: short, waited for, without losses.
SOURCES = {
    "chips": ("lwasv", ["source.format=chips", "simulator.duration_s=0.1", "simulator.speed=0.02"]),
    "tbf": ("lwasv", ["source.format=tbf", "source.n_channels=12", "simulator.duration_s=0.1", "simulator.speed=0.02",
                      "source.sample_rate_hz=0"]),
    "tbx": ("lwasv", ["source.format=tbx", "simulator.duration_s=0.1", "simulator.speed=0.02", "source.sample_rate_hz=0"]),
    "best2": ("best2", ["simulator.duration_s=0.6", "simulator.speed=0.05"]),
    "mwa32t": ("mwa32t", ["simulator.duration_s=0.6", "simulator.speed=0.1", "simulator.wait_for_run=true",
                          "source.lossless=true", "source.start_utc='2024-06-27T06:00:00'", "channelize.bits=8",
                          "calibration.gains=''"]),
}
VISIBILITIES = ["output.uvh5=true"]
# Of time samples: as they are beside images and beams, delays after the correlator. So would be gains.
LATE = ["correlate.fringe_stopping=x", "correlate.integration_s=0.1"]
IMAGES = ["image.cadence_s=0.04", "image.n_pixels=32", "image.watch=[]", "image.trigger_sigma=0"]
SEARCH = ["search.dm_max=20", "search.threshold=6"]
RING = ["voltages.ring_s=3", "voltages.margin_s=0.001", "voltages.socket=v.sock"]
# The span that is asked for, as soon as there are data.
SPANS = {"best2": ("2025-03-01T16:10:00.2", "2025-03-01T16:10:00.3"), "mwa32t": ("2024-06-27T06:00:00.2", "2024-06-27T06:00:00.3"),
         "": ("2024-06-27T06:00:00.03", "2024-06-27T06:00:00.06")}


def made(folder, source, *products):
    example, settings = SOURCES[source]
    beams = folder / "beams.toml"
    beams.write_text(BEAMS)
    observation = folder / f"{example}.toml"  # the example without images of its own
    text = (ROOT / "examples" / f"{example}.toml").read_text()
    for section in ("image", "correlate"):
        text = re.sub(rf"\n\[{section}\]\n.*?(?=\n\[)", "\n", text, flags=re.S)
    observation.write_text(text)
    for table in [*(ROOT / "examples").glob("*.csv"), ROOT / "examples" / "best2_beams.toml"]:
        shutil.copy(table, folder)
    overrides = ["output.name=x", "output.ms=false", "output.uvfits=false", "output.uvh5=false", "output.pictures=false",
                 "beams.pictures=0", *settings]
    kinds = ("tcp",) * 4 if example == "mwa32t" else ("udp",)
    overrides.append(f"source.listen={endpoints(kinds)}")
    for product in products:
        overrides.append(product.replace("BEAMS", str(beams)))
    if source == "best2":  # blocks of its search are long: 3.2 GB of its band
        overrides = [o.replace("voltages.ring_s=3", "voltages.ring_s=5") for o in overrides]
    name = "-".join(str(len(p)) for p in products)
    out = folder / f"{source}-{len(products)}-{name}"
    arguments = ["run", str(observation), "-o", out.name, "--json"]  # the path of a unix socket is short
    for override in overrides:
        arguments += ["--set", override]
    asking = threading.Thread(target=ask_for_voltages, args=(folder, out.name, SPANS.get(source, SPANS[""])))
    if "voltages.socket=v.sock" in products:  # started before the run, which it waits for
        asking.start()
    s = summary(run(*arguments, timeout=240, cwd=folder))
    if asking.is_alive():
        asking.join()
    assert s["not_made"] == [] and s["errors"] == [], s
    # Packets before all streams were heard are no part of the data: the same ones in every run, or nothing is compared.
    assert s["dropped_chunks"] == 0 and s["lost_samples"] == 0 and sum(s["packets_rejected"].values()) == 0, s
    return contents(out)


def ask_for_voltages(folder, out, span):
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if (folder / out / "v.sock").exists():
            done = run("trigger", f"{out}/v.sock", "--begin", span[0], "--end", span[1], check=None, cwd=folder)
            if done.returncode == 0:
                return
        time.sleep(0.02)


def contents(folder):
    """Numbers of every product, by kind."""
    found = {}
    for path in sorted(pathlib.Path(folder).iterdir()):
        if path.suffix == ".uvh5":
            with h5py.File(path) as file:
                found["visibilities"] = (file["Data/visdata"][()].tobytes(), file["Data/nsamples"][()].tobytes())
        elif path.suffix == ".fits":
            found.setdefault("images", []).append(fits.getdata(path).tobytes())
        elif path.suffix == ".fil":
            found.setdefault("beams", {})[path.name] = path.read_bytes()
        elif path.name == "x_beams.json":
            found["powers"] = {beam["name"]: np.mean(beam["mean"]) for beam in json.loads(path.read_text())["beams"]}
        elif path.suffix == ".cands":
            found["search"] = path.read_text()
        elif path.suffix == ".h5":
            with h5py.File(path) as file:
                present = file["present"][()].tobytes() if "present" in file else b""
                found["voltages"] = (file["voltages"][()].tobytes(), file["first_tick"][()].tolist(), present)
    return found


@pytest.mark.parametrize("source", sorted(SOURCES))
def test_all_products_at_once_are_those_made_alone(tmp_path, source):
    beams = [] if source == "best2" else ["beams.file=BEAMS"]
    visibilities = VISIBILITIES + (LATE if source == "mwa32t" else [])
    everything = made(tmp_path, source, *visibilities, *IMAGES, *beams, *SEARCH, *RING)
    assert set(everything) == {"visibilities", "images", "beams", "search", "powers", "voltages"}
    if source in ("chips", "tbf", "tbx"):  # 256 antennas in two polarizations, and the second beam is at Cas A
        assert everything["powers"]["north"] > 30 * everything["powers"]["zenith"]
    assert np.frombuffer(everything["visibilities"][0], np.complex64).any()
    assert np.frombuffer(everything["images"][0], ">f4").any()
    # The beams file of best2 is its array, so that beams are made in any case.
    quiet = ["beams.filterbank=false"] if source == "best2" else []
    alone = made(tmp_path, source, *beams, *SEARCH)
    alone["visibilities"] = made(tmp_path, source, *visibilities, *quiet)["visibilities"]
    alone["images"] = made(tmp_path, source, *IMAGES, *quiet)["images"]
    alone["voltages"] = made(tmp_path, source, *RING, *quiet)["voltages"]
    assert np.frombuffer(everything["voltages"][0], np.uint8).any()
    for product, data in everything.items():
        assert data == alone[product], f"{product} of {source} beside others differ from those made alone"
