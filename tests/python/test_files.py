# SPDX-License-Identifier: BSD-3-Clause
"""Files as arrays: made here, and real ones where they are."""

import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest
from helpers import ROOT, as_complex, codes, data, interrupted

import ryle

BAND = np.linspace(1.2e9, 1.5e9, 64)


def dada(path, samples):
    """A PSRDADA file of complex bytes [time, input] of one channel."""
    header = "HDR_SIZE 4096\nNCHAN 1\nNPOL 2\nNDIM 2\nNBIT 8\nBW 4.0\nFREQ 1000\nTSAMP 0.25\nMJD_START 60000.5\n"
    path.write_bytes(header.encode().ljust(4096, b"\0") + samples.tobytes())
    return path


def test_a_recording_of_samples(tmp_path):
    x = codes(np.random.default_rng(1), (4096, 2), -127)
    r = ryle.open(dada(tmp_path / "a.dada", x))
    assert isinstance(r, ryle.Recording) and not r.channelized and len(r) == 4096
    assert r.info["format"] == "dada" and r.info["rate_hz"] == 4e6 and r.info["start_utc"].startswith("2023-02-25T12:00:00")
    samples, valid = r.samples(100, 1000)
    assert samples.shape == (2, 1000, 2) and valid.shape == (2, 1000) and valid.all()
    assert (samples == x[100:1100].swapaxes(0, 1)).all()
    for first, n in ((4000, 200), (0, 2**58), (-1, 2), (0, 0), (5000, None)):
        with pytest.raises(ValueError, match="has 4096 samples"):
            r.samples(first, n)
    spectra = r.spectra(n_channels=64, n_taps=4)
    assert (spectra.array == ryle.channelize(x.swapaxes(0, 1), 64, n_taps=4, sample_rate_hz=4e6).array).all()
    assert spectra.frequency_hz.mean() == pytest.approx(1e9, abs=1e5)
    with pytest.raises(ValueError, match="n_channels"):
        r.spectra()


def test_power_is_written_read_and_searched(tmp_path):
    power = np.random.default_rng(2).normal(100, 10, (64, 16384)).astype(np.float32)
    mhz = BAND / 1e6
    for c, s in enumerate(np.rint(4148.8064 * 150 * (mhz ** -2.0 - mhz[-1] ** -2.0) / 1e-3).astype(int)):
        power[c, 7000 + s: 7003 + s] += 40
    path = tmp_path / "pulse.fil"
    ryle.write(path, power, frequency_hz=BAND, interval_s=1e-3, start_mjd_utc=60000.0, source_name="TEST")
    fil = ryle.open(path)
    assert isinstance(fil, ryle.Filterbank) and np.allclose(fil.frequency_hz, BAND) and fil.interval_s == 1e-3
    assert fil.info["source_name"] == "TEST" and np.array_equal(fil.read(), power)
    assert np.array_equal(fil.read(500, 20), power[:, 500:520])
    with pytest.raises(ryle.ConfigError, match="16384"):
        fil.read(16000, 1000)
    seen = []
    of_file = ryle.search(path, dm_max=300, on_progress=lambda *p: seen.append(p))
    of_array = ryle.search(power, frequency_hz=BAND, interval_s=1e-3, dm_max=300)
    assert len(of_file.unflagged) == len(of_array.unflagged) == 1 and seen
    for key in ("time_s", "dm_pc_cm3", "snr", "width_s"):
        assert of_file[0][key] == pytest.approx(of_array[0][key], rel=1e-6)
    out = tmp_path / "found"
    out.mkdir()
    found = ryle.search(str(path), dm_max=300, output_directory=str(out), pictures=False)
    assert found.summary["products"] and any(out.iterdir())

    def stop(*_):
        raise LookupError("stop")

    with pytest.raises(LookupError):
        ryle.search(path, dm_max=300, on_progress=stop)


