#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the structure of src/ryle: every #include points at a folder its folder may use, folders form no circle, engines
are built alike, and third-party headers stay out of the public headers of core and engine. The CMakeLists.txt of the folders
link the same edges."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
IO = {"core", "io/base", "telescope"}
PIPELINE = {"core", "device", "io/base", "pipeline/base", "pipeline/config", "plot", "runtime", "telescope"}
VISIBILITY = PIPELINE | {"pipeline/visibility"}
ALLOWED = {
    "core": set(),
    "device": {"core"},
    "telescope": {"core"},
    "wire": {"core"},
    "hdf5": {"core"},
    "simd": set(),
    "math": {"core", "simd"},
    "runtime": {"core", "device"},
    "ingest": {"core", "wire", "runtime", "hdf5"},
    "simulate": {"core", "telescope", "wire", "math"},
    # Engines: nothing of files, packets or of each other.
    "engine/beamform": {"core", "device", "simd", "telescope"},
    "engine/calibrate": {"core", "device", "math"},
    "engine/channelize": {"core", "device", "math", "simd"},
    "engine/correlate": {"core", "device"},
    "engine/flag": {"core"},
    "engine/image": {"core", "device", "math", "simd"},
    "engine/grid": {"core", "device", "simd"},
    "engine/search": {"core", "device", "simd"},
    # Files and pictures.
    "io/base": {"core", "telescope", "hdf5"},
    "io/visibility": IO,
    "io/beam": IO,
    "io/image": IO | {"io/beam", "io/visibility"},
    "io/map": IO | {"io/image"},
    "io/scan": IO | {"io/map"},
    "io/recover": IO | {"io/beam", "io/image", "io/visibility"},
    "plot": IO | {"io/beam", "io/image", "io/map"},
    # What commands run: the lower ones are used by the higher ones.
    "pipeline/base": {"core", "device", "telescope", "runtime", "ingest", "io/base", "engine/channelize", "engine/correlate",
                      "engine/grid", "engine/image"},
    "pipeline/config": {"core", "telescope", "wire"},
    "pipeline/visibility": PIPELINE | {"wire", "ingest", "simulate", "engine/channelize", "engine/correlate", "engine/image",
                                       "io/image", "io/visibility"},
    "pipeline/image": VISIBILITY | {"math", "engine/correlate", "engine/image", "io/image"},
    "pipeline/search": VISIBILITY | {"engine/search", "io/beam"},
    "pipeline/beam": VISIBILITY | {"ingest", "simulate", "engine/beamform", "engine/channelize", "io/beam", "pipeline/search"},
    "pipeline/calibrate": PIPELINE | {"engine/calibrate", "io/visibility"},
    "pipeline/flag": {"core", "device", "telescope", "engine/calibrate", "engine/flag"},
    "pipeline/grid": PIPELINE | {"engine/grid", "io/image", "io/map", "io/scan"},
    "pipeline/run": VISIBILITY | {"ingest", "engine/correlate", "engine/search", "pipeline/beam", "pipeline/image",
                                  "pipeline/search"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
STANDARD = re.compile(r"^[a-z_]+$")
PUBLIC_STD_ONLY = ("core/", "engine/")
SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".inc"}
# Every engine is entered by the same doors, NAME.hpp for its users; the rest of its files are what its equation needs.
# Engines that have no code for GPUs yet.
WITHOUT_CUDA = {"calibrate", "flag"}
ENGINE_FILES = ("NAME.hpp", "README.md", "CMakeLists.txt", "*plan.cpp", "reference*.cpp", "cpu/*.cpp", "cuda/*.cu")


def room_of(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in {"engine", "io", "pipeline"} else parts[0]


def circles() -> list[str]:
    """Rooms that may reach themselves by the table."""
    found = []
    for start in ALLOWED:
        seen, todo = set(), list(ALLOWED[start])
        while todo:
            room = todo.pop()
            if room not in seen:
                seen.add(room)
                todo.extend(ALLOWED[room])
        if start in seen:
            found.append(f"scripts/check_layers.py: {start} may use folders that use {start}")
    return found


def anatomy(base: pathlib.Path) -> list[str]:
    faults = []
    for engine in sorted((base / "engine").iterdir()):
        if not engine.is_dir():
            continue
        name = engine.relative_to(ROOT)
        wanted_files = [w for w in ENGINE_FILES if not (w.startswith("cuda/") and engine.name in WITHOUT_CUDA)]
        faults += [f"{name}: has no {wanted}" for wanted in wanted_files if not any(engine.glob(wanted.replace("NAME", engine.name)))]
        for file in engine.iterdir():
            if file.suffix in {".cu", ".cuh"} or re.match(r"(cpu|cuda)[_.]", file.name):
                faults.append(f"{file.relative_to(ROOT)}: code of one back-end belongs into cpu/ or cuda/")
    return faults


def main() -> int:
    base = ROOT / "src" / "ryle"
    faults = circles() + anatomy(base)
    for file in sorted(base.rglob("*")):
        if file.suffix not in SOURCES:
            continue
        relative = file.relative_to(base).as_posix()
        room = room_of(relative)
        if room not in ALLOWED:
            faults.append(f"{file.relative_to(ROOT)}: the folder {room} is not in the table of scripts/check_layers.py")
            continue
        for _, target in INCLUDE.findall(file.read_text()):
            if target.startswith("ryle/"):
                wanted = room_of(target[len("ryle/"):])
                if wanted != room and wanted not in ALLOWED[room]:
                    faults.append(f"{file.relative_to(ROOT)}: {room} may not include {wanted} ({target})")
            elif file.name.endswith(".hpp") and relative.startswith(PUBLIC_STD_ONLY) and is_public(relative):
                if not STANDARD.match(target):
                    faults.append(f"{file.relative_to(ROOT)}: third-party header <{target}> in a public header")
            if "cuda_runtime" in target and not (relative.startswith("device/cuda/") or file.suffix in {".cu", ".cuh"}):
                faults.append(f"{file.relative_to(ROOT)}: <cuda_runtime.h> belongs under device/cuda/ and in .cu/.cuh")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def is_public(relative: str) -> bool:
    """Headers of kernels (cpu/, cuda/, *.inc.hpp) are private to their engine."""
    return not re.search(r"(/cpu/|/cuda/|\.inc\.|tile|kernel)", relative)


if __name__ == "__main__":
    sys.exit(main())
