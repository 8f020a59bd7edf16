# SPDX-License-Identifier: BSD-3-Clause
"""Images: of spectra, of visibilities in files, of lists of visibilities."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset, needed
from ._layout import Layout
from ._spectra import Spectra, as_spectra, even_step_hz, require_same_band
from ._units import number, numbers, tai_ns, time_of

_STOKES = {"stokes": ("I", "Q", "U", "V"), "linear": ("XX", "YY", "Re XY*", "Im XY*"), "intensity": ("I",)}
_CODES = {1: "I", 2: "Q", 3: "U", 4: "V", -5: "XX", -6: "YY", 101: "Re XY*", 102: "Im XY*"}


class Image:
    """An image with its axes and what stands behind it.

    Attributes
    ----------
    array : array of float [plane, bin, y, x]
        NaN beyond the horizon. l (east) grows toward smaller x, m (north) toward larger y; l = m = 0 at (N/2, N/2).
    planes : tuple of str
        "I", "XX", ...
    weights : array or None
        Pairs of valid inputs behind XX, YY and XY* of each bin, of images of spectra. @shape [bin, 3]
    frequency_hz : array [bin] or None
    cell : float
        Direction cosines from pixel to pixel.
    info : dict
        Center, time, exposure, unit, beam, where they are known.
    provenance : dict
        Version, path, implementation, warnings.
    """

    axes = ("plane", "bin", "y", "x")

    def __init__(self, array: Array, planes: tuple[str, ...], cell: float, frequency_hz: Array | None, weights: Array | None,
                 info: dict[str, Any], provenance: dict[str, Any], picture: _ryle.SkyPicture | None = None,
                 imager: _ryle.SkyImager | None = None) -> None:
        self.array = array
        self.planes = planes
        self.cell = cell
        self.frequency_hz = frequency_hz
        self.weights = weights
        self.info = info
        self.provenance = provenance
        self._picture = picture
        self._imager = imager

    def direction(self, x: float, y: float) -> tuple[float, float, float]:
        """Direction cosines (l, m, n) behind a pixel; of images of spectra east, north and up, slant of the array undone."""
        if self._imager is not None:
            east, north, up = self._imager.direction(x, y)
            return east, north, up
        middle = self.array.shape[-1] // 2
        l, m = -(x - middle) * self.cell, (y - middle) * self.cell
        return l, m, float(np.sqrt(1 - l * l - m * m)) if l * l + m * m <= 1 else float("nan")

    def place(self, layout: Layout, middle: Any, exposure_s: Any = 0.0) -> None:
        """Gives an image of spectra the place of the zenith of an array at an instant: an astropy Time, or TAI ns since 1970."""
        if self._imager is None:
            raise ValueError("only images of spectra are about the zenith")
        centroid_tai_ns = tai_ns(middle)
        ra, dec, north = layout.zenith(centroid_tai_ns)
        alpha, beta = self._imager.plane
        self.info |= {"ra_deg": ra, "dec_deg": dec, "north_angle_rad": north, "plane_alpha": alpha, "plane_beta": beta,
                      "centroid_tai_ns": centroid_tai_ns, "exposure_s": number(exposure_s, "s")}

    def peak(self, plane: int = 0, bin: int = 0) -> tuple[int, int, float]:
        """(x, y, value) of the highest pixel."""
        pixels = self.array[plane, bin]
        y, x = np.unravel_index(int(np.nanargmax(pixels)), pixels.shape)
        return int(x), int(y), float(pixels[y, x])

    @property
    def wcs(self) -> Any:
        """astropy WCS of the two axes of the sky (ICRS, SIN); needs astropy and an image that knows its center."""
        if "ra_deg" not in self.info:
            raise ValueError("this image knows no place on the sky: it is of spectra without time and site; direction() gives l, m, n")
        info, middle = self.info, self.array.shape[-1] // 2 + 1
        cosine, sine = np.cos(info["north_angle_rad"]), np.sin(info["north_angle_rad"])
        wcs = needed("astropy.wcs", "a WCS").WCS(naxis=2)
        wcs.wcs.ctype = ["RA---SIN", "DEC--SIN"]
        wcs.wcs.crpix = [middle, middle]
        wcs.wcs.crval = [info["ra_deg"], info["dec_deg"]]
        wcs.wcs.cdelt = [-np.rad2deg(self.cell), np.rad2deg(self.cell)]
        wcs.wcs.cunit = ["deg", "deg"]
        wcs.wcs.pc = [[cosine, -sine], [sine, cosine]]
        wcs.wcs.radesys = "ICRS"
        alpha = cosine * info["plane_alpha"] + sine * info["plane_beta"]
        beta = cosine * info["plane_beta"] - sine * info["plane_alpha"]
        wcs.wcs.set_pv([(2, 1, -alpha), (2, 2, -beta)])
        wcs.wcs.set()
        return wcs

    @property
    def time(self) -> Any:
        """astropy Time of the middle of the data; needs astropy."""
        return time_of(self.info["centroid_tai_ns"])

    def to_xarray(self) -> Any:
        """An xarray Dataset: image (and weights), with plane, frequency_hz, and the direction cosines l (x) and m (y); needs xarray."""
        pixels = np.arange(self.array.shape[-1]) - self.array.shape[-1] // 2
        beside = {} if self.weights is None else {"weights": (("bin", "product"), self.weights)}
        return dataset("image", self.array, self.axes,
                       {"plane": ("plane", list(self.planes)), "frequency_hz": ("bin", self.frequency_hz), "l": ("x", -pixels * self.cell),
                        "m": ("y", pixels * self.cell)}, {**self.provenance, **self.info}, self.info.get("unit", ""), **beside)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes a FITS image with its coordinates: of visibilities of files, and of image cubes."""
        if self._picture is None:
            raise ValueError("this image knows no observation to write into a FITS file; save its array")
        self._picture.write(os.fspath(path), overwrite)

    def __repr__(self) -> str:
        n = self.array.shape
        return f"Image({n[3]} x {n[2]} pixels, planes {', '.join(self.planes)}, {n[1]} bin{'s' if n[1] > 1 else ''})"

    def plot(self, ax: Any = None, plane: int = 0, bin: int = 0) -> Any:
        """Draws one plane; needs matplotlib."""
        from . import _plot

        return _plot.image(self, ax, plane, bin)


