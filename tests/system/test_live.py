# SPDX-License-Identifier: BSD-3-Clause
"""The main job over real sockets, and what happens to it when things go wrong (docs/exit-codes.md, reliability)."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess

import h5py
import numpy as np
import pytest
from astropy.io import fits
from harness import HOST, endpoints, live_arguments, run, start, stop, summary, wait_for

FINAL = ["mwa32t.ms", "mwa32t.uvfits", "mwa32t.uvh5"]
PICTURES = ["mwa32t_visibilities.png", "mwa32t_bandpass.png", "mwa32t_sky.png"]


def names(directory):
    return sorted(p.name for p in pathlib.Path(directory).iterdir())


def uvh5(path):
    """counts [time][baseline][channel][pol], data likewise, as fractions of a dump."""
    with h5py.File(path) as f:
        n_times = len(np.unique(f["Header/time_array"][:]))
        samples = f["Data/nsamples"][:]
        data = f["Data/visdata"][:]
        flags = f["Data/flags"][:]
        ant_1, ant_2 = f["Header/ant_1_array"][:], f["Header/ant_2_array"][:]
    shape = (n_times, -1) + samples.shape[-2:]
    rows = samples.shape[0] // n_times
    return (samples.reshape(shape), data.reshape(shape), flags.reshape(shape), ant_1[:rows], ant_2[:rows])


def height_of_gaussian(path):
    """Height of the brightest source between its pixels. The highest pixel itself says up to 28 % less at two pixels in
    a beam, and how much less goes with the time of day: precession turns the pixels against the array."""
    image = np.squeeze(fits.getdata(path)).astype(float)
    y, x = np.unravel_index(np.nanargmax(image), image.shape)
    around = np.log(image[y - 1 : y + 2, x - 1 : x + 2])  # of a Gaussian: a paraboloid
    j, i = (k.ravel() - 1 for k in np.indices((3, 3)))
    f, f_i, f_j, f_ii, f_ij, f_jj = np.linalg.lstsq(np.stack([i * 0 + 1, i, j, i * i, i * j, j * j], 1), around.ravel(), rcond=None)[0]
    top = -np.linalg.solve([[2 * f_ii, f_ij], [f_ij, 2 * f_jj]], [f_i, f_j])
    return np.exp(f + 0.5 * top @ [f_i, f_j])


# Datagrams are lost where the machine that tests is busy for longer than a socket's buffer holds; streams wait.
ALL_TCP = ("tcp",) * 4


def check_conservation(s):
    assert s["packets_received"] == s["packets_used"] + s["packets_rejected_total"]


def test_packets_to_products(tmp_path):
    arguments = live_arguments(tmp_path, "runtime.device=cpu", duration_s=1.5)
    s = summary(run(*arguments))
    check_conservation(s)
    assert s["packets_rejected_total"] == 0
    plan = json.loads(run("plan", arguments[1], "--json", *arguments[arguments.index("--set"):]).stdout)
    assert s["planned_memory_bytes"] == plan["total_memory_bytes"]
    assert s["integrations"] >= 5
    assert names(tmp_path) == sorted(FINAL + PICTURES)
    assert sorted(s["products"]) == sorted(str(tmp_path / n) for n in FINAL + PICTURES)
    assert any(i.startswith("channelize/cpu/") for i in s["implementations"])
    assert any(i.startswith("correlate/cpu/") for i in s["implementations"])
    # The brightest point of the dirty image is the brightest source, within half a pixel of 256 across the hemisphere.
    sky = tmp_path / "sky.fits"
    image = json.loads(run("image", tmp_path / "mwa32t.uvh5", "-o", sky, "--taper", 0.016, "--json").stdout)
    assert abs(image["peak"]["l"] - 0.35) < 0.004 and abs(image["peak"]["m"] - 0.25) < 0.004
    # 3000 Jy within 8 %: dirty sidelobes of the two other sources (about 3 % rms each).
    assert abs(height_of_gaussian(sky) - 3000) < 240


def test_a_capture_node_dies_and_returns(tmp_path):
    # 1.4 s of silence: longer than the second after which a stream may have a new sender.
    s = summary(run(*live_arguments(tmp_path, "simulator.dying_receiver=2", "simulator.dies_at_s=0.6",
                                    "simulator.returns_at_s=2.0", "output.ms=false", "output.uvfits=false",
                                    "output.pictures=false", duration_s=3.0, kinds=("tcp", "tcp", "udp", "tcp"))))
    check_conservation(s)
    samples, data, flags, ant_1, ant_2 = uvh5(tmp_path / "mwa32t.uvh5")
    lost = ((ant_1 >= 16) & (ant_1 < 24)) | ((ant_2 >= 16) & (ant_2 < 24))
    assert np.all(samples[:, ~lost] > 0.99), "the other receivers never notice"
    dead = samples[3][lost]  # 0.75 .. 1.0 s: nothing of receiver 2
    assert np.all(dead == 0) and np.all(flags[3][lost]) and np.all(data[3][lost] == 0)
    partial = samples[2][lost]  # 0.5 .. 0.75 s: alive until 0.6 s, so 40 % of the spectra less the filter's edge
    assert np.all((partial > 0.36) & (partial < 0.41))
    assert np.all(samples[-3][lost] > 0.99), "the node is back"


def test_sigint_publishes_what_is_whole(tmp_path):
    # Half the speed: the ring does not hold a minute, and the engines must keep up beside other tests.
    process = start(*live_arguments(tmp_path, "output.pictures=false", "source.start_utc=now", duration_s=60, speed=0.5,
                                    kinds=ALL_TCP))
    part = tmp_path / ".mwa32t.uvh5.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 2_000_000)
    code, out, err = stop(process, signal.SIGINT)
    assert code == 0, err
    s = json.loads(out.strip().splitlines()[-1])
    assert s["stopped_by_signal"] and s["integrations"] >= 1
    check_conservation(s)
    assert set(FINAL) <= set(names(tmp_path))
    assert not [n for n in names(tmp_path) if n.endswith(".part")]
    samples, *_ = uvh5(tmp_path / "mwa32t.uvh5")
    assert samples.shape[0] == s["integrations"]
    assert np.all(samples[:-1] > 0.99)


def test_sigkill_leaves_no_partial_file_under_a_final_name(tmp_path):
    for k in range(2):
        directory = tmp_path / str(k)
        process = start(*live_arguments(directory, duration_s=60, speed=1))
        wait_for(lambda: directory.exists() and len(list(directory.iterdir())) >= 3)
        process.kill()
        process.communicate()
        assert not [n for n in names(directory) if not n.startswith(".")], names(directory)
    # The next run is not held up by what the dead one left behind.
    run(*live_arguments(tmp_path / "0", "output.pictures=false", duration_s=0.6))
    assert set(FINAL) <= set(names(tmp_path / "0"))


@pytest.fixture
def small_disk(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("skipped: mounting a small file system needs root")
    directory = tmp_path / "disk"
    directory.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", directory], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("skipped: mount is not permitted here: " + done.stderr.strip())
    yield directory
    subprocess.run(["umount", directory], check=True)


def test_disk_full_keeps_the_data_path_alive(small_disk):
    running = start(*live_arguments(small_disk, "output.ms=false", "output.uvfits=false", "output.pictures=false", duration_s=2.0, kinds=ALL_TCP))
    part = small_disk / ".mwa32t.uvh5.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 5_000_000)  # the first integration is there
    with contextlib.suppress(OSError), open(small_disk / "other", "wb", buffering=0) as other:  # another program fills the disk
        while other.write(bytes(1 << 16)):
            pass
    out, err = running.communicate(timeout=200)
    assert running.returncode == 74, err
    s = json.loads(out.strip().splitlines()[-1])
    check_conservation(s)
    assert s["data_s"] > 1.9 and s["lost_samples"] == 0, "ingest and engines go on"
    assert any("space" in e.lower() or "disk" in e.lower() for e in s["errors"]), s["errors"]
    assert "mwa32t.uvh5" not in names(small_disk), "nothing incomplete under the final name"


def test_one_writer_that_fails_does_not_stop_the_others(small_disk, tmp_path):
    """Visibilities go to a disk that fills up; all images of the same spectra are made elsewhere."""
    running = start(*live_arguments(tmp_path / "out", f'output.files=["{small_disk}/x.uvh5"]', "output.pictures=false",
                                    "image.cadence_s=0.25", "image.n_pixels=64", duration_s=2.0, kinds=ALL_TCP))
    part = small_disk / ".x.uvh5.part"
    wait_for(lambda: part.exists() and part.stat().st_size > 5_000_000)
    with contextlib.suppress(OSError), open(small_disk / "other", "wb", buffering=0) as other:
        while other.write(bytes(1 << 16)):
            pass
    out, err = running.communicate(timeout=200)
    assert running.returncode == 74, err
    s = json.loads(out.strip().splitlines()[-1])
    check_conservation(s)
    assert s["data_s"] > 1.9 and s["lost_samples"] == 0
    assert [e for e in s["errors"] if "x.uvh5" in e], s["errors"]
    images = [fits.getheader(p) for p in (tmp_path / "out").glob("*_image_*.fits")]
    assert len(images) == s["image"]["images"] >= 7 and "x.uvh5" not in names(small_disk)


def test_read_only_directory(tmp_path):
    target = tmp_path / "file"
    target.write_text("")
    done = run(*live_arguments(target / "sub", duration_s=0.5), check=None)
    assert done.returncode in (73, 77), done.stderr
    assert "cannot" in done.stderr


def test_names_are_not_overwritten_without_being_asked(tmp_path):
    (tmp_path / "mwa32t.uvh5").write_text("mine")
    done = run(*live_arguments(tmp_path, "output.overwrite=false", duration_s=0.5), check=73)
    assert "mwa32t.uvh5" in done.stderr
    assert (tmp_path / "mwa32t.uvh5").read_text() == "mine"


def test_a_taken_port_is_a_clear_error(tmp_path):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        listen = ",".join([f'"tcp://127.0.0.1:{port}"'] * 4)
        done = run(*live_arguments(tmp_path, f"source.listen=[{listen}]", duration_s=0.5), check=69)
    assert str(port) in done.stderr and "in use" in done.stderr


def test_no_data_ends_with_a_reason(tmp_path):
    metrics = tmp_path / "ryle.prom"
    process = start(*live_arguments(tmp_path / "out", "source.kind=network", f"runtime.metrics_file={metrics}", duration_s=1))
    wait_for(metrics.exists)
    code, out, _ = stop(process)
    s = json.loads(out.strip().splitlines()[-1])
    assert code == 66 and s["integrations"] == 0
    assert "NO_DATA" in s["state"] or any("no data" in w for w in s["warnings"])
    assert not [n for n in names(tmp_path / "out") if not n.startswith(".")] if (tmp_path / "out").exists() else True


def test_packets_that_are_refused_are_told(tmp_path):
    # "no data arrived" beside "2000 rejected" helps nobody: who sent what is.
    listen = endpoints(["udp"] * 4)
    port = int(json.loads(listen)[0].rsplit(":", 1)[1])
    metrics = tmp_path / "ryle.prom"
    process = start(*live_arguments(tmp_path / "out", "source.kind=network", f"source.listen={listen}",
                                    f"runtime.metrics_file={metrics}", duration_s=1))
    wait_for(metrics.exists)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind((HOST, 0))
        for _ in range(20):
            sender.sendto(b"\x01\x02junk", (HOST, port))
        name = "{}:{}".format(*sender.getsockname())
        wait_for(lambda: 'reason="too_short"} 20' in metrics.read_text())
    code, out, err = stop(process)
    s = json.loads(out.strip().splitlines()[-1])
    assert s["last_rejected"]["too_short"] == {"sender": name, "bytes": 6, "header": "01 02 6a 75 6e 6b"}
    warnings = " ".join(s["warnings"])
    assert "no data arrived" not in warnings and "20 packets arrived" in warnings, warnings
    assert f"the last from {name}, 6 bytes: 01 02 6a" in warnings
    assert "ryle_up 0" in metrics.read_text()


def test_a_wrong_list_of_senders_is_refused(tmp_path):
    done = run(*live_arguments(tmp_path, 'source.allowed_senders=["10.0.0.1/8"]', duration_s=1), check=78)
    assert "10.0.0.0" in done.stderr
