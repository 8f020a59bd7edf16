#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Everything that needs a GPU, in one run: the tests, compute-sanitizer on small sizes, the benchmarks.
#
#   scripts/gpu_check.sh [BIN_DIR] [tests] [sanitize] [bench]      (no step named: all three)
#
# BIN_DIR holds test_cuda and bench_cuda (default: the build folder's); shared libraries beside them in BIN_DIR/lib are
# used, so that a GPU machine needs nothing but a driver. Results go to $OUT (default gpu-results): tests.txt,
# sanitize.txt, bench.jsonl (one JSON object a line), machine.txt. Exit status 0 only when every step passed.
set -u -o pipefail
cd "$(dirname "$0")/.."

bin=build
if [[ $# -gt 0 && -d $1 ]]; then
  bin=$1
  shift
fi
steps=${*:-tests sanitize bench}
out=${OUT:-gpu-results}
mkdir -p "$out"
[[ -d $bin/lib ]] && export LD_LIBRARY_PATH="$PWD/$bin/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

find_program() {
  local candidate
  for candidate in "$bin/$1" "$bin/tests/cuda/$1" "$bin/bench/$1"; do
    [[ -x $candidate ]] && echo "$candidate" && return
  done
  echo "gpu_check: $1 not found under $bin; build it with CUDA first" >&2
  exit 66
}
test_cuda=$(find_program test_cuda) || exit
bench_cuda=$(find_program bench_cuda) || exit

{
  nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit --format=csv
  uname -sr
} >"$out/machine.txt" 2>&1
cat "$out/machine.txt"

failed=0
note() { # name, status
  if [[ $2 -eq 0 ]]; then echo "gpu_check: $1 passed"; else
    echo "gpu_check: $1 FAILED (status $2)"
    failed=1
  fi
}

if [[ " $steps " == *" tests "* ]]; then
  # A run in which every test skipped for want of a device must not pass.
  "$test_cuda" --gtest_brief=0 >"$out/tests.txt" 2>&1
  status=$?
  grep -q "skipped: no" "$out/tests.txt" && status=69
  grep -E "FAILED|PASSED|Failure|differ| ms total" "$out/tests.txt" | tail -40
  note tests $status
  # Live beams and their search on the device; links the file formats, so it may be missing on a bare machine.
  for chain in "$bin/test_cuda_chain" "$bin/tests/cuda_chain/test_cuda_chain"; do
    [[ -x $chain ]] || continue
    RYLE_CHECKOUT=$PWD "$chain" --gtest_brief=0 >"$out/tests-chain.txt" 2>&1
    status=$?
    grep -q "skipped: no" "$out/tests-chain.txt" && status=69
    grep -E "FAILED|PASSED|Failure" "$out/tests-chain.txt" | tail -20
    note "tests of the chain" $status
    break
  done
fi

if [[ " $steps " == *" sanitize "* ]]; then
  # Small sizes that still reach every kernel: several formats, splits in time, folds, delays, statistics.
  small='CudaTest.Copies*:CudaChannelize.Rounding*'
  small+=':CudaChannelize.Absent*:CudaChannelize.Splitting*:CudaChannelize.Feeds*:CudaChannelize.FusedRounding*:CudaChannelize.FusedAbsent*:CudaChannelize.FusedSplitting*'
  small+=':CudaAllSky.Fused*:CudaAllSky.ImagesTheTiles*:CudaAllSky.VisDft*'
  small+=':CudaBeamform.Gulps:CudaBeamform.Dither*:CudaBeamform.LastSets*:CudaBeamform.FewBeams*:CudaBeamform.HalvesOf*'
  small+=':CudaSearch.Small*:CudaSearch.HostMemory*'
  small+=':CudaGrid.WeightsFlags*:CudaGrid.PlanesInOneGo*:CudaGrid.NothingToGrid*'
  small+=':CudaLevels.*SmallShapes:CudaTurn.*:CudaImport.*'
  : >"$out/sanitize.txt"
  for tool in memcheck racecheck initcheck; do
    filter=$small:CudaCorrelateFew.*
    # Racecheck takes a thousand times as long as the tests: of the correlators it gets the least that reaches every kernel.
    [[ $tool == racecheck ]] ||
      filter+=':CudaCorrelate.TensorCores*:CudaCorrelate.AnyTuning*:CudaCorrelate.ThreeWarp*:CudaCorrelate.ManyGulps*:CudaCorrelate.Counts*:CudaCorrelate.HalvesOf*'
    [[ $tool == memcheck ]] && filter+=':CudaCorrelate.Simt*:CudaChannelize.Delays*:CudaAllSky.*Conforms:CudaSearch.Arbitrary*:CudaSearch.HitsEqual*:CudaBeamform.OddShares:CudaGrid.EqualsTheDirectSum*:CudaGrid.FunctionsOf*'
    # A minute each under racecheck, of kernels that Gulps and Dither reach, too.
    [[ $tool == racecheck ]] && filter+=':-CudaBeamform.FewBeams*:CudaBeamform.LastSets*'
    compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20 "$test_cuda" --gtest_filter="$filter" \
      >"$out/sanitize-$tool.txt" 2>&1
    status=$?
    grep -E "ERROR SUMMARY|RACECHECK SUMMARY|PASSED|FAILED" "$out/sanitize-$tool.txt" | sed "s/^/$tool: /" |
      tee -a "$out/sanitize.txt"
    note "$tool" $status
  done
fi

if [[ " $steps " == *" bench "* ]]; then
  "$bench_cuda" 2>"$out/bench.err" | tee "$out/bench.jsonl" | cut -c1-400
  note bench "${PIPESTATUS[0]}"
  cat "$out/bench.err"
  # F and X of a stream, X on all devices; links the file formats, so it may be missing on a bare machine.
  for chain in "$bin/bench_chain" "$bin/bench/bench_chain"; do
    [[ -x $chain ]] || continue
    for what in stream devices; do
      "$chain" $what 2>"$out/$what.err" | tee "$out/$what.jsonl" | cut -c1-400
      note "bench of $what" "${PIPESTATUS[0]}"
      cat "$out/$what.err"
    done
    break
  done
fi
exit $failed
