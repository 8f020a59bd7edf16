# SPDX-License-Identifier: BSD-3-Clause
"""Recordings read by Ryle and by baseband: the real samples, and files that baseband wrote."""
import os
import pathlib
import subprocess

import pytest
from conftest import absent, module

DATA = pathlib.Path(os.environ.get("RYLE_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))


def sample(name):
    path = DATA / "baseband" / name
    if not path.exists():
        pytest.skip(f"skipped: no data (baseband/{name})")
    return path


def read(folder, files, rate_hz=0):
    """[time][channel or 1][input] complex, and the first TAI nanosecond."""
    np = module("numpy")
    program = os.environ.get("RYLE_READ_RECORDING")
    if not program:
        absent("read_recording (set RYLE_READ_RECORDING, or run through ctest)")
    out = folder / "values.f32"
    done = subprocess.run([program, str(rate_hz), out, *files], check=True, capture_output=True, text=True, timeout=120)
    n, n_channels, n_inputs, epoch = map(int, done.stdout.split())
    return np.fromfile(out, np.complex64).reshape(n, max(n_channels, 1), n_inputs), epoch


def assert_same(got, expected):
    """The same codes: one scale, and at most half a code of offset, between the units of both."""
    np = module("numpy")
    got, expected = (np.concatenate([x.real.ravel(), x.imag.ravel()]) for x in (got, np.asarray(expected)))
    used = (got != 0) | (np.abs(expected) > 1e-6)
    got, expected = got[used], expected[used]
    pairs = np.unique(np.stack([got, np.round(expected, 4)]), axis=1)
    assert pairs.shape[1] == np.unique(got).size, "one value of Ryle for one value of baseband"
    assert (np.diff(pairs[1]) > 0).all(), "in the same order"


def epoch_of(stream):
    return round(float((stream.start_time.tai - module("astropy.time").Time("1970-01-01", scale="tai")).sec) * 1e6)


@pytest.mark.parametrize("name,rate_hz", [("sample.vdif", 32e6), ("sample_bps1.vdif", 8e6), ("sample_mwa.vdif", 1.28e6),
                                          ("sample_arochime.vdif", 390625)])
def test_real_vdif(tmp_path, offline, name, rate_hz):
    np, vdif, units = module("numpy"), module("baseband.vdif"), module("astropy.units")
    got, epoch = read(tmp_path, [sample(name)], rate_hz)
    with vdif.open(sample(name), "rs", sample_rate=rate_hz * units.Hz, squeeze=False) as stream:
        expected = stream.read()
        assert abs(epoch // 1000 - epoch_of(stream)) <= 1
    # [time][thread][channel]: complex channels are channels, real ones inputs.
    if np.iscomplexobj(expected):
        expected = expected.transpose(0, 2, 1)
    assert_same(got, expected.reshape(got.shape))


def test_real_dada(tmp_path, offline):
    dada = module("baseband.dada")
    got, epoch = read(tmp_path, [sample("sample.dada")])
    with dada.open(sample("sample.dada"), "rs", squeeze=False) as stream:
        expected = stream.read()
        assert abs(epoch // 1000 - epoch_of(stream)) <= 1
    assert_same(got, expected.transpose(0, 2, 1).reshape(got.shape))


def test_real_guppi(tmp_path, offline):
    np, guppi = module("numpy"), module("baseband.guppi")
    got, epoch = read(tmp_path, [sample("sample_puppi.raw")])
    with guppi.open(sample("sample_puppi.raw"), "rs", squeeze=False) as stream:
        expected = stream.read()
        assert abs(epoch // 1000 - epoch_of(stream)) <= 1
        per_block, overlap = 1024, stream.header0["OVERLAP"]
    # Of what two blocks hold Ryle takes the second, baseband the first; the blocks of this file were shortened, so that
    # the two differ. The last overlap is in one block alone, and Ryle ends before it.
    assert expected.shape[0] == got.shape[0] + overlap
    step = per_block - overlap
    once = np.arange(got.shape[0]) % step >= overlap
    once[:step] = True
    assert_same(got[once], expected[:got.shape[0]].transpose(0, 2, 1)[once])


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("complex_data", [False, True])
def test_files_of_stations_that_baseband_wrote(tmp_path, offline, bits, complex_data):
    """Two stations of two threads, each in two files: what baseband reads of the four, side by side."""
    np, vdif = module("numpy"), module("baseband.vdif")
    units, time = module("astropy.units"), module("astropy.time")
    rng = np.random.default_rng(bits)
    files, expected = [], []
    for station in ("Ef", "On"):
        pieces = []
        for part in range(2):
            start = time.Time("2025-03-01T12:00:00.52") + part * 0.08 * units.s
            header = vdif.VDIFHeader.fromvalues(edv=1, time=start, nchan=1, bps=bits, complex_data=complex_data,
                                                samples_per_frame=640, sample_rate=16000 * units.Hz, station=station,
                                                thread_id=0)
            path = tmp_path / f"{station}{part}.vdif"
            with vdif.open(path, "ws", header0=header, nthread=2, squeeze=False, sample_rate=16000 * units.Hz) as stream:
                shape = (1280, 2, 1)
                data = rng.normal(0, 2, shape) + (1j * rng.normal(0, 2, shape) if complex_data else 0)
                stream.write(data)
            with vdif.open(path, "rs", squeeze=False) as stream:
                pieces.append(stream.read()[:, :, 0])
            files.append(path)
        expected.append(np.concatenate(pieces))
    got, _ = read(tmp_path, [files[1], files[0], files[2], files[3]])
    assert_same(got[:, 0], np.concatenate(expected, axis=1))
