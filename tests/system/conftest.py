# SPDX-License-Identifier: BSD-3-Clause
"""Nothing of these tests depends on what runs beside them or ran before."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import own_folder  # noqa: E402

own_folder.make()


def pytest_sessionfinish(exitstatus):
    own_folder.keep = exitstatus != 0
