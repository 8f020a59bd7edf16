# SPDX-License-Identifier: BSD-3-Clause
"""pyuvdata reads our MS, UVFITS and UVH5, its checks pass, and the three hold the same numbers."""
import numpy as np
import pytest
from conftest import module


def read(path):
    uvdata = module("pyuvdata").UVData()
    options = {"ignore_single_chan": False} if path.endswith(".ms") else {}
    if path.endswith(".ms"):
        module("casacore.tables")
    uvdata.read(path, **options)
    # Strict: uvw must follow from antenna positions, times and phase centre by pyuvdata's own astrometry.
    uvdata.check(strict_uvw_antpos_check=True)
    return uvdata


@pytest.mark.parametrize("stem, n_antennas, n_channels, n_pols", [("sky", 32, 8, 4), ("lossy", 5, 4, 4), ("one", 3, 1, 1)])
def test_three_formats_agree(products, offline, stem, n_antennas, n_channels, n_pols):
    ms, uvfits, uvh5 = (read(products / (stem + suffix)) for suffix in (".ms", ".uvfits", ".uvh5"))
    n_baselines = n_antennas * (n_antennas + 1) // 2
    assert uvh5.data_array.shape == (n_baselines * products.truth["n_dumps"], n_channels, n_pols)
    for other, first_antenna in ((ms, 0), (uvfits, 1)):
        assert np.array_equal(other.polarization_array, uvh5.polarization_array)
        assert np.array_equal(other.ant_1_array - first_antenna, uvh5.ant_1_array)
        assert np.array_equal(other.ant_2_array - first_antenna, uvh5.ant_2_array)
        assert np.array_equal(other.data_array, uvh5.data_array)  # float32 in, float32 out: not one bit differs
        assert np.array_equal(other.flag_array, uvh5.flag_array)
        assert np.abs(other.time_array - uvh5.time_array).max() * 86400 < 1e-3
        assert np.array_equal(other.freq_array, uvh5.freq_array)
        assert np.array_equal(other.channel_width, uvh5.channel_width)
        assert np.allclose(other.integration_time, uvh5.integration_time, rtol=1e-6)
        # UVFITS keeps uvw in float32 seconds: relative 2^-24 of up to 300 m.
        assert np.abs(other.uvw_array - uvh5.uvw_array).max() < 2e-5
        positions = other.telescope.antenna_positions - uvh5.telescope.antenna_positions
        assert np.abs(positions).max() < 1e-6
        assert other.telescope.location.get_itrs().separation_3d(uvh5.telescope.location.get_itrs()).m < 1e-6
        assert list(other.telescope.antenna_names) == list(uvh5.telescope.antenna_names)
        assert other.vis_units == uvh5.vis_units == "Jy"
        for key in ("cat_lon", "cat_lat"):
            assert abs(other.phase_center_catalog[0][key] - uvh5.phase_center_catalog[0][key]) < 1e-12
        # Weights: MS and UVFITS hold independent samples (count x bandwidth x interval), UVH5 the valid fraction.
        good = uvh5.nsample_array > 0
        ratio = other.nsample_array[good] / uvh5.nsample_array[good]
        assert np.allclose(ratio, ratio[0], rtol=1e-6)
        assert np.all(other.nsample_array[~good] == 0)


@pytest.mark.parametrize("center", ["drift", "field"])
@pytest.mark.parametrize("losses", ["whole", "lossy"])
@pytest.mark.parametrize("n_pols", [1, 2])
@pytest.mark.parametrize("unit", ["uncalibrated", "Jy"])
def test_every_kind_of_product_passes_the_checks(products, offline, unit, n_pols, losses, center):
    """pyuvdata 3.1 to 3.2.8 refuses a rule for total intensity of uncalibrated data."""
    stem = f"kind_{unit}_{n_pols}_{losses}_{center}"
    ms, uvfits, uvh5 = (read(products / (stem + suffix)) for suffix in (".ms", ".uvfits", ".uvh5"))
    for uvdata in (ms, uvfits, uvh5):
        assert uvdata.vis_units == ("Jy" if unit == "Jy" else "uncalib")
        assert uvdata.pol_convention == ("avg" if unit == "Jy" else None)
        assert uvdata.Npols == n_pols**2
        assert uvdata.flag_array.any() == (losses == "lossy")
        assert np.array_equal(uvdata.data_array, uvh5.data_array)
        assert np.array_equal(uvdata.flag_array, uvh5.flag_array)


def test_apparent_place_agrees_with_pyuvdata(products, offline):
    """UVH5 carries the apparent phase centre as Ryle computes it; UVFITS makes pyuvdata compute it itself."""
    ours, theirs = read(products / "sky.uvh5"), read(products / "sky.uvfits")
    for name in ("phase_center_app_ra", "phase_center_app_dec", "phase_center_frame_pa"):
        # dUT1 = 0 here against IERS there (up to 13.5 arcsec); aberration bends the frame angle by 1e-5.
        assert np.abs(getattr(ours, name) - getattr(theirs, name)).max() < 7e-5, name


def test_losses_are_flags_and_fractions(products, offline):
    uvh5 = read(products / "lossy.uvh5")
    dead = (uvh5.ant_1_array == 1) & (uvh5.ant_2_array == 3)
    half = (uvh5.ant_1_array == 0) & (uvh5.ant_2_array == 2)
    assert uvh5.flag_array[dead].all() and not uvh5.flag_array[~dead].any()
    assert np.all(uvh5.nsample_array[dead] == 0) and np.all(uvh5.data_array[dead] == 0)
    assert np.all(uvh5.nsample_array[half] == 0.5)
    assert np.all(uvh5.nsample_array[~dead & ~half] == 1)


def test_phased_source_is_flat(products, offline):
    """Phased with pyuvdata to the brightest source, its visibilities stand up: positions, times and signs agree."""
    uvdata = read(products / "sky.uvh5")
    source = products.truth["sources"][0]
    uvdata.phase(lon=source["ra_rad"], lat=source["dec_rad"], cat_name="brightest", phase_frame="icrs", epoch=2000.0)
    cross = uvdata.ant_1_array != uvdata.ant_2_array
    mean = uvdata.data_array[cross][..., 0].mean()
    assert abs(mean.real / source["i"] - 1) < 0.1  # the other sources average out to a few per cent
    assert abs(np.angle(mean)) < 0.05
