# SPDX-License-Identifier: BSD-3-Clause
"""All-sky images as a user makes them: of recordings by every path, of visibilities, live (docs/imaging.md)."""

import json
import math
import pathlib
import signal
import sqlite3

import astropy.units as u
import numpy as np
import pytest
from astropy.coordinates import SkyCoord
from astropy.io import fits
from astropy.wcs import WCS
from harness import ROOT, data, free_ports, run, ryle, start, stop, summary, wait_for

LWA_SUN = (0.393, -0.141)
EDA2 = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
TEMPLATE = "eda2_20191104/dirty_image_20220406T035747506_real_TEMPLATE_512x512.fits"
EDA2_SITE = ["--frequency-mhz", "159.375", "--latitude-deg", "-26.70331940", "--longitude-deg", "116.67081524",
             "--height-m", "377"]


def tbx(*arguments, expect=0):
    return ryle("image", data("lwa/tbx-test.dat"), "--station", data("lwa/lwana-ssmif-2024may.txt"), *arguments,
                expect=expect)


def plane(path, index=0):
    return fits.getdata(path)[index, 0].astype(float)


def radius(n):
    y, x = np.mgrid[:n, :n]
    return np.hypot(x - n // 2, y - n // 2) / (n * 0.40)


# --- recordings ---------------------------------------------------------------------------------------------------

def test_tbx_shows_the_sun_by_every_path(tmp_path):
    images = {}
    for path in ("auto", "efield", "vis-grid", "vis-dft"):
        file, picture = tmp_path / f"{path}.fits", tmp_path / f"{path}.png"
        result = tbx("--path", path, "-o", file, "--png", picture)
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
    # The exact sum knows the heights of the stands above their plane, 0.04 m rms: 1e-3 of the peak.
    assert np.sqrt(np.mean((images["vis-dft"] - images["efield"])[inside] ** 2)) < 3e-3 * peak


def test_a_correlated_grid_is_the_efield_image(tmp_path):
    a = tbx("--path", "efield", "-o", tmp_path / "a.fits", "--pixels", 64)
    b = tbx("--path", "vis-grid", "--set", "image.correlated_functions=true", "-o", tmp_path / "b.fits", "--pixels", 64)
    assert (a["path"], b["path"]) == ("efield", "vis-grid")
    one, two = plane(tmp_path / "a.fits"), plane(tmp_path / "b.fits")
    use = radius(64) < 0.95
    # One identity, two ways, in fp32: image.md 12, T-EP-01.
    assert np.nanmax(np.abs(one - two)[use]) < 2e-5 * np.nanmax(one)


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


def test_bins_and_products(tmp_path):
    result = tbx("--channels-per-bin", 100, "--products", "linear", "-o", tmp_path / "a.fits", "--pixels", 64)
    assert result["image"]["n_bins"] == 4
    header = fits.getheader(tmp_path / "a.fits")
    # 312 channels from 2176 of 196 MHz / 8192: the first hundred are centred at channel 2225.5.
    width = 196e6 / 8192
    assert header["CRVAL3"] == pytest.approx(2225.5 * width, abs=1)
    assert header["CDELT3"] == pytest.approx(100 * width, abs=1e-3)
    assert header["NAXIS3"] == 4 and header["CRVAL4"] == -5


def test_time_samples_are_channelized_first(tmp_path):
    result = ryle("image", data("tart/mg-tana-raw.hdf"), "--format", "tart", "--layout",
                  data("tart/antenna_positions.json"), "--latitude-deg", -18.897, "--longitude-deg", 47.555,
                  "--height-m", 1280, "--channels", 128, "--pixels", 96, "--path", "vis-dft", "-o", tmp_path / "t.fits")
    assert any(i.startswith("channelize/") for i in result["implementations"])
    assert result["image"]["n_inputs"] == 24 and result["image"]["images"] == 1
    assert result["peak"]["sigma"] > 4  # PRN 28: 7.2 sigma in its own few channels (image.md 12)


# --- visibilities -------------------------------------------------------------------------------------------------

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


def test_visibility_paths_agree_with_the_direct_sum(tmp_path):
    vis = tmp_path / "lwa.uvh5"
    ryle("correlate", data("lwa/tbx-test.dat"), "--station", data("lwa/lwana-ssmif-2024may.txt"), "-o", vis)
    result = ryle("image", vis, "--path", "vis-grid", "-o", tmp_path / "a.fits")
    peak = result["peak"]
    assert math.hypot(peak["l"] - LWA_SUN[0], peak["m"] - LWA_SUN[1]) < 0.02 and peak["sigma"] >= 7.5
    # The same voltages without the detour.
    tbx("--path", "vis-grid", "--set", "image.dead_below=0", "--set", "image.dead_above=1e9", "-o", tmp_path / "b.fits")
    one, two = plane(tmp_path / "a.fits"), plane(tmp_path / "b.fits")
    use = radius(128) < 0.8
    # Visibilities are stored in float32: 312 channels x 8000 pairs of 6e-8 each, far below 1e-4.
    assert np.nanmax(np.abs(one - two)[use]) < 1e-4 * np.nanmax(two)


# --- errors -------------------------------------------------------------------------------------------------------

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


# --- live ---------------------------------------------------------------------------------------------------------

SOURCES = {"Cyg A": 3000, "Cas A": 2500, "Vir A": 1500}


def live_arguments(directory, *settings, duration_s=0.08, speed=0.04):
    """`ryle run examples/lwasv.toml` on a port of its own, short; the ring holds the whole run."""
    port = free_ports(1)[0]
    arguments = ["run", ROOT / "examples/lwasv.toml", "-o", directory, "--json", "-q", "--allow-small-rcvbuf",
                 "--set", f'source.listen=["udp://127.0.0.1:{port}"]', "--set", f"simulator.duration_s={duration_s}",
                 "--set", f"simulator.speed={speed}", "--set", "source.n_chunks=32", "--set",
                 "source.stall_budget_s=1.0"]
    for setting in settings:
        arguments += ["--set", setting]
    return arguments


def images_of(directory):
    return sorted(pathlib.Path(directory).glob("lwasv_image_*.fits"))


def sources_in(file):
    """Offset in pixels from its place by the header, and flux, of every simulated source."""
    with fits.open(file) as f:
        image, header = f[0].data[0, 0].astype(float), f[0].header
    wcs = WCS(header).celestial
    found = {}
    places = {"Cyg A": (299.86815, 40.73392), "Cas A": (350.85, 58.815), "Vir A": (187.70593, 12.39112)}
    for name, (ra, dec) in places.items():
        x, y = (float(v) for v in wcs.world_to_pixel(SkyCoord(ra * u.deg, dec * u.deg)))
        ix, iy = round(x), round(y)
        box = image[iy - 1:iy + 2, ix - 1:ix + 2]
        # A parabola through logarithms: exact for a Gaussian peak.
        g = np.log(np.maximum(box, 1e-3))
        dx = 0.5 * (g[1, 0] - g[1, 2]) / (g[1, 0] - 2 * g[1, 1] + g[1, 2])
        dy = 0.5 * (g[0, 1] - g[2, 1]) / (g[0, 1] - 2 * g[1, 1] + g[2, 1])
        top = g[1, 1] - 0.25 * (g[1, 0] - g[1, 2]) * dx - 0.25 * (g[0, 1] - g[2, 1]) * dy
        found[name] = (ix + dx - x, iy + dy - y, math.exp(top))
    return found


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


def test_a_silent_board_changes_weights_not_fluxes(tmp_path):
    # Board 3 of 16 never sends: 240 of 256 stands, 0.5 s of patience for it.
    s = summary(run(*live_arguments(tmp_path, "simulator.dying_receiver=3", "simulator.dies_at_s=0",
                                    "simulator.returns_at_s=0", "source.no_data_s=0.3", "image.path=vis-grid")))
    image = s["image"]
    assert s["lost_samples"] > 0 and image["images"] >= 3
    assert image["weight_fraction"] == pytest.approx(240 * 239 / (256 * 255), rel=1e-6)
    for name, (dx, dy, flux) in sources_in(images_of(tmp_path)[-1]).items():
        assert math.hypot(dx, dy) < 0.06, name
        assert flux == pytest.approx(SOURCES[name], rel=0.06), name


def test_dead_inputs_are_left_out(tmp_path):
    dead = [0, 1, 40, 77, 511]
    s = summary(run(*live_arguments(tmp_path, f"simulator.dead_inputs={dead}", duration_s=0.04)))
    assert s["image"]["n_dead_inputs"] == len(dead) and s["image"]["images"] == 2
    watched = {w["name"]: w for w in s["image"]["watched"]}
    for name, flux in SOURCES.items():
        assert watched[name]["mean_flux"] == pytest.approx(flux, rel=0.03), name


def test_an_interrupt_publishes_whole_images(tmp_path):
    process = start(*live_arguments(tmp_path, duration_s=10, speed=0.04))
    wait_for(lambda: len(images_of(tmp_path)) >= 2, timeout=60)
    code, out, err = stop(process, signal.SIGINT)
    assert code == 0, err
    s = json.loads(out.strip().splitlines()[-1])
    assert s["stopped_by_signal"] and s["image"]["images"] == len(images_of(tmp_path))
    assert not list(tmp_path.glob(".*part"))
    for file in images_of(tmp_path):
        with fits.open(file, checksum=True) as f:
            f.verify("exception")


def test_a_layout_that_does_not_fit_the_boards_is_refused(tmp_path):
    layout = tmp_path / "ten.csv"
    layout.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" +
                      "".join(f"S{k},{k},0,0,X,0\nS{k},{k},0,0,Y,0\n" for k in range(10)))
    done = run(*live_arguments(tmp_path, f"telescope.layout={layout}"), check=78)
    assert "boards" in done.stderr


def test_the_plan_names_every_path():
    plan = summary(run("plan", ROOT / "examples/lwasv.toml", "--json"))["images"]
    assert [p["path"] for p in plan["paths"]] == ["efield", "efield-half", "vis-grid", "vis-dft", "efield-dft"]
    assert plan["choice"] == "vis-grid" and plan["image_s"] == pytest.approx(0.02)
    for p in plan["paths"]:
        assert p["why_not"] or p["predicted_s"] > 0
    text = run("plan", ROOT / "examples/lwasv.toml").stdout
    assert "vis-grid" in text and "efield-dft" in text
