# SPDX-License-Identifier: BSD-3-Clause
"""What must not crash, hang, leak or be wrong in silence: values that are not finite, other devices, forks, threads, signals."""

import gc
import multiprocessing
import os
import threading
import time
import tracemalloc

import numpy as np
import pytest
from helpers import codes, interrupted

import ryle

BAND = {"frequency_hz": np.linspace(1.2e9, 1.5e9, 8), "interval_s": 1e-3}


def noise(seed, shape):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(np.complex64)


# Values that are not finite.

@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, complex(0, np.nan), complex(np.inf, 0)])
def test_samples_that_are_not_finite_are_absent_from_a_correlation(bad):
    x = noise(1, (2, 300, 3))
    x[1, 200, 2] = bad
    v = ryle.correlate(x)
    clean = x.copy()
    clean[1, 200, 2] = 0
    valid = np.ones((2, 3, 300), bool)
    valid[1, 2, 200] = False
    expected = ryle.correlate(clean, valid=valid)
    assert np.isfinite(v.sums).all() and (v.sums == expected.sums).all() and (v.counts == expected.counts).all()
    touched = [n for n, (i, j) in enumerate(v.pairs) if 2 in (i, j)]
    assert (v.counts[1, touched] == 299).all() and (np.delete(v.counts[1], touched) == 300).all() and (v.counts[0] == 300).all()
    masked = ryle.correlate(x, valid=np.arange(300) % 2 * np.ones((3, 1)) > 0)
    assert masked.counts.max() == 150 and np.isfinite(masked.sums).all()
    s = ryle.spectra(x)
    assert not s.valid[1, 2, 200] and s.valid.sum() == s.valid.size - 1 and s.array[1, 200, 2] == 0
    assert (ryle.correlate(s).sums == v.sums).all()
    plan = ryle.Correlator(3, 2, format="cf32", max_spectra=128)
    plan.execute(x[:, :150])
    plan.execute(x[:, 150:])
    assert np.allclose(plan.finish().sums, v.sums) and np.isfinite(v.array).all()


def test_samples_that_are_not_finite_are_refused_by_the_beamformer_or_absent():
    x, w = noise(2, (2, 64, 3)), np.ones((1, 2, 3), np.complex64)
    x[1, 20, 2] = np.nan
    with pytest.raises(ValueError, match="not finite.*ryle.spectra"):
        ryle.beamform(x, w)
    beams = ryle.beamform(ryle.spectra(x), w, integration=8, loss="raw")
    clean = x.copy()
    clean[1, 20, 2] = 0
    assert np.allclose(beams.array, ryle.beamform(clean, w, integration=8).array, rtol=1e-5)
    assert beams.n_used.tolist() == [[192, 191]]
    # A plan that works in gulps takes each gulp its own part of the mask.
    plan = ryle.Beamformer(3, 1, 2, format="cf32", weight_format="f32", integration=8, loss="raw", max_spectra=16)
    plan.set_weights(w)
    pieces = plan.execute(ryle.spectra(x))
    assert np.allclose(pieces.array, beams.array, rtol=1e-5) and (pieces.n_used == beams.n_used).all()
    with pytest.raises(ValueError, match="other than 0.*ryle.spectra"):
        valid = np.ones((2, 3, 64), bool)
        valid[1, 2, 20] = False
        ryle.beamform(noise(2, (2, 64, 3)), w, valid=valid)


