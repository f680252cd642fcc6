"""Describes each precision policy for its card: number format, memory, devices, verdicts."""

from collections.abc import Mapping
from typing import NamedTuple

from jobs.models import Project
from jobs.queries.experiments.dry_runs import measured_gains
from jobs.queries.experiments.precision import accelerations, devices_by_pool
from jobs.spec.accelerated_formats import Acceleration
from jobs.spec.policies import POLICIES, PolicyInfo
from jobs.spec.sections.precision import Policy
from webapp.report_figures.number_formats import FormatFigure, figure_of


class PoolDevices(NamedTuple):
    """The speed of the devices of a pool's live workers under a policy."""

    pool: str
    devices: list[Acceleration]


class PolicyCard(NamedTuple):
    """A policy's card.

    Attributes:
        info: the policy.
        figure: the drawing of the format in which it computes.
        pools: the speed of the workers' devices.
        measured: the finding of the project's newest dry run; empty without one.
    """

    info: PolicyInfo
    figure: FormatFigure
    pools: list[PoolDevices]
    measured: str

    @property
    def policy(self) -> str:
        return self.info.name

    @property
    def refusal(self) -> str:
        return self.info.refusal

    @property
    def can_be_compared(self) -> bool:
        """Return whether a dry run can compare it with float32."""
        return not self.info.refusal and self.info.name != "float32"


def policy_cards(project: Project | None) -> list[PolicyCard]:
    """Return the cards of all policies, with the project's measured gains."""
    pools = devices_by_pool()
    measured: Mapping[Policy, str] = measured_gains(project) if project is not None else {}
    return [
        PolicyCard(
            info=info,
            figure=figure_of(info.computes),
            pools=[PoolDevices(pool, accelerations(info, kinds)) for pool, kinds in pools.items()],
            measured=measured.get(info.name, ""),
        )
        for info in POLICIES.values()
    ]
