# SPDX-License-Identifier: BSD-3-Clause
"""Matrices of stations that do not say what they are, opened by a description (docs/stations.md)."""
import math

import numpy as np
import pytest
from astropy import units
from astropy.coordinates import EarthLocation
from astropy.io import fits
from harness import data, ryle

EDA2 = "eda2_20191104/20191104_033537_eda2_ch1_ant256_midday_avg1_vis_{}_channel000_time000000.fits"
LIGHT_M_PER_S = 299792458.0
LATITUDE_DEG, LONGITUDE_DEG, HEIGHT_M = 52.9, 6.87, 49.0
SOURCE = np.array([0.31, -0.22, math.sqrt(1 - 0.31**2 - 0.22**2)])


def describe(folder, text, name="data.toml"):
    path = folder / name
    path.write_text("[visibilities]\n" + text)
    return path


def image(path, folder, *arguments, expect=0):
    return ryle("image", path, "-o", folder / "image.fits", "--overwrite", "--equalize", "no", "--pixels", 200, *arguments,
                expect=expect)


def test_eda2_by_its_description(tmp_path):
    real = data(EDA2.format("real"))
    folder = real.parent
    path = describe(tmp_path, f"""format = "covariance"
real = "{real}"
imaginary = "{folder / EDA2.format("imag").split("/")[1]}"
antennas = "{folder / "antenna_locations.txt"}"
frequency_mhz = 159.375
latitude_deg = -26.70331940
longitude_deg = 116.67081524
height_m = 377
""")
    told = ryle("info", path)
    assert told["kind"] == "visibilities" and told["antennas"] == 256 and told["start_utc"].startswith("2019-11-04T03:35:37")
    assert told["latitude_deg"] == pytest.approx(-26.7033194) and told["first_channel_hz"] == pytest.approx(159.375e6)
    assert "found from the Sun" in told["notes"]["covariance sign"]
    assert len(told["notes"]["covariance antennas without data"].split(",")) == 13
    # The Sun where it was: (l, m) = (0.09, 0.20), by any of the paths, whichever way round the file is.
    peak = image(path, tmp_path)["peak"]
    assert math.hypot(peak["l"] - 0.09, peak["m"] - 0.20) < 0.01 and peak["sigma"] > 55
    assert math.hypot(peak["l"] - 0.09, peak["m"] - 0.20) < 0.01
    turned = image(path, tmp_path, "--conjugate", "yes")["peak"]
    assert math.hypot(turned["l"] + 0.09, turned["m"] + 0.20) < 0.01
    message = ryle("info", describe(tmp_path, 'format = "covariance"\nreal = "a"\nimaginary = "b"\nphase = 3\n'), expect=78)
    assert "data.toml:1" in message and "antennas" in message


def rotation_of_enu():
    """Rows: east, north, up in ITRF."""
    lat, lon = math.radians(LATITUDE_DEG), math.radians(LONGITUDE_DEG)
    return np.array([[-math.sin(lon), math.cos(lon), 0],
                     [-math.sin(lat) * math.cos(lon), -math.sin(lat) * math.sin(lon), math.cos(lat)],
                     [math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)]])


def lofar(folder, n_field, n_antennas, first=0, station="DE699", arrays=False):
    """An antenna file of n_field dipoles, the east, north, up of those with receivers, and the file's name."""
    generator = np.random.default_rng(7)
    enu = generator.normal(0, 18, (n_field, 3)) * [1, 1, 0.02]
    axes = rotation_of_enu()
    place = EarthLocation.from_geodetic(LONGITUDE_DEG * units.deg, LATITUDE_DEG * units.deg, HEIGHT_M * units.m)
    reference = np.array([place.x.value, place.y.value, place.z.value])
    if arrays:
        name = folder / f"{station}-AntennaArrays.conf"
        offsets, origin = enu, [LATITUDE_DEG, LONGITUDE_DEG, HEIGHT_M]
    else:
        name = folder / f"{station}-AntennaField.conf"
        offsets, origin = enu @ axes, reference
    turn = math.radians(5)  # of the station's axes against north
    p = math.cos(turn) * axes[0] - math.sin(turn) * axes[1]
    q = math.sin(turn) * axes[0] + math.cos(turn) * axes[1]
    matrix = np.array([p, q, axes[2]]).T
    lines = ["# positions, made for a test", "NORMAL_VECTOR LBA", "3 [ %.9f %.9f %.9f ]" % tuple(axes[2]), "",
             "ROTATION_MATRIX LBA", "3 x 3 [", *(" %.10f %.10f %.10f" % tuple(row) for row in matrix), "]", "", "LBA",
             "3 [ %.9f %.9f %.9f ]" % tuple(origin), f"{n_field} x 2 x 3 ["]
    lines += ["  " + " ".join("%.6f" % x for x in [*o, *o]) for o in offsets] + ["]", "", "HBA0", "3 [ 1 2 3 ]", ""]
    name.write_text("\n".join(lines))
    return enu[first:first + n_antennas], name


