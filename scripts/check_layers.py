#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that every #include points at a layer its folder may use, and that third-party headers stay out of the public
headers of core and engine. The table is the one of docs/architecture.md; src/ryle/CMakeLists.txt links the same edges."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = {
    "core": set(),
    "device": {"core"},
    "telescope": {"core"},
    "wire": {"core"},
    "hdf5": {"core"},
    "math": {"core", "device"},
    "engine/beamform": {"core", "device", "math", "telescope"},
    "engine/channelize": {"core", "device", "math", "telescope"},
    "engine/correlate": {"core", "device", "math", "telescope"},
    "engine/image": {"core", "device", "math", "telescope"},
    "engine/grid": {"core", "device"},
    "engine/search": {"core", "device", "math"},
    "product": {"core", "telescope", "hdf5"},
    "simulate": {"core", "telescope", "wire", "math"},
    "runtime": {"core", "device"},
    "ingest": {"core", "wire", "runtime", "device", "hdf5"},
}
ALLOWED["stage"] = set(ALLOWED) | {"stage"}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
STANDARD = re.compile(r"^[a-z_]+$")
PUBLIC_STD_ONLY = ("core/", "engine/")


def layer_of(path: str) -> str:
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "engine" else parts[0]


def main() -> int:
    faults = []
    base = ROOT / "src" / "ryle"
    for file in sorted(base.rglob("*")):
        if file.suffix not in {".hpp", ".cpp", ".cu", ".cuh", ".inc"}:
            continue
        relative = file.relative_to(base).as_posix()
        layer = layer_of(relative)
        for _, target in INCLUDE.findall(file.read_text()):
            if target.startswith("ryle/"):
                wanted = layer_of(target[len("ryle/"):])
                if wanted != layer and wanted not in ALLOWED[layer]:
                    faults.append(f"{file.relative_to(ROOT)}: {layer} may not include {wanted} ({target})")
            elif file.name.endswith(".hpp") and relative.startswith(PUBLIC_STD_ONLY) and is_public(file):
                if not STANDARD.match(target):
                    faults.append(f"{file.relative_to(ROOT)}: third-party header <{target}> in a public header")
            if "cuda_runtime" in target and not (relative.startswith("device/cuda/") or file.suffix in {".cu", ".cuh"}):
                faults.append(f"{file.relative_to(ROOT)}: <cuda_runtime.h> belongs under device/cuda/ and in .cu/.cuh")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def is_public(file: pathlib.Path) -> bool:
    """Headers of kernels (kernel_*, cpu_*, *.inc.hpp, ..._kernel.hpp) are private to their folder."""
    return not re.search(r"(kernel|cpu_|\.inc\.|cuda_|tile|sum_)", file.name)


if __name__ == "__main__":
    sys.exit(main())