def test_a_pulsar_of_a_file_is_folded(tmp_path):
    t = np.arange(40000) * 1e-3
    rng = np.random.default_rng(3)
    power = rng.normal(10, 1, (4, 40000)).astype(np.float32) + 3 * (np.cos(2 * np.pi * t / 0.3) > 0.97).astype(np.float32)
    path = tmp_path / "pulsar.fil"
    ryle.write(path, power, frequency_hz=BAND[:4], interval_s=1e-3, start_mjd_utc=60000.0)
    folded = ryle.fold(path, period_s=0.30002, n_bins=64)
    assert folded.period_s == pytest.approx(0.3, abs=5e-5) and folded.reduced_chi2 > 20
    assert folded.profile.shape == (64,) and folded.info["start_mjd_utc"] == 60000.0
    with pytest.raises(ryle.DataError):
        ryle.fold(tmp_path / "absent.fil", period_s=1)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ryle.DataError, match="No such file") as caught:
        ryle.open(tmp_path / "absent.fil")
    assert caught.value.exit_code == 66
    (tmp_path / "noise.fil").write_bytes(bytes(range(256)) * 8)
    with pytest.raises(ryle.DataError, match="noise.fil"):
        ryle.open(tmp_path / "noise.fil")
    with pytest.raises(ryle.ConfigError, match=".fil"):
        ryle.write(tmp_path / "a.npy", np.zeros((2, 3), np.float32), frequency_hz=[1e9, 2e9], interval_s=1)


def test_files_without_arrays_say_what_they_hold(tmp_path):
    assert isinstance(ryle.open(ROOT / "examples" / "mwa32t.toml"), ryle.Observation)
    beams = ryle.open(ROOT / "examples" / "best2_beams.toml")
    assert isinstance(beams, ryle.Contents) and beams.info["kind"] == "beams file" and beams.info["beams"]
    frame = bytes(range(60))
    capture = tmp_path / "a.pcap"
    capture.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 1, 0, 60, 60) + frame)
    packets = ryle.open(capture)
    assert packets.info["kind"] == "captured packets" and packets.info["records"] == 1
    (tmp_path / "event.json").write_text("{\"a\": 1}")
    assert "JSON" in ryle.open(tmp_path / "event.json").info["kind"]


def test_scans_become_a_map(tmp_path):
    rng = np.random.default_rng(4)
    lon, lat = 10 + rng.uniform(-0.5, 0.5, 4000), rng.uniform(-0.5, 0.5, 4000)
    values = np.ones((3, 4000), np.float32)
    np.savez(tmp_path / "scan.npz", lon=lon, lat=lat, data=values)
    scans = ryle.open(tmp_path / "scan.npz")
    assert isinstance(scans, ryle.Scans) and scans.info["n_samples"] == 4000 and scans.info["n_channels"] == 3
    assert np.allclose(scans.positions(), (lon, lat)) and np.array_equal(scans.read(1, 2), values[1:])
    cells = tuple(np.meshgrid(np.linspace(9.8, 10.2, 9), np.linspace(-0.2, 0.2, 9)))
    assert np.allclose(ryle.grid(*scans.positions(), scans.read(), cells, beam="6arcmin").array, 1)


