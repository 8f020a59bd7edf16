# SPDX-License-Identifier: BSD-3-Clause
"""Files: whatever `ryle info` knows, as arrays."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Iterator

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset, earth_location, needed, sky_coord, steps, utc_times
from ._errors import ConfigError, DataError, Error, UnsupportedError
from ._image import Image, picture_image
from ._observation import Observation
from ._spectra import Spectra
from ._units import mjd_utc, number, numbers, time_of, utc


class Recording:
    """A file of voltages: samples in time, or spectra.

    Attributes
    ----------
    info : dict
        Format, inputs, samples or spectra (n_ticks), start, rate, frequencies, header, warnings.
    """

    def __init__(self, reader: _ryle.Recording, path: str) -> None:
        self._reader = reader
        self.path = path
        self.info: dict[str, Any] = dict(reader.info())

    def __len__(self) -> int:
        return int(self.info["n_ticks"])

    @property
    def channelized(self) -> bool:
        return bool(self.info["channelized"])

    @property
    def start(self) -> Any:
        """astropy Time of the first sample; needs astropy."""
        return time_of(self.info["start_tai_ns"])

    @property
    def frequency_hz(self) -> Array:
        """Centers of the channels. @shape [channel]"""
        return np.asarray(self.info["first_center_hz"] + self.info["channel_width_hz"] * np.arange(self.info["n_channels"]))

    def _span(self, first: int, n: int | None) -> tuple[int, int]:
        count = len(self) - first if n is None else n
        if first < 0 or count < 1 or first + count > len(self):
            raise ValueError(f"{self.path} has {len(self)} {'spectra' if self.channelized else 'samples'}; {count} from number {first} on "
                             "were asked for")
        return first, count

    def samples(self, first: int = 0, n: int | None = None) -> tuple[Array, Array]:
        """Samples of all inputs as they stand for, and which are there.

        Returns
        -------
        samples : array [input, time], of complex ones with a last axis (re, im)
            int8 of up to 8 bits, int16 of 16, float32 of floats: what `channelize` takes. Absent ones hold anything.
        valid : array of bool [input, time]
        """
        if self.channelized:
            raise DataError(f"{self.path} holds spectra: call spectra()")
        first, n = self._span(first, n)
        values, valid = self._reader.read_samples(first, n)
        return np.asarray(values).swapaxes(0, 1), np.asarray(valid).view(np.bool_)

    def spectra(self, first: int = 0, n: int | None = None, **settings: Any) -> Spectra:
        """Spectra, read or (of samples) made.

        Parameters
        ----------
        first, n : int
            Spectra, or samples that they are made of.
        **settings
            Of samples those of `channelize`, with n_channels.
        """
        if not self.channelized:
            values, valid = self.samples(first, n)
            from ._spectra import channelize

            if self.info["rate_hz"] is not None:
                settings.setdefault("sample_rate_hz", self.info["rate_hz"])
            settings.setdefault("reference_hz", self.info["reference_hz"])
            settings.setdefault("inverted_band", self.info["inverted_band"])
            if "n_channels" not in settings:
                raise ValueError("samples need n_channels")
            made = channelize(values, settings.pop("n_channels"), valid=valid, **settings)
            if self.info["rate_hz"] is not None:
                made.start_s += first / self.info["rate_hz"]
                made.start_tai_ns = self.info["start_tai_ns"] + round(made.start_s * 1e9)
            made.provenance["file"] = self.path
            return made
        if settings:
            raise ValueError(f"{self.path} holds spectra; {', '.join(settings)} would be of samples")
        first, n = self._span(first, n)
        values, valid = self._reader.read_spectra(first, n)
        array = np.asarray(values).swapaxes(0, 1)
        mask = np.asarray(valid).view(np.bool_)
        interval = 1.0 / self.info["rate_hz"] if self.info["rate_hz"] else 0.0
        view, format_name = _arrays.samples(array, "spectra", 3, "[channel, time, input]", real=False)
        return Spectra(_ryle.Blocks.of(view, format_name, None if mask.all() else mask), self.frequency_hz, self.info["channel_width_hz"],
                       interval, first * interval, provenance={"version": _ryle.version(), "file": self.path},
                       start_tai_ns=self.info["start_tai_ns"] + round(first * interval * 1e9))

    def __repr__(self) -> str:
        return f"Recording({self.path!r}, {self.info['format']}, {self.info['n_inputs']} inputs, {len(self)} " \
               f"{'spectra' if self.channelized else 'samples'})"


class VisibilityFile:
    """Visibilities with their observation: a file read whole (Measurement Set, UVFITS, UVH5), or an integration of a stream.

    Attributes
    ----------
    path : str
        "" of a stream.
    info : dict
        Telescope, site, antennas (name, east north up in m), inputs, frequencies, phase center, times, unit, provenance.
    """

    def __init__(self, file: _ryle.VisibilityFile, path: str) -> None:
        self._file = file
        self.path = path
        self.info: dict[str, Any] = dict(file.info())
        self._data: Array | None = None
        self._counts: Array | None = None

    axes = ("time", "channel", "baseline", "pol")

    @property
    def data(self) -> Array:
        """Means V_ij of antennas i <= j, number j (j + 1) / 2 + i; 0 where the count is 0. @shape [time, channel, baseline, pol]"""
        if self._data is None:
            self._data = np.asarray(self._file.data())
        return self._data

    @property
    def counts(self) -> Array:
        """Spectra behind each value; 0 = flagged. @shape as data"""
        if self._counts is None:
            self._counts = np.asarray(self._file.counts())
        return self._counts

    @property
    def array(self) -> Array:
        """`data`, under the name that all results have."""
        return self.data

    @property
    def weights(self) -> Array:
        """`counts`, under the name that all streamed products have."""
        return self.counts

    @property
    def provenance(self) -> dict[str, Any]:
        """Version, command line, implementations and notes of who made it."""
        return {key: self.info[key] for key in ("version", "command_line", "implementations", "notes")}

    @property
    def pairs(self) -> Array:
        """Antennas i <= j of each baseline. @shape [baseline, 2]"""
        j, i = np.tril_indices(len(self.info["antennas"]))
        return np.stack((i, j), axis=1)

    @property
    def polarizations(self) -> tuple[str, ...]:
        return ("XX", "XY", "YX", "YY") if self.data.shape[3] == 4 else ("XX",)

    @property
    def location(self) -> Any:
        """astropy EarthLocation of the array; needs astropy."""
        return earth_location(self.info["longitude_deg"], self.info["latitude_deg"], self.info["height_m"])

    @property
    def phase_center(self) -> Any:
        """astropy SkyCoord that the values are phased to; needs astropy."""
        return sky_coord(self.info["phase_center_ra_deg"], self.info["phase_center_dec_deg"])

    @property
    def frequency_hz(self) -> Array:
        return np.asarray(self.info["first_center_hz"] + self.info["channel_width_hz"] * np.arange(self.info["n_channels"]))

    @property
    def antenna_m(self) -> Array:
        """East, north and up. @shape [antenna, 3]"""
        return np.array([position for _, position in self.info["antennas"]])

    @property
    def time(self) -> Any:
        """astropy Time of the middles of the integrations; needs astropy."""
        return time_of(self.info["centroid_tai_ns"])

    def image(self, *, n_pixels: int = 256, width: float = 2.0, channel_average: int = 1, autos: bool = False, equalize: bool | None = None,
              taper_fwhm: float = 0.0, stokes: str = "I", path: str = "auto", max_error: float = 1e-5, weighting: str = "natural",
              robust: float = 0.0, implementation: str = "auto") -> Image:
        """A dirty image about the phase center, of all integrations; see `ryle.image`.

        `equalize` divides V_ij by sqrt(V_ii V_jj), which gives inputs of unknown gain the same weight; None: where the data
        are not in Jy, as `ryle image` does.
        """
        chosen = self.info["unit"] != "Jy" if equalize is None else equalize
        return picture_image(self._file.image(n_pixels, width, channel_average, autos, chosen, taper_fwhm, stokes, path, max_error,
                                              weighting, robust, implementation))

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes .uvfits, .uvh5 or (with casacore) .ms."""
        self._file.write(os.fspath(path), overwrite)

    def to_xarray(self) -> Any:
        """An xarray Dataset: visibility and counts, with time (middles, UTC; a leap second counts as the first second of the next
        day), centroid_tai_ns (the same without a doubt), frequency_hz, antenna_i, antenna_j and pol; needs xarray."""
        i, j = self.pairs.T
        return dataset("visibility", self.data, self.axes,
                       {"time": ("time", utc_times(self.info["centroid_utc"])), "centroid_tai_ns": ("time", self.info["centroid_tai_ns"]),
                        "frequency_hz": ("channel", self.frequency_hz),
                        "antenna_i": ("baseline", i), "antenna_j": ("baseline", j), "pol": ("pol", list(self.polarizations))},
                       self.provenance, self.info["unit"], counts=(self.axes, self.counts))

    def to_uvdata(self) -> Any:
        """A pyuvdata UVData: what pyuvdata reads from the UVH5 file that `write` makes; needs pyuvdata."""
        pyuvdata = needed("pyuvdata", "to_uvdata()")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "visibilities.uvh5")
            self.write(path)
            return pyuvdata.UVData.from_file(path)

    def __repr__(self) -> str:
        return f"VisibilityFile({self.path!r}, {len(self.info['antennas'])} antennas, {self.info['n_channels']} channels, " \
               f"{len(self.info['centroid_tai_ns'])} integrations)"


