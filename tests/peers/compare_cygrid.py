#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The gridder beside Cygrid and the direct sum, all in double, on cases A and B of the benchmarks and on M33.

    compare_cygrid.py GRID_SUMS [CASE[:SIGMAS[:SAMPLES]] ...] [--m33 FOLDER] [--direct]

GRID_SUMS is tests/peers/grid_sums of a build. A case's support is so many sigma (5); SAMPLES takes as many of case B.
--direct sums over all pairs, too, which takes minutes. Every line is a row of docs/decisions/0014.

Cygrid misses samples at the edge of the support, so cells may differ from it. Each such cell must be explained by them:
without one to three samples of the outermost 3 % it is Cygrid's, weight and value to 1e-11."""
import argparse
import dataclasses
import itertools
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

FWHM_DEG = 2.9 / 60
SIGMA_DEG = FWHM_DEG / np.sqrt(8 * np.log(2))
CELL_DEG = 120 / 3600


@dataclasses.dataclass
class Case:
    name: str
    lon: np.ndarray
    lat: np.ndarray
    values: np.ndarray
    header: dict
    sigma_deg: float
    support_deg: float


def header_of(nx, ny, lon, lat, cell_deg):
    return {"NAXIS": 2, "NAXIS1": nx, "NAXIS2": ny, "CTYPE1": "RA---SIN", "CTYPE2": "DEC--SIN", "CUNIT1": "deg", "CUNIT2": "deg",
            "CDELT1": -cell_deg, "CDELT2": cell_deg, "CRPIX1": nx / 2, "CRPIX2": ny / 2, "CRVAL1": lon, "CRVAL2": lat}


def benchmark(name, n_sigma=5.0, size=None, side=150):
    """Cases A and B as the gridder's benchmarks define them, channel 0; of B the middle `side` cells of a side."""
    if name == "A":
        lon0, lat0, tracks, along = 70.04, 36.29, 521, 5432
        rng = np.random.default_rng(20250001)
        half = 27.5 / np.cos(np.radians(lat0))
        step = 2 * half / along
        phase = rng.uniform(-.5, .5, tracks)
        wobble = rng.uniform(0, 2 * np.pi, tracks)
        lon = lon0 - half + (np.arange(along)[None, :] + .5) * step + phase[:, None] * step
        lat = (lat0 - 5 + 10 * (np.arange(tracks)[:, None] + .5) / tracks
               + 5 / 3600 * np.sin(2 * np.pi * (lon - lon0) / 7.3 + wobble[:, None]))
        lon, lat, header = lon.ravel(), lat.ravel(), header_of(1650, 300, lon0, lat0, CELL_DEG)
    else:
        lon0, lat0, size = 60.0, 30.0, size or 2_000_000
        rng = np.random.default_rng(20250002)
        half = 2.5 / np.cos(np.radians(lat0))
        lon = rng.uniform(lon0 - half, lon0 + half, size)
        lat = rng.uniform(lat0 - 2.5, lat0 + 2.5, size)
        header = header_of(side, side, lon0, lat0, CELL_DEG)
    x, y = (lon - lon0) * np.cos(np.radians(lat0)), lat - lat0
    values = np.random.default_rng([20250003, ord(name), 0]).standard_normal(len(lon), dtype=np.float32)
    values += (10 + 4 * np.sin(.9 * x) * np.cos(1.3 * y)).astype(np.float32)
    if name == "B" and side < 150:
        near = np.maximum(np.abs(x), np.abs(y)) < (side / 2 + 8) * CELL_DEG
        lon, lat, values = lon[near], lat[near], values[near]
    return Case(f"{name}, {n_sigma:g} sigma", lon, lat, values, header, SIGMA_DEG, n_sigma * SIGMA_DEG)


def messier_33(folder):
    import h5py
    with h5py.File(os.path.join(folder, "1421-1425_hor_input1.hdf5")) as file:
        lon, lat, values = (np.asarray(file[name], dtype=float).ravel() for name in ("ra", "dec", "Ta"))
    sigma = FWHM_DEG / 2 / np.sqrt(8 * np.log(2))
    return Case("M33, 3 sigma", lon, lat, values, header_of(180, 180, 23.46, 30.66, 1 / 60), sigma, 3 * sigma)


