# SPDX-License-Identifier: BSD-3-Clause
"""GPS satellites through Ryle's own F and X engines: 24 antennas x 64 ms of real one-bit samples.

The recording gets eleven more inputs: one-bit replicas of the satellites' signals. The products of antenna and replica then
hold the phase with which each satellite reaches each antenna, and one phase an antenna plus one direction a satellite
must explain them all. A lost, swapped or shifted input, a wrong phase of a channel, or a gap would not survive that.
"""
import json
import shutil

import numpy as np
import pytest
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