class Filterbank:
    """Detected power against time and frequency: SIGPROC or PSRFITS."""

    def __init__(self, reader: _ryle.Filterbank, path: str) -> None:
        self._reader = reader
        self.path = path
        self.info: dict[str, Any] = dict(reader.info())
        #: Centers of the channels, ascending. @shape [channel]
        self.frequency_hz: Array = np.asarray(self.info.pop("channel_center_hz"))

    axes = ("channel", "time")

    def __len__(self) -> int:
        return int(self.info["n_samples"])

    @property
    def interval_s(self) -> float:
        return float(self.info["sample_interval_s"])

    @property
    def start(self) -> Any:
        """astropy Time (UTC) of the first sample; needs astropy."""
        return needed("astropy.time", "a Time").Time(self.info["start_mjd_utc"], format="mjd", scale="utc")

    @property
    def position(self) -> Any:
        """astropy SkyCoord that the header tells; needs astropy."""
        return sky_coord(self.info["ra_deg"], self.info["dec_deg"])

    def read(self, first: int = 0, n: int | None = None) -> Array:
        """Samples as numbers, channels in ascending frequency. @shape [channel, time] float32"""
        return np.asarray(self._reader.read(first, len(self) - first if n is None else n))

    def to_xarray(self, first: int = 0, n: int | None = None) -> Any:
        """An xarray Dataset: power, with frequency_hz and time_s after the start of the file; needs xarray."""
        power = self.read(first, n)
        keep = ("format", "telescope", "source_name", "start_mjd_utc", "ra_deg", "dec_deg")
        return dataset("power", power, self.axes,
                       {"frequency_hz": ("channel", self.frequency_hz),
                        "time_s": ("time", steps(first * self.interval_s, self.interval_s, power.shape[1]))},
                       {key: self.info[key] for key in keep})

    def __repr__(self) -> str:
        return f"Filterbank({self.path!r}, {self.info['n_channels']} channels, {len(self)} samples of {self.interval_s:.4g} s)"


