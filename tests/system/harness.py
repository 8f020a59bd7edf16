# SPDX-License-Identifier: BSD-3-Clause
"""Runs the ryle program as a user would. RYLE_BINARY names it; without it the tests are skipped."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("RYLE_DATA", ROOT.parent / "shared" / "data"))
BINARY = os.environ.get("RYLE_BINARY", "")


def data(relative):
    path = DATA / relative
    if not path.exists():
        pytest.skip(f"skipped: no data ({relative})")
    return path


def binary():
    if not BINARY:
        pytest.skip("skipped: RYLE_BINARY is not set")
    return BINARY


def free_ports(count):
    """Ports nobody listens on, for TCP and UDP alike."""
    sockets, ports = [], []
    while len(ports) < count:
        tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        tcp.bind(("127.0.0.1", 0))
        port = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            udp.bind(("127.0.0.1", port))
        except OSError:
            continue
        sockets += [tcp, udp]
        ports.append(port)
    for s in sockets:
        s.close()
    return ports


def run(*arguments, check=0, timeout=60, env=None, **more):
    """Runs ryle; `check` is the exit code it must end with (None = any). Returns the completed process."""
    done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})}, **more)
    if check is not None:
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def summary(done):
    return json.loads(done.stdout.strip().splitlines()[-1])


def ryle(*arguments, expect=0):
    """Runs a command with --json: its last line as an object, or its message when it must fail."""
    done = run(*arguments, "--json", "--quiet", check=expect, timeout=200)
    return summary(done) if expect == 0 else done.stderr


def live_arguments(directory, *settings, duration_s=1.0, speed=1.0, kinds=("tcp", "tcp", "udp", "udp")):
    """`ryle run` of the example with its own ports, short. The ring holds the whole run: a busy test machine may be slow,
    the counts must still be exact."""
    listen = ",".join(f'"{kind}://127.0.0.1:{port}"' for kind, port in zip(kinds, free_ports(len(kinds))))
    arguments = ["run", ROOT / "examples/mwa32t.toml", "-o", directory, "--json", "-q", "--allow-small-rcvbuf",
                 "--set", f"source.listen=[{listen}]", "--set", f"simulator.duration_s={float(duration_s)}",
                 "--set", f"simulator.speed={float(speed)}", "--set", "simulator.period_samples=65536",
                 "--set", "correlate.integration_s=0.25", "--set", "source.n_chunks=64",
                 "--set", "source.stall_budget_s=1.0"]
    for setting in settings:
        arguments += ["--set", setting]
    return arguments


def start(*arguments, **more):
    return subprocess.Popen([binary(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **more)


def wait_for(condition, timeout=30):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("condition not met in time")


def stop(process, how=signal.SIGINT, timeout=20):
    process.send_signal(how)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err