def test_ctrl_c_ends_a_search_of_a_file(tmp_path):
    power = np.random.default_rng(5).normal(100, 10, (256, 1 << 17)).astype(np.float32)
    ryle.write(tmp_path / "long.fil", power, frequency_hz=np.linspace(1.2e9, 1.5e9, 256), interval_s=1e-3, start_mjd_utc=60000.0, bits=32)
    output, seconds, code = interrupted(f"""
        import ryle
        def report(*_): print("ready", flush=True)
        try:
            ryle.search({str(tmp_path / 'long.fil')!r}, dm_max=3000, on_progress=report)
            print("finished")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    assert "interrupted" in output and code == 0 and seconds < 30, output


# Real files.

@pytest.mark.parametrize("name,inputs", [("baseband/sample.vdif", 8), ("baseband/sample_puppi.raw", None), ("lwa/tbn-test.dat", None)])
def test_real_recordings_are_opened(name, inputs):
    r = ryle.open(data(name))
    assert isinstance(r, ryle.Recording) and len(r) > 0
    assert inputs is None or r.info["n_inputs"] == inputs
    n = min(len(r), 2000)
    if r.channelized:
        spectra = r.spectra(0, n)
        assert spectra.shape == (r.info["n_channels"], n, r.info["n_inputs"]) and ryle.correlate(spectra).counts.max() > 0
    else:
        samples, valid = r.samples(0, n)
        assert samples.shape[:2] == valid.shape == (r.info["n_inputs"], n) and valid.any()
        assert np.abs(samples.astype(int)).max() > 0


def test_matrices_of_a_station_by_their_description(tmp_path):
    real = pathlib.Path(data("eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_real_channel000_time000000.fits"))
    path = tmp_path / "eda2.toml"
    path.write_text(f"""[visibilities]
format = "covariance"
real = "{real}"
imaginary = "{str(real).replace("real", "imag")}"
antennas = "{real.parent / "antenna_locations.txt"}"
frequency_mhz = 159.375
latitude_deg = -26.7033194
longitude_deg = 116.67081524
""")
    vis = ryle.open(path)
    assert isinstance(vis, ryle.VisibilityFile) and vis.data.shape[:2] == (1, 1)
    assert vis.info["latitude_deg"] == pytest.approx(-26.7033194) and len(vis.info["antennas"]) == 256
    assert "found from the Sun" in vis.info["notes"]["covariance sign"]


def test_real_visibilities_are_those_of_the_file():
    h5py = pytest.importorskip("h5py")
    path = data("vis/pyuvdata/zen.2458661.23480.HH.uvh5")
    vis = ryle.open(path)
    with h5py.File(path) as file:
        assert np.allclose(vis.frequency_hz, np.ravel(file["Header/freq_array"]))
        assert vis.data.shape[:2] == (int(file["Header/Ntimes"][()]), int(file["Header/Nfreqs"][()]))
        good = (file["Data/nsamples"][()] > 0) & ~file["Data/flags"][()]
        theirs = np.sort(np.abs(file["Data/visdata"][()][good]))
    ours = np.sort(np.abs(vis.data[vis.counts > 0]))
    assert len(ours) == len(theirs) > 0 and np.allclose(ours, theirs, rtol=1e-6)


def test_a_burst_of_askap_is_found():
    files = sorted(pathlib.Path(data("transients")).rglob("28.fil"))
    if not files:
        pytest.skip("skipped: no data (28.fil)")
    found = ryle.search(files[0]).unflagged
    assert len(found) == 1 and found[0]["snr"] > 10


def test_spectra_as_they_were_correlate_as_their_values():
    r = ryle.open(data("lwa/tbx-test.dat"))
    spectra = r.spectra()
    z = as_complex(spectra.array[:4])
    v = ryle.correlate(np.ascontiguousarray(spectra.array[:4]))
    assert np.allclose(v.matrix(), np.einsum("cti,ctj->cij", z, z.conj()) / z.shape[1])


def test_the_sun_in_ten_lines(tmp_path):
    """A stranger's notebook, the lines of docs/python.md: open the file of LWA-NA, image the sky, find the Sun with astropy."""
    pytest.importorskip("astropy")
    for name in ("tbx-test.dat", "lwana-ssmif-2024may.txt"):
        (tmp_path / name).symlink_to(data(f"lwa/{name}"))
    text = (ROOT / "docs" / "python.md").read_text()
    block = text[text.index("The Sun in one spectrum of LWA-NA"):].split("\n\n")[1]
    lines = [line[4:] for line in block.splitlines()]
    assert len(lines) <= 10 and all(line.startswith("    ") for line in block.splitlines())
    offline = "from astropy.utils import iers\niers.conf.auto_download = False\n"
    done = subprocess.run([sys.executable, "-c", offline + "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.6  # half a pixel


def test_the_sun_in_visibilities_of_one_spectrum(offline):
    """The same sky by the correlator: baselines of antennas, phased to the zenith, imaged as a file would be."""
    pytest.importorskip("astropy")
    from astropy.coordinates import AltAz, get_sun

    array = ryle.read_layout(data("lwa/lwana-ssmif-2024may.txt"))
    vis = ryle.correlate(ryle.open(data("lwa/tbx-test.dat")).spectra()).observed_by(array)
    assert vis.data.shape == (1, 312, 64 * 65 // 2, 4) and vis.counts.max() == 1
    sky = vis.image(n_pixels=128, width=1.9)
    here = AltAz(obstime=sky.time, location=vis.location)
    found = sky.wcs.pixel_to_world(*sky.peak()[:2]).transform_to(here)
    assert found.separation(get_sun(sky.time).transform_to(here)).deg < 1.2  # a pixel
