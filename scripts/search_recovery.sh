#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Injects pulses into noise, searches, prints the tables of docs/search_recovery.md and decision 0023; fails when a bound is missed.
# search_recovery.sh BUILD [PHASES [SEEDS [FEWER_SEEDS [OUT [SECONDS [DEVICE]]]]]]: 16 20 20 is the grid of the design (7 core-hours), 8 1 1
# 10 minutes of a core. FEWER_SEEDS for 4, 2 and 1 bit and the tree, 0: 8 bit alone. OUT (default: the build directory) gets the page and
# the picture, which are reviewed before they replace those in docs, and a line of numbers for each part that is done: what has one is
# not done again, so a grid may be made in many sittings (of SECONDS each) and on many machines. DEVICE: the GPU that searches, for all
# cores, the same numbers; none without.
# TROUBLES=24 in the environment: instead, so many pulses at each of seven samplings among gain that drifts, steps and flickers, and
# interference (an hour of a core).
set -euo pipefail
build=${1:?build directory}
out=${5:-$build}
if [[ -n ${TROUBLES:-} ]]; then
  cmake --build "$build" --target search_troubles >&2
  "$build/tests/search_recovery/search_troubles" "$TROUBLES" | tee "$out/search_troubles.md"
  exit
fi
cmake --build "$build" --target search_recovery >&2
"$build/tests/search_recovery/search_recovery" "${2:-8}" "${3:-1}" "${4:-1}" "$out/search_recovery.png" "$(nproc)" "${6:-1e9}" \
  "$out/search_recovery.results" "${7:--1}" | tee "$out/search_recovery.md"
