# SPDX-License-Identifier: BSD-3-Clause
"""The extension of the build folder is on PYTHONPATH; without it nothing here can be tested."""
import pathlib
import sys

import pytest

pytest.importorskip("ryle", reason="skipped: the Python package was not built (RYLE_PYTHON)")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_folder  # noqa: E402

own_folder.make()


def pytest_sessionfinish(exitstatus):
    own_folder.keep = exitstatus != 0


@pytest.fixture
def offline():
    """astropy asks no server for the Earth's orientation."""
    iers = pytest.importorskip("astropy.utils.iers")
    with iers.conf.set_temp("auto_download", False):
        yield
