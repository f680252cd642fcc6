"""Which jobs an experiment leads to, known before they exist."""

from jobs.contracts.experiment import ExperimentSpec
from jobs.errors import Conflict
from jobs.kinds import PIPELINE, planned
from jobs.models import Job


def followed(root: Job) -> ExperimentSpec:
    """Return the spec whose `after` a root follows: its revision's, changed as its kind says.

    Raises:
        Conflict: the root has no experiment.
    """
    if root.revision is None:
        raise Conflict(f"job {root.pk} does not come from an experiment")
    return root.payload.followed(root.revision.spec)


def steps_of(root: Job) -> list[str]:
    """List the kinds of jobs that a root leads to, in order."""
    if not root.facts.first_step:
        return []
    own = PIPELINE[PIPELINE.index(root.facts.first_step) :]
    return [kind for kind in planned(followed(root)) if kind in own]
