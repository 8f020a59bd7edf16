#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Adds to a wheel that auditwheel repaired on Debian the licences of the libraries in it: PACKAGE/copyright in
dist-info/licenses for every package that a library is of or whose headers are compiled in, and each licence to which
these refer, whole, as common-licenses/NAME.

    scripts/wheel_licenses.py WHEEL"""

import base64
import hashlib
import importlib.metadata
import pathlib
import re
import subprocess
import sys
import zipfile

DOCUMENTS = pathlib.Path("/usr/share/doc")
COMMON = pathlib.Path("/usr/share/common-licenses")
# Headers alone: no library in the wheel tells of them.
COMPILED_IN = ["libcli11-dev", "nlohmann-json3-dev"]
# In nanobind, and not in its folder of licences: the line of its headers says MIT, and they hold its text.
ROBIN_MAP = "nanobind/ext/robin_map/include/tsl/robin_map.h"


def packages_of(libraries):
    """The Debian packages of files as auditwheel names them: libbz2-e4f501c8.so.1.0.4. Its bill of materials lacks some: those
    that dpkg knows in /lib, which is a link."""
    files = [re.sub(r"^([^.]*)-[0-9a-f]{8}\.", r"\1.", name) for name in libraries]
    found = subprocess.run(["dpkg-query", "-S", *(f"*/{file}" for file in files)], capture_output=True, text=True).stdout
    owners = dict((path.rpartition("/")[2], package.partition(":")[0]) for package, _, path in
                  (line.partition(": ") for line in found.splitlines()))
    unknown = sorted(set(files) - set(owners))
    if unknown or not files:
        sys.exit(f"wheel_licenses: no Debian package has {', '.join(unknown) or 'a library of this wheel: it was not repaired'}")
    return {owners[file] for file in files}


def licenses_of(packages):
    """Contents by name below dist-info/licenses. SystemExit names packages without a copyright file."""
    texts = {f"{name}/copyright": DOCUMENTS / name / "copyright" for name in packages}
    missing = [str(path) for path in texts.values() if not path.is_file()]
    if missing:
        sys.exit(f"wheel_licenses: a library in the wheel has no licence here: {', '.join(missing)}")
    contents = {name: path.read_bytes() for name, path in texts.items()}
    # A name may end a sentence. What is a link there (GPL) is the newest version.
    common = {name for text in contents.values() for name in re.findall(rb"/usr/share/common-licenses/([\w.+-]*\w)", text)}
    for name in sorted(name.decode() for name in common):
        contents[f"common-licenses/{name}"] = (COMMON / name).read_bytes()
    nanobind = importlib.metadata.distribution("nanobind")
    contents["nanobind/LICENSE"] = next(file for file in nanobind.files if file.match("*.dist-info/licenses/LICENSE")).read_binary()
    contents["nanobind/robin_map"] = re.match(rb"/\*\*.*?\*/", nanobind.read_text(f"../{ROBIN_MAP}").encode(), re.S)[0] + b"\n"
    return contents


def add_licenses(wheel):
    """Writes the wheel anew, with the licences and their lines of RECORD."""
    part = wheel.with_name(f".{wheel.name}.part")
    with zipfile.ZipFile(wheel) as old:
        names = old.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        folder = f"{record.rpartition('/')[0]}/licenses"
        packages = packages_of([name.rpartition("/")[2] for name in names if re.match(r"ryle\.libs/.", name)])
        texts = licenses_of(packages | set(COMPILED_IN))
        lines = old.read(record).decode().splitlines()
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
            for entry in old.infolist():
                if entry.filename != record:
                    new.writestr(entry, old.read(entry))
            for name, text in sorted(texts.items()):
                new.writestr(f"{folder}/{name}", text)
                digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
                lines.insert(-1, f"{folder}/{name},sha256={digest},{len(text)}")
            new.writestr(record, "\n".join(lines) + "\n")
    part.replace(wheel)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    add_licenses(pathlib.Path(sys.argv[1]))
