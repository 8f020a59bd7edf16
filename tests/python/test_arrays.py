# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in and out: nothing is converted in silence, nothing is kept or freed that should not be; threads and imports."""

import gc
import subprocess
import sys
import textwrap
import threading
import weakref

import numpy as np
import pytest
from helpers import codes, interrupted

import ryle

X = np.zeros((2, 64, 3, 2), np.int8)
W = np.ones((1, 2, 3), np.complex64)
BAND = {"frequency_hz": np.linspace(1.2e9, 1.5e9, 8), "interval_s": 1e-3}


@pytest.mark.parametrize("call,message", [
    (lambda: ryle.correlate(X.astype(np.int32)), r"complex_codes\(spectra, numpy.int8\)"),
    (lambda: ryle.correlate(X[..., 0].astype(complex)), r"spectra.astype\(numpy.complex64\)"),
    (lambda: ryle.correlate(X.view(np.bool_)), r"ryle.complex_codes"),
    (lambda: ryle.channelize(np.zeros((2, 999)), 8), r"samples.astype\(numpy.float32\)"),
    (lambda: ryle.channelize(np.zeros((2, 999), complex), 8), r"samples.astype\(numpy.complex64\)"),
    (lambda: ryle.channelize([[1, 2]], 8), r"numpy.asarray\(samples\)"),
    (lambda: ryle.correlate(X[:, ::-1]), r"numpy.ascontiguousarray\(spectra\)"),
    (lambda: ryle.beamform(X, W.astype(complex)), r"weights.astype\(numpy.complex64\)"),
    (lambda: ryle.beamform(X, W.transpose(0, 2, 1).copy().transpose(0, 2, 1)), r"numpy.ascontiguousarray\(weights\)"),
    (lambda: ryle.beamform(np.ascontiguousarray(X.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3), W), r"numpy.ascontiguousarray\(spectra\)"),
    (lambda: ryle.dedisperse(np.zeros((8, 999), np.int16), [0.0], **BAND), r"codes.astype\(numpy.uint8\)"),
    (lambda: ryle.dedisperse(np.zeros((999, 8), np.uint8).T, [0.0], **BAND), r"numpy.ascontiguousarray\(codes\)"),
    (lambda: ryle.search(np.zeros((8, 9999)), **BAND), r"data.astype\(numpy.float32\)"),
    (lambda: ryle.fold(np.zeros(99), period_s=0.1, interval_s=0.01), r"data.astype\(numpy.float32\)"),
    (lambda: ryle.grid([0.0], [0.0], np.zeros(1), ([0.0], [0.0]), beam=1e-3), r"values.astype\(numpy.float32\)"),
    (lambda: ryle.image_samples(np.zeros((3, 3), np.float32), np.zeros(3, complex)), r"uvw.astype\(numpy.float64\)"),
    (lambda: ryle.correlate(X, valid=np.ones((3, 64))), r"valid.astype\(numpy.bool_\)"),
])
def test_a_wrong_type_or_order_names_the_call_that_converts(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize("call", [
    lambda: ryle.correlate(np.zeros((64, 3, 2), np.int16)),
    lambda: ryle.correlate(X[:, :0]),
    lambda: ryle.correlate(X, valid=np.ones((2, 64), bool)),
    lambda: ryle.beamform(X, W[:, :1]),
    lambda: ryle.channelize(np.zeros((2, 100), np.int8), 64),
    lambda: ryle.dedisperse(np.zeros((8, 10), np.uint8), [0.0, 1000.0], **BAND),
    lambda: ryle.dedisperse(np.zeros((7, 999), np.uint8), [0.0], **BAND),
    lambda: ryle.Dedisperser(BAND["frequency_hz"], 1e-3, [0.0], max_code=3).execute(np.full((8, 99), 9, np.uint8)),
    lambda: ryle.dedisperse(np.zeros((8, 999), np.uint8), [0.0], frequency_hz=BAND["frequency_hz"][::-1], interval_s=1e-3),
    lambda: ryle.grid([0.0, 1.0], [0.0], np.zeros(1, np.float32), ([0.0], [0.0]), beam=1e-3),
    lambda: ryle.image(X, np.zeros((3, 2)), [1e8, 2e8]),
    lambda: ryle.image(X, np.zeros((3, 3))),
    lambda: ryle.Correlator(0, 1),
    lambda: ryle.Channelizer(1, 16, window="welch"),
    lambda: ryle.Beamformer(3, 1, 2, output="amplitude"),
])
def test_a_wrong_shape_or_word_is_a_value_error(call):
    with pytest.raises(ValueError) as caught:
        call()
    assert str(caught.value)


def test_errors_are_those_of_the_program():
    with pytest.raises(ryle.ConfigError, match="welch.*hann") as caught:
        ryle.Channelizer(1, 16, window="welch")
    assert isinstance(caught.value, ryle.Error) and caught.value.exit_code == 78
    with pytest.raises(ryle.UnsupportedError, match="these work here") as caught:
        ryle.Correlator(2, 1, implementation="cpu:z80")
    assert caught.value.exit_code == 69
    assert issubclass(ryle.DataError, ryle.Error) and issubclass(ryle.DeviceError, ryle.Error)


def test_an_array_on_another_device_is_an_error():
    class Elsewhere:
        def __dlpack__(self, **_):
            raise AssertionError("was asked for its memory")

        def __dlpack_device__(self):
            return (2, 0)  # CUDA

    with pytest.raises(ryle.DeviceError, match="spectra.cpu()"):
        ryle.correlate(Elsewhere())


def test_arrays_of_others_come_in_by_dlpack_without_a_copy():
    class Other:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **more):
            return self.array.__dlpack__(**more)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    x = codes(np.random.default_rng(1), (2, 100, 3))
    assert (ryle.correlate(Other(x)).sums == ryle.correlate(x).sums).all()


