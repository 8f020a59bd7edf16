#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# clang-tidy over all of src and apps: tidy.sh [PART of a path...]   (five minutes on two cores; e.g. tidy.sh engine/search)
# It reads the grouped sources of the clang build, so that a header is parsed once for two dozen files.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset clang >/dev/null
groups=$(find build-clang/src build-clang/apps -path '*/Unity/*.cxx')
for part in "$@"; do groups=$(grep -- "$part" <<<"$groups"); done
found=$(mktemp)
trap 'rm -f "$found" "$found.log"' EXIT
ran=0
xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build-clang --quiet <<<"$groups" >"$found" 2>"$found.log" || ran=$?
faults=$(grep -E '(warning|error):' "$found" | sort -u || true)
[ -z "$faults" ] || { sed "s|$PWD/||" <<<"$faults"; exit 1; }
# Without a finding a status that is not 0 means that it did not run or did not end.
[ "$ran" -eq 0 ] || { tail -5 "$found.log" >&2; exit 1; }
echo "tidy: $(wc -l <<<"$groups") groups of sources have no warning"
