"""Reads the dtype policies, with the devices of workers and the findings of a project's dry runs."""

from collections.abc import Iterable, Mapping

from jobs.answers.experiments.precision import AccelerationOut, FormatOut, PoliciesOut, PolicyOut
from jobs.models import Project, Worker
from jobs.queries.experiments.dry_runs import measured_gains
from jobs.spec.accelerated_formats import Acceleration, acceleration
from jobs.spec.number_formats import NumberFormat
from jobs.spec.policies import POLICIES, PolicyInfo


def policies_out(project: Project | None, pool: str = "") -> PoliciesOut:
    """Return all policies.

    Args:
        project: its dry runs give the measured gains; None: none are measured.
        pool: whose workers' devices are described; empty: those of all pools.
    """
    devices = kinds_of_devices(Worker.objects.live(pool or None))
    measured = measured_gains(project) if project is not None else {}
    return PoliciesOut(
        items=[_policy_out(info, devices, measured.get(info.name, "")) for info in POLICIES.values()]
    )


def kinds_of_devices(workers: Iterable[Worker]) -> dict[str, str]:
    """Return the kinds of the workers' devices, each with its compute capability or an empty text."""
    kinds: dict[str, str] = {}
    for worker in workers:
        for device in worker.devices:
            kinds.setdefault(str(device.get("kind", "unknown")), str(device.get("compute_capability", "")))
    return kinds


def devices_by_pool() -> dict[str, dict[str, str]]:
    """Return the kinds of devices of the live workers, by pool."""
    pools: dict[str, list[Worker]] = {}
    for worker in Worker.objects.live().order_by("pool", "pk"):
        pools.setdefault(worker.pool, []).append(worker)
    return {pool: kinds_of_devices(workers) for pool, workers in pools.items()}


def accelerations(info: PolicyInfo, devices: Mapping[str, str]) -> list[Acceleration]:
    """Return what each kind of device does with a policy."""
    return [acceleration(kind, info.name, capability) for kind, capability in devices.items()]


def _policy_out(info: PolicyInfo, devices: Mapping[str, str], measured: str) -> PolicyOut:
    return PolicyOut(
        policy=info.name,
        computes=_format_out(info.computes),
        keeps=_format_out(info.keeps),
        bytes_per_parameter=info.keeps.bytes,
        training_bytes_per_parameter=info.training_bytes,
        trains=not info.refusal,
        training=info.refusal or info.training,
        inference=info.inference,
        layers=info.layers,
        devices=[AccelerationOut(**each._asdict()) for each in accelerations(info, devices)],
        measured=measured,
    )


def _format_out(entry: NumberFormat) -> FormatOut:
    return FormatOut(
        name=entry.name,
        bits=entry.bits,
        exponent=entry.exponent,
        mantissa=entry.mantissa,
        largest=entry.largest,
        smallest=entry.smallest,
        resolution=entry.resolution,
    )
