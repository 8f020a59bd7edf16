# SPDX-License-Identifier: BSD-3-Clause
"""GPS satellites in the TART recording: their C/A replicas, and the joint fit of antenna phases and directions.

A replica is what a receiver would make itself: the satellite's code at the acquired phase, on the intermediate frequency plus
the Doppler shift, cut to one bit. Correlated with the antennas, it gives the phase with which the satellite reaches each.
"""
import json
import pathlib

import h5py
import numpy as np

SPEED_OF_LIGHT = 299792458.0
RADIO_FREQUENCY = 1575.42e6
CHIP_RATE = 1.023e6
# Doppler shifts in Hz as acquired from this recording (PROVENANCE.md of the test data).
DOPPLER = {2: 3400, 4: 1450, 8: 2250, 9: 2600, 16: 500, 18: -1000, 26: 250, 27: 600, 28: -1600, 31: 350, 32: -2900}
# Output taps of the second register, IS-GPS-200 table 3-Ia, for the PRNs above.
TAPS = {2: (3, 7), 4: (5, 9), 8: (2, 9), 9: (3, 10), 16: (9, 10), 18: (2, 5), 26: (6, 8), 27: (7, 9), 28: (8, 10),
        31: (3, 8), 32: (4, 9)}


def load(folder):
    """Samples as 0 and 1 [antenna][sample], the recorder's configuration, positions (east, north) in metres."""
    folder = pathlib.Path(folder)
    with h5py.File(folder / "mg-tana-raw.hdf") as f:
        bits = np.unpackbits(f["data"][:], axis=1)  # most significant bit first
        config = json.loads(f["config"][0])
    positions = np.array(json.loads((folder / "antenna_positions.json").read_text())["antenna_positions"])
    return bits, config, positions[:, :2]


def gold_code(prn):
    """1023 chips of +-1."""
    g1, g2, chips = [1] * 10, [1] * 10, []
    a, b = TAPS[prn]
    for _ in range(1023):
        chips.append(1 - 2 * (g1[9] ^ g2[a - 1] ^ g2[b - 1]))
        g1, g2 = [g1[2] ^ g1[9]] + g1[:9], [g2[1] ^ g2[2] ^ g2[5] ^ g2[7] ^ g2[8] ^ g2[9]] + g2[:9]
    return np.array(chips)


def replicas(bits, config, antennas=(0, 14)):
    """One replica a satellite, 0 and 1 [satellite][sample]; code phases from the recording itself."""
    t = np.arange(bits.shape[1]) / config["sampling_frequency"]
    made = []
    for prn, chips in codes(bits, config, antennas):
        made.append(chips * np.cos(2 * np.pi * (config["baseband_frequency"] + DOPPLER[prn]) * t) > 0)
    return np.array(made).astype(np.uint8)


def codes(bits, config, antennas=(0, 14)):
    """Every satellite with its code of +-1 [sample], as it arrived."""
    rate, carrier = config["sampling_frequency"], config["baseband_frequency"]
    n = int(rate * 1e-3)  # samples of one code period
    periods = bits.shape[1] // n
    t = np.arange(bits.shape[1]) / rate
    x = bits[list(antennas), :periods * n].astype(np.float32) * 2 - 1
    x -= x.mean(1, keepdims=True)
    for prn, doppler in DOPPLER.items():
        chips = gold_code(prn)
        period = chips[(np.arange(n) * CHIP_RATE / rate).astype(int)]
        spectrum = np.conj(np.fft.fft(period))
        mix = np.exp(-2j * np.pi * (carrier + doppler) * t[:periods * n]).astype(np.complex64)
        power = np.zeros(n)
        for antenna in x:
            code = np.fft.ifft(np.fft.fft((antenna * mix).reshape(periods, n), axis=1) * spectrum, axis=1)
            power += (np.abs(code)**2).sum(0)
        # Whole samples: chip of sample i is floor((i - delay) / 16), in integers.
        chip = (np.arange(len(t)) - power.argmax()) * len(chips) // n % len(chips)
        yield prn, chips[chip]


def array_vectors(products):
    """products [satellite][antenna][dump] of antenna and replica -> first eigenvector and eigenvalue ratio of each satellite."""
    vectors, ratios = {}, {}
    for prn, a in zip(DOPPLER, products):
        values, u = np.linalg.eigh(a @ a.conj().T)
        vectors[prn], ratios[prn] = u[:, -1], float(values[-1] / values[-2])
    return vectors, ratios


def joint_fit(vectors, positions, reference=27):
    """The coherence of each satellite after the joint fit."""
    return fit(vectors, positions, reference)[2]


def fit(vectors, positions, reference=27):
    """Fits one phase an antenna and one direction a satellite (relative to the reference). Returns the antennas' phase factors,
    the directions, and the coherence of each satellite."""
    k = 2 * np.pi * RADIO_FREQUENCY / SPEED_OF_LIGHT

    def unit(v):
        return v / np.abs(v)

    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 401), np.linspace(-2, 2, 401)), -1).reshape(-1, 2)
    steering = np.exp(1j * k * (grid @ positions.T))
    directions = {}
    for prn, u in vectors.items():
        relative = unit(u * vectors[reference].conj())
        directions[prn] = grid[np.abs(steering @ relative.conj()).argmax()]
    steps = np.stack(np.meshgrid(np.linspace(-.02, .02, 9), np.linspace(-.02, .02, 9)), -1).reshape(-1, 2)
    for width in np.geomspace(1, 0.02, 40):  # alternate antenna phases and directions, in ever finer steps
        phases = 0
        for prn, u in vectors.items():
            r = unit(u) * np.exp(-1j * k * (positions @ directions[prn]))
            phases = phases + r * unit(r.sum().conj())
        phases = unit(phases)
        for prn, u in vectors.items():
            tried = directions[prn] + width * steps
            score = np.abs(np.exp(-1j * k * (tried @ positions.T)) @ (unit(u) * phases.conj()))
            directions[prn] = tried[score.argmax()]
    coherence = {prn: float(abs(np.sum(unit(u) * np.exp(-1j * k * (positions @ directions[prn])) * phases.conj()))) /
                 len(phases) for prn, u in vectors.items()}
    return phases, directions, coherence


def above_the_horizon(phases, directions, positions):
    """The fit leaves one shift of all directions free: a gradient of the phases. Eleven satellites over the whole sky fit inside
    the horizon with hardly more than one of them, the centre of their smallest circle."""
    k = 2 * np.pi * RADIO_FREQUENCY / SPEED_OF_LIGHT
    places = np.array(list(directions.values()))
    center = places.mean(0)
    for step in np.geomspace(0.3, 3e-6, 4000):  # a step towards the farthest (Badoiu and Clarkson 2003)
        away = places - center
        center = center + step * away[np.hypot(*away.T).argmax()]
    return phases * np.exp(1j * k * (positions @ center)), {prn: d - center for prn, d in directions.items()}


def write_gains(path, phases):
    lines = [f"{k},1,{np.degrees(np.angle(p)):.3f}\n" for k, p in enumerate(phases)]
    path.write_text("input,amplitude,phase_deg\n" + "".join(lines))
