"""Decides which GPUs a worker uses, and explains why it leaves its machine's GPUs unused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from workers.node.gpu_inventory.claims import GpuClaims
from workers.node.gpu_inventory.gpus import VISIBLE, DriverError, Gpu, Nvml, visible
from workers.system import gpu_support
from workers.system.cuda_needs import NEWEST_FIRST
from workers.system.gpu_signs import GpuSigns, missing_part, read_signs
from workers.system.jax_platforms import (
    GPU_PLATFORMS,
    VARIABLE,
    PlatformDevice,
    Probe,
    probe,
    requested_platforms,
)

PLUGINS = tuple(needs.plugin for needs in NEWEST_FIRST)
"""JAX's support of CUDA; one of the lock files for GPUs installs one of them."""
HOW_TO_INSTALL = "Run make setup-gpu, then restart the worker"
CHOOSE_CPU = "To train on the CPU instead, start the worker with JAX_PLATFORMS=cpu."
REFUSED = f"The worker takes no work until this is repaired and it is started again. {CHOOSE_CPU}"
ON_CPU = "This worker trains on the CPU and takes no job with a GPU mesh."


@dataclass(frozen=True)
class Accelerators:
    """The GPUs that this worker has claimed.

    Attributes:
        gpus: in CUDA_VISIBLE_DEVICES order.
        problem: why the machine's GPUs are not used, for its administrator; None if all is as intended.
        refuses: whether the worker takes no work because of the problem: the CPU was not asked for.
        nvml: reads the GPUs' figures; None without GPUs.
        others: devices that are neither CPUs nor GPUs of NVIDIA, as JAX reports them.
        unsupported: why JAX cannot use the GPUs that this worker leaves out, one sentence for each.
    """

    gpus: tuple[Gpu, ...] = ()
    problem: str | None = None
    refuses: bool = False
    nvml: Nvml | None = None
    others: tuple[PlatformDevice, ...] = ()
    unsupported: tuple[str, ...] = ()

    def devices(self) -> list[dict[str, Any]]:
        """Return the devices of other platforms for the worker's row."""
        return [{"name": f"{other.platform}:{other.id}", "kind": other.kind} for other in self.others]


def find(
    slots: int | None,
    environment: Mapping[str, str],
    claims: GpuClaims,
    *,
    signs: Callable[[], GpuSigns] = read_signs,
    start_jax: Callable[[Mapping[str, str]], Probe] = probe,
) -> Accelerators:
    """Claim this worker's GPUs.

    Args:
        slots: the number of GPUs, one for each slot; None for all that are free.
        environment: the worker's.
        claims: keeps them from other workers of the machine.
        signs: looks for GPUs where no driver answers.
        start_jax: asks JAX for its devices; only called if JAX_PLATFORMS names other devices than CPUs.
    """
    platforms = requested_platforms(environment)
    # The operator has decided against GPUs.
    if platforms[:1] == ("cpu",):
        return Accelerators()
    if platforms and not set(platforms) & set(GPU_PLATFORMS):
        return _find_others(environment, start_jax)
    found = _find_gpus(slots, environment, claims, signs)
    if not platforms or found.gpus:
        return found
    # JAX would fail in each run, and with a second platform in the list it would use that one silently.
    reason = found.problem if found.refuses else _why_jax_has_none(found, environment, start_jax)
    value = f"{VARIABLE}={environment[VARIABLE]}"
    return Accelerators(problem=f"{value} asks for a GPU. {_as_sentence(reason)}", refuses=True)


def _why_jax_has_none(
    found: Accelerators,
    environment: Mapping[str, str],
    start_jax: Callable[[Mapping[str, str]], Probe],
) -> str:
    """Return why a GPU that was asked for is not there, on a machine where none was expected."""
    reason = (found.problem or "This machine has no GPU of NVIDIA").removesuffix(ON_CPU).strip(". ")
    error = start_jax(environment).error
    of_jax = f". JAX: {error.rstrip('.')}" if error else ""
    return f"{reason}{of_jax}. {REFUSED}"


