#!/usr/bin/env bash
# Builds the tests that matter to a sanitizer and runs them: sanitize.sh asan|tsan|engines|python [arguments of gtest or pytest]
#   asan: address + undefined behaviour on everything that parses and assembles what comes from outside, packets and files (CI)
#   tsan: queues, stages, sockets, the live path (CI)
#   engines: address + undefined behaviour on engines, pipelines and the replay of damaged files; slow to compile, run by hand
#   python: address + undefined behaviour + leaks on the extension of the Python package and all below it, by hand
set -euo pipefail
cd "$(dirname "$0")/.."
job=${1:?usage: sanitize.sh asan|tsan|engines|python}
kind=$job
options=()
shift
case "$kind" in
  asan) targets="test_core test_wire test_recording test_telescope test_runtime test_ingest test_io test_io_beam test_io_scan test_hdf5" ;;
  engines) kind=asan
           targets="test_math test_channelize test_engine_beamform test_engine_correlate test_engine_image test_engine_search
                    test_engine_grid test_simt test_simulate test_plot test_io_map test_pipeline test_pipeline_beam
                    test_pipeline_grid test_pipeline_search test_fuzz" ;;
  tsan) targets="test_runtime test_ingest test_pipeline" ;;
  python) kind=asan targets=ryle_python options=(-DRYLE_PYTHON=ON) python=$(scripts/python_env.sh) ;;
  *) echo "sanitize: unknown job $kind (asan, tsan, engines, python)" >&2; exit 64 ;;
esac
cmake --preset "$kind" "${options[@]}" >/dev/null
known=$(cmake --build "build-$kind" --target help | sed -n 's/^\(test_[a-z0-9_]*\|ryle_python\):.*/\1/p' | sort -u)
unknown=$(comm -23 <(printf '%s\n' $targets | sort) <(printf '%s\n' $known | sort))
[ -z "$unknown" ] || { echo "sanitize: no such target:" $unknown >&2; exit 64; }
cmake --build "build-$kind" --target $targets
# Libraries ask for what damaged files say and take a null pointer for an answer.
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1
export LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp print_suppressions=0"
export TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/scripts/tsan.supp"
if [ "$job" = python ]; then
  # The interpreter was built without: what the compiler would link comes first in the process. Of its own leaks and those of
  # other extensions nothing is said: those count in whose stack Ryle is. What was freed is kept a while, which the test of
  # memory takes for growth; checks of strings take minutes for the interpreter's.
  reports=$(mktemp -d)
  trap 'rm -rf "$reports"' EXIT
  status=0
  env LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libstdc++.so)" PYTHONPATH="$PWD/build-asan/python" PYTHONDONTWRITEBYTECODE=1 \
    PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 LSAN_OPTIONS="$LSAN_OPTIONS:exitcode=0" \
    ASAN_OPTIONS="$ASAN_OPTIONS:strict_string_checks=0:abort_on_error=1:log_path=$reports/report" UBSAN_OPTIONS="$UBSAN_OPTIONS:abort_on_error=1:log_path=$reports/report" \
    "$python" -m pytest -q -rs -p no:cacheprovider tests/python --ignore-glob='*_slow.py' --ignore-glob='*test_site.py' \
    --ignore-glob='*test_types.py' --ignore-glob='*test_tutorials.py' -k 'not leave_no_memory and not memory_does_not_grow' "$@" || status=1
  "$python" scripts/python_leaks.py "$reports"/report.* || status=1
  exit $status
fi
# The kernel may place more randomness under mmap than g++ 12's TSan can map.
run=()
if [ "$kind" = tsan ]; then run=(setarch "$(uname -m)" -R); fi
for target in $targets; do
  echo "-- $kind: $target"
  program=$(find "build-$kind/tests" -name "$target" -type f -perm -u+x)
  "${run[@]}" "$program" --gtest_brief=1 "$@"
done
