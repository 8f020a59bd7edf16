# SPDX-License-Identifier: BSD-3-Clause
"""GPS satellites through Ryle's own F and X engines: 24 antennas x 64 ms of real one-bit samples.

The recording gets eleven more inputs: one-bit replicas of the satellites' signals. The products of antenna and replica then
hold the phase with which each satellite reaches each antenna, and one phase an antenna plus one direction a satellite
must explain them all. A lost, swapped or shifted input, a wrong phase of a channel, or a gap would not survive that.
"""
import json
import math
import shutil

import numpy as np
import pytest
from astropy.io import fits
from harness import data, ryle

h5py = pytest.importorskip("h5py")
import tart_satellites  # noqa: E402

SITE = ("--latitude-deg", "-18.8971446", "--longitude-deg", "47.5551677", "--height-m", "1280")
REQUIRED_COHERENCE = 0.94


@pytest.fixture(scope="module")
def recording():
    folder = data("tart/mg-tana-raw.hdf").parent
    return folder, *tart_satellites.load(folder)


def augmented(tmp_path, folder, bits, config):
    """The recording with the replicas as inputs 24 and up, and a layout in which they stand at the origin."""
    made = tart_satellites.replicas(bits, config)
    path = tmp_path / "augmented.hdf"
    shutil.copy(folder / "mg-tana-raw.hdf", path)
    path.chmod(0o644)
    with h5py.File(path, "r+") as f:
        all_bits = np.packbits(np.concatenate([bits, made]), axis=1)
        del f["data"]
        f["data"] = all_bits
    layout = json.loads((folder / "antenna_positions.json").read_text())
    layout["antenna_positions"] += [[0.0, 0.0, 0.0]] * len(made)
    (tmp_path / "layout.json").write_text(json.dumps(layout))
    return path, tmp_path / "layout.json"


def products(path, n_antennas, n_replicas):
    """<antenna conj(replica)> summed over channels [replica][antenna][dump], and the number of dumps."""
    with h5py.File(path) as f:
        header, values = f["Header"], f["Data/visdata"]
        ant_1, ant_2, times = (header[k][:] for k in ("ant_1_array", "ant_2_array", "time_array"))
        # The file holds conj(V_ij) for ant_1 = i, ant_2 = j (conventions.md 5).
        summed = np.conj(values[:].reshape(len(times), -1).sum(1))
    n_dumps = len(np.unique(times))
    out = np.zeros((n_replicas, n_antennas, n_dumps), complex)
    dump = np.unique(times, return_inverse=True)[1]
    for a, b, d, v in zip(ant_1, ant_2, dump, summed):
        if a < n_antennas <= b:
            out[b - n_antennas, a, d] = v
    return out


@pytest.fixture(scope="module")
def vectors(recording, tmp_path_factory):
    """What Ryle's correlator says of every satellite: the phases with which it reaches the antennas, the eigenvalue ratio."""
    folder, bits, config, _ = recording
    directory = tmp_path_factory.mktemp("tart")
    path, layout = augmented(directory, folder, bits, config)
    out = directory / "satellites.uvh5"
    summary = ryle("correlate", path, "--format", "tart", "--layout", layout, *SITE, "--integration", "0.001",
                   "--channels", "64", "-o", out)
    assert summary["integrations"] >= 60
    return tart_satellites.array_vectors(products(out, 24, len(tart_satellites.DOPPLER)))


def test_every_satellite_is_coherent_over_the_array(recording, vectors):
    positions = recording[3]
    vectors, ratios = vectors
    coherence = tart_satellites.joint_fit(vectors, positions)
    print({prn: round(c, 3) for prn, c in coherence.items()})
    for prn, c in coherence.items():
        assert c >= REQUIRED_COHERENCE, f"PRN {prn}: coherence {c:.3f}, all: {coherence}"
        assert ratios[prn] > 10, f"PRN {prn}: eigenvalue ratio {ratios[prn]:.1f}"


