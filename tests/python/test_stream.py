# SPDX-License-Identifier: BSD-3-Clause
"""Products of a run as they end: what is streamed is what is in the files, and however a loop ends, the files are whole."""

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import observations
import pytest
from helpers import interrupted
from observations import ALL_PRODUCTS, DUMPS

import ryle


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return observations.recording(tmp_path_factory.mktemp("recording"))


def written(out):
    return ryle.open(out / "x.uvh5")


def test_streamed_visibilities_are_those_of_the_file(folder, tmp_path):
    obs = observations.recorded(folder, tmp_path)
    dumps = list(obs.stream("visibilities"))
    vis = obs.open("uvh5")
    assert len(dumps) == DUMPS == len(vis.data) and obs.summary["integrations"] == DUMPS
    assert np.array_equal(np.concatenate([d.array for d in dumps]), vis.data)
    assert np.array_equal(np.concatenate([d.weights for d in dumps]), vis.counts)
    assert all(d.axes == ("time", "channel", "baseline", "pol") and d.array.shape == (1, *vis.data.shape[1:]) for d in dumps)
    assert [d.info["centroid_tai_ns"][0] for d in dumps] == vis.info["centroid_tai_ns"]
    first = dumps[0]
    assert first.path == "" and np.array_equal(first.frequency_hz, vis.frequency_hz) and np.array_equal(first.antenna_m, vis.antenna_m)
    assert "stream('visibilities')" in first.provenance["command_line"] and first.provenance["implementations"]
    assert first.image(n_pixels=32).array.shape == (1, 1, 32, 32)
    first.write(tmp_path / "one.uvh5")
    assert np.array_equal(ryle.read(tmp_path / "one.uvh5"), first.data)


def test_a_slow_reader_holds_up_a_recording_and_loses_nothing(folder, tmp_path):
    obs = observations.recorded(folder, tmp_path)
    with obs.stream(waiting=1) as stream:
        first = next(stream)
        time.sleep(0.5)
        held_s = stream.progress["data_s"]
        assert held_s < 0.8 * DUMPS * observations.DUMP_SPECTRA / observations.WIDTH_HZ
        rest = list(stream)
    assert 1 + len(rest) == DUMPS and stream.dropped == {"visibilities": 0} and stream.closed
    times = [d.info["centroid_tai_ns"][0] for d in (first, *rest)]
    assert times == sorted(set(times))


def test_all_products_are_streamed_as_they_end(folder, tmp_path):
    obs = observations.recorded(folder, tmp_path, **ALL_PRODUCTS)
    made = list(obs.stream("visibilities", "images", "beams", "candidates", waiting=4))
    kinds = {kind: [p for p in made if isinstance(p, kind)] for kind in (ryle.VisibilityFile, ryle.Image, ryle.BeamBlock, ryle.Candidate)}
    assert sum(map(len, kinds.values())) == len(made) and len(kinds[ryle.VisibilityFile]) == DUMPS
    assert not isinstance(made[0], ryle.VisibilityFile) or not all(isinstance(p, ryle.VisibilityFile) for p in made[:DUMPS])  # mixed
    images = kinds[ryle.Image]
    assert len(images) == obs.summary["image"]["images"] >= 10
    assert images[0].array.shape[-2:] == (32, 32) and images[0].provenance["implementation"] and "ra_deg" in images[0].info
    blocks = kinds[ryle.BeamBlock]
    assert blocks[0].names == ["zenith", "south"] and blocks[0].axes == ("beam", "channel", "time")
    assert all(b.array.shape[:2] == (2, 16) and b.valid.shape == b.array.shape[1:] and b.valid.all() for b in blocks)
    ends = [b.first_sample + b.array.shape[2] for b in blocks]
    assert [b.first_sample for b in blocks[1:]] == ends[:-1]
    power = np.concatenate([b.array for b in blocks], axis=2)
    pulse = int(observations.PULSE_S / blocks[0].interval_s)
    top = power[0, -1]
    assert top[pulse + 1: pulse + 7].mean() > 2 * np.median(top) and power[1, -1, pulse + 1: pulse + 7].mean() < top[pulse + 1: pulse + 7].mean()
    found = kinds[ryle.Candidate]
    assert len(found) == 1 and found[0]["beam_name"] == "zenith" and found[0]["dm_pc_cm3"] == pytest.approx(observations.DM, abs=1)
    assert found[0]["time_s"] == pytest.approx(observations.PULSE_S, abs=1e-3) and "zenith" in repr(found[0])
    # The same beams are those of a run that is not streamed.
    whole = observations.recorded(folder, tmp_path / "file", **{**ALL_PRODUCTS, "beams__filterbank": True})
    whole.run()
    fil = whole.open("zenith.fil")
    assert len(fil) == power.shape[2] and np.allclose(fil.frequency_hz, blocks[0].frequency_hz)
    file, streamed = fil.read()[-1].astype(float), top.astype(float)
    held = file < 250  # codes of 8 bits, which the pulse fills
    assert held.mean() > 0.95 and np.corrcoef(file[held], streamed[held])[0, 1] > 0.99


