"""GPUs in a sandbox: devices, libraries and rules, from a file tree, and with devices that are no GPUs.

Whether a driver works with them is tested in `tests/gpu`, on a machine that has one.
"""

import ast
import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.messages.sandbox import Level
from tests.sandbox.conftest import Cases, cases, python
from tests.sandbox.test_launch import LIMITS, PIPES, request
from workers.confinement.sandbox import bubblewrap, gpus, landlock, launch, seccomp, view
from workers.confinement.sandbox.gpus import GpuAccess, NoGpuAccess, SandboxGpu
from workers.confinement.sandbox.launch import Owner
from workers.confinement.sandbox.plan import Mount

__all__ = ["cases"]

TWO = (SandboxGpu("GPU-c", 2), SandboxGpu("GPU-a", 0))
CACHE = """3 libs found in cache `/etc/ld.so.cache'
\tlibcuda.so.1 (libc6,x86-64) => /opt/driver/libcuda.so.1
\tlibnvidia-nvvm.so.4 (libc6,x86-64) => /opt/driver/libnvidia-nvvm.so.4
\tlibz.so.1 (libc6,x86-64) => /opt/driver/libz.so.1
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with three GPUs, and the driver's libraries at two unusual places."""
    names = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia0", "nvidia1", "nvidia2")
    for name in names:
        create_file(tmp_path / "dev" / name).chmod(0o666)
    for path in (
        "opt/driver/libcuda.so.1", "opt/driver/libz.so.1", "opt/driver/libnvidia-nvvm.so.4",
        "run/opengl-driver/lib/libnvidia-ptxjitcompiler.so.1", "sys/module/nvidia/initstate",
        "sys/devices/pci0000:00/numa_node", "home/secret",
    ):  # fmt: skip
        create_file(tmp_path / path)
    return tmp_path


def create_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def find_gpus(root: Path, *, own_user: bool = True, variables: dict[str, str] | None = None) -> GpuAccess:
    return gpus.find(TWO, own_user=own_user, root=root, environment=variables or {}, loader=lambda: CACHE)


def test_a_run_gets_the_devices_of_its_gpus_alone_with_what_the_driver_reads(root: Path) -> None:
    access = find_gpus(root)
    assert access.visible == "GPU-c,GPU-a"
    assert [path.removeprefix(f"{root}/dev/") for path in access.devices] == [
        "nvidiactl", "nvidia-uvm", "nvidia2", "nvidia0", "nvidia-uvm-tools",
    ]  # fmt: skip
    readable = {path.removeprefix(f"{root}/") for path in access.readable}
    assert readable == {
        "sys/devices", "sys/module/nvidia", "run/opengl-driver/lib/libnvidia-ptxjitcompiler.so.1",
        "opt/driver/libcuda.so.1", "opt/driver/libnvidia-nvvm.so.4",
    }  # fmt: skip


def test_libraries_are_found_by_the_variable_of_the_loader_too(root: Path) -> None:
    library = create_file(root / "own" / "libnvidia-ml.so.1")
    assert (
        str(library) in find_gpus(root, variables={"LD_LIBRARY_PATH": f":{library.parent}:relative"}).readable
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("dev/nvidia-uvm", "nvidia-uvm is missing"),
        ("dev/nvidia2", "nvidia2 is missing"),
        ("opt/driver/libcuda.so.1", "libcuda.so.1, was not found"),
    ],
)
def test_what_is_missing_is_named(root: Path, path: str, words: str) -> None:
    (root / path).unlink()
    with pytest.raises(NoGpuAccess, match=words):
        find_gpus(root)


def test_devices_that_are_closed_to_users_of_runs_and_parts_of_gpus_are_refused(root: Path) -> None:
    (root / "dev/nvidia0").chmod(0o660)
    assert find_gpus(root, own_user=False).devices
    with pytest.raises(NoGpuAccess, match="nvidia0 is closed"):
        find_gpus(root)
    with pytest.raises(NoGpuAccess, match="part of a divided GPU"):
        gpus.find([SandboxGpu("MIG-a", None)], own_user=False, root=root, loader=lambda: CACHE)


def test_below_windows_all_gpus_have_one_device(root: Path) -> None:
    (root / "dev/nvidiactl").unlink()
    dxg = create_file(root / "dev/dxg")
    assert find_gpus(root, own_user=False).devices == (str(dxg),)


@pytest.mark.parametrize(
    ("level", "own_user", "count", "network", "words"),
    [
        (Level.BUBBLEWRAP, False, 4, False, ""),
        (Level.LANDLOCK, True, 1, False, ""),
        (Level.LANDLOCK, True, 2, True, ""),
        (Level.LANDLOCK, False, 1, True, "names of threads"),
        (Level.LANDLOCK, True, 2, False, "sockets"),
        (Level.PROCESS, False, 2, False, ""),
    ],
)
def test_levels_that_cannot_have_gpus_have_a_reason(
    level: Level, own_user: bool, count: int, network: bool, words: str
) -> None:
    problem = gpus.problem_at(level, own_user=own_user, count=count, network=network)
    assert (words in problem) if words else problem == ""


