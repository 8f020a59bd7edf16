# SPDX-License-Identifier: BSD-3-Clause
"""The wheel works where there is nothing but an interpreter, the C and C++ libraries and NumPy: package, program, pictures.

RYLE_WHEELS names a folder of wheels that are tried in the place of new ones, RYLE_WHEEL_PYTHON a second interpreter."""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy
import pytest
from helpers import ROOT

# What every machine has for which manylinux wheels are made (PEP 600), and zlib and expat, which come with Python.
BASE = ["libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2", "libstdc++.so.6",
        "libgcc_s.so.1", "libz.so.1", "libexpat.so.1"]
NEWEST_GLIBC = (2, 36)  # Debian 12
# Of 3.12 or newer: the wheel of the stable ABI. It takes as long again, and Debian 12 has none.
OTHER = [os.path.realpath(os.environ["RYLE_WHEEL_PYTHON"])] if "RYLE_WHEEL_PYTHON" in os.environ else []


def run(*command, **options):
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}{ended.stderr}"
    return ended.stdout


def copy(file, root):
    """A file at the path that it has here; what a link leads to is copied under the name of the link."""
    target = root / str(file).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        shutil.copymode(file, target)


def bare_root(root, python):
    """A tree with the interpreter, its modules and the base libraries, and nothing else."""
    modules, version = json.loads(run(python, "-c", "import json, sys, sysconfig; print(json.dumps([sysconfig.get_path('stdlib'), "
                                                    "sys.version_info[:2]]))"))
    copy(python, root)
    shutil.copytree(modules, root / modules.lstrip("/"), symlinks=True,
                    ignore=shutil.ignore_patterns("site-packages", "dist-packages", "test", "tests", "idlelib", "__pycache__", "*.a"))
    bundled = pathlib.Path("/usr/share/python-wheels")  # Debian's ensurepip takes pip from here
    if bundled.is_dir():
        shutil.copytree(bundled, root / "usr/share/python-wheels")
    needed = set(re.findall(r"(/\S+) \(0x", run("ldd", python)))
    known = dict(re.findall(r"^\s+(\S+) \(libc6,x86-64[^)]*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.M))
    for library in needed | {known[name] for name in BASE if name in known}:
        copy(library, root)
    for folder in ("tmp", "dev", "proc", "wheels"):
        (root / folder).mkdir()
    (root / "dev/null").touch()
    return tuple(version)


def numpy_into(root, python, version):
    """NumPy in /venv: that of this environment, for another Python from the package index."""
    packages = root / "venv/lib/python{}.{}/site-packages".format(*version)
    if version == sys.version_info[:2]:
        here = pathlib.Path(numpy.__file__).parents[1]
        for name in ("numpy", "numpy.libs", f"numpy-{numpy.__version__}.dist-info"):
            shutil.copytree(here / name, packages / name, ignore=shutil.ignore_patterns("tests", "__pycache__"))
        return
    ended = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:",
                            "--target", packages, "numpy"], capture_output=True, text=True)
    if ended.returncode != 0:
        pytest.skip(f"skipped: no NumPy for Python {version[0]}.{version[1]}: {ended.stderr.strip().splitlines()[-1]}")


@pytest.fixture(scope="module", params=[os.path.realpath(sys.executable), *OTHER], ids=str)
def wheel(request, tmp_path_factory):
    """(wheel, interpreter)"""
    folder = pathlib.Path(os.environ.get("RYLE_WHEELS") or tmp_path_factory.mktemp("wheel"))
    if "RYLE_WHEELS" not in os.environ:
        # The environment's pip has what builds the package; that of another interpreter fetches it.
        own = request.param == os.path.realpath(sys.executable)
        environment = dict(os.environ, RYLE_WHEEL_PYTHON=sys.executable if own else request.param)
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        run(ROOT / "scripts/make_wheel.sh", folder, *(["--no-build-isolation"] if own else []), env=environment)
    version = run(request.param, "-c", "import sys; print(*sys.version_info[:2], sep='')").strip()
    tag = f"cp{version}-cp{version}" if int(version) < 312 else "cp312-abi3"
    found = list(folder.glob(f"ryle-*-{tag}-*.whl"))
    assert len(found) == 1, [file.name for file in folder.iterdir()]
    return found[0], request.param


@pytest.fixture(scope="module")
def inside(wheel, tmp_path_factory):
    """Runs a command in a bare root in which the wheel is installed; its output."""
    file, python = wheel
    root = tmp_path_factory.mktemp("root")
    # With /proc, where the loader of a program reads in which folder it is, to find its libraries.
    enter = ["/usr/bin/unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "/bin/sh", "-c",
             'mount --rbind /proc "$0/proc" && exec /usr/sbin/chroot "$0" "$@"']
    if subprocess.run([*enter, "/", "/bin/true"], capture_output=True).returncode != 0:
        pytest.skip("skipped: mounts and chroot are not allowed here")

    def call(*command):
        return run(*enter, root, *command, env={"PATH": "/venv/bin:/usr/bin:/bin", "HOME": "/tmp"}, cwd="/")

    version = bare_root(root, python)
    call(python, "-m", "venv", "/venv")
    numpy_into(root, python, version)
    shutil.copy(file, root / "wheels")
    shutil.copytree(ROOT / "examples", root / "examples", ignore=shutil.ignore_patterns("cpp"))
    call("/venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--find-links", "/wheels", "ryle")
    yield call
    shutil.rmtree(root, ignore_errors=True)


