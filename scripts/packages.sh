#!/usr/bin/env bash
# The Debian packages Ryle needs, in one place: `packages.sh build`, `packages.sh python` (what `pip install .` needs
# besides), `packages.sh test` and `packages.sh lint` print lists; `packages.sh install LIST...` installs what is missing
# with apt (as root, or through sudo).
set -euo pipefail

build="g++ cmake ninja-build pkg-config libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libfmt-dev
 libtbb-dev libhdf5-dev liblz4-dev libzstd-dev libblosc-dev libcfitsio-dev wcslib-dev liberfa-dev libcairo2-dev fonts-dejavu-core libpugixml-dev libsqlite3-dev libssl-dev zlib1g-dev casacore-dev casacore-data libpcap-dev"
python="python3 python3-venv python3-dev"
test="ccache libgtest-dev libgmock-dev libfftw3-dev wsclean aoflagger fitsverify wcslib-tools python3 python3-venv
 python3-dev python3-pip python3-numpy python3-scipy python3-h5py python3-astropy python3-pytest python3-casacore"
lint="clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev doxygen"

list() {
  case "$1" in
    build) echo $build ;;
    python) echo $python ;;
    test) echo $test ;;
    lint) echo $lint ;;
    *) echo "packages: unknown list $1 (build, python, test, lint)" >&2; exit 64 ;;
  esac
}

missing() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

install() {
  command -v apt-get >/dev/null || { echo "packages: no apt-get here; install by hand: $*" >&2; exit 69; }
  local wanted; wanted=$(missing "$@")
  [ -n "$wanted" ] || return 0
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "packages: run as root, or install: $wanted" >&2; exit 77; }
    sudo=sudo
  fi
  echo "installing:" $wanted >&2
  export DEBIAN_FRONTEND=noninteractive
  local apt="$sudo apt-get -qq -o Dpkg::Use-Pty=0"
  # Package lists may be absent (a bare root) or stale: refresh only when the install fails without.
  $apt install -y --no-install-recommends $wanted >/dev/null 2>&1 || {
    $apt update >/dev/null
    $apt install -y --no-install-recommends $wanted >/dev/null
  }
}

command=${1:?usage: packages.sh build|python|test|lint|install LIST...}
shift
if [ "$command" = install ]; then
  all=""
  for name in "$@"; do all="$all $(list "$name")"; done
  install $all
else
  list "$command"
fi
