# SPDX-License-Identifier: BSD-3-Clause
"""Files that pyuvdata writes, and real ones, read by Ryle: data, flags, nsamples, phase centre, polarizations, antennas,
times against what pyuvdata reads of them, value by value. What Ryle cannot read is rejected with the reason."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest
from conftest import absent, module

DATA = pathlib.Path(os.environ.get("RYLE_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))
PRODUCT = {-5: (0, 0), -6: (1, 1), -7: (0, 1), -8: (1, 0)}  # XX YY XY YX as (pol of i, pol of j)
LEAP_S = 37  # TAI - UTC since 2017


def read_program():
    program = os.environ.get("RYLE_READ_VISIBILITIES")
    if not program:
        absent("read_visibilities (set RYLE_READ_VISIBILITIES, or run through ctest)")
    return program


class Read:
    """What Ryle reads of a file."""

    def __init__(self, path, folder):
        subprocess.run([read_program(), path, folder], check=True, timeout=120)
        self.json = json.loads((folder / "vis.json").read_text())
        shape = (len(self.json["centroid_tai_ns"]), *self.json["shape"])
        self.data = np.fromfile(folder / "data", np.complex64).reshape(shape)
        self.counts = np.fromfile(folder / "counts", np.uint32).reshape(shape)


def rejected(path, folder):
    """Exit code and message of a file that is not read."""
    done = subprocess.run([read_program(), path, folder], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0, "it was read"
    return done.returncode, done.stderr


def compare(uvd, path, folder, position_m=1e-6, rad=1e-9, factor=1, number_of=lambda n: n):
    """Ryle's reading of `path` against pyuvdata's object `uvd`: every value at its place, nothing more."""
    time = module("astropy.time")
    got = Read(path, folder)
    used = sorted(set(uvd.ant_1_array) | set(uvd.ant_2_array))
    index = {number: k for k, number in enumerate(used)}
    rows = {number: k for k, number in enumerate(uvd.telescope.antenna_numbers)}
    names = [uvd.telescope.antenna_names[rows[n]].strip() for n in used]
    assert got.json["antennas"] == names
    center = np.array([c.to_value("m") for c in uvd.telescope.location.geocentric])
    theirs = center + uvd.telescope.antenna_positions[[rows[n] for n in used]]
    assert np.abs(np.array(got.json["itrf_m"]) - theirs).max() < position_m
    order = np.argsort(uvd.freq_array)
    assert np.allclose(got.json["center_hz"], uvd.freq_array[order], rtol=1e-12)
    times = np.unique(uvd.time_array)
    utc = time.Time(times, format="jd", scale="utc")
    assert len(got.json["centroid_tai_ns"]) == len(times)
    stamps = np.array(got.json["centroid_tai_ns"]) * 1e-9 - (utc.unix + LEAP_S * (times > 2457754.5) + 36 * (times < 2457754.5))
    assert np.abs(stamps).max() < 2e-3 or times.min() < 2457204.5  # before July 2015: another leap second
    assert np.allclose(got.json["interval_s"], uvd.integration_time[0], rtol=1e-6)
    entry = uvd.phase_center_catalog[uvd.phase_center_id_array[0]]
    drift = entry["cat_type"] in ("unprojected", "driftscan")
    if drift:  # turned to one direction, which is told
        uvd = uvd.copy()
        uvd.phase(lon=got.json["ra_rad"], lat=got.json["dec_rad"], phase_frame="icrs", cat_name="turned")
    if not drift:
        lon, lat = entry["cat_lon"], entry["cat_lat"]
        if entry["cat_frame"] == "fk5" and abs(entry["cat_epoch"] - 2000) > 0.01:
            coordinates = module("astropy.coordinates")
            of_date = coordinates.FK5(equinox=time.Time(entry["cat_epoch"], format="jyear"))
            icrs = coordinates.SkyCoord(lon, lat, unit="rad", frame=of_date).icrs
            lon, lat = icrs.ra.rad, icrs.dec.rad
        turn = np.angle(np.exp(1j * (got.json["ra_rad"] - lon))) * np.cos(lat)
        assert abs(turn) < rad and abs(got.json["dec_rad"] - lat) < rad
    # Where each of pyuvdata's values belongs: V_ij with i <= j, conjugate of pyuvdata's.
    n_pols = got.json["n_pols"]
    want = np.zeros_like(got.data)
    weight = np.zeros(got.data.shape)
    t = np.searchsorted(times, uvd.time_array)
    for row in range(uvd.Nblts):
        a, b = index[uvd.ant_1_array[row]], index[uvd.ant_2_array[row]]
        i, j = min(a, b), max(a, b)
        baseline = j * (j + 1) // 2 + i
        for q, code in enumerate(uvd.polarization_array):
            pols = PRODUCT[int(code)]
            pols = pols[::-1] if a > b else pols
            product = 0 if n_pols == 1 else 2 * pols[0] + pols[1]
            values = uvd.data_array[row, order, q]
            good = ~uvd.flag_array[row, order, q] & (uvd.nsample_array[row, order, q] > 0)
            values = values if a > b else np.conj(values)
            want[t[row], :, baseline, product] = np.where(good, values * factor, 0)
            weight[t[row], :, baseline, product] = np.where(good, uvd.nsample_array[row, order, q], 0)
    assert np.array_equal(got.counts > 0, weight > 0)
    # Counts are the weights, up to a power of two where these are no whole numbers.
    good = weight > 0
    ratio = got.counts[good] / weight[good] if good.any() else np.ones(1)
    power = np.log2(ratio[0])
    assert np.allclose(ratio, ratio[0], rtol=1e-5) and abs(power - round(power)) < 1e-4
    if drift:  # astrometry of two programs, Earth's rotation to 0.1 s: a few mrad on 120 m
        assert np.allclose(np.abs(got.data), np.abs(want), rtol=1e-6)
        assert np.abs(got.data - want).max() < 5e-3 * np.abs(want).max()
        return got
    assert np.array_equal(got.data, want)
    return got


def simulated(pols, drift=False, unit="uncalib", convention=None, frame="icrs", centers=1, windows=1, descending=False):
    """Noise on four antennas with odd numbers, rows in mixed order, some flagged, some of half weight."""
    pyuvdata, coordinates = module("pyuvdata"), module("astropy.coordinates")
    random = np.random.default_rng(5)
    times = 2460400.25 + np.arange(2) * 10 / 86400
    pairs = [(7, 7), (7, 2), (2, 19), (11, 19), (2, 2), (11, 7), (19, 19), (11, 11), (2, 11)]
    location = coordinates.EarthLocation.from_geodetic(116.67, -26.7, 377)
    telescope = pyuvdata.Telescope.new(
        name="odd", location=location, antenna_positions={n: random.uniform(-60, 60, 3) for n in (2, 7, 11, 19, 40)},
        instrument="odd", feeds=["x", "y"], x_orientation="east", mount_type="fixed")
    catalog = {0: {"cat_name": "up", "cat_type": "unprojected", "cat_lon": 0, "cat_lat": np.pi / 2, "cat_frame": "altaz"}}
    channels = 160e6 + 1e5 * np.arange(6)
    uvd = pyuvdata.UVData.new(
        freq_array=channels[::-1] if descending else channels, polarization_array=pols, telescope=telescope, times=times,
        antpairs=pairs, do_blt_outer=True, integration_time=10.0, channel_width=1e5, vis_units=unit, empty=True,
        phase_center_catalog=catalog, history="made for a test")
    if convention:
        uvd.pol_convention = convention
    shape = uvd.data_array.shape
    uvd.data_array = (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(np.complex64)
    autos = uvd.ant_1_array == uvd.ant_2_array
    for q, code in enumerate(pols):
        if code in (-5, -6):
            uvd.data_array[autos, :, q] = np.abs(uvd.data_array[autos, :, q])
    uvd.flag_array = random.random(shape) < 0.2
    uvd.data_array[uvd.flag_array] = np.where(uvd.flag_array, np.abs(uvd.data_array) * 1e4, 0)[uvd.flag_array]  # junk
    uvd.nsample_array = np.where(random.random(shape) < 0.3, 0.5, 1).astype(np.float32)
    if not drift:
        uvd.phase(lon=2.1, lat=-0.5, cat_name="field", phase_frame=frame, epoch=2000.0 if frame == "fk5" else None)
    if centers == 2:
        uvd.phase(lon=2.0, lat=-0.4, cat_name="other", phase_frame="icrs", select_mask=uvd.time_array > times[0])
    if windows == 2:
        uvd.spw_array = np.array([0, 1])
        uvd.Nspws = 2
        uvd.flex_spw_id_array = np.array([0, 0, 0, 1, 1, 1])
        uvd.freq_array[3:] += 5e6
    uvd.check()
    return uvd


POLS = {1: [-6], 2: [-5, -6], 4: [-5, -6, -7, -8]}


@pytest.mark.parametrize("n_pols", [1, 2, 4])
@pytest.mark.parametrize("unit", ["uncalib", "Jy"])
@pytest.mark.parametrize("suffix, drift", [("uvh5", False), ("uvh5", True), ("uvfits", False), ("ms", False)])
def test_what_pyuvdata_writes_by_default(tmp_path, offline, suffix, drift, unit, n_pols):
    uvd = simulated(POLS[n_pols], drift, unit, "avg" if unit == "Jy" else None)
    path = tmp_path / f"vis.{suffix}"
    if suffix == "ms":
        module("casacore.tables")
    getattr(uvd, f"write_{suffix}")(str(path))
    # UVFITS keeps antennas in float64 about its centre, and numbers from 1.
    got = compare(uvd, path, tmp_path / "read", rad=1e-9 if suffix != "ms" else 1e-7)
    assert got.json["unit"] == ("Jy" if unit == "Jy" else "uncalibrated")
    assert got.json["notes"].get("single_polarization") == ("YY" if n_pols == 1 else None)


# Phased to the zenith, and to a place beside it, that stand still over the ground.
@pytest.mark.parametrize("azimuth_rad, elevation_rad", [(0.0, np.pi / 2), (2.0, 1.2)])
def test_a_drift_scan_is_turned_to_the_sky(tmp_path, offline, azimuth_rad, elevation_rad):
    uvd = simulated(POLS[2])
    uvd.phase(lon=azimuth_rad, lat=elevation_rad, cat_type="driftscan", phase_frame="altaz", cat_name="drift")
    path = tmp_path / "vis.uvh5"
    uvd.write_uvh5(str(path))
    assert compare(uvd, path, tmp_path / "read").counts.sum() > 0


@pytest.mark.parametrize("suffix", ["uvh5", "uvfits", "ms"])
def test_a_sum_for_total_intensity_becomes_a_mean(tmp_path, offline, suffix):
    uvd = simulated(POLS[2], unit="Jy", convention="sum")
    path = tmp_path / f"vis.{suffix}"
    getattr(uvd, f"write_{suffix}")(str(path))
    got = compare(uvd, path, tmp_path / "read", factor=2, rad=1e-7)
    assert "doubled" in got.json["notes"]["polarization"]


def test_descending_channels_and_fk5(tmp_path, offline):
    uvd = simulated(POLS[4], frame="fk5", descending=True)
    path = tmp_path / "vis.uvh5"
    uvd.write_uvh5(str(path))
    compare(uvd, path, tmp_path / "read")


def image(path, folder, *options):
    """What `ryle image` says of a file, what it notes, and the header of the image."""
    program = os.environ.get("RYLE_BINARY")
    if not program:
        absent("ryle (set RYLE_BINARY, or run through ctest)")
    out = folder / "image.fits"
    done = subprocess.run([program, "image", path, "-o", out, "--pixels", "32", "--json", "--overwrite", *options],
                          capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout), done.stderr, module("astropy.io.fits").getheader(out)


# An image of YY alone says so: in its header, JSON and notes.
@pytest.mark.parametrize("suffix", ["uvh5", "uvfits", "ms"])
@pytest.mark.parametrize("code, name", [(-5, "XX"), (-6, "YY")])
def test_an_image_of_one_polarization_is_labelled_with_it(tmp_path, offline, suffix, code, name):
    path = tmp_path / f"vis.{suffix}"
    getattr(simulated([code]), f"write_{suffix}")(str(path))
    said, notes, header = image(path, tmp_path)
    assert said["stokes"] == name and f"it holds {name} alone" in notes
    stokes = [k for k in range(1, header["NAXIS"] + 1) if header[f"CTYPE{k}"].strip() == "STOKES"][0]
    assert header[f"CRVAL{stokes}"] == code


def test_the_column_of_a_measurement_set_is_chosen(tmp_path, offline):
    tables = module("casacore.tables")
    path = tmp_path / "vis.ms"
    simulated(POLS[2]).write_ms(str(path))
    with tables.table(str(path), readonly=False, ack=False) as table:
        description = table.getcoldesc("DATA")
        table.addcols(tables.maketabdesc([tables.makecoldesc("CORRECTED_DATA", description)]))
        table.putcol("CORRECTED_DATA", 3 * table.getcol("DATA"))
    plain, notes, _ = image(path, tmp_path, "--equalize", "no")
    assert "--column CORRECTED_DATA" in notes
    chosen, notes, _ = image(path, tmp_path, "--equalize", "no", "--column", "CORRECTED_DATA")
    assert chosen["peak"]["value"] == pytest.approx(3 * plain["peak"]["value"], rel=1e-5)
    assert "CORRECTED_DATA was read" in notes
    done = subprocess.run([os.environ["RYLE_BINARY"], "image", path, "-o", tmp_path / "x.fits", "--column", "MODEL_DATA"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 65 and "DATA, CORRECTED_DATA" in done.stderr


def filters():
    plugin = module("hdf5plugin")
    return {"gzip": dict(compression="gzip"), "lzf+shuffle+fletcher": dict(compression="lzf", shuffle=True, fletcher32=True),
            "bitshuffle": plugin.Bitshuffle(cname="none"), "bitshuffle+lz4": plugin.Bitshuffle(cname="lz4"),
            "bitshuffle+zstd": plugin.Bitshuffle(cname="zstd"), "lz4": plugin.LZ4(), "zstd": plugin.Zstd(),
            "blosc": plugin.Blosc(), "blosc+lz4+bitshuffle": plugin.Blosc(cname="lz4", shuffle=2)}


def recompressed(source, target, options):
    """A copy of a UVH5 file with the cubes under Data compressed another way."""
    h5py = module("h5py")
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        old.copy("Header", new)
        for name, cube in old["Data"].items():
            chunk = (min(5, cube.shape[0]), *cube.shape[1:])  # the last one is not full
            new.create_dataset(f"Data/{name}", data=cube[()], dtype=cube.dtype, chunks=chunk, **options)


@pytest.mark.parametrize("name", ["gzip", "lzf+shuffle+fletcher", "bitshuffle", "bitshuffle+lz4", "bitshuffle+zstd", "lz4", "zstd",
                                  "blosc", "blosc+lz4+bitshuffle"])
def test_every_compression_of_the_registry_that_debian_has(tmp_path, offline, name):
    uvd = simulated(POLS[4])
    plain, path = tmp_path / "plain.uvh5", tmp_path / "vis.uvh5"
    uvd.write_uvh5(str(plain))
    recompressed(plain, path, filters()[name])
    compare(uvd, path, tmp_path / "read")


def test_a_filter_that_is_missing_is_an_error_that_names_it(tmp_path, offline):
    plugin = module("hdf5plugin")
    plain, path = tmp_path / "plain.uvh5", tmp_path / "vis.uvh5"
    simulated(POLS[2]).write_uvh5(str(plain))
    h5py = module("h5py")
    with h5py.File(plain) as old, h5py.File(path, "w") as new:
        old.copy("Header", new)
        old.copy("Data", new)
        flags = new["Data/flags"][()]
        del new["Data/flags"]
        new.create_dataset("Data/flags", data=flags, chunks=flags.shape, **plugin.BZip2())
    code, message = rejected(path, tmp_path / "read")
    assert code == 69 and "307 (bzip2)" in message and "/Data/flags" in message and str(path) in message


@pytest.mark.parametrize("name", ["flags", "nsamples"])
def test_a_cube_that_is_missing_is_no_default(tmp_path, offline, name):
    path = tmp_path / "vis.uvh5"
    simulated(POLS[2]).write_uvh5(str(path))
    with module("h5py").File(path, "a") as file:
        del file[f"Data/{name}"]
    code, message = rejected(path, tmp_path / "read")
    assert code == 65 and name in message


@pytest.mark.parametrize("kind", ["float64", "int32", "integer flags"])
def test_other_number_types(tmp_path, offline, kind):
    h5py = module("h5py")
    uvd = simulated(POLS[4])
    if kind == "int32":
        uvd.data_array = np.round(uvd.data_array * 100)
    path = tmp_path / "vis.uvh5"
    types = {"float64": np.dtype("c16"), "int32": np.dtype([("r", "<i4"), ("i", "<i4")]), "integer flags": np.dtype("c8")}
    uvd.write_uvh5(str(path), data_write_dtype=types[kind])
    if kind == "integer flags":
        with h5py.File(path, "a") as file:
            flags = file["Data/flags"][()].astype(np.uint8) * 128
            del file["Data/flags"]
            file["Data/flags"] = flags
    compare(uvd, path, tmp_path / "read")


def test_values_that_are_no_numbers_are_flagged_and_counted(tmp_path, offline):
    uvd = simulated(POLS[2])
    path = tmp_path / "vis.uvh5"
    good = np.argwhere(~uvd.flag_array)[:3]
    for k in good:
        uvd.data_array[tuple(k)] = np.nan
    uvd.write_uvh5(str(path), run_check=False)
    for k in good:
        uvd.flag_array[tuple(k)] = True
    got = compare(uvd, path, tmp_path / "read")
    assert got.json["notes"]["not_finite"].startswith("3 values")


@pytest.mark.parametrize("suffix", ["uvh5", "uvfits", "ms"])
@pytest.mark.parametrize("what", ["centers", "windows"])
def test_several_phase_centres_or_windows_are_refused_with_a_remedy(tmp_path, offline, suffix, what):
    uvd = simulated(POLS[2], **{what: 2})
    path = tmp_path / f"vis.{suffix}"
    getattr(uvd, f"write_{suffix}")(str(path))
    code, message = rejected(path, tmp_path / "read")
    assert code in (65, 69) and str(path) in message and ("select" in message or "split" in message), message


def test_a_phase_centre_in_another_frame_is_refused(tmp_path, offline):
    path = tmp_path / "vis.uvh5"
    simulated(POLS[2], frame="galactic").write_uvh5(str(path))
    code, message = rejected(path, tmp_path / "read")
    assert code == 69 and "galactic" in message and "icrs" in message


def test_circular_feeds_are_refused(tmp_path, offline):
    uvd = simulated(POLS[2])
    uvd.polarization_array = np.array([-1, -2])
    uvd.telescope.feed_array = np.array([["r", "l"]] * 5)
    path = tmp_path / "vis.uvh5"
    uvd.write_uvh5(str(path), run_check=False)
    code, message = rejected(path, tmp_path / "read")
    assert code == 69 and "circular" in message


def test_flagged_rows_of_a_measurement_set(tmp_path, offline):
    tables = module("casacore.tables")
    uvd = simulated(POLS[4])
    path = tmp_path / "vis.ms"
    uvd.write_ms(str(path))
    with tables.table(str(path), readonly=False, ack=False) as table:
        rows = table.getcol("FLAG_ROW")
        rows[3] = True
        table.putcol("FLAG_ROW", rows)
    uvd.flag_array[3] = True
    compare(uvd, path, tmp_path / "read", rad=1e-7)


REAL = ["1061316296.uvfits", "1131733552_mini_cotter.uvfits", "1133866760.uvfits", "zen.2458661.23480.HH.uvh5", "zen.2456865.60537.xy.uvcRREAAM.uvfits",
        "2018-03-21-01_26_33_0004384620257280_000000_downselected.ms"]


@pytest.mark.parametrize("name", REAL)
def test_real_files(tmp_path, offline, name):
    path = DATA / "vis" / "pyuvdata" / name
    if not path.exists():
        pytest.skip(f"skipped: no data ({path})")
    uvd = module("pyuvdata").UVData()
    uvd.read(str(path), fix_autos=False, check_autos=False, **({"ignore_single_chan": False} if name.endswith(".ms") else {}))
    # The one of an equinox of date goes through another theory of precession there: 2 arcsec in 291 years.
    compare(uvd, path, tmp_path / "read", position_m=1e-3, rad=1e-5 if "uvcRR" in name else 1e-7)
