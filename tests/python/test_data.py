# SPDX-License-Identifier: BSD-3-Clause
"""Files of public repositories: fetched from a server of this test, verified, never left in part."""

import contextlib
import hashlib
import http.server
import re
import subprocess
import sys
import threading

import pytest
from helpers import ROOT

import ryle
import ryle.data

BODY = bytes(range(256)) * 12000
FILE = ryle.data.File("owner/repository", "c" * 40, "folder/a.dat", hashlib.sha256(BODY).hexdigest(), "telescope")


@contextlib.contextmanager
def server(monkeypatch, body=BODY, length=None):
    """Serves `body` as FILE; says it has `length` bytes. Yields the paths that were asked for."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path != f"/{FILE.repository}/{FILE.commit}/{FILE.path}":
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setattr(ryle.data, "SERVER", f"http://127.0.0.1:{serving.server_port}")
    try:
        yield asked
    finally:
        serving.shutdown()
        thread.join()
        serving.server_close()


@pytest.fixture(autouse=True)
def one_file(monkeypatch, tmp_path):
    monkeypatch.setitem(ryle.data.FILES, "a.dat", FILE)
    monkeypatch.setenv("RYLE_DATA", str(tmp_path / "data"))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def test_a_file_is_fetched_once_and_verified(tmp_path, monkeypatch):
    with server(monkeypatch) as asked:
        path = ryle.data.fetch("a.dat")
        assert path == tmp_path / "data" / "a.dat" == ryle.data.path("a.dat") and path.read_bytes() == BODY
        assert ryle.data.fetch("a.dat") == path and len(asked) == 1
        assert ryle.data.fetch("a.dat", tmp_path / "b") == tmp_path / "b" / "a.dat" and len(asked) == 2
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["a.dat"]


def test_a_file_in_the_folder_of_its_telescope_is_found(tmp_path):
    place = tmp_path / "data" / "telescope"
    place.mkdir(parents=True)
    (place / "a.dat").write_bytes(BODY)
    assert ryle.data.path("a.dat") == ryle.data.fetch("a.dat") == place / "a.dat"


@pytest.mark.parametrize("body,length,says", [(BODY[:-1], None, "SHA-256"), (BODY[:1000], len(BODY), "could not be fetched|SHA-256"),
                                              (b"<html>", None, "SHA-256")], ids=["short", "cut off", "a page"])
def test_nothing_is_kept_of_what_is_not_the_file(tmp_path, monkeypatch, body, length, says):
    with server(monkeypatch, body, length), pytest.raises(ryle.DataError, match=says):
        ryle.data.fetch("a.dat")
    assert list((tmp_path / "data").iterdir()) == []


def test_another_file_of_the_name_is_told_and_left_alone(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.dat").write_bytes(b"mine")
    with server(monkeypatch) as asked, pytest.raises(ryle.DataError, match="another file or incomplete"):
        ryle.data.fetch("a.dat")
    assert not asked and (tmp_path / "data" / "a.dat").read_bytes() == b"mine"
    with pytest.raises(ryle.DataError, match="SHA-256"):
        ryle.data.path("a.dat")


def test_without_a_network_it_says_what_to_put_where(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(ryle.data, "SERVER", "http://127.0.0.1:1")
    with pytest.raises(ryle.DataError) as caught:
        ryle.data.fetch("a.dat")
    for part in (FILE.sha256, str(tmp_path / "data" / "a.dat"), f"http://127.0.0.1:1/owner/repository/{FILE.commit}/folder/a.dat"):
        assert part in str(caught.value)
    assert caught.value.exit_code == 69 and not list((tmp_path / "data").iterdir())
    with pytest.raises(ryle.DataError, match="ryle.data fetch a.dat") as caught:
        ryle.data.path("a.dat")
    assert caught.value.exit_code == 66
    assert ryle.data.main(["fetch", "a.dat"]) == 69 and FILE.sha256 in capsys.readouterr().err
    assert ryle.data.main(["list"]) == 0 and re.search(r"a\.dat +absent", capsys.readouterr().out)


def test_names_that_are_not_known_are_refused(tmp_path):
    with pytest.raises(ryle.ConfigError, match="tbx-test.dat"):
        ryle.data.fetch("../secret")
    assert not (tmp_path / "data").exists()


def test_the_command():
    ended = subprocess.run([sys.executable, "-m", "ryle.data", "fetch", "absent"], capture_output=True, text=True)
    assert ended.returncode == 78 and "known are" in ended.stderr
    assert subprocess.run([sys.executable, "-m", "ryle.data"], capture_output=True).returncode == 64


def test_a_reader_that_reads_one_line_is_no_error():
    with subprocess.Popen([sys.executable, "-m", "ryle.data", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as listing:
        listing.stdout.close()
        assert (listing.stderr.read(), listing.wait()) == ("", 0)


def test_the_page_has_the_same_table():
    page = (ROOT / "docs/data.md").read_text()
    rows = re.findall(r"^\| `([^`]+)`[^|]*\| ([^ |]+) \| ([0-9a-f]+) \| `([^`]+)` \| `([0-9a-f]{64})` \|$", page, re.M)
    table = {name: (repository, path, sha256) for name, repository, _, path, sha256 in rows}
    known = {name: file for name, file in ryle.data.FILES.items() if name != "a.dat"}
    assert table == {name: (file.repository, file.path, file.sha256) for name, file in known.items()}
    for name, _, commit, _, _ in rows:
        assert len(commit) >= 12 and known[name].commit.startswith(commit) and len(known[name].commit) == 40
