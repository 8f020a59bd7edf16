#!/usr/bin/env bash
# Proves that tests can fail: compiles each planted defect of tests/mutants/list.txt and demands that its named test catches
# it. Run by hand, about a minute each (cmake/RyleMutant.cmake): mutants.sh [first [last]]
set -euo pipefail
cd "$(dirname "$0")/.."
first=${1:-0}
last=${2:-999999}
build=${RYLE_BUILD:-build-mutants}
survivors=0
killed=0
while read -r number regex description; do
  case "$number" in ''|\#*) continue ;; esac
  [ "$number" -ge "$first" ] && [ "$number" -le "$last" ] || continue
  cmake --preset check -B "$build" -DRYLE_MUTANT="$number" >/dev/null
  # The part before the first dot of a ctest name is the test executable, or says which programs the tests run.
  family=$(printf '%s' "$regex" | sed 's/^\^//; s/[.\\(].*//')
  case "$family" in
    peers) targets="make_products print_pointing ryle" ;;
    system) targets=ryle ;;
    *) targets=test_$family ;;
  esac
  built=0
  # shellcheck disable=SC2086
  cmake --build "$build" --target $targets >"$build/mutant.log" 2>&1 && built=1
  # A defect that does not compile, or a name that no test has, proves nothing.
  if [ "$built" = 0 ] || (cd "$build" && ctest -N -R "$regex" 2>/dev/null) | grep -q "^Total Tests: 0"; then
    echo "BROKEN   $number  $regex  does not build, or no such test (see $build/mutant.log)"
    survivors=$((survivors + 1))
    continue
  fi
  if (cd "$build" && ctest -R "$regex" --no-tests=error -Q --timeout 120); then
    echo "SURVIVED $number  $regex  $description"
    survivors=$((survivors + 1))
  else
    echo "killed   $number  $regex  $description"
    killed=$((killed + 1))
  fi
done < tests/mutants/list.txt
echo "mutants: $killed killed, $survivors survived or broken"
[ "$survivors" -eq 0 ]
