# SPDX-License-Identifier: BSD-3-Clause
"""VDIF of beams read by baseband: times, channels, threads and every code."""
import pytest
from conftest import module


@pytest.mark.parametrize("bits", [8, 4])
def test_baseband_reads_our_beams(products, offline, bits):
    np, vdif, units = module("numpy"), module("baseband.vdif"), module("astropy.units")
    with vdif.open(products / f"beam{bits}.vdif", "rs") as stream:  # the rate is in the header (EDV 1)
        assert stream.header0["edv"] == 1
        assert stream.sample_rate.to_value(units.Hz) == 32000
        assert stream.start_time.utc.isot.startswith("2025-03-01T12:00:00.500")
        assert stream.complex_data and stream.bps == bits
        assert stream.sample_shape == (2, 4)
        data = stream.read()
    n = data.shape[0]
    assert 19000 < n <= 20000
    levels = 255 if bits == 8 else 15
    t, pol, channel = np.ogrid[:n, :2, :4]
    for part, got in enumerate((data.real, data.imag)):
        code = (channel * 31 + t * 7 + pol * 13 + part * 5) % levels - levels // 2
        # baseband has a unit of its own: one scale, and at most half a code of offset.
        slope, offset = np.polyfit(code.ravel(), got.ravel(), 1)
        assert slope > 0 and abs(offset) <= 0.51 * slope
        assert np.abs(got - (slope * code + offset)).max() < 1e-4 * slope * levels