def picture_image(picture: _ryle.SkyPicture) -> Image:
    """What C++ made as an `Image`."""
    info = dict(picture.info())
    provenance = {"version": _ryle.version()}
    for key in ("implementation", "path", "n_samples", "warnings"):
        provenance[key] = info.pop(key)
    pixels = np.asarray(picture.pixels())
    frequency = info.pop("first_center_hz") + info.pop("channel_width_hz") * np.arange(pixels.shape[1])
    planes = tuple(_CODES.get(code, str(code)) for code in info.pop("stokes"))
    return Image(pixels, planes, info.pop("cell_direction_cosine"), frequency, None, info, provenance, picture)


class SkyImager:
    """Plan of all-sky images of spectra: adds gulps until `finish`.

    ``I(l, m) = < B conj(B) >``, ``B(l, m) = sum_a c_a v_a exp(-2 pi i (nu / c) (x_a l + y_a m + z_a n))``, by E-field
    imaging or by a correlator and its visibilities, which agree.

    Parameters
    ----------
    antenna_m : array or Quantity [antenna, 3]
        East, north and up.
    frequency_hz : array or Quantity [channel]
        Centers, in even ascending steps.
    inputs : list of (antenna, pol) or (antenna, pol, bad), optional
        Of each input; default: antenna k is input k, one polarization.
    format : {"ci8", "ci4", "ci16", "cf32"}
        Of the spectra; E-field paths take ci8 and ci4.
    n_channels_per_bin, n_pixels, cell_wavelengths, support, remove_autos, products, path, implementation
        As keys of [image] in an observation file; path is "auto", "efield", "efield-half", "vis-grid", "vis-dft" or
        "efield-dft".
    n_spectra : int
        Expected behind an image: what the choice of the path goes by.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> position = np.random.default_rng(1).uniform(-15, 15, (16, 3)) * [1, 1, 0]
    >>> plan = ryle.SkyImager(position, [40e6], n_pixels=64, path="vis-dft")
    >>> plan.execute(np.ones((1, 32, 16, 2), np.int8))
    >>> plan.finish().peak()[:2]
    (32, 32)
    """

    def __init__(self, antenna_m: Any, frequency_hz: Any, *, inputs: list[tuple[int, ...]] | None = None, format: str = "ci8",
                 n_channels_per_bin: int = 0, n_pixels: int = 128, cell_wavelengths: float = 0.40, support: int = 7,
                 remove_autos: bool = True, products: str | None = None, path: str = "auto", implementation: str = "auto",
                 n_spectra: int = 8192) -> None:
        positions = numbers(antenna_m, "m")
        if positions.ndim != 2 or positions.shape[1] != 3:
            raise ValueError(f"antenna_m is {positions.shape}; [antenna, 3] is needed: east, north, up")
        centers = np.atleast_1d(numbers(frequency_hz, "Hz"))
        step_hz = even_step_hz(centers) if centers.ndim == 1 else None
        if step_hz is None:
            raise ValueError("frequency_hz must be centers of channels in even steps")
        roles = [(k, 0, False) for k in range(len(positions))] if inputs is None else [(r[0], r[1], bool(r[2]) if len(r) > 2 else False) for r in inputs]
        one_pol = all(role[1] == 0 for role in roles)
        chosen = products or ("intensity" if one_pol else "stokes")
        if chosen not in _STOKES:
            raise ValueError(f"products \"{chosen}\" is not known; use stokes, linear or intensity")
        self._planes = ("XX",) if one_pol else _STOKES[chosen]
        if path == "auto" and format not in ("ci8", "ci4"):
            path = "vis-dft"  # the paths of voltages take codes of 8 and 4 bits
        per_bin = n_channels_per_bin or centers.size
        self._cell = 1.0 / (n_pixels * cell_wavelengths)
        self._centers = centers
        self._bins = np.array([centers[k: k + per_bin].mean() for k in range(0, centers.size, per_bin)])
        self._format, self._n_inputs = format, len(roles)
        self._plan = _ryle.SkyImager(positions, roles, float(centers[0]), step_hz, centers.size, format,
                                     per_bin, n_spectra, n_pixels, cell_wavelengths, support, remove_autos, chosen, path, implementation)

    @property
    def implementation(self) -> str:
        return self._plan.implementation

    @property
    def path(self) -> str:
        """The path that is taken."""
        return self._plan.path

    def cost(self) -> dict[str, dict[str, Any]]:
        """Of each path: whether it is possible, or why not; seconds, bytes and error that are predicted."""
        return dict(self._plan.cost())

    def set_gains(self, gains: Any) -> None:
        """Calibration c, which voltages are multiplied with; 0 leaves an input out. @shape [channel, input] complex64"""
        array = _arrays.dense(gains, "gains", np.complex64, 2, "[channel, input]")
        _arrays.require_length(array, 1, self._n_inputs, "gains", "inputs")
        self._plan.set_gains(array)

    def execute(self, spectra: Any, *, valid: Any = None) -> None:
        """Adds `Spectra`, or an array [channel, time, input] with its mask; floats that are not finite are absent."""
        spectra = as_spectra(spectra, valid)
        require_same_band(self._centers, spectra.frequency_hz, "the plan images those",
                          "make a plan of their frequencies, or set spectra.frequency_hz where it is wrong")
        if spectra.format != self._format:
            raise TypeError(f"spectra are {spectra.format}, the plan takes {self._format}")
        self._plan.execute(spectra.blocks)

    def reset(self) -> None:
        """Forgets everything added."""
        self._plan.reset()

    def finish(self) -> Image:
        """The image of everything since the last call, and begins anew."""
        pixels, weights, n_spectra = self._plan.finish()
        provenance = {"version": _ryle.version(), "path": self.path, "implementation": self.implementation, "n_spectra": n_spectra,
                      "reason": self._plan.reason, "warnings": list(self._plan.warnings)}
        return Image(np.asarray(pixels).swapaxes(0, 1), self._planes, self._cell, self._bins, np.asarray(weights), {}, provenance,
                     imager=self._plan)


