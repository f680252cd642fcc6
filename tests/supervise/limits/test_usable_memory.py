"""The memory that a process may use: of the machine, of its control group, and of the groups above it."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from workers.node import inventory
from workers.system import usable_memory
from workers.system.usable_memory import available_memory, total_memory

GIB = 2**30
NO_LIMIT_V1 = 0x7FFFFFFFFFFFF000
V2 = "36 32 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "40 32 0:35 / /sys/fs/cgroup/memory rw,nosuid shared:16 - cgroup cgroup rw,memory"
HYBRID = "33 32 0:28 / /sys/fs/cgroup/unified rw shared:10 - cgroup2 cgroup2 rw"

type Make = Callable[..., Path]


@pytest.fixture
def system(tmp_path: Path) -> Make:
    """Makes a machine with 64 GiB, of which 40 are free, and a process in the given group."""

    def make(cgroup: str, *mounts: str) -> Path:
        meminfo = f"MemTotal: {64 * 2**20} kB\nMemFree: 1 kB\nMemAvailable: {40 * 2**20} kB\n"
        write(tmp_path / "proc/meminfo", meminfo)
        write(tmp_path / "proc/self/cgroup", cgroup + "\n")
        write(tmp_path / "proc/self/mountinfo", "\n".join(["22 1 0:20 / /proc rw - proc proc rw", *mounts]))
        return tmp_path

    return make


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def limit_v2(folder: Path, limit: str, used: int = 0, inactive: int = 0) -> None:
    write(folder / "memory.max", f"{limit}\n")
    write(folder / "memory.current", f"{used}\n")
    write(folder / "memory.stat", f"anon 250\nfile 650\ninactive_file {inactive}\n")


def limit_v1(folder: Path, limit: int, used: int = 0, inactive: int = 0) -> None:
    write(folder / "memory.limit_in_bytes", f"{limit}\n")
    write(folder / "memory.usage_in_bytes", f"{used}\n")
    write(folder / "memory.stat", f"inactive_file 1\ntotal_inactive_file {inactive}\n")


def test_without_a_limit_it_is_that_of_the_machine(system: Make) -> None:
    root = system("0::/user.slice/session-1.scope", V2)
    limit_v2(root / "sys/fs/cgroup/user.slice", "max")
    assert total_memory(root) == 64 * GIB
    assert available_memory(root) == 40 * GIB


def test_the_limit_of_a_unit_of_systemd_is_below_the_root_of_the_groups(system: Make) -> None:
    root = system("0::/system.slice/trainyard-worker@default.service", V2)
    unit = root / "sys/fs/cgroup/system.slice/trainyard-worker@default.service"
    limit_v2(unit, str(8 * GIB), used=3 * GIB, inactive=GIB)
    assert total_memory(root) == 8 * GIB
    assert available_memory(root) == 6 * GIB


def test_a_lower_limit_of_a_group_above_is_in_force(system: Make) -> None:
    # As of a Slurm job, whose tasks have none of their own.
    root = system("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", V2)
    job = root / "sys/fs/cgroup/system.slice/slurmstepd.scope/job_7"
    limit_v2(job / "step_0/user/task_0", "max")
    limit_v2(job / "step_0", str(32 * GIB), used=GIB)
    limit_v2(job, str(4 * GIB), used=4 * GIB)
    assert total_memory(root) == 4 * GIB
    assert available_memory(root) == 0


def test_a_container_has_its_limit_at_the_mount_point(system: Make) -> None:
    root = system("0::/", V2)
    limit_v2(root / "sys/fs/cgroup", str(2 * GIB))
    assert total_memory(root) == 2 * GIB


@pytest.mark.parametrize("path", ["/docker/abc", "/../../system.slice"])
def test_a_container_that_sees_a_path_of_its_host_has_its_limit_at_the_mount_point(
    system: Make, path: str
) -> None:
    root = system(f"4:memory:{path}\n0::/", V1.replace(" / /sys", " /docker/abc /sys"))
    limit_v1(root / "sys/fs/cgroup/memory", 2 * GIB)
    assert total_memory(root) == 2 * GIB


def test_limits_of_the_first_version_are_read_too(system: Make) -> None:
    root = system("4:cpu,memory:/slurm/uid_7/job_7/step_0\n1:name=systemd:/\n0::/", V1, HYBRID)
    groups = root / "sys/fs/cgroup/memory"
    limit_v1(groups / "slurm/uid_7/job_7/step_0", 6 * GIB, used=5 * GIB, inactive=2 * GIB)
    limit_v1(groups / "slurm/uid_7", NO_LIMIT_V1)
    limit_v1(groups, NO_LIMIT_V1)
    assert total_memory(root) == 6 * GIB
    assert available_memory(root) == 3 * GIB


def test_a_limit_above_the_memory_of_the_machine_changes_nothing(system: Make) -> None:
    root = system("0::/unit", V2)
    limit_v2(root / "sys/fs/cgroup/unit", str(256 * GIB), used=GIB)
    assert (total_memory(root), available_memory(root)) == (64 * GIB, 40 * GIB)


def test_a_system_without_these_files_has_the_memory_of_the_machine(tmp_path: Path) -> None:
    assert total_memory(tmp_path) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert available_memory(tmp_path) is None


def test_a_worker_shows_the_limit_as_its_memory_and_divides_it_among_its_slots(
    system: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = system("0::/unit", V2)
    limit_v2(root / "sys/fs/cgroup/unit", str(20 * GIB), used=5 * GIB)
    monkeypatch.setattr(inventory, "total_memory", lambda: total_memory(root))
    monkeypatch.setattr(usable_memory, "available_memory", lambda: available_memory(root))
    assert inventory.memory_per_slot(4) == int(20 * GIB * 0.9) // 4
    (first, *_) = inventory._cpu_devices()
    assert (first["memory_bytes"], first["memory_used"]) == (20 * GIB, 5 * GIB)


@pytest.fixture
def real_group() -> Iterator[Path]:
    """A control group of this machine with a limit of 1 GiB."""
    for folder, limit in (("memory", "memory.limit_in_bytes"), ("", "memory.max")):
        group = Path("/sys/fs/cgroup", folder, f"trainyard-test-{os.getpid()}")
        with suppress(OSError):
            group.mkdir()
            try:
                if (group / limit).exists():
                    (group / limit).write_text(str(GIB))
                    yield group
                    return
            finally:
                group.rmdir()
    pytest.skip("no control group can be made here")


def test_a_process_in_a_control_group_of_the_machine_reads_its_limit(real_group: Path) -> None:
    code = (
        "import os, sys; open(sys.argv[1] + '/cgroup.procs', 'w').write(str(os.getpid()));"
        "from workers.system.usable_memory import total_memory; print(total_memory())"
    )
    command = [sys.executable, "-c", code, str(real_group)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) == GIB
