# SPDX-License-Identifier: BSD-3-Clause
"""Real recordings for the tutorials and the documents: where each is, fetched and verified (docs/data.md).

    python -m ryle.data list
    python -m ryle.data fetch tbx-test.dat
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import sys
from typing import NamedTuple

from ._errors import ConfigError, DataError, Error

SERVER = "https://raw.githubusercontent.com"
_PIECE_BYTES = 1 << 20
_TIMEOUT_S = 30.0


class File(NamedTuple):
    """A file in a public git repository.

    `repository` is that on GitHub, `commit` and `path` say which version, `sha256` what its bytes are, `folder` where it
    lies in a folder that is ordered by telescope.
    """

    repository: str
    commit: str
    path: str
    sha256: str
    folder: str

    @property
    def address(self) -> str:
        return f"{SERVER}/{self.repository}/{self.commit}/{self.path}"


#: Every file by its name: the table of docs/data.md.
FILES: dict[str, File] = {
    "tbx-test.dat": File(
        "lwa-project/lsl", "f866d96d9d0d3677a3f7923cb85795f40b883577", "tests/data/tbx-test.dat",
        "597828c6334acf2a6676b3cfe868b309f2479becfa95edaebfd7c4572711de4b", "lwa"),
    "lwana-ssmif-2024may.txt": File(
        "lwa-project/lsl", "1b5d4866e341db8ebfda5dce97b25223c9935238", "lsl/data/lwana-ssmif.txt",
        "202df06a767630563c1d0ef82f12ae77ed3a68c58f2b357b7862d4e1f1644b9d", "lwa"),
    "mg-tana-raw.hdf": File(
        "tart-telescope/software-correlator", "0c7335ce2822d77069354d8d9021531aa151af27", "test-data/mg-tana-raw.hdf",
        "eaa646ddc85c271b2b483139507f5234ee5c76ee0fd1db9e99a7d5725e8ccdca", "tart"),
    "antenna_positions.json": File(
        "tart-telescope/software-correlator", "0c7335ce2822d77069354d8d9021531aa151af27", "test-data/antenna_positions.json",
        "e3c3d3f24d1d4b5d38a8d8d0032ef27984696f7e7e28a05ea3cdd1b521a12637", "tart"),
    "28.fil": File(
        "thepetabyteproject/your", "2d202eed13434cce4015ceb1cc796981bdb30d25", "tests/data/28.fil",
        "9bd705b79b37bb90f470ad97497779b82b049b44ea859844b37b9a77260a6201", "transients/askap_frb180417"),
    "1421-1425_hor_input1.hdf5": File(
        "YangwdX/HCGrid-scatter", "2210fdd521cd3e130f1e78aac5de6343cace44a0", "HCGrid-cpu/1421-1425_hor_input1.hdf5",
        "0a1a936492016cb52cd1cead995a096875a5560c631269e6ff8b11efd3c53866", "singledish/fast_m33"),
    "GBT_J1807-0847.tim": File(
        "FRBs/sigpyproc3", "b31ef20fa13bb97e2caa244f65a4dfa377d6945a", "tests/data/GBT_J1807-0847.tim",
        "1ca2d276f75feb7476803cb98033642e83e4a1b93a92be54218d92100b8cdb88", "transients/gbt_j1807"),
}


def folder() -> pathlib.Path:
    """Where files are kept: the folder that RYLE_DATA names, else ``~/.cache/ryle`` (or below XDG_CACHE_HOME)."""
    named = os.environ.get("RYLE_DATA")
    if named:
        return pathlib.Path(named)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(cache) if cache else pathlib.Path.home() / ".cache") / "ryle"


def _known(name: str) -> File:
    if name not in FILES:
        raise ConfigError(f"no data \"{name}\"; known are {', '.join(FILES)}")
    return FILES[name]


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _by_hand(name: str, target: pathlib.Path) -> str:
    file = _known(name)
    return f"To place it by hand: {file.address} as {target}, SHA-256 {file.sha256}"


def _verify(name: str, path: pathlib.Path) -> None:
    wanted, there = _known(name).sha256, _sha256(path)
    if there != wanted:
        raise DataError(f"{path} has the SHA-256 {there}, {name} has {wanted}: it is another file or incomplete; move it away "
                        f"and fetch {name} again")


def _there(name: str, directory: pathlib.Path) -> pathlib.Path | None:
    for candidate in (directory / name, directory / _known(name).folder / name):
        if candidate.exists():
            return candidate
    return None


def path(name: str) -> pathlib.Path:
    """The file of this name where it is kept, verified.

    Parameters
    ----------
    name : str
        One of ``ryle.data.FILES``. It is looked for in `folder`, and there in the sub-folder of its telescope.

    Raises
    ------
    ConfigError
        The name is not known.
    DataError
        The file is not there (the message says how to get it), or has another SHA-256.
    """
    found = _there(name, folder())
    if found is None:
        error = DataError(f"{name} is not in {folder()}. Call `python -m ryle.data fetch {name}`. {_by_hand(name, folder() / name)}")
        error.exit_code = 66
        raise error
    _verify(name, found)
    return found


def _receive(name: str, part: pathlib.Path) -> None:
    """Writes what the server sends to `part`; OSError where the network or the disk fails."""
    import urllib.request

    with urllib.request.urlopen(_known(name).address, timeout=_TIMEOUT_S) as answer, part.open("wb") as stream:
        while piece := answer.read(_PIECE_BYTES):
            stream.write(piece)
        stream.flush()
        os.fsync(stream.fileno())


def fetch(name: str, directory: str | os.PathLike[str] | None = None) -> pathlib.Path:
    """Fetches a file from its public address, unless it is there; verifies its SHA-256 in both cases.

    A file under its final name is whole: it is written under a hidden name beside it, verified, then renamed.

    Parameters
    ----------
    name : str
        One of ``ryle.data.FILES``.
    directory : str or path, optional
        Default: `folder`. It is made where it does not exist.

    Returns
    -------
    Path
        Of the file.

    Raises
    ------
    ConfigError
        The name is not known.
    DataError
        A file of that name is there with another SHA-256 (it is left alone), the network or the disk failed, or what
        came is another file.
    """
    import http.client

    file = _known(name)
    target_directory = folder() if directory is None else pathlib.Path(directory)
    found = _there(name, target_directory)
    if found is not None:
        _verify(name, found)
        return found
    target = target_directory / name
    part = target_directory / f".{name}.{os.getpid()}.part"
    try:
        target_directory.mkdir(parents=True, exist_ok=True)
        _receive(name, part)
        there = _sha256(part)
        if there != file.sha256:
            raise DataError(f"what {file.address} sent has the SHA-256 {there}, {name} has {file.sha256}: nothing is kept. "
                            f"{_by_hand(name, target)}")
        os.replace(part, target)
    except (OSError, http.client.HTTPException) as cause:
        error = DataError(f"{name} could not be fetched from {file.address} to {target_directory}: {cause}. {_by_hand(name, target)}")
        error.exit_code = 69
        raise error from cause
    finally:
        part.unlink(missing_ok=True)
    return target


def _state(name: str) -> str:
    found = _there(name, folder())
    if found is None:
        return "absent"
    return str(found) if _sha256(found) == FILES[name].sha256 else f"another file: {found}"


def _say(line: str) -> None:
    """Prints a line; after `| head` has read enough, to nowhere."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments: list[str] | None = None) -> int:
    """The command ``python -m ryle.data``; returns its exit code (docs/exit-codes.md)."""
    parser = argparse.ArgumentParser(prog="ryle data", description="Real recordings: list, fetch and verify.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="every name, and where its file is")
    fetching = commands.add_parser("fetch", help="fetch files and verify them")
    fetching.add_argument("name", nargs="+", help="a name of the list, or all")
    fetching.add_argument("--to", metavar="DIR", help=f"folder (default {folder()})")
    try:
        asked = parser.parse_args(arguments)
    except SystemExit as ended:
        return 64 if ended.code else 0
    if asked.command == "list":
        for name in FILES:
            _say(f"{name:28} {_state(name)}")
        return 0
    code = 0
    for name in FILES if asked.name == ["all"] else asked.name:
        try:
            _say(str(fetch(name, asked.to)))
        except Error as error:
            print(f"error: {error}", file=sys.stderr)
            code = code or error.exit_code
    return code


if __name__ == "__main__":
    sys.exit(main())
