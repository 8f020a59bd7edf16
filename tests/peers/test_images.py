# SPDX-License-Identifier: BSD-3-Clause
"""Image cubes by h5py, light curves by Python's own sqlite3, VOEvents by an XML parser."""
import sqlite3
import xml.etree.ElementTree as tree

import numpy as np
from conftest import module


def test_h5py_reads_the_cube(products):
    h5py = module("h5py")
    with h5py.File(products / "cube.h5", "r") as file:
        assert file["images"].shape == (4, 4, 3, 128, 128) and file["weights"].shape == (4, 4, 3)
        assert np.array_equal(file["images"][:, 0, 0, 0, 0], [0, 1, 2, 3])
        assert np.all(np.diff(file["start_tai_ns"][:]) == 5_000_000_000)
        assert np.allclose(file["Header/bin_center_hz"][:], [60.0125e6, 60.0625e6, 60.1e6])
        assert list(file["Header/stokes"][:]) == [1, 2, 3, 4] and file["Header/complete"][()] == 1
        assert file["Header/plane_alpha"][()] == -0.0262


def test_sqlite_reads_the_light_curve(products):
    with sqlite3.connect(f"file:{products / 'watch.sqlite'}?mode=ro", uri=True) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        rows = file.execute("SELECT utc, name, bin, i, v, weight FROM sample JOIN image ON image.id = image "
                            "JOIN source ON source.id = source ORDER BY start_tai_ns").fetchall()
        assert [row[3] for row in rows] == [0.0, 1.5, 3.0, None] and rows[0][1:3] == ("Cyg A", 1)
        assert rows[0][0].startswith("2024-06-27T17:32:") and rows[3][5] == 0
        bins = file.execute("SELECT center_hz, width_hz FROM bin ORDER BY bin").fetchall()
        assert np.allclose(bins, [[60.0125e6, 50e3], [60.0625e6, 50e3], [60.1e6, 25e3]])
        assert file.execute("SELECT center_hz FROM light_curve").fetchone() == (60.0625e6,)
        snr, cutout = file.execute("SELECT snr_i, cutout FROM event").fetchone()
        assert snr == 12 and np.array_equal(np.frombuffer(cutout, np.float32), [0.5, 1.5])


def test_voevent_is_well_formed(products):
    root = tree.parse(products / "event.xml").getroot()
    assert root.tag == "{http://www.ivoa.net/xml/VOEvent/v2.0}VOEvent" and root.get("version") == "2.0"
    parameters = {p.get("name"): p.get("value") for p in root.iter("Param")}
    assert parameters["snr_i"] == "12" and "snr_q" not in parameters and parameters["duration"] == "0.32"
    assert abs(float(root.find(".//C1").text) - np.degrees(1)) < 1e-5
    assert [child.tag for child in root] == ["Who", "What", "WhereWhen", "Why"]