def test_nothing_that_was_given_changes():
    x = codes(np.random.default_rng(2), (2, 100, 3))
    x.flags.writeable = False
    before = x.copy()
    ryle.correlate(x)
    ryle.beamform(x, W)
    ryle.channelize(x[0].transpose(1, 0, 2), 8, n_taps=2)
    assert (x == before).all()


def test_results_outlive_their_plans_and_inputs_are_not_kept():
    x = codes(np.random.default_rng(3), (2, 100, 3))
    plan = ryle.Correlator(3, 2)
    plan.execute(x)
    references = sys.getrefcount(x)
    v = plan.finish()
    sums = v.sums.copy()
    spectra = ryle.channelize(codes(np.random.default_rng(4), (2, 4096)), 16)
    array = spectra.array
    kept = array.copy()
    del plan, spectra
    gc.collect()
    np.zeros(1 << 22).fill(7)  # whoever took their memory would show
    assert (v.sums == sums).all() and (array == kept).all()
    for _ in range(20):
        ryle.correlate(x)
        ryle.beamform(x, W)
    assert sys.getrefcount(x) == references


def test_plans_and_results_are_freed():
    class Watched(np.ndarray):
        pass

    plan = ryle.Correlator(3, 2)
    x = codes(np.random.default_rng(5), (2, 100, 3)).view(Watched)
    plan.execute(x)
    result = plan.finish()
    gone = [weakref.ref(o) for o in (plan, result, x)]
    del plan, result, x
    gc.collect()
    assert not any(reference() for reference in gone)


def test_nothing_is_left_when_python_ends():
    code = """
        import numpy as np, ryle
        plan = ryle.Correlator(3, 2)
        plan.execute(np.zeros((2, 64, 3, 2), np.int8))
        kept = [plan, plan.finish(), ryle.channelize(np.zeros((1, 999), np.int8), 8)]
        kept.append(kept[2].array)
        try:
            ryle.Correlator(0, 0)
        except ryle.ConfigError as error:
            kept.append(error)
        del kept, plan
    """
    result = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr  # nanobind names what is left


