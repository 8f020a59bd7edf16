#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Whether every internal link of the Markdown pages leads somewhere: files, headings, and paths that are named
(`docs/tour.md`, `scripts/format.sh`). Prints what does not, one a line. Needs no network: addresses are left alone."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
IMAGE = re.compile(r"<img\b[^>]*\bsrc=\"([^\"]+)\"")
# A path from the root of the repository to a file with one of these endings; NAME in it stands for any name.
NAMED = re.compile(r"(?<![\w/.-])((?:docs|scripts|examples|tests|python|cmake|bench|apps|src)/[\w./-]+\."
                   r"(?:md|py|sh|toml|csv|cpp|hpp|cu|cmake|txt|json))\b")
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.M | re.S)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}[^\n]*\n(?:\n(?= {4}))*)+")


def pages():
    """The pages of the documentation, README.md first."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("README.md")]
    return [page for page in found if page.exists()]


def prose(text):
    """The page without its blocks of code, of the same number of lines."""
    def blank(match):
        return "\n" * match.group(0).count("\n")
    return INDENTED.sub(blank, FENCE.sub(blank, text))


def anchors(page):
    """The anchors of the headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#{1,6}\s+(.*?)\s*#*$", prose(page.read_text()), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        numbered, k = slug, 0
        while numbered in found:
            k += 1
            numbered = f"{slug}-{k}"
        found.add(numbered)
    return found


def faults_of(page):
    text = prose(page.read_text())
    name = page.relative_to(ROOT)

    def line(match):
        return f"{name}:{text.count(chr(10), 0, match.start()) + 1}"

    without_code = re.sub(r"`[^`\n]*`", lambda m: " " * len(m.group(0)), text)
    for pattern, where in ((LINK, without_code), (IMAGE, without_code)):
        for match in pattern.finditer(where):
            target, _, anchor = match.group(1).partition("#")
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue
            file = (page.parent / target).resolve() if target else page
            if not file.exists():
                yield f"{line(match)}: link to {target}, which is not there"
            elif anchor and file.suffix == ".md" and anchor not in anchors(file):
                yield f"{line(match)}: link to {match.group(1)}, which has no such heading"
    for match in NAMED.finditer(re.sub(r"\]\([^)\n]*\)|\w+://\S+", lambda m: " " * len(m.group(0)), text)):
        if "NAME" not in match.group(1) and not (ROOT / match.group(1)).exists() and not (page.parent / match.group(1)).exists():
            yield f"{line(match)}: names {match.group(1)}, which is not there"


def main():
    faults = [fault for page in pages() for fault in faults_of(page)]
    print("\n".join(faults) or "links: all lead somewhere")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
