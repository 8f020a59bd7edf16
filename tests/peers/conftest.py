# SPDX-License-Identifier: BSD-3-Clause
"""Products of make_products (the simulated sky) and what to do when a client is missing."""
import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import warnings

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_folder  # noqa: E402

own_folder.make()


def pytest_sessionfinish(exitstatus):
    own_folder.keep = exitstatus != 0


def absent(what):
    """A missing client skips with its name, or fails where every client is required (RYLE_REQUIRE_PEERS=1)."""
    message = f"{what} is not installed"
    if os.environ.get("RYLE_REQUIRE_PEERS") == "1":
        pytest.fail(message + ", and RYLE_REQUIRE_PEERS=1")
    pytest.skip("skipped: " + message)


def program(name):
    path = shutil.which(name)
    if path is None:
        absent(name)
    return path


def module(name):
    try:
        return importlib.import_module(name)
    except Exception as error:  # a package of the wrong numpy ABI raises other things than ImportError
        absent(f"python module {name} ({type(error).__name__}: {error})")


class Products:
    def __init__(self, folder):
        self.folder = folder
        with open(folder / "truth.json") as file:
            self.truth = json.load(file)

    def __truediv__(self, name):
        return str(self.folder / name)


@pytest.fixture(scope="session")
def products(tmp_path_factory):
    maker = os.environ.get("RYLE_MAKE_PRODUCTS")
    if not maker:
        absent("make_products (set RYLE_MAKE_PRODUCTS, or run through ctest)")
    folder = tmp_path_factory.mktemp("products")
    subprocess.run([maker, str(folder)], check=True, timeout=120)
    return Products(folder)


@pytest.fixture
def offline():
    """No download of Earth orientation tables by astropy: the bundled ones do."""
    iers = module("astropy.utils.iers")
    before = iers.conf.auto_download
    iers.conf.auto_download = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    iers.conf.auto_download = before
