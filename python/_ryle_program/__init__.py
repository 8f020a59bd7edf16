# SPDX-License-Identifier: BSD-3-Clause
"""Starts the program `ryle`, which an installed package has beside this file. It is a package of its own because `ryle`
would load NumPy first."""

import os
import sys


def main() -> int:
    """The command `ryle`: this process becomes the program, but for `ryle data`, which is of the package."""
    if sys.argv[1:2] == ["data"]:
        import ryle.data
        return ryle.data.main(sys.argv[2:])
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ryle")
    try:
        os.execv(program, sys.argv)
    except OSError as cause:
        sys.exit(f"ryle: error: {program} cannot be started: {cause.strerror}; install the package again")
