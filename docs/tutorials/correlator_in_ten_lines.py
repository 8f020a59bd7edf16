# SPDX-License-Identifier: BSD-3-Clause
# %% [markdown]
# # A correlator in ten lines, beside NumPy
#
# You will see a noise source that two antennas have in common, in the middle of noise that each has of its own, and that
# Ryle's sums are those of NumPy to the last bit.
#
# A correlator multiplies the voltages of each pair of antennas and adds the products up. Noise of one receiver averages
# away, what two receive together stays, with the phase of the delay between them. Nothing has to be downloaded.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import ryle

# %% [markdown]
# ## Voltages
#
# Eight antennas in a row, sampled 8 million times a second for a twentieth of a second. A weak source of noise arrives at
# each antenna two samples after the one before it.

# %%
rng = np.random.default_rng(7)
n_inputs, n_samples, late_samples = 8, 400_000, 2
source = rng.normal(0, 8, n_samples + n_inputs * late_samples)
samples = np.stack([source[n_inputs * late_samples - k * late_samples:][:n_samples] for k in range(n_inputs)])
samples = np.rint(samples + rng.normal(0, 16, samples.shape)).clip(-127, 127).astype(np.int8)
print(samples.shape, samples.dtype, f"source {8**2 / (8**2 + 16**2):.0%} of the power")

# %% [markdown]
# ## The correlator
#
# F: a filter bank cuts the band into channels. X: every pair is multiplied and summed. `visibilities.sums` are integers,
# `counts` says how many spectra are behind each, `array` is the mean.

# %%
spectra = ryle.channelize(samples, 64, n_taps=4, sample_rate_hz=8e6)
begin = time.perf_counter()
visibilities = ryle.correlate(spectra)
ryle_s = time.perf_counter() - begin
print(spectra)
print(visibilities)

# %% [markdown]
# ## The same in NumPy
#
# The definition is one line: `V_ij = sum_t v_i(t) conj(v_j(t))`. The spectra are pairs of 8-bit integers, so all sums are
# integers below 2^53, which a float64 holds exactly. They must be equal, not only close.

# %%
v = ryle.to_complex(spectra.array).astype(np.complex128)
begin = time.perf_counter()
matrix = np.einsum("cti,ctj->cij", v, v.conj())
numpy_s = time.perf_counter() - begin
i, j = visibilities.pairs.T
sums = visibilities.sums[..., 0] + 1j * visibilities.sums[..., 1]
n_different = int(np.count_nonzero(sums != matrix[:, i, j]))
print(f"{sums.size} sums, {n_different} different; {1e3 * ryle_s:.1f} ms with Ryle, {1e3 * numpy_s:.1f} ms with einsum here")

# %% [markdown]
# ## What is in it
#
# The coherence of a pair is its visibility over the root of both powers: 0 for noise of their own, 1 for the same signal.
# Between antennas that are d apart in the row the source is 2 d samples late. So its phase turns with frequency, and the
# slope of the phase is the delay.

# %%
power = visibilities.matrix()[:, range(n_inputs), range(n_inputs)].real
neighbours = visibilities.matrix()[:, 0, 1] / np.sqrt(power[:, 0] * power[:, 1])
inner = slice(2, -2)  # the outermost channels lie on the edges of the band
turn_rad = np.angle(np.sum(neighbours[inner][1:] * neighbours[inner][:-1].conj()))
delay_samples = turn_rad / (2 * np.pi * spectra.channel_width_hz) * 8e6
print(f"coherence {np.abs(neighbours[inner]).mean():.3f}, delay {delay_samples:.2f} samples")

# %% [markdown]
# ## The picture

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
visibilities.plot(left)
left.set_title("amplitudes of all pairs")
for k in (1, 2, 4):
    right.plot(spectra.frequency_hz / 1e6, np.rad2deg(np.angle(visibilities.matrix()[:, 0, k])), ".-", label=f"antennas 0 and {k}")
right.set(xlabel="frequency (MHz)", ylabel="phase (degrees)", title="the delay is the slope of the phase")
right.legend()
plt.show()