@pytest.mark.parametrize("way", ["break", "exception", "close", "del", "with"])
def test_however_a_loop_ends_the_files_are_whole(folder, tmp_path, way):
    obs = observations.recorded(folder, tmp_path)
    taken = []

    def loop():
        if way == "with":
            with obs.stream(waiting=1) as stream:
                for dump in stream:
                    taken.append(dump)
                    if len(taken) == 3:
                        raise LookupError("enough")
        elif way in ("close", "del"):
            stream = obs.stream(waiting=1)
            taken.extend(next(stream) for _ in range(3))
            if way == "close":
                stream.close()
                assert stream.closed and stream.next() is None and list(stream) == []
                stream.close()
        else:
            for dump in obs.stream(waiting=1):
                taken.append(dump)
                if len(taken) == 3 and way == "exception":
                    raise LookupError("enough")
                if len(taken) == 3:
                    break

    if way in ("exception", "with"):
        with pytest.raises(LookupError, match="enough"):
            loop()
    else:
        loop()
    assert obs.summary["stopped_by_signal"] and obs.products == [str(tmp_path / "x.uvh5")]
    vis = written(tmp_path)
    assert 3 <= len(vis.data) < DUMPS and np.array_equal(vis.data[:3], np.concatenate([d.data for d in taken]))
    assert not list(tmp_path.glob(".*.part"))


def test_what_cannot_be_streamed_is_said_before_the_run(folder, tmp_path):
    obs = observations.recorded(folder, tmp_path)
    for arguments, message in ((("images",), "image.cadence_s"), (("beams",), "beams.file"), (("candidates",), "search.dm_max"),
                               (("dumps",), "visibilities, images, beams or candidates")):
        with pytest.raises(ryle.ConfigError, match=message):
            obs.stream(*arguments)
    with pytest.raises(ryle.ConfigError, match="waiting = 0"):
        obs.stream(waiting=0)
    with pytest.raises(ryle.ConfigError, match="makes no visibilities"):
        observations.recorded(folder, tmp_path, output__uvh5=False, image__cadence_s=0.02).stream()
    assert not list(tmp_path.iterdir())


def test_an_error_of_the_run_is_raised_in_the_loop(folder, tmp_path):
    (tmp_path / "x.uvh5").write_text("mine")
    obs = observations.recorded(folder, tmp_path, output__overwrite=False)
    with pytest.raises(ryle.DataError, match="exists"):
        for _ in obs.stream():
            pass
    assert obs.summary is None and (tmp_path / "x.uvh5").read_text() == "mine"
    stream = obs.stream()
    with pytest.raises(ryle.DataError):
        stream.close()
    stream.close()


@pytest.mark.parametrize("way", ["next", "for", "async for"])
def test_an_error_between_two_looks_is_raised(folder, tmp_path, way):
    """The run fails after a look has found nothing, and before it is asked whether it has ended."""
    (tmp_path / "x.uvh5").write_text("mine")
    obs = observations.recorded(folder, tmp_path, output__overwrite=False)
    stream = obs.stream()

    class Late:
        def __init__(self, run):
            self.run = run

        def next(self, timeout_s):
            while not self.run.ended():
                time.sleep(0.001)

        def __getattr__(self, name):
            return getattr(self.run, name)

    stream._run = Late(stream._run)

    async def read():
        async for _ in stream:
            pass

    with pytest.raises(ryle.DataError, match="exists"):
        if way == "next":
            stream.next(0.01)
        elif way == "for":
            list(stream)
        else:
            asyncio.run(read())
    assert stream.closed and stream.next() is None and obs.summary is None


def test_an_observation_runs_once_at_a_time(folder, tmp_path):
    obs = observations.recorded(folder, tmp_path)
    with obs.stream(waiting=1) as stream:
        first = next(stream)
        for again in (obs.stream, obs.run):
            with pytest.raises(RuntimeError, match="a stream of .*x.toml.* is open.*close"):
                again()
        assert obs.summary is None
        assert 1 + len(list(stream)) == DUMPS and stream.closed
        obs.run()  # it has ended
    assert np.array_equal(written(tmp_path).data[:1], first.data) and obs.summary["integrations"] == DUMPS
    refused = []

    def report(progress):
        if not refused:
            for again in (obs.stream, obs.run):
                with pytest.raises(RuntimeError, match="a run of .*x.toml.* goes on"):
                    again()
            refused.append(progress)

    assert obs.run(report, interval_s=0.01)["integrations"] == DUMPS and refused
    with pytest.raises(ryle.ConfigError):
        obs.stream("images")  # begins nothing
    assert len(list(obs.stream())) == DUMPS


def test_eight_threads_share_a_stream(folder, tmp_path):
    stream = observations.recorded(folder, tmp_path).stream(waiting=2)
    taken, failures = [], []

    def work():
        try:
            for dump in stream:
                taken.append(dump.info["centroid_tai_ns"][0])
        except BaseException as error:  # noqa: B902 - told below
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and sorted(taken) == written(tmp_path).info["centroid_tai_ns"] and len(taken) == DUMPS


