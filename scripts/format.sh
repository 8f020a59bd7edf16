#!/usr/bin/env bash
# Formats (or with --check only verifies) all C++ and CUDA sources with clang-format 14.
set -euo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format || true)
[ -n "$format" ] || { echo "format: clang-format-14 is not installed (apt-get install clang-format-14)" >&2; exit 69; }
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run --Werror)
git ls-files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -r "$format" "${mode[@]}"
