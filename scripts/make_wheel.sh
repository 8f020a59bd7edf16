#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the wheel of the Python package and the program `ryle` with every library that they need inside: for machines whose
# C library is as new as this one's. tests/python/test_wheel_slow.py tries it where there is nothing else.
#   scripts/make_wheel.sh [DIRECTORY [arguments of pip wheel]]        default: out/wheel
# RYLE_WHEEL_PYTHON names the interpreter: 3.10 and 3.11 get a wheel of their own, a newer one gives that of all from 3.12 on.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:-out/wheel}")
[ $# -gt 0 ] && shift
tools=$(scripts/python_env.sh)
python=${RYLE_WHEEL_PYTHON:-$tools}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One folder for all wheels, and nothing in it from an earlier one: the compiler's cache knows it.
rm -rf build-wheel
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --config-settings=build-dir="$PWD/build-wheel" -w "$work/built" "$@" .

# auditwheel takes libX11, libXext and libXrender, which cairo asks for, to be everywhere. Servers and containers lack them:
# its list, in a copy of it, loses them, and the wheel gets them.
cp -r "$("$tools" -c 'import auditwheel; print(auditwheel.__path__[0])')" "$work/auditwheel"
"$tools" - "$work/auditwheel/policy/manylinux-policy.json" <<'EOF'
import json, sys
policies = json.load(open(sys.argv[1]))
absent = {"libX11.so.6", "libXext.so.6", "libXrender.so.1"}
assert any(absent <= set(policy["lib_whitelist"]) for policy in policies), "auditwheel has other lists"
for policy in policies:
    policy["lib_whitelist"] = [name for name in policy["lib_whitelist"] if name not in absent]
json.dump(policies, open(sys.argv[1], "w"))
EOF
PATH=$(dirname "$tools"):$PATH PYTHONPATH=$work "$tools" -m auditwheel repair --strip -w "$work/repaired" "$work"/built/*.whl
"$tools" scripts/wheel_licenses.py "$work"/repaired/*.whl
mkdir -p "$out"
mv "$work"/repaired/*.whl "$out"
ls -sh "$out"/*.whl
