# SPDX-License-Identifier: BSD-3-Clause
"""Pictures by matplotlib, which is imported when one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._labels import needed


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return needed("matplotlib.pyplot", "plot()").subplots(constrained_layout=True)[1]


def _image(ax: Any, pixels: Any, label: str, **more: Any) -> Any:
    picture = ax.imshow(pixels, origin="lower", interpolation="nearest", **more)
    ax.figure.colorbar(picture, ax=ax, label=label)
    return ax


def bandpass(spectra: Any, ax: Any) -> Any:
    ax = _axes(ax)
    with np.errstate(divide="ignore"):
        power = 10 * np.log10((np.abs(spectra.complex()) ** 2).mean(axis=1))
    known = spectra.frequency_hz is not None
    ax.plot(spectra.frequency_hz / 1e6 if known else np.arange(len(power)), power)
    ax.set(xlabel="frequency (MHz)" if known else "channel", ylabel="power (dB)")
    return ax


def matrix(visibilities: Any, ax: Any, channel: int | None) -> Any:
    amplitude = np.abs(visibilities.matrix())
    ax = _image(_axes(ax), amplitude.mean(axis=0) if channel is None else amplitude[channel], "amplitude")
    ax.set(xlabel="input j", ylabel="input i")
    return ax


def waterfall(beams: Any, ax: Any, beam: int) -> Any:
    values = beams.array[beam]
    power = np.abs(values[..., 0]) ** 2 if beams.axes[1] == "channel" else values[0]
    ax = _image(_axes(ax), power, "power", aspect="auto")
    ax.set(xlabel="time (samples)", ylabel="channel")
    return ax


def dm_time(dedispersed: Any, ax: Any) -> Any:
    end_s = dedispersed.array.shape[1] * dedispersed.interval_s
    extent = (0, end_s, dedispersed.dm[0], dedispersed.dm[-1])
    ax = _image(_axes(ax), dedispersed.array, "sum", aspect="auto", extent=extent if extent[2] < extent[3] else None)
    ax.set(xlabel="time (s)", ylabel="DM (pc cm$^{-3}$)")
    return ax


def candidates(found: Any, ax: Any) -> Any:
    ax = _axes(ax)
    for flagged in (True, False):
        events = [e for e in found if bool(e["flags"]) == flagged]
        ax.scatter([e["time_s"] for e in events], [e["dm_pc_cm3"] for e in events], s=[4 * e["snr"] for e in events],
                   facecolors="none", edgecolors="0.7" if flagged else "C0", label="flagged" if flagged else "candidates")
    ax.set(xlabel="time (s)", ylabel="DM (pc cm$^{-3}$)")
    ax.legend()
    return ax


def profile(fold: Any, ax: Any) -> Any:
    ax = _axes(ax)
    n = fold.profile.size
    ax.step(np.arange(2 * n) / n, np.tile(fold.profile, 2), where="mid")
    ax.set(xlabel="phase (turns)", ylabel="mean")
    return ax


def image(picture: Any, ax: Any, plane: int, bin: int) -> Any:
    half = picture.array.shape[-1] * picture.cell / 2
    ax = _image(_axes(ax), picture.array[plane, bin], picture.planes[plane], extent=(half, -half, -half, half))
    ax.set(xlabel="l (east)", ylabel="m (north)")
    return ax


def sky_map(cells: Any, ax: Any, channel: int | None) -> Any:
    if cells.array.ndim != 3:
        raise ValueError("a list of cells is no picture")
    if ax is None and cells.wcs is not None:
        ax = needed("matplotlib.pyplot", "plot()").figure(constrained_layout=True).add_subplot(projection=getattr(cells.wcs, "celestial", cells.wcs))
    if channel is None:
        good = np.isfinite(cells.array)
        total, n = np.where(good, cells.array, 0).sum(axis=0), good.sum(axis=0)
        values = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    else:
        values = cells.array[channel]
    return _image(_axes(ax), values, "value")
