# SPDX-License-Identifier: BSD-3-Clause
"""An observation file, as `ryle run` takes it."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Callable, Mapping

from . import _ryle
from ._stream import KINDS, Stream
from ._units import is_sky_coord, is_time, sky_text, utc


def _in_unit_of(key: str, quantity: Any) -> Any:
    """A Quantity in the unit that the name of the key ends in."""
    for ending, unit in (("_pc_cm3", "pc/cm3"), ("_km_s", "km/s"), ("_ms", "ms"), ("_ns", "ns"), ("_deg", "deg"), ("_rad", "rad"), ("_mhz", "MHz"),
                         ("_hz", "Hz"), ("_s", "s"), ("_m", "m")):
        if key.endswith(ending):
            return quantity.to_value(unit)
    if key.split(".")[-1].startswith("dm_"):
        return quantity.to_value("pc/cm3")
    raise TypeError(f"{key} says no unit that {quantity} could be turned into; give a number")


def _toml(value: Any, key: str = "") -> str:
    """A value as TOML writes it."""
    if is_time(value):
        value = utc(value)
    elif is_sky_coord(value):
        value = sky_text(value)
    elif hasattr(value, "to_value"):
        value = _in_unit_of(key, value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()  # a number of NumPy
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    return json.dumps(os.fspath(value))


class Observation:
    r'''An observation: what is received or read, and what is made of it.

    Parameters
    ----------
    file : str or path
        Observation file (TOML).
    set : dict, optional
        Keys to change: ``{"source.duration_s": 5, "output.directory": "out"}``. Quantities are taken by keys that end in a
        unit, a Time by keys of UTC (source.start_utc), a SkyCoord by correlate.phase_center.

    Attributes
    ----------
    configuration : str
        Every key with its value, as TOML.
    summary : dict or None
        What the last run did: packets, losses, integrations, margins, warnings, errors.

    Examples
    --------
    A recording of one antenna with two polarizations, 0.2 s of noise:

    >>> import pathlib, tempfile
    >>> import numpy as np, ryle
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> header = b"HDR_SIZE 4096\nNCHAN 1\nNPOL 2\nNDIM 2\nNBIT 8\nBW 1\nFREQ 100\nTSAMP 1\nUTC_START 2026-03-01-12:00:00\n"
    >>> samples = np.random.default_rng(1).integers(-20, 21, (200_000, 2, 2)).astype(np.int8)
    >>> size = (folder / "x.dada").write_bytes(header.ljust(4096, b"\0") + samples.tobytes())
    >>> size = (folder / "array.csv").write_text("antenna,east_m,north_m,up_m,pol,cable_delay_ns\n0,0,0,0,X,0\n0,0,0,0,Y,0\n")
    >>> size = (folder / "x.toml").write_text(f"""
    ... schema = 1
    ... telescope = {{layout = "array.csv", latitude_deg = 34, longitude_deg = -107}}
    ... source = {{kind = "file", format = "dada", file = "{folder}/x.dada"}}
    ... channelize = {{n_channels = 16}}
    ... correlate = {{integration_s = 0.05}}
    ... output = {{directory = "{folder}", name = "x", ms = false, uvfits = false, uvh5 = true, pictures = false}}
    ... """)
    >>> obs = ryle.Observation(folder / "x.toml", set={"output.overwrite": True})
    >>> obs.run()["integrations"], obs.open("uvh5").data.shape
    (4, (4, 16, 1, 4))

    The same as it is made:

    >>> for dump in obs.stream("visibilities"):
    ...     print(dump.info["centroid_utc"][0], dump.array.shape, int(dump.weights.max()))
    2026-03-01T12:00:00.025039500 (1, 16, 1, 4) 3125
    2026-03-01T12:00:00.075039500 (1, 16, 1, 4) 3125
    2026-03-01T12:00:00.125039500 (1, 16, 1, 4) 3125
    2026-03-01T12:00:00.174999500 (1, 16, 1, 4) 3120
    '''

    def __init__(self, file: str | os.PathLike[str], set: Mapping[str, Any] | None = None) -> None:
        self._set = dict(set or {})
        self._config = _ryle.load_observation(os.fspath(file), [f"{key}={_toml(value, key)}" for key, value in self._set.items()])
        self.summary: dict[str, Any] | None = None
        self._lock = threading.Lock()
        self._busy = ""  # what runs now: two runs would write the same files

    def _begin(self, what: str) -> None:
        with self._lock:
            if self._busy:
                raise RuntimeError(f"{self._busy}, and writes the files that {what} would write; let it end first, or make another Observation with "
                                   "an output.directory of its own")
            self._busy = f"a stream of {self!r} is open (close() ends it)" if what == "a stream" else f"a run of {self!r} goes on"
            self.summary = None

    @property
    def configuration(self) -> str:
        return self._config.text

    def plan(self) -> dict[str, Any]:
        """What the run needs, and how fast this machine does it: as `ryle plan --json`."""
        plan: dict[str, Any] = json.loads(self._config.plan("json"))
        return plan

    def graph(self) -> str:
        """The nodes of the run with their margins, as a drawing (SVG)."""
        return self._config.plan("svg")

    def run(self, on_progress: Callable[[dict[str, Any]], object] | None = None, *, interval_s: float = 1.0) -> dict[str, Any]:
        """Runs it to its end. Ctrl-C closes open integrations, publishes them, then raises KeyboardInterrupt.

        Parameters
        ----------
        on_progress : callable(dict), optional
            Called every `interval_s` seconds with time, rates, losses, margin and state; what it raises ends the run in
            the same way.
        interval_s : float

        Returns
        -------
        dict
            As `ryle run --json`: products, counters, warnings. ``summary["errors"]`` has products that could not be
            written, ``summary["not_made"]`` what was asked for and is not there.

        Raises
        ------
        RuntimeError
            While another run or stream of this observation goes on.
        """
        report = None if on_progress is None else lambda text: on_progress(json.loads(text))
        self._begin("a run")
        try:
            self.summary = json.loads(self._config.run(report, interval_s, f"ryle.Observation({self._config.path!r}, set={self._set!r}).run()"))
        finally:
            self._busy = ""
        return self.summary

    def stream(self, *kinds: str, waiting: int = 16) -> Stream:
        """Begins the run, and hands over its products as they end, beside the files that it writes.

        Parameters
        ----------
        *kinds : {"visibilities", "images", "beams", "candidates"}
            Default: visibilities. Each must be made by the observation.
        waiting : int
            Products that wait for the reader. Where there is no room for more, the run of a recording waits; a live run goes on,
            and `Stream.dropped` counts what was not handed over.

        Returns
        -------
        Stream
            Of `VisibilityFile` with one integration each, `Image`, `BeamBlock` and `Candidate`, in the order in which they end.

        Raises
        ------
        RuntimeError
            While another run or stream of this observation goes on.

        An example is that of `Observation`.
        """
        chosen = kinds or KINDS[:1]
        command = f"ryle.Observation({self._config.path!r}, set={self._set!r}).stream({', '.join(map(repr, chosen))})"
        self._begin("a stream")
        try:
            return Stream(self, _ryle.StreamedRun(self._config, list(chosen), waiting, command), chosen)
        except BaseException:
            self._busy = ""
            raise

    @property
    def products(self) -> list[str]:
        """Files that the last run wrote."""
        return [] if self.summary is None else list(self.summary["products"])

    def open(self, kind: str = "") -> Any:
        """The first product whose name ends so ("uvh5", "fits", "fil"), as `ryle.open` reads it."""
        from ._files import open as open_file

        for product in self.products:
            if product.endswith(kind):
                return open_file(product)
        raise ValueError(f"no product ends in \"{kind}\": {self.products or 'the observation has not run'}")

    def __repr__(self) -> str:
        return f"Observation({self._config.path!r})"
