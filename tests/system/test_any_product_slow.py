# SPDX-License-Identifier: BSD-3-Clause
"""Every source, live or a recording, feeds every product, and all at once make the bytes that each makes alone."""

import json
import os
import pathlib
import re
import shutil
import threading
import time

import frames
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
# Standards, of a small array of this file: 8 antennas in two polarizations, 16 channels of 32 kHz, 0.4 s.
N_ANTENNAS, N_CHANNELS, RATE, DURATION_S = 8, 16, 512_000, 0.4
SMALL = f"""
schema = 1
[telescope]
layout = "array.csv"
latitude_deg = 34
longitude_deg = -107
[source]
kind = "KIND"
SOURCE
[simulator]
duration_s = {DURATION_S}
speed = 0.1
sefd_jy = 5000
rms_lsb = 2.5
period_samples = 8192
[[simulator.source]]
l = 0.2
m = 0.1
flux_jy = 10000
[runtime]
device = "cpu"
"""
LIVE = """max_clock_error_s = 0
allow_small_rcvbuf = true
close_after_ms = 20000
chunk_ms = 16
n_chunks = 40
window_chunks = 4
"""
SENT = LIVE + 'start_utc = "2026-03-01T12:00:00"\n'
SPECTRA = f"sample_rate_hz = {RATE // N_CHANNELS}\nn_channels = {N_CHANNELS}\nchannel_zero_mhz = 1400\n"
SAMPLES = f"sample_rate_hz = {RATE}\ncenter_mhz = 1400\n"
GUPPI_BLOCK = 400
# What the simulator sends, what comes through a pipe, and recordings: lines of [source].
STANDARDS = {
    "vdif": ("simulator", f'format = "vdif"\nsample = "ci8"\nframe_bytes = 1056\n{SAMPLES}{SENT}'),
    "spead": ("simulator", f'format = "spead"\nchannels_per_packet = 8\nticks_per_spectrum = 32\n{SPECTRA}{SENT}'),
    "dada": ("pipe", f'format = "dada"\nsample = "ci8"\n{SAMPLES}{LIVE}'),
    "guppi": ("pipe", f'format = "guppi"\nsample = "ci8"\nframe_bytes = {4 * N_ANTENNAS * N_CHANNELS * GUPPI_BLOCK}\n{SPECTRA}{LIVE}'),
    "vdif-file": ("file", f'format = "vdif"\n{SAMPLES}'),
    "dada-file": ("file", f'format = "dada"\n{SAMPLES}'),
    "guppi-file": ("file", 'format = "guppi"\n'),
}
VISIBILITIES = ["output.uvh5=true"]
# Of time samples: as they are beside images and beams, delays after the correlator. So would be gains.
LATE = ["correlate.fringe_stopping=x", "correlate.integration_s=0.1"]
IMAGES = ["image.cadence_s=0.04", "image.n_pixels=32", "image.watch=[]", "image.trigger_sigma=0"]
SEARCH = ["search.dm_max=20", "search.threshold=6"]
RING = ["voltages.ring_s=3", "voltages.margin_s=0.001", "voltages.socket=v.sock"]
# The span that is asked for, as soon as there are data.
SPANS = {"best2": ("2025-03-01T16:10:00.2", "2025-03-01T16:10:00.3"), "mwa32t": ("2024-06-27T06:00:00.2", "2024-06-27T06:00:00.3"),
         "": ("2024-06-27T06:00:00.03", "2024-06-27T06:00:00.06"),
         "standard": ("2026-03-01T12:00:00.1", "2026-03-01T12:00:00.15")}


def noise(*shape):
    return np.random.default_rng(1).integers(-50, 50, shape, np.int8)


