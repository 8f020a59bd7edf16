# SPDX-License-Identifier: BSD-3-Clause
"""The B-engine: beams of spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset, steps
from ._spectra import Spectra, valid_planes

_OUTPUT_TYPES = {"cf32": (np.complex64, 1), "cf16": (np.float16, 2), "ci8": (np.int8, 2), "ci4": (np.uint8, 1), "f32": (np.float32, 1),
                 "u16": (np.uint16, 1), "u8": (np.uint8, 1), "f16": (np.float16, 1)}


class Beams:
    """What a beamformer makes of a piece of data.

    Attributes
    ----------
    array : array [beam, product, channel, time], of voltages [beam, channel, time, pol]
        Coherent beams, then incoherent ones. Products: power one per polarization, stokes_i 1, stokes_iquv 4. cf16 and ci8
        have a last axis (re, im).
    n_used : array of uint32 [beam, channel]
        Samples that were there with a weight other than 0.
    weight_power : array of float32 [beam, channel]
        Mean over the spectra of the sum of |w|^2 of the inputs that were there.
    saturated_low, saturated_high : array of uint32 [beam, product, channel]
        Values cut at the ends of the range.
    frequency_hz : array [channel] or None
    interval_s : float
        From value to value; 0 where it is not known.
    provenance : dict
    """

    def __init__(self, array: Array, axes: tuple[str, ...], n_used: Array, weight_power: Array, saturated_low: Array,
                 saturated_high: Array, frequency_hz: Array | None, interval_s: float, provenance: dict[str, Any]) -> None:
        self.array = array
        self.axes = axes
        self.n_used = n_used
        self.weight_power = weight_power
        self.saturated_low = saturated_low
        self.saturated_high = saturated_high
        self.frequency_hz = frequency_hz
        self.interval_s = interval_s
        self.provenance = provenance

    def __repr__(self) -> str:
        return f"Beams({', '.join(f'{axis} {n}' for axis, n in zip(self.axes, self.array.shape))}; {self.array.dtype})"

    def to_xarray(self) -> Any:
        """An xarray Dataset: power or voltage, n_used and weight_power, with frequency_hz and time_s; needs xarray.

        Incoherent beams, which have no weights, are NaN in weight_power and 0 in n_used.
        """
        missing = ((0, self.array.shape[0] - self.n_used.shape[0]), (0, 0))
        beside = ("beam", "channel")
        name = "power" if "product" in self.axes else "voltage"
        return dataset(name, self.array, self.axes,
                       {"frequency_hz": ("channel", self.frequency_hz),
                        "time_s": ("time", steps(0.0, self.interval_s, self.array.shape[self.axes.index("time")]))},
                       self.provenance, n_used=(beside, np.pad(self.n_used, missing)),
                       weight_power=(beside, np.pad(self.weight_power, missing, constant_values=np.nan)))

    def plot(self, ax: Any = None, beam: int = 0) -> Any:
        """Draws a beam's power against time and frequency; needs matplotlib."""
        from . import _plot

        return _plot.waterfall(self, ax, beam)


