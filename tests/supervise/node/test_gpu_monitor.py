"""A worker's reports of GPUs that others use too, on a fake NVIDIA library."""

import asyncio
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.spec.checks.gpu_memory import held_bytes
from tests.gpu_box import (
    GIB,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    FakeNvml,
    FakePart,
    GpuBox,
)
from workers.node import accelerators
from workers.node.accelerators import find
from workers.node.gpu_inventory import identities, monitor
from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.gpu_inventory.metrics import gpu_families
from workers.node.gpu_inventory.monitor import GpuMonitor, GpuUse
from workers.node.inventory import Inventory

SECRET = "--password=hunter22"


@pytest.fixture
def box() -> GpuBox:
    return GpuBox.of(2, uuid.uuid4().hex)


@pytest.fixture
def open_monitor(box: GpuBox, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], GpuMonitor]]:
    """Opens the box with a worker that sees all processes of the machine."""
    claims = GpuClaims()
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(box))
    monkeypatch.setattr(accelerators, "plugin_problem", lambda: None)
    monkeypatch.setattr(identities, "sees_all_processes", lambda: True)

    def open_it() -> GpuMonitor:
        opened = Inventory(find(None, {}, claims)).gpus
        assert opened is not None
        return opened

    yield open_it
    claims.close()


@pytest.fixture
def stranger() -> Iterator[int]:
    """A process of the machine that no worker has started, with a secret in its command line."""
    command = ["setsid", sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)", SECRET]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def first(gpus: GpuMonitor) -> dict[str, Any]:
    return gpus.states()[0]


@pytest.fixture
def not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test's own children are no processes of the worker."""
    real = identities.line_of
    monkeypatch.setattr(identities, "line_of", lambda pid: [p for p in real(pid) if p != os.getpid()])


@pytest.mark.usefixtures("not_ours")
def test_a_process_of_others_is_told_with_its_user_its_program_and_its_memory_but_no_command_line(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], stranger: int
) -> None:
    box.put(0, stranger, 21 * GIB)
    before = time.time()
    state = first(open_monitor())
    (other,) = state["others"]
    assert (other["pid"], other["memory_bytes"]) == (stranger, 21 * GIB)
    assert other["program"].startswith("python")
    assert (other["user"], other["same_user"]) == (identities._user(os.geteuid()), True)
    assert before <= other["since"] <= time.time()
    assert held_bytes(state) == 21 * GIB
    assert SECRET not in str(state)


@pytest.mark.usefixtures("not_ours")
def test_a_process_is_known_since_it_was_first_seen(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], stranger: int
) -> None:
    gpus = open_monitor()
    process = box.put(0, stranger, GIB)
    since = first(gpus)["others"][0]["since"]
    assert first(gpus)["others"][0]["since"] == since
    box.gpus[0].faults["ComputeRunningProcesses"] = NO_PERMISSION
    assert first(gpus)["others"] != [], "memory of processes that are not listed for a moment"
    box.gpus[0].faults.clear()
    assert first(gpus)["others"][0]["since"] == since
    box.gpus[0].processes.remove(process)
    assert first(gpus)["others"] == []
    box.gpus[0].processes.append(process)
    assert first(gpus)["others"][0]["since"] > since


def test_processes_of_this_worker_are_not_those_of_others(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], stranger: int
) -> None:
    box.put(0, stranger, 5 * GIB)  # a child of this process, which is the worker
    box.put(0, os.getpid(), GIB)
    gpus = open_monitor()
    gpus.use = lambda: GpuUse({"0": [7]}, frozenset({"0"}), busy=frozenset({stranger}))
    state = first(gpus)
    assert (state["others"], held_bytes(state)) == ([], 0)
    assert (state["runs_bytes"], state["attempts"]) == (5 * GIB, [7])


