#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Proves that tests can fail. Each tests/mutants/NUMBER-what.patch is a defect and names the test that must catch it.
#   mutants.sh --check                    every patch applies to this tree, and its test exists where one is built (seconds)
#   mutants.sh [--share K/N] [PATTERN...] plants each defect in a copy of the tree, builds, and runs its test: killed or survived.
#                                         PATTERN is a part of a patch's name ("09", "uvh5"); --share 1/2 takes every second one.
# The results are lines of BUILD/results.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$PWD
field() { sed -n "s/^# $1: //p" "$2" | head -1; }

check=0 share=1 shares=1
while [ $# -gt 0 ]; do
  case "$1" in
    --check) check=1 ;;
    --share) share=${2%/*} shares=${2#*/}; shift ;;
    *) break ;;
  esac
  shift
done
patches=() index=0
for patch in tests/mutants/*.patch; do
  wanted=$([ $# -eq 0 ] && echo 1 || echo 0)
  for pattern in "$@"; do [[ $(basename "$patch") == *"$pattern"* ]] && wanted=1; done
  [ "$wanted" = 1 ] || continue
  index=$((index + 1))
  [ $((index % shares)) -eq $((share % shares)) ] && patches+=("$patch")
done

if [ "$check" = 1 ]; then
  faults=0
  for patch in "${patches[@]}"; do
    git apply --check "$patch" || { echo "does not apply any more: $patch"; faults=$((faults + 1)); }
    [ -n "$(field test-regex "$patch")" ] || { echo "names no test (# test-regex:): $patch"; faults=$((faults + 1)); }
  done
  [ "$faults" -eq 0 ] && echo "mutants: ${#patches[@]} patches apply"
  exit $((faults > 0))
fi

build=${RYLE_BUILD:-$tree/build-mutants}/$share-of-$shares
copy=$build/tree
mkdir -p "$copy"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
[ -e .venv ] && ln -sfn "$(readlink -f .venv)" "$copy/.venv"
# A defect may leave a variable unused: no proof of anything, so warnings are none here.
linker=$(command -v mold >/dev/null && echo -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=mold || true)
cmake --preset check -DRYLE_WERROR=OFF -DRYLE_PYTHON=$([ -e .venv ] && echo ON || echo OFF) $linker -S "$copy" -B "$build/check" >/dev/null
results=$build/results.txt
: >"$results"
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  regex=$(field test-regex "$patch")
  # The part before the first dot of a ctest name is the test executable, or says which programs the tests run.
  family=$(printf '%s' "$regex" | sed 's/^\^//; s/[.\\(].*//')
  case "$family" in
    cuda | cuda_chain) command -v nvidia-smi >/dev/null || { echo "no GPU    $name" | tee -a "$results"; continue; } ;;
  esac
  case "$family" in
    peers) targets="make_products print_pointing ryle" ;;
    system) targets=ryle ;;
    python) targets="ryle_python ryle_python_stub" ;;
    *) targets=test_$family ;;
  esac
  (cd "$copy" && patch -sp1 <"$tree/$patch")
  # shellcheck disable=SC2086
  if ! cmake --build "$build/check" --target $targets >"$build/mutant.log" 2>&1; then
    # A defect that does not compile proves nothing.
    echo "BROKEN    $name  does not build"
    cp "$build/mutant.log" "$build/$name.log"
  elif (cd "$build/check" && ctest -N -R "$regex" 2>/dev/null) | grep -q "^Total Tests: 0"; then
    echo "BROKEN    $name  no test $regex"
  elif (cd "$build/check" && ctest -R "$regex" --no-tests=error --timeout 300 >"$build/mutant.log" 2>&1); then
    echo "SURVIVED  $name  $regex"
  elif grep -q 'Timeout' "$build/mutant.log"; then
    echo "killed    $name  (no end within 300 s)"
  else
    echo "killed    $name"
  fi | tee -a "$results"
  (cd "$copy" && patch -sRp1 <"$tree/$patch")
done
echo "mutants: $(grep -c '^killed' "$results") killed, $(grep -c '^SURVIVED' "$results") survived, $(grep -c '^BROKEN' "$results") broken, $(grep -c '^no GPU' "$results") need a GPU"
! grep -q '^SURVIVED\|^BROKEN' "$results"