def matrices(enu, frequency_hz, n_times=1, gains=None, flux=50.0):
    """[time][rcu][rcu] of one source, unphased: M[a][b] = <v_a conj(v_b)>."""
    generator = np.random.default_rng(3)
    field = np.exp(2j * math.pi * frequency_hz / LIGHT_M_PER_S * (enu @ SOURCE)) * math.sqrt(flux)
    both = np.zeros((2 * len(enu), 2), complex)
    both[0::2, 0] = field
    both[1::2, 1] = field
    if gains is not None:
        both *= gains[:, None]
    one = both @ both.conj().T
    noise = generator.normal(0, 1e-6, one.shape)
    return np.array([one + noise + noise.T] * n_times).astype("<c16")


@pytest.mark.parametrize("arrays", [False, True])
def test_lofar_crosslets_are_placed_on_the_sky(tmp_path, arrays):
    frequency_hz = 297 * 200e6 / 1024
    enu, antennas = lofar(tmp_path, 24, 24, arrays=arrays)
    generator = np.random.default_rng(11)
    gains = generator.uniform(0.7, 1.4, 48) * np.exp(2j * math.pi * generator.uniform(0, 1, 48))
    name = tmp_path / "20170720_095816_mode_3_xst_sb297.dat"
    matrices(enu, frequency_hz, 3, gains).tofile(name)
    table = np.ones((512, 48), complex)
    table[297] = 1 / gains
    table[297, 10] = 0  # a receiver that is not used
    text = f'format = "lofar-xst"\nfiles = "{name.name}"\nantennas = "{antennas.name}"\ninputs = 48\n'
    for header in (b"", b"HeaderStart\nCalTableHeader.Observation.Station = DE699\nHeaderStop\n"):
        (tmp_path / "table.dat").write_bytes(header + table.astype("<c16").tobytes())
        path = describe(tmp_path, text + 'calibration = "table.dat"\nintegration_s = 2\n')
        result = image(path, tmp_path)
        peak = result["peak"]
        # About the zenith of the first matrix; the station does not follow it: 4 s turn the sky by 1 arcmin.
        assert (peak["l"], peak["m"]) == pytest.approx(SOURCE[:2], abs=0.01)
        assert peak["value"] == pytest.approx(50, rel=0.02)
    told = ryle("info", path)
    assert told["integrations"] == 3 and told["integration_s"] == 2 and told["antennas"] == 24
    assert told["first_channel_hz"] == pytest.approx(58007812.5) and told["channel_width_hz"] == pytest.approx(195312.5)
    assert told["start_utc"].startswith("2017-07-20T09:58:16") and told["telescope"] == "DE699"
    assert told["latitude_deg"] == pytest.approx(LATITUDE_DEG, abs=1e-6)
    assert told["notes"]["covariance inputs without calibration"] == "10"
    assert image(describe(tmp_path, text), tmp_path)["peak"]["value"] < 40  # as it was recorded
    gains_file = tmp_path / "gains.dat"
    (1 / np.where(table == 0, np.inf, table)).astype("<c16").tofile(gains_file)
    result = image(describe(tmp_path, text + 'calibration = "gains.dat"\ncalibration_as = "gains"\n'), tmp_path)
    assert result["peak"]["value"] == pytest.approx(50, rel=0.02)


