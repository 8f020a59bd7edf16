# SPDX-License-Identifier: BSD-3-Clause
"""The X-engine: spectra to visibilities."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset
from ._spectra import Spectra, even_step_hz, own_mask, present_planes, require_same_band, valid_planes
from ._units import number, sky_text, tai_ns

if TYPE_CHECKING:
    from ._files import VisibilityFile
    from ._layout import Layout

_GULP_BYTES = 64 << 20
_MAX_INTERVAL_S = 9000.0  # clocks count femtoseconds in 64 bits


class Visibilities:
    """Products of all pairs of inputs.

    Attributes
    ----------
    sums : array [channel, baseline, 2] of int64 or [channel, baseline] of complex128
        ``sum_t v_i conj(v_j)``, i <= j: of integer formats exact, with a last axis (re, im).
    counts : array of uint32 [channel, baseline]
        Spectra in which both inputs were valid.
    n_spectra : int
        That were added, lost ones included.
    array : array of complex128 [channel, baseline]
        Means ``sums / counts``; 0 where the count is 0.
    frequency_hz : array [channel] or None
    interval_s : float
        From spectrum to spectrum; 0 where it is not known.
    start_tai_ns : int or None
        Of the first sample: nanoseconds since 1970-01-01T00:00:00 TAI.
    jump_s : float
        The first gap in time between two of the pieces that were added (negative: they overlap); 0 where all follow on, as far as
        they know their time.
    provenance : dict
    """

    axes = ("channel", "baseline")

    def __init__(self, sums: Array, counts: Array, n_spectra: int, n_inputs: int, frequency_hz: Array | None,
                 provenance: dict[str, Any], interval_s: float = 0.0, start_tai_ns: int | None = None, jump_s: float = 0.0) -> None:
        self.sums = sums
        self.counts = counts
        self.n_spectra = n_spectra
        self.n_inputs = n_inputs
        self.frequency_hz = frequency_hz
        self.provenance = provenance
        self.interval_s = interval_s
        self.start_tai_ns = start_tai_ns
        self.jump_s = jump_s
        self._array: Array | None = None

    @property
    def array(self) -> Array:
        if self._array is None:
            total = self._total()
            self._array = np.divide(total, self.counts, out=np.zeros(total.shape, np.complex128), where=self.counts > 0)
        return self._array

    def _total(self) -> Array:
        return self.sums if self.sums.dtype.kind == "c" else self.sums[..., 0] + 1j * self.sums[..., 1]

    @property
    def pairs(self) -> Array:
        """Inputs i <= j of each baseline, number j (j + 1) / 2 + i. @shape [baseline, 2]"""
        j, i = np.tril_indices(self.n_inputs)
        return np.stack((i, j), axis=1)

    def matrix(self) -> Array:
        """The means as a Hermitian matrix. @shape [channel, i, j]"""
        i, j = self.pairs.T
        full = np.zeros((self.array.shape[0], self.n_inputs, self.n_inputs), np.complex128)
        full[:, j, i] = self.array.conj()
        full[:, i, j] = self.array
        return full

    def __repr__(self) -> str:
        return f"Visibilities({self.counts.shape[0]} channels, {self.counts.shape[1]} baselines of {self.n_inputs} inputs, " \
               f"{self.n_spectra} spectra)"

    def observed_by(self, layout: Layout, *, start: Any = None, interval_s: Any = None, phase_center: Any = "zenith") -> VisibilityFile:
        """The same as visibilities of an array: baselines of antennas, cables undone, phased to a direction, with place and time.

        What comes can be written (.uvfits, .uvh5, .ms), imaged, and turned into a UVData of pyuvdata.

        Parameters
        ----------
        layout : Layout
            Its inputs are those of the spectra.
        start : astropy Time or int
            Of the first sample (int: nanoseconds since 1970-01-01T00:00:00 TAI); default: that of the spectra.
        interval_s : float or Quantity
            From spectrum to spectrum, at most 9,000 s; default: that of the spectra.
        phase_center : str or SkyCoord
            "zenith" (at the start), "sun" or "RA_DEG,DEC_DEG".

        Returns
        -------
        VisibilityFile
            Of one integration.

        Raises
        ------
        ValueError
            Channels are not in even ascending steps, pieces of spectra do not follow on in time, or times or frequencies are not known.
        """
        from ._files import VisibilityFile

        step_s = self.interval_s if interval_s is None else number(interval_s, "s")
        begin = self.start_tai_ns if start is None else tai_ns(start)
        if self.frequency_hz is None or begin is None or not step_s > 0:
            raise ValueError("frequencies, start and interval_s are needed: of a recording the spectra know them, else give ryle.spectra(array, "
                             "frequency_hz=..., interval_s=...) to correlate, and start= here")
        if step_s > _MAX_INTERVAL_S:
            raise ValueError(f"interval_s = {step_s:.6g}: from spectrum to spectrum there are at most {_MAX_INTERVAL_S:,.0f} s")
        if self.jump_s:
            raise ValueError(f"the spectra do not follow on: between two of the pieces that were added {_jump_text(self.jump_s)}; call finish() before "
                             "each jump in time, and observed_by() of every part")
        if len(layout.inputs) != self.n_inputs:
            raise ValueError(f"{layout} has {len(layout.inputs)} inputs, these visibilities are of {self.n_inputs}: another array made them")
        centers = self.frequency_hz
        width = even_step_hz(centers) if len(centers) > 1 else 1 / step_s
        if width is None or not width > 0:
            raise ValueError(f"channels at {centers[0]:.9g} .. {centers[-1]:.9g} Hz are not in even ascending steps, as files of visibilities have them; "
                             "select contiguous channels")
        file = _ryle.visibilities_of(np.ascontiguousarray(self._total()), self.counts, self.n_spectra, layout._array, float(centers[0]), width, begin,
                                     step_s, sky_text(phase_center), self.provenance["implementation"])
        return VisibilityFile(file, "")

    def to_xarray(self) -> Any:
        """An xarray Dataset: visibility (means) and counts, with frequency_hz, input_i and input_j; needs xarray."""
        i, j = self.pairs.T
        return dataset("visibility", self.array, self.axes,
                       {"frequency_hz": ("channel", self.frequency_hz), "input_i": ("baseline", i), "input_j": ("baseline", j)},
                       {**self.provenance, "n_spectra": self.n_spectra}, counts=(self.axes, self.counts))

    def plot(self, ax: Any = None, channel: int | None = None) -> Any:
        """Draws the matrix of amplitudes, of one channel or the mean over all; needs matplotlib."""
        from . import _plot

        return _plot.matrix(self, ax, channel)


def _jump_text(jump_s: float) -> str:
    return f"{jump_s:.6g} s are left out" if jump_s > 0 else f"time goes back by {-jump_s:.6g} s"


class _Timeline:
    """Where in time the pieces of spectra lie that were added: one interval, and no jump from piece to piece."""

    def __init__(self) -> None:
        self.interval_s = 0.0  # 0: not known
        self.start_tai_ns: int | None = None  # of the first piece
        self.jump_s = 0.0
        self._n_spectra = 0  # before the next piece
        self._origin: tuple[bool, int, int] | None = None  # whether of TAI, ns, and spectra before it: of the first piece that knows its time

    def require_interval(self, interval_s: float) -> None:
        """Refuses a piece of another interval; 0 is not known."""
        if interval_s and self.interval_s and abs(interval_s - self.interval_s) > 1e-9 * self.interval_s:
            raise ValueError(f"these spectra are {interval_s:.9g} s apart, those added so far {self.interval_s:.9g} s; call finish() or reset() first")

    def add(self, n_spectra: int, interval_s: float = 0.0, start_s: float = 0.0, start_tai_ns: int | None = None) -> None:
        """Notes a piece; a start_s of 0 after others is that of an array without time."""
        if self._n_spectra == 0:
            self.start_tai_ns = start_tai_ns
        self.interval_s = self.interval_s or interval_s
        dated = start_tai_ns is not None
        if dated or start_s or self._n_spectra == 0:
            at_ns = round(start_s * 1e9) if start_tai_ns is None else start_tai_ns
            if self._origin is None:
                self._origin = (dated, at_ns, self._n_spectra)
            elif self._origin[0] == dated and not self.jump_s:
                late_s = (at_ns - self._origin[1]) * 1e-9 - (self._n_spectra - self._origin[2]) * self.interval_s
                if self.interval_s and abs(late_s) > 0.5 * self.interval_s + 1e-9:  # starts are rounded to nanoseconds
                    self.jump_s = late_s
        self._n_spectra += n_spectra


class Correlator:
    """Plan of a correlator: adds gulps until `finish`.

    Parameters
    ----------
    n_inputs, n_channels : int
    format : str
        ci4, ci8, ci16 or cf32.
    max_spectra : int
        Done at a time, between looks at Ctrl-C; rounded up to a multiple of 128.
    implementation : str
        "auto", or one of ``ryle.implementations()["correlate"]``. Integer formats give the same bits with each.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> plan = ryle.Correlator(2, 1)
    >>> plan.execute(np.array([[[[1, 2], [3, 4]]]], np.int8))
    >>> plan.finish().array
    array([[ 5.+0.j, 11.+2.j, 25.+0.j]])
    """

    def __init__(self, n_inputs: int, n_channels: int, *, format: str = "ci8", max_spectra: int = 8192,
                 implementation: str = "auto") -> None:
        self._n_inputs, self._n_channels, self._format = n_inputs, n_channels, format
        self._frequency_hz: Array | None = None
        self._timeline = _Timeline()
        self._lock = threading.RLock()
        self._plan = _ryle.Correlator(n_inputs, n_channels, format, max_spectra, implementation)

    @property
    def implementation(self) -> str:
        return self._plan.implementation

    def cost(self) -> dict[str, float]:
        """Operations and bytes per spectrum, bytes of accumulators and scratch memory."""
        return dict(self._plan.cost())

    def execute(self, spectra: Any, *, valid: Any = None) -> None:
        """Adds spectra: `Spectra`, or an array [channel, time, input] with its mask.

        Parameters
        ----------
        spectra : Spectra or array [channel, time, input]
            complex64; int8 or int16 with a last axis (re, im); uint8 (4 + 4 bits); any strides.
        valid : array of bool [input, time] or [channel, input, time], optional
            False: absent, as are floats that are not finite. `Spectra` have their own.
        """
        if isinstance(spectra, Spectra):
            own_mask(valid)
            with self._lock:
                mine, theirs = self._frequency_hz, spectra.frequency_hz
                require_same_band(mine, theirs, "those added so far", "call finish() or reset() first")
                self._timeline.require_interval(spectra.interval_s)
                self._plan.execute(spectra.blocks)
                self._frequency_hz = mine if theirs is None else theirs
                self._timeline.add(spectra.blocks.n_spectra, spectra.interval_s, spectra.start_s, spectra.start_tai_ns)
            return
        view, format_name = _arrays.samples(spectra, "spectra", 3, "[channel, time, input]", real=False)
        if format_name != self._format:
            raise TypeError(f"spectra are {format_name}, the plan takes {self._format}")
        planes = valid_planes(valid, view.shape)
        gulp = max(128, _GULP_BYTES * view.shape[1] // view.nbytes // 128 * 128)
        with self._lock:
            for first in range(0, view.shape[1], gulp):
                piece = view[:, first: first + gulp]
                mask = present_planes(piece, None if planes is None else np.ascontiguousarray(planes[..., first: first + gulp]))
                self._plan.execute(_ryle.Blocks.of(piece, format_name, mask))
                self._timeline.add(piece.shape[1])

    def finish(self) -> Visibilities:
        """Everything since the last call, and begins anew."""
        with self._lock:
            sums, counts, n_spectra = self._plan.finish()
            frequency_hz, time = self._frequency_hz, self._timeline
            self._frequency_hz, self._timeline = None, _Timeline()
        return Visibilities(sums, counts, n_spectra, self._n_inputs, frequency_hz,
                            {"version": _ryle.version(), "implementation": self.implementation}, time.interval_s, time.start_tai_ns,
                            time.jump_s)

    def reset(self) -> None:
        """Forgets everything added."""
        with self._lock:
            self._plan.reset()
            self._frequency_hz, self._timeline = None, _Timeline()


def correlate(spectra: Any, *, valid: Any = None, implementation: str = "auto") -> Visibilities:
    """Visibilities of all pairs of inputs: ``V_ij = sum_t v_i conj(v_j)``, i <= j.

    Parameters
    ----------
    spectra : Spectra or array [channel, time, input]
        As `Correlator.execute` takes them.
    valid : array of bool [input, time] or [channel, input, time], optional
    implementation : str

    Returns
    -------
    Visibilities

    Examples
    --------
    >>> import numpy as np, ryle
    >>> v = ryle.correlate(np.full((1, 10, 2), 1 + 2j, np.complex64))
    >>> complex(v.array[0, 0]), int(v.counts[0, 0]), v.pairs.tolist()
    ((5+0j), 10, [[0, 0], [0, 1], [1, 1]])
    """
    if isinstance(spectra, Spectra):
        n_channels, n_spectra, n_inputs = spectra.shape
        format_name = spectra.format
    else:
        view, format_name = _arrays.samples(spectra, "spectra", 3, "[channel, time, input]", real=False)
        n_channels, n_spectra, n_inputs = view.shape[:3]
    plan = Correlator(n_inputs, n_channels, format=format_name, max_spectra=min(max(n_spectra, 128), 8192), implementation=implementation)
    plan.execute(spectra, valid=valid)
    return plan.finish()
