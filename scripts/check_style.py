#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a formatter cannot see (docs/conventions.md): licence line, one idea per file, physical names with units, no
machine paths, and the generated pages up to date where that can be told without a build."""

import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = {".cpp", ".hpp", ".cu", ".cuh", ".inc", ".py"}
LONGEST_FILE = 800
# A floating-point declaration whose whole name is a physical word without its unit.
BARE = re.compile(r"\b(?:double|float)\s+(delay|freq|frequency|time|angle|bandwidth|wavelength)\s*(?:=|;|,|\))")
PATHS = re.compile(r"(?<![\w.])/(?:home|Users)/[a-z]")


def tracked():
    """Files of the project: what git knows, or without git everything outside build and environment folders."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(["git", "-c", f"safe.directory={ROOT}", "ls-files"], cwd=ROOT, capture_output=True, text=True)
        if listed.returncode == 0:
            return [ROOT / name for name in listed.stdout.splitlines()]
    skipped = ("build", ".venv", ".git", "out", "__pycache__")
    return [p for p in ROOT.rglob("*")
            if p.is_file() and not any(part.startswith(skipped) for part in p.relative_to(ROOT).parts[:-1])]


def faults_of(file):
    name = file.relative_to(ROOT)
    text = file.read_text(errors="replace")
    lines = text.splitlines()
    if file.suffix in SOURCE:
        if not any("SPDX-License-Identifier: BSD-3-Clause" in line for line in lines[:3]):
            yield f"{name}:1: no SPDX licence line"
        if len(lines) > LONGEST_FILE:
            yield f"{name}: {len(lines)} lines; more than {LONGEST_FILE} is more than one idea"
    for number, line in enumerate(lines, 1):
        if file.suffix in {".cpp", ".hpp", ".cu", ".cuh"} and "tests/" not in str(name):
            bare = BARE.search(line)
            if bare:
                yield f"{name}:{number}: \"{bare.group(1)}\" has no unit in its name"
        if PATHS.search(line) and name != pathlib.Path("scripts/check_style.py"):
            yield f"{name}:{number}: a path of one machine"


def main():
    faults = [f for file in tracked() if file.exists() and file.suffix not in {".png", ".fits"} for f in faults_of(file)]
    for fault in faults:
        print(fault)
    check = subprocess.run([sys.executable, ROOT / "scripts/make_benchmarks_page.py", "--check"], capture_output=True, text=True)
    if check.returncode != 0:
        print(check.stderr.strip())
        return 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
