# SPDX-License-Identifier: BSD-3-Clause
"""Runs the ryle program as a user would. RYLE_BINARY names it; without it the tests are skipped."""

import itertools
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


# A loopback address of this process alone (all of 127.0.0.0/8 is this machine, process numbers are below 2^22): between
# the choice of a port and `ryle` listening on it, no test that runs beside this one can take it. 127.0.0.1 where a loopback
# device set up by hand has no other.
def own_host():
    pid = os.getpid()
    host = f"127.{64 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            return "127.0.0.1"
    return host


HOST = own_host()
# Below those that the system gives away by itself; neighbours in number use others, where they share an address.
_ports = itertools.count(20_000 + os.getpid() % 1000 * 12)


def endpoints(kinds):
    """Endpoints nobody listens on, as `source.listen` takes them."""
    return "[" + ",".join(f'"{kind}://{HOST}:{next(_ports)}"' for kind in kinds) + "]"


# Nothing here is timed: limits are for programs that hang, on machines that are busy.
LIMIT_S = 200


def run(*arguments, check=0, timeout=LIMIT_S, env=None, **more):
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
    done = run(*arguments, "--json", "--quiet", check=expect)
    return summary(done) if expect == 0 else done.stderr


def live_arguments(directory, *settings, duration_s=1.0, speed=1.0, kinds=("tcp", "tcp", "udp", "udp")):
    """`ryle run` of the example with its own ports, short. The ring holds the whole run and nothing is given up by the
    clock: a busy test machine may be slow, the counts must still be exact. The sky is that of one instant."""
    arguments = ["run", ROOT / "examples/mwa32t.toml", "-o", directory, "--json", "-q", "--allow-small-rcvbuf",
                 "--set", f"source.listen={endpoints(kinds)}", "--set", f"simulator.duration_s={float(duration_s)}",
                 "--set", f"simulator.speed={float(speed)}", "--set", "simulator.period_samples=65536",
                 "--set", "correlate.integration_s=0.25", "--set", "source.n_chunks=64",
                 "--set", "source.stall_budget_s=1.0", "--set", "source.close_after_ms=20000",
                 "--set", 'source.start_utc="2026-01-01T00:00:00"']
    for setting in settings:
        arguments += ["--set", setting]
    return arguments


def start(*arguments, **more):
    return subprocess.Popen([binary(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **more)


def wait_for(condition, timeout=LIMIT_S):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("condition not met in time")


def receive_queue(host, port):
    """Bytes that wait at the UDP socket of this address, None where there is no such socket."""
    address = f"{int.from_bytes(socket.inet_aton(host), 'little'):08X}:{port:04X}"
    for line in open("/proc/net/udp"):
        words = line.split()
        if words[1] == address:
            return int(words[4].split(":")[1], 16)
    return None


def stop(process, how=signal.SIGINT, timeout=LIMIT_S):
    process.send_signal(how)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err