def image(data: Any, antenna_m: Any = None, frequency_hz: Any = None, *, valid: Any = None, gains: Any = None, **settings: Any) -> Image:
    """An image: all of the sky from spectra, or about the phase center from a file of visibilities.

    Parameters
    ----------
    data : Spectra, array [channel, time, input], a file (.uvfits, .uvh5, .ms) or `VisibilityFile`
    antenna_m : Layout, or array or Quantity [antenna, 3]
        Of spectra: the array, or east, north and up of its antennas. A `Layout` also says which input is which antenna,
        and `gains` unless they are given (`Layout.gains`); with spectra that know their time the image has its place on
        the sky (`Image.wcs`).
    frequency_hz : array or Quantity [channel]
        Of spectra, where they do not say it themselves.
    valid, gains
        Of spectra, see `SkyImager`.
    **settings
        Of spectra those of `SkyImager`: n_pixels, path, inputs, products ... Of visibilities: n_pixels (256), width (2.0
        direction cosines), channel_average, autos, equalize, taper_fwhm, stokes, path ("auto", "direct", "gridded",
        "w-stacked"), max_error, weighting ("natural", "uniform", "briggs"), robust, implementation.

    Returns
    -------
    Image

    Examples
    --------
    >>> import numpy as np, ryle
    >>> position = np.random.default_rng(1).uniform(-15, 15, (16, 3)) * [1, 1, 0]
    >>> phase = 2 * np.pi * 40e6 / 299792458 * position @ [0.5, 0.0, np.sqrt(0.75)]
    >>> wave = np.random.default_rng(2).normal(size=(1, 200, 1)) * np.exp(1j * phase) * 30
    >>> sky = ryle.image(ryle.complex_codes(wave.clip(-127, 127), np.int8), position, [40e6], n_pixels=64)
    >>> x, y, value = sky.peak()
    >>> [round(c, 1) for c in sky.direction(x, y)[:2]]
    [0.5, 0.0]
    """
    from ._files import VisibilityFile, read_visibilities

    if isinstance(data, (str, os.PathLike)):
        data = read_visibilities(data)
    if isinstance(data, VisibilityFile):
        if antenna_m is not None or frequency_hz is not None or valid is not None or gains is not None:
            raise ValueError("antenna_m, frequency_hz, valid and gains are of spectra; files of visibilities say them themselves")
        return data.image(**settings)
    if antenna_m is None:
        raise ValueError("spectra need antenna_m: east, north, up of each antenna")
    data = as_spectra(data, valid)
    centers = data.frequency_hz if frequency_hz is None else numbers(frequency_hz, "Hz")
    if centers is None:
        raise ValueError("frequency_hz is needed: these spectra do not know their frequencies")
    layout = antenna_m if isinstance(antenna_m, Layout) else None
    if layout is not None:
        antenna_m = layout.antenna_m
        if len(layout.inputs) != data.shape[2]:
            raise ValueError(f"{layout} has {len(layout.inputs)} inputs, the spectra have {data.shape[2]}: another array made them")
        settings.setdefault("inputs", layout.inputs)
        gains = layout.gains(data, centers) if gains is None else gains
    plan = SkyImager(antenna_m, centers, format=data.format, n_spectra=data.shape[1], **settings)
    if gains is not None:
        plan.set_gains(gains)
    plan.execute(data)
    made = plan.finish()
    if layout is not None and data.start_tai_ns is not None:
        exposure_s = data.shape[1] * data.interval_s
        made.place(layout, data.start_tai_ns + round(exposure_s * 5e8), exposure_s)
    return made


