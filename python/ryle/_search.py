# SPDX-License-Identifier: BSD-3-Clause
"""Dispersed pulses: dedispersion, search and folding, of arrays and of files."""

from __future__ import annotations

import os
from typing import Any, Callable, Sequence

import numpy as np

from . import _arrays, _ryle
from ._arrays import Array
from ._labels import dataset, needed, steps
from ._units import mjd_utc, number, numbers

_DM = "pc/cm3"


def _refuse(given: dict[str, Any], why: str) -> None:
    """An error that names what was given, but has no effect here."""
    useless = [name for name, value in given.items() if value not in (None, "")]
    if useless:
        raise ValueError(f"{', '.join(useless)}: {why}")


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings with Quantities as numbers, in the unit that the name of the key says."""
    def one(key: str, value: Any) -> Any:
        if not hasattr(value, "to_value"):
            return value.item() if isinstance(value, np.generic) else value
        for ending, unit in (("_s", "s"), ("_hz", "Hz")):
            if key.endswith(ending):
                return number(value, unit)
        return number(value, _DM if key.startswith("dm_") else "")

    return {key: one(key, value) for key, value in settings.items()}


def _band(frequency_hz: Any, interval_s: Any, n_channels: int) -> tuple[Array, float, float]:
    """Centers, width and interval. Centers must ascend."""
    centers = numbers(frequency_hz, "Hz")
    if centers.shape != (n_channels,):
        raise ValueError(f"frequency_hz is {centers.shape}, the data have {n_channels} channels")
    if n_channels < 2 or not (np.diff(centers) > 0).all():
        raise ValueError("frequency_hz must ascend over two channels or more; of a descending band turn frequency_hz and the data: x[::-1]")
    return centers, float(np.median(np.diff(centers))), number(interval_s, "s")


def dm_trials(frequency_hz: Any, interval_s: Any, *, dm_max: Any, dm_min: Any = 0.0, plan: str = "tolerance", dm_step: Any = 0.0,
              tolerance: float = 1.05, k_dm: str = "physical") -> Array:
    """Dispersion measures that a search of a band tries.

    Parameters
    ----------
    frequency_hz : array or Quantity [channel]
        Centers, ascending.
    interval_s : float or Quantity
    dm_max, dm_min : float or Quantity
        pc cm^-3.
    plan : {"tolerance", "native", "linear"}
    dm_step : float or Quantity
        Of plan "linear".
    tolerance : float
        Of plan "tolerance": the broadening of a pulse that is allowed.
    k_dm : str
        "physical" (4148.8064), "tempo", "best2", "dedisp" or s MHz^2 pc^-1 cm^3.

    Returns
    -------
    array of float64, ascending

    Examples
    --------
    >>> import numpy as np, ryle
    >>> ryle.dm_trials(np.linspace(1.2e9, 1.5e9, 64), 1e-3, dm_max=30, plan="linear", dm_step=10)
    array([ 0., 10., 20., 30.])
    """
    centers, width, interval = _band(frequency_hz, interval_s, np.size(frequency_hz))
    trials = _ryle.dm_trials(centers, width, interval, k_dm, plan, number(dm_min, _DM), number(dm_max, _DM),
                            number(dm_step, _DM), 0, tolerance)
    return np.asarray(trials)


class Dedispersed:
    """Sums of codes along the sweeps of the trials.

    Attributes
    ----------
    array : array of uint16 or uint32 [trial, time]
    dm : array of float64 [trial]
        pc cm^-3.
    interval_s : float
    provenance : dict
    """

    axes = ("trial", "time")

    def __init__(self, array: Array, dm: Array, interval_s: float, provenance: dict[str, Any]) -> None:
        self.array = array
        self.dm = dm
        self.interval_s = interval_s
        self.provenance = provenance

    def __repr__(self) -> str:
        return f"Dedispersed({self.array.shape[0]} trials, {self.array.shape[1]} samples, {self.array.dtype})"

    def to_xarray(self) -> Any:
        """An xarray Dataset: sum, with dm_pc_cm3 and time_s; needs xarray."""
        return dataset("sum", self.array, self.axes,
                       {"dm_pc_cm3": ("trial", self.dm), "time_s": ("time", steps(0.0, self.interval_s, self.array.shape[1]))}, self.provenance)

    def plot(self, ax: Any = None) -> Any:
        """Draws the sums against time and dispersion measure; needs matplotlib."""
        from . import _plot

        return _plot.dm_time(self, ax)


class Dedisperser:
    """Plan of a dedispersion: ``D[trial, t] = sum_c x[c, t + delay(trial, c)]``, in integers.

    Parameters
    ----------
    frequency_hz : array or Quantity [channel]
        Centers, ascending; delays count from the highest channel.
    interval_s : float or Quantity
    dm : array or Quantity [trial]
        pc cm^-3.
    max_code : int
        Largest code that occurs; decides whether sums take 16 or 32 bits.
    max_outputs : int
        Samples done at a time, between looks at Ctrl-C.
    k_dm : str
    smear_samples : float
        Samples that channels may lie off their delays; 0: sums are exact.
    implementation : str
        "auto", or one of ``ryle.implementations()["search"]``.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> plan = ryle.Dedisperser(np.linspace(1.2e9, 1.5e9, 16), 1e-3, [0, 50])
    >>> plan.max_delay, int(plan.execute(np.ones((16, 200), np.uint8)).array.max())
    (52, 16)
    """

    def __init__(self, frequency_hz: Any, interval_s: Any, dm: Any, *, max_code: int = 63, max_outputs: int = 65536, k_dm: str = "physical",
                 smear_samples: float = 0.0, implementation: str = "auto") -> None:
        centers, width, self._interval_s = _band(frequency_hz, interval_s, np.size(frequency_hz))
        self._dm = np.atleast_1d(numbers(dm, _DM))
        self._max_code = max_code
        #: Delays in samples, rounded. @shape [trial, channel]
        self.delays = np.asarray(_ryle.delay_table(centers, width, self._interval_s, k_dm, self._dm.tolist()))
        self._plan = _ryle.Dedisperser(self.delays, max_code, max_outputs, implementation, smear_samples)

    @property
    def implementation(self) -> str:
        return self._plan.implementation

    @property
    def max_delay(self) -> int:
        """Samples that a call takes beyond those it makes."""
        return self._plan.max_delay

    def cost(self) -> dict[str, float]:
        """Additions of rows for one output of all trials (0: not known), and samples that sums lie off the delays at most."""
        return {"work": self._plan.work, "max_track_error_samples": self._plan.max_track_error}

    def execute(self, codes: Any) -> Dedispersed:
        """Sums of codes. @shape codes [channel, time] uint8; result [trial, time - max_delay]"""
        array = _arrays.dense(codes, "codes", np.uint8, 2, "[channel, time]")
        _arrays.require_length(array, 0, self.delays.shape[1], "codes", "channels")
        if array.shape[1] <= self.max_delay:
            raise ValueError(f"codes has {array.shape[1]} samples; more than the largest delay of {self.max_delay} are needed")
        highest = int(array.max())
        if highest > self._max_code:
            raise ValueError(f"codes reach {highest}, max_code is {self._max_code}; give max_code={highest}")
        return Dedispersed(np.asarray(self._plan.execute(array)), self._dm, self._interval_s,
                           {"version": _ryle.version(), "implementation": self.implementation})


def dedisperse(codes: Any, dm: Any, *, frequency_hz: Any, interval_s: Any, **settings: Any) -> Dedispersed:
    """Sums of codes along the sweeps of dispersion measures.

    ``D[trial, t] = sum_c x[c, t + delay(trial, c)]``, with delays ``k_DM DM (nu^-2 - nu_top^-2)`` rounded to samples.

    Parameters
    ----------
    codes : array of uint8 [channel, time]
        Channels in ascending frequency.
    dm : array or Quantity [trial]
        pc cm^-3.
    frequency_hz : array or Quantity [channel]
    interval_s : float or Quantity
    **settings
        Of `Dedisperser`: k_dm, smear_samples, implementation.

    Returns
    -------
    Dedispersed
        [trial, time - largest delay].

    Examples
    --------
    >>> import numpy as np, ryle
    >>> ryle.dedisperse(np.ones((16, 200), np.uint8), [0, 50], frequency_hz=np.linspace(1.2e9, 1.5e9, 16), interval_s=1e-3)
    Dedispersed(2 trials, 148 samples, uint16)
    """
    array = _arrays.dense(codes, "codes", np.uint8, 2, "[channel, time]")
    settings.setdefault("max_code", max(1, int(array.max())) if array.size else 1)
    return Dedisperser(frequency_hz, interval_s, dm, **settings).execute(array)


class Candidates(Sequence[dict[str, Any]]):
    """Events of a search, flagged ones included, in order of time.

    Each is a dict with time_s (of the highest channel, after the first sample), dm_pc_cm3, width_s, snr, their errors,
    scattering_s, flags ("" for a candidate), reasons and more.

    Attributes
    ----------
    summary : dict
        Plan, trials, implementation, products, warnings.
    """

    def __init__(self, events: list[dict[str, Any]], summary: dict[str, Any]) -> None:
        self._events = events
        self.summary = summary

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: Any) -> Any:
        return self._events[index]

    @property
    def unflagged(self) -> list[dict[str, Any]]:
        """Those that nothing speaks against."""
        return [event for event in self._events if not event["flags"]]

    def table(self) -> Any:
        """An astropy Table with units; needs astropy."""
        units = needed("astropy.units", "table()")
        Table = needed("astropy.table", "table()").Table
        table = Table(rows=self._events) if self._events else Table()
        for name in table.colnames:
            if name.endswith("_s"):
                table[name].unit = units.s
            elif name in ("dm_pc_cm3", "dm_error"):
                table[name].unit = units.pc / units.cm**3
            elif name == "mjd_utc":
                table[name].unit = units.day
        return table

    def __repr__(self) -> str:
        return f"Candidates({len(self.unflagged)} candidates, {len(self) - len(self.unflagged)} flagged)"

    def plot(self, ax: Any = None) -> Any:
        """Draws the events in time and dispersion measure; needs matplotlib."""
        from . import _plot

        return _plot.candidates(self, ax)


def search(data: Any, *, frequency_hz: Any = None, interval_s: Any = None, start_mjd_utc: Any = None, output_directory: str = "",
           name: str = "", overwrite: bool | None = None, pictures: bool | None = None, polarization: str = "", n_workers: int | None = None,
           on_progress: Callable[[float, float, int], object] | None = None, **settings: Any) -> Candidates:
    """Finds dispersed pulses in detected power: levels, flags, dedispersion, boxcars, clusters, matched filter.

    Parameters
    ----------
    data : array of float32 [channel, time], a file or a list of files
        NaN is absent. Files: SIGPROC or search-mode PSRFITS; several are beams of one recording, or parts of it.
    frequency_hz, interval_s
        Of an array: centers of the channels (ascending) and the time from sample to sample.
    start_mjd_utc : float or astropy Time
        Of an array.
    output_directory, name, overwrite, pictures
        Of files: tables, database and pictures (default: yes) are written there; "" = nothing is.
    polarization : str
        Of files with several: "I" or "XXYY".
    n_workers : int
        Of files: threads; 0 = all cores.
    on_progress : callable(data_s, total_s, n_candidates), optional
        Of files. What it raises ends the search.
    **settings
        Keys of [search] in an observation file: dm_max, dm_min, plan, dm_step, threshold, width_max_s, mask_channels,
        zero_dm, flagging, implementation ... (docs/configuration.md).

    Returns
    -------
    Candidates

    Examples
    --------
    >>> import numpy as np, ryle
    >>> power = np.random.default_rng(1).normal(100, 10, (64, 16384)).astype(np.float32)
    >>> frequency = np.linspace(1.2e9, 1.5e9, 64)
    >>> delay = 4148.8064 * 200 * ((frequency / 1e6) ** -2 - 1500.0 ** -2)
    >>> for channel, shift in enumerate(np.rint(delay / 1e-3).astype(int)):
    ...     power[channel, 9000 + shift: 9004 + shift] += 40
    >>> found = ryle.search(power, frequency_hz=frequency, interval_s=1e-3, dm_max=400).unflagged
    >>> len(found), round(found[0]["dm_pc_cm3"]), round(found[0]["time_s"], 2)
    (1, 200, 9.0)
    """
    if isinstance(data, (str, os.PathLike)) or (isinstance(data, (list, tuple)) and data and isinstance(data[0], (str, os.PathLike))):
        files = [os.fspath(data)] if isinstance(data, (str, os.PathLike)) else [os.fspath(f) for f in data]
        if frequency_hz is not None or interval_s is not None:
            raise ValueError("frequency_hz and interval_s are of arrays; files say them themselves")
        _refuse({"start_mjd_utc": start_mjd_utc}, "of arrays; files say it themselves")
        if not output_directory:
            _refuse({"name": name, "overwrite": overwrite, "pictures": pictures}, "without output_directory nothing is written")
        if n_workers is not None and n_workers < 0:
            raise ValueError(f"n_workers is {n_workers}; 0 (all cores) or more is needed")
        all_searches = _ryle.search_files(files, os.fspath(output_directory), name, bool(overwrite), pictures is not False, polarization, n_workers or 0,
                                          on_progress, _plain(settings))
        events = [event for one in all_searches for event in one.pop("candidates")]
        summary = all_searches[0] if len(all_searches) == 1 else {"searches": all_searches}
        return Candidates(events, {"version": _ryle.version(), **summary})
    _refuse({"output_directory": output_directory, "name": name, "overwrite": overwrite, "pictures": pictures, "polarization": polarization,
             "n_workers": n_workers, "on_progress": on_progress}, "of files, not of arrays")
    if frequency_hz is None or interval_s is None:
        raise ValueError("an array needs frequency_hz and interval_s")
    array = _arrays.dense(data, "data", np.float32, 2, "[channel, time]")
    centers, width, interval = _band(frequency_hz, interval_s, array.shape[0])
    events, dms, implementation, flagged, n_hits = _ryle.search_array(array, centers, width, interval,
                                                                  0.0 if start_mjd_utc is None else mjd_utc(start_mjd_utc), _plain(settings))
    return Candidates(events, {"version": _ryle.version(), "implementation": implementation, "dm_trials": dms,
                               "flagged_channels": flagged, "n_hits": n_hits})


class Fold:
    """A series folded at a period.

    Attributes
    ----------
    profile : array of float64 [bin]
        Means of the bins.
    sums, counts : array [sub-integration, bin]
    middle_s : array [sub-integration]
    period_s : float
        Mean over the data, as observed.
    reduced_chi2 : float
        ``sum_b (p_b - p)^2 n_b / sigma^2 / (n_bins - 1)``.
    info : dict
        What else is known.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        self.profile: Array = values.pop("profile")
        self.sums: Array = values.pop("sums")
        self.counts: Array = values.pop("counts")
        self.middle_s: Array = values.pop("middle_s")
        self.reduced_chi2: float = values.pop("reduced_chi2")
        spin_hz = values["f0_hz"] + values["f1_hz_per_s"] * values["duration_s"] / 2  # its mean
        self.period_s: float = values.pop("period_s", 1.0 / spin_hz if spin_hz else 0.0)
        self.info = {"version": _ryle.version(), **values}

    def __repr__(self) -> str:
        return f"Fold(period {self.period_s:.9g} s, {self.profile.size} bins, reduced chi2 {self.reduced_chi2:.1f})"

    def to_xarray(self) -> Any:
        """An xarray Dataset: profile, sums and counts, with phase_turns and middle_s; needs xarray."""
        n = self.profile.size
        beside = ("sub_integration", "bin")
        return dataset("profile", self.profile, ("bin",),
                       {"phase_turns": ("bin", (np.arange(n) + 0.5) / n), "middle_s": ("sub_integration", self.middle_s)},
                       {"period_s": self.period_s, "reduced_chi2": self.reduced_chi2, **self.info}, sums=(beside, self.sums),
                       counts=(beside, self.counts))

    def plot(self, ax: Any = None) -> Any:
        """Draws two turns of the profile; needs matplotlib."""
        from . import _plot

        return _plot.profile(self, ax)


