# SPDX-License-Identifier: BSD-3-Clause
"""Covariance pairs: nothing that the two files do not say is guessed in silence."""
import math

import numpy as np
import pytest
from astropy.io import fits
from harness import run, ryle, start, stop

LATITUDE_DEG, LONGITUDE_DEG = -26.7, 116.67
FREQUENCY_HZ = 150e6
WAVE_M = 299792458.0 / FREQUENCY_HZ
SITE = ["--frequency-mhz", "150", "--latitude-deg", LATITUDE_DEG, "--longitude-deg", LONGITUDE_DEG]
SOURCE = (0.3125, -0.1875)  # a pixel of 256 and 160
N = 40


def positions():
    """East, north, height in metres of a disc that is longer than it is wide, seeded."""
    generator = np.random.default_rng(17)
    places = generator.normal(0, 1, (N, 3)) * [14, 9, 0]
    return places


def write_pair(folder, stem="20220406T035747506_vis", conjugated=False, dead=(), junk=(), flux=100.0):
    """One source at SOURCE, V_ab = <v_a conj(v_b)> phased to the zenith."""
    l, m = SOURCE
    places = positions()
    phase = 2j * math.pi / WAVE_M * (places @ [l, m, math.sqrt(1 - l * l - m * m) - 1])
    field = math.sqrt(flux) * np.exp(phase)
    matrix = np.outer(field, field.conj())
    for a in junk:
        matrix[a, :] = matrix[:, a] = 1e5
    for a in dead:
        matrix[a, :] = matrix[:, a] = 0
    if conjugated:
        matrix = matrix.conj()
    names = []
    for part, values in (("real", matrix.real), ("imag", matrix.imag)):
        names.append(folder / f"{stem}_{part}.fits")
        fits.writeto(names[-1], values.astype(np.float32), overwrite=True)
    layout = folder / "antennas.txt"
    layout.write_text("".join(f"A{k} {x} {y} {z}\n" for k, (x, y, z) in enumerate(places)))
    return [names[0], "--imag", names[1], "--antennas", layout, *SITE]


def image(folder, *arguments, pair=None, expect=0):
    out = folder / "image.fits"
    arguments = [*(pair or write_pair(folder)), *arguments, "-o", out, "--overwrite", "--equalize", "no", "--device", "cpu"]
    result = ryle("image", *arguments, expect=expect)
    return (result, fits.getheader(out)) if expect == 0 else result


def history(header):
    return "".join(str(line).ljust(72) for line in header["HISTORY"])


def test_the_sign_is_given_or_refused_never_guessed(tmp_path):
    for conjugated in (False, True):
        pair = write_pair(tmp_path, conjugated=conjugated)
        result, header = image(tmp_path, "--conjugate", "yes" if conjugated else "no", pair=pair)
        assert (result["peak"]["l"], result["peak"]["m"]) == pytest.approx(SOURCE, abs=0.005)
        said = [line for line in result["assumptions"] if "sign" in line]
        assert said == [f"covariance sign: conjugated: {'yes' if conjugated else 'no'}, as given"]
        assert "covariance sign: conjugated:" in " ".join(history(header).split())
    # There is no Sun in these values: nothing tells.
    message = image(tmp_path, expect=78)
    assert "--conjugate" in message and "Sun" in message and "sigma" in message


