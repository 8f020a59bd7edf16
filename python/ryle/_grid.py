# SPDX-License-Identifier: BSD-3-Clause
"""Single-dish gridding: scattered samples to maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset, needed
from ._units import angle_rad, is_sky_coord, numbers


class Map:
    """A map or a cube, and what stands behind each cell.

    Attributes
    ----------
    array : array of float32 [channel, y, x] (cells of a list: [channel, cell])
        Weighted means; NaN where a cell is empty.
    weights : array of float32
        Sum of the weights.
    noise : array of float32
        ``sqrt(sum w^2) / sum w``: noise of the cell over that of a sample.
    counts : array of int32
        Samples within reach.
    wcs : astropy WCS or None
        What was given.
    summary : dict
        Samples, bad positions, those out of reach, kernel.
    provenance : dict
    """

    def __init__(self, array: Array, weights: Array, noise: Array, counts: Array, wcs: Any, summary: dict[str, Any],
                 provenance: dict[str, Any]) -> None:
        self.array = array
        self.weights = weights
        self.noise = noise
        self.counts = counts
        self.wcs = wcs
        self.summary = summary
        self.provenance = provenance
        self.axes = ("channel", "y", "x") if array.ndim == 3 else ("channel", "cell")

    def __repr__(self) -> str:
        return f"Map({', '.join(f'{axis} {n}' for axis, n in zip(self.axes, self.array.shape))})"

    def to_xarray(self) -> Any:
        """An xarray Dataset: map, weights, noise and counts, of a WCS with longitude_deg and latitude_deg; needs xarray."""
        places: dict[str, tuple[Any, Any]] = {}
        if self.wcs is not None:
            longitude, latitude, _, _ = _cells(self.wcs, (self.array.shape[-2], self.array.shape[-1]))
            places = {"longitude_deg": (self.axes[1:], longitude), "latitude_deg": (self.axes[1:], latitude)}
        return dataset("map", self.array, self.axes, places, {**self.provenance, **self.summary}, weights=(self.axes, self.weights),
                       noise=(self.axes, self.noise), counts=(self.axes, self.counts))

    def plot(self, ax: Any = None, channel: int | None = None) -> Any:
        """Draws one channel, or the mean over all; needs matplotlib."""
        from . import _plot

        return _plot.sky_map(self, ax, channel)


def _cells(target: Any, shape: tuple[int, int] | None) -> tuple[Array, Array, tuple[int, ...], Any]:
    """Longitudes and latitudes of the cells, their shape, and the WCS if that is what was given."""
    if isinstance(target, tuple) and len(target) == 2:
        longitude, latitude = (numbers(x, "deg") for x in target)
        if longitude.shape != latitude.shape or longitude.ndim not in (1, 2):
            raise ValueError(f"cells are {longitude.shape} and {latitude.shape}; longitudes and latitudes [cell] or [y, x] are needed")
        return longitude, latitude, longitude.shape, None
    if hasattr(target, "wcs_pix2world"):
        wcs = target.celestial if hasattr(target, "celestial") else target
        size = shape or (wcs.array_shape if wcs.array_shape is not None else None)
        if size is None:
            raise ValueError("this WCS has no size; give shape=(height, width)")
        y, x = np.mgrid[0: size[0], 0: size[1]]
        longitude, latitude = wcs.wcs_pix2world(x.ravel(), y.ravel(), 0)
        return (np.ascontiguousarray(longitude).reshape(size), np.ascontiguousarray(latitude).reshape(size), tuple(size), target)
    raise TypeError("target is an astropy WCS, or a tuple (longitude, latitude) of the cells in degrees")


class Gridder:
    """Plan of a map: adds samples until `finish`.

    ``value = sum w u x / sum w u`` over the samples within the support of the kernel, w its value at the angle from the
    cell, u the sample's own weight.

    Parameters
    ----------
    target : astropy WCS, or tuple (longitude, latitude) of arrays or Quantities [y, x] or [cell], degrees
    beam : str, float or Quantity
        FWHM of the telescope: "2.9arcmin", radians, or with an astropy unit.
    shape : (height, width), optional
        Of a WCS that does not say it.
    n_channels : int
    kernel : str
        "gauss", "gauss:2.9arcmin", "jinc", "sinc:a=..,b=..", "mean:radius=1.4arcmin" ... (docs/gridding.md).
    precision : {"f32", "f64"}
    implementation : str
        "auto", or one of ``ryle.implementations()["grid"]``.
    """

    def __init__(self, target: Any, *, beam: Any = 0.0, shape: tuple[int, int] | None = None, n_channels: int = 1, kernel: str = "gauss",
                 precision: str = "f32", implementation: str = "auto") -> None:
        longitude, latitude, self._shape, self._wcs = _cells(target, shape)
        width = self._shape[1] if len(self._shape) == 2 else 0
        self._n_channels = n_channels
        self._plan = _ryle.Gridder(longitude.ravel(), latitude.ravel(), width, n_channels, kernel, angle_rad(beam, "beam"), precision,
                                   implementation)

    @property
    def implementation(self) -> str:
        return self._plan.implementation

    def cost(self) -> dict[str, int]:
        """Samples so far, those with bad positions, those out of reach of every cell."""
        return {"n_samples": self._plan.n_samples, "bad_positions": self._plan.bad_positions, "out_of_reach": self._plan.out_of_reach}

    def execute(self, longitude: Any, latitude: Any, values: Any, *, weights: Any = None, flags: Any = None) -> None:
        """Adds samples.

        Parameters
        ----------
        longitude, latitude : array of float64 or Quantity [sample]
            Degrees, in the frame of the map. NaN: no place. Or an astropy SkyCoord and None: it is brought into the frame of the
            WCS; of cells that are given in degrees, which know no frame, its own frame is taken.
        values : array of float32 [channel, sample] or [sample]
            NaN and infinite ones are absent, in their channel only.
        weights : array of float32 [sample] or [channel, sample], optional
        flags : array of bool [channel, sample] or [sample], optional
            True: absent.
        """
        lon, lat = self._places(longitude, latitude)
        array = _arrays.as_numpy(values, "values")
        array = array[np.newaxis] if array.ndim == 1 else array
        array = _arrays.typed(array, "values", np.float32, 2, "[channel, sample] or [sample]")
        _arrays.require_length(array, 0, self._n_channels, "values", "channels")
        if lon.shape != lat.shape or lon.shape != array.shape[1:]:
            raise ValueError(f"longitude {lon.shape}, latitude {lat.shape} and values {array.shape} do not fit together")
        factors = mask = None
        if weights is not None:
            factors = _arrays.typed(weights, "weights", np.float32, _arrays.as_numpy(weights, "weights").ndim, "[sample]")
            if factors.shape not in (array.shape[1:], array.shape):
                raise ValueError(f"weights are {factors.shape}; {array.shape[1:]} or {array.shape} is needed")
        if flags is not None:
            mask = _arrays.as_numpy(flags, "flags")
            mask = mask[np.newaxis] if mask.ndim == 1 else mask
            mask = _arrays.dense(mask, "flags", np.bool_, 2, "[channel, sample]").view(np.uint8)
            if mask.shape != array.shape:
                raise ValueError(f"flags are {mask.shape}, the values {array.shape}")
            if not array.flags.c_contiguous:
                raise TypeError("values with flags must be C-contiguous; call numpy.ascontiguousarray(values)")
        self._plan.execute(lon, lat, array, factors, mask)

    def _places(self, longitude: Any, latitude: Any) -> tuple[Array, Array]:
        if not is_sky_coord(longitude):
            return numbers(longitude, "deg"), numbers(latitude, "deg")
        if latitude is not None:
            raise ValueError("a SkyCoord says longitude and latitude: give None for latitude")
        if self._wcs is not None:
            longitude = longitude.transform_to(needed("astropy.wcs.utils", "a SkyCoord").wcs_to_celestial_frame(self._wcs.celestial))
        return numbers(longitude.spherical.lon, "deg"), numbers(longitude.spherical.lat, "deg")

    def finish(self, *, min_count: int = 1, min_weight: float = 0.0) -> Map:
        """The map so far: cells with fewer samples or less weight are empty. Samples can still be added."""
        planes = [np.asarray(plane).reshape((self._n_channels, *self._shape)) for plane in self._plan.finish(min_count, min_weight)]
        return Map(planes[0], planes[1], planes[2], planes[3], self._wcs, {**self.cost(), "kernel": self._plan.kernel},
                   {"version": _ryle.version(), "implementation": self.implementation})

    def reset(self) -> None:
        """Forgets all samples."""
        self._plan.reset()


def grid(longitude: Any, latitude: Any, values: Any, target: Any, *, weights: Any = None, flags: Any = None, min_count: int = 1,
         min_weight: float = 0.0, **settings: Any) -> Map:
    """A map of samples scattered on the sky.

    Parameters
    ----------
    longitude, latitude : array of float64 or Quantity [sample], or a SkyCoord and None
        Degrees, in the frame of the map.
    values : array of float32 [channel, sample] or [sample]
    target : astropy WCS, or tuple (longitude, latitude) of the cells
    weights, flags : arrays, optional
        As of `Gridder.execute`.
    min_count, min_weight
        Cells with less are empty (NaN).
    **settings
        Of `Gridder`: beam, kernel, shape, precision, implementation.

    Returns
    -------
    Map

    Examples
    --------
    >>> import numpy as np, ryle
    >>> rng = np.random.default_rng(1)
    >>> lon, lat = 10 + rng.uniform(-0.5, 0.5, 5000), rng.uniform(-0.5, 0.5, 5000)
    >>> cells = np.meshgrid(np.linspace(9.6, 10.4, 25), np.linspace(-0.4, 0.4, 25))
    >>> float(ryle.grid(lon, lat, np.ones(5000, np.float32), tuple(cells), beam="6arcmin").array[0, 12, 12])
    1.0
    """
    array = _arrays.as_numpy(values, "values")
    plan = Gridder(target, n_channels=1 if array.ndim == 1 else array.shape[0], **settings)
    plan.execute(longitude, latitude, values, weights=weights, flags=flags)
    return plan.finish(min_count=min_count, min_weight=min_weight)
