#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Makes the Python environment of the peer tests: Debian's python3 with its packages (casacore, h5py ...), and the pinned
# PyPI ones of tests/requirements*.txt and docs/requirements.txt on top. In $RYLE_VENV, or .venv beside this script's
# folder. Prints the path of its python. Does nothing when it is there and up to date.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv=${RYLE_VENV:-$root/.venv}
wanted=$root/tests/requirements.txt
bare=$root/tests/requirements-bare.txt
site=$root/docs/requirements.txt
if [ ! -x "$venv/bin/python" ]; then
  /usr/bin/python3 -m venv --system-site-packages "$venv"
fi
if ! cat "$wanted" "$site" "$bare" | cmp -s - "$venv/requirements.installed"; then
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" -r "$site" >&2
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$bare" >&2
  cat "$wanted" "$site" "$bare" >"$venv/requirements.installed"
fi
echo "$venv/bin/python"