class Beamformer:
    """Plan of a beamformer.

    ``b[beam, pol, k, t] = sum_a W[beam, pol, k, a] v[a, pol, k, t]``: the weight is multiplied, not conjugated. Inputs are
    antenna * n_pols + pol.

    Parameters
    ----------
    n_antennas, n_beams, n_channels : int
    n_pols : {1, 2}
    format : str
        Of the samples: ci4, ci8, ci16 or cf32.
    weight_format : {"i8", "f32"}
        i8: codes of 8 bits and one scale a beam, polarization and channel; f32: as given. The function `beamform` takes f32.
    output : {"power", "voltage", "stokes_i", "stokes_iquv"}
    output_format : str
        Of voltages cf32, cf16, ci8, ci4; of the others f32, f16, u16, u8.
    integration : int
        Spectra behind a value, which is the mean of their powers; windows are [n T, (n + 1) T) of the stream.
    loss : {"renormalize", "raw"}
        What absent samples do: values are scaled to all inputs, or stay as they are.
    incoherent : list of lists of 0 and 1
        Antennas of each incoherent beam.
    dither, seed, max_spectra, implementation
        As of `Channelizer`.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> plan = ryle.Beamformer(4, 1, 2, format="ci8", weight_format="f32", integration=8)
    >>> plan.set_weights(np.full((1, 2, 4), 0.25, np.complex64))
    >>> plan.execute(np.full((2, 16, 4, 2), 3, np.int8)).array
    array([[[[18., 18.],
             [18., 18.]]]], dtype=float32)
    """

    def __init__(self, n_antennas: int, n_beams: int, n_channels: int, *, n_pols: int = 1, format: str = "ci4", weight_format: str = "i8",
                 output: str = "power", output_format: str | None = None, integration: int = 1, loss: str = "renormalize",
                 incoherent: list[list[int]] | None = None, dither: bool = False, seed: int = 0, max_spectra: int = 8192,
                 implementation: str = "auto") -> None:
        if output_format is None:
            output_format = "cf32" if output == "voltage" else "f32"
        if output_format not in _OUTPUT_TYPES:
            raise ValueError(f"output_format \"{output_format}\" is not known; use one of {', '.join(_OUTPUT_TYPES)}")
        self._format, self._output, self._output_format = format, output, output_format
        self._n_inputs, self._n_beams, self._n_channels, self._n_pols = n_antennas * n_pols, n_beams, n_channels, n_pols
        self._integration = integration
        self._plan = _ryle.Beamformer(n_antennas, n_pols, n_beams, n_channels, max_spectra, format, weight_format, output, output_format,
                                      integration, loss, incoherent or [], dither, seed, implementation)

    @property
    def implementation(self) -> str:
        return self._plan.implementation

    def cost(self) -> dict[str, float]:
        """Operations and bytes per spectrum, bytes of the state."""
        return dict(self._plan.cost())

    def set_weights(self, weights: Any) -> None:
        """Weights from now on. @shape weights [beam, channel, input] complex64"""
        array = _arrays.dense(weights, "weights", np.complex64, 3, "[beam, channel, input]")
        for axis, (n, what) in enumerate(((self._n_beams, "beams"), (self._n_channels, "channels"), (self._n_inputs, "inputs"))):
            _arrays.require_length(array, axis, n, "weights", what)
        self._plan.set_weights(array)

    def set_requantization(self, scale: Any, offset: Any) -> None:
        """``code = round(value scale + offset)`` of integer outputs. @shape [beam, product, channel] float32"""
        shape = (self._plan.n_rows, 1 if self._output == "voltage" else self._plan.n_products, self._n_channels)
        pair = [_arrays.dense(x, name, np.float32, 3, "[beam, product, channel]") for x, name in ((scale, "scale"), (offset, "offset"))]
        for array, name in zip(pair, ("scale", "offset")):
            if array.shape != shape:
                raise ValueError(f"{name} is {array.shape}, {shape} is needed: [beam, product, channel]")
        self._plan.set_requantization(*pair)

    def execute(self, spectra: Any, *, first_spectrum: int | None = None, valid: Any = None) -> Beams:
        """Beams of the next piece of a stream; windows that do not end in it wait for the next one.

        Parameters
        ----------
        spectra : Spectra or array [channel, time, input]
            Of the plan's format; inputs side by side.
        first_spectrum : int, optional
            Number of the first one, counted in the stream. Default: the one after the last call.
        valid : array of bool [input, time] or [channel, input, time], optional
            False: absent; its samples must be 0, as those of `Spectra` are. Floats must be finite.

        Returns
        -------
        Beams
        """
        frequency, interval_s = None, 0.0
        if isinstance(spectra, Spectra):
            frequency, interval_s = spectra.frequency_hz, spectra.interval_s
            if valid is None:
                valid = spectra.valid if not spectra.valid.all() else None
            spectra = spectra.array
        view, format_name = _arrays.samples(spectra, "spectra", 3, "[channel, time, input]", real=False)
        if format_name != self._format:
            raise TypeError(f"spectra are {format_name}, the plan takes {self._format}")
        _arrays.require_length(view, 0, self._n_channels, "spectra", "channels")
        _arrays.require_length(view, 2, self._n_inputs, "spectra", "inputs")
        if view.shape[2] > 1 and view.strides[2] != view.itemsize * (2 if format_name in ("ci8", "ci16") else 1):
            raise TypeError("spectra: inputs do not lie side by side; call numpy.ascontiguousarray(spectra)")
        present = None
        if valid is not None:
            planes = valid_planes(valid, view.shape)
            assert planes is not None
            if not planes.all() and view[np.broadcast_to(~planes.transpose(0, 2, 1), view.shape[:3])].any():
                raise ValueError("spectra has samples other than 0 where valid is False; call ryle.spectra(spectra, valid=valid)")
            present = np.ascontiguousarray(planes.transpose(0, 2, 1))
        if _arrays.without_nan(view) is not None:
            raise ValueError("spectra has values that are not finite; call ryle.spectra(spectra), which takes them as absent")
        values, n_windows, low, high, used, power = self._plan.execute(view, first_spectrum, present)
        dtype, parts = _OUTPUT_TYPES[self._output_format]
        rows = self._plan.n_rows
        array = np.asarray(values).view(dtype)
        if self._output == "voltage":
            shape: tuple[int, ...] = (rows, self._n_channels, n_windows, self._n_pols)
            axes: tuple[str, ...] = ("beam", "channel", "time", "pol")
        else:
            shape = (rows, self._plan.n_products, self._n_channels, n_windows)
            axes = ("beam", "product", "channel", "time")
        if parts == 2:
            shape, axes = shape + (2,), axes + ("part",)
        provenance = {"version": _ryle.version(), "implementation": self.implementation, "integration": self._integration,
                      "output": self._output}
        return Beams(array.reshape(shape), axes, used, power, low, high, frequency, interval_s * self._integration, provenance)

    def reset(self) -> None:
        """Forgets windows that have not ended; the next spectrum is number 0."""
        self._plan.reset()