def test_each_level_shows_the_devices_and_limits_no_reserved_memory(root: Path, tmp_path: Path) -> None:
    access = find_gpus(root)
    work = tmp_path / "work"
    work.mkdir()
    asked = request(work, devices=access.devices, environment={"CUDA_VISIBLE_DEVICES": access.visible})
    paths = (access.readable, (str(work),), str(work), asked.devices)
    mounts = view.mounts(*paths)
    kinds = {mount.target: mount.kind for mount in mounts}
    assert {kinds[path] for path in access.devices} == {"device"}
    assert {kinds[path] for path in access.readable} == {"read"}
    for hidden in ("dev/nvidia1", "dev/nvidia-modeset", "home/secret", "opt/driver/libz.so.1"):
        assert not any(Path(root, hidden).is_relative_to(path) for path in kinds.keys() - view.TEMPORARY)
    command = bubblewrap.command_line(
        "bwrap", mounts, ["true"], network=False, privileged=False, shared_memory=1
    )
    binds = [command[at : at + 3] for at, word in enumerate(command) if word == "--dev-bind"]
    assert binds == [["--dev-bind", path, path] for path in sorted(access.devices, key=shown_order(mounts))]
    rules = dict(view.landlock_rules(*paths))
    ioctl = landlock.ACCELERATOR & ~landlock.DEVICE
    assert ioctl == 1 << 15
    assert all(rules[path] == landlock.ACCELERATOR for path in access.devices)
    assert rules["/dev/null"] & ioctl == 0
    # Older versions of Landlock do not know the right, and restrict no such call.
    assert landlock.rights(4) & ioctl == 0
    assert rules["/proc"] == landlock.WRITING
    assert dict(view.landlock_rules(*paths[:3]))["/proc"] == landlock.READING
    limits = {name for name, _, _ in launch._limits(LIMITS, gpus=True)}
    assert limits & {"RLIMIT_DATA", "RLIMIT_AS"} == set()
    assert "RLIMIT_DATA" in {name for name, _, _ in launch._limits(LIMITS, gpus=False)}


def shown_order(mounts: list[Mount]) -> Callable[[str], int]:
    order = {mount.target: at for at, mount in enumerate(mounts)}
    return order.__getitem__


PROGRAM = """
import fcntl, os, resource, sys, threading
own, other = sys.argv[1:]
limits = {"limit": resource.getrlimit(resource.RLIMIT_DATA)[0], "visible": os.environ["CUDA_VISIBLE_DEVICES"]}
def failure(action):
    try:
        action()
    except OSError as error:
        return error.strerror
    return "done"
device = os.open(own, os.O_RDWR)
limits["order"] = failure(lambda: fcntl.ioctl(device, 0x1234, bytes(8)))
limits["other"] = failure(lambda: os.open(other, os.O_RDWR))
limits["facts"] = bool(os.listdir("/sys/devices"))
def name():
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "r+b", buffering=0) as file:
        file.write(b"cuda")
thread = threading.Thread(target=lambda: limits.update(name=failure(name)))
thread.start()
thread.join()
print(limits)
"""


@pytest.mark.parametrize("level", [level for level in Level if level is not Level.PROCESS])
def test_a_device_of_the_machine_can_be_used_and_its_neighbour_cannot(
    level: Level, cases: Cases, owner: Owner | None
) -> None:
    """The devices are those of /dev/null, which knows no orders."""
    if owner is None:
        pytest.skip("only root can make devices")
    cases.require("root", level)
    with tempfile.TemporaryDirectory(prefix="trainyard-devices-") as name:
        device_of_run, other, work = (Path(name, part) for part in ("nvidia0", "nvidia1", "work"))
        Path(name).chmod(0o711)
        for device in (device_of_run, other):
            os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            device.chmod(0o666)
        work.mkdir()
        os.chown(work, *owner)
        asked = request(
            work,
            readable=("/sys/devices",),
            devices=(str(device_of_run),),
            environment={"CUDA_VISIBLE_DEVICES": "GPU-a"},
        )
        command = [python(), "-I", "-S", "-c", PROGRAM, str(device_of_run), str(other)]
        with launch.launch_at(level, asked, command, owner=owner, streams=PIPES) as process:
            assert process.stdout is not None and process.stderr is not None
            assert process.wait(30) == 0, process.stderr.read()
            answers = ast.literal_eval(process.stdout.read().decode())
    assert answers.pop("other") in ("Permission denied", "No such file or directory")
    assert answers == {
        "limit": -1, "visible": "GPU-a", "facts": True, "name": "done", "order": os.strerror(errno.ENOTTY),
    }  # fmt: skip


def test_no_call_that_a_driver_needs_is_refused() -> None:
    """As sandboxes that filter calls of CUDA programs allow them."""
    refused = set(seccomp._ALWAYS)
    needed = {"ioctl", "mmap", "munmap", "mremap", "mprotect", "madvise", "poll", "eventfd2", "memfd_create"}
    assert (
        refused & {*needed, "mlock", "get_mempolicy", "set_mempolicy", "mbind", "sched_getaffinity"} == set()
    )