def test_what_is_not_finite_elsewhere_is_an_error_or_absent():
    w = np.ones((1, 2, 3), np.complex64)
    w[0, 1, 1] = np.nan
    with pytest.raises(ryle.ConfigError, match="finite"):
        ryle.beamform(noise(3, (2, 64, 3)), w)
    gains = np.ones((1, 8), np.complex64)
    gains[0, 3] = np.inf
    with pytest.raises(ryle.ConfigError, match="finite"):
        ryle.channelize(np.zeros((1, 999), np.int8), 8, gains=gains)
    with pytest.raises(ryle.ConfigError, match="finite"):
        ryle.channelize(np.zeros((1, 999), np.int8), 8, delay_s=[np.nan])
    position = np.random.default_rng(4).uniform(-15, 15, (6, 3)) * [1, 1, 0]
    x = noise(4, (1, 200, 6))
    clean, valid = x.copy(), np.ones((6, 200), bool)
    x[0, 100, 4] = np.nan
    clean[0, 100, 4], valid[4, 100] = 0, False
    image = ryle.image(x, position, [40e6], n_pixels=32)
    assert np.allclose(image.array, ryle.image(clean, position, [40e6], valid=valid, n_pixels=32).array, equal_nan=True)
    power = np.random.default_rng(5).normal(100, 10, (8, 4096)).astype(np.float32)
    power[3, 1000:1100] = np.nan
    assert all(np.isfinite(e["snr"]) for e in ryle.search(power, dm_max=20, **BAND))


# Arrays of elsewhere, and of nowhere.

class Elsewhere:
    """An array of a GPU, as far as anybody may look."""

    def __init__(self, kind):
        self.kind = kind

    def __dlpack__(self, **more):
        raise AssertionError("nobody may ask for the memory")

    def __dlpack_device__(self):
        return (self.kind, 0)


class OnlyCuda:
    __cuda_array_interface__ = {"shape": (2, 64, 3, 2), "typestr": "|i1", "data": (1, True), "version": 3}


@pytest.mark.parametrize("array", [Elsewhere(2), Elsewhere(13), Elsewhere(10), OnlyCuda()])
@pytest.mark.parametrize("call", [
    lambda a: ryle.correlate(a), lambda a: ryle.beamform(a, np.ones((1, 2, 3), np.complex64)), lambda a: ryle.channelize(a, 8),
    lambda a: ryle.dedisperse(a, [0.0], **BAND), lambda a: ryle.search(a, **BAND), lambda a: ryle.fold(a, period_s=0.1, interval_s=1e-3),
    lambda a: ryle.image(a, np.zeros((3, 3)), [1e8]), lambda a: ryle.grid(np.zeros(9), np.zeros(9), a, ([0.0], [0.0]), beam=1e-3),
    lambda a: ryle.spectra(a), lambda a: ryle.to_complex(a), lambda a: ryle.correlate(np.zeros((2, 64, 3, 2), np.int8), valid=a),
])
def test_an_array_of_a_gpu_is_an_error_that_says_what_would_work(call, array):
    with pytest.raises(ryle.DeviceError, match=r"(CUDA|ROCm).*\.cpu\(\).*\.get\(\).*runtime.device") as caught:
        call(array)
    assert caught.value.exit_code == 69 and isinstance(caught.value, RuntimeError)


def test_pinned_memory_is_memory_of_the_host():
    class Pinned:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **more):
            return self.array.__dlpack__()

        def __dlpack_device__(self):
            return (3, 0)

    x = codes(np.random.default_rng(6), (2, 64, 3))
    try:
        sums = ryle.correlate(Pinned(x)).sums
    except (BufferError, RuntimeError) as error:  # NumPy takes no such capsule
        assert "device" in str(error).lower()
    else:
        assert (sums == ryle.correlate(x).sums).all()


def test_an_array_whose_memory_is_gone_is_the_error_of_its_library():
    class Deleted:
        def __dlpack__(self, **more):
            raise RuntimeError("Array has been deleted.")

        def __dlpack_device__(self):
            return (1, 0)

    with pytest.raises(RuntimeError, match="has been deleted"):
        ryle.correlate(Deleted())
    torch = pytest.importorskip("torch", reason="skipped: no torch")
    x = torch.zeros((2, 64, 3, 2), dtype=torch.int8)
    x.untyped_storage().resize_(0)
    with pytest.raises((TypeError, ValueError, RuntimeError, BufferError)):
        ryle.correlate(x)


