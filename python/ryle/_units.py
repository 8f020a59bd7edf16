# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with units: astropy is taken where it is given, and never asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Array


def number(x: Any, unit: str) -> float:
    """A number, or an astropy Quantity of a unit that can be turned into this one."""
    return float(x.to_value(unit)) if hasattr(x, "to_value") else float(x)


def numbers(x: Any, unit: str) -> Array:
    """The same of arrays: C-contiguous float64, a copy where it was something else."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("a masked array, whose mask nothing here reads; leave masked entries out, or call .filled(numpy.nan)")
    return np.ascontiguousarray(x.to_value(unit) if hasattr(x, "to_value") else x, dtype=np.float64)


def utc(x: Any) -> str:
    """An instant as ISO text: that text, or an astropy Time."""
    if isinstance(x, str):
        return x
    if hasattr(x, "utc"):
        return str(x.utc.isot)
    raise TypeError(f"an instant is text such as \"2026-01-01T00:00:00\" or an astropy Time, not {type(x).__name__}")


def angle_deg(x: Any) -> float:
    return number(x, "deg")


def angle_rad(x: Any, name: str) -> float:
    """Text with a unit ("2.9arcmin", "0.1deg"), an astropy Quantity, or radians."""
    if not isinstance(x, str):
        return number(x, "rad")
    degrees = {"arcsec": 1 / 3600, "arcmin": 1 / 60, "deg": 1.0, "rad": 180 / np.pi}
    for unit, factor in degrees.items():
        if x.endswith(unit) and (unit != "rad" or not x.endswith("deg")):
            try:
                return float(np.deg2rad(float(x[: -len(unit)]) * factor))
            except ValueError:
                break
    raise ValueError(f"{name} \"{x}\": an angle is a number with its unit: 174arcsec, 2.9arcmin, 0.05deg, 8.4e-4rad")


def time_of(tai_ns: Any) -> Any:
    """astropy Time (TAI) of nanoseconds since 1970-01-01T00:00:00 TAI."""
    from astropy.time import Time

    ns = np.asarray(tai_ns, dtype=np.int64)
    days, rest = np.divmod(ns, 86_400_000_000_000)
    return Time(days + 40587, rest / 86_400e9, format="mjd", scale="tai")