def test_an_own_process_that_is_ending_is_not_taken_for_that_of_others(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.put(0, stranger, 5 * GIB)  # a child of this process, which is the worker
    gpus = open_monitor()
    assert first(gpus)["others"] == []
    monkeypatch.setattr(identities, "line_of", lambda _pid: [])
    assert first(gpus)["others"] == []
    assert held_bytes(first(gpus)) == 0


def test_memory_that_no_listed_process_explains_is_held_by_processes_that_cannot_be_seen(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    gpus = open_monitor()
    assert held_bytes(first(gpus)) == 0, "the driver's own memory is held by no one"
    box.gpus[0].hidden = 12 * GIB
    state = first(gpus)
    assert [other["pid"] for other in state["others"]] == [None]
    assert held_bytes(state) == 12 * GIB + box.gpus[0].reserved


def test_without_permission_to_list_processes_the_memory_is_still_told(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    box.gpus[0].faults["ComputeRunningProcesses"] = NO_PERMISSION
    box.gpus[0].hidden = 12 * GIB
    gpus = open_monitor()
    state = first(gpus)
    assert [(other["pid"], other["program"]) for other in state["others"]] == [(None, "")]
    assert held_bytes(state) == 12 * GIB + box.gpus[0].reserved
    # The memory of a run of this worker cannot be distinguished from it, and is not taken for that of others.
    gpus.use = lambda: GpuUse({"0": [7]}, frozenset({"0"}))
    box.gpus[0].hidden += 6 * GIB
    assert held_bytes(first(gpus)) == held_bytes(state)
    box.gpus[0].hidden = 6 * GIB
    assert held_bytes(first(gpus)) == 6 * GIB + box.gpus[0].reserved, "at most the memory in use"


def test_in_a_container_the_process_of_a_run_is_not_taken_for_that_of_others(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identities, "sees_all_processes", lambda: False)
    gpus = open_monitor()
    of_host = 2**22 + 1  # above the largest number of a process
    box.put(0, of_host, 9 * GIB)
    (other,) = first(gpus)["others"]
    assert (other["pid"], other["user"], other["program"]) == (of_host, "", "")
    box.gpus[0].processes.clear()
    assert held_bytes(first(gpus)) == 0
    gpus.use = lambda: GpuUse({"0": [7]}, frozenset({"0"}))
    box.put(0, of_host, 9 * GIB)  # now it is the run itself
    assert first(gpus)["others"] == []
    assert held_bytes(first(gpus)) == 0


def test_a_process_whose_memory_the_driver_does_not_tell_holds_what_is_left(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    box.put(0, 2**22 + 1, None)
    box.gpus[0].hidden = 8 * GIB
    state = first(open_monitor())
    assert ["memory_bytes" in other for other in state["others"]] == [False]
    assert held_bytes(state) == 8 * GIB + box.gpus[0].reserved


def test_a_process_that_computes_and_draws_is_counted_once(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    box.put(0, 2**22 + 1, GIB)
    box.put(0, 2**22 + 1, GIB, "Graphics")
    box.gpus[0].hidden = -GIB  # each list has the whole memory of a process
    assert held_bytes(first(open_monitor())) == GIB


@pytest.mark.parametrize("function", ["Temperature", "PowerUsage", "UtilizationRates", "PciInfo", "MigMode"])
def test_a_figure_that_a_card_does_not_support_is_left_out(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], function: str
) -> None:
    figures = {
        "Temperature": "temperature",
        "PowerUsage": "power_watts",
        "UtilizationRates": "load",
        "PciInfo": "pci",
        "MigMode": "parts",
    }
    box.gpus[0].faults[function] = NOT_SUPPORTED
    gpus = open_monitor()
    broken, whole = gpus.states()
    assert figures[function] not in broken
    assert broken.keys() | {figures[function]} == whole.keys() | {figures[function]}
    assert gpus.faults() == {}


def test_a_divided_gpu_is_reported_with_its_parts(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    box.gpus[1].parts = [FakePart("MIG-a", 10 * GIB, 2 * GIB), FakePart("MIG-b", 10 * GIB)]
    whole, divided = open_monitor().states()
    assert "parts" not in whole
    assert [(part["name"], part["uuid"], part["memory_used"]) for part in divided["parts"]] == [
        ("gpu:1.0", "MIG-a", 2 * GIB),
        ("gpu:1.1", "MIG-b", 0),
    ]


def test_names_that_others_choose_have_no_characters_that_mislead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert identities.printable("a\x1b[31m\u202eb" + "x" * 100) == "a\ufffd[31m\ufffdb" + "x" * 56


async def test_a_gpu_that_is_lost_is_named_and_the_others_are_still_reported(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    gpus = open_monitor()
    await gpus.refresh()
    assert gpus.faults() == {}
    box.gpus[0].faults["*"] = LOST
    await gpus.refresh()
    assert gpus.faults() == {"gpu:0": "GPU is lost"}
    assert [state.get("memory_bytes") for state in gpus.states()] == [None, 24 * GIB]


async def test_a_driver_that_hangs_stops_neither_the_worker_nor_its_end(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "ANSWER_SECONDS", 0.1)
    gpus = open_monitor()
    await gpus.refresh()
    box.gpus[1].hangs = 0.2
    started = time.monotonic()
    await gpus.refresh()
    await gpus.refresh()
    assert time.monotonic() - started < 1
    assert "the driver has not answered" in gpus.faults()["gpu:1"]
    assert gpus.states()[1]["memory_bytes"] == 24 * GIB, "as it was before"
    box.gpus[1].hangs = 0.0
    async with asyncio.timeout(10):
        while gpus.faults():
            await asyncio.sleep(0.02)
            await gpus.refresh()


async def test_an_answer_of_another_version_of_the_library_refuses_work_and_is_told(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = open_monitor()
    monkeypatch.setattr(FakeNvml, "nvmlDeviceGetTemperature", lambda *_: "warm")
    await gpus.refresh()
    assert "ValueError" in gpus.faults()["gpu:0"]


async def test_attempts_that_ask_at_the_same_time_read_the_driver_once(
    box: GpuBox, open_monitor: Callable[[], GpuMonitor]
) -> None:
    gpus = open_monitor()
    library: Any = sys.modules["pynvml"]
    library.asked.clear()
    await asyncio.gather(*(gpus.refresh(max_age=60.0) for _ in range(8)))
    await gpus.refresh(max_age=60.0)
    assert sum(question == f"Temperature {box.gpus[0].uuid}" for question in library.asked) == 1


def test_the_metrics_of_gpus_name_nobody(box: GpuBox, open_monitor: Callable[[], GpuMonitor]) -> None:
    box.put(0, 2**22 + 1, GIB)
    families = {family.name: family for family in gpu_families(open_monitor().states())}
    samples = families["trainyard_worker_gpu_memory_others_bytes"].samples
    assert {sample.labels["gpu"]: sample.value for sample in samples} == {"gpu:0": GIB, "gpu:1": 0}
    assert families["trainyard_worker_gpu_temperature_celsius"].samples[0].value == 40
    assert all(set(sample.labels) == {"gpu"} for family in families.values() for sample in family.samples)


def test_a_box_for_a_worker_in_another_process_is_the_same(tmp_path: Path, box: GpuBox) -> None:
    box.gpus[0].parts = [FakePart("MIG-a", 10 * GIB, 2 * GIB)]
    box.gpus[1].faults["Temperature"] = NOT_SUPPORTED
    box.put(1, 77, GIB)
    box.write(tmp_path / "box.json")
    assert GpuBox.read(tmp_path / "box.json") == box