def test_memory_is_kept_until_the_engine_has_read_it():
    plan = ryle.Correlator(8, 4)
    expected = None
    for _ in range(5):
        x = codes(np.random.default_rng(7), (4, 20_000, 8))
        call = threading.Thread(target=plan.execute, args=(x,))
        call.start()
        del x  # the call holds the last reference
        gc.collect()
        np.zeros(1 << 20).fill(3)
        call.join()
        sums = plan.finish().sums
        expected = sums if expected is None else expected
        assert (sums == expected).all()


# Threads.

def test_a_python_thread_works_on_while_a_correlation_runs():
    """What a thread of plain Python does in a second of a correlation, beside what it does in a second of nothing: one of the
    cores is its own, and it does not wait for the GIL."""
    x = codes(np.random.default_rng(8), (16, 2048, 64))
    plan = ryle.Correlator(64, 16, max_spectra=2048, implementation="reference")

    def rate_during(work):
        """Steps a second, and the longest time without one."""
        stop, steps = threading.Event(), []

        def count():
            n, last, longest = 0, time.perf_counter(), 0.0
            while not stop.is_set():
                n += 1
                now = time.perf_counter()
                last, longest = now, max(longest, now - last)
            steps.extend((n, longest))

        counter = threading.Thread(target=count)
        begin = time.perf_counter()
        counter.start()
        work()
        stop.set()
        counter.join()
        return steps[0] / (time.perf_counter() - begin), steps[1]

    begin = time.perf_counter()
    busy, longest_s = rate_during(lambda: plan.execute(x))
    lasted_s = time.perf_counter() - begin
    assert lasted_s > 0.2, "too short to tell"
    free, _ = rate_during(lambda: time.sleep(0.5))
    # All cores are busy with the correlation, too: a share of one is the worst that a fair machine gives. With the GIL held
    # the thread would make no step from begin to end.
    assert busy > 0.1 * free, f"{busy:.0f} steps a second of {free:.0f}"
    assert longest_s < 0.5 * lasted_s


def test_eight_threads_on_every_engine_agree_with_one():
    x = codes(np.random.default_rng(9), (4, 1000, 6))
    w = np.ones((2, 4, 6), np.complex64)
    samples = np.random.default_rng(10).integers(-20, 20, (2, 20_000)).astype(np.int8)
    series = np.random.default_rng(11).normal(size=20_000).astype(np.float32)
    power = np.random.default_rng(12).integers(0, 60, (8, 5000)).astype(np.uint8)
    position = np.random.default_rng(13).uniform(-15, 15, (6, 3)) * [1, 1, 0]
    lon, lat = np.random.default_rng(14).uniform(-0.5, 0.5, (2, 3000))
    cells = tuple(np.meshgrid(np.linspace(-0.4, 0.4, 9), np.linspace(-0.4, 0.4, 9)))
    works = {
        "correlate": lambda: ryle.correlate(x).sums,
        "beamform": lambda: ryle.beamform(x, w, integration=4).array,
        "channelize": lambda: ryle.channelize(samples, 32).array,
        "fold": lambda: ryle.fold(series, period_s=0.1, interval_s=1e-3, search=False).profile,
        "dedisperse": lambda: ryle.dedisperse(power, [0.0, 50.0], **BAND).array,
        "search": lambda: np.array([e["snr"] for e in ryle.search(power.astype(np.float32), dm_max=20, threshold=5.0, **BAND)]),
        "image": lambda: ryle.image(x, position, 40e6 + 1e4 * np.arange(4), n_pixels=32, path="vis-grid").array,
        "grid": lambda: ryle.grid(lon, lat, np.ones(3000, np.float32), cells, beam="6arcmin").array,
    }
    expected = {name: work() for name, work in works.items()}
    failures, barrier = [], threading.Barrier(8)

    def run(k):
        try:
            barrier.wait()
            names = list(works)
            for name in names[k:] + names[:k]:
                for _ in range(3):
                    assert np.array_equal(works[name](), expected[name], equal_nan=True), name
        except BaseException as error:  # noqa: B902 - told below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


