# SPDX-License-Identifier: BSD-3-Clause
"""The whole path as a benchmark prints the fields of every other one (docs/benchmarks.md)."""

import pytest
from test_commands import test_benchmarks_print_the_same_fields as check


@pytest.mark.parametrize("engine", ["path"])
def test_the_path_prints_the_same_fields(engine):
    check(engine)
