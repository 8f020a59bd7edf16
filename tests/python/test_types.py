# SPDX-License-Identifier: BSD-3-Clause
"""The package is typed, and what it says of types holds."""

import pathlib
import subprocess
import sys

import pytest
from helpers import ROOT

import ryle

PACKAGE = pathlib.Path(ryle.__file__).parent


def mypy(*arguments, cwd):
    pytest.importorskip("mypy")
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(cwd / "cache"),
                           *arguments], capture_output=True, text=True, cwd=cwd)


def test_mypy_finds_nothing_and_sees_the_types_of_the_extension(tmp_path):
    assert (PACKAGE / "py.typed").exists() and "class Correlator" in (PACKAGE / "_ryle.pyi").read_text()
    result = mypy(str(PACKAGE), cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    user = tmp_path / "user.py"
    user.write_text("import numpy as np\nimport ryle\nv = ryle.correlate(np.zeros((1, 2, 3, 2), np.int8))\nreveal_type(v)\nv.nothing\n")
    result = mypy(str(user), cwd=tmp_path)
    assert "Visibilities" in result.stdout and '"Visibilities" has no attribute "nothing"' in result.stdout, result.stdout


def test_every_public_name_has_a_docstring():
    bare = [name for name in ryle.__all__ if callable(getattr(ryle, name)) and not getattr(ryle, name).__doc__]
    assert not bare
    for name in ryle.__all__:
        for method, value in vars(getattr(ryle, name)).items() if isinstance(getattr(ryle, name), type) else ():
            if not method.startswith("_") and callable(value) and method not in ("table",):
                assert value.__doc__, f"{name}.{method}"
