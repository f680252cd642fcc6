#!/usr/bin/env python
"""Prints the lock file with the packages for this machine's NVIDIA GPUs: for CUDA 13 or CUDA 12.

The variable CUDA, 12 or 13, chooses instead, also on a machine without a driver. Exit code 1: nothing fits.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from workers.system.cuda_needs import NEWEST_FIRST, CudaNeeds, capability_text

VERSION_FILE = Path("/proc/driver/nvidia/version")
QUERIES = ("driver_version,compute_cap,name", "driver_version")
"""For nvidia-smi. Drivers before 510 do not know the compute capability."""
SECONDS = 60
CHOICES = " or ".join(
    f"CUDA={needs.release} (driver {needs.driver} or newer, compute capability "
    f"{capability_text(needs.capability)} or more)"
    for needs in NEWEST_FIRST
)


class NoChoice(Exception):
    """Nothing can be installed for this machine's GPUs; its text is for the user."""


class Card(NamedTuple):
    """A GPU of this machine."""

    name: str
    capability: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.name} (compute capability {capability_text(self.capability)})"


class Machine(NamedTuple):
    """The driver's version, empty without a driver, and the GPUs as far as they are known."""

    driver: str = ""
    cards: tuple[Card, ...] = ()


def read_machine(version_file: Path = VERSION_FILE) -> Machine:
    """Ask nvidia-smi, or else the kernel module, which also answers where nvidia-smi is not installed."""
    for query in QUERIES:
        lines = [line for line in _nvidia_smi(query) if re.match(r"\d+\.", line)]
        if lines:
            cards = (_card(line.split(", ", 2)) for line in lines)
            return Machine(lines[0].split(", ")[0], tuple(card for card in cards if card is not None))
    try:
        text = version_file.read_text()
    except OSError:
        return Machine()
    found = re.search(r"\s(\d{3,}\.\d+(\.\d+)*)\s", text)
    return Machine(found[1] if found else "")


def _nvidia_smi(query: str) -> list[str]:
    command = ["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603 - the command is constant
            command, capture_output=True, text=True, timeout=SECONDS, check=True
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines()]


def _card(columns: list[str]) -> Card | None:
    if len(columns) < len(QUERIES[0].split(",")) or not (
        numbers := re.fullmatch(r"(\d+)\.(\d+)", columns[1])
    ):
        return None
    return Card(columns[2], (int(numbers[1]), int(numbers[2])))


def choose(machine: Machine, wanted: str) -> tuple[CudaNeeds, str]:
    """Return the needs whose lock file to install, and a sentence about the choice.

    Args:
        machine: this one.
        wanted: the value of CUDA.

    Raises:
        NoChoice: CUDA has another value, there is no driver, or driver or GPUs are too old.
    """
    if wanted:
        return _wanted(machine, wanted)
    if not machine.driver:
        raise NoChoice(
            "No NVIDIA driver answers on this machine, so the CUDA release cannot be chosen by it. Install "
            f"the driver, or choose: make setup-gpu {CHOICES}."
        )
    fitting = [needs for needs in NEWEST_FIRST if needs.has_driver(machine.driver)]
    if not fitting:
        oldest = NEWEST_FIRST[-1]
        raise NoChoice(
            f"NVIDIA's driver {machine.driver} is too old: JAX's CUDA {oldest.release} needs {oldest.driver} "
            f"or newer, CUDA {NEWEST_FIRST[0].release} {NEWEST_FIRST[0].driver}. Update the driver."
        )
    return _by_cards(machine, fitting)


def _by_cards(machine: Machine, fitting: list[CudaNeeds]) -> tuple[CudaNeeds, str]:
    """Return the newest release that supports most of the GPUs; older releases support older GPUs too."""
    best = max(fitting, key=lambda needs: len(_supported(machine, needs)))
    if machine.cards and not _supported(machine, best):
        raise NoChoice(
            f"No GPU of this machine can be used: JAX's CUDA {best.release} needs compute capability "
            f"{capability_text(best.capability)}, and it has {_list(machine.cards)}."
        )
    text = f"CUDA {best.release}, for driver {machine.driver}"
    newest = fitting[0]
    if best is not newest:
        old = [card for card in machine.cards if card.capability < newest.capability]
        text += f": CUDA {newest.release} would not support {_list(old)}"
    if left := [card for card in machine.cards if card.capability < best.capability]:
        text += f". It does not support {_list(left)}"
    return best, f"{text}."


def _wanted(machine: Machine, wanted: str) -> tuple[CudaNeeds, str]:
    needs = next((needs for needs in NEWEST_FIRST if str(needs.release) == wanted), None)
    if needs is None:
        raise NoChoice(f"CUDA={wanted} is not possible. Use {CHOICES}, or leave it out.")
    text = f"CUDA {needs.release}, as chosen."
    if machine.driver and not needs.has_driver(machine.driver):
        text += (
            f" This machine's driver {machine.driver} is too old for it: workers take no work until it is "
        )
        text += f"{needs.driver} or newer."
    if old := [card for card in machine.cards if card.capability < needs.capability]:
        text += f" It does not support {_list(old)}."
    return needs, text


def _supported(machine: Machine, needs: CudaNeeds) -> list[Card]:
    return [card for card in machine.cards if card.capability >= needs.capability]


def _list(cards: list[Card] | tuple[Card, ...]) -> str:
    return ", ".join(str(card) for card in dict.fromkeys(cards))


def main() -> int:
    """Print the lock file for scripts/setup, and the reason for people."""
    try:
        needs, reason = choose(read_machine(), os.environ.get("CUDA", "").strip())
    except NoChoice as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{reason}\n")
    sys.stdout.write(f"{needs.lock}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
