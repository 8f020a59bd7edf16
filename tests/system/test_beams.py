# SPDX-License-Identifier: BSD-3-Clause
"""ryle import best2 and ryle beampattern, one after the other."""
import json
import math

import pytest
from harness import data, run, ryle


def write_xml(folder):
    """The shape of the published files: 8 rows of 4 antennas, positions in wavelengths at 408 MHz."""
    antennas = ["<array name='Medicina : BEST-2'><receiver><center_freq>0.408</center_freq></receiver><antennas>"
                "<reference><position><lat>44:31:24.88N</lat><long>11:38:45.56E</long></position></reference>"]
    for row in range(8):
        for column in range(4):
            adc = 8 * column + (row // 2 if row % 2 == 0 else 4 + (row - 1) // 2)
            antennas.append(f"<ant id='{4 * row + column}' pols='1' name='1N-{row + 1}-{column + 1}'><adc_chan pol='x'>{adc}"
                            f"</adc_chan><position><grid x='{column}' y='{row}'/><x>{8.0 * column}</x>"
                            f"<y>{13.609415 * row}</y><z>0.0</z></position></ant>")
    (folder / "antennas.xml").write_text("\n".join(antennas) + "</antennas></array>\n")
    (folder / "obs.xml").write_text(
        "<observation>\n<channels nchans='1024'/>\n<timing tsamp='0.0000512'/>\n<samples number='16384' bits='8'/>\n"
        "<beams antennaFile='antennas.xml'>\n"
        "<beam beamId='0' dec='44.5235778' topFrequency='418' frequencyOffset='0.01953125'/>\n"
        "<beam beamId='1' dec='54.579' ra='53.25' topFrequency='418' frequencyOffset='0.01953125'/>\n"
        "</beams></observation>\n")
    return folder / "obs.xml", folder / "antennas.xml"


@pytest.fixture
def beams(tmp_path):
    done = run("import", "best2", *write_xml(tmp_path), "-o", tmp_path / "obs.toml", "--band", "descending", "--json")
    result = json.loads(done.stdout)
    assert result["aperture_m"] == pytest.approx([17.63, 70.0], abs=0.01)
    assert result["first_center_mhz"] == pytest.approx(417.990234375)
    assert len(result["warnings"]) == 2 and "took 0" in done.stderr
    return tmp_path / "obs.toml"


def test_pattern_of_an_imported_beam(beams, tmp_path):
    outputs = [tmp_path / name for name in ("b.fits", "b.png", "b.csv")]
    done = run("beampattern", beams, "--freq-mhz", "408", "--pixels", "64", "--width-deg", "3", "--json",
               "--element", "aperture", "--element-size-m", "5.878", "10", *[a for o in outputs for a in ("-o", o)])
    result = json.loads(done.stdout)
    wide, narrow = result["half_power_width_deg"]
    assert wide == pytest.approx(1.59, abs=0.02) and narrow == pytest.approx(0.47, abs=0.01)
    assert result["elevation_deg"] == pytest.approx(90, abs=1e-4) and result["n_antennas"] == 32
    assert 0 <= result["loss_to_ideal_weights_db"] < 1e-3
    assert all(o.stat().st_size > 1000 for o in outputs)
    rows = [list(map(float, row.split(","))) for row in outputs[2].read_text().splitlines()[1:]]
    best = max(rows, key=lambda row: row[4])
    assert math.hypot(best[0], best[1]) < 1e-9 and best[4] == pytest.approx(1, abs=1e-4)


def test_elements_are_pointed(beams, tmp_path):
    """Elements that point elsewhere dim the beam as their pattern says, and only where they have one."""
    def peak(*arguments):
        run("beampattern", beams, "--freq-mhz", "408", "--pixels", "32", "--width-deg", "1", "--element", "cosine",
            "--element-exponent", "4", *arguments, "-o", tmp_path / "p.csv", "--overwrite")
        rows = [list(map(float, row.split(","))) for row in (tmp_path / "p.csv").read_text().splitlines()[1:]]
        return max(row[4] for row in rows)

    assert peak("--element-pointing", "beam") == pytest.approx(1, abs=1e-3)
    assert peak("--element-pointing", "180,60") == pytest.approx(math.cos(math.radians(30))**4, rel=0.02)
    for bad in ("nowhere", "180", "180,-5"):
        assert "AZIMUTH,ELEVATION" in run("beampattern", beams, "--element", "cosine", "--element-pointing", bad,
                                          check=78).stderr
    assert "isotropic" in run("beampattern", beams, "--element-pointing", "beam", check=78).stderr


def test_refusals(beams, tmp_path):
    assert "--at" in run("beampattern", beams, "--beam", "beam1", check=78).stderr
    assert "beam0, beam1" in run("beampattern", beams, "--beam", "nobody", check=78).stderr
    assert ".csv" in run("beampattern", beams, "-o", tmp_path / "b.txt", check=78).stderr
    run("import", "best2", *write_xml(tmp_path), "-o", beams, "--band", "descending", check=73)
    run("import", "best2", *write_xml(tmp_path), "-o", beams, check=64)
    (tmp_path / "obs.xml").write_text("<observation><beam/></observation>")
    bad = run("import", "best2", tmp_path / "obs.xml", tmp_path / "antennas.xml", "-o", tmp_path / "x.toml", "--band",
              "ascending", check=65)
    assert "obs.xml:1:" in bad.stderr and "known" in bad.stderr


def test_the_recording_gives_the_band_and_options_the_array(tmp_path):
    recording, station = data("lwa/tbx-test.dat"), data("lwa/lwana-ssmif-2024may.txt")
    beams = tmp_path / "beams.toml"
    beams.write_text('[[beam]]\nname = "zenith"\nframe = "azel"\naz_deg = 0.0\nel_deg = 90.0\n')
    result = ryle("beamform", recording, "--format", "tbx", "--station", station, "--beams", beams, "-o",
                  tmp_path / "b.h5")
    assert result["channels"] == 312 and (tmp_path / "b.h5").exists()
    # Without the option the array is missed, in the file that should have it.
    assert "beams.toml" in run("beamform", recording, "--format", "tbx", "--beams", beams, "-o", tmp_path / "c.h5",
                               check=78).stderr