def unit_vectors(lon, lat):
    lon, lat = np.radians(lon), np.radians(lat)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], -1)


def cells_of(case):
    from astropy.wcs import WCS
    x, y = np.meshgrid(np.arange(case.header["NAXIS1"]), np.arange(case.header["NAXIS2"]))
    lon, lat = WCS(case.header).all_pix2world(x.ravel(), y.ravel(), 0)
    return lon, lat


@dataclasses.dataclass
class Map:
    value: np.ndarray
    weight: np.ndarray
    seconds: float = 0
    count: np.ndarray = None


def of_sums(weighted, weight, seconds=0.0, count=None):
    with np.errstate(invalid="ignore", divide="ignore"):
        return Map(weighted / weight, weight, seconds, count)


def ours(program, case, precision="f64"):
    with tempfile.TemporaryDirectory() as folder:
        cell_lon, cell_lat = cells_of(case)
        for name, array in (("lon", case.lon), ("lat", case.lat), ("values", case.values), ("cell_lon", cell_lon),
                            ("cell_lat", cell_lat)):
            np.asarray(array, dtype="<f8").tofile(os.path.join(folder, name))
        kernel = f"gauss:sigma={case.sigma_deg:.17g}deg,radius={case.support_deg:.17g}deg"
        start = time.monotonic()
        subprocess.run([program, kernel, precision, folder], check=True, timeout=600)
        seconds = time.monotonic() - start
        weighted, weight, count = (np.fromfile(os.path.join(folder, name)) for name in ("weighted", "weight", "count"))
    return of_sums(weighted, weight, seconds, count)


def cygrid_map(cygrid, case):
    gridder = cygrid.WcsGrid(case.header, dtype=np.float64)
    gridder.set_kernel("gauss1d", (case.sigma_deg,), case.support_deg, case.sigma_deg / 2)
    start = time.monotonic()
    gridder.grid(case.lon, case.lat, case.values.astype(float)[:, None])
    seconds = time.monotonic() - start
    with np.errstate(invalid="ignore"):
        return Map(gridder.get_datacube().ravel(), gridder.get_weights().ravel(), seconds)


def direct_sum(case):
    """Every sample to every cell of a box about it that holds the support: a SIN map never stretches."""
    header = case.header
    nx, ny, cell = header["NAXIS1"], header["NAXIS2"], np.radians(header["CDELT2"])
    cells, samples = unit_vectors(*cells_of(case)), unit_vectors(case.lon, case.lat)
    lon, lat = np.radians(header["CRVAL1"]), np.radians(header["CRVAL2"])
    east = np.array([-np.sin(lon), np.cos(lon), 0])
    north = np.array([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)])
    px = np.rint(-(samples @ east) / cell + header["CRPIX1"] - 1).astype(int)
    py = np.rint(samples @ north / cell + header["CRPIX2"] - 1).astype(int)
    reach = int(np.ceil(case.support_deg / header["CDELT2"] + .5))
    weighted, weight, count = (np.zeros(nx * ny) for _ in range(3))
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            k = np.flatnonzero((px + dx >= 0) & (px + dx < nx) & (py + dy >= 0) & (py + dy < ny))
            at = (py[k] + dy) * nx + px[k] + dx
            chord = np.sqrt(((cells[at] - samples[k]) ** 2).sum(-1))
            near = chord < 2 * np.sin(np.radians(case.support_deg) / 2)
            k, at, theta = k[near], at[near], 2 * np.degrees(np.arcsin(chord[near] / 2))
            w = np.exp(-.5 * (theta / case.sigma_deg) ** 2)
            weighted += np.bincount(at, w * case.values[k], nx * ny)
            weight += np.bincount(at, w, nx * ny)
            count += np.bincount(at, minlength=nx * ny)
    return of_sums(weighted, weight, count=count)


@dataclasses.dataclass
class Difference:
    covered: int
    covered_apart: int
    beyond: int          # cells whose value or weight differs by more than the limit
    value: float         # largest relative differences
    weight: float
    most_absolute: float
    cells: np.ndarray    # those beyond