class ImageCube:
    """All-sky images one after the other, in HDF5."""

    def __init__(self, reader: _ryle.ImageCube, path: str) -> None:
        self._reader = reader
        self.path = path
        self.info: dict[str, Any] = {"kind": "image cube", "images": len(reader)}

    def __len__(self) -> int:
        return len(self._reader)

    def __getitem__(self, index: int) -> Image:
        if not -len(self) <= index < len(self):
            raise IndexError(f"image {index} of {len(self)}")
        return picture_image(self._reader.image(index % len(self)))

    def __iter__(self) -> Iterator[Image]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        return f"ImageCube({self.path!r}, {len(self)} images)"


class FitsImage:
    """An image in FITS, Ryle's or another's.

    Attributes
    ----------
    data : array
    header : astropy Header
    wcs : astropy WCS
    info : dict
    """

    def __init__(self, path: str, info: dict[str, Any]) -> None:
        self.path = path
        self.info = info

    @property
    def data(self) -> Array:
        return np.asarray(self._hdu()[0])

    @property
    def header(self) -> Any:
        return self._hdu()[1]

    @property
    def wcs(self) -> Any:
        return needed("astropy.wcs", "a WCS").WCS(self.header)

    def _hdu(self) -> tuple[Any, Any]:
        with needed("astropy.io.fits", "an image of a FITS file").open(self.path) as hdus:
            for hdu in hdus:
                if hdu.is_image and hdu.data is not None:
                    return np.array(hdu.data), hdu.header
        raise DataError(f"{self.path}: no image in it")

    def __repr__(self) -> str:
        return f"FitsImage({self.path!r})"


