#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/benchmarks.md and docs/levels.md from the JSON lines under bench/results/<machine>/. Every number on the pages is
a measured one.

    scripts/make_benchmarks_page.py [--check]
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
LEVELS_PAGE = ROOT / "docs" / "levels.md"
HEAD = """# Benchmarks

Made by `scripts/make_benchmarks_page.py` from `bench/results/`; do not edit. Every row was verified against the reference
before it was timed, on random data, with buffers beyond the last-level cache. Useful operations only: 8 per complex
multiply-accumulate and N(N+1)/2 products for the correlator, 4P + 5 log2 K + 14 per complex sample for the channelizer.
"of" is the ceiling measured in the same run. The published kernels have a page of their own, [levels.md](levels.md). Run them yourself: `ryle bench beamform|correlate|channelize|grid|image|ingest|path|search|stream
--json`.
"""


def number(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def case(row):
    return ", ".join(f"{k} {v:g}" if isinstance(v, (int, float)) else f"{k} {v}" for k, v in row["case"].items())


def table(rows):
    lines = ["| implementation | case | rate | unit | of | best / median time |", "|---|---|---|---|---|---|"]
    for r in rows:
        roof = f"{100 * r['roofline_fraction']:.1f} % of {r['roofline']}" if r["roofline"] else ""
        spread = r["min_s"] / r["median_s"] if r["median_s"] else 0
        lines.append(f"| {r['implementation']} | {case(r)} | **{number(r['rate'])}** | {r['rate_unit']} | {roof} | "
                     f"{spread:.2f} of {r['median_s'] * 1e3:.3g} ms |")
    return "\n".join(lines)


LEVELS_HEAD = """# The published correlator kernels on today's GPUs

Made by `scripts/make_benchmarks_page.py` from `bench/results/`; do not edit. The kernels are `bench/levels`
(its README says which paper each is from and how often it reads a sample); `ryle bench levels` measures them. Wayth, Greenhill &
Briggs 2009 (PASP 121, 857) found their group-parallel kernel with G = 4 fastest on a C1060; Clark, La Plante & Greenhill 2012
(arXiv 1107.4264) reached 79 % of a Fermi's fp32 peak. Every row was verified against sums from the definition before it was timed;
data lie in device memory and are more than thrice the L2 cache. Operations are useful ones, 8 per complex multiply-accumulate of
N(N+1)/2 products. "of" names the unit that the level computes with; its ceiling is a loop of nothing else, measured in the same run.
The correlator that observations use is in [benchmarks.md](benchmarks.md).
"""
LEVEL_TABLE = "levels"
LEVEL_SECOND = "levels, one second of MWA-32T"
LEVEL_SURFACE = "levels over stations and channels"


def short(implementation):
    return implementation.split("levels/")[-1]


def unit_of(row):
    return row["roofline"].rsplit(" ", 2)[0]


def level_table(rows):
    """Levels down, numbers of inputs across: TOPS and fraction of the unit's peak."""
    sizes = sorted({r["case"]["n_inputs"] for r in rows})
    case = rows[0]["case"]
    lines = [f"TOPS and % of the peak of the unit, {case['n_channels']} channels, {case['n_spectra']} spectra:\n",
             "| level | of | peak, TOPS | " + " | ".join(f"{n} inputs" for n in sizes) + " |", "|---" * (len(sizes) + 3) + "|"]
    for name in dict.fromkeys(r["implementation"] for r in rows):
        own = {r["case"]["n_inputs"]: r for r in rows if r["implementation"] == name}
        first = next(iter(own.values()))
        peak = float(first["roofline"].rsplit(" ", 2)[1]) / 1e3
        cells = " | ".join(f"{number(own[n]['rate'] / 1e3)} ({100 * own[n]['roofline_fraction']:.1f} %)" if n in own else ""
                           for n in sizes)
        lines.append(f"| {short(name)} | {unit_of(first)} | {number(peak)} | {cells} |")
    return "\n".join(lines)


def second_of_mwa32t(rows):
    """The steps of Wayth 2009 for one second of data."""
    lines = ["Execution time of one second of MWA-32T (32 antennas, 64 inputs of 1.28 MHz, 128 channels), the steps of Wayth 2009. "
             "Unpacking of 5-bit samples, the Fourier transform and the rounding to 8 bits are one kernel here.\n",
             "| step | by | time, ms | x real time |", "|---|---|---|---|"]
    for r in rows:
        step, by = r["implementation"].split(": ", 1)
        lines.append(f"| {step} | {short(by)} | {r['median_s'] * 1e3:.3g} | {number(1 / r['median_s'])} |")
    return "\n".join(lines)


def surface(rows):
    """Rates over stations (down) and channels (across), a table for each implementation."""
    parts = []
    for name in dict.fromkeys(r["implementation"] for r in rows):
        cells = {(r["case"]["n_inputs"] // 2, r["case"]["n_channels"]): r for r in rows if r["implementation"] == name}
        channels = sorted({c for _, c in cells})
        first = next(iter(cells.values()))
        lines = [f"{short(name)}, GFLOPS (GOPS of integers) and % of {unit_of(first)}, {first['case']['n_spectra']} spectra:\n",
                 "| stations | " + " | ".join(f"{c} channels" for c in channels) + " |",
                 "|---" * (len(channels) + 1) + "|"]
        for stations in sorted({s for s, _ in cells}):
            row = [cells.get((stations, c)) for c in channels]
            lines.append(f"| {stations} | " + " | ".join(
                f"{number(r['rate'])} ({100 * r['roofline_fraction']:.1f} %)" if r else "" for r in row) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def machines():
    """Names of machines, with the verified rows of each."""
    for machine in sorted(p for p in (ROOT / "bench" / "results").iterdir() if p.is_dir()):
        rows = []
        for file in sorted(machine.glob("*.json*")):
            rows += [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
        rows = [r for r in rows if "engine" in r and r["verified"]]
        if rows:
            yield machine, rows


def levels_page():
    text = [LEVELS_HEAD]
    for machine, rows in machines():
        of = {engine: [r for r in rows if r["engine"] == engine] for engine in (LEVEL_TABLE, LEVEL_SECOND, LEVEL_SURFACE)}
        if not of[LEVEL_TABLE]:
            continue
        text.append(f"## {machine.name}\n\n{of[LEVEL_TABLE][0]['device']}\n\n{level_table(of[LEVEL_TABLE])}\n")
        if of[LEVEL_SECOND]:
            text.append(f"### One second of MWA-32T\n\n{second_of_mwa32t(of[LEVEL_SECOND])}\n")
        if of[LEVEL_SURFACE]:
            text.append("### Over stations and channels\n\nStations have two polarizations. Rates over both, as Clark 2012 plots "
                        f"them.\n\n{surface(of[LEVEL_SURFACE])}\n")
    return "\n".join(text)


def page():
    text = [HEAD]
    for machine, rows in machines():
        devices = sorted({r["device"] for r in rows})
        text.append(f"## {machine.name}\n\n{'; '.join(devices)}\n")
        note = machine / "README.md"
        if note.exists():
            text.append(note.read_text().strip() + "\n")
        for engine in dict.fromkeys(r["engine"] for r in rows):
            if not engine.startswith("levels"):
                text.append(f"### {engine}\n\n{table([r for r in rows if r['engine'] == engine])}\n")
    return "\n".join(text)


def main():
    for path, new in ((PAGE, page()), (LEVELS_PAGE, levels_page())):
        if "--check" not in sys.argv:
            path.write_text(new)
        elif path.read_text() != new:
            sys.exit(f"docs/{path.name} is out of date: run scripts/make_benchmarks_page.py")


if __name__ == "__main__":
    main()
