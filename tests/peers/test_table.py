# SPDX-License-Identifier: BSD-3-Clause
"""docs/interoperability.md names tests that exist, and every test of a peer has its place there."""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "interoperability.md").read_text()


def test_every_cell_names_a_test_that_exists():
    names = re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]+\.(?:py|cpp))(?:::(\w+))?`", PAGE)
    assert len(names) > 30
    for file, test in names:
        if file == "tests/peers":
            continue
        path = TESTS / file.removeprefix("tests/")
        assert path.exists(), file
        assert not test or f"def {test}(" in path.read_text(), f"{file} has no {test}"


def test_every_file_of_peer_tests_is_in_the_table():
    for path in (TESTS / "peers").glob("test_*.py"):
        assert f"peers/{path.name}" in PAGE, path.name
