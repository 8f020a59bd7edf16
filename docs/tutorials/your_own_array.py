# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # Your own array, from a description of its packets
#
# You will see an array that exists nowhere, with packets that nobody programmed, simulated, correlated and imaged: its
# source is where it was put.
#
# Arrays send what their antennas receive as packets over a network, and each has a layout of its own. Ryle reads a
# description of it from the observation file, so a new array takes an evening and no line of C++. `docs/bring_up.md` says
# everything that can be described. Nothing has to be downloaded.

# %%
import pathlib
import socket
import tempfile

import matplotlib.pyplot as plt
import numpy as np

import ryle

folder = pathlib.Path(tempfile.mkdtemp(prefix="own_array_"))

# %% [markdown]
# ## The antennas
#
# A line for each input, in the order in which the boards have them. Here 32 antennas with one polarization lie within 40 m.

# %%
rng = np.random.default_rng(20)
position_m = rng.normal(0, 12, (32, 2)).clip(-40, 40)
lines = ["antenna,east_m,north_m,up_m,pol,cable_delay_ns"]
lines += [f"A{k:02d},{east:.2f},{north:.2f},0.0,X,{rng.uniform(100, 300):.2f}" for k, (east, north) in enumerate(position_m)]
(folder / "own.csv").write_text("\n".join(lines) + "\n")

# %% [markdown]
# ## The packets
#
# Two boards serve 16 antennas each. A packet has 8 bytes of header: the number of the packet (6 bytes, big-endian), the
# number of the board and a byte that is always 0xA5. Then come 64 instants of 16 complex samples, 8 bits for each part.
#
# `kind = "simulator"` sends such packets to this machine. For the real array it is `"network"`, and all else stays.

# %%
observation_toml = """
schema = 1

[telescope]
name = "Own"
layout = "own.csv"
latitude_deg = -30.0
longitude_deg = 21.4
height_m = 1000.0

[source]
kind = "simulator"
format = "described"
listen = ["udp://127.0.0.1:4015"]
start_utc = "2026-03-01T12:00:00"
sample_rate_hz = 500000
center_mhz = 120.0
chunk_ms = 16.384
allow_small_rcvbuf = true      # packets of one machine need no large buffer

[source.packet]
length = 2056
header = [
  {field = "sequence", type = "u48be", offset = 0, ticks_per_count = 64},
  {field = "board", type = "u8", offset = 6},
  {field = "constant", type = "u8", offset = 7, value = 0xA5},
]
payload = {offset = 8, order = ["time", "input"], extents = {time = 64, input = 16}, sample = "ci8"}

[simulator]
duration_s = 0.5
wait_for_run = true
sefd_jy = 4000.0
rms_lsb = 20.0
period_samples = 65536

[[simulator.source]]
name = "A"
l = 0.40
m = -0.25
flux_jy = 2000.0

[channelize]
n_channels = 32

[correlate]
integration_s = 0.25

[output]
directory = "out"
name = "own"
ms = false
uvfits = false
uvh5 = true
pictures = false
overwrite = true
"""
(folder / "own.toml").write_text(observation_toml)

# %% [markdown]
# ## The run
#
# Mistakes in the file are errors before anything runs, with the line and what would work. The summary accounts for every
# packet: used, lost, late, or rejected with a reason.

# %%
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # a port that nobody has on this machine
    probe.bind(("127.0.0.1", 0))
    listen = f"udp://127.0.0.1:{probe.getsockname()[1]}"
observation = ryle.Observation(folder / "own.toml", set={"output.directory": str(folder / "out"), "source.listen": [listen]})
summary = observation.run()
print(f"{summary['packets_used']} packets used, {summary['packets_rejected_total']} rejected, "
      f"{summary['lost_samples']} samples lost, {summary['integrations']} integrations")

# %% [markdown]
# ## Visibilities
#
# The product is a UVH5 file, which pyuvdata and CASA (as `.ms`) read as well. Cable delays of the array file are undone.

# %%
visibilities = observation.open("uvh5")
print(visibilities, visibilities.data.shape)

# %% [markdown]
# ## The picture
#
# The source was put at l = 0.40 (east), m = -0.25 (south of the zenith).

# %%
sky = visibilities.image(n_pixels=256, channel_average=32)
x, y, value = sky.peak()
l, m, _ = sky.direction(x, y)
print(f"brightest at l = {l:.3f}, m = {m:.3f}")
ax = sky.plot()
ax.plot(0.40, -0.25, "o", color="white", markerfacecolor="none", markersize=20)
ax.set_title("an array of 32 antennas, described by 20 lines")
plt.show()
