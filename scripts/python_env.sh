#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the Python environment of the peer tests: Debian's python3 with its packages (casacore, h5py ...), and the pinned
# PyPI ones of tests/requirements.txt on top. In $RYLE_VENV, or .venv beside this script's folder. Prints the path of
# its python. Does nothing when it is there and up to date.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${RYLE_VENV:-$root/.venv}
wanted=$root/tests/requirements.txt
if [ ! -x "$venv/bin/python" ]; then
  /usr/bin/python3 -m venv --system-site-packages "$venv"
fi
if ! cmp -s "$wanted" "$venv/requirements.installed"; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2
  cp "$wanted" "$venv/requirements.installed"
fi
echo "$venv/bin/python"