def test_the_wheel_says_what_it_needs(wheel):
    file, _ = wheel
    platforms = [tuple(map(int, numbers)) for numbers in re.findall(r"manylinux_(\d+)_(\d+)_x86_64", file.name)]
    assert platforms and min(platforms) <= NEWEST_GLIBC, file.name
    names = zipfile.ZipFile(file).namelist()
    for name in ("ryle/__init__.py", "ryle/py.typed", "ryle/_ryle.pyi", "_ryle_program/ryle"):
        assert name in names
    assert not [name for name in names if name.endswith((".hpp", ".a", ".o"))]
    print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")
    assert file.stat().st_size < 40e6


def test_every_library_in_the_wheel_has_its_licence(wheel):
    archive = zipfile.ZipFile(wheel[0])
    folder = next(name for name in archive.namelist() if name.endswith(".dist-info/RECORD")).rpartition("/")[0]
    texts = {name.partition("/licenses/")[2]: archive.read(name) for name in archive.namelist()
             if name.startswith(f"{folder}/licenses/") and not name.endswith("/")}
    # The bill of materials, what it lacks of Debian 12, and what is compiled in.
    parts = json.loads(archive.read(f"{folder}/sboms/auditwheel.cdx.json"))["components"]
    packages = {part["name"] for part in parts if part["purl"].startswith("pkg:deb/")}
    for name in packages | {"libbz2-1.0", "liblzma5", "libcap2", "libcli11-dev", "nlohmann-json3-dev"}:
        assert b"opyright" in texts[f"{name}/copyright"], name
    assert len(packages) > 40 and {"LICENSE", "nanobind/LICENSE", "nanobind/robin_map"} <= texts.keys()
    for name in re.findall(r"/usr/share/common-licenses/([\w.+-]*\w)", str(texts)):
        assert len(texts[f"common-licenses/{name}"]) > 5000, name
    record = {name: (digest, size) for name, digest, size in (line.rsplit(",", 2) for line in archive.read(f"{folder}/RECORD").decode().split())}
    assert record.keys() == {name for name in archive.namelist() if not name.endswith("/")}
    for name, text in texts.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
        assert record[f"{folder}/licenses/{name}"] == (f"sha256={digest}", str(len(text))), name


def test_the_package_works_in_a_bare_root(inside):
    said = inside("/venv/bin/python", "-c", """
import doctest, importlib, ryle
for name in ("_correlate", "_spectra", "_beamform", "_arrays"):
    result = doctest.testmod(importlib.import_module("ryle." + name))
    assert result.attempted and not result.failed, name
print(ryle.__version__, sorted(ryle.implementations()))
""")
    assert "'correlate'" in said


def test_the_program_works_in_a_bare_root(inside):
    said = inside("/venv/bin/ryle", "--version")
    assert re.match(r"ryle \d+\.\d+\.\d+", said)
    assert said.split()[1] == inside("/venv/bin/python", "-c", "import ryle; print(ryle.__version__)").strip()
    assert "tbx-test.dat" in inside("/venv/bin/ryle", "data", "list")
    inside("/venv/bin/ryle", "plan", "/examples/mwa32t.toml", "--set", "output.ms=false")
    # This build has no casacore: asked for a Measurement Set, a check says what the run would say.
    refused = inside("/venv/bin/python", "-c", "import subprocess; print(subprocess.run(['/venv/bin/ryle', 'run', '/examples/mwa32t.toml', "
                                               "'--check'], stderr=subprocess.PIPE, text=True))")
    assert "returncode=69" in refused and "output.ms = false" in refused, refused
    host = "127.{}.{}.{}".format(96 + (os.getpid() >> 16), os.getpid() >> 8 & 255, os.getpid() & 255)  # of this test alone
    summary = json.loads(inside("/venv/bin/ryle", "run", "/examples/mwa32t.toml", "--set", "output.ms=false", "--set", "source.duration_s=1",
                                "--set", f'source.listen=["tcp://{host}:24015","tcp://{host}:24016","udp://{host}:24017","udp://{host}:24018"]',
                                "--set", "output.directory=/tmp/out", "--allow-small-rcvbuf", "--json"))
    assert summary["integrations"] >= 2 and {"mwa32t.uvh5", "mwa32t_sky.png"} <= {pathlib.Path(p).name for p in summary["products"]}
