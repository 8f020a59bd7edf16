# SPDX-License-Identifier: BSD-3-Clause
"""Plans at their limits: long calls, streams, threads, and what has no effect."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from helpers import codes, interrupted

import ryle

W = np.ones((1, 2, 3), np.complex64)
BAND = {"frequency_hz": np.linspace(1.2e9, 1.5e9, 8), "interval_s": 1e-3}


def child(code):
    """Runs code of its own process, which may end the process; its exit code."""
    return subprocess.run([sys.executable, "-c", "import numpy as np, ryle\n" + textwrap.dedent(code)], timeout=120).returncode


def test_channelize_of_more_spectra_than_one_gulp_keeps_every_mask():
    assert child("""
        x = np.random.default_rng(1).integers(-20, 20, (3, 64 * 9000)).astype(np.int8)
        whole = ryle.channelize(x, 32)
        assert whole.shape[1] > 8192 and whole.valid.all()
        pieces = ryle.Channelizer(3, 32, format="i8", max_spectra=128).execute(x)
        assert pieces.valid.all() and (pieces.array == whole.array).all()
        assert (ryle.correlate(pieces).counts == whole.shape[1]).all()
    """) == 0


@pytest.mark.parametrize("n", [1, 100, 127, 129])
def test_any_max_spectra_is_rounded_up(n):
    assert child(f"""
        x = np.random.default_rng(1).integers(-20, 20, (2, 64 * 400)).astype(np.int8)
        s = ryle.Channelizer(2, 32, format="i8", max_spectra={n}).execute(x)
        assert (s.array == ryle.channelize(x, 32).array).all()
        plan = ryle.Correlator(2, 32, max_spectra={n})
        plan.execute(s)
        assert (plan.finish().sums == ryle.correlate(s).sums).all()
    """) == 0
    for plan in (ryle.Channelizer, ryle.Correlator):
        with pytest.raises(ryle.ConfigError):
            plan(2, 32, max_spectra=0)


@pytest.mark.parametrize("path", ["vis-dft", "vis-grid", "efield"])
def test_an_image_takes_more_spectra_than_expected_and_begins_anew(path):
    assert child(f"""
        rng = np.random.default_rng(1)
        position = rng.uniform(-15, 15, (8, 3)) * [1, 1, 0]
        x = rng.integers(-20, 20, (1, 1000, 8, 2)).astype(np.int8)
        plan = ryle.SkyImager(position, [40e6], n_pixels=32, path="{path}", n_spectra=100)
        plan.execute(x)
        image = plan.finish()
        plan.execute(x[:, ::-1].copy())
        plan.execute(x[:, :50])
        plan.reset()
        plan.execute(x)
        again = plan.finish()
        assert again.provenance["n_spectra"] == 1000
        assert np.allclose(image.array, again.array, equal_nan=True)
        assert np.allclose(image.array, ryle.image(x, position, [40e6], n_pixels=32, path="{path}").array, rtol=1e-4, atol=1e-3, equal_nan=True)
    """) == 0


def in_threads(*works):
    failures = []

    def guarded(work):
        try:
            for _ in range(30):
                work()
        except BaseException as error:  # noqa: B902 - told below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


def test_a_call_has_a_plan_for_itself_until_it_ends():
    x = np.random.default_rng(1).integers(-20, 20, (2, 64 * 1500)).astype(np.int8)
    time_major = np.ascontiguousarray(x.T).T
    expected = ryle.channelize(x, 32).array
    f_engine = ryle.Channelizer(2, 32, format="i8", max_spectra=128)

    def spectra_of(array):
        assert (f_engine.execute(array, first_sample=0).array == expected).all()
        assert f_engine.implementation

    in_threads(lambda: spectra_of(x), lambda: spectra_of(time_major))
    b_engine = ryle.Beamformer(3, 1, 2, format="cf32", weight_format="f32", integration=96, max_spectra=32)
    b_engine.set_weights(W)

    def beams_of(value):
        power = b_engine.execute(np.full((2, 960, 3), value, np.complex64)).array
        assert power.shape[3] == 10 and np.allclose(power, 9 * value * value)

    in_threads(lambda: beams_of(1), lambda: beams_of(2), lambda: beams_of(3))


def test_beams_and_spectra_go_on_where_the_last_piece_ended():
    x = codes(np.random.default_rng(2), (2, 100, 3), -20, 21)
    plan = ryle.Beamformer(3, 1, 2, format="ci8", weight_format="f32", integration=8)
    plan.set_weights(W)
    parts = [plan.execute(x[:, first: first + 30]).array for first in range(0, 100, 30)]
    whole = ryle.beamform(x, W, integration=8).array
    assert np.array_equal(np.concatenate(parts, axis=3), whole)
    plan.reset()
    assert np.array_equal(plan.execute(x).array, whole)
    samples = codes(np.random.default_rng(3), (2, 6400))
    channelizer = ryle.Channelizer(2, 64)
    first = channelizer.execute(samples[:, :3200])
    second = channelizer.execute(samples[:, 64 * first.shape[1]:])
    assert second.start_s == 64 * first.shape[1]
    assert (np.concatenate((first.array, second.array), axis=1) == ryle.channelize(samples, 64).array).all()
    channelizer.reset()
    assert channelizer.execute(samples).start_s == 0


def test_the_correlator_keeps_bands_apart():
    x = np.ones((2, 64, 3, 2), np.int8)
    a, b = (ryle.spectra(x, frequency_hz=np.array([f, f + 1e6])) for f in (100e6, 200e6))
    plan = ryle.Correlator(3, 2)
    plan.execute(a)
    with pytest.raises(ValueError, match="finish"):
        plan.execute(b)
    assert plan.finish().frequency_hz[0] == 100e6
    plan.execute(a)
    with pytest.raises(ValueError, match="of 3 channels, those added so far of 2; make a plan of 3 channels"):
        plan.execute(ryle.spectra(np.ones((3, 64, 3, 2), np.int8), frequency_hz=[1e8, 2e8, 3e8]))
    plan.reset()
    plan.execute(x)
    assert plan.finish().frequency_hz is None
    plan.execute(b)
    assert plan.finish().frequency_hz[0] == 200e6
    with pytest.raises(ValueError, match="2 channels"):
        ryle.spectra(x, frequency_hz=[1e8, 2e8, 3e8])


@pytest.mark.parametrize("call", [
    lambda m: ryle.grid(np.zeros(9), np.zeros(9), m(np.ones(9, np.float32)), ([0.0], [0.0]), beam=1e-3),
    lambda m: ryle.grid(m(np.zeros(9)), np.zeros(9), np.ones(9, np.float32), ([0.0], [0.0]), beam=1e-3),
    lambda m: ryle.correlate(m(np.ones((1, 9, 2), np.complex64))),
    lambda m: ryle.channelize(m(np.ones((1, 999), np.float32)), 8),
    lambda m: ryle.search(m(np.ones((8, 999), np.float32)), **BAND),
    lambda m: ryle.fold(m(np.ones(999, np.float32)), period_s=0.1, interval_s=1e-3),
])
def test_a_mask_of_numpy_is_not_dropped(call):
    with pytest.raises(TypeError, match="masked.*filled"):
        call(lambda array: np.ma.masked_array(array, np.zeros(array.shape, bool)))


def test_what_engines_do_not_read_cannot_be_edited():
    spectra = ryle.spectra(np.ones((1, 64, 2, 2), np.int8))
    for array in (spectra.array, spectra.valid):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_samples_that_are_not_finite_are_absent(dtype, bad):
    x = np.random.default_rng(4).normal(size=(2, 6400)).astype(dtype) * 20
    clean = x.copy()
    x[1, 1000] = bad
    for output in ("ci8", "cf32"):
        spectra = ryle.channelize(x, 64, n_taps=4, output=output, dither=False)
        whole = ryle.channelize(clean, 64, n_taps=4, output=output, dither=False)
        assert spectra.valid[0].all() and 0 < (~spectra.valid[1]).sum() <= 5
        assert (spectra.array[:, ~spectra.valid[1], 1] == 0).all()
        assert (spectra.array[:, spectra.valid[1]] == whole.array[:, spectra.valid[1]]).all()


def test_spectra_of_floats_and_of_16_bits_are_floats():
    x = np.random.default_rng(5).normal(size=(1, 999)).astype(np.float32) * 1e-3
    assert ryle.channelize(x, 8).format == ryle.channelize(x.astype(np.complex64), 8).format == "cf32"
    assert ryle.channelize((x * 1e6).astype(np.int16), 8).format == "cf32" and np.abs(ryle.channelize(x, 8).array).max() > 0
    assert ryle.channelize((x * 1e4).astype(np.int8), 8).format == "ci8"


def test_beams_of_a_call_take_the_weights_as_given():
    w = np.array([[[1.0, 1e-3, 0.3337]]], np.complex64)
    voltage = ryle.beamform(np.ones((1, 4, 3), np.complex64), w, output="voltage").array
    assert np.allclose(voltage, w.sum(), rtol=1e-6)


def test_calls_leave_no_memory_behind():
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("skipped: needs /proc")
    x = np.ones((1, 128, 2, 2), np.int8)

    def mib():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    def work(n):
        for _ in range(n):
            ryle.correlate(x).array
            ryle.beamform(x, W[:, :1, :2])

    work(100)
    before = mib()
    work(1500)
    assert mib() - before < 6  # an arena of threads a call would be 20


def test_plans_are_made_without_the_gil():
    turns, stop = [], threading.Event()

    def count():
        while not stop.is_set():
            turns.append(time.monotonic())
            stop.wait(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    begin = time.monotonic()
    plan = ryle.Channelizer(2, 1 << 16, n_taps=8, format="cf32")
    end = time.monotonic()
    stop.set()
    counter.join()
    assert plan.filter_length == 8 << 16
    # With the GIL held the other thread would stand still for the whole of it.
    turns = [begin, *[t for t in turns if begin < t < end], end]
    assert max(b - a for a, b in zip(turns, turns[1:])) < 0.5 * (end - begin)


@pytest.mark.parametrize("call,word", [
    (lambda p: ryle.search(p, n_workers=2, **BAND), "n_workers"),
    (lambda p: ryle.search(p, overwrite=True, **BAND), "overwrite"),
    (lambda p: ryle.search(p, pictures=False, **BAND), "pictures"),
    (lambda p: ryle.search(p, polarization="I", **BAND), "polarization"),
    (lambda p: ryle.search("a.fil", n_workers=-3), "n_workers"),
    (lambda p: ryle.search("a.fil", overwrite=True), "overwrite"),
    (lambda p: ryle.search("a.fil", start_mjd_utc=6e4), "start_mjd_utc"),
    (lambda p: ryle.search(p, dm_maximum=3, **BAND), "dm_maximum: no such keyword"),
    (lambda p: ryle.fold(p[0], period_s=0.1, interval_s=1e-3, k_dm="tempo"), "k_dm"),
    (lambda p: ryle.fold(p[0], period_s=0.1, interval_s=1e-3, dm=3), "dm"),
    (lambda p: ryle.fold(p[0], period_s=0.1, interval_s=1e-3, polarization="I"), "polarization"),
    (lambda p: ryle.fold(p[0], period_s=0.1, interval_s=1e-3, overwrite=True), "overwrite"),
    (lambda p: ryle.fold(p[0], period_s=0.1, interval_s=1e-3, search=False, drift_turns=2), "drift_turns"),
    (lambda p: ryle.fold("a.fil", period_s=0.1, n_sub_integrations=3), "n_sub_integrations"),
    (lambda p: ryle.fold("a.fil", period_s=0.1, overwrite=True), "overwrite"),
])
def test_an_argument_without_effect_is_named(call, word):
    with pytest.raises(ValueError, match=word):
        call(np.ones((8, 4096), np.float32))


def test_a_period_of_a_series_is_the_mean_over_it():
    t = np.arange(20000) * 1e-3
    f1 = 1e-3
    series = (np.cos(2 * np.pi * (4 * t + f1 * t * t / 2)) > 0.95).astype(np.float32)
    folded = ryle.fold(series, period_s=0.25, period_derivative=-f1 / 16, interval_s=1e-3, search=False)
    assert folded.period_s == pytest.approx(1 / (4 + f1 * 10), rel=1e-6)


def test_quantities_are_taken_in_settings():
    u = pytest.importorskip("astropy.units")
    power = np.random.default_rng(6).normal(100, 10, (8, 4096)).astype(np.float32)
    plain = ryle.search(power, dm_max=30.0, width_max_s=0.05, **BAND).summary["dm_trials"]
    given = ryle.search(power, dm_max=0.03 * u.kpc / u.cm**3, width_max_s=50 * u.ms, **BAND).summary["dm_trials"]
    assert np.array_equal(plain, given)
    example = os.path.join(os.path.dirname(__file__), "..", "..", "examples", "mwa32t.toml")
    seconds = ryle.Observation(example, set={"source.duration_s": 2000 * u.ms}).configuration
    assert seconds == ryle.Observation(example, set={"source.duration_s": 2.0}).configuration
    assert seconds == ryle.Observation(example, set={"source.duration_s": np.int64(2)}).configuration
    with pytest.raises(TypeError, match="output.directory"):
        ryle.Observation(example, set={"output.directory": 2 * u.s})


@pytest.mark.parametrize("call,message", [
    (lambda: ryle.correlate(np.ones((1, 9, 2, 2), ">i2")), r"byte order.*astype\(numpy.int16\)"),
    (lambda: ryle.correlate(np.ones((1, 9, 2), ">c8")), r"byte order.*astype\(numpy.complex64\)"),
    (lambda: ryle.channelize(np.ones((1, 999), np.uint16), 8), r"samples.astype\(numpy.float32\)"),
    (lambda: ryle.dedisperse(np.ones((8, 999), np.int16), [0.0], **BAND), r"0 .. 255.*wrap.*codes.astype\(numpy.uint8\)"),
    (lambda: ryle.correlate(np.ones((1, 9, 2, 2), np.int8), valid=np.ones((2, 9))), r"valid.astype\(numpy.bool_\)"),
])
def test_messages_name_a_call_that_does_not_wrap(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_power_that_does_not_fit_is_not_written(tmp_path):
    settings = {"frequency_hz": BAND["frequency_hz"], "interval_s": 1e-3, "start_mjd_utc": 60000.0}
    good = np.full((8, 64), 200, np.float32)
    ryle.write(tmp_path / "a.fil", good, bits=8, **settings)
    assert (ryle.read(tmp_path / "a.fil") == 200).all()
    for value in (np.nan, 256.0, -1.0):
        bad = good.copy()
        bad[3, 5] = value
        with pytest.raises(ryle.ConfigError, match="8 bits hold 0 .. 255"):
            ryle.write(tmp_path / "b.fil", bad, bits=8, **settings)
    with pytest.raises(ryle.ConfigError, match="start_mjd_utc"):
        ryle.write(tmp_path / "b.fil", good, frequency_hz=BAND["frequency_hz"], interval_s=1e-3)
    assert not (tmp_path / "b.fil").exists()


def test_ctrl_c_ends_a_fold():
    output, seconds, code = interrupted("""
        import numpy as np, ryle
        series = np.random.default_rng(1).normal(size=50_000_000).astype(np.float32)
        print("ready", flush=True)
        try:
            while True:
                ryle.fold(series, period_s=0.1, interval_s=1e-4, n_bins=1024, drift_turns=50)
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert "interrupted" in output and code == 0 and seconds < 5, output
