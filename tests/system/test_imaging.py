# SPDX-License-Identifier: BSD-3-Clause
"""All-sky images as a user makes them: of recordings by every path, of visibilities, live (docs/imaging.md)."""

import math
import sqlite3

import numpy as np
import pytest
from astropy.io import fits
from harness import ROOT, data, run, ryle, summary
from imaging import LWA_SUN, SOURCES, images_of, live_arguments, plane, radius, sources_in, tbx

EDA2 = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
TEMPLATE = "eda2_20191104/dirty_image_20220406T035747506_real_TEMPLATE_512x512.fits"
EDA2_SITE = ["--frequency-mhz", "159.375", "--latitude-deg", "-26.70331940", "--longitude-deg", "116.67081524",
             "--height-m", "377"]


def test_tbx_shows_the_sun_by_every_path(tmp_path):
    images = {}
    for path in ("auto", "efield", "vis-grid", "vis-dft"):
        file, picture = tmp_path / f"{path}.fits", tmp_path / f"{path}.png"
        pixels = 64 if path == "vis-dft" else 128  # the same sky, coarser: the exact sum takes its time
        result = tbx("--path", path, "-o", file, "--png", picture, "--pixels", pixels)
        peak = result["peak"]
        assert peak["sigma"] >= 7.5, path
        assert math.hypot(peak["l"] - LWA_SUN[0], peak["m"] - LWA_SUN[1]) < 0.02, path
        # The engine says what ran, and the path asked for is the path taken.
        assert result["path"] == path or path == "auto"
        assert result["implementation"].startswith(result["path"] + "/")
        assert picture.stat().st_size > 20000
        assert fits.getheader(file)["IMGPATH"].strip() == result["path"]
        images[path] = plane(file)
    r, peak = radius(128), np.nanmax(images["efield"])
    # Gridding error inside r < 0.6, ES k = 7, cell 0.40, direct function on the baseline: 5e-7 rms (image.md 2).
    inside = r < 0.6
    assert np.sqrt(np.mean((images["vis-grid"] - images["efield"])[inside] ** 2)) < 1e-5 * peak
    # Every second pixel of 128 is a pixel of 64. The exact sum knows the heights of the stands above their plane, 0.04 m
    # rms: 1e-3 of the peak.
    exact, grid = images["vis-dft"], images["efield"][::2, ::2]
    assert np.sqrt(np.mean((exact - grid)[radius(64) < 0.6] ** 2)) < 3e-3 * peak


def test_watch_list_and_light_curves(tmp_path):
    store = tmp_path / "watch.sqlite"
    result = tbx("--watch", "sun, Cas A, Tau A, Vir A", "--light-curves", store, "-o", tmp_path / "a.fits", "--path",
                 "vis-grid")
    watched = {w["name"].lower(): w for w in result["image"]["watched"]}
    # The exact sum at the Sun's place is the image there, to the pixel's offset from it.
    assert watched["sun"]["flux"] == pytest.approx(result["peak"]["value"], rel=0.15)
    below = watched["vir a"]
    assert below["elevation_deg"] < 0 and below["flux"] is None and below["n_images"] == 0
    assert any("Vir A" in w and "below the horizon" in w for w in result["warnings"])
    db = sqlite3.connect(store)
    rows = db.execute("select name, i, elevation_deg from sample join source on source.id = sample.source").fetchall()
    assert len(rows) == 4
    values = {name.lower(): (i, elevation) for name, i, elevation in rows}
    assert values["vir a"][0] is None and values["vir a"][1] < 0
    assert values["sun"][0] == pytest.approx(watched["sun"]["flux"])