def test_lofar_halves_modes_and_cubes(tmp_path):
    """A Dutch station: 96 dipoles, 96 receivers, and one subband of a cube of 512."""
    for mode, first in ((1, 48), (3, 0)):
        enu, antennas = lofar(tmp_path, 96, 48, first, station="CS998")
        matrices(enu, 200 * 200e6 / 1024).tofile(tmp_path / "20170720_095816_xst.dat")
        text = f'format = "lofar-xst"\nfiles = ["20170720_095816_xst.dat"]\nantennas = "{antennas.name}"\nsubband = 200\n'
        peak = image(describe(tmp_path, text + f"rcu_mode = {mode}\n"), tmp_path)["peak"]
        assert (peak["l"], peak["m"]) == pytest.approx(SOURCE[:2], abs=0.01) and peak["value"] == pytest.approx(50, rel=0.02)
    assert "rcu_mode" in ryle("info", describe(tmp_path, text), expect=78)
    enu, antennas = lofar(tmp_path, 6, 6)
    cube = np.zeros((512, 12, 12), "<c16")
    cube[100] = matrices(enu, 100 * 200e6 / 1024)[0]
    cube.tofile(tmp_path / "20120513_052251_acc_512x12x12.dat")
    text = f'format = "lofar-acc"\nfiles = "20120513_052251_acc_512x12x12.dat"\nantennas = "{antennas.name}"\nrcu_mode = 3\n'
    path = describe(tmp_path, text + "subband = 100\n")
    told = ryle("info", path)
    assert told["start_utc"].startswith("2012-05-13T05:15:59") and told["integrations"] == 1  # 412 s before the end
    peak = image(path, tmp_path)["peak"]
    assert peak["value"] == pytest.approx(50, rel=0.02)
    # What does not fit is said.
    assert "subband" in ryle("info", describe(tmp_path, text), expect=78)
    (tmp_path / "cut.dat").write_bytes(b"x" * 1000)
    message = ryle("info", describe(tmp_path, f'format = "lofar-xst"\nfiles = "cut.dat"\nantennas = "{antennas.name}"\n'
                                    'rcu_mode = 3\nsubband = 1\nutc = "2020-01-01T00:00:00"\n'), expect=65)
    assert "12 x 12 inputs" in message
    message = ryle("info", describe(tmp_path, f'format = "lofar-xst"\nfiles = "cut.dat"\nantennas = "{antennas.name}"\n'
                                    'field = "HBA"\nrcu_mode = 5\nsubband = 1\nutc = "2020-01-01T00:00:00"\n'), expect=65)
    assert "HBA" in message and "LBA" in message