def test_memory_does_not_grow_with_calls():
    resource = pytest.importorskip("resource")
    x = codes(np.random.default_rng(6), (16, 2000, 8))
    w = np.ones((4, 16, 8), np.complex64)

    def peak_mib():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def work(n):
        for _ in range(n):
            ryle.correlate(x)
            ryle.beamform(x, w, output="voltage")

    work(10)
    before = peak_mib()
    work(60)
    assert peak_mib() - before < 60  # beams alone are 8 MiB a call


def test_eight_threads_at_once_on_plans_of_their_own_and_on_one():
    x = codes(np.random.default_rng(7), (4, 1000, 6))
    expected = ryle.correlate(x).sums
    one = ryle.Correlator(6, 4)
    failures = []

    def work():
        try:
            for _ in range(5):
                assert (ryle.correlate(x).sums == expected).all()
                one.execute(x)
                ryle.search(np.ones((8, 4096), np.float32), dm_max=10, **BAND)
        except BaseException as error:  # noqa: B902 - told below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert (one.finish().sums == 40 * expected).all()


def test_ctrl_c_ends_a_long_call():
    output, seconds, code = interrupted("""
        import numpy as np, ryle
        x = np.zeros((16, 200_000, 32, 2), np.int8)
        plan = ryle.Correlator(32, 16, max_spectra=256, implementation="reference")
        print("ready", flush=True)
        try:
            plan.execute(x)
            print("finished")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert "interrupted" in output and code == 0 and seconds < 20, output


def test_ctrl_c_ends_an_image():
    output, seconds, code = interrupted("""
        import numpy as np, ryle
        rng = np.random.default_rng(1)
        uvw, v = rng.normal(0, 100, (400_000, 3)), np.ones(400_000, complex)
        print("ready", flush=True)
        try:
            ryle.image_samples(uvw, v, n_pixels=2048, path="direct")
            print("finished")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert "interrupted" in output and code == 0 and seconds < 20, output


def test_importing_is_cheap():
    code = "import sys, numpy; base = set(sys.modules); import ryle; print(*(set(sys.modules) - base))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = result.stdout.split()
    assert {name.split(".")[0] for name in new} <= {"ryle", "numpy", "json", "_json", "atexit", "__future__"}, new
    assert len(new) < 40, new


def test_units_of_astropy_are_taken():
    pytest.importorskip("astropy")
    from astropy import units as u

    x = np.random.default_rng(9).integers(0, 60, (8, 2000)).astype(np.uint8)
    plain = ryle.dedisperse(x, [0.0, 50.0], **BAND)
    with_units = ryle.dedisperse(x, [0, 50] * u.pc / u.cm**3, frequency_hz=BAND["frequency_hz"] / 1e6 * u.MHz, interval_s=1 * u.ms)
    assert (plain.array == with_units.array).all()
    spectra = ryle.channelize(np.zeros((1, 999), np.int8), 8, sample_rate_hz=16 * u.MHz)
    assert spectra.frequency_hz[1] - spectra.frequency_hz[0] == pytest.approx(1e6)
    with pytest.raises(u.UnitConversionError):
        ryle.Channelizer(1, 8, sample_rate_hz=3 * u.m)


def test_candidates_become_a_table():
    pytest.importorskip("astropy")
    power = np.random.default_rng(10).normal(100, 10, (64, 8192)).astype(np.float32)
    mhz = np.linspace(1200, 1500, 64)
    for c, s in enumerate(np.rint(4148.8064 * 100 * (mhz ** -2.0 - mhz[-1] ** -2.0) / 1e-3).astype(int)):
        power[c, 4000 + s: 4003 + s] += 40
    found = ryle.search(power, dm_max=200, frequency_hz=mhz * 1e6, interval_s=1e-3)
    table = found.table()
    assert len(table) == len(found) > 0 and str(table["dm_pc_cm3"].unit) == "pc / cm3"
    assert len(ryle.search(power[:, :2048].copy(), dm_max=20, frequency_hz=mhz * 1e6, interval_s=1e-3).table()) == 0