def test_coroutines_go_on_beside_a_stream(folder, tmp_path):
    turns = [0]

    async def other():
        while True:
            turns[0] += 1
            await asyncio.sleep(0.001)

    async def read():
        beside = asyncio.create_task(other())
        dumps = []
        async with observations.recorded(folder, tmp_path / "all").stream(waiting=2) as stream:
            async for dump in stream:
                dumps.append(dump)
        assert stream.closed and len(dumps) == DUMPS
        # A task that is cancelled while it waits takes nothing with it.
        obs = observations.recorded(folder, tmp_path / "part")
        stream = obs.stream(waiting=2)
        first = await anext(stream)
        for _ in range(20):
            task = asyncio.create_task(anext(stream))
            await asyncio.sleep(0)
            task.cancel()
            try:
                dumps.append(await task)
            except asyncio.CancelledError:
                pass
        await stream.aclose()
        await stream.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        assert obs.summary["stopped_by_signal"] and np.array_equal(written(tmp_path / "part").data[:1], first.data)
        beside.cancel()

    asyncio.run(read())
    assert turns[0] > 20


def test_ctrl_c_in_a_loop_publishes_and_raises(folder, tmp_path):
    output, seconds, code = interrupted(f"""
        import ryle, time
        obs = ryle.Observation({str(folder / 'x.toml')!r}, set={{"output.directory": {str(tmp_path)!r}}})
        n = 0
        try:
            for dump in obs.stream(waiting=1):
                n += 1
                if n == 3:
                    print("ready", flush=True)
                time.sleep(0.05 if n < 3 else 0)
                while n == 3 and len(dump.data):
                    time.sleep(0.01)
        except KeyboardInterrupt:
            print("interrupted", obs.summary["stopped_by_signal"])
    """)
    assert "interrupted True" in output and code == 0 and seconds < 20, output
    assert 3 <= len(written(tmp_path).data) < DUMPS


def test_ctrl_c_while_a_stream_waits(tmp_path):
    output, seconds, code = interrupted(f"""
        import ryle
        obs = ryle.Observation({str(observations.MWA32T)!r}, set={observations.live_settings(tmp_path, 30.0)!r})
        try:
            for k, dump in enumerate(obs.stream()):
                if k == 1: print("ready", flush=True)
        except KeyboardInterrupt:
            print("interrupted", obs.summary["integrations"])
    """)
    assert "interrupted" in output and code == 0 and seconds < 30, output
    assert len(ryle.read(tmp_path / "mwa32t.uvh5")) >= 2


def test_a_stream_left_open_is_closed_when_python_ends(folder, tmp_path):
    code = f"""
        import ryle
        obs = ryle.Observation({str(folder / 'x.toml')!r}, set={{"output.directory": {str(tmp_path)!r}}})
        stream = obs.stream(waiting=1)
        kept = [stream, next(stream)]
        print("left")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "left\n" and done.stderr == "", done.stderr
    assert 1 <= len(written(tmp_path).data) < DUMPS


def test_a_live_run_does_not_wait_and_counts_what_it_drops(tmp_path):
    obs = observations.live(tmp_path, 4.0)
    taken = []
    with obs.stream(waiting=1) as stream:
        taken.append(next(stream))
        begin = time.monotonic()
        while stream.dropped["visibilities"] < 2:  # nobody reads
            assert time.monotonic() - begin < 30
            time.sleep(0.05)
        taken.extend(stream)
        dropped = stream.dropped["visibilities"]
    assert obs.summary["integrations"] == len(taken) + dropped >= 8
    vis = obs.open("uvh5")
    by_time = dict(zip(vis.info["centroid_tai_ns"], vis.data))
    assert len(by_time) == obs.summary["integrations"] and all(np.array_equal(by_time[d.info["centroid_tai_ns"][0]], d.data[0]) for d in taken)


def test_a_child_process_cannot_read_the_stream_of_its_parent(folder, tmp_path):
    stream = observations.recorded(folder, tmp_path).stream(waiting=1)
    first = next(stream)
    child = os.fork()
    if child == 0:
        code = 3
        try:
            next(stream)
        except ryle.UnsupportedError as error:
            code = 0 if "forked" in str(error) else 4
        del stream
        gc.collect()
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(list(stream)) == DUMPS - 1 and first.data.shape[0] == 1


def test_streams_leave_nothing_behind(folder, tmp_path):
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("skipped: needs /proc")

    def held():
        gc.collect()
        with open("/proc/self/statm") as file:
            rss = int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20
        return rss, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    def work(n):
        for _ in range(n):
            obs = observations.recorded(folder, tmp_path, source__duration_s=0.05)
            for k, dump in enumerate(obs.stream(waiting=2)):
                if k == 3:
                    break
            with pytest.raises(ryle.ConfigError):
                obs.stream("images")

    work(10)
    before = held()
    work(30)
    rss_mib, files, threads = np.subtract(held(), before)
    assert files == 0 and threads <= 0, (files, threads)
    assert rss_mib < 24, f"{rss_mib:.1f} MiB after 30 runs, each of which reads 1.6 MiB and copies it"
