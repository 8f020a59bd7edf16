# SPDX-License-Identifier: BSD-3-Clause
"""Gains that were put on a simulated array come back, are divided out again, and what is wrong with inputs is named."""
import h5py
import numpy as np
import pytest
from harness import ROOT, run, ryle
from test_calibrate import read_csv

SKY = [("A", 230.0, -10.0, 8000.0), ("B", 200.0, -45.0, 5000.0)]
PLACE = ["--layout", ROOT / "examples/mwa32t.csv", "--latitude-deg", "-26.7033", "--longitude-deg", "116.6708", "--height-m",
         "377.8"]
RECORDING = ["--format", "mwa32t-interleaved", *PLACE, "--rate", "1280000", "--center-mhz", "154.24", "--start",
             "2026-01-01T00:00:00", "--channels", "16"]


def observation(folder, gains, sky=SKY):
    """The example with two sources of known places, for the simulator; and the same sources as a sky model."""
    text = (ROOT / "examples/mwa32t.toml").read_text()
    begin, end = text.index("[[simulator.source]]"), text.index("[channelize]")
    sources = "".join(f'[[simulator.source]]\nname = "{n}"\nra_deg = {ra}\ndec_deg = {dec}\nflux_jy = {flux}\n\n'
                      for n, ra, dec, flux in sky)
    text = text[:begin] + sources + text[end:]
    text = text.replace('"mwa32t.csv"', f'"{ROOT}/examples/mwa32t.csv"').replace('"mwa32t_gains.csv"', f'"{gains}"')
    (folder / "obs.toml").write_text(text)
    (folder / "sky.csv").write_text("name,ra_deg,dec_deg,flux_jy,frequency_mhz,min_mhz,max_mhz\n" +
                                    "".join(f"{n},{ra},{dec},{flux},150,100,200\n" for n, ra, dec, flux in sky))
    return folder / "obs.toml"


def write_csv(path, gains):
    path.write_text("input,amplitude,phase_deg\n" +
                    "".join(f"{p},{abs(g):.8f},{np.degrees(np.angle(g)):.6f}\n" for p, g in enumerate(gains)))
    return path


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """0.2 s of an array with gains anywhere in the circle, and of the same array without."""
    folder = tmp_path_factory.mktemp("array")
    rng = np.random.default_rng(6)
    gains = rng.uniform(0.75, 1.3, 64) * np.exp(2j * np.pi * rng.uniform(size=64))
    made = {"folder": folder, "gains": gains}
    for name, values in (("with", gains), ("without", np.ones(64))):
        toml = observation(folder, write_csv(folder / f"{name}.csv", values))
        made[name] = folder / f"{name}.bin"
        run("simulate", toml, "-o", made[name], "--set", "simulator.duration_s=0.2", "--set",
            'source.start_utc="2026-01-01T00:00:00"')
        made[f"{name}.uvh5"] = folder / f"{name}.uvh5"
        run("correlate", made[name], *RECORDING, "--integration", "0.1", "-o", made[f"{name}.uvh5"])
    return made


def turned(gains):
    """X and Y have a phase of their own each."""
    out = gains.copy()
    for pol in (0, 1):
        out[pol::2] *= np.exp(-1j * np.angle(out[pol]))
    return out


def test_gains_of_a_simulated_array_come_back_with_their_sign(recordings, tmp_path):
    out = tmp_path / "gains.csv"
    result = ryle("calibrate", recordings["with.uvh5"], "--model", recordings["folder"] / "sky.csv", "-o", out, "--reference", "0")
    assert result["dropped"] == [] and result["flux_unit"] == "Jy" and result["model"].startswith("A at elevation 69")
    found, true = turned(read_csv(out)), turned(recordings["gains"])
    # The sky of the simulator stands still for 0.2 s, that of the model turns by 1.5 arcsec at the middle: 0.5 deg rms.
    error_deg = np.degrees(np.angle(found / true))
    assert np.sqrt(np.mean(error_deg ** 2)) < 1.5 and np.abs(error_deg).max() < 5
    scale = np.abs(found / true)
    assert scale.std() / scale.mean() < 0.02
    # A recording is correlated on the way.
    straight = tmp_path / "straight.csv"
    ryle("calibrate", recordings["with"], *RECORDING, "--set", "correlate.integration_s=0.1", "--model",
         recordings["folder"] / "sky.csv", "-o", straight, "--reference", "0")
    assert np.abs(read_csv(straight) / read_csv(out) - 1).max() < 1e-3


