# SPDX-License-Identifier: BSD-3-Clause
"""AOFlagger opens our Measurement Set, finds a planted transmitter and writes its flags back."""
import shutil
import subprocess

import numpy as np
from conftest import module, program


def test_flags_are_written(products, tmp_path):
    aoflagger = program("aoflagger")
    tables = module("casacore.tables")
    path = tmp_path / "interference.ms"
    shutil.copytree(products / "interference.ms", path)
    run = subprocess.run([aoflagger, "-j", "2", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         timeout=240, check=False)
    assert run.returncode == 0, run.stdout[-3000:]
    with tables.table(str(path), ack=False) as main:
        flag = main.getcol("FLAG")
        cross = main.getcol("ANTENNA1") != main.getcol("ANTENNA2")
    assert flag[cross][:, 20, :].mean() > 0.95  # the transmitter
    others = np.delete(flag[cross], [18, 19, 20, 21, 22], axis=1)
    assert others.mean() < 0.2