def difference(got, want, limit):
    """Cells of which value or weight differ by more than `limit`, relative to the map's own size."""
    both = (got.weight > 0) & (want.weight > 0)
    scale = np.median(np.abs(want.value[both]))
    dv, dw = np.zeros(got.weight.size), np.zeros(got.weight.size)
    dv[both] = np.abs(got.value[both] - want.value[both]) / np.maximum(np.abs(want.value[both]), scale)
    dw[both] = np.abs(got.weight[both] / want.weight[both] - 1)
    cells = np.flatnonzero((dv > limit) | (dw > limit))
    return Difference(int((got.weight > 0).sum()), int(((got.weight > 0) != (want.weight > 0)).sum()), len(cells), dv.max(),
                      dw.max(), float(np.abs(got.value[both] - want.value[both]).max()), cells)


def unexplained(case, ryle, cygrid, cells):
    """Cells that do not become Cygrid's, weight and value, when up to three samples within 3 % of the edge are left out."""
    places, samples = unit_vectors(*cells_of(case)), unit_vectors(case.lon, case.lat)
    left = []
    for cell in cells:
        near = np.flatnonzero(np.abs(samples - places[cell]).max(-1) < 1.01 * np.radians(case.support_deg))
        theta = 2 * np.degrees(np.arcsin(np.sqrt(((samples[near] - places[cell]) ** 2).sum(-1)) / 2))
        edge = (theta < case.support_deg) & (theta > .97 * case.support_deg)
        weights = np.exp(-.5 * (theta[edge] / case.sigma_deg) ** 2)
        weight, weighted = ryle.weight[cell], ryle.weight[cell] * ryle.value[cell]
        values = case.values[near[edge]]
        if not any(abs(weight - weights[list(out)].sum() - cygrid.weight[cell]) < 1e-11 * weight
                   and abs((weighted - (weights * values)[list(out)].sum()) / cygrid.weight[cell] - cygrid.value[cell])
                   < 1e-11 * np.abs(case.values[near]).max()
                   for missed in (1, 2, 3) for out in itertools.combinations(range(len(weights)), missed)):
            left.append(cell)
    return left


def rounding(case):
    """What the direct sum itself knows: unit vectors are rounded to 1e-16, and a weight at the edge of the support changes by
    theta d(theta) / sigma^2."""
    return 4 * np.finfo(float).eps * case.support_deg / case.sigma_deg / np.radians(case.sigma_deg)


def report(program, case, cygrid, direct, out=sys.stdout):
    mine = ours(program, case)
    his = cygrid_map(cygrid, case)
    d = difference(mine, his, 1e-9)
    left = unexplained(case, mine, his, d.cells[:200])
    print(f"| {case.name} | {d.covered:,} | Cygrid | {d.covered_apart} | {d.value:.1e} | {d.weight:.1e} | {d.beyond:,} | {len(left)} "
          f"of {min(200, d.beyond)} | Cygrid {his.seconds:.1f} s |", file=out, flush=True)
    if direct:
        truth = direct_sum(case)
        for precision in ("f64", "f32"):
            got = ours(program, case, precision)
            d = difference(got, truth, rounding(case) if precision == "f64" else 2e-6)
            apart = int((got.count != truth.count).sum())
            print(f"| {case.name}, {precision} | {d.covered:,} | direct sum | {d.covered_apart} | {d.value:.1e} | {d.weight:.1e} | "
                  f"{d.beyond:,} | counts of {apart} cells differ | {int(truth.count.sum()):,} pairs |", file=out, flush=True)
        d = difference(his, truth, rounding(case))
        print(f"| {case.name}, Cygrid | {d.covered:,} | direct sum | {d.covered_apart} | {d.value:.1e} | {d.weight:.1e} | {d.beyond:,} "
              "| | |", file=out, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*", default=["B:5:200000"])
    parser.add_argument("--m33")
    parser.add_argument("--direct", action="store_true")
    arguments = parser.parse_args()
    import cygrid
    print("| case | cells | beside | covered apart | value | weight | cells beyond | unexplained | |\n|" + "---|" * 9)
    for text in arguments.cases:
        name, n_sigma, size = text.split(":") + ["5", "0"][text.count(":"):]
        report(arguments.program, benchmark(name, float(n_sigma), int(size)), cygrid, arguments.direct)
    if arguments.m33:
        report(arguments.program, messier_33(arguments.m33), cygrid, arguments.direct)


if __name__ == "__main__":
    main()