class Scans:
    """Single-dish scans: samples with a place on the sky each."""

    def __init__(self, reader: _ryle.Scans, path: str) -> None:
        self._reader = reader
        self.path = path
        self.info: dict[str, Any] = dict(reader.info())

    @property
    def frequency_hz(self) -> Array:
        return np.asarray(self.info["first_center_hz"] + self.info["channel_width_hz"] * np.arange(self.info["n_channels"]))

    def positions(self) -> tuple[Array, Array]:
        """Longitudes and latitudes in degrees. @shape [sample]"""
        longitude, latitude = self._reader.positions()
        return np.asarray(longitude), np.asarray(latitude)

    def read(self, first_channel: int = 0, n_channels: int | None = None) -> Array:
        """Values. @shape [channel, sample] float32"""
        n = int(self.info["n_channels"]) - first_channel if n_channels is None else n_channels
        return np.asarray(self._reader.read(first_channel, n))

    def __repr__(self) -> str:
        return f"Scans({self.path!r}, {self.info['n_samples']} samples, {self.info['n_channels']} channels)"


class Contents:
    """A file that is known, and whose contents are told: packets, beams, sums of maps, light curves, candidates, tables.

    Attributes
    ----------
    info : dict
        ``info["kind"]`` says what it is.
    """

    def __init__(self, path: str, info: dict[str, Any]) -> None:
        self.path = path
        self.info = info

    def __repr__(self) -> str:
        return f"Contents({self.path!r}, {self.info.get('kind', '')})"


AnyFile = Recording | VisibilityFile | Filterbank | ImageCube | FitsImage | Scans | Contents | Observation


def read_visibilities(path: str | os.PathLike[str], *, column: str = "", conjugate: str = "auto") -> VisibilityFile:
    """A Measurement Set, UVFITS or UVH5 file, or what a description (.toml) says of matrices of a station, whole.

    Parameters
    ----------
    path : str or path
    column : str
        Of a Measurement Set: DATA, CORRECTED_DATA or MODEL_DATA.
    conjugate : {"auto", "no", "yes"}
        Whether values must be conjugated to be ``<v_i conj(v_j)>``, i <= j; "auto" goes by the file's uvw.
    """
    name = os.fspath(path)
    return VisibilityFile(_ryle.read_visibilities(name, column, conjugate), name)


def open_recording(path: str | os.PathLike[str], *, format: str = "auto", sample_rate_hz: Any = 0.0, reference_hz: Any = 0.0,
                   start: Any = "", axis_order: str = "") -> Recording:
    """A file of voltages.

    Parameters
    ----------
    path : str or path
    format : str
        "auto", or one of mwa32t, mwa32t-interleaved, tbf, tbx, tbn, tbw, drx, tart, vdif, codif, guppi, dada, voltages.
    sample_rate_hz, reference_hz, start, axis_order
        What formats do not say themselves; `start` is UTC text or an astropy Time.
    """
    name = os.fspath(path)
    reader = _ryle.open_recording(name, format, number(sample_rate_hz, "Hz"), number(reference_hz, "Hz"), utc(start), axis_order)
    return Recording(reader, name)


def _by_content(name: str) -> AnyFile:
    if _ryle.is_capture_file(name):
        return Contents(name, dict(_ryle.capture_info(name)))
    container = _ryle.container_of(name)
    if container == "hdf5" and _ryle.is_image_cube(name):
        return ImageCube(_ryle.ImageCube(name), name)
    described = _ryle.describe_contents(name)
    info: dict[str, Any] = json.loads(described) if described else {}
    readers: list[Any] = []
    if container == "fits":
        readers.append(lambda: Filterbank(_ryle.open_filterbank(name, "I"), name))
    if container == "hdf5":
        readers.append(lambda: Contents(name, dict(_ryle.grid_sums_info(name))))
        readers.append(lambda: open_recording(name))
    if container in ("fits", "hdf5", "zip"):
        readers.append(lambda: Scans(_ryle.open_scans(name, "any"), name))
    for read in readers:
        try:
            found: AnyFile = read()
            return found
        except UnsupportedError:
            raise  # a filter that this build lacks
        except Error:
            continue  # of another kind
    if not described:
        return open_recording(name)
    return FitsImage(name, info) if container == "fits" and "image" in str(info.get("kind", "")) else Contents(name, info)


