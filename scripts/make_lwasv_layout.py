#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes examples/lwasv.csv: 256 made-up stands of the extent, tilt and spacing of LWA-SV, with cable delays, drawn from a
fixed random sequence. Who has the station file uses that instead."""

import math
import pathlib
import random

SEMI_EAST_M, SEMI_NORTH_M = 50.0, 55.0
SPACING_M = 5.0
N_STANDS = 256
SLOPE_EAST, SLOPE_NORTH = -0.0262, 0.0178  # 1.8 degrees
ROUGHNESS_M = 0.22
COAX_M_PER_NS = 0.83 * 0.299792458
SHELTER = (20.0, 62.0)


def inside(x, y):
    return (x / SEMI_EAST_M) ** 2 + (y / SEMI_NORTH_M) ** 2 <= 1


def stands(draw):
    """Random points, pushed apart until none are closer than the spacing: so dense a field cannot be thrown."""
    points = []
    while len(points) < N_STANDS:
        x, y = draw.uniform(-SEMI_EAST_M, SEMI_EAST_M), draw.uniform(-SEMI_NORTH_M, SEMI_NORTH_M)
        if inside(x, y):
            points.append([x, y])
    for _ in range(20000):
        moved = False
        for i, p in enumerate(points):
            for q in points[:i]:
                dx, dy = p[0] - q[0], p[1] - q[1]
                distance = math.hypot(dx, dy)
                if distance >= SPACING_M + 0.01:
                    continue
                moved = True
                step = 0.5 * (SPACING_M + 0.03 - distance) / max(distance, 1e-3)
                for point, sign in ((p, step), (q, -step)):
                    x, y = point[0] + sign * dx, point[1] + sign * dy
                    radius = math.hypot(x / SEMI_EAST_M, y / SEMI_NORTH_M)
                    point[0], point[1] = x / max(1, radius), y / max(1, radius)
        if not moved:
            return points
    raise SystemExit("the stands do not fit; make the spacing smaller")


def main():
    draw = random.Random(20151)
    lines = [
        "# A made-up station of the size of LWA-SV: 256 stands in an ellipse of 100 x 110 m, at least 5 m apart, on ground",
        "# that slopes by 1.8 degrees. Drawn from a fixed random sequence by scripts/make_lwasv_layout.py; no surveyed",
        "# position is in it. Reference: latitude 34.3484 deg, longitude -106.8858 deg, height 1477.8 m.",
        "# X is the north-south dipole. Cable = coax at 0.83 c from the stand to the shelter, Y about 0.3 m longer than X.",
        "antenna,east_m,north_m,up_m,pol,cable_delay_ns,feed_angle_deg",
    ]
    for k, (x, y) in enumerate(stands(draw)):
        up = SLOPE_EAST * x + SLOPE_NORTH * y + draw.gauss(0, ROUGHNESS_M)
        cable_m = 30 + 1.1 * math.hypot(x - SHELTER[0], y - SHELTER[1]) + draw.uniform(0, 4)
        for pol, extra_m in (("X", 0), ("Y", draw.uniform(0.1, 0.5))):
            delay_ns = (cable_m + extra_m) / COAX_M_PER_NS
            lines.append(f"S{k + 1:03d},{x:.3f},{y:.3f},{up:.3f},{pol},{delay_ns:.3f},0")
    target = pathlib.Path(__file__).resolve().parent.parent / "examples" / "lwasv.csv"
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