def _find_others(
    environment: Mapping[str, str], start_jax: Callable[[Mapping[str, str]], Probe]
) -> Accelerators:
    """Return the devices of another platform, such as TPUs, which only JAX knows."""
    answer = start_jax(environment)
    if answer.error:
        value = f"{VARIABLE}={environment[VARIABLE]}"
        return Accelerators(
            problem=f"{value}: JAX cannot use it: {answer.error.rstrip('.')}. {REFUSED}", refuses=True
        )
    others = tuple(device for device in answer.devices if device.platform not in ("cpu", "gpu"))
    return Accelerators(others=others)


def _find_gpus(
    slots: int | None, environment: Mapping[str, str], claims: GpuClaims, signs: Callable[[], GpuSigns]
) -> Accelerators:
    try:
        nvml = Nvml.open()
        gpus = [] if nvml is None else nvml.gpus()
    except DriverError as error:
        return _refuse(f"The NVIDIA driver does not answer: {error}")
    if nvml is None or not gpus:
        return _without_driver(signs())
    if environment.get(VISIBLE) in ("", "-1"):
        return Accelerators(
            problem=f"{VISIBLE}={environment[VISIBLE]} hides all GPUs of this machine, which has "
            f"{_list(gpus)}. {ON_CPU}"
        )
    allowed = visible(nvml, gpus, environment)
    if not allowed:
        sentence = f"{VISIBLE}={environment[VISIBLE]} names no GPU of this machine, which has {_list(gpus)}"
        return _refuse(sentence)
    if (problem := plugin_problem()) is not None:
        return _refuse(f"This machine has {_list(allowed)}, but {problem}")
    support = gpu_support.check(allowed, cuda_release())
    if support.problem is not None:
        return _refuse(f"JAX can use no GPU of this machine. {support.problem}")
    claimed = claims.claim(support.usable, slots)
    if not claimed:
        return _refuse(f"Other workers of this machine use {_list(support.usable)}")
    return Accelerators(tuple(claimed), nvml=nvml, unsupported=support.refused)


def _without_driver(signs: GpuSigns) -> Accelerators:
    """Return why no GPU is used where the driver shows none."""
    reason = missing_part(signs)
    if reason is None:
        return Accelerators()
    if signs.has_driver:
        return _refuse(_as_sentence(reason).removesuffix("."))
    # Without its driver, the card is there for a screen only.
    return Accelerators(problem=f"{_as_sentence(reason)} {ON_CPU}")


def _refuse(reason: str) -> Accelerators:
    return Accelerators(problem=f"{reason}. {REFUSED}", refuses=True)


def _as_sentence(text: str | None) -> str:
    text = text or ""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def plugin_problem() -> str | None:
    """Return why JAX cannot use a GPU, as a clause with what to do; None if it can."""
    # Only versions are read: importing JAX would take a second.
    jaxlib = version("jaxlib")
    installed = {name: present for name in PLUGINS if (present := _version(name)) is not None}
    if not installed:
        return f"JAX's CUDA plugin is not installed. {HOW_TO_INSTALL}"
    # JAX ignores a plugin of another version and uses the CPU.
    if jaxlib not in installed.values():
        others = ", ".join(f"{name} {number}" for name, number in installed.items())
        return f"{others} does not fit jaxlib {jaxlib}. {HOW_TO_INSTALL}"
    return None


def cuda_release() -> int:
    """Return the CUDA release of the plugin that JAX uses: of two, the newer one that fits jaxlib."""
    jaxlib = version("jaxlib")
    fitting = (needs.release for needs in NEWEST_FIRST if _version(needs.plugin) == jaxlib)
    return next(fitting, NEWEST_FIRST[-1].release)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _list(gpus: Sequence[Gpu]) -> str:
    """Return the GPUs' names for a sentence."""
    return ", ".join(f"{gpu.name} ({gpu.model})" for gpu in gpus)
