# SPDX-License-Identifier: BSD-3-Clause
"""Results as xarray and pyuvdata have them, astropy in and out, and what is said where a package is missing."""

import re
import subprocess
import sys
import textwrap

import numpy as np
import observations
import pytest
from helpers import ROOT, codes

import ryle

BAND = {"frequency_hz": np.linspace(1.2e9, 1.5e9, 8), "interval_s": 1e-3}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = observations.recording(tmp_path_factory.mktemp("recording"))
    obs = observations.recorded(folder, folder / "out", source__duration_s=0.05)
    obs.run()
    return obs


# xarray

def results(recorded):
    rng = np.random.default_rng(1)
    x = ryle.spectra(codes(rng, (4, 64, 3)), frequency_hz=1e8 + 1e6 * np.arange(4), interval_s=1e-6)
    position = rng.uniform(-15, 15, (3, 3)) * [1, 1, 0]
    lon, lat = rng.uniform(-0.5, 0.5, (2, 3000))
    cells = tuple(np.meshgrid(np.linspace(-0.4, 0.4, 5), np.linspace(-0.4, 0.4, 4)))
    power = rng.integers(0, 60, (8, 2000)).astype(np.uint8)
    return {
        "spectra": (x, "spectra", x.complex()),
        "visibilities": (v := ryle.correlate(x), "visibility", v.array),
        "beams": (b := ryle.beamform(x, np.ones((2, 4, 3), np.complex64), incoherent=[[1, 1, 1]]), "power", b.array),
        "voltages": (b := ryle.beamform(x, np.ones((2, 4, 3), np.complex64), output="voltage"), "voltage", b.array),
        "image": (i := ryle.image(x, position, n_pixels=32), "image", i.array),
        "map": (m := ryle.grid(lon, lat, np.ones(3000, np.float32), cells, beam="6arcmin"), "map", m.array),
        "dedispersed": (d := ryle.dedisperse(power, [0.0, 50.0], **BAND), "sum", d.array),
        "fold": (f := ryle.fold(np.ones(2000, np.float32), period_s=0.1, interval_s=1e-3, search=False), "profile", f.profile),
        "file": (u := recorded.open("uvh5"), "visibility", u.data),
    }


def test_results_become_datasets_of_xarray(recorded, tmp_path):
    xarray = pytest.importorskip("xarray", reason="skipped: no xarray")
    made = {}
    for kind, (result, name, array) in results(recorded).items():
        labelled = made[kind] = result.to_xarray()
        assert isinstance(labelled, xarray.Dataset), kind
        variable = labelled[name]
        assert np.array_equal(variable.values, array, equal_nan=True) and variable.dims == getattr(result, "axes", ("bin",)), kind
        assert labelled.attrs["version"] == ryle.__version__, kind
        assert all(isinstance(value, (str, int, float, np.number)) for value in labelled.attrs.values()), kind
    v = made["visibilities"]
    assert v.frequency_hz.units == "Hz" and v.visibility.sel(channel=v.frequency_hz == 102e6).shape == (1, 6)
    assert v.input_j.values.tolist() == [0, 1, 1, 2, 2, 2] and (v.counts == 64).all()
    assert made["spectra"].valid.dims == ("time", "input") and made["spectra"].time_s.values[-1] == pytest.approx(63e-6)
    assert np.isnan(made["beams"].weight_power.values[2]).all() and (made["beams"].n_used.values[:2] == 192).all()
    i = made["image"]
    assert (np.diff(i.l) < 0).all() and (np.diff(i.m) > 0).all() and i.l.values[16] == 0 and i.weights.dims == ("bin", "product")
    f = made["file"]
    assert f.visibility.dims == ("time", "channel", "baseline", "pol") and f.time.dtype == np.dtype("datetime64[ns]")
    assert f.pol.values.tolist() == ["XX"] and abs((f.time.values[0] - np.datetime64("2026-03-01T12:00:00")) / np.timedelta64(1, "D")) < 400
    assert (f.counts.values == recorded.open("uvh5").counts).all()
    power = np.random.default_rng(2).normal(100, 10, (8, 64)).astype(np.float32)
    ryle.write(tmp_path / "a.fil", power, start_mjd_utc=60000.0, **BAND)
    part = ryle.open(tmp_path / "a.fil").to_xarray(10, 20)
    assert np.array_equal(part.power, power[:, 10:30]) and part.time_s.values[0] == pytest.approx(0.01)


