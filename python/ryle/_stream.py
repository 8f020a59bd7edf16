# SPDX-License-Identifier: BSD-3-Clause
"""Products of a run as they end, one by one."""

from __future__ import annotations

import atexit
import json
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _ryle
from ._arrays import Array
from ._labels import dataset, sky_coord, steps
from ._units import time_of

if TYPE_CHECKING:
    from ._observation import Observation

#: What `Observation.stream` hands over.
KINDS = ("visibilities", "images", "beams", "candidates")

_POLL_S = 0.005  # of `async for`, between looks at the queue


class BeamBlock:
    """Power of all beams in a piece of the data.

    Attributes
    ----------
    array : array of float32 [beam, channel, time]
        Mean power of `integration` spectra, channels in ascending frequency; 0 where `valid` is False.
    valid : array of bool [channel, time]
        False where nothing arrived: no measurement.
    names : list of str
        Of the beams: coherent ones, then incoherent ones.
    incoherent : array of bool [beam]
    position_deg : array of float64 [beam, 2]
        ICRS right ascension and declination at the start of the data.
    frequency_hz : array [channel]
    interval_s : float
        From sample to sample.
    first_sample : int
        Number of the first one in its segment; a jump between blocks is a loss.
    segment : int
        Another one: the sender was started again, and samples do not follow on.
    start_tai_ns : int
        Of the first sample: nanoseconds since 1970-01-01T00:00:00 TAI.
    provenance : dict
    """

    axes = ("beam", "channel", "time")

    def __init__(self, values: dict[str, Any]) -> None:
        self.array: Array = values["array"]
        self.valid: Array = values["valid"].view(np.bool_)
        self.names: list[str] = [beam[0] for beam in values["beams"]]
        self.incoherent: Array = np.array([beam[1] for beam in values["beams"]], bool)
        self.position_deg: Array = np.array([beam[2:] for beam in values["beams"]])
        self.frequency_hz: Array = values["first_center_hz"] + values["channel_width_hz"] * np.arange(self.array.shape[1])
        self.interval_s: float = values["interval_s"]
        self.first_sample: int = values["first_sample"]
        self.segment: int = values["segment"]
        self.start_tai_ns: int = values["start_tai_ns"]
        self.provenance: dict[str, Any] = {"version": _ryle.version(), "telescope": values["telescope"], "integration": values["integration"]}

    @property
    def weights(self) -> Array:
        """`valid`, under the name that all streamed products have."""
        return self.valid

    @property
    def time(self) -> Any:
        """astropy Time of the first sample; needs astropy."""
        return time_of(self.start_tai_ns)

    @property
    def positions(self) -> Any:
        """astropy SkyCoord of the beams; needs astropy."""
        return sky_coord(self.position_deg[:, 0], self.position_deg[:, 1])

    def to_xarray(self) -> Any:
        """An xarray Dataset: power and valid, with beam, frequency_hz and time_s after the first sample; needs xarray."""
        return dataset("power", self.array, self.axes,
                       {"beam": ("beam", self.names), "frequency_hz": ("channel", self.frequency_hz),
                        "time_s": ("time", steps(0.0, self.interval_s, self.array.shape[2]))},
                       {**self.provenance, "start_tai_ns": self.start_tai_ns, "first_sample": self.first_sample, "segment": self.segment},
                       valid=(self.axes[1:], self.valid))

    def __repr__(self) -> str:
        beams, channels, times = self.array.shape
        return f"BeamBlock({beams} beams, {channels} channels, {times} samples from number {self.first_sample} on)"


class Candidate(dict[str, Any]):
    """An event of the search that nothing speaks against: the keys of `Candidates`, beam_name and tai_ns."""

    def __repr__(self) -> str:
        return f"Candidate(beam {self['beam_name']}, {self['time_s']:.6g} s, DM {self['dm_pc_cm3']:.6g}, S/N {self['snr']:.3g})"


def _product(kind: str, made: Any) -> Any:
    from ._files import VisibilityFile
    from ._image import picture_image

    if kind == "visibilities":
        return VisibilityFile(made, "")
    if kind == "images":
        return picture_image(made)
    return BeamBlock(made) if kind == "beams" else Candidate(made)


class Stream:
    """Products of a run that goes on meanwhile; made by `Observation.stream`.

    Iterate over it with ``for``, or in a coroutine with ``async for``. It ends with the run; what the run raises is raised
    there. Leaving the loop early, by ``break``, an exception or Ctrl-C, and `close` end the run as Ctrl-C ends ``ryle run``:
    open integrations are closed with their true weight, and all files are published whole. With ``with`` (``async with``)
    that happens as the block is left, else when the last reference to the stream goes.

    A reader that is too slow holds up the run of a recording: nothing is lost. A live run does not wait: what finds no room
    among the `waiting` products is not handed over, the newest first, and counted in `dropped`. Files have it all the same.
    """

    def __init__(self, observation: Observation, run: _ryle.StreamedRun, kinds: tuple[str, ...]) -> None:
        self._observation = observation
        self._run = run
        self._kinds = kinds
        self._lock = threading.RLock()
        self._closed = False
        self._process = os.getpid()
        _open_streams.add(self)

    @property
    def dropped(self) -> dict[str, int]:
        """Products that found no room, by kind: only of a live run."""
        return {kind: self._run.dropped(kind) for kind in self._kinds}

    @property
    def progress(self) -> dict[str, Any] | None:
        """The last line of progress, as `Observation.run` reports it; None before the first."""
        text = self._run.progress()
        return json.loads(text) if text else None

    @property
    def closed(self) -> bool:
        """The run has ended, and nothing more will come."""
        return self._closed

    def next(self, timeout_s: float | None = None) -> Any:
        """The next product; None where none came within `timeout_s` or the run has ended (then `closed` is True)."""
        if self._closed:
            return None
        try:
            taken = self._run.next(-1.0 if timeout_s is None else timeout_s)
        except BaseException:  # of the run, or a signal
            self.close()
            raise
        if taken is None:
            if self._run.ended():
                self.close()  # raises what the run raised since the queue was looked at
            return None
        return _product(*taken)

    def close(self) -> None:
        """Ends the run, and returns once its files are published. The second call does nothing.

        Raises
        ------
        Error
            What the run raised and nobody has seen yet.
        """
        with self._lock:
            if self._closed:
                return
            try:
                self._run.stop()
                self._run.join()
            finally:
                self._note_end()

    def _note_end(self) -> None:
        self._closed = True
        _open_streams.discard(self)
        text = self._run.summary()
        self._observation.summary = json.loads(text) if text else None
        self._observation._busy = ""

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Any:
        product = self.next()
        if product is None:
            raise StopIteration
        return product

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Any:
        import asyncio

        while not self._closed:
            product = self.next(0.0)
            if product is not None:
                return product
            await asyncio.sleep(_POLL_S)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """As `close`, while other coroutines go on."""
        import asyncio

        if self._closed:
            return
        self._run.stop()
        while not self._run.ended():
            await asyncio.sleep(_POLL_S)
        self.close()

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_process"):
            self._abandon()

    def _abandon(self) -> None:
        if self._process == os.getpid():  # after a fork the run is the parent's
            self.close()

    def __repr__(self) -> str:
        return f"Stream({', '.join(self._kinds)} of {self._observation!r}{', closed' if self._closed else ''})"


_open_streams: weakref.WeakSet[Stream] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for stream in list(_open_streams):
        stream._abandon()
