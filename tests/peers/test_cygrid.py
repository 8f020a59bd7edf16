# SPDX-License-Identifier: BSD-3-Clause
"""Maps beside Cygrid's, in double: the same cells, all but 2 % of them to 1e-9; the rest becomes Cygrid's by leaving out
samples at the edge of the support, which it misses. compare_cygrid.py runs whole cases."""
import os
import pathlib

import numpy as np
import pytest
from conftest import absent, module

import compare_cygrid as cases

DATA = pathlib.Path(os.environ.get("RYLE_DATA") or pathlib.Path(__file__).resolve().parents[3] / "shared" / "data")
M33 = DATA / "singledish" / "fast_m33"


def program():
    path = os.environ.get("RYLE_GRID_SUMS")
    if not path:
        absent("grid_sums (set RYLE_GRID_SUMS, or run through ctest)")
    return path


def compare(case):
    mine, his = cases.ours(program(), case), cases.cygrid_map(module("cygrid"), case)
    d = cases.difference(mine, his, 1e-9)
    assert d.covered > 0.6 * mine.weight.size and d.covered_apart == 0
    assert d.beyond < 0.02 * d.covered
    assert cases.unexplained(case, mine, his, d.cells[:50]) == []
    return mine, d


@pytest.mark.parametrize("n_sigma", (5, 3))
def test_benchmark(n_sigma):
    compare(cases.benchmark("B", n_sigma, 400_000, 40))


def test_messier_33():
    if not M33.exists():
        pytest.skip("skipped: no data (singledish/fast_m33)")
    module("h5py")
    case = cases.messier_33(M33)
    mine, d = compare(case)
    # The map that came with the data: Cygrid's, in all but 9 of its 20,199 cells.
    kept = np.load(M33 / "m33_cygrid_ref.npz")
    weight, value = np.nan_to_num(kept["weight"].ravel()), kept["map"].ravel()
    assert np.array_equal(mine.weight > 0, weight > 0) and int((weight > 0).sum()) == 20_199
    error_k = np.abs(mine.value - value)[weight > 0]
    assert int((error_k > 1e-11).sum()) == 9 and error_k.max() < 2e-4
    assert d.beyond == 9