# Forks.

def correlated_in_child(queue, x):
    queue.put(ryle.correlate(x).sums)


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_a_child_process_computes(start):
    """The threads of the engines are the parent's: a child of a fork has none of them, and must not wait for them."""
    x = codes(np.random.default_rng(15), (16, 4096, 32))
    expected = ryle.correlate(x).sums  # threads are there now
    context = multiprocessing.get_context(start)
    queue = context.Queue()
    child = context.Process(target=correlated_in_child, args=(queue, x))
    child.start()
    try:
        assert (queue.get(timeout=60) == expected).all()
        child.join(20)
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
    assert (ryle.correlate(x).sums == expected).all()


# Signals.

def test_ctrl_c_ends_a_fold_of_a_file(tmp_path):
    power = np.random.default_rng(16).normal(100, 10, (64, 1 << 19)).astype(np.float32)
    ryle.write(tmp_path / "long.fil", power, frequency_hz=np.linspace(1.2e9, 1.5e9, 64), interval_s=1e-4, start_mjd_utc=60000.0)
    output, seconds, code = interrupted(f"""
        import ryle
        print("ready", flush=True)
        n = 0
        try:
            while True:
                ryle.fold({str(tmp_path / 'long.fil')!r}, period_s=0.1, n_bins=512, dm=50, drift_turns=20,
                          text={str(tmp_path / 'profile.txt')!r}, overwrite=True)
                n += 1
        except KeyboardInterrupt:
            print("interrupted", n)
    """)
    assert "interrupted" in output and code == 0 and seconds < 10, output
    assert not list(tmp_path.glob(".*.part"))


# Memory.

def test_a_thousand_calls_leave_nothing():
    """Neither what Python allocates (tracemalloc) nor what the process holds (RSS) grows with calls, right ones and refused ones."""
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("skipped: needs /proc")
    x = codes(np.random.default_rng(17), (2, 256, 4))
    w = np.ones((2, 2, 4), np.complex64)
    samples = np.random.default_rng(18).integers(-20, 20, (2, 4096)).astype(np.int8)
    series = np.random.default_rng(19).normal(size=4096).astype(np.float32)
    power = np.random.default_rng(20).integers(0, 60, (8, 1024)).astype(np.uint8)
    cells = tuple(np.meshgrid(np.linspace(-0.4, 0.4, 5), np.linspace(-0.4, 0.4, 5)))
    lon, lat = np.random.default_rng(21).uniform(-0.5, 0.5, (2, 100))

    def once():
        ryle.correlate(x).matrix()
        ryle.beamform(x, w)
        ryle.channelize(samples, 16).valid
        ryle.fold(series, period_s=0.1, interval_s=1e-3, search=False)
        ryle.dedisperse(power, [0.0, 10.0], **BAND)
        ryle.grid(lon, lat, np.ones(100, np.float32), cells, beam="6arcmin")
        for wrong in (lambda: ryle.correlate(x.astype(np.int32)), lambda: ryle.beamform(x, w[:, :1]), lambda: ryle.Channelizer(1, 16, window="welch"),
                      lambda: ryle.open("no such file")):
            try:
                wrong()
            except (TypeError, ValueError):
                pass

    def rss_mib():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20

    for _ in range(200):
        once()
    gc.collect()
    tracemalloc.start()
    try:
        once()
        gc.collect()
        held, before = tracemalloc.get_traced_memory()[0], rss_mib()
        for _ in range(1000):
            once()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - held
    finally:
        tracemalloc.stop()
    assert grown < 100_000, f"{grown} bytes of Python after 1,000 calls: 100 a call would be a leak"
    assert rss_mib() - before < 16, f"{rss_mib() - before:.1f} MiB after 1,000 calls"
