"""Finds the files with which a run in a sandbox uses NVIDIA GPUs: devices, and those that the driver reads.

The lists follow the device nodes that container runtimes add, and what users of bubblewrap and Landlock found
missing: without /sys the driver does not start, and it names its threads in /proc. Nothing here has run on a
GPU, see `docs/sandbox.md`.
"""

import fnmatch
import os
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jobs.messages.sandbox import Level
from workers.confinement.sandbox import view

CONTROL, MEMORY, TOOLS = "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia-uvm-tools"
WINDOWS = "dev/dxg"
"""The only device of all GPUs below Windows (WSL)."""
DRIVER = "libcuda.so.1"
LIBRARIES = ("libcuda.so*", "libcudadebugger.so*", "libnvidia-*.so*", "libdxcore.so*")
FOLDERS = (
    "usr/lib/wsl/lib", "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib",
    "usr/local/nvidia/lib64", "usr/local/nvidia/lib", "run/opengl-driver/lib",
)  # fmt: skip
"""Where the libraries of the driver usually are, beside those that the loader lists."""
FACTS = (
    "sys/bus/pci", "sys/devices", "sys/module/nvidia", "sys/module/nvidia_uvm", "sys/module/nvidia_modeset",
    "sys/module/nvidia_drm",
)  # fmt: skip
"""Facts about the machine that the driver reads. /proc/driver/nvidia is in every /proc."""
_OPEN_TO_ALL = 0o006
_CACHED = re.compile(r"^\s*(?P<name>\S+) .*=> (?P<path>/\S+)$", re.MULTILINE)
_TIMEOUT = 10.0


class NoGpuAccess(Exception):
    """A run in a sandbox cannot use its GPUs. The text is the reason."""


class SandboxGpu(NamedTuple):
    """A GPU in this machine.

    Attributes:
        uuid: names it in CUDA_VISIBLE_DEVICES: numbers count only the GPUs that a process can open.
        minor: its device file's number; None for a part of a divided (MIG) GPU.
    """

    uuid: str
    minor: int | None


class GpuAccess(NamedTuple):
    """The files and the variable with which a run uses some GPUs.

    Attributes:
        visible: the entry for CUDA_VISIBLE_DEVICES.
        devices: device files.
        readable: further files and folders.
    """

    visible: str
    devices: tuple[str, ...]
    readable: tuple[str, ...]


def problem_at(level: Level, *, own_user: bool, count: int, network: bool) -> str:
    """Return why runs at a level cannot use GPUs, as a clause; empty if they can.

    Args:
        level: the sandbox's level.
        own_user: whether each run has its own user, because the worker is root.
        count: how many GPUs one run uses.
        network: whether it may connect to other hosts.
    """
    if level is not Level.LANDLOCK:
        return ""
    if not own_user:
        return (
            "the driver writes names of threads into /proc, and at the level landlock only runs with a user "
            "of their own may write there: this needs a worker that is root, or a stronger level"
        )
    if count > 1 and not network:
        return "several GPUs work together through sockets, which the level landlock refuses without network"
    return ""


def find(
    gpus: Sequence[SandboxGpu],
    *,
    own_user: bool,
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    loader: Callable[[], str] | None = None,
) -> GpuAccess:
    """Return the files for some GPUs.

    Args:
        gpus: the GPUs that the run has.
        own_user: whether it has another user than this process.
        root: the top folder to search; tests have their own.
        environment: this process's.
        loader: returns the loader's list of libraries.

    Raises:
        NoGpuAccess: something is missing.
    """
    devices = tuple(_devices(gpus, root))
    for path in devices:
        if own_user and path.stat().st_mode & _OPEN_TO_ALL != _OPEN_TO_ALL:
            raise NoGpuAccess(f"{path} is closed to the users of runs")
    libraries = list(_libraries(root, environment, (loader or _list_loader_cache)()))
    if not any(path.name == DRIVER for path in libraries):
        raise NoGpuAccess(f"the library of the driver, {DRIVER}, was not found")
    facts = (root / name for name in FACTS)
    return GpuAccess(
        visible=",".join(gpu.uuid for gpu in gpus),
        devices=tuple(map(str, devices)),
        readable=tuple(
            dict.fromkeys(str(path) for path in (*facts, *libraries) if path.exists() and not _is_shown(path))
        ),
    )


def _devices(gpus: Iterable[SandboxGpu], root: Path) -> Iterator[Path]:
    if not (root / CONTROL).exists() and (root / WINDOWS).exists():
        yield root / WINDOWS
        return
    needed = [root / CONTROL, root / MEMORY]
    for gpu in gpus:
        if gpu.minor is None:
            raise NoGpuAccess(f"{gpu.uuid} is a part of a divided GPU, whose devices are not passed in")
        needed.append(root / f"dev/nvidia{gpu.minor}")
    for path in needed:
        if not path.exists():
            raise NoGpuAccess(f"the device {path} is missing")
        yield path
    if (root / TOOLS).exists():
        yield root / TOOLS


def _libraries(root: Path, environment: Mapping[str, str], cached: str) -> Iterator[Path]:
    """Yield the driver's libraries as the loader finds them: by variable, by its list, in usual folders."""
    named = [Path(name) for name in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if name]
    for folder in (*named, *(root / name for name in FOLDERS)):
        if folder.is_absolute() and folder.is_dir():
            yield from (entry for entry in sorted(folder.iterdir()) if _is_of_driver(entry.name))
    for library in _CACHED.finditer(cached):
        path = root / library["path"].lstrip(os.sep)
        if _is_of_driver(library["name"]) and path.exists():
            yield path


def _is_of_driver(name: str) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in LIBRARIES)


def _is_shown(path: Path) -> bool:
    """Return whether each sandbox has a file from the machine anyway."""
    return any(path.is_relative_to(folder) for folder in view.SYSTEM)


def _list_loader_cache() -> str:
    """Return the loader's list of libraries; empty where it has none."""
    for program in ("/sbin/ldconfig", "/usr/sbin/ldconfig"):
        try:
            return subprocess.run(  # noqa: S603  a program of the system
                [program, "-p"], capture_output=True, text=True, timeout=_TIMEOUT, check=True
            ).stdout
        except (OSError, subprocess.SubprocessError):
            continue
    return ""