def test_a_sun_that_stands_out_tells_and_is_named(tmp_path):
    # 2022-04-06T03:57:47.506: the Sun stands near (l, m) = (0.09, 0.55) there; the source is put where it is.
    from astropy import units
    from astropy.coordinates import AltAz, EarthLocation, get_sun
    from astropy.time import Time
    from astropy.utils import iers
    iers.conf.auto_download = False
    iers.conf.iers_degraded_accuracy = "ignore"
    when = Time("2022-04-06T03:57:47.506")
    site = EarthLocation.from_geodetic(LONGITUDE_DEG * units.deg, LATITUDE_DEG * units.deg)
    sun = get_sun(when).transform_to(AltAz(obstime=when, location=site))
    global SOURCE
    before, SOURCE = SOURCE, (float(np.cos(sun.alt) * np.sin(sun.az)), float(np.cos(sun.alt) * np.cos(sun.az)))
    try:
        for conjugated in (False, True):
            result, _ = image(tmp_path, pair=write_pair(tmp_path, conjugated=conjugated))
            assert (result["peak"]["l"], result["peak"]["m"]) == pytest.approx(SOURCE, abs=0.01)
            said = next(line for line in result["assumptions"] if "sign" in line)
            assert f"conjugated: {'yes' if conjugated else 'no'}, found from the Sun" in said and "sigma" in said
    finally:
        SOURCE = before


def test_gains_need_a_sign_that_is_known(tmp_path):
    gains = tmp_path / "gains.csv"
    gains.write_text("input,amplitude,phase_deg\n" + "".join(f"{k},1,0\n" for k in range(N)))
    message = image(tmp_path, "--path", "vis-grid", "--gains", gains, expect=78)
    assert "--conjugate" in message and "after the conjugation" in message


def test_antennas_without_values_do_not_dilute_the_flux(tmp_path):
    pair = write_pair(tmp_path, dead=(3, 7, 21, 30))
    result, _ = image(tmp_path, "--conjugate", "no", pair=pair)
    assert result["peak"]["value"] == pytest.approx(100, rel=0.01)
    assert any("antennas without data: A3, A7, A21, A30" in line for line in result["assumptions"])
    assert result["n_samples"] == 36 * 35 // 2


def test_a_dead_antenna_can_be_given_by_name_and_number(tmp_path):
    pair = write_pair(tmp_path, junk=(5, 11))
    result, _ = image(tmp_path, "--conjugate", "no", "--dead", "A5,11", pair=pair)
    assert result["peak"]["value"] == pytest.approx(100, rel=0.01)
    assert any("antennas left out: A5, 11, as given" in line for line in result["assumptions"])
    assert "A39" in image(tmp_path, "--conjugate", "no", "--dead", "B5", pair=pair, expect=78)


@pytest.mark.parametrize("stem, utc", [("20220406_035747_eda2_vis", "2022-04-06T03:57:47"),
                                       ("vis_20220406T035747506_X", "2022-04-06T03:57:47.506"),
                                       ("chan_204_20220406T035747", "2022-04-06T03:57:47")])
def test_times_in_names(tmp_path, stem, utc):
    result, header = image(tmp_path, "--conjugate", "no", pair=write_pair(tmp_path, stem))
    assert header["DATE-OBS"].startswith(utc)
    assert any(f"time: {utc} UTC, from the file name" in line for line in result["assumptions"])
    assert "--utc" in image(tmp_path, "--conjugate", "no", pair=write_pair(tmp_path, "vis_12345678"), expect=78)


def test_what_is_given_is_in_the_header(tmp_path):
    result, header = image(tmp_path, "--conjugate", "no")
    assert header["CRVAL4"] == 1 and any("polarization: not known" in line for line in result["assumptions"])
    assert any("channel width: not known" in line for line in result["assumptions"])
    for pol, code in (("X", -5), ("Y", -6), ("I", 1)):
        for path in ([], ["--path", "vis-grid"]):
            _, header = image(tmp_path, "--conjugate", "no", "--pol", pol, "--channel-width-khz", 40, "--utc",
                              "2022-04-06T04:00:00", "--integration", 2, *path)
            assert header["CRVAL4"] == code and header["CDELT3"] == pytest.approx(40e3)
            assert header["DATE-OBS"].startswith("2022-04-06T04:00:00") and header["EXPTIME"] == pytest.approx(2)


