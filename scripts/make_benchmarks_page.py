#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/benchmarks.md from the JSON lines under bench/results/<machine>/. Every number on the page is a measured one.

    scripts/make_benchmarks_page.py [--check]
"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Made by `scripts/make_benchmarks_page.py` from `bench/results/`; do not edit. Every row was verified against the reference
before it was timed, on random data, with buffers beyond the last-level cache. Useful operations only: 8 per complex
multiply-accumulate and N(N+1)/2 products for the correlator, 4P + 5 log2 K + 14 per complex sample for the channelizer.
"of" is the ceiling measured in the same run. Run them yourself: `ryle bench beamform|correlate|channelize|grid|image|ingest|path|search|stream
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


def surface(rows):
    """Rates over stations (down) and channels (across), a table for each implementation."""
    parts = []
    for name in dict.fromkeys(r["implementation"] for r in rows):
        cells = {(r["case"]["n_inputs"] // 2, r["case"]["n_channels"]): r for r in rows if r["implementation"] == name}
        channels = sorted({c for _, c in cells})
        first = next(iter(cells.values()))
        lines = [f"{name}, TOPS and % of {first['roofline']}, {first['case']['n_spectra']} spectra:\n",
                 "| stations | " + " | ".join(f"{c} channels" for c in channels) + " |",
                 "|---" * (len(channels) + 1) + "|"]
        for stations in sorted({s for s, _ in cells}):
            row = [cells.get((stations, c)) for c in channels]
            lines.append(f"| {stations} | " + " | ".join(
                f"{number(r['rate'] / 1e3)} ({100 * r['roofline_fraction']:.1f} %)" if r else "" for r in row) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def page():
    text = [HEAD]
    for machine in sorted(p for p in (ROOT / "bench" / "results").iterdir() if p.is_dir()):
        rows = []
        for file in sorted(machine.glob("*.json*")):
            rows += [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]
        rows = [r for r in rows if "engine" in r and r["verified"]]
        if not rows:
            continue
        devices = sorted({r["device"] for r in rows})
        text.append(f"## {machine.name}\n\n{'; '.join(devices)}\n")
        note = machine / "README.md"
        if note.exists():
            text.append(note.read_text().strip() + "\n")
        for engine in dict.fromkeys(r["engine"] for r in rows):
            form = surface if engine == "levels over stations and channels" else table
            text.append(f"### {engine}\n\n{form([r for r in rows if r['engine'] == engine])}\n")
    return "\n".join(text)


def main():
    new = page()
    if "--check" in sys.argv:
        if PAGE.read_text() != new:
            sys.exit("docs/benchmarks.md is out of date: run scripts/make_benchmarks_page.py")
        return
    PAGE.write_text(new)


if __name__ == "__main__":
    main()
