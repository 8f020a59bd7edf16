# SPDX-License-Identifier: BSD-3-Clause
"""Dirty images of visibilities: the flux of a source 75 degrees from the zenith over a rough array, beams, sizes."""
import random

import numpy as np
import pytest
from astropy.io import fits
from harness import ROOT, endpoints, run, ryle, summary

L, M, FLUX_JY = 0.776, 0.575, 3000.0  # 75 degrees from the zenith


@pytest.fixture(scope="module")
def visibilities(tmp_path_factory):
    """A quarter of a second of 32 antennas at heights of +-15 m (8 wavelengths), with one source."""
    folder = tmp_path_factory.mktemp("wide")
    generator = random.Random(5)
    heights = {}
    lines = []
    for line in (ROOT / "examples/mwa32t.csv").read_text().splitlines():
        if not line.startswith(("#", "antenna,")):
            fields = line.split(",")
            fields[3] = heights.setdefault(fields[0], f"{generator.uniform(-15, 15):.3f}")
            line = ",".join(fields)
        lines.append(line)
    (folder / "rough.csv").write_text("\n".join(lines) + "\n")
    text = (ROOT / "examples/mwa32t.toml").read_text()
    begin, end = text.index("[[simulator.source]]"), text.index("[channelize]")
    text = text[:begin] + f"[[simulator.source]]\nl = {L}\nm = {M}\nflux_jy = {FLUX_JY}\n\n" + text[end:]
    text = text.replace('"mwa32t.csv"', '"rough.csv"').replace('"mwa32t_gains.csv"', f'"{ROOT}/examples/mwa32t_gains.csv"')
    (folder / "rough.toml").write_text(text)
    run("run", folder / "rough.toml", "-o", folder, "-q", "--allow-small-rcvbuf",
        "--set", f"source.listen={endpoints(('tcp', 'tcp', 'udp', 'udp'))}", "--set", "simulator.duration_s=0.25",
        "--set", "simulator.speed=0.2", "--set", "simulator.period_samples=65536", "--set", "correlate.integration_s=0.25",
        "--set", "source.n_chunks=64", "--set", "source.close_after_ms=20000", "--set", "output.uvfits=false",
        "--set", 'source.start_utc="2026-01-01T00:00:00"')
    return folder / "mwa32t.uvh5"


@pytest.fixture(scope="module")
def geometry(visibilities, tmp_path_factory):
    """Size and width of a picture that has the source at the center of a pixel, and that pixel."""
    out = tmp_path_factory.mktemp("peak") / "x.fits"
    peak = ryle("image", visibilities, "--pixels", 1000, "-o", out)["peak"]
    assert abs(peak["l"] - L) < 0.005 and abs(peak["m"] - M) < 0.005
    assert abs(peak["elevation_deg"] - 15) < 0.5
    k = min(range(100, 200), key=lambda k: abs(k * peak["m"] / peak["l"] - round(k * peak["m"] / peak["l"])))
    cell = peak["l"] / k
    n = 2 * int(1 / cell) - 1  # odd
    return n, n * cell, n // 2 - k, n // 2 + round(k * peak["m"] / peak["l"])


def picture(visibilities, folder, geometry, *arguments):
    n, width, x, y = geometry
    done = run("image", visibilities, "--pixels", n, "--width", width, "-o", folder / "a.fits", "--overwrite", "--json",
               *arguments)
    image = fits.getdata(folder / "a.fits")[0, 0].astype(float)
    return summary(done), image, image[y, x]


