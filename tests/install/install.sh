#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs BUILD to a prefix and builds and runs examples/cpp against it: install.sh SOURCE BUILD
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for component in runtime dev doc; do cmake --install "$build" --prefix "$work/prefix" --component $component >/dev/null; done
"$work/prefix/bin/ryle" --version
[ -f "$work/prefix/share/doc/ryle/README.md" ] || { echo "no documents"; exit 1; }
grep -q -- 'pixels' "$work/prefix/share/man/man1/ryle-image.1" || { echo "no page of image"; exit 1; }
completed=$(bash -c '. "$1"; COMP_WORDS=(ryle image --pix) COMP_CWORD=2; _ryle; echo "${COMPREPLY[*]}"' _ \
  "$work/prefix/share/bash-completion/completions/ryle")
[ "$completed" = --pixels ] || { echo "bash completes --pix to \"$completed\""; exit 1; }

# Each must find what its data hold, whatever the library is linked to.
check() {
  "$1/correlate" | tee "$work/out" && grep -q 'inputs 0 1: ' "$work/out"
  "$1/beamform" | tee "$work/out" && awk '/at the source/ { exit !($5 > 20 * $8) }' FS='[ ,]+' "$work/out"
  "$1/search" | tee "$work/out" && grep -qE 'DM (29[0-9]|30[0-9])\.[0-9] pc/cm3 at 2\.50' "$work/out"
  "$1/grid" | tee "$work/out" && grep -qE 'lon 10\.1.. lat 0\.(18|20|21)' "$work/out"
}
for static in OFF ON; do
  cmake -G Ninja -S "$source/examples/cpp" -B "$work/$static" -DCMAKE_PREFIX_PATH="$work/prefix" -DRYLE_STATIC=$static \
    -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >/dev/null
  cmake --build "$work/$static" >"$work/log" || { cat "$work/log"; exit 1; }
  check "$work/$static"
done
for static in OFF ON; do ldd "$work/$static/correlate" >"$work/$static.ldd"; done
grep -q "$work/prefix/.*libryle.so" "$work/OFF.ldd" || { echo "the shared library is not used"; exit 1; }
! grep -q libryle "$work/ON.ldd" || { echo "the static library is not used"; exit 1; }

pc=$(dirname "$(find "$work/prefix" -name ryle.pc)")
export PKG_CONFIG_PATH=$pc LD_LIBRARY_PATH=$(dirname "$pc")
mkdir "$work/pc"
for name in correlate beamform search grid; do
  # shellcheck disable=SC2046
  c++ -std=c++20 "$source/examples/cpp/$name.cpp" -o "$work/pc/$name" $(pkg-config --define-variable=prefix="$work/prefix" --cflags --libs ryle)
done
check "$work/pc"
echo "install: examples run by find_package (shared, static) and pkg-config"
