#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the libFuzzer targets (clang, ASan + UBSan) and runs each for SECONDS_EACH seconds (60). A finding stops the
# script with status 1 and is left in BUILD/findings; executions are added to BUILD/executions.txt (docs/fuzzing.md).
#   usage: scripts/fuzz.sh [BUILD [SECONDS_EACH [TARGET...]]]
# observation, trigger and rgrid want all engines compiled and run only when they are named.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$source/build-fuzz}
seconds=${2:-60}
[ $# -gt 2 ] && shift 2 || set --
: "${CXX:=clang++-14}" "${CC:=clang-14}"
targets=${*:-mwa32t lwa vdif best2 chips spead text_header json_and_time recordings scans assembler sigproc psrfits uvfits uvh5 \
  covariance map_target recover journal measurement_set layout station beams_file best2_xml par masks}
if [ ! -f "$build/build.ninja" ]; then
  cmake -G Ninja -S "${RYLE_FUZZ_SOURCE:-$source}" -B "$build" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_C_COMPILER="$CC" \
    -DRYLE_FUZZ=ON -DRYLE_CUDA=off -DRYLE_BENCH=OFF \
    "-DRYLE_SANITIZE=address,undefined,fuzzer-no-link" >/dev/null
fi
# shellcheck disable=SC2086
ninja -C "$build" $(for t in $targets; do echo "fuzz_$t"; done)
mkdir -p "$build/findings"
for target in $targets; do
  corpus=$build/corpus/$target
  data=${RYLE_DATA:-$source/../shared/data}
  mkdir -p "$corpus"
  # Seeds: the beginnings of real recordings, where they are; the others make their own.
  case " mwa32t lwa vdif best2 chips spead text_header json_and_time recordings " in
  *" $target "*) ;;
  *) data=/nowhere ;;
  esac
  for file in "$data"/lwa/*-test.dat "$data"/baseband/sample*; do
    [ -f "$file" ] && head -c 24576 "$file" >"$corpus/seed-$(basename "$file")"
  done
  # One frame of a packet format at a time.
  for size in 544 1048 1560 1564 5032; do
    for file in "$data"/lwa/tb?-test.dat "$data"/lwa/tbf-mini-test.dat "$data"/baseband/sample.vdif "$data"/baseband/sample_mwa.vdif; do
      [ -f "$file" ] && head -c $size "$file" >"$corpus/seed-$size-$(basename "$file")"
    done
  done
  echo "== $target: $seconds s"
  executable=$(find "$build" -name "fuzz_$target" -type f | head -1)
  # What cfitsio asks for and does not get is an error like any other.
  RYLE_FUZZ_SEEDS=$corpus ASAN_OPTIONS=allocator_may_return_null=1 "$executable" -max_total_time="$seconds" -timeout="${RYLE_FUZZ_TIMEOUT:-5}" -rss_limit_mb=512 -max_len=24576 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$corpus" 2>"$build/$target.log" || {
    tail -40 "$build/$target.log"
    echo "FOUND: see $build/findings and $build/$target.log"
    exit 1
  }
  grep -E 'number_of_executed_units|average_exec_per_sec|peak_rss_mb' "$build/$target.log"
  sed -n "s/^stat::number_of_executed_units: */$target /p" "$build/$target.log" >>"$build/executions.txt"
done
