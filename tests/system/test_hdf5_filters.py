# SPDX-License-Identifier: BSD-3-Clause
"""Every reader of HDF5 takes files compressed by LZF, as h5py and pyuvdata write them, and names a filter it lacks."""
import json

import numpy as np
import pytest
from harness import run, ryle

h5py = pytest.importorskip("h5py")

LZF = {"compression": "lzf", "shuffle": True}
BZIP2 = 307  # in no Debian library that Ryle uses


def write_scans(path, missing=None, **options):
    random = np.random.default_rng(3)
    n = 5_000
    columns = {"ra": random.uniform(9.6, 10.4, n), "dec": random.uniform(19.6, 20.4, n),
               "Ta": random.standard_normal((n, 2)).astype(np.float32)}
    with h5py.File(path, "w") as file:
        for name, values in columns.items():
            if name == missing:
                put_with_filter(file, name, values, BZIP2)
            else:
                file.create_dataset(name, data=values, chunks=(700, *values.shape[1:]), **options)
    return path


def put_with_filter(file, name, values, number):
    """A data set whose one chunk says that filter `number` made it."""
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_chunk(values.shape)
    properties.set_filter(number, h5py.h5z.FLAG_OPTIONAL, ())
    space = h5py.h5s.create_simple(values.shape)
    made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(values.dtype), space, properties)
    made.write_direct_chunk((0,) * values.ndim, values.tobytes())


def write_tart(path, missing=False, **options):
    random = np.random.default_rng(4)
    bits = random.integers(0, 256, (4, 2**14), dtype=np.uint8)
    config = {"sampling_frequency": 16.368e6, "frequency": 1575.42e6, "baseband_frequency": 4.092e6, "num_antenna": 4}
    with h5py.File(path, "w") as file:
        file["config"] = json.dumps(config)
        file["timestamp"] = "2026-06-12T11:20:40+00:00"
        if missing:
            put_with_filter(file, "data", bits, BZIP2)
        else:
            file.create_dataset("data", data=bits, chunks=(2, 5000) if options else None, **options)
    return path


MAP = ["--kernel", "gauss:3arcmin", "--target", "center=10,20 size=1x1deg cell=2arcmin proj=SIN"]


def test_scans(tmp_path):
    for name, options in (("plain", {}), ("lzf", LZF)):
        done = ryle("grid", write_scans(tmp_path / f"{name}.hdf5", **options), *MAP, "-o", tmp_path / f"{name}.fits")
        assert done["covered_cells"] > 0
    fits = pytest.importorskip("astropy.io.fits")
    maps = [fits.getdata(tmp_path / f"{name}.fits") for name in ("plain", "lzf")]
    assert np.array_equal(*maps, equal_nan=True)


def test_samples(tmp_path):
    sums = []
    layout = tmp_path / "layout.json"
    layout.write_text(json.dumps({"antenna_positions": [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]}))
    for name, options in (("plain", {}), ("lzf", LZF)):
        path = write_tart(tmp_path / f"{name}.hdf", **options)
        out = tmp_path / f"{name}.uvh5"
        done = ryle("correlate", path, "--format", "tart", "--layout", layout, "--latitude-deg", "-18.9", "--longitude-deg",
                    "47.5", "--height-m", "1280", "--integration", "0.001", "--channels", "16", "-o", out)
        assert done["integrations"] > 0 and done["lost_samples"] == 0
        with h5py.File(out) as file:
            sums.append(file["Data/visdata"][()])
    assert np.array_equal(*sums)


def test_a_filter_that_is_missing_is_named_and_nothing_is_made(tmp_path):
    scans = write_scans(tmp_path / "scans.hdf5", missing="Ta")
    message = run("grid", scans, *MAP, "-o", tmp_path / "no.fits", check=69).stderr
    assert "307 (bzip2)" in message and "/Ta" in message and str(scans) in message and "LZF" in message
    tart = write_tart(tmp_path / "tart.hdf", missing=True)
    message = run("info", tart, check=69).stderr
    assert "307 (bzip2)" in message and "/data" in message and str(tart) in message
    assert not list(tmp_path.glob("*.fits"))