def fold(data: Any, *, period_s: Any = None, interval_s: Any = None, period_derivative: float = 0.0, n_bins: int = 128,
         n_sub_integrations: int | None = None, search: bool = True, drift_turns: float | None = None, par: str = "", dm: Any = None,
         k_dm: str | None = None, polarization: str = "", text: str = "", fits: str = "", picture: str = "",
         overwrite: bool | None = None) -> Fold:
    """Folds a time series, or a filterbank, at the period of a pulsar.

    Parameters
    ----------
    data : array of float32 [time] or a file
        NaN is absent. Files: SIGPROC .tim and .fil, search-mode PSRFITS.
    period_s : float or Quantity
        As observed at the first sample; of a file, `par` may say it instead.
    interval_s : float or Quantity
        Of an array.
    period_derivative : float
    n_bins, n_sub_integrations : int
        n_sub_integrations (64) is of arrays.
    search : bool
        Also over periods that drift by up to `drift_turns` (0.5) within the data.
    par : str
        Of a file: ephemeris of an isolated pulsar.
    dm : float or Quantity
        Of a filterbank; 0 with `par`: its own. `k_dm` as of `dm_trials`.
    text, fits, picture, overwrite
        Of a file: products.

    Returns
    -------
    Fold

    Examples
    --------
    >>> import numpy as np, ryle
    >>> t = np.arange(20000) * 1e-3
    >>> series = (np.cos(2 * np.pi * t / 0.25) > 0.95).astype(np.float32)
    >>> round(ryle.fold(series, period_s=0.2501, interval_s=1e-3).period_s, 4)
    0.25
    """
    period = 0.0 if period_s is None else number(period_s, "s")
    if not search:
        _refuse({"drift_turns": drift_turns}, "of a search over periods (search=True)")
    drift = 0.5 if drift_turns is None else drift_turns
    if isinstance(data, (str, os.PathLike)):
        if interval_s is not None:
            raise ValueError("interval_s is of arrays; files say it themselves")
        _refuse({"n_sub_integrations": n_sub_integrations}, "of arrays, not of files")
        if not (text or fits or picture):
            _refuse({"overwrite": overwrite}, "without text, fits or picture nothing is written")
        return Fold(_ryle.fold_file(os.fspath(data), os.fspath(par), period, period_derivative, number(0.0 if dm is None else dm, _DM), k_dm or "physical", n_bins,
                                    search, drift, text, fits, picture, bool(overwrite), polarization))
    _refuse({"par": par, "text": text, "fits": fits, "picture": picture, "overwrite": overwrite, "polarization": polarization, "dm": dm,
             "k_dm": k_dm}, "of files, not of arrays")
    if not period > 0 or interval_s is None:
        raise ValueError("an array needs period_s and interval_s, above 0")
    series = _arrays.dense(data, "data", np.float32, 1, "[time]")
    interval = number(interval_s, "s")
    f0 = 1.0 / period
    f1 = -period_derivative * f0 * f0
    half_range = drift / (series.size * interval) if search and series.size else 0.0
    return Fold(_ryle.fold_array(series, interval, f0, f1, n_bins, 64 if n_sub_integrations is None else n_sub_integrations, half_range))
