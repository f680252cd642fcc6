"""Gives runs with user code the GPUs that their attempt has, where its sandbox allows it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.messages.sandbox import Level, LevelState, choose_level
from workers.confinement.sandbox import gpus
from workers.confinement.sandbox.gpus import GpuAccess, NoGpuAccess, SandboxGpu


@dataclass(frozen=True)
class SandboxGpus:
    """The GPUs that this worker has claimed.

    Attributes:
        gpus: by their CUDA_VISIBLE_DEVICES entries.
        own_user: whether each run has its own user.
    """

    gpus: Mapping[str, SandboxGpu]
    own_user: bool = field(default_factory=lambda: os.geteuid() == 0)

    def access(self, ids: Sequence[str], level: Level, *, network: bool) -> GpuAccess:
        """Return the files with which a run uses some GPUs. It looks for libraries: call it in a thread.

        Args:
            ids: their CUDA_VISIBLE_DEVICES entries.
            level: the level at which the run's sandbox is.
            network: whether the run may connect to other hosts.

        Raises:
            NoGpuAccess: the run cannot use them; the text is the reason.
        """
        if problem := gpus.problem_at(level, own_user=self.own_user, count=len(ids), network=network):
            raise NoGpuAccess(problem)
        return gpus.find([self.gpus[entry] for entry in ids], own_user=self.own_user)

    def problems(self, states: Iterable[LevelState]) -> tuple[str, ...]:
        """Return why runs with code cannot use one GPU, and why not several, for the plan; empty if they can.

        Args:
            states: this machine's levels.
        """
        level = choose_level(states, Level.PROCESS)
        if level is None or not self.gpus:
            return ()
        problems = []
        for count in (1, 2):
            try:
                self.access([*self.gpus][:1] * count, level, network=False)
            except NoGpuAccess as error:
                problems.append(str(error))
            else:
                problems.append("")
        return tuple(problems)
