#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Runs one pytest file with the environment of scripts/python_env.sh when it exists, else with Debian's python3.
# pytest plug-ins are not loaded: a Debian and a PyPI one side by side break each other.
set -u
here=$(cd "$(dirname "$0")" && pwd)
venv=${RYLE_VENV:-$here/../../.venv}
python=/usr/bin/python3
if [ -x "$venv/bin/python" ]; then python=$venv/bin/python; fi
if ! "$python" -c 'import pytest' 2>/dev/null; then
  echo "skipped: no pytest for $python (run scripts/python_env.sh, or apt install python3-pytest)"
  if [ "${RYLE_REQUIRE_PEERS:-0}" = 1 ]; then exit 1; fi
  exit 77
fi
# Where Debian's OpenBLAS is threaded, WSClean refuses to start without this.
export OPENBLAS_NUM_THREADS=1
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONDONTWRITEBYTECODE=1
cd "$here" && exec "$python" -m pytest -q -rs -p no:cacheprovider "$@"
