# SPDX-License-Identifier: BSD-3-Clause
"""Where the antennas of an array are, and which input is which."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import earth_location
from ._spectra import Spectra
from ._units import angle_deg, number, numbers, tai_ns


class Layout:
    """An array of antennas.

    Attributes
    ----------
    name : str
    latitude_deg, longitude_deg, height_m : float
        WGS84, east positive.
    antenna_m : array of float64 [antenna, 3]
        East, north and up.
    names : list of str
        Of the antennas.
    inputs : list of (antenna, pol, bad)
        In the order of the samples; pol 0 = X, 1 = Y.
    """

    def __init__(self, array: _ryle.ArrayLayout) -> None:
        self._array = array
        info = array.info()
        self.name: str = info["name"]
        self.latitude_deg: float = info["latitude_deg"]
        self.longitude_deg: float = info["longitude_deg"]
        self.height_m: float = info["height_m"]
        self.names: list[str] = [name for name, _ in info["antennas"]]
        self.antenna_m: Array = np.array([position for _, position in info["antennas"]])
        self.inputs: list[tuple[int, ...]] = list(info["inputs"])

    def cable_delay_s(self, frequency_hz: Any) -> Array:
        """How late each input is. @shape frequency_hz [channel]; result [channel, input]"""
        return np.asarray(self._array.cable_delays_s(np.atleast_1d(numbers(frequency_hz, "Hz"))))

    def gains(self, spectra: Spectra, frequency_hz: Any = None, *, dead_below: float = 0.3, dead_above: float = 4.0) -> Array:
        """What spectra are multiplied with before an image: cables undone, inputs scaled to the same power, dead ones 0.

        ``c_a = exp(2 pi i nu d_a) / rms_a``, d the delay of the cable. An input is dead that is bad by the layout, or whose
        power is outside `dead_below` to `dead_above` times the median of the others: what `ryle image` does.

        Returns
        -------
        array of complex64 [channel, input]
        """
        centers = spectra.frequency_hz if frequency_hz is None else numbers(frequency_hz, "Hz")
        if centers is None:
            raise ValueError("frequency_hz is needed: these spectra do not know their frequencies")
        step = max(1, spectra.shape[1] // 256)
        values = _arrays.to_complex(spectra.array[:, ::step])
        power = (values.real.astype(np.float64) ** 2 + values.imag.astype(np.float64) ** 2).mean(axis=(0, 1))
        good = ~np.array([role[2] for role in self.inputs], bool) & (power > 0)
        middle = float(np.median(power[good])) if good.any() else 0.0
        good &= (power >= dead_below * middle) & (power <= dead_above * middle)
        if not good.any():
            raise ValueError("every input is bad by the layout or without power: are these the right data?")
        turns = centers[:, np.newaxis] * self.cable_delay_s(centers)
        scale = np.where(good, 1 / np.sqrt(np.where(good, power, 1)), 0)
        return np.asarray((scale * np.exp(2j * np.pi * (turns - np.floor(turns)))).astype(np.complex64))

    def zenith(self, instant: Any) -> tuple[float, float, float]:
        """ICRS right ascension and declination of the zenith in degrees, and the angle of north there in radians, at an
        astropy Time or nanoseconds since 1970-01-01T00:00:00 TAI."""
        ra, dec, north = self._array.zenith(tai_ns(instant))
        return float(ra), float(dec), float(north)

    @property
    def location(self) -> Any:
        """astropy EarthLocation; needs astropy."""
        return earth_location(self.longitude_deg, self.latitude_deg, self.height_m)

    def __repr__(self) -> str:
        return f"Layout({self.name!r}, {len(self.antenna_m)} antennas, {len(self.inputs)} inputs)"


def read_layout(path: str | os.PathLike[str], *, latitude: Any = None, longitude: Any = None, height_m: Any = 0.0,
                location: Any = None) -> Layout:
    """Reads an array: CSV (antenna,east_m,north_m,up_m,pol,cable_delay_ns), TART's JSON, or an LWA station file (SSMIF).

    Parameters
    ----------
    path : str or path
        By its name: .csv, .json, else SSMIF, which says its place itself.
    latitude, longitude : float (degrees) or Quantity
        Of CSV and JSON; east positive.
    height_m : float or Quantity
    location : astropy EarthLocation, optional
        Instead of the three.
    """
    name = os.fspath(path)
    suffix = os.path.splitext(name)[1].lower()
    if location is not None:
        if latitude is not None or longitude is not None:
            raise ValueError("location says latitude, longitude and height: give one or the other")
        place = location.geodetic
        latitude, longitude, height_m = place.lat, place.lon, place.height
    if suffix not in (".csv", ".json"):
        if latitude is not None or longitude is not None:
            raise ValueError("an LWA station file says its place itself")
        return Layout(_ryle.read_lwa_ssmif(name))
    if latitude is None or longitude is None:
        raise ValueError(f"{name} does not say where the array is; give latitude and longitude, or location")
    reader = _ryle.read_layout_csv if suffix == ".csv" else _ryle.read_tart_positions
    return Layout(reader(name, angle_deg(latitude), angle_deg(longitude), number(height_m, "m")))
