# SPDX-License-Identifier: BSD-3-Clause
"""ryle trigger: what it sends to the socket of a live run, and what it makes of the answer."""

import json
import pathlib
import socket
import threading

import pytest
from harness import run


@pytest.fixture(autouse=True)
def short_paths(tmp_path, monkeypatch):
    """The path of a unix socket has 107 bytes at most."""
    monkeypatch.chdir(tmp_path)


def ask(answer, *arguments, check=0):
    """The request that reached a socket which gives this answer, and the finished program."""
    path = pathlib.Path("dumps.sock")
    requests = []
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(1)

        def serve():
            client, _ = server.accept()
            with client:
                requests.append(client.makefile().readline())
                client.sendall(answer.encode() + b"\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        done = run("trigger", path, *arguments, check=check)
        thread.join(30)
    path.unlink()
    return json.loads(requests[0]), done


def test_a_pulse_is_asked_for_where_it_was_seen():
    request, done = ask('{"result":"accepted","dump":3}', "--utc", "2025-03-01T16:10:00.5", "--dm", "348.8",
                        "--reference-mhz", "1400", "--name", "FRB 20250301")
    assert request == {"name": "FRB 20250301", "utc": "2025-03-01T16:10:00.5", "dm_pc_cm3": 348.8, "dm_error": 0.0,
                       "width_s": 0.0, "reference_mhz": 1400}
    assert done.stdout == "accepted, dump 3\n"
    request, _ = ask('{"result":"merged","dump":1}', "--utc", "2025-03-01T16:10:00", "--reference-mhz", "inf")
    assert request["reference_mhz"] == "inf"


def test_a_span_and_what_is_refused():
    span = ("--begin", "2025-03-01T16:10:00", "--end", "2025-03-01T16:10:01.5")
    request, done = ask('{"result":"refused","message":"too old"}', *span, check=69)
    assert request == {"begin_utc": span[1], "end_utc": span[3]}
    assert done.stdout == "refused: too old\n"
    ask('{"result":"error","message":"no number"}', *span, check=64)
    ask("hello", *span, check=65)
    run("trigger", "nobody.sock", *span, check=66)
    run("trigger", "nobody.sock", check=64)
    run("trigger", "nobody.sock", "--begin", span[1], check=64)
