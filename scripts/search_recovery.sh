#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Injects pulses into noise, searches, and writes docs/search_recovery.txt and docs/images/search_recovery.png.
# search_recovery.sh BUILD [PHASES [SEEDS [BITS]]]: 16 20 8,4,2,1 is the whole grid (hours); 4 1 8,4,2,1 takes minutes.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${1:?build directory}
cmake --build "$build" --target search_recovery >&2
"$build/tests/search_recovery/search_recovery" "${2:-4}" "${3:-1}" "${4:-8,4,2,1}" "$root/docs/images/search_recovery.png" |
  tee "$root/docs/search_recovery.txt"
