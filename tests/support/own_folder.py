# SPDX-License-Identifier: BSD-3-Clause
"""A folder for the temporary files and caches of this process and of all it starts, as tests/main.cpp makes one for
GoogleTest programs. Goes with the process; after a failure it stays, to be looked at."""
import atexit
import os
import shutil
import tempfile

keep = False


def make():
    folder = tempfile.mkdtemp(prefix="ryle-test-")
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
    atexit.register(lambda: keep or shutil.rmtree(folder, ignore_errors=True))