def image_samples(uvw: Any, visibilities: Any, weights: Any = None, *, n_pixels: int = 256, width: float = 2.0, path: str = "auto",
                  max_error: float = 1e-5, implementation: str = "auto") -> Image:
    """The image of any list of visibilities.

    ``I(l, m) = sum_k w_k Re(V_k exp(-2 pi i [u l + v m + w (n - 1)])) / sum_k w_k``, ``n = sqrt(1 - l^2 - m^2)``

    Parameters
    ----------
    uvw : array of float64 [sample, 3]
        Wavelengths.
    visibilities : array of complex128 [sample]
    weights : array of float64 [sample], optional
    n_pixels : int
    width : float
        Direction cosines across.
    path : {"auto", "direct", "gridded", "w-stacked"}
    max_error : float
        Of gridded and w-stacked: share of the weighted mean of |V|.
    implementation : str

    Returns
    -------
    Image

    Examples
    --------
    >>> import numpy as np, ryle
    >>> uvw = np.random.default_rng(1).normal(0, 10, (500, 3))
    >>> ryle.image_samples(uvw, np.ones(500, complex), n_pixels=32).peak()
    (16, 16, 1.0)
    """
    places = _arrays.dense(uvw, "uvw", np.float64, 2, "[sample, 3]")
    values = _arrays.dense(visibilities, "visibilities", np.complex128, 1, "[sample]")
    factors = np.ones(len(values)) if weights is None else _arrays.dense(weights, "weights", np.float64, 1, "[sample]")
    if places.shape != (len(values), 3) or factors.shape != values.shape:
        raise ValueError(f"uvw {places.shape}, visibilities {values.shape} and weights {factors.shape} do not fit together")
    pixels, taken, made_by = _ryle.image_samples(places, values, factors, n_pixels, number(width, ""), path, max_error, implementation)
    return Image(np.asarray(pixels)[np.newaxis, np.newaxis], ("I",), width / n_pixels, None, None, {},
                 {"version": _ryle.version(), "path": taken, "implementation": made_by})
