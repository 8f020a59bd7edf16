# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # The Sun from antenna voltages
#
# You will see the Sun, and the direction in which it stood, made of 42 microseconds of what 64 antennas received.
#
# The Long Wavelength Array in New Mexico has crossed dipoles on the ground. Each sees the whole sky, so nothing was
# pointed at the Sun. An image is made afterwards: for each direction the voltages of all antennas are delayed as a wave
# from there would need it, added, and squared.
#
# Two files are needed, 90 kB together. `python -m ryle.data fetch tbx-test.dat lwana-ssmif-2024may.txt` gets them.

# %%
import matplotlib.pyplot as plt
import numpy as np
from astropy.coordinates import AltAz, get_sun

import ryle
import ryle.data

# %% [markdown]
# ## All of it in ten lines
#
# The recording holds spectra: complex voltages of 128 inputs (64 antennas, two polarizations each) in 312 channels.
# The station file says where the antennas stand, how long their cables are, and which of them are broken.

# %%
recording = ryle.open(ryle.data.path("tbx-test.dat"))
station = ryle.read_layout(ryle.data.path("lwana-ssmif-2024may.txt"))
spectra = recording.spectra()
sky = ryle.image(spectra, station)

x, y, value = sky.peak()
frame = AltAz(obstime=sky.time, location=station.location)
found = sky.wcs.pixel_to_world(x, y).transform_to(frame)
sun = get_sun(sky.time).transform_to(frame)
separation_deg = found.separation(sun).deg
print(f"{sky.time.utc.isot}: brightest at azimuth {found.az:.1f}, altitude {found.alt:.1f}")
print(f"the Sun by its ephemeris:              azimuth {sun.az:.1f}, altitude {sun.alt:.1f}: {separation_deg:.2f} degrees away")

# %% [markdown]
# A pixel is 1.1 degrees wide at the zenith, so the brightest one is as close to the Sun as a pixel can be.
#
# ## How sure is that?
#
# One spectrum of one instant is noise, too. The usual measure compares the peak with the scatter of the other pixels of
# the sky. The scatter is taken from the median of absolute deviations, which the Sun itself does not move.

# %%
pixels = sky.array[0, 0]
noise = 1.4826 * np.nanmedian(np.abs(pixels - np.nanmedian(pixels)))
sigma = (value - np.nanmedian(pixels)) / noise
print(f"{spectra}: the Sun stands {sigma:.1f} sigma above the sky")

# %% [markdown]
# ## What ran
#
# A result carries what it was made with. Here the voltages were imaged directly, without visibilities, since that was
# predicted to be the fastest of the paths that are exact enough. `path="vis-dft"` takes another, with the same image.

# %%
print(sky.provenance["path"], sky.provenance["implementation"])
print(sky.provenance["reason"])

# %% [markdown]
# ## The picture
#
# East is on the left, as on the sky when one looks up with the north ahead. The horizon is the edge of the disc. The
# cross is where the ephemeris puts the Sun.

# %%
ax = sky.plot()
east, north = np.cos(sun.alt) * np.sin(sun.az), np.cos(sun.alt) * np.cos(sun.az)
ax.plot(east, north, "+", color="white", markersize=24)
ax.annotate("Sun", (east, north), xytext=(14, 10), textcoords="offset points", color="white")
ax.set_title(f"LWA North Arm, {recording.frequency_hz.mean() / 1e6:.1f} MHz, one spectrum of 42 microseconds")
plt.show()