def test_streamed_products_become_datasets_of_xarray(recorded, tmp_path):
    pytest.importorskip("xarray", reason="skipped: no xarray")
    folder = recorded._config.path
    obs = ryle.Observation(folder, set={"output.directory": str(tmp_path), "beams.file": "beams.toml", "beams.filterbank": False, "beams.pictures": 0,
                                        "image.cadence_s": 0.02, "image.n_pixels": 16, "source.duration_s": 0.05})
    for product in obs.stream("beams", "images", "visibilities"):
        labelled = product.to_xarray()
        if isinstance(product, ryle.BeamBlock):
            assert labelled.beam.values.tolist() == ["zenith", "south"] and labelled.valid.all() and np.array_equal(labelled.power, product.array)


def test_the_documentation_names_the_results_that_become_datasets():
    line = next(line for line in (ROOT / "docs" / "python.md").read_text().splitlines() if line.startswith("| xarray |"))
    given, without = line.partition("; ")[0], line.partition("not of ")[2]
    public = {name: getattr(ryle, name) for name in ryle.__all__ if isinstance(getattr(ryle, name), type)}
    assert set(re.findall(r"`(\w+)`", given)) == {name for name, kind in public.items() if hasattr(kind, "to_xarray")}
    assert without and all(name in public and not hasattr(public[name], "to_xarray") for name in re.findall(r"`(\w+)`", without))


# pyuvdata

def test_visibilities_become_a_uvdata(recorded, offline):
    pyuvdata = pytest.importorskip("pyuvdata", reason="skipped: no pyuvdata")
    vis = recorded.open("uvh5")
    uv = vis.to_uvdata()
    assert isinstance(uv, pyuvdata.UVData) and (uv.Nants_data, uv.Nfreqs, uv.Ntimes) == (4, 16, len(vis.data))
    assert uv.check() and np.allclose(uv.freq_array, vis.frequency_hz)
    for n, (i, j) in enumerate(vis.pairs):
        mine, theirs = vis.data[:, :, n, 0], uv.get_data(int(i), int(j))
        assert np.allclose(theirs, mine.conj(), rtol=1e-6), (i, j)  # as pyuvdata has them
        assert np.array_equal(uv.get_nsamples(int(i), int(j)) > 0, vis.counts[:, :, n, 0] > 0)


# astropy

def test_instants_of_astropy_are_taken_to_the_nanosecond(tmp_path):
    Time = pytest.importorskip("astropy.time").Time
    from ryle._units import tai_ns, time_of, utc

    ns = 1_772_366_437_123_456_789
    assert tai_ns(time_of(ns)) == ns and abs((time_of(ns) - Time("2026-03-01T12:00:00", scale="utc")).sec) < 1e5
    instant = Time("2026-03-01T12:00:00.123456789", scale="utc")
    assert utc(instant) == "2026-03-01T12:00:00.123456789" and instant.precision == 3
    assert tai_ns(instant) == 1_772_366_437_123_456_789
    assert "start_utc = '2026-03-01T12:00:00.123456789'" in ryle.Observation(observations.MWA32T, set={"source.start_utc": instant}).configuration
    power = np.full((8, 64), 5, np.float32)
    ryle.write(tmp_path / "a.fil", power, start_mjd_utc=instant, **BAND)
    file = ryle.open(tmp_path / "a.fil")
    assert abs((file.start - instant).sec) < 1e-4
    pulse = np.random.default_rng(3).normal(100, 10, (64, 8192)).astype(np.float32)
    mhz = np.linspace(1200, 1500, 64)
    for c, s in enumerate(np.rint(4148.8064 * 100 * (mhz ** -2.0 - mhz[-1] ** -2.0) / 1e-3).astype(int)):
        pulse[c, 4000 + s: 4003 + s] += 40
    found = ryle.search(pulse, dm_max=200, frequency_hz=mhz * 1e6, interval_s=1e-3, start_mjd_utc=instant)
    assert found[0]["mjd_utc"] == pytest.approx(instant.mjd + found[0]["time_s"] / 86400, abs=1e-9)