def beamform(spectra: Any, weights: Any, *, n_pols: int = 1, valid: Any = None, **settings: Any) -> Beams:
    """Beams of spectra: ``b[beam, k, t] = sum_a W[beam, k, a] v[a, k, t]``, detected and averaged over `integration` spectra.

    Parameters
    ----------
    spectra : Spectra or array [channel, time, input]
    weights : array of complex64 [beam, channel, input]
        Multiplied, not conjugated; as given, unless weight_format="i8" rounds them to codes of 8 bits, which is faster.
    n_pols : {1, 2}
        Inputs are antenna * n_pols + pol.
    valid : array of bool [input, time] or [channel, input, time], optional
    **settings
        Of `Beamformer`: output, output_format, integration, weight_format, loss, incoherent, implementation ...

    Returns
    -------
    Beams

    Examples
    --------
    >>> import numpy as np, ryle
    >>> x = np.ones((1, 8, 4), np.complex64)
    >>> ryle.beamform(x, np.ones((2, 1, 4), np.complex64), integration=4).array[1, 0, 0]
    array([16., 16.], dtype=float32)
    """
    array = spectra.array if isinstance(spectra, Spectra) else spectra
    view, format_name = _arrays.samples(array, "spectra", 3, "[channel, time, input]", real=False)
    table = _arrays.dense(weights, "weights", np.complex64, 3, "[beam, channel, input]")
    if view.shape[2] % n_pols:
        raise ValueError(f"{view.shape[2]} inputs are no whole number of antennas of {n_pols} polarizations")
    settings.setdefault("weight_format", "f32")
    plan = Beamformer(view.shape[2] // n_pols, table.shape[0], view.shape[0], n_pols=n_pols, format=format_name, **settings)
    plan.set_weights(table)
    return plan.execute(spectra, valid=valid)