def write_mwax(folder, enu, cables_m, n_fine=4, coarse=(120, 121), n_times=2, done=0, flagged=3):
    """Metafits and files of MWAX, of one source; the values are <v_i conj(v_j)>, baselines i <= j with j the fastest."""
    n = len(enu)
    rows = []
    for tile in reversed(range(n)):  # the table is in another order than the correlator
        for pol in ("Y", "X"):
            rows.append((2 * tile + (pol == "X"), tile, 100 + tile, f"Tile{100 + tile}", pol, f"EL_{cables_m[tile]:.3f}",
                         enu[tile, 1], enu[tile, 0], enu[tile, 2], int(tile == flagged)))
    columns = [fits.Column(name=k, format=f, array=[r[i] for r in rows]) for i, (k, f) in enumerate(
        [("Input", "I"), ("Antenna", "I"), ("Tile", "I"), ("TileName", "8A"), ("Pol", "A"), ("Length", "14A"),
         ("North", "E"), ("East", "E"), ("Height", "E"), ("Flag", "I")])]
    columns.append(fits.Column(name="Gains", format=f"{len(coarse)}I", array=np.full((2 * n, len(coarse)), 64)))
    primary = fits.PrimaryHDU()
    for key, value in {"TELESCOP": "MWA", "INSTRUME": "128T", "FILENAME": "a_test", "CHANNELS": ",".join(map(str, coarse)),
                       "FINECHAN": 1280 / n_fine, "NCHANS": n_fine * len(coarse), "BANDWDTH": 1.28 * len(coarse),
                       "CENTCHAN": coarse[len(coarse) // 2], "FREQCENT": 1.28 * coarse[len(coarse) // 2], "INTTIME": 0.5,
                       "NAV_FREQ": 1, "RA": 10.0, "DEC": -27.0, "DELAYMOD": "NONE", "CABLEDEL": done, "GEODEL": 0,
                       "CALIBDEL": 0, "DELDESC": "x", "GOODTIME": 1613491216.0, "DERIPPLE": 1}.items():
        primary.header[key] = value
    metafits = folder / "1297526432.metafits"
    fits.HDUList([primary, fits.BinTableHDU.from_columns(columns, name="TILEDATA")]).writeto(metafits, overwrite=True)
    files = []
    for channel in coarse:
        head = fits.PrimaryHDU()
        for key, value in {"CORR_VER": 2, "OBSID": 1297526432, "INTTIME": 0.5, "U2S_VER": "1", "CBF_VER": "1",
                           "DB2F_VER": "1"}.items():
            head.header[key] = value
        hdus = [head]
        for t in range(n_times):
            frequency_hz = channel * 1.28e6 + (np.arange(n_fine) - n_fine // 2) * 1.28e6 / n_fine
            turns = (enu @ SOURCE - (0 if done else 1) * np.asarray(cables_m))[None] * frequency_hz[:, None] / LIGHT_M_PER_S
            field = 7 * np.exp(2j * math.pi * turns)
            cells = []
            for i in range(n):
                for j in range(i, n):
                    v = np.zeros((n_fine, 4), complex)
                    v[:, 0] = v[:, 3] = field[:, i] * field[:, j].conj()
                    v[:, 1] = v[:, 2] = 1e-3
                    cells.append(v)
            values = np.array(cells).reshape(len(cells), n_fine * 4)
            for array in (np.stack([values.real, values.imag], -1).reshape(len(cells), -1), np.ones((len(cells), 4))):
                hdu = fits.ImageHDU(array.astype(np.float32))
                hdu.header["TIME"], hdu.header["MILLITIM"] = 1613491214 + t // 2, 500 * (t % 2)
                hdus.append(hdu)
        files.append(folder / f"1297526432_20210216160014_ch{channel}_000.fits")
        fits.HDUList(hdus).writeto(files[-1], overwrite=True)
    return metafits, files


def mwa_positions(n=12):
    return np.random.default_rng(5).normal(0, 60, (n, 3)).astype(np.float32).astype(float) * [1, 1, 0.01]


@pytest.mark.parametrize("done", [0, 1])
def test_mwax_files_are_placed_on_the_sky(tmp_path, done):
    enu = mwa_positions()
    cables_m = np.random.default_rng(6).uniform(-300, 300, len(enu)).round(3)
    metafits, files = write_mwax(tmp_path, enu, cables_m, done=done)
    path = describe(tmp_path, f'format = "mwax"\nfiles = {[f.name for f in files]}\nmetafits = "{metafits.name}"\n')
    told = ryle("info", path)
    assert told["integrations"] == 2 and told["antennas"] == 12 and told["channels"] == 8
    assert told["first_channel_hz"] == pytest.approx(120 * 1.28e6 - 640e3)
    assert told["start_utc"].startswith("2021-02-16T16:00:14") and "Tile103" in told["notes"]["covariance tiles flagged"]
    peak = image(path, tmp_path, "--width", 1)["peak"]
    assert (peak["l"], peak["m"]) == pytest.approx(SOURCE[:2], abs=0.01) and peak["value"] == pytest.approx(49, rel=0.03)
    if not done:
        left = describe(tmp_path, path.read_text()[15:] + 'cables = "as-recorded"\n')
        assert image(left, tmp_path, "--width", 1)["peak"]["value"] < 30
    lone = describe(tmp_path, f'format = "mwax"\nfiles = "1061_gpubox01_00.fits"\nmetafits = "{metafits.name}"\n')
    assert "gpubox" in ryle("info", lone, expect=69)


def test_mwax_weights_and_dipoles(tmp_path):
    """Weights become counts, a dipole is a beam of these tiles, and gains are divided out once."""
    h5py = pytest.importorskip("h5py")
    enu = mwa_positions()
    n = len(enu)
    metafits, files = write_mwax(tmp_path, enu, np.zeros(n), flagged=-1)
    with fits.open(files[0], mode="update") as hdus:
        hdus[2].data[1, 0] = 0  # XX of baseline (0, 1) in the first integration
        hdus[2].data[2, 0] = 0.25
    path = describe(tmp_path, f'format = "mwax"\nfiles = {[f.name for f in files]}\nmetafits = "{metafits.name}"\n')
    gains = tmp_path / "gains.csv"
    gains.write_text("input,amplitude,phase_deg,flag\n" + "".join(f"{k},1,0,{int(k == 9)}\n" for k in range(2 * n)))
    out = tmp_path / "applied.uvh5"
    applied = ryle("apply", path, "--gains", gains, "-o", out)
    assert applied["n_flagged"] > 0
    with h5py.File(out) as file:
        first, second = file["Header/ant_1_array"][:], file["Header/ant_2_array"][:]
        samples = file["Data/nsamples"][:].reshape(len(first), 8, 4).astype(float)
        flags = file["Data/flags"][:].reshape(len(first), 8, 4)
        rows = {b: np.flatnonzero((np.minimum(first, second) == 0) & (np.maximum(first, second) == b))[0] for b in (1, 2, 5)}
    assert flags[rows[1], :4, 0].all() and not flags[rows[1], 4:, 0].any() and not flags[rows[1], :4, 1].any()
    ratio = samples[rows[2], 0, 0] / samples[rows[2], 0, 1]
    assert ratio == pytest.approx(0.25)
    message = ryle("image", out, "--path", "vis-grid", "--gains", gains, "-o", tmp_path / "twice.fits", expect=78)
    assert "before" in message
    sky = tmp_path / "sky.csv"
    sky.write_text("name,ra_deg,dec_deg,flux_jy,frequency_mhz,min_mhz,max_mhz\n"
                   + "".join(f"s{k},{30 * k},-27,100,154,1,10000\n" for k in range(12)))
    report = ryle("calibrate", out, "--model", sky, "--beam", "dipole", "--drop-below", 0, "--drop-above", 1e9, "--uv-min", 0,
                  "--max-sigma-deg", 180, "--max-rounds", 5000, "-o", tmp_path / "again.h5", expect=None)
    assert "feed" not in report and "angle" not in report  # what it says of arrays whose dipoles differ


def test_mwax_as_pyuvdata_reads_it(tmp_path, monkeypatch):
    """Values, signs, channels and cables of another program, by way of UVH5."""
    pyuvdata = pytest.importorskip("pyuvdata")
    from astropy.coordinates.sites import SiteRegistry
    registry = SiteRegistry()  # pyuvdata asks astropy where the MWA is, which asks the network
    registry.add_site(["mwa", "MWA"], EarthLocation.from_geodetic(116.67081523611111 * units.deg, -26.703319405555554 * units.deg,
                                                                  377.827 * units.m))
    monkeypatch.setattr(EarthLocation, "_site_registry", registry, raising=False)
    enu = mwa_positions()
    cables_m = np.random.default_rng(6).uniform(-300, 300, len(enu)).round(3)
    metafits, files = write_mwax(tmp_path, enu, cables_m, flagged=-1)
    other = pyuvdata.UVData()
    other.read_mwa_corr_fits([str(metafits), *map(str, files)], correct_cable_len=True, remove_coarse_band=False,
                             remove_dig_gains=False, flag_init=False, correct_van_vleck=False, run_check=False,
                             phase_to_pointing_center=False)
    other.select(freq_chans=range(4))  # one coarse channel: several are windows, which ryle reads as one axis
    other.write_uvh5(str(tmp_path / "other.uvh5"), clobber=True, fix_autos=True, run_check=False)
    path = describe(tmp_path, f'format = "mwax"\nfiles = "{files[0].name}"\nmetafits = "{metafits.name}"\n')
    pictures = []
    for name in (path, tmp_path / "other.uvh5"):
        result = image(name, tmp_path, "--width", 1, "--stokes", "XX")
        pictures.append(fits.getdata(tmp_path / "image.fits")[0, 0].astype(float))
        assert (result["peak"]["l"], result["peak"]["m"]) == pytest.approx(SOURCE[:2], abs=0.01)
    both = np.isfinite(pictures[0]) & np.isfinite(pictures[1])
    # About the zenith of the first and of the middle integration, a quarter of a second apart.
    assert np.max(np.abs(pictures[0] - pictures[1])[both]) < 0.02 * np.nanmax(pictures[0])