def test_the_image_can_be_about_any_direction(tmp_path):
    result, header = image(tmp_path, "--conjugate", "no")
    place = result["peak"]["ra_deg"], result["peak"]["dec_deg"]
    result, header = image(tmp_path, "--conjugate", "no", "--phase-center", f"{place[0]},{place[1]}", "--width", 1)
    assert (result["peak"]["l"], result["peak"]["m"]) == pytest.approx((0, 0), abs=2e-3)
    assert (result["peak"]["ra_deg"], result["peak"]["dec_deg"]) == pytest.approx(place, abs=0.2)
    assert header["CRVAL1"] == pytest.approx(place[0], abs=1e-6)
    assert result["peak"]["value"] == pytest.approx(100, rel=0.01)
    # Below the horizon it is drawn, and said.
    result, _ = image(tmp_path, "--conjugate", "no", "--phase-center", f"{place[0]},85")
    assert any("below the horizon" in w and "altitude" in w and "rise" in w for w in result["warnings"])
    # Values that are phased to a direction already.
    result, _ = image(tmp_path, "--conjugate", "no", "--phased-to", "10,-30")
    assert (result["peak"]["l"], result["peak"]["m"]) == pytest.approx(SOURCE, abs=0.01)


def test_options_of_a_pair_are_refused_elsewhere(tmp_path):
    for option, value in {"--frequency-mhz": 150, "--pol": "X", "--utc": "2022-04-06T04:00:00", "--phased-to": "sun",
                          "--channel-width-khz": 40, "--integration": 1, "--latitude-deg": 3, "--taps": 4}.items():
        message = ryle("image", "not-there.ms", option, value, "-o", tmp_path / "a.fits", expect=78)
        assert option in message


def test_the_beam_in_the_header_is_that_of_a_point(tmp_path):
    """BMAJ, BMIN, BPA against a Gaussian fitted to the lobe of a simulated source, by another program."""
    modeling = pytest.importorskip("astropy.modeling")
    pytest.importorskip("scipy")
    l, m = SOURCE
    result, header = image(tmp_path, "--conjugate", "no", "--phase-center",
                           "{ra_deg},{dec_deg}".format(**image(tmp_path, "--conjugate", "no")[0]["peak"]), "--width", 0.5,
                           "--pixels", 200)
    picture = fits.getdata(tmp_path / "image.fits")[0, 0].astype(float) / result["peak"]["value"]
    y, x = np.mgrid[:200, :200]
    lobe = (picture > 0.5) & (np.hypot(x - 100, y - 100) < 60)
    start = modeling.models.Gaussian2D(1, 100, 100, 12, 12, 0.3)
    fit = modeling.fitting.LevMarLSQFitter()(start, x[lobe], y[lobe], picture[lobe])
    cell_deg = header["CDELT2"]
    width = sorted(abs(s) * 2.3548 * cell_deg for s in (fit.x_stddev.value, fit.y_stddev.value))
    assert header["BMAJ"] == pytest.approx(width[1], rel=0.02)
    assert header["BMIN"] == pytest.approx(width[0], rel=0.02)
    assert header["BMAJ"] > 1.2 * header["BMIN"]  # the test has an angle to find
    # Of the major axis: pixels grow to the west, position angles from north through east.
    theta = fit.theta.value + (math.pi / 2 if abs(fit.y_stddev.value) > abs(fit.x_stddev.value) else 0)
    angle_deg = math.degrees(math.atan2(-math.cos(theta), math.sin(theta)))
    turned = (header["BPA"] - angle_deg + 90) % 180 - 90
    assert abs(turned) < 2
    for path in ("vis-grid", "vis-dft"):
        _, other = image(tmp_path, "--conjugate", "no", "--path", path, "--pixels", 128)
        assert other["BMAJ"] == pytest.approx(header["BMAJ"], rel=0.12)  # at the zenith, not 21 degrees from it
    done = run("image", *write_pair(tmp_path), "--conjugate", "no", "-o", tmp_path / "image.fits", "--overwrite")
    assert "beam" in done.stdout and "covariance sign" in done.stdout and "elevation" in done.stdout


