#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Times the package ryle beside what the same thing is done with in Python today, each checked against the other first, and
prints the table of docs/python.md. Programs take turns; a figure is the fastest of several.
    PYTHONPATH=build-check/python .venv/bin/python scripts/python_speeds.py"""

import os
import time

import numpy as np

import ryle

RNG = np.random.default_rng(1)
TURNS = 3


def fastest(*calls):
    """Seconds of each call, the best of some turns."""
    best = [np.inf] * len(calls)
    for _ in range(TURNS):
        for k, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - begin)
    return best


def correlate():
    x = RNG.integers(-8, 8, (32, 1024, 32, 2)).astype(np.int8)
    z = ryle.to_complex(x)
    zt = np.ascontiguousarray(z.transpose(0, 2, 1))

    def matmul():
        return zt @ zt.conj().transpose(0, 2, 1)

    def einsum():
        return np.einsum("cti,ctj->cij", z, z.conj())

    assert np.allclose(ryle.correlate(x).matrix() * 1024, einsum(), rtol=1e-4, atol=1e-1)
    ours, theirs, fast = fastest(lambda: ryle.correlate(x), einsum, matmul)
    yield "correlate", "32 inputs, 32 channels, 1,024 spectra of 8 bits", ours, "np.einsum, complex64", theirs
    yield "", "", ours, "np.matmul (BLAS), complex64", fast


def channelize():
    from scipy import fft

    x = RNG.normal(size=(8, 1 << 19)).astype(np.float32)
    plan = ryle.Channelizer(8, 512, format="f32", n_taps=8, output="cf32")
    h = plan.filter.astype(np.float32).reshape(8, 1024)

    def scipy_bank():
        rows = x.reshape(8, -1, 1024)
        n = rows.shape[1] - 7
        summed = sum(h[tap] * rows[:, tap: tap + n] for tap in range(8))
        return fft.rfft(summed, axis=2, workers=os.cpu_count())[..., :512]

    assert np.allclose(plan.execute(x).array, scipy_bank().transpose(2, 1, 0), atol=1e-4)
    ours, theirs = fastest(lambda: plan.execute(x), scipy_bank)
    yield "channelize", "8 inputs of floats, 512 channels, 8 taps", ours, "NumPy filter, scipy.fft.rfft", theirs


def beamform():
    x = RNG.integers(-8, 8, (32, 2048, 64, 2)).astype(np.int8)
    w = (RNG.normal(size=(16, 32, 64)) + 1j * RNG.normal(size=(16, 32, 64))).astype(np.complex64)
    z = ryle.to_complex(x)
    plan = ryle.Beamformer(64, 16, 32, format="ci8", integration=16)
    plan.set_weights(w)

    def matmul():
        voltage = w.transpose(1, 0, 2) @ z.transpose(0, 2, 1)
        return (voltage.real ** 2 + voltage.imag ** 2).reshape(32, 16, -1, 16).sum(axis=3)

    ratio = plan.execute(x).array[:, 0] / matmul().transpose(1, 0, 2)
    assert np.allclose(ratio, ratio.mean(), rtol=0.05)  # weights of 8 bits
    plan.reset()

    def ours_once():
        plan.reset()
        plan.execute(x)

    ours, theirs = fastest(ours_once, matmul)
    yield "beamform", "16 beams of 64 antennas, 32 channels, power", ours, "np.matmul, square, sum", theirs


def dedisperse():
    x = RNG.integers(0, 64, (256, 1 << 15)).astype(np.uint8)
    frequency = np.linspace(1.2e9, 1.5e9, 256)
    plan = ryle.Dedisperser(frequency, 1e-3, np.arange(0, 300, 3.0))

    def brute():
        n = x.shape[1] - plan.max_delay
        out = np.zeros((len(plan.delays), n), np.uint16)
        for trial, row in enumerate(plan.delays):
            for channel, shift in enumerate(row):
                out[trial] += x[channel, shift: shift + n]
        return out

    assert (plan.execute(x).array == brute()).all()
    ours, theirs = fastest(lambda: plan.execute(x), brute)
    yield "dedisperse", "100 trials, 256 channels, 32,768 samples", ours, "NumPy brute force", theirs


def grid():
    import cygrid
    from astropy.io import fits
    from astropy.wcs import WCS

    n, channels, side = 100_000, 8, 101
    lon, lat = 30 + RNG.uniform(-1, 1, n), RNG.uniform(-1, 1, n)
    values = RNG.normal(size=(channels, n)).astype(np.float32)
    header = fits.Header({"NAXIS": 3, "NAXIS1": side, "NAXIS2": side, "NAXIS3": channels, "CTYPE1": "RA---SIN", "CTYPE2": "DEC--SIN",
                          "CTYPE3": "CHANNEL", "CRPIX1": 51, "CRPIX2": 51, "CRVAL1": 30.0, "CRVAL2": 0.0, "CDELT1": -0.02,
                          "CDELT2": 0.02, "CUNIT1": "deg", "CUNIT2": "deg"})
    rows = np.ascontiguousarray(values.T)
    sigma = 0.04

    def cygrid_map():
        gridder = cygrid.WcsGrid(header)
        gridder.set_kernel("gauss1d", (sigma,), 3 * sigma, sigma / 2)
        gridder.grid(lon, lat, rows)
        return gridder.get_datacube()

    wcs = WCS(header).celestial

    def ours_map():
        return ryle.grid(lon, lat, values, wcs, shape=(side, side), kernel=f"gauss:sigma={sigma}deg,radius={3 * sigma}deg")

    assert np.nanmax(np.abs(ours_map().array - cygrid_map())) < 1e-3
    ours, theirs = fastest(ours_map, cygrid_map)
    yield "grid", "100,000 samples of 8 channels, 101 x 101 cells", ours, "cygrid", theirs


def overhead():
    """Format, seconds of the engine's execute, and what a call of a plan takes beyond it: of Spectra, and of an array, which is brought into blocks."""
    def shortest(call):
        best = np.inf
        for _ in range(2000):
            begin = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - begin)
        return best

    for array in (np.ones((1, 128, 2, 2), np.int8), np.ones((1, 128, 2), np.complex64)):
        x = ryle.spectra(array)
        plan = ryle.Correlator(2, 1, format=x.format)
        engine = shortest(lambda: plan._plan.execute(x.blocks))
        yield x.format, engine, shortest(lambda: plan.execute(x)) - engine, shortest(lambda: plan.execute(array)) - engine


def main():
    print("| function | of | ryle | beside | takes | times |\n|---|---|---|---|---|---|")
    for measure in (correlate, channelize, beamform, dedisperse, grid):
        for function, what, ours, beside, theirs in measure():
            print(f"| {function} | {what} | {ours * 1e3:.3g} ms | {beside} | {theirs * 1e3:.3g} ms | {theirs / ours:.2g} |")
    print()
    for name, *seconds in overhead():
        engine, of_spectra, of_array = (f"{1e6 * s:.1f} us" for s in seconds)
        print(f"`Correlator.execute` of 128 spectra of 2 inputs, {name}: the engine takes {engine}; a call {of_spectra} more with Spectra, {of_array} with an array.")


if __name__ == "__main__":
    main()