def open(path: str | os.PathLike[str], *, format: str = "auto") -> AnyFile:
    """Opens a file by its name and content.

    Parameters
    ----------
    path : str or path
    format : str
        Of a recording that does not say it: a name of `open_recording`.

    Returns
    -------
    Recording, VisibilityFile, Filterbank, ImageCube, FitsImage, Scans, Observation (.toml) or Contents; a .toml with the
    section [visibilities] is a VisibilityFile

    Raises
    ------
    DataError
        Where the file is missing, or not what its format says.
    """
    name = os.fspath(path)
    if not os.path.exists(name):
        error = DataError(f"cannot read {name}: No such file or directory")
        error.exit_code = 66
        raise error
    suffix = os.path.splitext(name.rstrip("/"))[1]
    if suffix in (".ms", ".uvfits", ".uvh5"):
        return read_visibilities(name)
    if suffix in (".fil", ".tim", ".sf"):
        return Filterbank(_ryle.open_filterbank(name, "I"), name)
    if suffix == ".toml":
        if _ryle.is_visibility_description(name):
            return read_visibilities(name)
        beams = _ryle.beams_info(name)
        return Observation(name) if beams is None else Contents(name, dict(beams))
    return open_recording(name, format=format) if format != "auto" else _by_content(name)


def read(path: str | os.PathLike[str], *, format: str = "auto") -> Any:
    """What a file holds, at once: samples and their mask of a recording of samples, `Spectra` of one of spectra, power of a
    filterbank, visibilities, values of scans, pixels of a FITS image, images of a cube; anything else as `open` gives it."""
    file = open(path, format=format)
    if isinstance(file, Recording):
        return file.spectra() if file.channelized else file.samples()
    if isinstance(file, (Filterbank, Scans)):
        return file.read()
    if isinstance(file, (VisibilityFile, FitsImage)):
        return file.data
    return list(file) if isinstance(file, ImageCube) else file


def write(path: str | os.PathLike[str], data: Any, *, overwrite: bool = False, frequency_hz: Any = None, interval_s: Any = None,
          bits: int | None = None, start_mjd_utc: Any = None, source_name: str = "") -> None:
    """Writes a product under its final name once it is whole.

    Parameters
    ----------
    path : str or path
        .uvfits, .uvh5, .ms of a `VisibilityFile`; .fits of an `Image` that knows its observation; .fil of power.
    data : VisibilityFile, Image or array of float32 [channel, time]
    overwrite : bool
    frequency_hz, interval_s, bits, start_mjd_utc, source_name
        Of power: centers (ascending), time from sample to sample, bits (32: floats; 8 and 16: values are rounded, and one that
        is not finite or does not fit is an error), and the time of the first sample (MJD or astropy Time), which must be given.
    """
    if isinstance(data, (VisibilityFile, Image)):
        given = {"frequency_hz": frequency_hz, "interval_s": interval_s, "bits": bits, "start_mjd_utc": start_mjd_utc,
                 "source_name": source_name or None}
        useless = [name for name, value in given.items() if value is not None]
        if useless:
            raise ConfigError(f"{', '.join(useless)}: of power; a {type(data).__name__} says it itself")
        data.write(path, overwrite=overwrite)
        return
    if not os.fspath(path).endswith(".fil"):
        raise ConfigError(f"{os.fspath(path)}: power is written as .fil; visibilities as .uvfits, .uvh5, .ms, images as .fits")
    if frequency_hz is None or interval_s is None or start_mjd_utc is None:
        raise ConfigError("power needs frequency_hz, interval_s and start_mjd_utc")
    n_bits = 32 if bits is None else bits
    power = _arrays.dense(data, "data", np.float32, 2, "[channel, time]")
    if n_bits in (8, 16) and power.size and not (power.min() > -0.5 and power.max() < 2**n_bits - 0.5):
        raise ConfigError(f"power is {power.min()} .. {power.max()}; {n_bits} bits hold 0 .. {2**n_bits - 1}, and no NaN: scale it, or bits=32")
    centers = numbers(frequency_hz, "Hz")
    if centers.shape != power.shape[:1] or (centers.size > 1 and not (np.diff(centers) > 0).all()):
        raise ConfigError(f"frequency_hz is {centers.shape}; ascending centers of {power.shape[0]} channels are needed")
    width = float(np.median(np.diff(centers))) if centers.size > 1 else 1e6
    _ryle.write_filterbank(os.fspath(path), power, centers.tolist(), width, number(interval_s, "s"), n_bits, mjd_utc(start_mjd_utc), source_name,
                           overwrite)
