"""Looks for signs of NVIDIA GPUs on a machine whose driver does not answer, and names the missing part."""

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIBRARIES = ("libnvidia-ml.so.1", "libcuda.so.1")
"""The driver's libraries: the first answers questions about GPUs, the second computes."""
MODULE = "/proc/driver/nvidia/version"
CONTROL = "/dev/nvidiactl"
NVIDIA = "0x10de"
DISPLAY_CLASS = "0x03"
"""How the class of graphics and compute cards begins on the PCI bus."""
IN_CONTAINER = (
    "NVIDIA's runtime did not start this container. Install the NVIDIA Container Toolkit on the host, and "
    "start the container with --gpus"
)


@dataclass(frozen=True)
class GpuSigns:
    """The signs of NVIDIA GPUs on a machine.

    Attributes:
        libraries: the driver's libraries that can be loaded.
        has_module: whether the kernel module is loaded. A container shows that of its host.
        files: the GPUs' device files, such as `/dev/nvidia0`.
        is_closed: whether this user may not open the device files.
        cards: how many cards of NVIDIA the PCI bus has.
        in_container: whether this process is in a container.
    """

    libraries: tuple[str, ...] = ()
    has_module: bool = False
    files: tuple[str, ...] = ()
    is_closed: bool = False
    cards: int = 0
    in_container: bool = False

    @property
    def has_driver(self) -> bool:
        """Return whether some part of NVIDIA's driver is here."""
        return bool(self.libraries or self.has_module or self.files)


def read_signs(root: Path = Path("/"), load: Callable[[str], Any] = ctypes.CDLL) -> GpuSigns:
    """Look for the signs below a root folder.

    Args:
        root: the file system.
        load: loads a library by name, and raises OSError if it cannot.
    """
    dev = root / "dev"
    files = sorted(file for file in dev.glob("nvidia[0-9]*") if file.name.removeprefix("nvidia").isdecimal())
    opened = [file for file in (root / CONTROL[1:], *files) if file.exists()]
    containers = (root / ".dockerenv", root / "run/.containerenv")
    return GpuSigns(
        libraries=tuple(name for name in LIBRARIES if _can_load(name, load)),
        has_module=(root / MODULE[1:]).exists(),
        files=tuple(f"/dev/{file.name}" for file in files),
        is_closed=any(not os.access(file, os.R_OK | os.W_OK) for file in opened),
        cards=sum(_is_card(device) for device in (root / "sys/bus/pci/devices").glob("*")),
        in_container=any(file.exists() for file in containers),
    )


def missing_part(signs: GpuSigns) -> str | None:
    """Return what keeps a driver from answering, as a sentence without a full stop; None without a GPU."""
    if not signs.has_driver:
        if not signs.cards:
            return None
        number = "a card" if signs.cards == 1 else f"{signs.cards} cards"
        return f"this machine has {number} of NVIDIA, but NVIDIA's driver is not installed"
    if not signs.has_module:
        return _without_module(signs)
    if LIBRARIES[0] not in signs.libraries:
        what = f"NVIDIA's kernel module is loaded, but the driver's library {LIBRARIES[0]} cannot be loaded"
        if signs.in_container:
            return f"{what}. {IN_CONTAINER}"
        return f"{what}. Install the driver's libraries in the version that {MODULE} shows"
    if not signs.files:
        what = "NVIDIA's driver is installed, but there is no device file /dev/nvidia0"
        return f"{what}. {IN_CONTAINER if signs.in_container else 'Run nvidia-smi as root, which creates it'}"
    if signs.is_closed:
        return f"this user may not open {signs.files[0]} and {CONTROL}. It must read and write these files"
    if LIBRARIES[1] not in signs.libraries:
        what = f"NVIDIA's driver is installed, but its library {LIBRARIES[1]} cannot be loaded"
        return f"{what}. NVIDIA_DRIVER_CAPABILITIES must contain compute" if signs.in_container else what
    return "NVIDIA's driver is installed, but shows no GPU. Run nvidia-smi, which shows why"


def _without_module(signs: GpuSigns) -> str:
    part = (
        f"NVIDIA's library {signs.libraries[0]}" if signs.libraries else f"the device file {signs.files[0]}"
    )
    host = " on the host" if signs.in_container else ""
    return (
        f"{part} is here, but NVIDIA's kernel module is not loaded (there is no {MODULE}). Load it{host} "
        "with modprobe nvidia, or reboot after an update of the driver"
    )


def _can_load(name: str, load: Callable[[str], Any]) -> bool:
    try:
        load(name)
    except OSError:
        return False
    return True


def _is_card(device: Path) -> bool:
    try:
        vendor, kind = (device / "vendor").read_text().strip(), (device / "class").read_text().strip()
    except OSError:
        return False
    return vendor == NVIDIA and kind.startswith(DISPLAY_CLASS)
