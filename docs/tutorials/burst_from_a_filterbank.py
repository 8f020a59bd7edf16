# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # A fast radio burst from a filterbank
#
# You will see FRB 180417: a flash of radio waves of a millisecond from another galaxy, found among 6.5 seconds of noise.
#
# The plasma between the stars and galaxies holds long waves back more than short ones. So a flash arrives first at high
# frequencies and sweeps down through the band. How much it is spread says how much plasma it came through: the
# dispersion measure (DM), in parsec per cubic centimetre. Nobody knows it beforehand, so a search tries hundreds.
#
# The file is a *filterbank*: power in 336 channels of the ASKAP telescope, 790 times a second.
# `python -m ryle.data fetch 28.fil` gets it, 1.7 MB.

# %%
import matplotlib.pyplot as plt
import numpy as np

import ryle
import ryle.data

filterbank = ryle.open(ryle.data.path("28.fil"))
print(filterbank)
print(f"{filterbank.frequency_hz[0] / 1e6:.0f} to {filterbank.frequency_hz[-1] / 1e6:.0f} MHz")

# %% [markdown]
# ## The search
#
# One call: levels are taken out, bad channels are left out, the channels are added along the sweep of each DM, and pulses
# of any width are looked for in the sums. Each event says its time, DM, width and signal-to-noise ratio with their errors.
# Events that look like interference have a flag and a reason; `unflagged` are the others.

# %%
found = ryle.search(ryle.data.path("28.fil"))
print(found.summary["plan"], "-", found.summary["flagged_channels"], "channels left out")
burst = found.unflagged[0]
print(found)
print(f"DM {burst['dm_pc_cm3']:.1f} +- {burst['dm_error']:.1f} pc/cm3, S/N {burst['snr']:.1f}, at {burst['time_s']:.3f} s, "
      f"{1e3 * burst['width_s']:.1f} ms wide")

# %% [markdown]
# Agarwal et al. (2020) give DM 474.8 for this burst. As an astropy table, with units:

# %%
table = found.table()
table["time_s", "dm_pc_cm3", "width_s", "snr"].pprint()

# %% [markdown]
# ## By hand, to see what the search did
#
# The time series at one DM: shift each channel by its delay, then add. `ryle.dedisperse` takes 8-bit codes, so each
# channel is brought to a mean of 24 and an rms of 8 first.

# %%
power = filterbank.read()
codes = 24 + 8 * (power - power.mean(axis=1, keepdims=True)) / power.std(axis=1, keepdims=True)
codes = np.rint(codes).clip(0, 63).astype(np.uint8)
trials = np.linspace(400, 550, 151)
plane = ryle.dedisperse(codes, trials, frequency_hz=filterbank.frequency_hz, interval_s=filterbank.interval_s)
sums = plane.array.astype(np.float64)
best = np.unravel_index(sums.argmax(), sums.shape)
print(f"highest sum at DM {trials[best[0]]:.0f}, {best[1] * filterbank.interval_s:.3f} s")

# %% [markdown]
# ## The picture
#
# The band against time as it arrived, averaged a little so that the eye finds the sweep, and the plane of DM and time: a
# bow tie whose middle is the burst. Interference from Earth would peak at DM 0.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), constrained_layout=True)
first, last = int(1.8 / filterbank.interval_s), int(3.0 / filterbank.interval_s)
band = codes[:, first:last - (last - first) % 4].reshape(84, 4, -1, 4).mean(axis=(1, 3))
extent = (1.8, 3.0, filterbank.frequency_hz[0] / 1e6, filterbank.frequency_hz[-1] / 1e6)
left.imshow(band, origin="lower", aspect="auto", vmin=21, vmax=33, extent=extent)
mhz = filterbank.frequency_hz / 1e6
sweep_s = burst["time_s"] + 4148.8064 * burst["dm_pc_cm3"] * (mhz**-2.0 - mhz[-1]**-2.0)
for shift_s in (-0.04, 0.04):
    left.plot(sweep_s + shift_s, mhz, "w--", linewidth=0.8)
left.set(xlabel="time (s)", ylabel="frequency (MHz)", xlim=(1.8, 3.0), title="FRB 180417 sweeps through the band")
plane.plot(right)
right.set_xlim(burst["time_s"] - 0.15, burst["time_s"] + 0.15)
right.set_title("sum along the sweep of each DM")
plt.show()
