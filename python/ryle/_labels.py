# SPDX-License-Identifier: BSD-3-Clause
"""Results for other packages, which are imported when they are asked for: labelled arrays of xarray, places and times of astropy."""

from __future__ import annotations

import importlib
import json
from typing import Any, Mapping

import numpy as np

from ._arrays import Array

_INSTALL = {"astropy": "astropy", "xarray": "xarray", "pyuvdata": "pyuvdata", "matplotlib": "matplotlib"}


def needed(module: str, what: str) -> Any:
    """A module of an optional package, or an ImportError that says what to install."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != package:
            raise  # it is there, and lacks something itself
        raise ImportError(f"{what} needs {package}, which is not installed: pip install {_INSTALL[package]}", name=package) from None


def _attribute(value: Any) -> Any:
    """What every format that xarray writes can hold."""
    if isinstance(value, (bool, np.bool_)):
        return int(value)
    if isinstance(value, (str, int, float, np.integer, np.floating)):
        return value
    return json.dumps(value, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x))


def dataset(name: str, array: Array, axes: tuple[str, ...], coordinates: Mapping[str, tuple[Any, Any]], provenance: Mapping[str, Any],
            unit: str = "", **beside: tuple[tuple[str, ...], Array]) -> Any:
    """An xarray Dataset: the array under its name, what stands behind its values, and coordinates (axes, values); without None."""
    xarray = needed("xarray", "to_xarray()")
    variables = {name: (axes, array, {"units": unit} if unit else {}), **beside}
    known = {key: (along, values, {"units": "Hz"} if key.endswith("_hz") else {"units": "s"} if key.endswith("_s") else {})
             for key, (along, values) in coordinates.items() if values is not None}
    return xarray.Dataset(variables, known, {key: _attribute(value) for key, value in provenance.items() if value is not None})


def steps(first: float, interval: float, n: int) -> Array | None:
    """Times of n samples; None where the interval is not known."""
    return first + interval * np.arange(n) if interval else None


def utc_times(iso: list[str]) -> Array:
    """Instants of UTC as numpy.datetime64, which has no leap seconds: 23:59:60 is the first second of the next day. @shape [time]"""
    leap = np.array([text[17:19] == "60" for text in iso], bool)
    known = np.array([text.rstrip("Z").replace(":60", ":59") if late else text.rstrip("Z") for text, late in zip(iso, leap)], "datetime64[ns]")
    return known + leap * np.timedelta64(1_000_000_000, "ns")


def sky_coord(ra_deg: Any, dec_deg: Any) -> Any:
    """astropy SkyCoord (ICRS); needs astropy."""
    return needed("astropy.coordinates", "a SkyCoord").SkyCoord(ra_deg, dec_deg, unit="deg", frame="icrs")


def earth_location(longitude_deg: float, latitude_deg: float, height_m: float) -> Any:
    """astropy EarthLocation (WGS84); needs astropy."""
    return needed("astropy.coordinates", "an EarthLocation").EarthLocation.from_geodetic(longitude_deg, latitude_deg, height_m)