def test_the_fit_would_notice_a_swapped_pair_of_antennas(recording):
    """Otherwise the coherence would prove nothing: vectors made from directions fit perfectly, two swapped ones do not."""
    *_, positions = recording
    k = 2 * np.pi * tart_satellites.RADIO_FREQUENCY / tart_satellites.SPEED_OF_LIGHT
    random = np.random.default_rng(1)
    gains = np.exp(2j * np.pi * random.random(24))
    vectors = {prn: gains * np.exp(1j * k * (positions @ random.uniform(-.6, .6, 2))) for prn in tart_satellites.DOPPLER}
    assert min(tart_satellites.joint_fit(vectors, positions).values()) > 0.999
    swapped = positions.copy()
    swapped[[3, 17]] = swapped[[17, 3]]
    assert min(tart_satellites.joint_fit(vectors, swapped).values()) < REQUIRED_COHERENCE


def at(image, l, m):
    """Largest pixel within one of a direction, and its offset in direction cosines."""
    n = len(image)
    x, y = round(n // 2 - 0.40 * n * l), round(n // 2 + 0.40 * n * m)
    box = image[y - 1:y + 2, x - 1:x + 2]
    dy, dx = np.unravel_index(np.nanargmax(box), box.shape)
    x, y = x + dx - 1, y + dy - 1
    return image[y, x], math.hypot(l + (x - n // 2) / (0.40 * n), m - (y - n // 2) / (0.40 * n))


def in_sigma(image):
    middle = np.nanmedian(image)
    return (image - middle) / (1.4826 * np.nanmedian(np.abs(image - middle)))


# A synthesized beam of 24 antennas within 1.7 m: 0.6 wavelengths of 0.19 m over an rms radius of 1.05 m (FWHM, direction cosines).
BEAM = 0.055


@pytest.mark.parametrize("through", ["voltages", "visibilities"])
def test_satellites_stand_in_the_image_where_the_fit_has_them(recording, vectors, tmp_path, through):
    """64 ms of the voltages as they are: what stands out of the noise of the sky stands at its place."""
    folder, _, _, positions = recording
    phases, directions, _ = tart_satellites.fit(vectors[0], positions)
    phases, directions = tart_satellites.above_the_horizon(phases, directions, positions)
    assert max(math.hypot(*d) for d in directions.values()) < 1
    images = {}
    tried = {"right": phases, "wrong": phases.conj()} if through == "voltages" else {"right": phases}
    for name, gains in tried.items():
        tart_satellites.write_gains(tmp_path / "gains.csv", gains)
        source = folder / "mg-tana-raw.hdf"
        arguments = ["--format", "tart", "--layout", folder / "antenna_positions.json", *SITE, "--channels", 64]
        if through == "visibilities":
            ryle("correlate", source, *arguments, "--integration", 0.064, "-o", tmp_path / "tart.uvh5", "--overwrite")
            source, arguments = tmp_path / "tart.uvh5", []
        result = ryle("image", source, *arguments, "--channels-per-bin", 8, "--path", "vis-grid", "--gains",
                      tmp_path / "gains.csv", "-o", tmp_path / "tart.fits", "--overwrite")
        assert result["path"] == "vis-grid"
        cube, header = fits.getdata(tmp_path / "tart.fits")[0], fits.getheader(tmp_path / "tart.fits")
        frequency = header["CRVAL3"] + header["CDELT3"] * np.arange(len(cube))
        inside = np.abs(frequency - tart_satellites.RADIO_FREQUENCY) < 1.02e6  # most of the power of the C/A codes
        images[name] = in_sigma(cube[inside].astype(float).mean(0))
    # image.md 12 has 7.2, 5.2, 4.5, 4.5 in another 2 MHz. A place is good to half a beam over its signal-to-noise ratio (1 sigma)
    # on each axis, and half a pixel of 1 / (128 x 0.40).
    for prn, least in {28: 7.0, 16: 4.9, 26: 4.3, 31: 4.0, 27: 3.6}.items():
        sigma, off = at(images["right"], *directions[prn])
        assert sigma > least, prn
        assert off < 2 * math.sqrt(2) * BEAM / (2 * sigma) + 0.5 * math.sqrt(2) / (128 * 0.40), prn
        assert "wrong" not in images or at(images["wrong"], *directions[prn])[0] < 3.6, prn
    # The brightest is the brightest of the whole sky.
    assert np.nanmax(images["right"]) == at(images["right"], *directions[28])[0]