def recording(source):
    """The bytes of a file or a stream of the small array."""
    n = round(DURATION_S * RATE)
    if source.startswith("vdif"):
        codes = noise(2 * N_ANTENNAS, n, 1, 2).astype(np.int16) + 128
        return b"".join(frames.vdif_frames(codes, 8, True, 512, range(2 * N_ANTENNAS)))
    if source.startswith("dada"):
        return frames.dada(noise(n, 1, 2 * N_ANTENNAS, 2), 1400.0, RATE)
    return frames.guppi(noise(N_ANTENNAS, N_CHANNELS, n // N_CHANNELS, 2, 2), GUPPI_BLOCK, 0,
                        1400 + 0.5e-6 * (N_CHANNELS - 1) * RATE / N_CHANNELS, RATE * 1e-6)


def standard(folder, source):
    """Observation file, settings, and what is written into the pipe that the run reads."""
    kind, lines = STANDARDS[source]
    (folder / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "".join(
        f"A{k},{3.0 * k},{1.1 * k * k},0.0,{pol},0\n" for k in range(N_ANTENNAS) for pol in "XY"))
    observation = folder / "small.toml"
    observation.write_text(SMALL.replace("KIND", kind.replace("pipe", "network")).replace("SOURCE", lines))
    settings, written = [], None
    if kind == "file":
        (folder / source).write_bytes(recording(source))
        settings.append(f"source.file={folder / source}")
    elif kind == "pipe":
        written = recording(source)
    else:
        settings.append(f"source.listen={endpoints(['udp'])}")
    if source == "spead":
        settings.append("simulator.sky=moving")
    if source.split("-")[0] in ("vdif", "dada"):
        settings += ["channelize.n_channels=16", "channelize.bits=8"]
    return observation, settings, written


def feed(descriptor, written, asked):
    """Half of it, and the rest when voltages of the first half were asked for."""
    with open(descriptor, "wb") as pipe:
        pipe.write(written[:len(written) // 2])
        pipe.flush()
        asked.wait(60)
        pipe.write(written[len(written) // 2:])


def example(folder, source):
    name, settings = SOURCES[source]
    observation = folder / f"{name}.toml"  # the example without images of its own
    text = (ROOT / "examples" / f"{name}.toml").read_text()
    for section in ("image", "correlate"):
        text = re.sub(rf"\n\[{section}\]\n.*?(?=\n\[)", "\n", text, flags=re.S)
    observation.write_text(text)
    for table in [*(ROOT / "examples").glob("*.csv"), ROOT / "examples" / "best2_beams.toml"]:
        shutil.copy(table, folder)
    kinds = ("tcp",) * 4 if name == "mwa32t" else ("udp",)
    return observation, [*settings, f"source.listen={endpoints(kinds)}"], None


def made(folder, source, *products):
    beams = folder / "beams.toml"
    beams.write_text(BEAMS)
    observation, settings, written = (standard if source in STANDARDS else example)(folder, source)
    overrides = ["output.name=x", "output.ms=false", "output.uvfits=false", "output.uvh5=false", "output.pictures=false",
                 "beams.pictures=0", *settings]
    for product in products:
        overrides.append(product.replace("BEAMS", str(beams)))
    if source == "best2":  # blocks of its search are long: 3.2 GB of its band
        overrides = [o.replace("voltages.ring_s=3", "voltages.ring_s=5") for o in overrides]
    name = "-".join(str(len(p)) for p in products)
    out = folder / f"{source}-{len(products)}-{name}"
    arguments = ["run", str(observation), "-o", out.name, "--json"]  # the path of a unix socket is short
    for override in overrides:
        arguments += ["--set", override]
    asked = threading.Event()
    span = SPANS["standard" if source in STANDARDS else source if source in SPANS else ""]
    threads, more = [], {}
    if "voltages.socket=v.sock" in products:  # started before the run, which it waits for
        threads.append(threading.Thread(target=ask_for_voltages, args=(folder, out.name, span, asked)))
    else:
        asked.set()
    if written is not None:
        end, descriptor = os.pipe()
        arguments += ["--set", f'source.listen=["fd://{end}"]']
        more["pass_fds"] = (end,)
        threads.append(threading.Thread(target=feed, args=(descriptor, written, asked)))
    for thread in threads:
        thread.start()
    s = summary(run(*arguments, timeout=240, cwd=folder, **more))
    for thread in threads:
        thread.join()
    if written is not None:
        os.close(end)
    assert s["not_made"] == [] and s["errors"] == [], s
    # Packets before all streams were heard are no part of the data: the same ones in every run, or nothing is compared.
    assert s.get("dropped_chunks", 0) == 0 and s["lost_samples"] == 0 and sum(s["packets_rejected"].values()) == 0, s
    return contents(out)


def ask_for_voltages(folder, out, span, asked):
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if (folder / out / "v.sock").exists():
            done = run("trigger", f"{out}/v.sock", "--begin", span[0], "--end", span[1], check=None, cwd=folder)
            if done.returncode == 0:
                asked.set()
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


@pytest.mark.parametrize("source", [*sorted(SOURCES), *STANDARDS])
def test_all_products_at_once_are_those_made_alone(tmp_path, source):
    beams = [] if source == "best2" else ["beams.file=BEAMS"]
    if source in STANDARDS:
        beams.append("beams.integration_spectra=8")
    visibilities = VISIBILITIES + (LATE if source in ("mwa32t", "vdif", "dada") else [])
    ring = [] if source.endswith("-file") else RING
    everything = made(tmp_path, source, *visibilities, *IMAGES, *beams, *SEARCH, *ring)
    assert set(everything) == {"visibilities", "images", "beams", "search", "powers", *(["voltages"] if ring else [])}
    if source in ("chips", "tbf", "tbx"):  # 256 antennas in two polarizations, and the second beam is at Cas A
        assert everything["powers"]["north"] > 30 * everything["powers"]["zenith"]
    assert np.frombuffer(everything["visibilities"][0], np.complex64).any()
    assert np.frombuffer(everything["images"][0], ">f4").any()
    # The beams file of best2 is its array, so that beams are made in any case.
    quiet = ["beams.filterbank=false"] if source == "best2" else []
    alone = made(tmp_path, source, *beams, *SEARCH)
    alone["visibilities"] = made(tmp_path, source, *visibilities, *quiet)["visibilities"]
    alone["images"] = made(tmp_path, source, *IMAGES, *quiet)["images"]
    if ring:
        alone["voltages"] = made(tmp_path, source, *RING, *quiet)["voltages"]
        assert np.frombuffer(everything["voltages"][0], np.uint8).any()
    for product, data in everything.items():
        assert data == alone[product], f"{product} of {source} beside others differ from those made alone"