def test_applied_gains_make_the_image_of_an_array_without(recordings, tmp_path):
    table, csv_table = tmp_path / "gains.h5", tmp_path / "gains.csv"
    ryle("calibrate", recordings["with.uvh5"], "--model", recordings["folder"] / "sky.csv", "-o", table, "-o", csv_table,
         "--reference", "0")
    peaks = {}
    for name, arguments in {"table": ["--gains", table], "csv": ["--gains", csv_table]}.items():
        result = ryle("apply", recordings["with.uvh5"], *arguments, "-o", tmp_path / f"{name}.uvh5")
        assert result["n_flagged"] == 0 and result["n_values"] > 0
        peaks[name] = ryle("image", tmp_path / f"{name}.uvh5", "--pixels", 128, "-o", tmp_path / f"{name}.fits")["peak"]
    peaks["without"] = ryle("image", recordings["without.uvh5"], "--pixels", 128, "-o", tmp_path / "without.fits")["peak"]
    peaks["as it is"] = ryle("image", recordings["with.uvh5"], "--pixels", 128, "-o", tmp_path / "with.fits")["peak"]
    for name in ("table", "csv"):
        for axis in ("l", "m"):
            assert peaks[name][axis] == pytest.approx(peaks["without"][axis], abs=0.02)
        assert peaks[name]["sigma"] == pytest.approx(peaks["without"]["sigma"], rel=0.1)
    # The brighter source and half of the sum of both in the sidelobes; without gains there is nothing of this.
    assert peaks["as it is"]["sigma"] < 0.6 * peaks["without"]["sigma"]
    # Once is enough.
    message = ryle("apply", tmp_path / "table.uvh5", "--gains", table, "-o", tmp_path / "twice.uvh5", expect=78)
    assert "before" in message
    # The correlator divides by the same table, beams and images do.
    again = tmp_path / "again.uvh5"
    run("correlate", recordings["with"], *RECORDING, "--integration", "0.1", "--set", f"calibration.gains={csv_table}", "-o", again)
    with h5py.File(again) as a, h5py.File(tmp_path / "csv.uvh5") as b:
        one, two = a["Data/visdata"][:], b["Data/visdata"][:]
        assert np.abs(one - two).max() < 1e-4 * np.abs(two).max()


def test_wild_dead_and_swapped_inputs_are_named(recordings, tmp_path):
    """Input 0 of tile 3 is wild, of tile 7 dead; of tile 12 X and Y are swapped; tile 20 has an inverted band."""
    path = tmp_path / "bad.uvh5"
    path.write_bytes(recordings["with.uvh5"].read_bytes())
    rng = np.random.default_rng(2)
    with h5py.File(path, "r+") as file:
        header, v = file["Header"], file["Data/visdata"]
        first, second = header["ant_1_array"][:], header["ant_2_array"][:]
        values = v[:]

        def change(antenna, function):
            for side, ants in ((1, first), (2, second)):
                rows = ants == antenna
                values[rows] = function(values[rows], side)

        change(3, lambda x, side: x * 15)
        change(7, lambda x, side: x * 0.02)
        cross = {1: [3, 2, 1, 0], 2: [2, 3, 0, 1]}  # file order XX YY XY YX
        change(12, lambda x, side: x[..., cross[side]])
        own = (first == 20) & (second == 20)
        kept = values[own]
        change(20, lambda x, side: np.abs(x).mean() * 0.3 * (rng.normal(size=x.shape) + 1j * rng.normal(size=x.shape)))
        values[own] = kept
        v[:] = values
        del file["Ryle"]  # its checksums; what is left is a file like those of others
    result = ryle("calibrate", path, "--model", recordings["folder"] / "sky.csv", "-o", tmp_path / "gains.csv", "--reference", "0")
    why = {}
    for d in result["dropped"]:
        why.setdefault(d["antenna"], set()).add(d["why"].split()[0].rstrip(":"))
    assert set(why) == {3, 7, 12, 20}
    assert why[3] == {"wild"} and why[7] == {"dead"}
    found, true = turned(read_csv(tmp_path / "gains.csv")), turned(recordings["gains"])
    layout = [line.split(",")[0] for line in open(ROOT / "examples/mwa32t.csv") if line[0] not in "#a"]
    good = np.array([name not in {layout[2 * a] for a in why} for name in layout])
    assert np.abs(np.degrees(np.angle(found / true)))[good].max() < 5


