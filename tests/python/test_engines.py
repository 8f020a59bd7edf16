# SPDX-License-Identifier: BSD-3-Clause
"""Each function beside its definition in NumPy or SciPy."""

import numpy as np
import pytest
from helpers import as_complex, codes, pairs

import ryle

C_M_PER_S = 299792458.0


# Correlator.

@pytest.mark.parametrize("order", ["dense", "strided", "structured"])
def test_correlate_equals_einsum_in_exact_integers(order):
    rng = np.random.default_rng(1)
    x = codes(rng, (3, 500, 5))
    given = x
    if order == "strided":
        given = np.ascontiguousarray(x.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3)  # lies as [input, channel, time]
    if order == "structured":
        given = x.copy().view(ryle.complex_int8)[..., 0]
    v = ryle.correlate(given)
    z = as_complex(x)
    full = np.einsum("cti,ctj->cij", z, z.conj())
    for baseline, (i, j) in enumerate(pairs(5)):
        assert (v.sums[:, baseline, 0] == full[:, i, j].real).all()
        assert (v.sums[:, baseline, 1] == full[:, i, j].imag).all()
    assert (v.counts == 500).all() and v.n_spectra == 500
    assert v.pairs.tolist() == [list(p) for p in pairs(5)]
    assert np.allclose(v.matrix(), full / 500)


@pytest.mark.parametrize("dtype", ["int16", "uint8", "complex64"])
def test_correlate_takes_every_format(dtype):
    rng = np.random.default_rng(2)
    if dtype == "uint8":
        x = rng.integers(0, 256, (2, 200, 4)).astype(np.uint8)
        z = ryle.to_complex(x).astype(complex)
    elif dtype == "int16":
        x = rng.integers(-32768, 32768, (2, 200, 4, 2)).astype(np.int16)
        z = as_complex(x)
    else:
        x = (rng.normal(size=(2, 200, 4)) + 1j * rng.normal(size=(2, 200, 4))).astype(np.complex64)
        z = x.astype(complex)
    v = ryle.correlate(x)
    full = np.einsum("cti,ctj->cij", z, z.conj()) / 200
    assert np.allclose(v.matrix(), full, rtol=1e-5, atol=1e-4 if dtype == "complex64" else 0)
    plan = ryle.Correlator(4, 2, format=ryle.spectra(x).format, max_spectra=128)  # cuts planar blocks into gulps
    plan.execute(ryle.spectra(x))
    assert np.allclose(plan.finish().array, v.array, rtol=1e-6)


@pytest.mark.parametrize("per_channel", [False, True])
def test_correlate_counts_what_is_valid(per_channel):
    rng = np.random.default_rng(3)
    x = codes(rng, (2, 333, 3))
    valid = rng.random((2, 3, 333) if per_channel else (3, 333)) > 0.2
    v = ryle.correlate(x, valid=valid)
    mask = valid if per_channel else np.broadcast_to(valid, (2, 3, 333))
    z = as_complex(x) * mask.transpose(0, 2, 1)
    for baseline, (i, j) in enumerate(pairs(3)):
        n = (mask[:, i] & mask[:, j]).sum(axis=1)
        assert (v.counts[:, baseline] == n).all()
        assert np.allclose(v.array[:, baseline], (z[:, :, i] * z[:, :, j].conj()).sum(axis=1) / n)
    plan = ryle.Correlator(3, 2, max_spectra=128)
    plan.execute(ryle.spectra(x, valid=valid))
    in_gulps = plan.finish()
    assert (in_gulps.counts == v.counts).all() and (in_gulps.sums == v.sums).all()


def test_correlator_adds_gulps_and_begins_anew():
    x = codes(np.random.default_rng(4), (2, 1000, 4))
    whole = ryle.correlate(x)
    plan = ryle.Correlator(4, 2, max_spectra=128)
    for first in range(0, 1000, 300):
        plan.execute(x[:, first: first + 300])
    parts = plan.finish()
    assert (parts.sums == whole.sums).all() and (parts.counts == whole.counts).all()
    plan.execute(x)
    plan.reset()
    assert plan.finish().n_spectra == 0
    assert plan.cost()["useful_ops_per_spectrum"] == 8 * 2 * 10
    assert plan.implementation.startswith("correlate/")