def test_apertures_of_single_antennas_are_used(tmp_path):
    """Ten antennas whose phase centers lie beside their places: their apertures say so, and the source is whole again."""
    shift = np.array([1.2, -0.8])  # east, north
    moved = np.arange(N) % 4 == 1
    pair = write_pair(tmp_path)
    layout = tmp_path / "antennas.txt"
    places = positions()
    places[moved, :2] -= shift  # where the file says they stand
    layout.write_text("".join(f"A{k} {x} {y} {z}\n" for k, (x, y, z) in enumerate(places)))
    n, step = 33, 0.2
    row, column = np.mgrid[:n, :n]
    east, north = (column - n // 2) * step, (row - n // 2) * step

    def disc(x, y):
        r2 = ((east - x)**2 + (north - y)**2) / 1.3**2
        return np.where(r2 < 1, 1 - r2, 0).astype(complex)

    apertures = np.array([disc(*(shift if moved[a] else (0, 0))) for a in range(N)])
    parts = np.stack([apertures.real, apertures.imag], axis=1).astype(np.float32)  # [aperture][2][n][n]

    def write(name, values, step_m=step):
        hdu = fits.PrimaryHDU(values)
        hdu.header["CDELT1"] = hdu.header["CDELT2"] = step_m
        hdu.writeto(tmp_path / name, overwrite=True)
        return tmp_path / name

    def peak(*arguments):
        return image(tmp_path, "--conjugate", "no", "--path", "vis-grid", "--pixels", 160, *arguments,
                     pair=pair)[0]["peak"]["value"]

    right = peak("--apertures", write("right.fits", parts))
    assert right == pytest.approx(100, rel=0.02)
    assert peak() < 75  # as if they stood where the file says
    same = write("one.fits", np.abs(disc(0, 0)).astype(np.float32)[None])
    assert peak("--apertures", same) < 75
    # By the reference: the same picture.
    pictures = {}
    for implementation in ("auto", "reference"):
        result, header = image(tmp_path, "--conjugate", "no", "--path", "vis-grid", "--pixels", 96, "--apertures",
                               tmp_path / "right.fits", "--implementation", implementation, pair=pair)
        pictures[implementation] = fits.getdata(tmp_path / "image.fits")[0, 0].astype(float)
    both = np.isfinite(pictures["reference"])
    worst = np.abs(pictures["auto"] - pictures["reference"])[both]
    y, x = np.mgrid[:96, :96]
    inside = np.hypot(x - 48, y - 48)[both] < 0.8 * 96 * 0.4
    assert np.max(worst[inside]) < 1e-3 * np.nanmax(pictures["reference"])
    # What does not fit is refused, with what would.
    message = image(tmp_path, "--conjugate", "no", "--path", "vis-grid", "--apertures", write("three.fits", parts[:3]),
                    pair=pair, expect=78)
    assert "3 apertures" in message and "40" in message
    message = image(tmp_path, "--conjugate", "no", "--path", "vis-grid", "--apertures", write("no.fits", parts, 0.0),
                    pair=pair, expect=65)
    assert "CDELT1" in message
    message = image(tmp_path, "--conjugate", "no", "--path", "vis-dft", "--apertures", tmp_path / "right.fits", pair=pair,
                    expect=78)
    assert "gridded path" in message


def test_a_long_sum_says_how_far_it_is_and_hears_an_interrupt(tmp_path):
    out = tmp_path / "image.fits"
    process = start("image", *write_pair(tmp_path), "--conjugate", "no", "-o", out, "--pixels", 2000, "--implementation",
                    "reference")
    line = process.stderr.readline()  # comes after 2 s
    assert "image of 2000 x 2000 pixels" in line and "%" in line and "s to go" in line
    code, _, err = stop(process)
    assert code == 75 and "no image was made" in err
    assert not out.exists()