def test_flagged_channels_and_a_dead_polarization_leave_the_rest(recordings, tmp_path):
    """10 of 16 channels are flagged, and all of Y: X is solved in the others."""
    path = tmp_path / "flagged.uvh5"
    path.write_bytes(recordings["with.uvh5"].read_bytes())
    with h5py.File(path, "r+") as file:
        for name, none in (("flags", True), ("nsamples", 0)):
            values = file[f"Data/{name}"][:]
            values[:, :10] = none
            values[..., 1:] = none  # file order XX YY XY YX
            file[f"Data/{name}"][:] = values
        del file["Ryle"]
    result = ryle("calibrate", path, "--model", recordings["folder"] / "sky.csv", "-o", tmp_path / "gains.h5", "--channels-per-gain",
                  "1", "--reference", "0")
    (found,) = result["sets"]
    assert found["polarization"] == "X" and found["n_without_data"] == 10 and found["n_converged"] == 6
    assert any(w.startswith("polarization Y") for w in result["warnings"])
    assert found["rounds"] < 100 and found["sigma_deg"] < 10


def test_a_flux_that_is_not_seen_carries_no_scale(tmp_path):
    """The sky is Cen A, which has no flux in the model: a known source that is not there must not turn it into Jy."""
    toml = observation(tmp_path, write_csv(tmp_path / "ones.csv", np.ones(64)), [("Cen A", 201.365, -43.019, 8000.0)])
    run("simulate", toml, "-o", tmp_path / "sky.bin", "--set", "simulator.duration_s=0.2", "--set",
        'source.start_utc="2026-01-01T00:00:00"')
    run("correlate", tmp_path / "sky.bin", *RECORDING, "--integration", "0.1", "-o", tmp_path / "sky.uvh5")
    for name, row in (("absent", "A,230,-10,30"), ("seen", "A,201.365,-43.019,8000")):
        (tmp_path / f"{name}.csv").write_text("name,ra_deg,dec_deg,flux_jy,frequency_mhz,min_mhz,max_mhz\n" + row + ",150,100,200\n")
    alone = ryle("calibrate", tmp_path / "sky.uvh5", "--model", "cen-a", "-o", tmp_path / "alone.h5")
    absent = ryle("calibrate", tmp_path / "sky.uvh5", "--model", f"cen-a,{tmp_path}/absent.csv", "-o", tmp_path / "absent.h5")
    seen = ryle("calibrate", tmp_path / "sky.uvh5", "--model", tmp_path / "seen.csv", "-o", tmp_path / "seen.h5")
    assert alone["flux_unit"] == absent["flux_unit"] == "" and seen["flux_unit"] == "Jy"
    assert any("cannot tell which one it is" in w for w in absent["warnings"])
    with h5py.File(tmp_path / "absent.h5") as file:
        assert np.median(np.abs(file["Data/gains"][:])) == pytest.approx(1, abs=0.1)  # relative: the median is 1


def test_what_cannot_work_is_said(recordings, tmp_path):
    out = tmp_path / "gains.csv"
    assert "nothing to write" in ryle("calibrate", recordings["with.uvh5"], expect=78)
    assert "no source" in ryle("calibrate", recordings["with.uvh5"], "--model", "cas-a", "-o", out, expect=78)
    message = ryle("calibrate", recordings["with.uvh5"], "--model", recordings["folder"] / "sky.csv", "--method", "eigenvector",
                   "-o", out, expect=78)
    assert "one source" in message
    message = ryle("calibrate", recordings["with.uvh5"], "--model", recordings["folder"] / "sky.csv", "--drop-above", "1", "-o", out,
                   expect=65)
    assert "60 %" in message
    message = ryle("calibrate", recordings["with.uvh5"], "--uv-min", "1e5", "--model", recordings["folder"] / "sky.csv", "-o", out,
                   expect=65)
    assert "shorter than --uv-min" in message
    wrong = ryle("calibrate", recordings["with.uvh5"], "--model", "Cen A", "-o", tmp_path / "wrong.csv")
    assert any("not the whole sky" in w for w in wrong["warnings"])
    message = ryle("calibrate", recordings["with.uvh5"], "--model", "Cen A", "--max-sigma-deg", "2", "-o", out, expect=65)
    assert "halves" in message
    assert "--set" in ryle("calibrate", recordings["with.uvh5"], "--set", "output.name=x", "-o", out, expect=78)
    assert ".h5" in ryle("calibrate", recordings["with.uvh5"], "-o", tmp_path / "gains.txt", expect=78)
    assert "calibrate.model" in run("run", ROOT / "examples/mwa32t.toml", "--set", 'calibrate.model="sun"', check=78).stderr
    assert not out.exists()