def test_every_implementation_of_the_correlator_gives_the_same_bits():
    x = codes(np.random.default_rng(5), (2, 200, 6))
    sums = []
    for name in ryle.implementations()["correlate"]:
        try:
            sums.append(ryle.correlate(x, implementation=name).sums)
        except ryle.UnsupportedError:  # of other formats than ci8, or of a GPU
            continue
    assert len(sums) > 1 and all((s == sums[0]).all() for s in sums)


# Channelizer.

def window_sum(x, h, n_channels, length, step, m):
    """The equation of the header, for complex samples."""
    n = np.arange(len(h))
    k = np.arange(n_channels)[:, None]
    return (h * x[m * step + n] * np.exp(-2j * np.pi * k * (m * step + n) / length)).sum(axis=1)


@pytest.mark.parametrize("taps,step", [(1, 0), (4, 0), (4, 24)])
def test_channelize_equals_its_equation(taps, step):
    rng = np.random.default_rng(6)
    x = (rng.normal(size=(2, 700)) + 1j * rng.normal(size=(2, 700))).astype(np.complex64)
    plan = ryle.Channelizer(2, 32, format="cf32", n_taps=taps, step_samples=step, output="cf32")
    spectra = plan.execute(x)
    step = step or 32
    assert spectra.shape == (32, (700 - 32 * taps) // step + 1, 2)
    for m in (0, 3, spectra.shape[1] - 1):
        expected = np.stack([window_sum(x[p], plan.filter, 32, 32, step, m) for p in range(2)], axis=1)
        assert np.allclose(spectra.array[:, m], np.fft.fftshift(expected, axes=0), atol=2e-5)
    assert spectra.valid.all()
    assert np.allclose(spectra.frequency_hz, np.fft.fftshift(np.fft.fftfreq(32)))


def test_channelize_with_one_tap_is_the_transform_of_scipy():
    scipy_fft = pytest.importorskip("scipy.fft")
    x = np.random.default_rng(7).integers(-128, 128, (3, 64 * 20)).astype(np.int8)
    spectra = ryle.channelize(x, 32, n_taps=1, output="cf32", sample_rate_hz=64e6)
    expected = scipy_fft.rfft(x.reshape(3, 20, 64).astype(float), axis=2)[..., :32] / 8
    assert np.allclose(spectra.array, expected.transpose(2, 1, 0), atol=1e-3)
    assert spectra.frequency_hz[1] - spectra.frequency_hz[0] == pytest.approx(1e6)


def test_channelize_filters_as_scipy_does():
    signal = pytest.importorskip("scipy.signal")
    x = np.random.default_rng(8).normal(size=4096).astype(np.float32)
    plan = ryle.Channelizer(1, 16, format="f32", n_taps=6, output="cf32")
    spectra = plan.execute(x[np.newaxis])
    for k in (1, 5, 15):
        down = x * np.exp(-2j * np.pi * k * np.arange(4096) / 32)
        expected = signal.upfirdn(plan.filter[::-1], down)[plan.filter_length - 1: 4096: 32]
        assert np.allclose(spectra.array[k, :, 0], expected[: spectra.shape[1]], atol=1e-5)


def test_channelize_takes_every_layout_without_a_copy():
    x = codes(np.random.default_rng(9), (4, 2048))
    whole = ryle.channelize(x, 64).array
    time_major = np.ascontiguousarray(x.transpose(1, 0, 2)).transpose(1, 0, 2)
    assert not time_major.flags.c_contiguous
    assert (ryle.channelize(time_major, 64).array == whole).all()
    assert (ryle.channelize(x[::2], 64, dither=False).array == ryle.channelize(x, 64, dither=False).array[:, :, ::2]).all()
    assert whole.dtype == np.int8 and whole.shape == (64, 25, 4, 2)
    assert ryle.channelize(x, 64, output="ci4").array.dtype == np.uint8


def test_channelizer_gives_the_same_bits_wherever_a_stream_is_cut():
    x = codes(np.random.default_rng(10), (2, 6400))
    whole = ryle.channelize(x, 64)
    plan = ryle.Channelizer(2, 64, max_spectra=128)
    first = plan.execute(x[:, :3200])
    n = first.shape[1]
    second = plan.execute(x[:, 64 * n:], first_sample=64 * n)
    assert (np.concatenate((first.array, second.array), axis=1) == whole.array).all()


def test_channelize_flags_what_touches_an_absent_sample():
    x = codes(np.random.default_rng(11), (2, 6400))
    valid = np.ones((2, 6400), bool)
    valid[1, 1000:1010] = False
    spectra = ryle.channelize(x, 64, n_taps=4, valid=valid)
    touched = [m for m in range(spectra.shape[1]) if m * 64 < 1010 and m * 64 + 256 > 1000]
    assert np.flatnonzero(~spectra.valid[1]).tolist() == touched and spectra.valid[0].all()
    assert (spectra.array[:, touched, 1] == 0).all()
    counts = ryle.correlate(spectra).counts
    assert (counts[:, 0] == spectra.shape[1]).all() and (counts[:, 1] == spectra.shape[1] - len(touched)).all()


def test_channelize_delays_and_gains():
    rng = np.random.default_rng(12)
    x = np.repeat((rng.normal(size=(1, 8192)) + 1j * rng.normal(size=(1, 8192))).astype(np.complex64), 2, axis=0)
    gains = np.ones((2, 64), np.complex64)
    gains[1] = 2
    settings = {"n_taps": 4, "output": "cf32", "sample_rate_hz": 1e6}
    spectra = ryle.channelize(x, 64, gains=gains, delay_s=np.array([0, 0.25e-6]), **settings)
    a, b = spectra.array[..., 0], spectra.array[..., 1]
    ratio = (b * a.conj()).sum(axis=1) / (abs(a) ** 2).sum(axis=1)
    assert np.allclose(ratio, 2 * np.exp(-2j * np.pi * spectra.frequency_hz * 0.25e-6), atol=0.02)


# Beamformer.

@pytest.mark.parametrize("kind", ["ci8", "ci4", "cf32"])
def test_beamform_equals_its_definition(kind):
    rng = np.random.default_rng(13)
    x = {"ci8": codes(rng, (3, 64, 6), -20, 21), "ci4": rng.integers(0, 256, (3, 64, 6)).astype(np.uint8),
         "cf32": (rng.normal(size=(3, 64, 6)) + 1j * rng.normal(size=(3, 64, 6))).astype(np.complex64)}[kind]
    w = (rng.normal(size=(2, 3, 6)) + 1j * rng.normal(size=(2, 3, 6))).astype(np.complex64)
    z = ryle.to_complex(x).astype(complex)
    voltage = np.einsum("bca,cta->bct", w.astype(complex), z)
    beams = ryle.beamform(x, w, weight_format="f32", integration=8)
    power = (abs(voltage) ** 2).reshape(2, 3, 8, 8).mean(axis=3)
    assert beams.axes == ("beam", "product", "channel", "time") and beams.array.shape == (2, 1, 3, 8)
    assert np.allclose(beams.array[:, 0], power, rtol=2e-4)
    straight = ryle.beamform(x, w, weight_format="f32", output="voltage").array
    assert straight.shape == (2, 3, 64, 1) and np.allclose(straight[..., 0], voltage, rtol=1e-4, atol=1e-3)
    assert (beams.n_used == 64 * 6).all()


def test_beamform_takes_spectra_and_renormalizes_what_is_absent():
    valid = np.repeat([[True], [True], [False], [True]], 64, axis=1)
    spectra = ryle.spectra(np.full((1, 64, 4, 2), 5, np.int8), valid=valid)
    w = np.ones((1, 1, 4), np.complex64)
    kept = ryle.beamform(spectra, w, weight_format="f32", output="voltage").array
    raw = ryle.beamform(spectra, w, weight_format="f32", output="voltage", loss="raw").array
    assert np.allclose(kept, 20 + 20j) and np.allclose(raw, 15 + 15j)
    with pytest.raises(ValueError, match="ryle.spectra"):
        ryle.beamform(np.full((1, 64, 4, 2), 5, np.int8), w, valid=valid)
    assert np.allclose(ryle.beamform(spectra.array, w, valid=valid, weight_format="f32", output="voltage").array, kept)


def test_beamformer_windows_go_on_from_gulp_to_gulp():
    rng = np.random.default_rng(14)
    x = codes(rng, (2, 100, 4), -20, 21)
    w = np.ones((1, 2, 4), np.complex64)
    whole = ryle.beamform(x, w, integration=8).array
    plan = ryle.Beamformer(4, 1, 2, format="ci8", weight_format="f32", integration=8, max_spectra=7)
    plan.set_weights(w)
    parts = [plan.execute(x[:, first: first + 30], first_spectrum=first).array for first in range(0, 100, 30)]
    assert [p.shape[3] for p in parts] == [3, 4, 4, 1]
    assert (np.concatenate(parts, axis=3) == whole).all()


# Dedispersion, search and folding.

def band(n_channels=32):
    return np.linspace(1.2e9, 1.5e9, n_channels)


def test_dedisperse_equals_brute_force():
    rng = np.random.default_rng(15)
    x = rng.integers(0, 64, (32, 3000)).astype(np.uint8)
    dms = np.array([0.0, 7.5, 60.0, 200.0])
    d = ryle.dedisperse(x, dms, frequency_hz=band(), interval_s=1e-3)
    mhz = band() / 1e6
    delays = np.rint(4148.8064 * dms[:, None] * (mhz ** -2.0 - mhz[-1] ** -2.0) / 1e-3).astype(int)
    n = 3000 - delays.max()
    expected = np.array([sum(x[c, s: s + n].astype(int) for c, s in enumerate(row)) for row in delays])
    assert d.array.shape == expected.shape and (d.array == expected).all()
    plan = ryle.Dedisperser(band(), 1e-3, dms, max_outputs=256)
    assert (plan.delays == delays).all() and (plan.execute(x).array == expected).all()


def test_dedisperse_sums_of_many_channels_take_32_bits():
    x = np.full((512, 400), 255, np.uint8)
    d = ryle.dedisperse(x, [0.0], frequency_hz=band(512), interval_s=1e-3)
    assert d.array.dtype == np.uint32 and (d.array == 512 * 255).all()


def test_search_finds_a_pulse_and_nothing_in_noise():
    rng = np.random.default_rng(16)
    power = rng.normal(100, 10, (64, 16384)).astype(np.float32)
    settings = {"frequency_hz": band(64), "interval_s": 1e-3, "dm_max": 300}
    assert len(ryle.search(power, **settings).unflagged) == 0
    mhz = band(64) / 1e6
    for c, s in enumerate(np.rint(4148.8064 * 150 * (mhz ** -2.0 - mhz[-1] ** -2.0) / 1e-3).astype(int)):
        power[c, 7000 + s: 7003 + s] += 30
    found = ryle.search(power, **settings).unflagged
    assert len(found) == 1
    assert found[0]["dm_pc_cm3"] == pytest.approx(150, abs=2) and found[0]["time_s"] == pytest.approx(7.0015, abs=2e-3)


def test_search_refuses_a_key_that_is_none():
    with pytest.raises(ryle.ConfigError, match="dm_max"):
        ryle.search(np.zeros((64, 4096), np.float32), frequency_hz=band(64), interval_s=1e-3, dmmax=3)


def test_fold_equals_its_definition():
    rng = np.random.default_rng(17)
    x = rng.normal(size=5000).astype(np.float32)
    x[100:150] = np.nan
    f = ryle.fold(x, period_s=0.123, interval_s=1e-3, n_bins=16, search=False)
    bins = np.floor(16 * ((np.arange(5000) * 1e-3 / 0.123) % 1)).astype(int)
    good = np.isfinite(x)
    n = np.bincount(bins[good], minlength=16)
    means = np.bincount(bins[good], weights=x[good], minlength=16) / n
    assert (f.counts.sum(axis=0) == n).all() and np.allclose(f.profile, means, atol=1e-6)
    variance = x[good].astype(float).var()
    assert f.reduced_chi2 == pytest.approx((((means - x[good].mean()) ** 2 * n).sum() / variance / 15), rel=1e-3)


# Images.

def sky_of(x, position_m, frequency_hz, directions):
    """Mean power of the sum toward directions (l, m, n), without autocorrelations, over the number of pairs."""
    phase = -2 * np.pi * frequency_hz / C_M_PER_S * position_m @ directions
    beam = np.einsum("tai,ad->td", x[:, :, None], np.exp(1j * phase))
    return (abs(beam) ** 2).mean(axis=0) - (abs(x) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("path", ["efield", "vis-grid", "vis-dft", "efield-dft"])
def test_image_of_spectra_equals_the_sum_over_antennas(path):
    rng = np.random.default_rng(18)
    position = rng.uniform(-18, 18, (20, 3)) * [1, 1, 0]
    frequency = 40e6
    source = np.array([0.3, -0.4, np.sqrt(1 - 0.25)])
    wave = rng.normal(size=(300, 1)) * 30 * np.exp(2j * np.pi * frequency / C_M_PER_S * position @ source)
    x = ryle.complex_codes((wave + rng.normal(size=wave.shape) * 3).clip(-127, 127), np.int8)
    im = ryle.image(x[np.newaxis], position, [frequency], n_pixels=64, path=path)
    assert im.array.shape == (1, 1, 64, 64) and im.provenance["path"] == path and im.planes == ("XX",)
    px, py, value = im.peak()
    assert np.allclose(im.direction(px, py), source, atol=0.03)
    inside = [(12, 40), (32, 32), (px, py), (50, 20)]
    directions = np.array([im.direction(u, v) for u, v in inside]).T
    expected = sky_of(as_complex(x), position, frequency, directions)
    got = np.array([im.array[0, 0, v, u] for u, v in inside])
    assert np.allclose(got / value, expected / expected[2], atol=2e-3)
    assert np.isnan(im.array[0, 0, 0, 0])


def test_image_of_samples_equals_the_sum():
    rng = np.random.default_rng(19)
    uvw = rng.normal(0, 8, (300, 3))
    v = rng.normal(size=300) + 1j * rng.normal(size=300)
    w = rng.uniform(0.5, 2, 300)
    im = ryle.image_samples(uvw, v, w, n_pixels=33, width=1.2, path="direct")
    for x, y in ((16, 16), (3, 20), (30, 9)):
        lmn = np.array(im.direction(x, y)) - [0, 0, 1]
        expected = (w * (v * np.exp(-2j * np.pi * uvw @ lmn)).real).sum() / w.sum()
        assert im.array[0, 0, y, x] == pytest.approx(expected, abs=1e-6)
    stacked = ryle.image_samples(uvw, v, w, n_pixels=33, width=1.2, path="w-stacked").array
    assert np.nanmax(abs(stacked - im.array)) < 1e-4


# Gridding.

def test_grid_equals_the_sum_over_samples():
    rng = np.random.default_rng(20)
    lon, lat = 10 + rng.uniform(-0.5, 0.5, 3000), 40 + rng.uniform(-0.4, 0.4, 3000)
    values = rng.normal(size=(2, 3000)).astype(np.float32)
    weights = rng.uniform(0.5, 2, 3000).astype(np.float32)
    values[0, 5] = np.nan
    flags = rng.random((2, 3000)) < 0.05
    cells = np.meshgrid(np.linspace(9.7, 10.3, 13), np.linspace(39.8, 40.2, 11))
    sigma = np.deg2rad(3 / 60)
    m = ryle.grid(lon, lat, values, tuple(cells), weights=weights, flags=flags, kernel="gauss:sigma=3arcmin,radius=9arcmin", precision="f64")

    def unit(a, b):
        a, b = np.deg2rad(a), np.deg2rad(b)
        return np.stack((np.cos(b) * np.cos(a), np.cos(b) * np.sin(a), np.sin(b)), axis=-1)

    chord = np.linalg.norm(unit(*cells)[..., None, :] - unit(lon, lat), axis=-1)
    theta = 2 * np.arcsin(chord / 2)
    kernel = np.where(theta < np.deg2rad(9 / 60), np.exp(-theta ** 2 / (2 * sigma ** 2)), 0)
    for c in range(2):
        good = np.isfinite(values[c]) & ~flags[c]
        k = kernel[..., good] * weights[good]
        assert np.allclose(m.array[c], (k * values[c, good]).sum(-1) / k.sum(-1), atol=1e-5)
        assert np.allclose(m.weights[c], k.sum(-1), rtol=1e-5)
        assert (m.counts[c] == (kernel[..., good] > 0).sum(-1)).all()
    assert m.summary["n_samples"] == 3000 and m.summary["bad_positions"] == 0


def test_grid_on_a_wcs():
    pytest.importorskip("astropy")
    from astropy.wcs import WCS

    wcs = WCS(naxis=2)
    wcs.wcs.ctype = ["RA---SIN", "DEC--SIN"]
    wcs.wcs.crval, wcs.wcs.crpix, wcs.wcs.cdelt = [23.5, 30.7], [16, 16], [-0.05, 0.05]
    rng = np.random.default_rng(21)
    lon, lat = 23.5 + rng.uniform(-1, 1, 20000), 30.7 + rng.uniform(-1, 1, 20000)
    values = np.exp(-((lon - 23.3) ** 2 * np.cos(np.deg2rad(30.7)) ** 2 + (lat - 30.9) ** 2) / 0.02).astype(np.float32)
    m = ryle.grid(lon, lat, values, wcs, shape=(31, 31), beam="6arcmin")
    y, x = np.unravel_index(np.nanargmax(m.array[0]), (31, 31))
    world = wcs.wcs_pix2world([[x, y]], 0)[0]
    assert np.allclose(world, [23.3, 30.9], atol=0.05)
    plan = ryle.Gridder(wcs, shape=(31, 31), beam="6arcmin")
    for k in range(0, 20000, 5000):
        plan.execute(lon[k: k + 5000], lat[k: k + 5000], values[k: k + 5000])
    assert np.allclose(plan.finish().array, m.array, atol=1e-6, equal_nan=True)


# An array with cables, and the sky above it.

def layout_file(path, position, delays_ns):
    rows = [f"{k},{e:.3f},{n:.3f},{u:.3f},X,{d:.3f}" for k, ((e, n, u), d) in enumerate(zip(position, delays_ns))]
    path.write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n" + "\n".join(rows) + "\n")
    return path


def test_an_image_through_cables_has_its_place_on_the_sky(tmp_path, offline):
    rng = np.random.default_rng(22)
    position = rng.uniform(-18, 18, (24, 3)) * [1, 1, 0.02]
    delays_ns = rng.uniform(50, 400, 24)
    array = ryle.read_layout(layout_file(tmp_path / "array.csv", position.round(3), delays_ns), latitude=-26.7, longitude=116.67, height_m=378)
    assert np.allclose(array.antenna_m, position, atol=1e-3) and array.inputs[3] == (3, 0, False)
    frequency = np.array([40e6, 40.1e6])
    assert np.allclose(array.cable_delay_s(frequency)[1], delays_ns * 1e-9, atol=1e-12)
    source = np.array([0.3, -0.4, np.sqrt(1 - 0.25)])
    phase = 2 * np.pi * frequency[:, None] * (position @ source / C_M_PER_S - delays_ns * 1e-9)
    wave = rng.normal(size=(2, 400, 1)) * 20 * np.exp(1j * phase)[:, None, :]
    wave[..., 5] *= 0  # a dead antenna
    wave[..., 7] *= 1.5
    x = ryle.spectra(ryle.complex_codes(wave.clip(-127, 127), np.int8), frequency_hz=frequency, interval_s=1e-3)
    gains = array.gains(x)
    assert (gains[:, 5] == 0).all() and (gains[:, 6] != 0).all()
    sky = ryle.image(x, array, n_pixels=96)
    px, py, _ = sky.peak()
    assert np.allclose(sky.direction(px, py), source, atol=0.03) and "ra_deg" not in sky.info
    pytest.importorskip("astropy")
    with pytest.raises(ValueError, match="no place"):
        sky.wcs
    x.start_tai_ns = 1_700_000_037_000_000_000  # 2023-11-14T22:13:20 UTC
    sky = ryle.image(x, array, n_pixels=96)
    from astropy.coordinates import AltAz, SkyCoord

    assert abs(sky.time.unix - 1_700_000_000.2) < 0.01
    with_place = sky.wcs.pixel_to_world(px, py)
    horizon = with_place.transform_to(AltAz(obstime=sky.time, location=array.location))
    east, north, up = sky.direction(px, py)
    expected = SkyCoord(np.degrees(np.arctan2(east, north)) % 360, np.degrees(np.arcsin(up)), unit="deg", frame=horizon.frame)
    assert horizon.separation(expected).deg < 0.05