def test_places_of_astropy_are_taken_and_given(recorded, tmp_path, offline):
    coordinates = pytest.importorskip("astropy.coordinates")
    u = pytest.importorskip("astropy.units")
    (tmp_path / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n0,0,0,0,X,0\n")
    place = coordinates.EarthLocation.from_geodetic(-107 * u.deg, 34 * u.deg, 2100 * u.m)
    array = ryle.read_layout(tmp_path / "array.csv", location=place)
    assert (array.latitude_deg, array.longitude_deg, array.height_m) == pytest.approx((34, -107, 2100))
    assert np.linalg.norm(u.Quantity(array.location.to_geocentric()).to_value("m") - u.Quantity(place.to_geocentric()).to_value("m")) < 1e-3
    with pytest.raises(ValueError, match="one or the other"):
        ryle.read_layout(tmp_path / "array.csv", location=place, latitude=3)
    vis = recorded.open("uvh5")
    assert vis.location.lat.deg == pytest.approx(34) and isinstance(vis.phase_center, coordinates.SkyCoord)
    zenith = coordinates.SkyCoord(*array.zenith(vis.time[0])[:2], unit="deg")
    horizon = zenith.transform_to(coordinates.AltAz(obstime=vis.time[0], location=place))
    assert horizon.alt.deg > 89.9
    assert array.zenith(vis.time[0]) == pytest.approx(array.zenith(vis.info["centroid_tai_ns"][0]), abs=1e-9)
    target = coordinates.SkyCoord(83.6331 * u.deg, 22.0145 * u.deg)
    obs = ryle.Observation(observations.MWA32T, set={"correlate.phase_center": target.galactic})
    center = obs.configuration.split("phase_center = '")[1].split("'")[0]
    assert np.allclose([float(part) for part in center.split(",")], [83.6331, 22.0145])


def test_samples_of_a_sky_coord_go_into_the_frame_of_the_map():
    coordinates = pytest.importorskip("astropy.coordinates")
    from astropy.wcs import WCS

    wcs = WCS(naxis=2)
    wcs.wcs.ctype = ["GLON-CAR", "GLAT-CAR"]
    wcs.wcs.crval, wcs.wcs.crpix, wcs.wcs.cdelt = [120.0, 0.0], [11, 11], [-0.05, 0.05]
    rng = np.random.default_rng(4)
    sky = coordinates.SkyCoord(120 + rng.uniform(-0.4, 0.4, 4000), rng.uniform(-0.4, 0.4, 4000), unit="deg", frame="galactic")
    values = sky.b.deg.astype(np.float32)
    expected = ryle.grid(sky.l.deg, sky.b.deg, values, wcs, shape=(21, 21), beam="6arcmin")
    for samples in (sky, sky.icrs):
        made = ryle.grid(samples, None, values, wcs, shape=(21, 21), beam="6arcmin")
        assert np.allclose(made.array, expected.array, atol=1e-6, equal_nan=True)
    with pytest.raises(ValueError, match="None for latitude"):
        ryle.grid(sky, sky.b, values, wcs, shape=(21, 21), beam="6arcmin")
    xarray = pytest.importorskip("xarray", reason="skipped: no xarray")
    labelled = made.to_xarray()
    assert isinstance(labelled, xarray.Dataset) and labelled.longitude_deg.dims == ("y", "x")
    assert labelled.longitude_deg.values[10, 10] == pytest.approx(120) and labelled.latitude_deg.values[12, 10] == pytest.approx(0.1)


@pytest.mark.parametrize("call", [
    lambda u: ryle.Channelizer(1, 8, sample_rate_hz=3 * u.m),
    lambda u: ryle.spectra(np.zeros((2, 9, 2, 2), np.int8), frequency_hz=[1, 2] * u.s),
    lambda u: ryle.spectra(np.zeros((2, 9, 2, 2), np.int8), interval_s=3 * u.Hz),
    lambda u: ryle.dedisperse(np.zeros((8, 99), np.uint8), [0.0] * u.pc, **BAND),
    lambda u: ryle.search(np.zeros((8, 999), np.float32), dm_max=3 * u.s, **BAND),
    lambda u: ryle.fold(np.zeros(99, np.float32), period_s=3 * u.Hz, interval_s=1e-3),
    lambda u: ryle.image(np.zeros((1, 9, 3, 2), np.int8), np.zeros((3, 3)) * u.s, [1e8]),
    lambda u: ryle.grid([0.0] * u.m, [0.0] * u.m, np.zeros(1, np.float32), ([0.0], [0.0]), beam=1e-3),
    lambda u: ryle.Gridder(([0.0], [0.0]), beam=3 * u.s),
    lambda u: ryle.read_layout(ROOT / "examples" / "mwa32t.csv", latitude=3 * u.m, longitude=3 * u.deg),
    lambda u: ryle.Observation(observations.MWA32T, set={"source.duration_s": 3 * u.m}),
])
def test_a_wrong_unit_is_an_error(call):
    u = pytest.importorskip("astropy.units")
    with pytest.raises(u.UnitConversionError):
        call(u)


def test_pictures_of_a_band_are_of_its_frequencies():
    position = np.random.default_rng(5).uniform(-15, 15, (4, 3)) * [1, 1, 0]
    plan = ryle.SkyImager(position, [40e6, 41e6], n_pixels=16, path="vis-dft")
    x = np.ones((2, 64, 4, 2), np.int8)
    plan.execute(ryle.spectra(x, frequency_hz=[40e6, 41e6]))
    plan.execute(x)
    with pytest.raises(ValueError, match="60000000 .. 61000000 Hz.*40000000 .. 41000000 Hz.*frequency_hz"):
        plan.execute(ryle.spectra(x, frequency_hz=[60e6, 61e6]))
    with pytest.raises(ValueError, match="of 3 channels, the plan images those of 2; make a plan of 3 channels"):
        plan.execute(ryle.spectra(np.ones((3, 64, 4, 2), np.int8), frequency_hz=[40e6, 41e6, 42e6]))
    with pytest.raises(ValueError, match="mask of their own"):
        plan.execute(ryle.spectra(x), valid=np.ones((4, 64), bool))
    assert plan.finish().provenance["n_spectra"] == 128
    with pytest.raises(ValueError, match="60000000"):
        ryle.image(ryle.spectra(x, frequency_hz=[60e6, 61e6]), position, [40e6, 41e6], n_pixels=16)


# Without them

ABSENT = """
    import sys
    class Absent:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {"astropy", "xarray", "pyuvdata", "matplotlib", "pandas"}:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    sys.meta_path.insert(0, Absent())
    import numpy as np, ryle
    v = ryle.correlate(np.ones((1, 64, 2, 2), np.int8))
    x = ryle.spectra(np.ones((1, 64, 2, 2), np.int8))
    x.start_tai_ns = 0
    found = ryle.Candidates([], {})
    for call in (v.to_xarray, v.plot, x.to_xarray, lambda: x.time, found.table):
        try:
            call()
        except ImportError as error:
            print(error)
"""


def test_a_package_that_is_absent_is_named_with_what_to_install():
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(ABSENT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split(": ")[-1] for line in lines] == ["pip install " + p for p in ("xarray", "matplotlib", "xarray", "astropy", "astropy")], lines
    assert all("which is not installed" in line for line in lines)


def test_a_correlation_of_spectra_becomes_visibilities_of_an_array(tmp_path, offline):
    """The sums of a source through cables, as an observation: the source is where it was put, and pyuvdata reads the values."""
    coordinates = pytest.importorskip("astropy.coordinates")
    Time = pytest.importorskip("astropy.time").Time
    rng = np.random.default_rng(6)
    position, delay_ns = rng.uniform(-60, 60, (8, 3)) * [1, 1, 0], rng.uniform(100, 400, 8)
    rows = "\n".join(f"{k},{e:.3f},{n:.3f},0,X,{d:.3f}" for k, ((e, n, _), d) in enumerate(zip(position, delay_ns)))
    (tmp_path / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + rows + "\n")
    array = ryle.read_layout(tmp_path / "array.csv", latitude=34, longitude=-107, height_m=2100)
    frequency = 40e6 + 1e5 * np.arange(4)
    l, m = 0.2, -0.1
    late_s = -(position.round(3) @ [l, m, np.sqrt(1 - l * l - m * m)]) / 299792458 + delay_ns.round(3) * 1e-9
    wave = rng.normal(size=(4, 400, 1, 2)).view(complex)[..., 0] * 20 * np.exp(-2j * np.pi * frequency[:, None, None] * late_s)
    x = ryle.spectra(ryle.complex_codes(wave.clip(-127, 127), np.int8), frequency_hz=frequency, interval_s=1e-5)
    v = ryle.correlate(x)
    with pytest.raises(ValueError, match="start"):
        v.observed_by(array)
    start = Time("2026-03-01T12:00:00", scale="utc")
    vis = v.observed_by(array, start=start)
    assert vis.data.shape == (1, 4, 36, 1) and (vis.counts == 400).all() and abs((vis.time[0] - start).sec - 2e-3) < 1e-4
    assert np.allclose(np.abs(vis.data[0, :, :, 0]), np.abs(v.array), rtol=1e-5)
    sky = vis.image(n_pixels=256)
    px, py, _ = sky.peak()
    assert np.allclose(sky.direction(px, py)[:2], (l, m), atol=0.015)
    east, north, up = l, m, np.sqrt(1 - l * l - m * m)
    put = coordinates.SkyCoord(np.degrees(np.arctan2(east, north)) % 360, np.degrees(np.arcsin(up)), unit="deg",
                               frame=coordinates.AltAz(obstime=start, location=array.location))
    assert sky.wcs.pixel_to_world(px, py).separation(put.icrs).deg < 1
    centered = v.observed_by(array, start=start, phase_center=put.icrs)
    assert np.allclose(np.angle(centered.data[0, :, :, 0]), 0, atol=0.05) and centered.phase_center.separation(put.icrs).arcsec < 1
    pytest.importorskip("pyuvdata", reason="skipped: no pyuvdata")
    uv = vis.to_uvdata()
    assert np.allclose(uv.get_data(2, 5)[0], vis.data[0, :, 5 * 6 // 2 + 2, 0].conj(), rtol=1e-6)


@pytest.fixture
def pair(tmp_path):
    """An array of two antennas."""
    (tmp_path / "pair.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n0,0,0,0,X,0\n1,30,0,0,X,0\n")
    return ryle.read_layout(tmp_path / "pair.csv", latitude=34, longitude=-107, height_m=2100)


def spectra_of_pair(n=100, frequency_hz=(40e6, 41e6), interval_s=1e-3, start_tai_ns=None):
    x = ryle.spectra(np.ones((len(frequency_hz), n, 2, 2), np.int8), frequency_hz=np.array(frequency_hz), interval_s=interval_s)
    x.start_tai_ns = start_tai_ns
    return x


START_TAI_NS = 1_772_366_437_000_000_000


@pytest.mark.parametrize("frequency_hz", [(40e6, 41e6, 45e6), (42e6, 41e6, 40e6), (40e6, 40e6), (40e6, np.nan, 42e6)])
def test_visibilities_of_an_array_need_contiguous_channels(pair, frequency_hz):
    v = ryle.correlate(spectra_of_pair(frequency_hz=frequency_hz, start_tai_ns=START_TAI_NS))
    with pytest.raises(ValueError, match="select contiguous channels"):
        v.observed_by(pair)
    v.frequency_hz = 40e6 + 1e6 * np.arange(len(frequency_hz))
    assert np.allclose(v.observed_by(pair).frequency_hz, v.frequency_hz)


def test_pieces_that_do_not_follow_on_are_no_single_integration(pair):
    plan = ryle.Correlator(2, 2)

    def added(*starts_ms, **settings):
        plan.reset()
        for start_ms in starts_ms:
            plan.execute(spectra_of_pair(start_tai_ns=START_TAI_NS + round(start_ms * 1e6), **settings))
        return plan.finish()

    whole = added(0, 100, 200)  # 100 spectra, 1 ms from one to the next
    assert whole.jump_s == 0 and whole.interval_s == 1e-3
    vis = whole.observed_by(pair)
    assert vis.info["interval_s"] == [pytest.approx(0.3)] and vis.info["centroid_tai_ns"][0] - START_TAI_NS == pytest.approx(150e6, abs=1e6)
    for starts_ms, jump_s in (((0, 100, 350), 0.15), ((0, 350, 450), 0.25), ((0, 0), -0.1), ((0, 101), 1e-3)):
        v = added(*starts_ms)
        assert v.jump_s == pytest.approx(jump_s) and (v.counts == 100 * len(starts_ms)).all()
        with pytest.raises(ValueError, match=r"do not follow on.*finish\(\)"):
            v.observed_by(pair)
        with pytest.raises(ValueError, match="do not follow on"):
            v.observed_by(pair, start=START_TAI_NS, interval_s=1e-3)
    added(0, 100).observed_by(pair)  # nothing is left of the jump before
    plan.execute(spectra_of_pair(start_tai_ns=START_TAI_NS))
    with pytest.raises(ValueError, match=r"0\.002 s.*0\.001 s.*finish\(\)"):
        plan.execute(spectra_of_pair(interval_s=2e-3, start_tai_ns=START_TAI_NS + 100_000_000))
    assert plan.finish().n_spectra == 100
    plan.execute(np.ones((2, 100, 2, 2), np.int8))  # knows neither time nor interval
    plan.execute(spectra_of_pair())
    v = plan.finish()
    assert (v.interval_s, v.start_tai_ns, v.jump_s) == (1e-3, None, 0)
    v.observed_by(pair, start=START_TAI_NS)


def test_a_stream_without_a_date_has_jumps_too(pair):
    channelizer = ryle.Channelizer(2, 16, format="ci8", n_taps=1, sample_rate_hz=16e3, reference_hz=40e6)
    samples = np.ones((2, 1600, 2), np.int8)
    plan = ryle.Correlator(2, 16)
    for first_sample in (0, 1600, 4800):
        plan.execute(channelizer.execute(samples, first_sample=first_sample))
    v = plan.finish()
    assert v.jump_s == pytest.approx(0.1)
    with pytest.raises(ValueError, match="do not follow on"):
        v.observed_by(pair, start=START_TAI_NS)


@pytest.mark.parametrize("interval_s", [9001.0, 1e30, np.inf, np.nan, 0.0, -1.0])
def test_an_interval_that_no_clock_holds_is_refused(pair, interval_s):
    v = ryle.correlate(spectra_of_pair(start_tai_ns=START_TAI_NS))
    with pytest.raises(ValueError, match="interval_s"):
        v.observed_by(pair, interval_s=interval_s)


def test_the_longest_interval_is_kept(pair):
    vis = ryle.correlate(spectra_of_pair(start_tai_ns=START_TAI_NS)).observed_by(pair, interval_s=9000.0)
    assert vis.info["interval_s"] == [900_000.0] and abs(vis.info["centroid_tai_ns"][0] - START_TAI_NS - 450_000 * 10**9) <= 4_500 * 10**9


def test_a_leap_second_has_a_place_among_the_times(pair):
    """NumPy knows no leap seconds: 23:59:60 counts as the first second of the next day, and TAI tells the two apart."""
    pytest.importorskip("xarray", reason="skipped: no xarray")
    first_of_2017_tai_ns = 1_483_228_837 * 10**9
    for before_s, text in ((1.5, "2016-12-31T23:59:59.5"), (0.5, "2017-01-01T00:00:00.5"), (-0.5, "2017-01-01T00:00:00.5")):
        asked_tai_ns = first_of_2017_tai_ns - round(before_s * 1e9)
        vis = ryle.correlate(spectra_of_pair(n=1, start_tai_ns=asked_tai_ns)).observed_by(pair)
        labelled, late_ns = vis.to_xarray(), vis.info["centroid_tai_ns"][0] - asked_tai_ns
        assert 0 <= late_ns <= 500_000  # the middle of one spectrum of 1 ms
        assert labelled.time.values.tolist() == [int(np.datetime64(text, "ns").astype(int)) + late_ns], vis.info["centroid_utc"]
        assert labelled.centroid_tai_ns.dims == ("time",) and labelled.centroid_tai_ns.values.tolist() == [asked_tai_ns + late_ns]
