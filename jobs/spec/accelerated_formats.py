"""Lists the number formats that devices compute faster than float32, by kind or compute capability.

The usual gains come from vendors' guides for training, not from measurements here: NVIDIA's guide on mixed
precision ("up to 3 times"), its data sheets, and Google's guide on bfloat16. None of them was measured by
this project; pages show a measured gain beside them once a dry run has one.
"""

import re
from typing import NamedTuple

from jobs.spec.sections.precision import Policy


class Generation(NamedTuple):
    """Devices of the same abilities.

    Attributes:
        name: for users.
        capability: the lowest compute capability, as (major, minor); None: no GPU of NVIDIA.
        pattern: found in the names of its devices.
        gains: the usual gain of training by format, as text; a format that is missing is not accelerated.
    """

    name: str
    capability: tuple[int, int] | None
    pattern: str
    gains: dict[str, str]


_MIXED = "1.5 to 3 times"
_EIGHT = "1.2 to 1.5 times bfloat16"
_FAST_DOUBLE = r"\bG?B[12]00\b|\bG?H[12]00\b|\bA(100|800|30)\b|\bV100\b|TITAN V\b|\bP100\b"
"""In the names of GPUs that compute float64 at half the speed of float32; others are far slower."""

GENERATIONS = (
    Generation(
        "Blackwell",
        (10, 0),
        r"\b[BG]B?[123]00\b|RTX (PRO )?50\d\d|RTX PRO \d{4} Blackwell",
        {"float16": _MIXED, "bfloat16": _MIXED, "float8": _EIGHT},
    ),
    Generation(
        "Hopper",
        (9, 0),
        r"\bG?H[12]\d\d\b|\bH20\b",
        {"float16": _MIXED, "bfloat16": _MIXED, "float8": _EIGHT},
    ),
    Generation(
        "Ada Lovelace",
        (8, 9),
        r"\bL4\b|\bL40S?\b|RTX 40\d\d|RTX \d000 .*Ada",
        {"float16": _MIXED, "bfloat16": _MIXED, "float8": _EIGHT},
    ),
    Generation(
        "Ampere",
        (8, 0),
        r"\bA(100|800|30|40|10|16|2)\b|RTX 30\d\d|RTX A\d{3,4}",
        {"float16": _MIXED, "bfloat16": _MIXED},
    ),
    Generation("Turing", (7, 5), r"\bT4\b|RTX 20\d\d|Quadro RTX|TITAN RTX", {"float16": _MIXED}),
    Generation("Volta", (7, 0), r"\bV100\b|TITAN V\b", {"float16": _MIXED}),
    # Its other GPUs have a higher compute capability and no fast float16.
    Generation("Pascal", None, r"\bP100\b", {"float16": "up to 2 times"}),
    Generation("TPU", None, r"(?i)\btpu\b", {"bfloat16": "1.5 to 3 times"}),
)
"""The newest first."""

_FORMATS: dict[Policy, str] = {
    "mixed_float16": "float16",
    "float16": "float16",
    "mixed_bfloat16": "bfloat16",
    "bfloat16": "bfloat16",
    "float8": "float8",
}


class Acceleration(NamedTuple):
    """The speed of a device under a policy.

    Attributes:
        device: the device's kind.
        is_faster: whether it computes faster than in float32; None if that is not known.
        sentence: the usual gain, or why there is none.
    """

    device: str
    is_faster: bool | None
    sentence: str


def acceleration(device: str, policy: Policy, capability: str = "") -> Acceleration:
    """Return the speed of a device under a policy.

    Args:
        device: its kind as a worker reports it: `cpu`, or the model of a GPU.
        policy: the policy.
        capability: the GPU's compute capability, such as 8.6, if the worker reports it.
    """
    if policy == "float32":
        return Acceleration(device, False, "the reference")
    if device.lower() == "cpu":
        return Acceleration(device, False, _on_cpu(policy))
    generation = _generation_of(device, capability)
    if generation is None:
        return Acceleration(device, None, "not known for this device; compare by a dry run")
    if policy == "float64":
        is_fast = re.search(_FAST_DOUBLE, device) is not None
        sentence = "half the speed of float32" if is_fast else "1/32 of the speed of float32 or less"
        return Acceleration(device, False, sentence)
    gain = generation.gains.get(_FORMATS[policy])
    if gain is None:
        return Acceleration(device, False, f"{generation.name} has no units for it: emulated, and slower")
    return Acceleration(device, True, f"usually {gain} as fast ({generation.name})")


def _on_cpu(policy: Policy) -> str:
    if policy == "float64":
        return "CPUs need about twice the time of float32"
    return "CPUs accelerate no format below float32: training is usually slower"


def _generation_of(device: str, capability: str) -> Generation | None:
    if found := re.fullmatch(r"(\d+)\.(\d+)", capability):
        number = int(found[1]), int(found[2])
        return next((g for g in GENERATIONS if g.capability is not None and number >= g.capability), None)
    return next((g for g in GENERATIONS if re.search(g.pattern, device)), None)
