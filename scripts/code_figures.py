#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of the code base: lines and files by folder, comments per line of code, casts, folders and the arrows between them.
    code_figures.py [CHECKOUT] [--json]"""

import json
import pathlib
import re
import sys

SUFFIXES = {".hpp", ".cpp", ".cu", ".cuh", ".inc"}
PARTS = ("src", "apps", "bench", "tests")


def room_of(path: pathlib.Path, base: pathlib.Path) -> str:
    parts = path.relative_to(base).parts[:-1]
    return "/".join(parts[:2]) if parts and parts[0] in {"engine", "io", "pipeline"} else "/".join(parts[:1])


def figures(root: pathlib.Path) -> dict:
    lines, files, casts, size_t_casts, comments, code = {}, {}, 0, 0, 0, 0
    rooms, arrows, longest = set(), set(), 0
    planted = 0
    base = root / "src" / "ryle"
    for part in PARTS:
        for file in sorted((root / part).rglob("*")):
            if file.suffix not in SUFFIXES:
                continue
            text = file.read_text()
            n = text.count("\n")
            lines[part] = lines.get(part, 0) + n
            planted += text.count("RYLE_MUTANT")
            if part != "src":
                continue
            room = room_of(file, base)
            rooms.add(room)
            files[room] = files.get(room, 0) + 1
            lines[f"src/{room}"] = lines.get(f"src/{room}", 0) + n
            longest = max(longest, n)
            casts += len(re.findall(r"\bstatic_cast<", text))
            size_t_casts += len(re.findall(r"\bstatic_cast<std::size_t>", text))
            for line in text.splitlines():
                stripped = line.strip()
                if stripped.startswith("//"):
                    comments += 0 if "SPDX" in stripped else 1
                elif stripped:
                    code += 1
                    comments += " // " in stripped or " ///<" in stripped
            for target in re.findall(r'^\s*#\s*include\s+"ryle/([^"]+)"', text, re.M):
                other = room_of(base / target, base)
                if other != room:
                    arrows.add((room, other))
    return {"lines": lines, "files": files, "longest_file_lines": longest, "static_casts": casts,
            "static_casts_to_size_t": size_t_casts, "comments_per_line_of_code": round(comments / max(code, 1), 3),
            "folders": len(rooms), "arrows": len(arrows),
            "arrows_but_to_core": len({a for a in arrows if a[1] != "core"}), "planted_defects_in_sources": planted}


def main() -> int:
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    found = figures(pathlib.Path(words[0]) if words else pathlib.Path(__file__).resolve().parent.parent)
    if "--json" in sys.argv:
        print(json.dumps(found, indent=1))
        return 0
    for name, value in found.items():
        if not isinstance(value, dict):
            print(f"{name:32} {value}")
            continue
        print(name)
        for key, n in sorted(value.items(), key=lambda item: -item[1]):
            print(f"  {key:30} {n}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
