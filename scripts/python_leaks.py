#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What reports of AddressSanitizer and LeakSanitizer say of Ryle: errors, and leaks with a frame of it. Exits with 1 where
there is any. scripts/sanitize.sh python calls it with the files that the processes of the tests left."""

import pathlib
import re
import sys

OURS = re.compile(r"^\s+#\d+ .*(?:/src/ryle/|/python/src/|/_ryle\.)", re.M)


def findings(text):
    """Errors, whole, and the stacks of leaks that Ryle is in."""
    for part in re.split(r"\n\n|(?=^==\d+==)", text, flags=re.M):
        leak = re.match(r"(?:Direct|Indirect) leak of", part.lstrip())
        if OURS.search(part) if leak else re.search(r"ERROR: AddressSanitizer|runtime error:", part):
            yield part.strip()


def main():
    found = {finding for name in sys.argv[1:] if pathlib.Path(name).is_file() for finding in findings(pathlib.Path(name).read_text(errors="replace"))}
    print("\n\n".join(sorted(found)) or "python: no errors and no leaks of Ryle")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
