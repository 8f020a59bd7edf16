# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # Calibration: what a wrong phase does, and how to undo it
#
# You will see a source vanish when the phases of 24 antennas are unknown, and come back when they have been solved for in
# a dozen lines of NumPy.
#
# Every antenna multiplies what it receives with a complex number of its own: its gain. Amplifiers and cables make it. An
# image adds antennas in phase, so unknown phases blur it to noise. A source whose direction is known gives them away.
#
# **What Ryle does today:** it applies gains, to spectra (`ryle.image(..., gains=)`, `SkyImager.set_gains`), to beams as
# their weights, and in runs from a table (`[calibration] gains`). It undoes the cables of a station file
# (`Layout.gains`). It finds gains, too: `ryle calibrate` and `ryle.calibrate` in files, with what is wild or dead left out and
# the error predicted (docs/calibration.md), `ryle.solve_gains` in arrays. Here the textbook method is written out: it takes few lines. Nothing
# has to be downloaded.

# %%
import matplotlib.pyplot as plt
import numpy as np

import ryle

LIGHT_M_S = 299792458.0
rng = np.random.default_rng(3)
n_antennas, frequency_hz = 24, 80e6
position_m = rng.uniform(-20, 20, (n_antennas, 3)) * [1, 1, 0]

# %% [markdown]
# ## Voltages of an array that is not calibrated
#
# One source stands at l = 0.3 (east), m = 0.4 (north). Each antenna turns it by the delay of the wave, adds noise of the
# same strength, and multiplies both with its gain.

# %%
l, m = 0.30, 0.40
turns = frequency_hz / LIGHT_M_S * position_m @ [l, m, np.sqrt(1 - l**2 - m**2)]
wave = np.exp(2j * np.pi * turns)
gain = rng.uniform(0.7, 1.3, n_antennas) * np.exp(2j * np.pi * rng.uniform(size=n_antennas))


def noise(*shape):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)) / np.sqrt(2)


n_spectra = 4000
voltages = 20 * gain * (noise(n_spectra, 1) * wave + noise(n_spectra, n_antennas))
codes = ryle.complex_codes(np.rint(voltages)[np.newaxis].clip(-127, 127), np.int8)
print(codes.shape, codes.dtype, "[channel, time, input, (re, im)]")

# %% [markdown]
# ## The image without calibration

# %%
settings = {"frequency_hz": [frequency_hz], "n_pixels": 128, "path": "vis-dft"}
before = ryle.image(codes, position_m, **settings)
x, y, _ = before.peak()
print("brightest at l = %.2f, m = %.2f" % before.direction(x, y)[:2])

# %% [markdown]
# ## The gains from the visibilities
#
# The visibility of a pair is `V_ij = g_i conj(g_j) M_ij`, where M is what the source alone would give. With all gains but
# one known, the last is a straight least-squares fit. Doing that for all in turn, and taking the mean of the last two
# steps, converges (Mitchell et al. 2008; Salvini and Wijnholds 2014). Autocorrelations hold the noise of the receivers and
# are left out. A phase that all antennas share cannot be known, so antenna 0 gets phase zero.

# %%
measured = ryle.correlate(codes).matrix()[0]
model = np.outer(wave, wave.conj())
np.fill_diagonal(measured, 0)
np.fill_diagonal(model, 0)
solved = np.full(n_antennas, np.sqrt(np.abs(measured).sum() / np.abs(model).sum()), complex)
for step in range(200):
    z = solved[:, np.newaxis] * model  # column j holds what antenna j is compared with
    fitted = (np.conj(measured) * z).sum(axis=0) / (np.abs(z) ** 2).sum(axis=0)
    change = np.abs(fitted - solved).max() / np.abs(fitted).max()
    solved = (solved + fitted) / 2 if step % 2 else fitted
    if change < 1e-8:
        break
solved *= np.exp(-1j * np.angle(solved[0]))
true = 20 * gain * np.exp(-1j * np.angle(gain[0]))
error = np.abs(solved - true) / np.abs(true)
print(f"{step + 1} steps; gains are right to {error.max():.1%}")

# %% [markdown]
# ## The image with calibration
#
# `gains=` is what voltages are multiplied with, so it is one over what was solved for. An antenna with gain 0 is left out.

# %%
after = ryle.image(codes, position_m, gains=(1 / solved).astype(np.complex64)[np.newaxis], **settings)
x, y, _ = after.peak()
found_l, found_m, _ = after.direction(x, y)
print(f"brightest at l = {found_l:.2f}, m = {found_m:.2f}")

# %% [markdown]
# ## The same gains for a run
#
# An observation file takes them as a table, which is divided out (`[calibration] gains = "gains.csv"`):

# %%
table = ["input,amplitude,phase_deg"]
table += [f"{k},{abs(g):.4f},{np.angle(g, deg=True):.2f}" for k, g in enumerate(solved)]
print("\n".join(table[:4]), "\n...")

# %% [markdown]
# A running observation takes another table without a stop: `ryle command RUN.sock gains new_gains.csv`. What else is not
# there yet: gains that depend on frequency or time in such a table, and polarization leakage.
#
# ## The picture

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), constrained_layout=True)
for ax, sky, title in zip(axes, (before, after), ("phases unknown", "calibrated")):
    sky.plot(ax)
    ax.plot(l, m, "o", color="white", markerfacecolor="none", markersize=20)
    ax.set_title(title)
plt.show()
