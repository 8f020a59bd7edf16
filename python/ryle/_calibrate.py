# SPDX-License-Identifier: BSD-3-Clause
"""Gains of antennas from visibilities and a model of the sky."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from . import _ryle
from ._arrays import Array
from ._files import VisibilityFile, read_visibilities


class Gains:
    """Complex gains, what is known of their errors, and how they were found.

    ``v_recorded = g v_sky``, so that ``V_ij = g_i conj(g_j) V_sky,ij``: calibration divides.

    Attributes
    ----------
    array : array of complex [antenna, channel, pol]
        1 where flagged.
    flags : array of bool [antenna, channel, pol]
        True: no gain.
    sigma_rad, sigma_amplitude : array of float [antenna, channel, pol]
        Errors of the phase and, relative, of the amplitude.
    frequency_hz : array [channel]
        Middles of what shares a gain.
    report : dict
        As `ryle calibrate --json` prints it: inputs that were left out, errors predicted and found, delays.
    """

    axes = ("antenna", "channel", "pol")

    def __init__(self, gains: _ryle.Gains) -> None:
        self._gains = gains
        self.array: Array = np.asarray(gains.gains())
        self.flags: Array = np.asarray(gains.flags()).astype(bool)
        self.sigma_rad: Array = np.asarray(gains.sigma_rad())
        self.sigma_amplitude: Array = np.asarray(gains.sigma_amplitude())
        self.frequency_hz: Array = np.asarray(gains.center_hz())
        self.report: dict[str, Any] = json.loads(gains.report())

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes CalH5 (.h5), which pyuvdata reads, or the table of `calibration.gains` (.csv)."""
        self._gains.write(os.fspath(path), overwrite)

    def picture(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Amplitudes, phases and residuals as .png, .pdf or .svg."""
        self._gains.picture(os.fspath(path), overwrite)

    def __repr__(self) -> str:
        n_antennas, n_channels, n_pols = self.array.shape
        return f"Gains({n_antennas} antennas, {n_channels} channels, {n_pols} polarization{'s' if n_pols > 1 else ''}, " \
               f"{int(self.flags.all(axis=1).sum())} inputs without a gain)"


def calibrate(visibilities: VisibilityFile | str | os.PathLike[str], model: str = "sun", *, channels: int = 1, method: str = "auto",
              polarization: str = "each", fluxes: str = "auto", uv_min: float = 2.0, beam: str = "isotropic",
              min_elevation_deg: float = 10.0, drop_below: float = 0.3, drop_above: float = 3.0, reference: str = "auto",
              max_sigma_deg: float = 10.0, max_rounds: int = 100, implementation: str = "auto") -> Gains:
    """Finds the gains of the antennas of visibilities from a model of the sky, as `ryle calibrate` does (docs/calibration.md).

    Inputs that are dead, wild or do not see the model are left out and named in `Gains.report`. Raises `DataError` where
    the error of the phases would be above `max_sigma_deg`, with the number of spectra that would do.

    Parameters
    ----------
    visibilities : VisibilityFile or path
    model : str
        Sources, "sun,cas-a" or "a-team", and files of them.
    channels : int
        That share a gain; 0 = all.
    method, polarization, fluxes, uv_min, beam, min_elevation_deg, drop_below, drop_above, reference, max_sigma_deg, max_rounds, implementation
        The keys of [calibrate] in docs/configuration.md.

    Examples
    --------
    >>> import ryle
    >>> gains = ryle.calibrate("vis.uvh5", "cyg-a")  # doctest: +SKIP
    >>> gains.write("gains.h5")  # doctest: +SKIP
    """
    file = visibilities if isinstance(visibilities, VisibilityFile) else read_visibilities(visibilities)
    keys = {"model": model, "method": method, "polarization": polarization, "fluxes": fluxes, "uv_min": float(uv_min), "beam": beam,
            "min_elevation_deg": float(min_elevation_deg), "drop_below": float(drop_below), "drop_above": float(drop_above),
            "reference": reference, "max_sigma_deg": float(max_sigma_deg), "max_rounds": max_rounds, "implementation": implementation}
    overrides = [f"calibrate.{key}={json.dumps(value)}" for key, value in keys.items()]
    return Gains(_ryle.calibrate(file._file, overrides, channels))


def solve_gains(visibilities: Array, model: Array, weights: Array | None = None, *, method: str = "stefcal", max_rounds: int = 100,
                tolerance: float = 1e-7, reference: int = 0, implementation: str = "auto") -> tuple[Array, Array, Array]:
    """Gains of arrays of visibilities: minimises ``sum w |V_ij - g_i conj(g_j) M_ij|^2`` over the pairs of inputs, channel by channel.

    Parameters
    ----------
    visibilities, model : array of complex128 [channel, baseline]
        Baseline j (j + 1) / 2 + i of inputs i <= j, as `ryle.correlate` has them; autocorrelations are not used.
    weights : array of float [channel, baseline], optional
        1 / variance; 0 = absent. Default: 1 where visibilities are finite.
    method : str
        "stefcal" or "eigenvector".
    max_rounds : int
    tolerance : float
        Relative change of the gains in a round that ends it.
    reference : int
        Input whose phase is 0.
    implementation : str

    Returns
    -------
    gains : array of complex128 [channel, input]
        0 where there is none: no data, or a channel that did not converge.
    flags : array of bool [channel, input]
    sigma_rad : array of float [channel, input]
        Least-squares errors of the phases, for noise that is independent between baselines.

    Examples
    --------
    >>> import numpy as np, ryle
    >>> g = np.exp(1j * np.arange(5))
    >>> pairs = [(i, j) for j in range(5) for i in range(j + 1)]
    >>> v = np.array([[g[i] * g[j].conj() for i, j in pairs]])
    >>> gains, flags, sigma_rad = ryle.solve_gains(v, np.ones_like(v))
    >>> bool(np.allclose(gains[0], g / g[0]))
    True
    """
    for name, array in (("visibilities", visibilities), ("model", model)):
        if not np.iscomplexobj(array):
            raise TypeError(f"{name} must be complex numbers, not {np.asarray(array).dtype}; ryle.to_complex makes them of pairs of integers")
    v = np.ascontiguousarray(visibilities, dtype=np.complex128)
    m = np.ascontiguousarray(np.broadcast_to(model, v.shape), dtype=np.complex128)
    w = np.ones(v.shape) if weights is None else np.ascontiguousarray(np.broadcast_to(weights, v.shape), dtype=np.float64)
    gains, flags, sigma, _ = _ryle.solve_gains(v, m, w, method, max_rounds, tolerance, reference, implementation)
    return np.asarray(gains), np.asarray(flags).astype(bool), np.asarray(sigma)