def test_a_source_at_75_degrees_keeps_its_flux(visibilities, geometry, tmp_path):
    said, exact, direct = picture(visibilities, tmp_path, geometry, "--path", "direct")
    assert said["path"] == "direct"
    assert direct == pytest.approx(FLUX_JY, rel=0.01)
    stacked = ["--path", "w-stacked"]
    for arguments in ([], stacked, [*stacked, "--accuracy", 1e-4], [*stacked, "--accuracy", 1e-9]):
        said, image, flux = picture(visibilities, tmp_path, geometry, *arguments)
        # Which of the exact paths is faster is the machine's affair.
        assert said["path"] in (("w-stacked",) if arguments else ("w-stacked", "direct")) and said["warnings"] == []
        assert flux == pytest.approx(FLUX_JY, rel=0.01)
        accuracy = arguments[-1] if "--accuracy" in arguments else 1e-5
        # The pixels of the file are float, and the mean |V| is hardly above the flux.
        assert np.nanmax(np.abs(image - exact)) < (1.1 * accuracy + 2e-7) * FLUX_JY * 1.5
        assert np.array_equal(np.isnan(image), np.isnan(exact))
    # Without w it is lost, and the warning says so.
    said, _, flux = picture(visibilities, tmp_path, geometry, "--path", "gridded")
    assert flux < 0.8 * FLUX_JY
    assert any("leaves out w" in line for line in said["warnings"])


def test_the_beam_is_in_the_header_and_in_a_file(visibilities, geometry, tmp_path):
    psf = tmp_path / "psf.fits"
    n = 301
    said, _, _ = picture(visibilities, tmp_path, (n, n * 0.0005, 0, 0), "--psf", psf, "--path", "w-stacked")
    assert said["products"] == [str(tmp_path / "a.fits"), str(psf)]
    beam = fits.getdata(psf)[0, 0]
    assert beam[n // 2, n // 2] == pytest.approx(1, abs=1e-5)
    assert np.nanmax(beam) == pytest.approx(1, abs=1e-5)
    for name in (tmp_path / "a.fits", psf):
        header = fits.getheader(name)
        assert header["IMGPATH"] == "w-stacked"
        assert 0.2 < header["BMIN"] <= header["BMAJ"] < 0.7 and -90 < header["BPA"] <= 90
        assert header["CRPIX1"] == header["CRPIX2"] == n // 2 + 1
    # Half of the peak lies half of BMAJ from it, along BPA.
    angle = np.radians(header["BPA"])
    r = header["BMAJ"] / 2 / header["CDELT2"]
    x, y = n // 2 - r * np.sin(angle), n // 2 + r * np.cos(angle)
    i, j = int(x), int(y)
    a, b = x - i, y - j
    value = (beam[j, i] * (1 - a) + beam[j, i + 1] * a) * (1 - b) + (beam[j + 1, i] * (1 - a) + beam[j + 1, i + 1] * a) * b
    assert value == pytest.approx(0.5, abs=0.07)


def test_uniform_weights_make_a_narrower_beam(visibilities, tmp_path):
    widths = []
    for weight in (["natural"], ["briggs", "--robust", 0], ["uniform"]):
        said = ryle("image", visibilities, "--pixels", 200, "-o", tmp_path / "b.fits", "--overwrite", "--weight", *weight)
        widths.append(said["beam"]["major_deg"] * said["beam"]["minor_deg"])
    assert widths[0] > 1.05 * widths[1] and widths[1] >= widths[2]


def test_any_size_and_scale(visibilities, tmp_path):
    for n, path in ((2, "direct"), (33, "w-stacked"), (1021, "w-stacked")):
        ryle("image", visibilities, "--pixels", n, "--path", path, "--scale", "2amin", "-o", tmp_path / f"{n}.fits")
        with fits.open(tmp_path / f"{n}.fits") as file:
            assert file[0].data.shape == (1, 1, n, n)
            assert file[0].header["CDELT2"] == pytest.approx(2 / 60)
    for arguments, word in ((["--scale", "2"], "amin"), (["--scale", "2amin", "--width", 1], "--width"),
                            (["--accuracy", 0.5], "accuracy"), (["--robust", 1], "briggs"),
                            (["--path", "w-stacked", "--cadence", 1], "--cadence"),
                            (["--path", "w-stacked", "--implementation", "reference"], "w-stacked")):
        assert word in ryle("image", visibilities, *arguments, "-o", tmp_path / "no.fits", expect=69
                            if "--implementation" in arguments else 78)
    assert not (tmp_path / "no.fits").exists()
