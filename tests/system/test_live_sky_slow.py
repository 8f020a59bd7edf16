# SPDX-License-Identifier: BSD-3-Clause
"""Live packets of an F-engine: visibilities next to the images, and a flash that is found (docs/imaging.md)."""

import json
import math
import sqlite3
import xml.etree.ElementTree as tree

import numpy as np
import pytest
from astropy.io import fits
from astropy.time import Time
from harness import run, ryle, summary
from imaging import SOURCES, images_of, live_arguments, plane, radius, sources_in

FLASH = (-0.35, 0.3)
QUIET = ("image.fits=false", "image.latest=false")


def test_visibilities_of_the_same_run_show_the_same_sky(tmp_path):
    s = summary(run(*live_arguments(tmp_path, "output.uvh5=true", "output.pictures=false", "correlate.integration_s=0.02",
                                    "image.path=vis-grid", "image.trigger_sigma=0", "image.watch=[]", "image.latest=false",
                                    duration_s=0.04)))
    assert s["integrations"] == 2 and s["image"]["images"] == 2 and s["errors"] == [] and s["warnings"] == []
    assert str(tmp_path / "lwasv.uvh5") in s["products"] and s["dropped_dumps"] == 0
    again = tmp_path / "again.fits"
    ryle("image", tmp_path / "lwasv.uvh5", "--path", "vis-grid", "--pixels", 128, "--cadence", 0.02, "-o", again)
    live = images_of(tmp_path)
    with fits.open(again) as f:
        from_visibilities = [f[f"IMAGE{k}"].data[0, 0].astype(float) for k in (1, 2)]
    for ours, file in zip(from_visibilities, live):
        theirs, inside = plane(file), radius(128) < 0.9
        # The same codes, corrected for four bits exactly in visibilities and to first order in pictures. Pairs have
        # correlations below 0.3 and k_3^2 / k_1^2 < 1e-3: 1e-4 of the peak. Measured: 4e-5.
        assert np.max(np.abs(ours - theirs)[inside]) < 1e-4 * np.max(theirs[inside])
    for name, (dx, dy, flux) in sources_in(live[0]).items():
        assert math.hypot(dx, dy) < 0.05, name
        assert flux == pytest.approx(SOURCES[name], rel=0.05), name


def test_a_flash_is_found_once_where_and_when_it_was(tmp_path):
    # 80 images of 25 spectra; the flash of the example fills four of them, the 61st to the 64th.
    s = summary(run(*live_arguments(tmp_path, *QUIET, "image.cadence_s=0.001", "image.watch=[]", "voltages.ring_s=0.1",
                                    "voltages.margin_s=0.002", "voltages.trigger_snr=8")))
    assert s["packets_received"] == s["packets_used"] + s["packets_rejected_total"] and s["lost_samples"] == 0
    assert s["image"]["images"] == 80 and s["image"]["dropped"] == 0
    assert s["image"]["events"] == 1
    files = sorted(tmp_path.glob("lwasv_event_*.xml"))
    assert len(files) == 1 and str(files[0]) in s["products"] and not list(tmp_path.glob(".*part"))
    root = tree.parse(files[0]).getroot()
    assert root.tag == "{http://www.ivoa.net/xml/VOEvent/v2.0}VOEvent" and root.get("version") == "2.0"
    assert root.get("role") == "test", "simulated"
    assert root.get("ivorn").startswith("ivo://ryle/LWA_SV_like#")
    assert [child.tag for child in root] == ["Who", "What", "WhereWhen", "Why"]
    assert root.find("Who/AuthorIVORN").text and Time(root.find("Who/Date").text) > Time("2026-01-01")
    parameters = {p.get("name"): float(p.get("value")) for p in root.iter("Param")}
    pixel = 1 / (128 * 0.40)
    assert abs(parameters["l"] - FLASH[0]) < pixel and abs(parameters["m"] - FLASH[1]) < pixel
    # 400 Jy at the middle of a pixel, less beside it; 200 samples of noise-like flux scatter by 7 %: 5 sigma above.
    assert 150 < parameters["peak"] < 540 and parameters["snr_i"] > 8
    coordinates = root.find(".//AstroCoords")
    assert coordinates.get("coord_system_id") == "UTC-ICRS-TOPO"
    when = Time(coordinates.find("Time/TimeInstant/ISOTime").text, scale="utc")
    error_s = float(coordinates.find("Time/Error").text)
    assert abs((when - Time("2024-06-27T06:00:00.062", scale="utc")).sec) <= 0.0045 and 0 < error_s < 0.005
    ra, dec = (float(coordinates.find(f"Position2D/Value2/C{k}").text) for k in (1, 2))
    error_deg = float(coordinates.find("Position2D/Error2Radius").text)
    assert 0.3 < error_deg < 1
    # Its voltages are dumped, with the margins and no more than the images of the event.
    assert s["voltages"]["dumps"] == 1 and s["voltages"]["triggers"] == 1
    dump = json.loads(run("info", tmp_path / "lwasv_voltages_00001.h5", "--json").stdout)
    begin_s = (Time(dump["start_utc"], scale="utc") - Time("2024-06-27T06:00:00", scale="utc")).sec
    middle_s = (when - Time("2024-06-27T06:00:00", scale="utc")).sec
    assert middle_s - 0.012 < begin_s < middle_s - 0.002 and middle_s + 0.002 < begin_s + dump["duration_s"] < middle_s + 0.012
    with sqlite3.connect(tmp_path / "lwasv_light_curves.sqlite") as store:
        rows = store.execute("SELECT ra_deg, dec_deg, l, m FROM event").fetchall()
    assert len(rows) == 1 and rows[0] == pytest.approx((ra, dec, parameters["l"], parameters["m"]), abs=1e-5)
