# SPDX-License-Identifier: BSD-3-Clause
"""An observation file, as `ryle run` takes it."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Mapping

from . import _ryle


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
    if hasattr(value, "to_value"):
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
    """An observation: what is received or read, and what is made of it.

    Parameters
    ----------
    file : str or path
        Observation file (TOML).
    set : dict, optional
        Keys to change: ``{"source.duration_s": 5, "output.directory": "out"}``. Quantities are taken by keys that end in a
        unit.

    Attributes
    ----------
    configuration : str
        Every key with its value, as TOML.
    summary : dict or None
        What the last run did: packets, losses, integrations, margins, warnings, errors.

    Examples
    --------
    >>> import ryle
    >>> obs = ryle.Observation("examples/mwa32t.toml", set={"source.duration_s": 2})  # doctest: +SKIP
    >>> obs.run()["integrations"]                                                     # doctest: +SKIP
    2
    >>> obs.open("uvh5").data.shape                                                   # doctest: +SKIP
    (2, 128, 528, 4)
    """

    def __init__(self, file: str | os.PathLike[str], set: Mapping[str, Any] | None = None) -> None:
        self._set = dict(set or {})
        self._config = _ryle.load_observation(os.fspath(file), [f"{key}={_toml(value, key)}" for key, value in self._set.items()])
        self.summary: dict[str, Any] | None = None

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
        """
        report = None if on_progress is None else lambda text: on_progress(json.loads(text))
        self.summary = None
        self.summary = json.loads(self._config.run(report, interval_s, f"ryle.Observation({self._config.path!r}, set={self._set!r}).run()"))
        return self.summary

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