def test_eda2_agrees_with_the_published_image(tmp_path):
    result = ryle("image", data(EDA2.format("real")), "--imag", data(EDA2.format("imag")), "--antennas",
                  data("eda2_20191104/antenna_locations.txt"), *EDA2_SITE, "--path", "vis-grid", "--pixels", 256, "-o",
                  tmp_path / "eda2.fits")
    peak = result["peak"]
    assert peak["sigma"] == pytest.approx(65.0, rel=0.02)
    assert math.hypot(peak["l"] - 0.087, peak["m"] - 0.203) < 0.006
    ours, theirs = plane(tmp_path / "eda2.fits"), fits.getdata(data(TEMPLATE)).astype(float)
    # Theirs: no coordinates; zenith at (256, 256), 163 pixels per direction cosine (found by correlation), l to the
    # right, m up; nearest-cell gridding. Ours: l to the left, 256 x 0.40 pixels per direction cosine.
    row, column = np.mgrid[:512, :512]
    l, m = (column - 256) / 163, (row - 256) / 163
    use = np.hypot(l, m) < 0.5

    def correlation(sign_l, sign_m):
        x, y = 128 - sign_l * l[use] * 102.4, 128 + sign_m * m[use] * 102.4
        x0, y0 = np.floor(x).astype(int), np.floor(y).astype(int)
        fx, fy = x - x0, y - y0
        value = (ours[y0, x0] * (1 - fx) * (1 - fy) + ours[y0, x0 + 1] * fx * (1 - fy) +
                 ours[y0 + 1, x0] * (1 - fx) * fy + ours[y0 + 1, x0 + 1] * fx * fy)
        return np.corrcoef(value, theirs[use])[0, 1]

    assert correlation(1, 1) > 0.985  # 0.999 with a better rule between pixels than the bilinear one
    assert max(abs(correlation(-1, 1)), abs(correlation(1, -1)), abs(correlation(-1, -1))) < 0.2
    assert np.nanmax(ours) == pytest.approx(theirs.max(), rel=0.01)


def test_errors_say_what_is_wrong(tmp_path):
    out = tmp_path / "a.fits"
    wrong = ryle("image", data("lwa/tbx-test.dat"), "--station", data("lwa/lwasv-ssmif.txt"), "-o", out, expect=78)
    assert "512 inputs" in wrong and "128" in wrong
    assert "nothing to write" in tbx(expect=78)
    assert "Cyg Z" in tbx("--watch", "Cyg Z", "-o", out, expect=78)
    assert "more than the limit" in tbx("--pixels", 2048, "--set", "runtime.max_memory_gib=0.001", "-o", out, expect=78)
    assert "path" in tbx("--path", "moff", "-o", out, expect=78)
    assert "even" in tbx("--pixels", 63, "-o", out, expect=78)
    assert list(tmp_path.iterdir()) == []


def test_options_of_the_other_imager_are_refused(tmp_path):
    out = tmp_path / "a.fits"
    for option, value in {"--cadence": 1, "--channels-per-bin": 2, "--cell": 0.4, "--support": 5, "--products": "linear",
                          "--watch": "sun", "--trigger": 8, "--light-curves": out, "--frames": tmp_path / "f",
                          "--movie": tmp_path / "m.mp4", "--gains": "g.csv"}.items():
        message = ryle("image", "not-there.ms", option, value, "-o", out, expect=78)
        assert option in message and "--path" in message
    for option, value in {"--width": 1, "--channel-average": 2, "--taper": 0.1, "--stokes": "XX"}.items():
        assert option in tbx(option, value, "-o", out, expect=78)
        assert option in ryle("image", "not-there.ms", "--path", "auto", option, value, "-o", out, expect=78)
    assert "--watch" in tbx("--light-curves", tmp_path / "l.sqlite", expect=78)
    assert list(tmp_path.iterdir()) == []


def test_nothing_alive_is_an_error(tmp_path):
    # 28 bytes of header, then 12 channels x 64 stands x 2 polarizations of one byte (image.md 8).
    frames = bytearray(data("lwa/tbx-test.dat").read_bytes())
    size = 28 + 12 * 128
    for at in range(0, len(frames) - size, size):
        frames[at + 28:at + size] = bytes(size - 28)
    silent = tmp_path / "silent.dat"
    silent.write_bytes(frames)
    station = data("lwa/lwana-ssmif-2024may.txt")
    message = ryle("image", silent, "--station", station, "-o", tmp_path / "a.fits", expect=65)
    assert "128 inputs are dead" in message
    layout = tmp_path / "bad.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns,bad\n" +
                      "".join(f"S{k},{k},{k % 7},0,{p},0,1\n" for k in range(64) for p in "XY"))
    message = ryle("image", data("lwa/tbx-test.dat"), "--layout", layout, "--latitude-deg", 34, "--longitude-deg", -107,
                   "-o", tmp_path / "a.fits", expect=65)
    assert "every input bad" in message
    assert not (tmp_path / "a.fits").exists()


