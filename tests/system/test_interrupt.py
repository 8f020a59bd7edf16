# SPDX-License-Identifier: BSD-3-Clause
"""The first Ctrl-C or SIGTERM ends a command that reads a large file: exit code 75, no product, no hidden file."""

import signal
import subprocess
import time

import pytest
from harness import LIMIT_S, binary

N_GROUPS, N_CHANNELS = 1_500_000, 256


def uvfits_without_data(path):
    """Gigabytes of groups that are holes of the file: only the header takes room on the disk."""
    parameters = ["UU", "VV", "WW", "DATE", "BASELINE"]
    cards = [("SIMPLE", "T"), ("BITPIX", "-32"), ("NAXIS", "7"), ("NAXIS1", "0"), ("NAXIS2", "3"), ("NAXIS3", "1"),
             ("NAXIS4", N_CHANNELS), ("NAXIS5", "1"), ("NAXIS6", "1"), ("NAXIS7", "1"), ("GROUPS", "T"), ("PCOUNT", len(parameters)),
             ("GCOUNT", N_GROUPS), ("CTYPE2", "'COMPLEX'"), ("CTYPE3", "'STOKES'"), ("CRVAL3", "-5.0"), ("CDELT3", "-1.0"),
             ("CRPIX3", "1.0"), ("CTYPE4", "'FREQ'"), ("CRVAL4", "1.5E8"), ("CDELT4", "1.0E5"), ("CRPIX4", "1.0"), ("CTYPE5", "'IF'"),
             ("CTYPE6", "'RA'"), ("CRVAL6", "10.0"), ("CTYPE7", "'DEC'"), ("CRVAL7", "-20.0")]
    cards += [(f"PTYPE{k + 1}", f"'{name}'") for k, name in enumerate(parameters)]
    header = "".join(f"{key:8}= {value!s:>20}".ljust(80) for key, value in cards) + "END".ljust(80)
    header = header.ljust(-(-len(header) // 2880) * 2880).encode()
    table = [("XTENSION", "'BINTABLE'"), ("BITPIX", 8), ("NAXIS", 2), ("NAXIS1", 32), ("NAXIS2", 2), ("PCOUNT", 0), ("GCOUNT", 1),
             ("TFIELDS", 2), ("TTYPE1", "'ANNAME'"), ("TFORM1", "'8A'"), ("TTYPE2", "'STABXYZ'"), ("TFORM2", "'3D'"),
             ("EXTNAME", "'AIPS AN'"), ("ARRAYX", "-2559454.0"), ("ARRAYY", "5095372.0"), ("ARRAYZ", "-2849057.0")]
    antennas = "".join(f"{key:8}= {value!s:<20}".ljust(80) for key, value in table) + "END".ljust(80)
    antennas = antennas.ljust(-(-len(antennas) // 2880) * 2880).encode() + bytes(2880)
    size = -(-(N_GROUPS * (len(parameters) + 3 * N_CHANNELS) * 4) // 2880) * 2880
    with open(path, "wb") as file:
        file.write(header)
        file.seek(len(header) + size)
        file.write(antennas)


def bytes_read(process):
    with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
        return int(file.readline().split()[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_reading_of_a_large_file_ends_with_the_first_signal(tmp_path, number):
    path = tmp_path / "large.uvfits"
    uvfits_without_data(path)
    with subprocess.Popen([binary(), "image", path, "-o", tmp_path / "sky.fits"], stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
        while process.poll() is None and bytes_read(process) < 20_000_000:
            time.sleep(0.005)
        process.send_signal(number)
        message = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 75, message
    assert "stopped by a signal" in message and "large.uvfits" in message
    assert [p.name for p in tmp_path.iterdir()] == ["large.uvfits"]
