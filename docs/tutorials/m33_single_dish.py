# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # The hydrogen of M33 with a single dish
#
# You will see the disc of hydrogen of the galaxy M33, as the 500-metre dish FAST drew it with 19 beams at once.
#
# A single dish measures one number per beam and instant: how bright the sky is where the beam points. While the telescope
# scans, the samples fall on the sky in lines, never on the pixels of a map. Gridding makes the map: each pixel is the mean
# of the samples around it, weighted by their distance.
#
# `python -m ryle.data fetch 1421-1425_hor_input1.hdf5` gets the scans, 0.8 MB.

# %%
import matplotlib.pyplot as plt
import numpy as np
from astropy.coordinates import SkyCoord
from astropy.wcs import WCS

import ryle
import ryle.data

scans = ryle.open(ryle.data.path("1421-1425_hor_input1.hdf5"))
longitude, latitude = scans.positions()
temperature = scans.read()[0]
print(scans)
print(f"right ascension {longitude.min():.2f} to {longitude.max():.2f}, declination {latitude.min():.2f} to {latitude.max():.2f} degrees")

# %% [markdown]
# ## The map
#
# The map that you want is an astropy `WCS`: 180 x 180 pixels of one arc minute about M33. `beam` is the resolution of the
# telescope; samples count with a Gaussian of half that width, out to three sigma.

# %%
wcs = WCS(naxis=2)
wcs.wcs.ctype = ["RA---SIN", "DEC--SIN"]
wcs.wcs.crval = [23.46, 30.66]
wcs.wcs.crpix = [90, 90]
wcs.wcs.cdelt = [-1 / 60, 1 / 60]
hydrogen = ryle.grid(longitude, latitude, temperature, wcs, shape=(180, 180), beam="2.9arcmin")
print(hydrogen, hydrogen.summary)

# %% [markdown]
# ## What is behind each pixel
#
# Pixels that no sample reaches are NaN, not zero. `counts` says how many samples a pixel has, `noise` how much smaller its
# noise is than that of one sample.

# %%
values = hydrogen.array[0]
covered = np.isfinite(values)
print(f"{covered.sum()} of {values.size} pixels have samples, {np.median(hydrogen.counts[0][covered]):.0f} each in the median; "
      f"noise {np.median(hydrogen.noise[0][covered]):.2f} of that of a sample")
y, x = np.unravel_index(np.nanargmax(values), values.shape)
peak_k = float(values[y, x])
print(f"brightest: {peak_k:.3f} K at {wcs.pixel_to_world(x, y).to_string('hmsdms', precision=0)}")

# %% [markdown]
# Many thousands of channels go through the same call as `[channel, sample]`: weights are computed once for all of them.
# Where scans come night after night, `ryle.Gridder` adds each and `finish()` gives the map so far.
#
# ## The picture
#
# The ellipse is the size of the optical galaxy, 71 by 42 arc minutes. The band begins at 1421 MHz, which is hydrogen that
# comes toward us with 125 km/s. M33 as a whole comes with 180 km/s, and its disc turns: so the map shows the half in the
# north-east, which turns toward us, and little of the other. The faint arm in the north-west is a part of the outer disc.

# %%
ax = hydrogen.plot(channel=0)
centre = SkyCoord(23.462, 30.660, unit="deg")
angle = np.linspace(0, 2 * np.pi, 100)
major, minor, position_angle = 35.4 / 60, 20.9 / 60, np.deg2rad(23)
north = major * np.cos(angle) * np.cos(position_angle) - minor * np.sin(angle) * np.sin(position_angle)
east = major * np.cos(angle) * np.sin(position_angle) + minor * np.sin(angle) * np.cos(position_angle)
ax.plot(centre.ra.deg + east / np.cos(centre.dec.rad), centre.dec.deg + north, "w--", transform=ax.get_transform("world"))
ax.set(xlabel="right ascension", ylabel="declination", title="M33, 1421 to 1425 MHz: antenna temperature (K)")
plt.show()