def test_live_images_show_what_was_simulated(tmp_path):
    s = summary(run(*live_arguments(tmp_path)))
    assert s["packets_received"] == s["packets_used"] + s["packets_rejected_total"]
    image = s["image"]
    # 2000 spectra in images of 500.
    assert image["images"] == 4 and image["dropped"] == 0
    assert image["weight_fraction"] == pytest.approx(1) and s["lost_samples"] == 0
    files = images_of(tmp_path)
    assert len(files) == 4 and (tmp_path / "lwasv_latest.png").stat().st_size > 20000
    assert not list(tmp_path.glob(".*part"))
    header = fits.getheader(files[0])
    assert header["BUNIT"].strip() == "Jy/beam" and header["CRVAL3"] == pytest.approx(60.0875e6)
    for name, (dx, dy, flux) in sources_in(files[1]).items():
        assert math.hypot(dx, dy) < 0.05, name
        assert flux == pytest.approx(SOURCES[name], rel=0.05), name
    watched = {w["name"]: w for w in image["watched"]}
    for name, flux in SOURCES.items():
        # The other sources' side lobes: 1/256 rms each; clipping of 4-bit samples: 1 %.
        assert watched[name]["mean_flux"] == pytest.approx(flux, rel=0.03), name
        assert watched[name]["n_images"] == 4
    assert watched["Sun"]["elevation_deg"] < 0 and watched["Sun"]["flux"] is None


def test_a_layout_that_does_not_fit_the_boards_is_refused(tmp_path):
    layout = tmp_path / "ten.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" +
                      "".join(f"S{k},{k},0,0,X,0\nS{k},{k},0,0,Y,0\n" for k in range(10)))
    done = run(*live_arguments(tmp_path, f"telescope.layout={layout}"), check=78)
    assert "boards" in done.stderr


def test_the_plan_names_every_path():
    on_cpu = ("--set", "runtime.device=cpu")  # whatever devices there are
    plan = summary(run("plan", ROOT / "examples/lwasv.toml", *on_cpu, "--json"))["images"]
    assert [p["path"] for p in plan["paths"]] == ["efield", "efield-half", "vis-grid", "vis-dft", "efield-dft"]
    assert plan["choice"] == "vis-grid" and plan["image_s"] == pytest.approx(0.02)
    for p in plan["paths"]:
        assert p["why_not"] or p["predicted_s"] > 0
        # LWA-SV: 0.224 m rms over its plane (image.md 3), 60.17 MHz, 75 degrees from zenith: 0.21 rad, coherence 0.979.
        gridded = p["path"] in ("efield", "vis-grid")
        assert p["height_phase_rad"] == pytest.approx(0.209 if gridded else 0, abs=0.005)
        assert p["height_error"] == pytest.approx(1 - 0.979**2 if gridded else 0, abs=0.003)
    text = run("plan", ROOT / "examples/lwasv.toml", *on_cpu).stdout
    assert "vis-grid" in text and "efield-dft" in text and "heights off the plane" in text
    assert plan["warning"] == ""
    high = summary(run("plan", ROOT / "examples/lwasv.toml", *on_cpu, "--json", "--set", "image.min_coherence=0.99"))
    assert high["images"]["choice"] in ("vis-dft", "efield-dft") and not any("plane" in w for w in high["warnings"])
    forced = summary(run("plan", ROOT / "examples/lwasv.toml", *on_cpu, "--json", "--set", "image.min_coherence=0.99", "--set",
                         "image.path=vis-grid"))
    assert forced["images"]["choice"] == "vis-grid" and any("off its plane" in w for w in forced["warnings"])
