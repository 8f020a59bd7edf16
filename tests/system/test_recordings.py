# SPDX-License-Identifier: BSD-3-Clause
"""Real telescope data through the commands users type."""

import json
import struct

import h5py
import numpy as np
import pytest
from astropy.io import fits
from harness import data, run, ryle


@pytest.mark.parametrize("name", ["baseband/sample.vdif", "baseband/sample.dada", "baseband/sample_puppi.raw",
                                  "baseband/sample_mwa.vdif", "lwa/tbn-test.dat", "lwa/tbf-test.dat",
                                  "lwa/tbw-test.dat", "lwa/drx-test.dat", "tart/mg-tana-raw.hdf"])
def test_info_reads_every_format(name):
    facts = json.loads(run("info", data(name), "--json").stdout)
    assert facts["inputs"] > 0 and facts["kind"] in ("samples", "spectra")


def test_a_rate_that_is_not_known_is_not_printed_as_one():
    path = data("baseband/sample_mwa.vdif")
    facts = json.loads(run("info", path, "--json").stdout)
    assert facts["rate_hz"] is None and facts["duration_s"] is None
    text = run("info", path).stdout
    assert "rate_hz: not known" in text and "duration_s: not known" in text


def test_damaged_headers_are_refused_or_skipped():
    done = run("info", data("baseband/sample_drao_corrupted.vdif"), check=None)
    assert done.returncode in (0, 65)
    assert done.returncode == 0 or "sample_drao_corrupted.vdif" in done.stderr


def test_a_station_file_that_does_not_match_is_refused(tmp_path):
    done = run("correlate", data("lwa/tbx-test.dat"), "--format", "tbx", "--station", data("lwa/lwasv-ssmif.txt"), "-o",
               tmp_path / "x.uvh5", check=78)
    assert "512 inputs" in done.stderr and "128" in done.stderr


def test_a_recording_without_a_rate_is_refused_until_it_is_given(tmp_path):
    layout = tmp_path / "two.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n"
                      "A,0,0,0,X,0\nA,0,0,0,Y,0\nB,9,0,0,X,0\nB,9,0,0,Y,0\n")
    common = ["correlate", data("lwa/vdif-test.dat"), "--layout", layout, "-o", tmp_path / "v.uvh5", "--center-mhz", 60,
              "--integration", 0.001]
    done = run(*common, check=78)
    assert "sample rate" in done.stderr and "--rate" in done.stderr


# The levels of 8-bit spectra were once set from the first samples and clipped what came after: 0.963 of this power.
# A plain FFT keeps the sum of squares of every block of samples, so that the sum over channels is the mean over time.
def test_no_power_of_a_recording_is_clipped(tmp_path):
    recording = data("baseband/sample.dada")
    layout = tmp_path / "two.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\nA,0,0,0,X,0\nA,0,0,0,Y,0\n")
    out = tmp_path / "d.uvh5"
    samples = np.fromfile(recording, np.int8, offset=4096).reshape(-1, 2, 2).astype(float)  # [time][pol][re, im]
    n_channels = 16
    whole = samples[:len(samples) // n_channels * n_channels]
    duration_s = len(samples) / 16e6
    run("correlate", recording, "--layout", layout, "-o", out, "--channels", n_channels, "--taps", 1, "--device", "cpu",
        "--integration", duration_s, "--fringe-stopping", "none", "--set", "correlate.van_vleck=off")
    with h5py.File(out) as file:
        values, counts = file["Data/visdata"][...], file["Data/nsamples"][...]
        order = list(file["Header/polarization_array"][...])
    values = values.reshape(-1, n_channels, len(order))
    counts = counts.reshape(values.shape)
    for pol, code in enumerate((-5, -6)):  # XX, YY
        mean = np.average(values[..., order.index(code)].real, weights=counts[..., order.index(code)])
        assert mean == pytest.approx((whole[:, pol] ** 2).sum(axis=-1).mean(), rel=1e-3)


BEAMS = """
[[beam]]
name = "zenith"
frame = "azel"
az_deg = 0.0
el_deg = 90.0
"""


def spectra_file(path, n_inputs=6, n_channels=8, rate=10000, n=4000, per_frame=100):
    """Complex channels in VDIF, one thread an input: noise that all share in part."""
    rng = np.random.default_rng(4)
    shape = (n_inputs, n, n_channels, 2)
    codes = np.clip(np.rint(rng.normal(0, 8, shape[1:]) + rng.normal(0, 12, shape) + 128), 0, 255).astype(np.uint8)
    with open(path, "wb") as file:
        for k in range(n // per_frame):
            for thread in range(n_inputs):
                payload = codes[thread, k * per_frame:(k + 1) * per_frame].tobytes()
                words = [100 + k * per_frame // rate, k % (rate // per_frame) | 40 << 24,
                         (32 + len(payload)) // 8 | (n_channels.bit_length() - 1) << 24, thread << 16 | 7 << 26 | 1 << 31,
                         rate // 1000 | 1 << 24, 0xACABFEED, 0, 0]
                file.write(struct.pack("<8I", *words) + payload)
    return path


def test_spectra_are_read_once_for_all_products(tmp_path):
    recording = spectra_file(tmp_path / "s.vdif")
    (tmp_path / "beams.toml").write_text(BEAMS)
    rows = [f"A{k},{3 * k},{2 * k * k % 7},0,X,0" for k in range(6)]
    (tmp_path / "six.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "\n".join(rows) + "\n")
    products = {"visibilities": ["output.uvh5=true", "correlate.integration_s=0.07"],
                "images": ["image.cadence_s=0.1", "image.n_pixels=32", "image.watch=[]"],
                "beams": [f"beams.file={tmp_path}/beams.toml", "beams.pictures=0"]}

    def made(name, *kinds):
        (tmp_path / "o.toml").write_text(f'schema = 1\n[telescope]\nlayout = "six.csv"\nlatitude_deg = 50\n[source]\n'
                                         f'kind = "file"\nformat = "vdif"\nfile = "{recording}"\ncenter_mhz = 60\n'
                                         '[output]\nname = "x"\nms = false\nuvfits = false\nuvh5 = false\npictures = false\n')
        settings = [f"--set={setting}" for kind in kinds for setting in products[kind]]
        facts = ryle("run", tmp_path / "o.toml", "-o", tmp_path / name, *settings)
        assert facts["not_made"] == [] and facts["errors"] == []
        found = {}
        for path in sorted((tmp_path / name).iterdir()):
            if path.suffix == ".uvh5":
                with h5py.File(path) as file:
                    found[path.name] = file["Data/visdata"][()].tobytes() + file["Data/nsamples"][()].tobytes()
            elif path.suffix == ".fits":
                found[path.name] = fits.getdata(path).tobytes()
            elif path.suffix == ".fil":
                found[path.name] = path.read_bytes()
        return found

    together = made("all", *products)
    alone = {}
    for kind in products:
        alone |= made(kind, kind)
    assert len(together) > 5 and together == alone
