"""Lists a root job's steps, before their jobs exist."""

from jobs.errors import Conflict
from jobs.kinds import planned_steps, steps_from
from jobs.models import Job
from jobs.spec.experiment import ExperimentSpec


def effective_spec(root: Job) -> ExperimentSpec:
    """Return the spec that lists a root's steps: its revision's, as changed by its kind.

    Raises:
        Conflict: the root does not come from an experiment.
    """
    if root.revision is None:
        raise Conflict(f"job {root.pk} does not come from an experiment")
    return root.payload.spec_with_steps(root.revision.spec)


def steps_of(root: Job) -> list[str]:
    """List the kinds that a root's steps have, in order."""
    if not root.facts.has_steps:
        return []
    own_steps = steps_from(root.kind)
    return [kind for kind in planned_steps(effective_spec(root)) if kind in own_steps]
