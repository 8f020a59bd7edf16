# SPDX-License-Identifier: BSD-3-Clause
"""The F-engine: samples of receivers to spectra."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset, steps
from ._units import number, numbers, time_of


class Spectra:
    """Channelized voltages, in the memory of the engines and as an array.

    Attributes
    ----------
    array : array [channel, time, input]
        Samples: complex64, uint8 (4 + 4 bits), or int8 with a last axis (re, im). A copy, made at the first use, that cannot
        be written to, since engines read `blocks` instead; for other values call ``ryle.spectra(changed_copy)``.
    valid : array of bool [input, time] or [channel, input, time]
        False where a sample was absent or touched an absent one; the sample is then 0.
    frequency_hz : array [channel]
        Centers of the channels, ascending.
    interval_s : float
        From spectrum to spectrum.
    start_s : float
        Of the first sample behind the first spectrum, after sample 0 of the stream.
    start_tai_ns : int or None
        Of the first sample behind the first spectrum: nanoseconds since 1970-01-01T00:00:00 TAI.
    saturated_low, saturated_high : array [channel, input] or None
        Parts that were cut at the ends of their range.
    provenance : dict
        Version, implementation and settings.
    """

    def __init__(self, blocks: _ryle.Blocks, frequency_hz: Array | None = None, channel_width_hz: float = 0.0, interval_s: float = 0.0,
                 start_s: float = 0.0, saturated_low: Array | None = None, saturated_high: Array | None = None,
                 provenance: dict[str, Any] | None = None, start_tai_ns: int | None = None) -> None:
        self.blocks = blocks
        self.frequency_hz = frequency_hz
        self.channel_width_hz = channel_width_hz
        self.interval_s = interval_s
        self.start_s = start_s
        self.saturated_low = saturated_low
        self.saturated_high = saturated_high
        self.provenance = provenance or {}
        self.start_tai_ns = start_tai_ns
        self._array: Array | None = None
        self._valid: Array | None = None

    axes = ("channel", "time", "input")

    @property
    def array(self) -> Array:
        if self._array is None:
            self._array = np.asarray(self.blocks.array())
            self._array.flags.writeable = False
        return self._array

    @property
    def valid(self) -> Array:
        if self._valid is None:
            valid = np.asarray(self.blocks.valid())
            self._valid = valid[0] if valid.shape[0] == 1 else valid
            self._valid.flags.writeable = False
        return self._valid

    @property
    def format(self) -> str:
        return self.blocks.format

    @property
    def shape(self) -> tuple[int, int, int]:
        return (self.blocks.n_channels, self.blocks.n_spectra, self.blocks.n_inputs)

    def complex(self) -> Array:
        """The samples as complex64. @shape [channel, time, input]"""
        return _arrays.to_complex(self.array)

    @property
    def time(self) -> Any:
        """astropy Time of the first sample behind the first spectrum; needs astropy and spectra that know it."""
        if self.start_tai_ns is None:
            raise ValueError("these spectra know no time: they are not of a recording; start_tai_ns can be set")
        return time_of(self.start_tai_ns)

    def to_xarray(self) -> Any:
        """An xarray Dataset: spectra (complex64) and valid, with frequency_hz and time_s (as start_s); needs xarray."""
        valid = np.swapaxes(self.valid, -1, -2)
        return dataset("spectra", self.complex(), self.axes,
                       {"frequency_hz": ("channel", self.frequency_hz), "time_s": ("time", steps(self.start_s, self.interval_s, self.shape[1]))},
                       {**self.provenance, "start_tai_ns": self.start_tai_ns}, valid=(self.axes[-valid.ndim:], valid))

    def __repr__(self) -> str:
        channels, times, inputs = self.shape
        return f"Spectra({channels} channels, {times} spectra, {inputs} inputs, {self.format})"

    def plot(self, ax: Any = None) -> Any:
        """Draws the mean power of every input against frequency; needs matplotlib."""
        from . import _plot

        return _plot.bandpass(self, ax)


def spectra(array: Any, *, valid: Any = None, frequency_hz: Any = None, interval_s: Any = 0.0) -> Spectra:
    """An array of channelized voltages in the order of the engines.

    Parameters
    ----------
    array : array [channel, time, input]
        complex64; int8 or int16 with a last axis (re, im); uint8 (4 + 4 bits); any strides.
    valid : array of bool [input, time] or [channel, input, time], optional
        False: the sample counts as absent. So do floats that are not finite.
    frequency_hz : array or Quantity [channel], optional
    interval_s : float or Quantity

    Returns
    -------
    Spectra

    Examples
    --------
    >>> import numpy as np, ryle
    >>> ryle.spectra(np.zeros((4, 100, 3, 2), np.int8))
    Spectra(4 channels, 100 spectra, 3 inputs, ci8)
    """
    view, format_name = _arrays.samples(array, "array", 3, "[channel, time, input]", real=False)
    frequency = None if frequency_hz is None else numbers(frequency_hz, "Hz")
    if frequency is not None and frequency.shape != view.shape[:1]:
        raise ValueError(f"frequency_hz is {frequency.shape}, the array has {view.shape[0]} channels")
    width = float(frequency[1] - frequency[0]) if frequency is not None and frequency.size > 1 else 0.0
    return Spectra(_ryle.Blocks.of(view, format_name, present_planes(view, valid_planes(valid, view.shape))), frequency, width,
                   number(interval_s, "s"), provenance={"version": _ryle.version()})


def own_mask(valid: Any) -> None:
    """Refuses a mask beside `Spectra`."""
    if valid is not None:
        raise ValueError("Spectra have a mask of their own; give the array and a mask: spectra.array, valid=...")


def as_spectra(data: Any, valid: Any) -> Spectra:
    """`Spectra` as they are, or made of an array [channel, time, input] with its mask."""
    if not isinstance(data, Spectra):
        return spectra(data, valid=valid)
    own_mask(valid)
    return data


def even_step_hz(centers_hz: Array) -> float | None:
    """From channel to channel, 0 of a single one; None where centers are not in even steps. @shape centers_hz [channel]"""
    if centers_hz.size < 2:
        return 0.0
    steps_hz = np.diff(centers_hz)
    mean_hz = float(centers_hz[-1] - centers_hz[0]) / steps_hz.size
    return mean_hz if np.allclose(steps_hz, mean_hz, rtol=1e-6, atol=0) else None


def require_same_band(mine: Array | None, theirs: Array | None, what: str, instead: str) -> None:
    """Refuses spectra of other frequencies than those before; None is not known."""
    if mine is None or theirs is None:
        return
    if mine.shape != theirs.shape:
        raise ValueError(f"these spectra are of {theirs.size} channels, {what} of {mine.size}; make a plan of {theirs.size} channels")
    if not np.allclose(mine, theirs, rtol=1e-9, atol=0):
        raise ValueError(f"these spectra are of {theirs[0]:.9g} .. {theirs[-1]:.9g} Hz, {what} of {mine[0]:.9g} .. {mine[-1]:.9g} Hz; {instead}")


def valid_planes(valid: Any, shape: tuple[int, ...]) -> Array | None:
    """The mask as [channel or 1, input, time]."""
    if valid is None:
        return None
    planes = _arrays.as_numpy(valid, "valid")
    if planes.ndim == 2:
        planes = planes[np.newaxis]
    planes = _arrays.mask(planes, "valid", 3, "[input, time] or [channel, input, time]")
    if planes.shape not in ((1, shape[2], shape[1]), (shape[0], shape[2], shape[1])):
        raise ValueError(f"valid is {planes.shape}; [input, time] or [channel, input, time] of the samples is "
                         f"{(shape[0], shape[2], shape[1])}")
    return planes


def present_planes(view: Array, planes: Array | None) -> Array | None:
    """The mask with floats that are not finite taken out. @shape view [channel, time, input]; planes as of valid_planes"""
    finite = _arrays.without_nan(view)
    if finite is None:
        return planes
    finite = np.ascontiguousarray(finite.transpose(0, 2, 1))
    return finite if planes is None else finite & planes


class Channelizer:
    """Plan of a polyphase filter bank.

    ``X[k, m] = g_k sum_n h[n] x[m M - D + n] exp(-2 pi i k (m M + n) / K)``, n = 0 .. L - 1, with L = `n_taps` K, K the
    length of the transform (`n_channels` of complex samples, twice that of real ones), M = `step_samples` or K, and h a sinc
    under `window` with ``sum h^2 = 1``: noise keeps its variance.

    Parameters
    ----------
    n_inputs, n_channels : int
    format : str
        Of the samples: i8, i16, f32 (real), ci4, ci8, ci16, cf32 (complex).
    n_taps : int
        1 is a plain transform.
    window : {"hann", "hamming", "blackman", "kaiser", "rectangular"}
    kaiser_beta : float
    step_samples : int
        Samples from spectrum to spectrum; 0 = K, fewer oversample.
    sample_rate_hz : float or Quantity
    reference_hz : float or Quantity
        Sky frequency of baseband 0.
    inverted_band : bool
    output : {"ci8", "ci4", "cf32"}, optional
        Default: cf32 of samples of floats and 16 bits, ci8 of the others. Codes are rounded and cut at +-127 (+-7): give `gains`
        that bring noise to some 20 codes.
    rounding : {"nearest_even", "truncate"}
    dither : bool
        Half a step either way, by `seed`, before codes are rounded.
    seed : int
    max_spectra : int
        Done at a time, between looks at Ctrl-C; rounded up to a multiple of 128.
    implementation : str
        "auto", or one of ``ryle.implementations()["channelize"]``.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> plan = ryle.Channelizer(2, 16, format="f32", n_taps=4, output="cf32")
    >>> plan.filter_length, plan.step_length
    (128, 32)
    >>> plan.execute(np.zeros((2, 1024), np.float32))
    Spectra(16 channels, 29 spectra, 2 inputs, cf32)
    """

    def __init__(self, n_inputs: int, n_channels: int, *, format: str = "ci8", n_taps: int = 8, window: str = "hann",
                 kaiser_beta: float = 8.0, step_samples: int = 0, sample_rate_hz: Any = 1.0, reference_hz: Any = 0.0,
                 inverted_band: bool = False, output: str | None = None, rounding: str = "nearest_even", dither: bool = True, seed: int = 1,
                 max_spectra: int = 4096, implementation: str = "auto") -> None:
        if output is None:
            output = "cf32" if format in ("f32", "cf32", "i16", "ci16") else "ci8"
        if output not in ("ci8", "ci4", "cf32"):
            raise ValueError(f"output \"{output}\" is not known; use ci8, ci4 or cf32")
        self._rate = number(sample_rate_hz, "Hz")
        self._settings = {"n_taps": n_taps, "window": window, "step_samples": step_samples, "sample_rate_hz": self._rate,
                          "reference_hz": number(reference_hz, "Hz"), "output": output, "dither": dither, "seed": seed}
        self._format, self._n_inputs, self._n_channels = format, n_inputs, n_channels
        self._lock, self._next_spectrum = threading.RLock(), 0
        self._plan = _ryle.Channelizer(n_inputs, n_channels, format, n_taps, window, kaiser_beta, step_samples, self._rate,
                                       number(reference_hz, "Hz"), inverted_band, output, rounding, dither, seed, max_spectra,
                                       implementation)

    @property
    def implementation(self) -> str:
        return self._plan.implementation

    @property
    def filter(self) -> Array:
        """Prototype filter h. @shape [filter_length]"""
        return np.asarray(self._plan.filter)

    @property
    def filter_length(self) -> int:
        """Samples behind one spectrum."""
        return self._plan.filter_length

    @property
    def step_length(self) -> int:
        """Samples from spectrum to spectrum."""
        return self._plan.step_length

    @property
    def frequency_hz(self) -> Array:
        return np.asarray(self._plan.centers_hz)

    def cost(self) -> dict[str, float]:
        """Operations and bytes per sample, bytes of scratch memory."""
        return dict(self._plan.cost())

    def set_gains(self, gains: Any) -> None:
        """Factors of the spectra from now on. @shape gains [input, channel] complex64"""
        array = _arrays.dense(gains, "gains", np.complex64, 2, "[input, channel]")
        _arrays.require_length(array, 0, self._n_inputs, "gains", "inputs")
        _arrays.require_length(array, 1, self._n_channels, "gains", "channels")
        self._plan.set_gains(array)

    def set_delays(self, delay_s: Any, *, phase_turns: Any = None, reference_sample: int = 0) -> None:
        """Delays each input, y(t) = x(t - d), from now on.

        Parameters
        ----------
        delay_s : array or Quantity [input] or [input, 4]
            Seconds, or the coefficients of a cubic polynomial in seconds after `reference_sample`.
        phase_turns : array of the same shape, optional
        reference_sample : int
        """
        def rows(x: Any, unit: str) -> Array:
            given = numbers(x, unit)
            given = given[:, np.newaxis] if given.ndim == 1 else given
            if given.ndim != 2 or given.shape[0] != self._n_inputs or given.shape[1] not in (1, 4):
                raise ValueError(f"polynomials are {given.shape}; [input] or [input, 4] of {self._n_inputs} inputs is needed")
            return np.pad(given, ((0, 0), (0, 4 - given.shape[1])))

        delay = rows(delay_s, "s")
        phase = np.zeros_like(delay) if phase_turns is None else rows(phase_turns, "cycle")
        self._plan.set_delays(np.ascontiguousarray(np.stack((delay, phase), axis=1)), reference_sample)

    def execute(self, samples: Any, *, first_sample: int | None = None, first_spectrum: int | None = None, n_spectra: int | None = None,
                valid: Any = None) -> Spectra:
        """Spectra of a piece of a stream: the same bits wherever it is cut.

        Parameters
        ----------
        samples : array [input, time]
            Of the plan's format, any strides.
        first_sample : int, optional
            Number of the first one, counted in the stream. Default: the piece begins with the first sample of the spectrum
            after the last one made, so pieces overlap by ``filter_length - step_length`` samples.
        first_spectrum, n_spectra : int, optional
            Spectrum m reads samples ``m M .. m M + L - 1``. Default: all that lie within the piece.
        valid : array of bool [input, time], optional
            False: absent; spectra that touch it are 0 and not valid. Floats that are not finite are absent, too.

        Returns
        -------
        Spectra
        """
        with self._lock:
            return self._execute(samples, first_sample, first_spectrum, n_spectra, valid)

    def reset(self) -> None:
        """Begins a stream anew: the next piece begins with sample 0."""
        with self._lock:
            self._next_spectrum = 0

    def _execute(self, samples: Any, first_sample: int | None, first_spectrum: int | None, n_spectra: int | None, valid: Any) -> Spectra:
        view, format_name = _arrays.samples(samples, "samples", 2, "[input, time]", real=True)
        if format_name != self._format:
            raise TypeError(f"samples are {format_name}, the plan takes {self._format}")
        _arrays.require_length(view, 0, self._n_inputs, "samples", "inputs")
        n_samples, step, length = view.shape[1], self.step_length, self.filter_length
        if first_sample is None:
            first_sample = self._next_spectrum * step
        first = -(-first_sample // step) if first_spectrum is None else first_spectrum
        n = (first_sample + n_samples - length) // step + 1 - first if n_spectra is None else n_spectra
        if n < 1:
            raise ValueError(f"{n_samples} samples hold no spectrum: one takes {length} samples")
        absent: list[tuple[int, int, int]] = []
        if valid is not None:
            mask = _arrays.mask(valid, "valid", 2, "[input, time]")
            if mask.shape != view.shape[:2]:
                raise ValueError(f"valid is {mask.shape}, the samples are {view.shape[:2]}")
            absent = _arrays.absent_spans(mask, first_sample)
        finite = _arrays.without_nan(view)
        if finite is not None:
            absent += _arrays.absent_spans(finite, first_sample)
        blocks, low, high = self._plan.execute(view, first_sample, first, n, absent)
        self._next_spectrum = first + n
        frequency = self.frequency_hz
        width = self._rate / self._plan.transform_length
        return Spectra(blocks, frequency, width, step / self._rate, first * step / self._rate, low, high,
                       {"version": _ryle.version(), "implementation": self.implementation, **self._settings})


def channelize(samples: Any, n_channels: int, *, valid: Any = None, gains: Any = None, delay_s: Any = None, **settings: Any) -> Spectra:
    """Spectra of samples by a polyphase filter bank.

    Parameters
    ----------
    samples : array [input, time]
        Real: int8, int16 or float32. Complex: complex64; int8 or int16 with a last axis (re, im), or `complex_int8` and
        `complex_int16`; uint8 with 4 + 4 bits. Any strides, nothing is copied.
    n_channels : int
    valid : array of bool [input, time], optional
    gains : array of complex64 [input, channel], optional
    delay_s : array or Quantity [input] or [input, 4], optional
    **settings
        Of `Channelizer`: n_taps, window, step_samples, sample_rate_hz, reference_hz, output, dither ...

    Returns
    -------
    Spectra
        [channel, time, input], channels in ascending sky frequency.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> tone = np.exp(2j * np.pi * 0.25 * np.arange(1024)).astype(np.complex64)
    >>> x = ryle.channelize(tone[np.newaxis], 16, n_taps=4, output="cf32")
    >>> x.array.shape, int(abs(x.array[:, 0, 0]).argmax()), float(x.frequency_hz[12])
    ((16, 61, 1), 12, 0.25)
    """
    view, format_name = _arrays.samples(samples, "samples", 2, "[input, time]", real=True)
    plan = Channelizer(view.shape[0], n_channels, format=format_name, **settings)
    if gains is not None:
        plan.set_gains(gains)
    if delay_s is not None:
        plan.set_delays(delay_s)
    return plan.execute(samples, valid=valid)
