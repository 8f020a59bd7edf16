# SPDX-License-Identifier: BSD-3-Clause
"""Numbers with units: astropy is taken where it is given, and never asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Array
from ._labels import needed

_EPOCH_MJD = 40587  # 1970-01-01
_DAY_NS = 86_400_000_000_000


def number(x: Any, unit: str) -> float:
    """A number, or an astropy Quantity of a unit that can be turned into this one."""
    return float(x.to_value(unit)) if hasattr(x, "to_value") else float(x)


def numbers(x: Any, unit: str) -> Array:
    """The same of arrays: C-contiguous float64, a copy where it was something else."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("a masked array, whose mask nothing here reads; leave masked entries out, or call .filled(numpy.nan)")
    return np.ascontiguousarray(x.to_value(unit) if hasattr(x, "to_value") else x, dtype=np.float64)


def is_time(x: Any) -> bool:
    return hasattr(x, "utc") and hasattr(x, "tai")


def utc(x: Any) -> str:
    """An instant as ISO text: that text, or an astropy Time to the nanosecond."""
    if isinstance(x, str):
        return x
    if is_time(x):
        instant = x.utc.copy()
        instant.precision = 9
        return str(instant.isot)
    raise TypeError(f"an instant is text such as \"2026-01-01T00:00:00\" or an astropy Time, not {type(x).__name__}")


def mjd_utc(x: Any) -> float:
    """Days of UTC: a number, or an astropy Time."""
    return float(x.utc.mjd) if is_time(x) else float(x)


def tai_ns(x: Any) -> int:
    """Nanoseconds since 1970-01-01T00:00:00 TAI: that number, or an astropy Time."""
    if not is_time(x):
        return int(x)
    tai = x.tai
    return int(round((tai.jd1 - 2440587.5) * _DAY_NS) + round(tai.jd2 * _DAY_NS))


def angle_deg(x: Any) -> float:
    return number(x, "deg")


def is_sky_coord(x: Any) -> bool:
    return hasattr(x, "transform_to") and hasattr(x, "spherical")


def sky_text(x: Any) -> str:
    """A direction as a key of an observation file takes it: text, or an astropy SkyCoord as "RA_DEG,DEC_DEG" (ICRS)."""
    return f"{float(x.icrs.ra.deg)!r},{float(x.icrs.dec.deg)!r}" if is_sky_coord(x) else str(x)


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


def time_of(ns: Any) -> Any:
    """astropy Time (TAI) of nanoseconds since 1970-01-01T00:00:00 TAI; needs astropy."""
    days, rest = np.divmod(np.asarray(ns, dtype=np.int64), _DAY_NS)
    return needed("astropy.time", "a Time").Time(days + _EPOCH_MJD, rest / _DAY_NS, format="mjd", scale="tai")
