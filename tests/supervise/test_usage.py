"""CPU and memory that a runner and its descendants use."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.ops.conftest import wait_for
from workers.system import usage
from workers.system.usage import MIB, ProcessTree

HOLD = "held = bytearray(b'x' * 64 * 2**20)"
WAIT = "import sys; sys.stdin.read()"
SPAWN = "import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}])"
IN_A_THREAD = "import threading; thread = threading.Thread(target=lambda: exec({code!r})); thread.start()"


@pytest.fixture(params=[True, False], ids=["from Linux", "from psutil"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(Path, "exists", lambda path: False)


@pytest.fixture
def grandparent() -> Iterator[psutil.Popen]:
    """A process whose thread has a child, which has a child that holds 64 MiB."""
    child = SPAWN.format(code=f"{HOLD}; {WAIT}")
    code = IN_A_THREAD.format(code=SPAWN.format(code=child))
    with psutil.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        yield process
        process.stdin.close()


def test_the_memory_of_a_grandchild_counts_whichever_thread_started_its_parent(
    way: None, grandparent: psutil.Popen
) -> None:
    tree = ProcessTree(grandparent.pid)
    wait_for(lambda: tree.measure().memory > 64 * MIB, "a grandchild that holds 64 MiB", 30)
    assert psutil.Process(grandparent.pid).memory_info().rss < 64 * MIB


def test_the_pages_of_a_mapped_file_do_not_count_as_memory(tmp_path: Path) -> None:
    file = tmp_path / "mapped"
    file.write_bytes(b"x" * 64 * MIB)
    code = (
        f"import mmap, sys; file = open({str(file)!r}); "
        "m = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ); "
        "[m[place] for place in range(0, len(m), 4096)]; print(flush=True); sys.stdin.read()"
    )
    with psutil.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert process.memory_info().rss > 64 * MIB
        assert ProcessTree(process.pid).measure().memory < 64 * MIB
        process.stdin.close()


BURN = "while True: sum(range(1000))"
BURN_BRIEFLY = "import time, sys\nwhile time.process_time() < 1.2: pass\nsys.stdin.read()"
BURN_ON_REQUEST = f"input()\n{BURN}"


@pytest.fixture
def burning() -> Iterator[psutil.Popen]:
    """A process that has used more than one CPU second, and continues."""
    with psutil.Popen([sys.executable, "-c", BURN]) as process:
        try:
            wait_for(lambda: sum(process.cpu_times()[:2]) > 1, "a process that has used CPU", 60)
            yield process
        finally:
            process.kill()


def test_the_seconds_that_a_process_used_before_do_not_count(burning: psutil.Popen) -> None:
    tree = ProcessTree(burning.pid)
    assert tree.measure().cpu_percent == 0.0
    samples: list[float] = []

    def has_sample() -> bool:
        samples.append(tree.measure().cpu_percent)
        return samples[-1] > 0

    wait_for(has_sample, "a sample of its CPU", 60)
    assert samples[-1] <= 100 * (os.cpu_count() or 1)


def test_a_process_that_one_sample_misses_does_not_count_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ProcessTree(os.getpid())
    with psutil.Popen([sys.executable, "-c", BURN_BRIEFLY], stdin=subprocess.PIPE) as process:
        descendants = [process]
        monkeypatch.setattr(usage, "_descendants", lambda root: list(descendants))
        wait_for(lambda: sum(process.cpu_times()[:2]) > 1, "a process that has used CPU", 60)
        tree.measure()
        monkeypatch.setattr(os, "cpu_count", lambda: 1000)
        descendants.clear()
        tree.measure()
        descendants.append(process)
        begin, seconds = time.monotonic(), sum(process.cpu_times()[:2])
        percent = tree.measure().cpu_percent
        assert percent * (time.monotonic() - begin) / 100 < seconds / 2
        process.stdin.close()


def test_a_process_that_starts_to_work_counts_from_then_on() -> None:
    with psutil.Popen([sys.executable, "-c", BURN_ON_REQUEST], stdin=subprocess.PIPE) as process:
        try:
            tree = ProcessTree(process.pid)
            tree.measure()
            process.stdin.write(b"\n")
            process.stdin.flush()
            wait_for(lambda: tree.measure().cpu_percent > 0, "CPU of the process", 60)
        finally:
            process.kill()


def test_only_the_named_processes_of_a_tree_are_measured(grandparent: psutil.Popen) -> None:
    alone = ProcessTree(grandparent.pid, lambda: [grandparent.pid]).measure()
    assert (alone.processes, alone.memory < 64 * MIB) == (1, True)


def test_an_ended_process_uses_no_memory() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert ProcessTree(ended.pid).measure().memory == 0
